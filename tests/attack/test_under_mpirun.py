"""Under mpirun: when it, its process group or the shell between is killed, all of ours goes."""
import os
import shutil
import signal
import time

import pytest
from arena import GONE_LIMIT, LIMIT, NOBODY, Handle, children_of, status_of, until

from needs import mark, why_no_mpirun
from test_ends import ALL

MPIRUN = shutil.which('mpirun')
pytestmark = mark(why_no_mpirun())
WORDS = [MPIRUN, '--allow-run-as-root', '-n', '1', '--oversubscribe']
SHELL = ['sh', '-c', '"$@"; exit $?', 'sh']
KILL = signal.SIGKILL


def mpirun_killed(f):
    f.mpirun.send(KILL)


def its_group_killed(f):
    os.killpg(f.mpirun.pid, KILL)


def mpirun_and_guard_killed(f):
    f.mpirun.send(KILL)
    f.guard.send(KILL)


def mpirun_and_supervisor_killed(f):
    f.mpirun.send(KILL)
    f.supervisor.send(KILL)


WAYS = {
    'mpirun killed': mpirun_killed,
    "mpirun's group killed": its_group_killed,
    'mpirun and guard killed': mpirun_and_guard_killed,
    'mpirun and supervisor killed': mpirun_and_supervisor_killed,
    'guard killed under mpirun': lambda f: f.guard.send(KILL),
    'supervisor killed under mpirun': lambda f: f.supervisor.send(KILL),
}


class Run:
    """launchd under mpirun, with its workers ready."""

    def __init__(self, attack, place, around, user, bystander):
        ready = place.fifo('ready')
        os.chmod(ready.path, 0o666)
        self.attack = attack('', env={'TELL': ready.path, 'END': 'never', 'HELPERS_0': ALL},
                             options=('--shutdown-timeout=600',), user=user, around=around,
                             bystander=bystander)
        place.orphans_expected = True
        pids = ready.expect('ready', 2)
        parent = {int(status_of(pid)['PPid']) for pid in pids.values()}
        assert len(parent) == 1
        self.supervisor = Handle(parent.pop())
        self.guard = Handle(int(status_of(self.supervisor.pid)['PPid']))
        self.mpirun = Handle(self.attack.guard)

    def close(self):
        for handle in (self.supervisor, self.guard, self.mpirun):
            handle.close()


@pytest.mark.parametrize('around', [WORDS, [*WORDS, *SHELL]], ids=['', 'shell'])
@pytest.mark.parametrize('user', [None, NOBODY], ids=['root', 'nobody'])
@pytest.mark.parametrize('way', WAYS)
def test_ends(attack, place, measured, way, user, around):
    if os.geteuid() != 0:
        pytest.skip('only root can become another user')
    run = Run(attack, place, around, user, bystander=WAYS[way] is not its_group_killed)
    start = time.monotonic()
    WAYS[way](run)
    run.attack.wait_gone()
    measured(f'gone after {way}', time.monotonic() - start)
    assert run.guard.ended(GONE_LIMIT) and run.supervisor.ended(GONE_LIMIT)
    assert run.attack.end_bystander()
    run.attack.job.end()
    run.close()
