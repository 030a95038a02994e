"""PyTorch's own tests of torchrun, with launchd in torchrun's place: see shim/sitecustomize.py.

expected.txt has what becomes of each. A test that it says fails has to fail, and by what it says.
"""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from harness import BUILD

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from sources import SETS, missing  # noqa: E402

LIMIT_S = 1500
# as torch 2.15 may under torchrun, too, where a script ends as these do: without
# destroy_process_group()
ABORTS, AGAIN = "terminate called without an active exception", 6
ANOTHER_ETCD = re.compile(r"_etcd(_v2)?$")
WORDS = ("passes", "alone", "skips", "fails")


@dataclass
class Expected:
    """One file of tests: passes, with launchd; alone: passes, and starts no launcher; skips; fails."""
    version: str
    file: str
    group: str
    tests: dict = field(default_factory=dict)  # name -> (word, text in what it says, reason)


def read_expected():
    found = []
    for line in (HERE / "expected.txt").read_text().splitlines():
        if line.startswith("== "):
            found.append(Expected(*line.split()[1:]))
        elif line and not line.startswith("#"):
            test, *why = line.split(" | ")
            word, name = test.split()
            assert word in WORDS and len(why) == 2 * (word == "fails"), line
            assert name not in found[-1].tests, line
            found[-1].tests[name] = (word, *why)
    return found


EXPECTED = read_expected()


@pytest.fixture
def torchrun(place):
    place.launcher_killed = place.orphans_expected = True  # some tests do
    link = place.tmp / "torchrun"
    link.symlink_to(BUILD / "launchd")
    return link


def run(expected, torchrun, place):
    """name -> (word, what it said)."""
    found = run_tests(expected, list(expected.tests), torchrun, place)
    for _ in range(AGAIN):
        aborted = [name for name, (word, said) in found.items() if word == "fails" and ABORTS in said]
        if not aborted:
            break
        found |= run_tests(expected, aborted, torchrun, place)
    return found


def run_tests(expected, names, torchrun, place):
    made, results, starts = SETS[expected.version], place.out / "results.xml", place.out / "starts"
    starts.write_text("")
    env = {"PYTHONPATH": str(HERE / "shim"),
           "LAUNCHD_TORCHRUN": str(torchrun), "LAUNCHD_STARTS": str(starts), "TMPDIR": str(place.tmp)}
    tests = [f"{expected.file}::{expected.group}::{name}" for name in names]
    said = subprocess.run(
        [made.interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "junit_logging=all",
         f"--junitxml={results}", *tests], cwd=made.tests, env=os.environ | env, timeout=LIMIT_S, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert results.exists(), said.stdout
    started = set(re.findall(r"::(\w+)$", starts.read_text(), re.M))
    return {case.get("name"): outcome(case, started)
            for case in xml.parse(results).getroot().iter("testcase")}


def outcome(case, started):
    for bad in [*case.iter("failure"), *case.iter("error")]:
        output = "".join(filter(None, (case.findtext(f"system-{what}") for what in ("out", "err"))))
        return "fails", "\n".join((bad.get("message") or "", bad.text or "", output))
    if case.find("skipped") is not None:
        return "skips", case.find("skipped").get("message")
    return ("passes" if case.get("name") in started else "alone"), ""


@pytest.mark.long
@pytest.mark.parametrize("expected", EXPECTED, ids=lambda one: f"{one.version}-{Path(one.file).stem}")
def test_pytorchs_own(expected, torchrun, place):
    why = missing(SETS[expected.version])
    if why:
        pytest.skip(why)
    source = (SETS[expected.version].tests / expected.file).read_text()
    listed = {ANOTHER_ETCD.sub("", name.replace("_c10d", "")) for name in expected.tests}
    unlisted = [name for name in re.findall(r"^    def (test_\w+)", source, re.M)
                if name not in expected.tests and ANOTHER_ETCD.sub("", name) not in listed]
    assert not unlisted, "expected.txt doesn't have these"
    found = run(expected, torchrun, place)
    wrong = [f"{name} {found.get(name, ('is not there', ''))[0]}, expected.txt: {' | '.join(wanted)}\n"
             f"{found.get(name, ('', ''))[1][-3000:]}"
             for name, wanted in expected.tests.items() if not agrees(found.get(name), wanted)]
    assert not wrong, "\n".join(wrong)


def agrees(found, wanted):
    return found and found[0] == wanted[0] and (found[0] != "fails" or wanted[1] in found[1])


def test_the_documentation_has_these_numbers():
    text = (HERE.parent.parent / "config" / "docs" / "pytorch_tests.md").read_text()
    for one in EXPECTED:
        words = Counter(word for word, *_ in one.tests.values())
        row = (f"| {one.version} | `{one.file}` | {words['passes']} | {words['alone']} | "
               f"{words['fails']} | {words['skips']} |")
        assert row in text, row
