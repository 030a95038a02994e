"""The spec file, as far as Debian's rpm goes: without the packages that Fedora's names stand for."""
import shutil
import tarfile
from pathlib import Path

import pytest

from needs import why_not
from test_release import SOURCE, of_meson

SPEC = SOURCE / "packaging" / "launchd.spec"
# needed by rpm up to 4.6; we have no place yet from which a release is loaded
SEEN = {"launchd.spec: W: no-buildroot-tag",
        "launchd.spec: W: invalid-url Source0: launchd-{version}.tar.gz"}
FILES = {"/usr/bin/launchd", "/usr/lib/systemd/system/launchd@.service",
         "/usr/lib/systemd/system/launchd.target", "/usr/lib/sysusers.d/launchd.conf",
         "/usr/lib/systemd/catalog/launchd.catalog", "/usr/share/doc/launchd/launchd.logrotate",
         "/usr/share/doc/launchd/job.conf.example",
         "/usr/lib/tmpfiles.d/launchd.conf", "/usr/share/man/man1/launchd.1", "/usr/share/man/man1/launchctl.1",
         "/usr/bin/launchctl",
         "/usr/share/man/man5/launchd.conf.5", "/usr/share/man/man7/launchd-control.7",
         "/usr/share/bash-completion/completions/launchd",
         "/usr/share/bash-completion/completions/launchctl",
         "/usr/share/zsh/site-functions/_launchd", "/usr/share/zsh/site-functions/_launchctl",
         "/usr/share/doc/launchd", *(f"/usr/share/doc/launchd/{name}" for name in (
             "NEWS.md", "launchd.conf.example", "launching.md", "migrating.md", "failures.md",
             "logs.md", "checking.md", "libraries.md", "comparison.md", "report.schema.json"))}


@pytest.mark.needs("rpmlint")
def test_rpmlint_finds_nothing(call):
    said = {line for line in call(["rpmlint", SPEC]).splitlines() if line.startswith("launchd.spec:")}
    assert said <= {line.format(version=of_meson("version")) for line in SEEN}


def accounts(etc):
    """The user launchd, but for its number and the path of its shell, and its groups."""
    users = {line.split(":")[0]: line.split(":") for line in (etc / "passwd").read_text().splitlines()}
    groups = [line.split(":") for line in (etc / "group").read_text().splitlines()]
    user = users["launchd"]
    assert 0 < int(user[2]) < 1000
    return (user[4:6], Path(user[6]).name, [name for name, _, gid, _ in groups if gid == user[3]],
            sorted(name for name, _, _, members in groups if "launchd" in members.split(",")))


def system(root):
    """A root that has one of the two groups."""
    (root / "etc").mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nvideo:x:39:\n")
    for name in ("shadow", "gshadow", "nsswitch.conf"):
        (root / "etc" / name).write_text("")
    shutil.copy("/etc/login.defs", root / "etc")
    return root


def scriptlet(call, *macros):
    return call(["rpmspec", "-q", "--qf", "%{PREIN}", *(word for macro in macros for word in ("-D", macro)), SPEC])


@pytest.mark.needs("rpmspec", "bwrap", "useradd", "systemd-sysusers")
def test_it_makes_the_user_that_sysusers_would_make(call, tmp_path):
    """... where rpm itself makes none; a second time, as in an update, nothing changes."""
    etc = system(tmp_path / "old") / "etc"
    as_root = ["bwrap", "--unshare-user", "--uid", "0", "--gid", "0", "--ro-bind", "/", "/", "--dev", "/dev"]
    if why := why_not(*as_root, "true"):
        pytest.skip(why)
    run = [*as_root, "--bind", etc, "/etc", "/bin/sh", "-c", scriptlet(call)]
    call(run)
    files = [(etc / name).read_text() for name in ("passwd", "group")]
    call(run)
    assert files == [(etc / name).read_text() for name in ("passwd", "group")]

    new = system(tmp_path / "new")
    call(["unshare", "--map-root-user", "systemd-sysusers", f"--root={new}", SOURCE / "systemd/launchd.sysusers.conf"])
    assert accounts(etc) == accounts(new / "etc") == (
        ["Distributed training jobs", "/var/lib/launchd"], "nologin", ["launchd"], ["render", "video"])


@pytest.mark.needs("rpmspec")
def test_where_rpm_makes_users_it_makes_none(call):
    assert scriptlet(call, "fedora 42") == "(none)"
    assert "useradd" in scriptlet(call, "fedora 41") and "useradd" in scriptlet(call, "rhel 9")


@pytest.mark.long
@pytest.mark.needs("rpmbuild")
def test_it_builds(make_checkout, call, tmp_path):
    checkout = make_checkout()
    (tmp_path / "SOURCES").mkdir()
    with tarfile.open(tmp_path / "SOURCES" / f"{checkout.name}.tar.gz", "w:gz") as tar:
        tar.add(checkout, checkout.name)
    # what it needs has other names here, and systemd's macros are missing; a builder of Fedora's
    # has no network
    macros = [f"_topdir {tmp_path}", "debug_package %{nil}", "_unitdir /usr/lib/systemd/system",
              "_journalcatalogdir /usr/lib/systemd/catalog", "_sysusersdir /usr/lib/sysusers.d", "_tmpfilesdir /usr/lib/tmpfiles.d"]
    call(["unshare", "--map-root-user", "--net", "rpmbuild", "-bb", "--nodeps",
          *(word for macro in macros for word in ("-D", macro)), SPEC])
    package, = tmp_path.rglob("*.rpm")
    assert {name for name in call(["rpm", "-qpl", package]).splitlines()
            if not name.startswith("/usr/lib/.build-id")} == FILES
    assert call(["rpm", "-qp", "--qf", "%{NAME} %{VERSION} %{LICENSE}", package]) == \
        f"launchd {of_meson('version')} {of_meson('license')}"
    required = call(["rpm", "-qp", "--requires", package])
    assert "libc.so.6" in required and "cjson" not in required and "pmix" not in required
    # by the names that the program opens
    assert set(call(["rpm", "-qp", "--recommends", package]).split()) == {
        f"{name}()(64bit)" for name in ("libcjson.so.1", "libhwloc.so.15", "libpmix.so.2", "libsodium.so.23")}
