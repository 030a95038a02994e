"""/proc that is missing, or another pid namespace's: nothing in it is believed, no stranger gets a
signal, the job's exit code stays, and what workers leave behind ends as it turns up."""
import json
import os
import shutil
import signal
import subprocess

import pytest

from family import LONG
from harness import children_of, native, supervisor_of
from sandbox import LEVEL, enter

FOREIGN = ['unshare', '--fork', '--pid']
NONE = ['unshare', '--mount', 'sh', '-c', 'umount --lazy /proc && exec "$@"', 'sh']
BWRAP = ['bwrap', '--unshare-pid', '--dev-bind', '/', '/']
OWN = ['unshare', '--fork', '--pid', '--mount-proc']
WRAPS = {'foreign': FOREIGN, 'bwrap': BWRAP, 'none': NONE, 'own': OWN}
WAITERS = {'foreign': 1, 'bwrap': 2, 'none': 0, 'own': 1}  # the wrap's processes above launchd
SAYS = {'foreign': "/proc belongs to another PID namespace", 'bwrap': "/proc belongs to another PID namespace",
        'none': '/proc is not mounted'}
KIN = 'child session orphan daemon'


def need(wrap):
    if not shutil.which(wrap[0]):
        pytest.skip(f'{wrap[0]} is not installed')
    if subprocess.run([*wrap, 'true'], check=False, capture_output=True,
                      preexec_fn=lambda: enter(LEVEL)).returncode != 0:
        pytest.skip(f'{wrap[0]} can make no such namespace here')


@pytest.fixture(params=['foreign', 'bwrap', 'none'])
def kind(request):
    if request.param == 'none' and 'ASAN_OPTIONS' in os.environ:
        pytest.skip('sanitizers need /proc')
    need(WRAPS[request.param])
    return request.param


class Kept:
    """A `family` worker in such a place, with the gate by which it ends."""

    def __init__(self, start, place, kind, options, env, kin=KIN):
        self.told, self.gate = place.fifo('told'), place.fifo('gate')
        self.report = place.tmp / 'report.json'
        leaks = '' if kind == 'own' else ':detect_leaks=0'  # LeakSanitizer believes /proc
        self.job = start(native('family', f'--report={self.report}', *options),
                         {'TELL': self.told.path, 'GO': self.gate.path, 'KIN': kin,
                          'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') + leaks,
                          'MUTE': str(int(signal.SIGCONT)), **env}, wrap=WRAPS[kind])
        self.names = sorted(['worker', *kin.split()])
        assert sorted(self.line() for _ in self.names) == [f'{name} ready' for name in self.names]
        self.guard = self.job.pid
        for _ in range(WAITERS[kind]):
            [self.guard] = children_of(self.guard)
        if kind == 'bwrap':  # its process 1 there may end after the one that we wait for
            place.orphans_expected = True

    def line(self):
        return self.told.line()[2]

    def end(self):
        result = self.job.end()
        return result, json.loads(self.report.read_text())


def total(report):
    parts = [*report['workers'], report]
    return sum(p['left'] for p in parts), sum(p['left_killed'] for p in parts)


@pytest.mark.parametrize('code', [0, 7])
def test_what_is_left_gets_sigterm_and_the_exit_code_stays(start, place, kind, code):
    f = Kept(start, place, kind, [LONG, '--leftover-grace=600'], {'CODE': str(code)})
    f.gate.go()
    assert sorted(f.line() for _ in KIN.split()) == sorted(f'{name} 15' for name in KIN.split())
    result, report = f.end()
    assert result.rc == report['job']['exit_code'] == code
    assert report['left_known'] is False and total(report) == (4, 0)
    assert result.err.count(f'warning: {SAYS[kind]}') == 1


def test_what_stays_gets_sigkill(start, place, kind):
    f = Kept(start, place, kind, [LONG, '--leftover-grace=0.3'], {'STAY': 'session daemon'})
    f.gate.go()
    result, report = f.end()
    assert result.rc == 0 and total(report) == (4, 2)
    assert report['survivor_count'] == 0


def test_a_signal_scope_of_tree_is_the_group(start, place, kind):
    """Who is below a worker is not known; those in sessions of their own end after it."""
    f = Kept(start, place, kind, [LONG, '--leftover-grace=600', '--signal-scope=tree'], {},
             kin='child session')
    os.kill(f.guard, signal.SIGTERM)
    assert sorted(f.line() for _ in range(3)) == ['child 15', 'session 15', 'worker 15']
    result, _ = f.end()
    assert result.rc == 128 + signal.SIGTERM


def test_a_killed_supervisors_are_ended(start, place, kind):
    """By the guard, which knows no more."""
    f = Kept(start, place, kind, [LONG, '--leftover-grace=600'], {'STAY': KIN})
    os.kill(supervisor_of(f.guard), signal.SIGKILL)
    f.job.place.launcher_killed = True
    assert f.job.end().rc == 137
    assert not f.told.rest


@pytest.mark.parametrize('kind', ['foreign', 'bwrap'])
def test_a_stranger_in_the_namespace_gets_nothing(start, place, kind):
    """Its number is that of a thread of the kernel's, which the other namespace's /proc shows as a
    child of the number that the supervisor has."""
    need(FOREIGN)  # as nsenter needs its rights, too, and bwrap none
    need(WRAPS[kind])
    f = Kept(start, place, kind, [LONG, '--leftover-grace=0.2'], {'STAY': KIN})
    told = place.fifo('stranger')
    script = (f'trap "echo 0 0 TERM >{told.path}" TERM; echo 0 0 ready >{told.path}; '
              'while :; do sleep 0.1; done')
    strangers = [subprocess.Popen(['nsenter', '--pid', f'--target={f.guard}', 'sh', '-c', script])
                 for _ in range(3)]
    for _ in strangers:
        assert told.line()[2] == 'ready'
    f.gate.go()
    result, _ = f.end()
    for stranger in strangers:
        stranger.wait()  # the namespace ends with its process 1, launchd or what waits for it
    assert result.rc == 0
    with pytest.raises(BlockingIOError):
        os.read(told.fd, 1)
    assert not told.rest


def test_with_a_proc_of_its_own_all_is_known(start, place):
    need(OWN)
    f = Kept(start, place, 'own', [LONG, '--leftover-grace=0.3'], {'STAY': 'daemon'})
    f.gate.go()
    result, report = f.end()
    assert result.rc == 0 and '/proc' not in result.err
    assert report['left_known'] is True
    assert [(w['left'], w['left_killed']) for w in report['workers']] == [(4, 1)]
