"""The package for Debian and Ubuntu, built here. tests/roots builds it on each release."""
import hashlib
import os
import re

import pytest

pytestmark = [pytest.mark.needs("dpkg-buildpackage", "dh", "lintian"),
              pytest.mark.xdist_group("deb")]
FILES = {"/usr/bin/launchd", "/usr/lib/systemd/system/launchd@.service",
         "/usr/lib/systemd/system/launchd.target", "/usr/lib/sysusers.d/launchd.conf",
         "/usr/lib/systemd/catalog/launchd.catalog", "/usr/share/doc/launchd/launchd.logrotate",
         "/usr/share/doc/launchd/job.conf.example",
         "/usr/lib/tmpfiles.d/launchd.conf", "/usr/share/man/man1/launchd.1.gz", "/usr/share/man/man1/launchctl.1.gz",
         "/usr/bin/launchctl",
         "/usr/share/man/man5/launchd.conf.5.gz", "/usr/share/man/man7/launchd-control.7.gz",
         "/usr/share/bash-completion/completions/launchd",
         "/usr/share/bash-completion/completions/launchctl",
         "/usr/share/lintian/overrides/launchd",
         "/usr/share/zsh/vendor-completions/_launchd",
         "/usr/share/zsh/vendor-completions/_launchctl",
         *(f"/usr/share/doc/launchd/{name}" for name in (
             "NEWS.md", "changelog.gz", "copyright", "copyright.inih", "copyright.libuv.gz",
             "launchd.conf.example.gz", "launching.md", "migrating.md", "failures.md",
             "logs.md", "checking.md", "libraries.md", "comparison.md",
             "report.schema.json"))}


def build(checkout, call):
    """The .changes file."""
    call(["dpkg-buildpackage", "-us", "-uc", "-b", "-Pnocheck"], cwd=checkout,
         env={"DEB_BUILD_OPTIONS": f"nocheck parallel={len(os.sched_getaffinity(0))}"})
    return next(checkout.parent.glob("*.changes"))


@pytest.fixture(scope="module")
def changes(make_checkout, call):
    return build(make_checkout(), call)


def deb_of(changes):
    return next(changes.parent.glob("launchd_*.deb"))


def test_lintian_finds_nothing(changes, call):
    """Not even what it would call pedantic."""
    assert call(["lintian", "--pedantic", "--display-info", "--allow-root", changes]) == ""


def test_its_files(changes, call):
    listed = call(["dpkg-deb", "-c", deb_of(changes)])
    files = {line.split()[5][1:] for line in listed.splitlines() if not line.startswith("d")}
    examples = {name for name in files if name.startswith("/usr/share/doc/launchd/examples/")}
    assert files - examples == FILES
    assert "/usr/share/doc/launchd/examples/train_ddp.py" in examples


def test_it_depends_on_little(changes, call):
    fields = dict(re.findall(r"^ ?(\S+): (.*)$", call(["dpkg-deb", "-f", deb_of(changes)]), re.M))
    depends = {word.split()[0] for word in fields["Depends"].split(",")}
    # the others where there is no archive of them to link
    assert "libc6" in depends and depends <= {"libc6", "libuv1", "libuv1t64", "libinih1"}
    assert fields["Recommends"] == "libcjson1, libhwloc15, libpmix2t64 | libpmix2, libsodium23"


def test_its_program_runs(changes, call, tmp_path):
    call(["dpkg-deb", "-x", deb_of(changes), tmp_path])
    assert call([tmp_path / "usr/bin/launchd", "--standalone", "--nproc_per_node=2", "--use_env",
                 "--no-python", "/bin/echo", "here"]).count("here\n") == 2


@pytest.mark.long
def test_another_build_elsewhere_has_the_same_bytes(changes, make_checkout, call):
    other = make_checkout()
    longer = other.parent / ("longer" * 5)
    longer.mkdir()
    again = build(other.rename(longer / other.name), call)
    sums = [{path.name: hashlib.sha256(path.read_bytes()).hexdigest()
             for path in one.parent.glob("*.deb")} for one in (changes, again)]
    assert sums[0] == sums[1] and len(sums[0]) == 2  # one with the debug symbols
