"""Packages where they are for: each is installed in a fresh system with that release's own Open MPI,
runs a job of two launchers and one that fails, and goes without a trace."""
import re
import shutil
import sys
from pathlib import Path

import pytest

from machine import SOURCE, copy_checkout

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "packages"))
import test_tarball as tarball  # noqa: E402

OF_DEB = ("debian-12", "debian-13", "ubuntu-22.04", "ubuntu-24.04")
OF_TARBALL = ("debian-11", "ubuntu-20.04")
USERS = ["openmpi-bin", "python3"]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
TRAIN = """
import os, sys, time
rank = int(os.environ["RANK"])
print(f"rank {rank} of {os.environ['WORLD_SIZE']}", flush=True)
if sys.argv[1:] == ["fail"]:
    if rank != 3:
        time.sleep(600)
    raise ValueError("loss is NaN")
"""
pytestmark = pytest.mark.long


def build_dependencies():
    """Of debian/control, and what each package is built with."""
    field = re.search(r"^Build-Depends: (.*\n(?: .*\n)*)", (SOURCE / "debian/control").read_text(), re.M)[1]
    names = [re.match(r"\S+", word.strip())[0] for word in field.split(",")]
    return ["build-essential", *(name.replace("debhelper-compat", "debhelper") for name in names)]


@pytest.fixture(scope="module")
def build_deb(tmp_path_factory):
    """build_deb(root) -> the directory that has it."""
    def build(root):
        place = tmp_path_factory.mktemp("deb")
        copy_checkout(place / "launchd")
        done = root.run(["dpkg-buildpackage", "-us", "-uc", "-b"], shared={place: "/mnt"},
                        cwd="/mnt/launchd")
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        shutil.rmtree(place / "launchd")
        return place

    return build


def train(root, *argv):
    return root.run([*MPIRUN, "launchd", "--nproc_per_node=2", "--use_env", "/tmp/train.py", *argv],
                    limit_s=120)


def runs_jobs(root):
    (root.upper / "tmp").mkdir(mode=0o1777, exist_ok=True)
    (root.upper / "tmp/train.py").write_text(TRAIN)
    good = train(root)
    assert good.returncode == 0, good
    assert sorted(good.stdout.splitlines()) == [f"rank {rank} of 4" for rank in range(4)]
    bad = train(root, "fail")
    assert bad.returncode == 1, bad
    assert "launchd: error: root cause: rank 3 (local rank 1, pid " in bad.stderr
    assert "ValueError: loss is NaN" in bad.stderr


@pytest.mark.parametrize("release", OF_DEB)
def test_deb(make_root, build_deb, release):
    place = build_deb(make_root(release, build_dependencies()))
    package, = place.glob("launchd_*.deb")
    root = make_root(release, USERS)
    root.apt("update")
    before = root.files()
    root.apt("install", f"/mnt/{package.name}", shared={place: "/mnt"})
    assert "/usr/bin/launchd" in root.files() - before
    runs_jobs(root)
    root.apt("purge", "--autoremove", "launchd")
    assert root.files() ^ before == set()


@pytest.mark.parametrize("release", OF_TARBALL)
def test_tarball(make_root, release):
    """In /usr/local, where the container image has it as well."""
    packed = Path(tarball.make()[0])
    root = make_root(release, USERS)
    before = root.files()

    def run(command):
        done = root.run(["sh", "-c", command], cwd="/usr/local", shared={packed.parent: "/mnt"})
        assert done.returncode == 0, done
        return done.stdout

    run(f"tar -xf /mnt/{packed.name}")
    runs_jobs(root)
    run(f"tar -tf /mnt/{packed.name} | xargs rm")
    left = root.files() - before
    assert not run(f"find /dev/null {' '.join(left)} -type f")  # nor does tar remove directories
