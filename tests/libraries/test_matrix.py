"""Every library from every source: two simulated hosts, one launchd on each, two workers of each.

A worker's script says, once it has trained for two steps:

    rank 1 of 4, local rank 1 of 2: sum 6, losses 9.0000 7.5000, weight 0.6000

Who it is comes from the library, the sum of all ranks from a collective of it. The weight is the
same on all ranks, as what all of them had as input has gone into it.
"""
import functools
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hosts")]
import cluster  # noqa: E402
import environments  # noqa: E402
from harness import until  # noqa: E402
from job import JobHosts  # noqa: E402
from matrix import LIBRARIES, SOURCES, cells, environment_of, in_ci, left_out  # noqa: E402
from table import NOT_RUN, PAGE, TABLES, TESTED, first_cell, letter  # noqa: E402

LIMIT_S = 600  # eight processes load PyTorch beside those of other tests
LINE = re.compile(r"^rank (\d+) of (\d+), local rank (\d+) of (\d+): sum (\d+), "
                  r"losses (-?[\d.]+) (-?[\d.]+), weight (-?[\d.]+)$", re.M)
VERSIONS = """
import sys
from importlib.metadata import version
for name in sys.argv[1:]:
    print(name, version(name))
"""
# caches go with the hosts
SETTINGS = {"HOME": cluster.HOME, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2",
            "TORCH_EXTENSIONS_DIR": str(environments.home() / "torch/extensions")}
DAEMONS = re.compile(r"(\S*/|: )?(munged|slurm\w*)")
IMPOSSIBLE = cluster.why_impossible()


@functools.cache
def versions(python, packages):
    """As a line, such as "lightning 2.6.6, torch 2.15.0"."""
    said = subprocess.run([python, "-c", VERSIONS, *packages], check=True, capture_output=True,
                          text=True, cwd="/").stdout
    return ", ".join(line.partition("+")[0] for line in said.splitlines())


@functools.cache
def version_of(source):
    """Of its program; "" where that is launchd."""
    argv = SOURCES[source].version()
    said = argv and subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return re.search(r"\d+(\.\d+)+", said)[0] if said else ""


@pytest.fixture
def hosts():
    with JobHosts(2, shared=[environments.home()]) as made:
        yield made


def python_of(source, library):
    name = environment_of(source, library)
    return environments.python(name) if name else sys.executable


def marks(source, library):
    return [] if in_ci(source, library) else [pytest.mark.heavy]


def run(hosts, source, library):
    """The launchers' ends."""
    what = LIBRARIES[library]
    shutil.copy(HERE / "scripts" / what.script, hosts.home)
    command = ["--python", python_of(source, library), *what.options, what.script, *what.arguments]
    processes = SOURCES[source].start(hosts, command, SETTINGS)
    with ThreadPoolExecutor(len(processes)) as pool:
        return list(pool.map(lambda one: hosts.finish(one, LIMIT_S), processes))


@pytest.mark.parametrize("source, library", [
    pytest.param(source, library, id=f"{library}-by-{source}", marks=marks(source, library))
    for source, library in cells()])
def test_cell(request, record_property, source, library):
    needed = environment_of(source, library)
    why = IMPOSSIBLE or SOURCES[source].why_not() or needed and environments.why_not(needed)
    if why:
        pytest.skip(why)
    hosts = request.getfixturevalue("hosts")
    what = LIBRARIES[library]
    ends = run(hosts, source, library)
    said = "\n".join(f"{end.stdout}\n{end.stderr}" for end in ends)
    code, words = what.ends
    assert [end.returncode for end in ends] == [code] * len(ends), said
    assert words is None or words in said, said
    found = sorted(LINE.findall("\n".join(end.stdout for end in ends)))
    assert [line[:5] for line in found] == [
        (str(rank), "4", str(rank % 2), "2", "6") for rank in range(4)], said
    assert all(float(second) < float(first) for *_, first, second, _ in found), found
    assert len({line[-1] for line in found}) == 1, found

    def left():
        return [line for _, line in hosts.processes() if not DAEMONS.match(line)]

    until(lambda: not left(), lambda: f"the end of {left()}")
    for node in range(2):
        assert not hosts.run(node, ["find", "/tmp", "-maxdepth", "1", "-name", "launchd_*"]).stdout
    record_property("source", version_of(source))
    record_property("library", versions(python_of(source, library), what.packages))


@pytest.mark.parametrize("title", TABLES)
def test_the_page_has_these_cells(title):
    """The page in the documentation is of this matrix, and of a run in which nothing failed."""
    section = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")]
            for line in section.splitlines() if line.startswith("| [")]
    sources = TABLES[title]
    wanted = [[first_cell(library), *(letter(why) if why else TESTED for why in reasons)]
              for library in LIBRARIES
              if not all(reasons := [left_out(source, library) for source in sources])]
    assert [[name, *(TESTED if mark == NOT_RUN else mark for mark in marks)]
            for name, _, *marks in rows] == wanted
