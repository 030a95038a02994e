"""Version and licence stand in meson.build; whoever must repeat them says the same."""
import re
import subprocess
from pathlib import Path

import pytest

from harness import BUILD

SOURCE = Path(__file__).resolve().parents[2]


def of_meson(key):
    return re.search(rf"^  {key}: '(.*)',$", (SOURCE / "meson.build").read_text(), re.M)[1]


@pytest.mark.parametrize("name, line", [
    ("NEWS.md", r"^## (\S+)$"),
    ("debian/changelog", r"^launchd \((\S+)\) "),
    ("packaging/launchd.spec", r"^Version: +(\S+)$"),
    ("packaging/launchd.spec", r"%changelog\n\* .* - (\S+)-1$")])
def test_the_newest_version_is_everywhere(name, line):
    assert re.search(line, (SOURCE / name).read_text(), re.M)[1] == of_meson("version")


def test_the_program_has_that_version(launch):
    assert launch(["--version"]).out == f"launchd {of_meson('version')}\n"


# What glibc 2.17 has, too: moved since from libpthread and libdl, inline before (stat), or put by newer
# headers in the place of another one (strtol).
IN_OLD_GLIBC = re.compile(r"(pthread|sem)_\w+|dl(open|close|sym|error|addr)|(l|f|fat)?stat(at)?64|fcntl64|glob64|"
                          r"__libc_(start_main|single_threaded)|__isoc23_(strto\w+|v?[fs]?scanf)")


@pytest.mark.needs("nm")
def test_it_calls_nothing_that_the_wheels_glibc_lacks():
    """CI builds wheels only if packaging changed; this check runs every time."""
    listed = subprocess.run(["nm", "-D", "--undefined-only", BUILD / "launchd"], check=True,
                            capture_output=True, text=True).stdout
    asked = re.findall(r"(\w+)@GLIBC_2\.(\d+)", listed)
    assert "fork" in dict(asked)
    newer = {name for name, minor in asked if int(minor) > 17 and not IN_OLD_GLIBC.fullmatch(name)}
    assert not newer, f"glibc 2.17 has no {newer}"


def test_the_licence_is_everywhere():
    licence = of_meson("license")
    assert re.search(r"^License: +(\S+)$", (SOURCE / "packaging/launchd.spec").read_text(),
                     re.M)[1] == licence
    assert re.findall(r"^License: (\S+)$", (SOURCE / "debian/copyright").read_text(), re.M) == [licence]


def test_readme_says_whether_a_licence_was_chosen():
    says = "No licence has been chosen yet" in (SOURCE / "README.md").read_text()
    assert says == (of_meson("license") == "unknown")
