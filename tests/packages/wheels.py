"""wheels.py - the wheels, built once: for the tests here, those of tests/roots, and tests/run."""
import platform
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
INTO = SOURCE / "build-test" / "wheel"
TOOL = SOURCE / "packaging" / "wheel" / "wheel.py"
CANT = 77


class NoWheels(Exception):
    """They can't be built here, as what they are built of can't be fetched: why."""


def wheel(arch):
    """Its path."""
    done = subprocess.run([sys.executable, TOOL, "--into", INTO, arch], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    if done.returncode == CANT:
        raise NoWheels("no wheel can be built here: " + done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def program(arch):
    """The one that the wheel has."""
    return INTO / arch / "build" / "launchd"


def in_place_of(build):
    """A directory as of a build, with its tests and this machine's program of the wheel."""
    wheel(platform.machine())
    path = INTO / "suite"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name in ("config", "tests"):
        (path / name).symlink_to(build / name)
    shutil.copy(program(platform.machine()), path)
    return path
