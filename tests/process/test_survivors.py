"""Processes that SIGKILL does not end, or that may not be killed: named, and nothing of theirs is
spared."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess

import pytest

from hang_fs import FuseMount
from harness import BUILD, children_of, fresh_process, is_running, status_of, until
from needs import needs_root

pytestmark = needs_root
NOBODY = 65534
LONG = '--shutdown-timeout=600'

# fuse(4): what each request begins with, and what answers FUSE_INIT
REQUEST = struct.Struct('=IIQ24x')  # length, opcode, number
INIT, INIT_ANSWER = 26, struct.pack('=IIIIHHI40x', 7, 31, 0, 0, 1, 1, 4096)


class HungMount(FuseMount):
    """A file system that answers nothing but the mount: who asks it hangs in the kernel, and does
    not end by SIGKILL. Closing it sets them free."""

    def request(self):
        """The next one of the kernel's."""
        _, opcode, number = REQUEST.unpack_from(until(self.read, 'a request'))
        return opcode, number

    def read(self):
        with contextlib.suppress(PermissionError, BlockingIOError):  # not mounted yet, no request
            return os.read(self.fd, 65536)
        return None

    def answer_the_mount(self):
        opcode, number = self.request()
        assert opcode == INIT
        os.write(self.fd, struct.pack('=IiQ', 16 + len(INIT_ANSWER), 0, number) + INIT_ANSWER)

    def close(self):
        os.close(self.fd)


@pytest.fixture
def hung(place, nothing_left):
    mount = HungMount(place.path / 'hung')
    yield mount
    mount.close()


@pytest.mark.long
def test_one_that_hangs_in_the_kernel_is_named_and_what_is_below_it_ends(start, place, hung):
    """Its own child is in another session, and would not lose its parent."""
    fifo = place.fifo('pids')
    script = (f'setsid sleep 1000 & echo 0 $! child >{fifo.path}; '
              f'echo 0 $$ worker >{fifo.path}; exec stat {hung.path}/file')
    job = start(['--shutdown-timeout=0.2', '--no_python', '--use_env', 'sh', '-c', script],
                wrap=hung.mount, pass_fds=[hung.fd])
    hung.answer_the_mount()
    child, worker = fifo.line()[1], fifo.line()[1]
    hung.request()
    job.signal(signal.SIGTERM)
    until(lambda: not is_running(child), 'what is below it to end')
    assert status_of(worker)['State'][0] == 'D'
    result = job.end()
    assert result.rc == 143
    assert f'still alive: pid {worker} (stat, uid 0): stuck in the kernel (state D)' in result.err
    assert f'pid {child} ' not in result.err
    place.orphans_expected = True


def test_another_users_is_named_and_left(start, place):
    """A setuid program that a user's worker has started; and one below it."""
    place.give(NOBODY)
    fifo = place.fifo('pids')
    os.chmod(fifo.path, 0o666)
    launchd = pathlib.Path(shutil.copy(BUILD / 'launchd', place.path))  # where nobody may go
    become = place.path / 'become'
    shutil.copy(shutil.which('setpriv'), become)
    become.chmod(0o4755)
    as_nobody = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups']
    if subprocess.run([*as_nobody, become, '--reuid=0', 'true'], check=False,
                      preexec_fn=lambda: fresh_process(None, False)).returncode:
        pytest.skip('setuid programs have no effect here')
    script = f'{become} --reuid=0 sh -c "echo 0 \\$\\$ it >{fifo.path}; sleep 1000; :"; :'
    job = start([LONG, '--leftover-grace=0', '--no_python', '--use_env', 'sh', '-c', script],
                wrap=as_nobody, program=launchd)
    survivor = fifo.line()[1]
    [below] = until(lambda: children_of(survivor), 'its child')
    job.signal(signal.SIGTERM)
    result = job.end()
    place.orphans_expected = True
    try:
        assert result.rc == 143
        for pid, name in ((survivor, 'sh'), (below, 'sleep')):
            assert is_running(pid)
            assert re.search(rf'still alive: pid {pid} \({name}, uid 0\): belongs to another user,', result.err)
    finally:
        os.kill(below, signal.SIGKILL)
        os.kill(survivor, signal.SIGKILL)
