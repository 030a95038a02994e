"""The wheel in a fresh system of each release: installed by its own pip, run, and gone again."""
import sys
from pathlib import Path

import pytest

from roots import RELEASES

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "packages"))
from test_wheel import NAME, VERSION  # noqa: E402
import wheels  # noqa: E402

OWN_PIP = ("debian-11", "ubuntu-20.04", "ubuntu-22.04")  # later ones want a venv
MPIRUN = "mpirun --allow-run-as-root --oversubscribe -n 2"
TRAIN = "import os, sys; print(*map(os.environ.get, ('RANK', 'WORLD_SIZE')), flush=True)\n"


@pytest.fixture(scope="module")
def wheel():
    try:
        return wheels.wheel("x86_64")
    except wheels.NoWheels as why:
        pytest.skip(str(why))


@pytest.mark.parametrize("release", RELEASES)
def test_it_runs_there(make_root, wheel, tmp_path, release):
    own = release in OWN_PIP
    root = make_root(release, ["openmpi-bin", "python3-pip" if own else "python3-venv"])
    (tmp_path / "train.py").write_text(TRAIN)

    def run(command, rc=0):
        done = root.run(["bash", "-c", command], cwd="/work", env={
            "PATH": "/venv/bin:/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
            shared={wheel.parent: "/wheels", tmp_path: "/work"})
        assert done.returncode == rc, done
        return done

    if not own:
        run("/usr/bin/python3 -m venv /venv")
    before = root.files()
    run(f"pip install --no-index --no-compile /wheels/{wheel.name}")
    alone = run("launchd --standalone --nproc_per_node 2 train.py")
    assert sorted(alone.stdout.splitlines()) == ["0 2", "1 2"]
    assert run(f"python3 -m {NAME} --version").stdout == f"launchd {VERSION}\n"
    whole = run(f"{MPIRUN} launchd --verbose --nproc_per_node 2 --use_env train.py")
    assert sorted(whole.stdout.splitlines()) == [f"{rank} 4" for rank in range(4)]
    assert "the launchers of 2 nodes meet by PMIx" in whole.stderr
    failed = run(f"{MPIRUN} launchd --nproc_per_node 2 --no-python --use_env "
                 "sh -c '[ $RANK != 3 ] || exit 7; exec sleep 100'", rc=7)
    assert "root cause: rank 3 " in failed.stderr
    run(f"pip uninstall -y {NAME}")
    left = {path for path in root.files() - before if not path.startswith(("/work", "/wheels"))}
    assert not run(f"find /dev/null {' '.join(left)} -type f").stdout  # pip leaves directories
