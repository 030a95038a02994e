"""The n-th call of a function fails, for every n and every function that launchd and libuv lean on.

Each time the job runs as if nothing had been, or ends with a sentence and an exit code that is not
0; nothing crashes or hangs, and nothing is left behind.
"""
import errno
import os
import struct
import sys
from pathlib import Path

import pytest
from harness import BUILD, children_of, is_running, until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'attack'))
from arena import Attack, end_cgroup, make_cgroup  # noqa: E402

LIBRARY = BUILD / 'tests' / 'fault' / 'faults.so'
pytestmark = pytest.mark.skipif(not LIBRARY.exists(),
                                reason='a build with sanitizers, which have a malloc of their own')
# What each of them fails with where it does: not that it can't be (EINTR of a read without a
# handler), but what full tables, little memory and strict sandboxes give.
ERRORS = {
    errno.EAGAIN: ['clone', 'fork'],
    errno.ENOMEM: ['malloc', 'calloc', 'realloc', 'epoll_ctl'],
    errno.EMFILE: ['epoll_create1', 'eventfd', 'open64', 'openat64', 'opendir', 'pipe2',
                   'signalfd', 'socket'],
    errno.ENOSPC: ['mkdir', 'mkdtemp', 'rename', 'fsync'],
    errno.EACCES: ['access', 'bind', 'stat64', 'nftw64', 'remove', 'rmdir'],
    errno.EPERM: ['getpriority', 'kill', 'prctl', 'sched_getaffinity', 'setpriority', 'setrlimit64', 'setsid',
                  'syscall'],
    # not waitid and waitpid: with WNOHANG they don't fail
    errno.EINTR: ['epoll_pwait', 'epoll_wait', 'poll', 'sigtimedwait', 'sigwaitinfo',
                  'write'],
    errno.EIO: ['pread64', 'read', 'readdir64', 'fstat64', 'fcntl64', 'gethostname', 'getrlimit64',
                'getsockname', 'sigaction', 'sigprocmask'],
}
FAULTS = {name: number for number, names in ERRORS.items() for name in names}
# Where these fail in the last act, the run directory can't be removed, and that is said.
REMOVING = {'malloc', 'nftw64', 'remove'}
# What every launchd that starts workers calls, whatever libuv and the C library are like.
CERTAIN = {'clone', 'fork', 'malloc', 'epoll_ctl', 'open64', 'pipe2', 'mkdtemp', 'prctl', 'read',
           'setsid', 'sigaction', 'sigprocmask', 'syscall', 'write'}
# Rank 0 does it, with helpers that only SIGKILL ends; and what launchd ends with then. A worker whose
# supervisor is dead already has another parent, and must kill nobody.
KILLER = ('guard=$(sed -n "s/^PPid:.//p" /proc/$PPID/status); [ "$RANK" = 0 ] && '
          'grep -q "^Name:.launchd" "/proc/$guard/status" && kill -KILL {}; exec sleep 60')
SCENES = {
    'exit 3': ('[ "$RANK" = 0 ] && exit 3; exec sleep 60', 3),
    'exit 0': ('exit 0', 0),
    'supervisor killed': (KILLER.format('$PPID'), 137),
    'guard killed': (KILLER.format('$guard'), -9),
}
# Where these fail, libuv aborts: with a killed guard, that would be both of launchd's processes, of
# which one has to live.
ABORTING = {'epoll_ctl', 'pipe2', 'realloc'}
OPTIONS = ('--shutdown-timeout=0.02', '--leftover-grace=0.01', '--quiet')


class Faulty:
    """Runs of launchd in which one call fails."""

    def __init__(self, place, cgroup=None, options=()):
        self.place, self.cgroup, self.options = place, cgroup, options
        self.mark = place.path / 'mark'

    def run(self, name, at, scene):
        """(calls, whether one failed, Result)."""
        self.mark.write_bytes(bytes(16))
        before = children_of(os.getpid())
        script = self.place.write('job', f'#!/bin/sh\n{SCENES[scene][0]}\n', 0o755)
        attack = Attack(
            self.place, 'daemon+ignore,session+stop', bystander=False, program=script,
            cgroup=self.cgroup,
            options=(*OPTIONS, *self.options, f'--report={self.place.path}/report.json'),
            env={'LD_PRELOAD': str(LIBRARY), 'FAULT': f'{name}:{at}:{FAULTS[name]}',
                 'FAULT_MARK': str(self.mark)})
        try:
            assert attack.job.process.wait(30) is not None
            for pid in children_of(os.getpid()) - before:  # the supervisor of a killed guard
                until(lambda: not is_running(pid), 'the supervisor to end', limit=30)
                os.waitpid(pid, 0)
            result = attack.job.end()
            # so that the end of all writers is seen, also where no worker ever was
            os.close(os.open(attack.witness.path, os.O_WRONLY))
            assert attack.witness.is_gone(), f'left behind: {attack.witness.described()}'
        finally:
            attack.close()
            os.unlink(attack.witness.path)
        calls, failed = struct.unpack('=qq', self.mark.read_bytes())
        return calls, failed, result


def walk(faulty, name, scene):
    """Lets the first call fail, then the second, until there is none. Returns how many there
    are."""
    usual, before, at = SCENES[scene][1], children_of(os.getpid()), 0
    while True:
        at += 1
        calls, failed, result = faulty.run(name, at, scene)
        where = f'call {at} of {name}: {result}'
        assert result.rc >= 0 or result.rc == usual, f'killed by a signal at {where}'
        if result.rc != usual:
            assert result.rc != 0, f'a failed job told as success at {where}'
            assert 'launchd: error: ' in result.err or name == 'write', f'no sentence at {where}'
        assert failed or result.rc == usual
        assert children_of(os.getpid()) == before, f'a process is left at {where}'
        left = list(faulty.place.tmp.iterdir())
        assert not left or name in REMOVING, f'{left} is left at {where}'
        for path in left:
            path.rmdir()
            # a guard that has inherited the job has said more than that
            assert "can't be removed" in result.err or 'supervisor' in result.err
        if not failed:
            return calls
        assert at < 2000, 'there is no end to its calls'


@pytest.mark.parametrize('name, scene', [(name, scene) for name in FAULTS for scene in SCENES
                                         if scene != 'guard killed' or name not in ABORTING])
def test_each_call_may_fail(place, nothing_left, measured, name, scene):
    calls = walk(Faulty(place), name, scene)
    measured(f'calls of {name}, {scene}', calls)
    assert calls or name not in CERTAIN
    if not calls:
        pytest.skip('launchd does not call it here')


@pytest.mark.parametrize('name', ['getpriority', 'setpriority', 'setrlimit64', 'syscall', 'write'])
def test_each_call_may_fail_where_workers_get_places(place, nothing_left, name):
    """CPUs, memory, limits, a nice value and an OOM score of their own."""
    with open('/proc/self/oom_score_adj', encoding='ascii') as file:
        score = int(file.read())
    options = ['--bind=core', '--membind=local', '--rlimit=core=0', '--nice=1',
               f'--oom-score-adj={min(1000, score + 1)}']
    assert walk(Faulty(place, options=options), name, 'exit 3') > 0


@pytest.mark.parametrize('name', ['clone', 'fork', 'kill', 'pipe2', 'prctl', 'setsid', 'sigprocmask', 'socket',
                                  'syscall', 'write'])
def test_each_call_may_fail_in_a_check_of_the_node(place, nothing_left, name):
    """Whose children say nothing then, or can't be: the node is unknown, which ends no job."""
    assert walk(Faulty(place, options=['--preflight=quick']), name, 'exit 3') or name not in CERTAIN


@pytest.mark.parametrize('name', ['clone', 'fork', 'pipe2', 'prctl', 'setsid', 'socket', 'syscall'])
def test_each_call_may_fail_in_a_gate(place, nothing_left, name):
    """And in the look at file systems before the first attempt."""
    assert walk(Faulty(place, options=['--max-restarts=1', '--restart-gate-timeout=3']), name, 'exit 3') or \
        name not in CERTAIN


@pytest.mark.parametrize('scene', SCENES)
# not clone: a worker is born in a cgroup of its own by clone3, which is a syscall()
@pytest.mark.parametrize('name', ['malloc', 'mkdir', 'open64', 'openat64', 'read', 'rmdir',
                                  'syscall', 'write'])
def test_each_call_may_fail_in_a_cgroup(place, nothing_left, name, scene):
    """Where launchd may make cgroups of its own."""
    cgroup = make_cgroup()
    if not cgroup:
        pytest.skip('there is no cgroup2 that we can make a cgroup in')
    try:
        assert walk(Faulty(place, cgroup), name, scene) > 0
    finally:
        left = end_cgroup(cgroup)
    assert not left or name in ('rmdir', 'openat64', 'open64'), f'cgroups are left: {left}'
