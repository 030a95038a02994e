"""The tarballs: packaging/tarball.py."""
import functools
import subprocess
import sys
import tarfile

import pytest

from test_release import SOURCE, of_meson
from test_wheel import ARCHITECTURES, LINKED
from wheels import CANT, INTO, program

# they are built in one place
pytestmark = [pytest.mark.needs("ninja", "dpkg-source"), pytest.mark.xdist_group("wheel")]
STEM = f"launchd-{of_meson('version')}-linux"
DOCUMENTS = {"NEWS.md", "launchd.conf.example", "launching.md", "migrating.md", "failures.md",
             "logs.md", "checking.md", "libraries.md", "comparison.md", "report.schema.json"}


NAMED = {"x86_64": "amd64", "aarch64": "arm64"}


def make(arch):
    """Its path."""
    done = subprocess.run([sys.executable, SOURCE / "packaging/tarball.py", "--into", INTO, arch],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode == CANT:
        pytest.skip("no tarball can be built here: " + done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


made = functools.cache(make)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_its_files(arch):
    path = made(arch)
    assert path == str(INTO / "dist" / f"{STEM}-{NAMED[arch]}.tar.gz")
    with tarfile.open(path) as tar:
        entries = {entry.name: entry for entry in tar}
        assert tar.extractfile("bin/launchd").read() == program(arch).read_bytes()
    assert set(entries) == {
        "bin/launchd", "bin/launchctl", "share/man/man1/launchd.1", "share/man/man1/launchctl.1",
        "share/man/man5/launchd.conf.5", "share/man/man7/launchd-control.7",
        "share/bash-completion/completions/launchd",
        "share/zsh/site-functions/_launchd",
        "share/bash-completion/completions/launchctl", "share/zsh/site-functions/_launchctl",
        "lib/systemd/system/launchd@.service", "lib/systemd/system/launchd.target",
        "lib/sysusers.d/launchd.conf", "lib/systemd/catalog/launchd.catalog",
        "share/doc/launchd/launchd.logrotate", "share/doc/launchd/job.conf.example", "lib/tmpfiles.d/launchd.conf",
        *(f"share/doc/launchd/{name}" for name in DOCUMENTS),
        *(f"share/doc/launchd/licences/{name}" for name in LINKED),
        *(["share/doc/launchd/licences/LICENSE"] if (SOURCE / "LICENSE").exists() else [])}
    assert {(entry.mode, entry.uid, entry.gid) for entry in entries.values()} == \
        {(0o755, 0, 0), (0o644, 0, 0)}


def test_its_program_runs(call, tmp_path):
    call(["tar", "-C", tmp_path, "-xf", made("x86_64")])
    assert call([tmp_path / "bin/launchd", "--version"]) == f"launchd {of_meson('version')}\n"


def test_twice_the_same_bytes():
    with open(made("x86_64"), "rb") as tar:
        before = tar.read()
    with open(make("x86_64"), "rb") as tar:
        assert tar.read() == before
