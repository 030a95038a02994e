"""What the tests themselves rest on, where a machine is not what they were written on."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import BUILD
from needs import PID_1, needs_mounts, needs_pids
from own_mounts import OWN_MOUNTS

HERE = Path(__file__).resolve().parent
HANDED_OVER = f"""import os, signal, sys, time
sys.path.insert(0, {str(HERE)!r})
from process_1 import hand_over
from waiting import until
hand_over()
"""
# An orphan of process 1, which ends; our own child is reaped here.
ORPHAN = """told, tell = os.pipe()
if os.fork() == 0:
    orphan = os.fork()
    if orphan:
        os.write(tell, str(orphan).encode())
    os._exit(0)
os.wait()
orphan = os.read(told, 20).decode()
until(lambda: not os.path.exists("/proc/" + orphan), "it to be reaped", 30)
sys.exit(7)
"""


def run(code, wrap=()):
    return subprocess.run([*wrap, sys.executable, '-c', HANDED_OVER + code], capture_output=True,
                          text=True, timeout=60, check=False)


@needs_pids
def test_process_1_reaps_what_is_left_to_it():
    result = run(ORPHAN, PID_1)
    assert result.returncode == 7, result


@needs_pids
@pytest.mark.parametrize('code, expected', [
    ('os.kill(os.getpid(), signal.SIGKILL)', 137), ('sys.exit(3)', 3), ('', 0),
    # it is asked to end, and asks its child
    ('os.kill(1, signal.SIGTERM); time.sleep(60)', 143),
])
def test_process_1_ends_as_its_child_does(code, expected):
    assert run(code, PID_1).returncode == expected


def test_another_process_does_its_work_itself():
    code = HANDED_OVER + 'print(os.getpid())'
    with subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE, text=True) as one:
        assert int(one.communicate(timeout=60)[0]) == one.pid


# A chroot with all of ours in it, whose root is no mount point; the mounts end with it.
CHROOT = """place=$PWD
mkdir plain
for entry in /*; do
    if [ -L "$entry" ]; then cp -P "$entry" plain/
    elif [ -d "$entry" ]; then mkdir "plain$entry" && mount --rbind "$entry" "plain$entry"
    fi
done
exec chroot plain env -C "$place" "$@"
"""
TRY = """pwd
mount -t tmpfs none at
: >at/seen
exec unshare --mount sh -ec 'mount -t tmpfs none inner; : >inner/seen; test -e at/seen'
"""


@needs_mounts
@pytest.mark.parametrize('wrap', [[], [*OWN_MOUNTS, 'sh', '-ec', CHROOT, 'sh']],
                         ids=['as we are', 'chroot'])
def test_mounts_of_our_own(place, wrap):
    """Nobody else sees them, and unshare(1) works below, also where the root is no mount point."""
    for name in ('at', 'inner'):
        (place.path / name).mkdir()
    result = subprocess.run([*wrap, *OWN_MOUNTS, 'sh', '-ec', TRY], cwd=place.path, timeout=60,
                            capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, f'{place.path}\n'), result
    assert not any((place.path / name / 'seen').exists() for name in ('at', 'inner'))


def test_what_a_unit_test_lacks_is_a_skip_with_its_reason():
    """For meson, too: cmocka 1.1.5 calls it "not ok"."""
    env = {'LD_PRELOAD': '/vgpreload', 'CMOCKA_MESSAGE_OUTPUT': 'TAP'}
    result = subprocess.run([BUILD / 'tests' / 'unit' / 'unit_store', 'store_limits'], env=env, timeout=600,
                            capture_output=True, text=True, check=False)
    assert result.returncode == 0, result
    assert re.search(r'^# skipped: needs .*\nok \d+ # SKIP ', result.stdout, re.M), result
    assert 'not ok' not in result.stdout
