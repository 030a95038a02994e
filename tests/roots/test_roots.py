"""The systems of other releases themselves: apart from this one, and gone without a trace."""
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from roots import RELEASES, Root, cache


@pytest.mark.parametrize("release", RELEASES)
def test_it_is_that_release(make_root, release):
    root = make_root(release)
    said = root.run(["sh", "-c", ". /etc/os-release && echo $ID-$VERSION_ID; exit 3"])
    assert (said.returncode, said.stdout, said.stderr) == (3, f"{release}\n", "")


def test_what_a_command_changes_stays_until_the_end(make_root):
    root, other = make_root("debian-12"), make_root("debian-12")
    before = root.files()
    assert root.run(["touch", "/usr/bin/new"]).returncode == 0
    assert root.files() - before == {"/usr/bin/new"}
    assert other.files() == before
    root.close()
    assert not root.upper.exists()


def test_it_has_its_own_processes_network_and_mounts(make_root):
    root, mounts = make_root("debian-12"), Path("/proc/self/mountinfo").read_text()
    said = root.run(["sh", "-c", "cat /proc/net/dev; sleep 1000 & hostname; mount | wc -l"])
    assert said.returncode == 0 and "node\n" in said.stdout
    assert [line.split(":")[0].strip() for line in said.stdout.splitlines() if ":" in line] == ["lo"]
    assert Path("/proc/self/mountinfo").read_text() == mounts


def test_what_a_killed_process_left_is_removed_by_the_next(make_root, place):
    first = make_root("debian-12")  # is in use, and so stays
    killed = subprocess.Popen(["python3", "-c", f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from roots import Root
with Root("debian-12") as root:
    print(root.upper, flush=True)
    root.popen(["sh", "-c", "echo runs; exec sleep 1000"]).wait()
"""], stdout=subprocess.PIPE, text=True)
    upper = Path(killed.stdout.readline().strip())
    assert killed.stdout.readline() == "runs\n"
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    place.orphans_expected = True  # what it waited for ends by itself
    end = time.monotonic() + 30
    while upper.exists() and time.monotonic() < end:  # which takes its lock along
        make_root("debian-12")
    assert not upper.exists() and first.upper.exists()
    assert upper.is_relative_to(cache())
