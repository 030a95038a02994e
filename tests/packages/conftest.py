"""Fixtures of the tests of packages, which are built from copies of this checkout."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "roots"))
from machine import copy_checkout  # noqa: E402
from test_release import of_meson  # noqa: E402

VERSION = of_meson("version")
LIMIT_S = 600


@pytest.fixture(scope="session")
def make_checkout(tmp_path_factory):
    """make_checkout() -> the path of a copy of this checkout that is the test's own."""
    def make():
        to = tmp_path_factory.mktemp("copy") / f"launchd-{VERSION}"
        copy_checkout(to)
        return to

    yield make
    shutil.rmtree(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def call():
    """call(argv, cwd=..., env={...}) -> what a command that must succeed says."""
    def run(argv, env=None, **how):
        done = subprocess.run(list(map(str, argv)), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=LIMIT_S, env={**os.environ, **(env or {})}, **how)
        assert done.returncode == 0, f"{argv}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    return run


@pytest.fixture(autouse=True)
def needed_tools(request):
    """Of the mark needs(TOOL...)."""
    for mark in request.node.iter_markers("needs"):
        for tool in mark.args:
            if not shutil.which(tool):
                pytest.skip(f"no {tool} here")
