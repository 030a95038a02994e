#!/usr/bin/python3
"""Where PyTorch's own tests are, and the Pythons that run them: outside of this tree, as they are
large and under a licence of their own.

    tests/pytorch/sources.py [SET...]

brings what is missing into $LAUNCHD_PYTORCH_TESTS, or ~/.cache/launchd/pytorch-tests: 45 MB of
sources from Debian and a few files from GitHub, and virtual environments, that of the newest torch
with 5 GB. What can't be had is said; its tests are skipped then.
"""
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

PLACE = Path(os.environ.get("LAUNCHD_PYTORCH_TESTS")
             or Path.home() / ".cache" / "launchd" / "pytorch-tests")
DEBIAN = "http://deb.debian.org/debian/pool/main/p/pytorch/pytorch_{}+dfsg.orig.tar.xz"
GITHUB = "https://raw.githubusercontent.com/pytorch/pytorch/{}/{}"
# where a wheel of PyTorch is a tenth as large, as it has no CUDA
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
WANTED = ("test/distributed/launcher/", "test/distributed/elastic/agent/")
LIMIT_S = 60


@dataclass
class Set:
    """Tests of one version of PyTorch. python: the virtual environment that runs them."""
    version: str
    python: str
    sha256: str = ""    # of Debian's archive
    commit: str = ""    # of PyTorch's repository
    files: tuple = ()

    @property
    def sources(self):
        return PLACE / self.version

    @property
    def tests(self):
        return self.sources / "test" / "distributed"

    @property
    def interpreter(self):
        return PLACE / self.python / "bin" / "python"


SETS = {made.version: made for made in (
    Set("1.13.1", "debian",
        "d0355588b8528566d477e6ebf1b4d9d036a6fd75711339f66b27472ce5879dc7"),
    Set("2.6.0", "newest",
        "099a9601bc40d67656e75735c44abedb0fbe92d08817852ab7472eebb7e6ddff"),
    Set("main", "newest", commit="0943060f697571f4138524985287f9d51d109c60",
        files=tuple("test/distributed/launcher/" + name for name in (
            "test_run.py", "bin/test_script.py", "bin/test_script.sh",
            "bin/test_script_init_method.py", "bin/test_script_is_torchelastic_launched.py"))),
)}
# with what the environment has from PyPI; Debian's torch is a package of the system
PYTHONS = {"debian": (["--system-site-packages"], ["expecttest<0.3"]),
           "newest": ([], ["torch", "numpy", "pytest", "expecttest"])}


def fetch_sources(made):
    with tempfile.TemporaryDirectory(dir=PLACE) as place:
        new = Path(place) / made.version
        if made.commit:
            for name in made.files:
                keep(new / name, get(GITHUB.format(made.commit, name)), 0o755)
        else:
            archive = get(DEBIAN.format(made.version))
            if hashlib.sha256(archive).hexdigest() != made.sha256:
                raise OSError(f"Debian's archive of PyTorch {made.version} is not the known one")
            unpack(archive, new)
        new.rename(made.sources)


def keep(path, content, mode):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def get(url):
    with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
        return answer.read()


def unpack(archive, place):
    """The wanted files, without the archive's own folder."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for member in members:
            path = member.name.partition("/")[2]
            if member.isfile() and path.startswith(WANTED):
                keep(place / path, members.extractfile(member).read(), member.mode & 0o777)


def make_python(name):
    """By the system's Python, as Debian's torch is for that."""
    options, packages = PYTHONS[name]
    new = PLACE / name
    try:
        call("/usr/bin/python3", "-m", "venv", *options, new)
        pip = [new / "bin" / "python", "-m", "pip", "install", "-q"]
        if "torch" in packages and reachable(CPU_WHEELS):
            call(*pip, "torch", "--index-url", CPU_WHEELS)
        call(*pip, *packages)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def call(*argv):
    subprocess.run(list(map(str, argv)), check=True)


def reachable(url):
    try:
        get(url)
    except OSError:
        return False
    return True


def missing(made):
    """Why a set can't be run here; None if it can."""
    if not made.tests.is_dir():
        return f"no tests of PyTorch {made.version}: see tests/pytorch/sources.py"
    torch = "import torch.testing._internal.common_utils"
    if subprocess.run([made.interpreter, "-c", torch], capture_output=True).returncode \
            if made.interpreter.exists() else True:
        return f"no PyTorch in {made.python}: see tests/pytorch/sources.py"
    return None


def main(names):
    PLACE.mkdir(parents=True, exist_ok=True)
    for made in (SETS[name] for name in names or SETS):
        try:
            if not made.tests.is_dir():
                fetch_sources(made)
            if not made.interpreter.exists():
                make_python(made.python)
        except (OSError, tarfile.TarError, subprocess.CalledProcessError) as why:
            print(f"PyTorch {made.version}: {why}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
