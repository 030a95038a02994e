#!/usr/bin/python3
"""Writes config/docs/libraries.md from what test_matrix.py has found.

    tests/libraries/table.py JUNIT.xml...     as of pytest --junitxml, or build-test/logs of tests/run --all

A cell that was not run, or failed, is not called tested. Of several files the last one that has run it
counts.
"""
import datetime
import re
import sys
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hosts"), str(HERE.parent / "process"), str(HERE.parent)]
from matrix import LEFT_OUT, LIBRARIES, SOURCES, left_out  # noqa: E402
from sources import BY_HAND, BY_LAUNCHERS, PER_WORKER  # noqa: E402

PAGE = HERE.parent.parent / "config" / "docs" / "libraries.md"
REASONS = list(dict.fromkeys(why for *_, why in LEFT_OUT))
TESTED, NOT_RUN, FAILED = "yes", "not run", "fails"
TABLES = {
    "One launcher on each node": {**BY_HAND, **BY_LAUNCHERS},
    "One launcher for each worker (`--per-process`)": PER_WORKER,
}
HEAD = """# Libraries

How libraries fare as workers of launchd, by whom launchd is started. *yes* is a real run: two simulated
hosts with a network between them, two workers on each, and what is in the column in front of launchd.
The script, which is linked, trains for two steps. The run passes if

- the library tells each worker its own rank, local rank, and their numbers;
- a collective of the library's own has the sum of all ranks;
- the loss falls, and the weights are the same on all ranks;
- all launchers return 0, and no process and no file of theirs is left. With `@record` a worker fails on
  purpose: the launchers return 1, and the report has its exception.

A letter says why there was no run.
"""
TAIL = """
The runs are `tests/libraries`: `matrix.py` has what is run, `sources.py` how launchers are started.
`tests/libraries/environments.py` installs what they need, and `tests/libraries/table.py` makes this page of
their results. `./bootstrap test --all` does both runs and installation; CI runs those of Debian's packages.
"""


@dataclass
class Results:
    """What is known of cells, by (source, library)."""
    marks: dict = field(default_factory=dict)
    versions: dict = field(default_factory=dict)  # of sources and libraries, by name: all that were there

    @classmethod
    def read(cls, paths):
        found = cls()
        for case in (case for path in paths for case in xml.parse(path).iter("testcase")):
            name = re.fullmatch(r"test_cell\[(.*)-by-(.*)\]", case.get("name", ""))
            if not name or name[1] not in LIBRARIES or name[2] not in SOURCES:
                continue
            library, source = name.groups()
            bad, skipped = case.find("failure") is not None or case.find("error") is not None, \
                case.find("skipped") is not None
            if not skipped:
                found.marks[source, library] = FAILED if bad else TESTED
            for one in case.iter("property"):
                key = source if one.get("name") == "source" else library
                known = found.versions.setdefault(key, [])
                known += [one.get("value")] if one.get("value") not in known else []
        return found

    def version(self, name):
        return "; ".join(self.versions.get(name, ""))

    def mark(self, source, library):
        why = left_out(source, library)
        return letter(why) if why else self.marks.get((source, library), NOT_RUN)


def letter(why):
    return chr(ord("a") + REASONS.index(why))


def row(cells):
    return "| " + " | ".join(cells) + " |"


def first_cell(library):
    what = LIBRARIES[library]
    return f"[{what.title}](../../tests/libraries/scripts/{what.script})"


def table(sources, results):
    yield row(["", "versions", *(f"{source.title} {results.version(name)}".strip()
                                 for name, source in sources.items())])
    yield row(["---"] * (2 + len(sources)))
    for library in LIBRARIES:
        marks = [results.mark(source, library) for source in sources]
        if set(marks) & {TESTED, NOT_RUN, FAILED}:
            yield row([first_cell(library), results.version(library), *marks])


def page(results, day):
    lines = [HEAD]
    for title, sources in TABLES.items():
        lines += [f"## {title}\n", *table(sources, results), ""]
    lines += [f"{day}, one machine with Linux and x86_64.\n", "## What is left out\n"]
    lines += [f"- {letter(why)}: {why}." for why in REASONS]
    return "\n".join(lines) + "\n" + TAIL


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    results = Results.read(sys.argv[1:])
    PAGE.write_text(page(results, datetime.date.today().isoformat()))
    for (source, library), mark in sorted(results.marks.items()):
        if mark != TESTED:
            print(f"{library} by {source}: {mark}")


if __name__ == "__main__":
    main()
