"""Fixtures of the tests on machines with systemd as process 1."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from harness import BUILD, LIMIT  # noqa: E402
from machines import Machines, trial, why_no_machines  # noqa: E402
from cluster import has_groups  # noqa: E402  machines.py has said where it is

IMPOSSIBLE = why_no_machines()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items):
    """Machines without control groups of their own share one hierarchy: there a unit of one test would be another
    test's, too."""
    if not has_groups():
        for item in items:
            if item.path.parent == HERE:
                item.add_marker(pytest.mark.xdist_group("machines"))


@pytest.fixture
def installed(place):
    """What `meson install` puts on a machine, in a directory, to which a test may add files."""
    into = place.tmp / "installed"
    done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", into],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=LIMIT)
    assert done.returncode == 0, done
    (into / "etc/launchd").mkdir(parents=True, exist_ok=True)
    return into


@pytest.fixture
def make_machines(installed):
    """make_machines(count, ...) -> Machines, gone after the test; whole=True: only where all of their units start"""
    if IMPOSSIBLE:
        pytest.skip(IMPOSSIBLE)
    made = []

    def make(count, whole=False, **options):
        off, degraded = trial()
        if off or whole and degraded:
            pytest.skip(off or degraded)
        made.append(Machines(count, installed, **options))
        made[-1].__enter__()
        os.chmod(made[-1].home, 0o1777)
        return made[-1]

    yield make
    for machines in made:
        machines.close()
    shutil.rmtree(installed)
