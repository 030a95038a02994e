"""Version and licence stand in meson.build; whoever must repeat them says the same."""
import re
from pathlib import Path

import pytest

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


def test_the_licence_is_everywhere():
    licence = of_meson("license")
    assert re.search(r"^License: +(\S+)$", (SOURCE / "packaging/launchd.spec").read_text(),
                     re.M)[1] == licence
    assert re.findall(r"^License: (\S+)$", (SOURCE / "debian/copyright").read_text(), re.M) == [licence]


def test_readme_says_whether_a_licence_was_chosen():
    says = "No licence has been chosen yet" in (SOURCE / "README.md").read_text()
    assert says == (of_meson("license") == "unknown")
