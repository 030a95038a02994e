"""Nothing survives launchd, however it ends; and nothing else dies of it.

Each kind of process that is hard to find or to end, against each way to die.
"""
import os
import signal
import time

import pytest
from arena import LIMIT, NOBODY, Handle, is_running, until
from harness import let_pass

# Births and deeds of tests/workers/stubborn.c.
KINDS = [
    'child', 'session', 'orphan', 'daemon', 'sibling', 'vfork', 'thread', 'namespace',
    'child+ignore', 'child+stop', 'session+block+threads', 'daemon+ignore+stop', 'orphan+rename',
    'daemon+nodump+subreaper', 'session+pipes', 'daemon+tracer', 'sibling+ignore+stop',
    'vfork+ignore', 'namespace+ignore+subreaper', 'thread+ignore+stop', 'child+bomb',
    'child+sessions', 'session+chain', 'daemon+ignore+bomb', 'daemon+sessions', 'daemon+chain',
    'me+ignore', 'me+nodeathsig+ignore', 'me+subreaper,orphan,daemon+ignore',
    'me+nodeathsig+subreaper,daemon+stop', 'session+nobody+ignore', 'me+nobody+ignore',
]
# one family of each that forks without end, as they take whole cores; none where sanitizers make
# launchd slower than them
MANY = ('bomb', 'sessions', 'chain') if 'ASAN_OPTIONS' in os.environ else \
    ('child+bomb', 'daemon+sessions', 'daemon+chain')
ALL = ','.join(kind for kind in KINDS if not kind.startswith('me') and not kind.endswith(MANY))
SHORT = ('--shutdown-timeout=0.2', '--leftover-grace=0.1')
LONG = ('--shutdown-timeout=600', '--leftover-grace=600')


def workers_go(f):
    f.gate.go(2)


def worker_killed(f):
    os.kill(f.pids[0], signal.SIGKILL)


def to_guard(number):
    return lambda f: f.guard.send(number)


def to_supervisor(number):
    return lambda f: f.supervisor.send(number)


def three_terms(f):
    """The third ends a grace of ten minutes. Equal ones that are pending are one: so until it is
    over."""
    end = time.monotonic() + LIMIT
    while not f.guard.ended(0.02):
        f.guard.send(signal.SIGTERM)
        assert time.monotonic() < end, f'no end after {LIMIT:.0f} s of SIGTERM'


def guards_group_killed(f):
    os.killpg(f.guard.pid, signal.SIGKILL)


def guard_killed_while_supervisor_stopped(f):
    f.supervisor.stop()
    f.guard.send(signal.SIGKILL)


def supervisor_killed_while_guard_stopped(f):
    f.guard.stop()
    f.supervisor.send(signal.SIGKILL)
    until(lambda: not is_running(f.pids[1]), 'the workers to die of it')
    f.guard.send(signal.SIGCONT)


def in_the_grace(then):
    def act(f):
        f.guard.send(signal.SIGTERM)
        until(lambda: not is_running(f.pids[1]), 'the grace to begin')
        then(f)
    return act


CRASHED, KILLED = {-signal.SIGSEGV}, {-signal.SIGKILL}
# name: (what happens, how workers end that are let go, launchd's exit status, settings)
WAYS = {
    'exit 0': (workers_go, 'exit:0', {0}, SHORT),
    'exit 7': (workers_go, 'exit:7', {7}, SHORT),
    'worker killed': (worker_killed, 'never', {137}, SHORT),
    'TERM': (to_guard(signal.SIGTERM), 'never', {143}, SHORT),
    'TERM, no grace': (to_guard(signal.SIGTERM), 'never', {143}, ('--shutdown-timeout=0',)),
    # one more at its last words, and the kernel ends it
    'three TERMs': (three_terms, 'never', {143, -signal.SIGTERM}, LONG),
    'guard killed': (to_guard(signal.SIGKILL), 'never', KILLED, LONG),
    'guard crashed': (to_guard(signal.SIGSEGV), 'never', CRASHED, LONG),
    'guard killed in the grace':
        (in_the_grace(to_guard(signal.SIGKILL)), 'never', {*KILLED, 143}, LONG),
    'supervisor killed': (to_supervisor(signal.SIGKILL), 'never', {137}, LONG),
    'supervisor crashed': (to_supervisor(signal.SIGBUS), 'never', {128 + signal.SIGBUS}, LONG),
    'supervisor killed in the grace':
        (in_the_grace(to_supervisor(signal.SIGKILL)), 'never', {137, 143}, LONG),
    'supervisor stopped, guard killed':
        (guard_killed_while_supervisor_stopped, 'never', KILLED, LONG),
    'guard stopped, supervisor killed':
        (supervisor_killed_while_guard_stopped, 'never', {137}, LONG),
}
MORE_WAYS = {
    'INT': (to_guard(signal.SIGINT), 'never', {130}, SHORT),
    'HUP': (to_guard(signal.SIGHUP), 'never', {129}, SHORT),
    'QUIT': (to_guard(signal.SIGQUIT), 'never', {131}, SHORT),
    "guard's group killed": (guards_group_killed, 'never', KILLED, LONG),
}


class Fight:
    """A job whose workers are ready, with handles of launchd's two processes."""

    def __init__(self, attack, place, helpers, end, options, **how):
        ready, self.gate = place.fifo('ready'), place.fifo('gate')
        for fifo in (ready, self.gate):
            os.chmod(fifo.path, 0o666)
        env = {'TELL': ready.path, 'GO': self.gate.path, 'END': end}
        env.update({'HELPERS_0': helpers} if isinstance(helpers, str) else helpers)
        self.attack = attack('', options=options, env=env, **how)
        self.job, self.witness = self.attack.job, self.attack.witness
        self.pids = ready.expect('ready', 2)
        self.guard = Handle(self.attack.guard)
        self.supervisor = Handle(self.attack.supervisor())

    def close(self):
        self.guard.close()
        self.supervisor.close()

    def fight(self, act, codes, tell, after_s):
        let_pass(after_s, 'it is hit at a time that was drawn')
        start = time.monotonic()
        act(self)
        assert self.guard.ended(LIMIT), f'no end; launchd said:\n{self.job.said()}'
        if codes & {*KILLED, *CRASHED}:
            self.job.place.orphans_expected = True
            self.attack.wait_gone()
        # an end of its own, at last: not a moment later
        assert self.witness.is_gone(), f'outlived launchd: {self.witness.described()}'
        tell(time.monotonic() - start)
        assert self.supervisor.ended(LIMIT)
        assert self.attack.end_bystander(), 'a process that launchd had not started was ended'
        result = self.job.end()
        assert result.rc in codes, result
        return result


@pytest.fixture
def fight(attack, place, measured):
    """fight(helpers, way, ...) -> Result: the job, its end, and the proof that nothing is left."""
    fights = []

    def run(helpers, way, *, after_s=0, **how):
        act, end, codes, options = {**WAYS, **MORE_WAYS}[way]
        if act is guards_group_killed:
            how['bystander'] = False  # it is in that group
        fights.append(Fight(attack, place, helpers, end, options, **how))
        return fights[-1].fight(
            act, codes, lambda took: measured(f'gone after {way}', took), after_s)

    yield run
    for each in fights:
        each.close()


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('way', WAYS)
def test_each_kind(fight, way, kind):
    fight(kind, way)


@pytest.mark.parametrize('way', [*WAYS, *MORE_WAYS])
@pytest.mark.parametrize('user', [None, NOBODY], ids=['root', 'nobody'])
def test_all_at_once(fight, way, user):
    if user is not None and os.geteuid() != 0:
        pytest.skip('only root can become another user')
    fight({'HELPERS_0': ALL, 'HELPERS_1': 'child'}, way, user=user)


@pytest.mark.parametrize('way', [*WAYS, *MORE_WAYS])
@pytest.mark.parametrize('user, cgroup', [(None, None), (NOBODY, NOBODY)],
                         ids=['root', 'nobody'], indirect=['cgroup'])
def test_all_at_once_in_a_cgroup(fight, way, user, cgroup):
    """Where launchd may make cgroups of its own."""
    fight({'HELPERS_0': ALL, 'HELPERS_1': 'child'}, way, user=user, cgroup=cgroup)


@pytest.mark.parametrize('way', [way for way in WAYS if not way.startswith(('exit', 'worker'))])
def test_a_worker_whose_debugger_hangs(fight, way):
    """Only its tracer sees its end; this one lives in its tree, and never looks."""
    fight('child+ignore+trace-parent', way)


@pytest.mark.parametrize('way', ['guard killed', 'supervisor killed', 'TERM, no grace',
                                 'three TERMs', 'exit 7'])
def test_a_storm_of_forks(fight, way):
    """A hundred processes that all fork, each in a session of its own, before launchd begins. They
    end by themselves after ten seconds: that doesn't count."""
    start = time.monotonic()
    fight('daemon+storm', way, after_s=0.5)
    assert time.monotonic() - start < 6
