"""What a worker has left behind when it ended: SIGTERM, a grace, SIGKILL, and nobody else's."""
import json
import os
import signal
import time

import pytest

from family import LONG, Family, best_of_three, calm
from harness import LIMIT, children_of, is_running, native, status_of, stop, supervisor_of, until

LONG_LEFT = '--leftover-grace=600'
KIN = 'child session orphan daemon bare'
TERM = signal.SIGTERM


@pytest.fixture
def family(start, place):
    return lambda *args, **how: Family(start, place, *args, **how)


@pytest.fixture
def ends(place):
    """ends(rank) -> environment by which this rank's worker ends when the test says so."""
    gates = {}

    def make(*ranks, code=0):
        gates.update({rank: place.fifo(f'go{rank}-{len(place.fifos)}') for rank in ranks})
        return {**{f'GO_{rank}': gates[rank].path for rank in ranks},
                **{f'CODE_{rank}': str(code) for rank in ranks}}

    make.go = lambda rank: gates[rank].go()
    return make


# how the job ended


@pytest.mark.parametrize('code', [0, 7])
def test_what_is_left_gets_sigterm_and_the_exit_code_stays(family, ends, code):
    """All kinds of it, with time to act on it."""
    f = family([LONG, LONG_LEFT], KIN, env=ends(0, code=code))
    ends.go(0)
    f.told(TERM, *f.of(*KIN.split()))
    assert f.job.end().rc == code
    f.all_gone()


@pytest.mark.parametrize('code', [0, 7])
def test_what_stays_gets_sigkill_after_the_leftover_grace(family, ends, code):
    """One grace for all: twice as long would be one each."""

    def measure():
        f = family([LONG, '--leftover-grace=2.2'], KIN, KIN, env=ends(0, code=code), count=1)
        begin = time.monotonic()
        ends.go(0)
        assert f.job.end().rc == code
        took = time.monotonic() - begin
        f.all_gone()
        return took

    best_of_three(measure, least=2.2, most=4.4)


def test_five_seconds_are_the_default(family, ends):
    f = family([LONG], 'session', 'session', env=ends(0))
    begin = time.monotonic()
    ends.go(0)
    assert f.job.end().rc == 0
    assert 5 <= time.monotonic() - begin < LIMIT / 2


def test_no_grace_at_all(family, ends):
    f = family([LONG, '--leftover-grace=0'], KIN, KIN, env=ends(0))
    ends.go(0)
    assert f.job.end().rc == 0
    f.all_gone()


def test_stopped_ones_wake_to_end(family, ends):
    f = family([LONG, LONG_LEFT], KIN, env=ends(0))
    for pid in f.of(*KIN.split()).values():
        stop(pid)
    ends.go(0)
    f.told(TERM, *f.of(*KIN.split()))
    assert f.job.end().rc == 0


def test_one_that_died_without_a_word_has_left_them_too(family):
    """SIGKILL, as from the OOM killer."""
    f = family([LONG, LONG_LEFT], KIN)
    os.kill(f.pids[0, 'worker'], signal.SIGKILL)
    f.told(TERM, *f.of(*KIN.split()))
    assert f.job.end().rc == 137


def test_one_that_ends_while_others_are_started(start, place):
    """Nobody ends for a long time after it: what it has left must not wait for that."""
    told, count = place.fifo('told'), 64
    job = start(native('family', LONG, LONG_LEFT, f'--nproc_per_node={count}'),
                {'TELL': told.path, 'MUTE': '18', 'KIN_0': 'session', 'GO_0': '/dev/zero'})
    texts = [told.line()[2] for _ in range(count + 2)]
    assert sorted(texts) == ['session 15', 'session ready'] + ['worker ready'] * count
    job.signal(TERM)
    assert job.end().rc == 143


# whose they are


def test_a_living_workers_own_are_not_touched(family, ends):
    """Rank 0's go while rank 1 runs on; rank 1's when it ends."""
    f = family([LONG, LONG_LEFT], KIN, env=ends(0, 1), count=2)
    own = {rank: [(rank, name) for name in KIN.split() if name != 'bare'] for rank in (0, 1)}
    ends.go(0)
    f.told(TERM, *own[0])
    f.gone(*own[0])
    f.forward(signal.SIGUSR1, (1, 'worker'))
    f.fence(*own[1], (1, 'bare'))
    assert is_running(f.job.pid)
    ends.go(1)
    f.told(TERM, *own[1], (0, 'bare'), (1, 'bare'))
    assert f.job.end().rc == 0


def test_a_large_environment_does_not_hide_whose_they_are(family, ends):
    """300 KB, and the path that tells stands behind them."""
    large = {f'LARGE_{i}': 'x' * 100000 for i in range(3)}
    f = family([LONG, LONG_LEFT], 'daemon', env={**ends(0, 1), **large}, count=2)
    ends.go(0)
    f.told(TERM, (0, 'daemon'))
    f.fence((1, 'daemon'), (1, 'worker'))
    ends.go(1)
    f.told(TERM, (1, 'daemon'))
    assert f.job.end().rc == 0


def test_an_ended_workers_are_killed_while_others_run_on(family, ends):
    f = family([LONG, '--leftover-grace=0.3'], 'child session orphan daemon', KIN,
               env=ends(0, 1), count=2)
    own = [key for key in f.pids if key[0] == 0 and key[1] != 'worker']
    ends.go(0)
    f.told(TERM, *own)
    f.gone(*own)
    f.fence(*(key for key in f.pids if key[0] == 1))
    ends.go(1)
    assert f.job.end().rc == 0
    f.all_gone()


def test_nobodys_end_with_the_last_worker(family, ends):
    """A daemon with an emptied environment and a session of its own could be either rank's."""
    f = family([LONG, LONG_LEFT], 'bare', env=ends(0, 1), count=2)
    ends.go(0)
    f.gone((0, 'worker'))
    f.forward(signal.SIGUSR1, (1, 'worker'))
    f.fence((0, 'bare'), (1, 'bare'))
    ends.go(1)
    f.told(TERM, (0, 'bare'), (1, 'bare'))
    assert f.job.end().rc == 0


def test_the_second_to_end_has_a_grace_of_its_own(family, ends):
    """Not what is left of the first one's."""
    f = family([LONG, '--leftover-grace=1.5'], 'session', 'session', env=ends(0, 1), count=2)
    ends.go(0)
    f.told(TERM, (0, 'session'))
    f.gone((0, 'session'))
    begin = time.monotonic()
    ends.go(1)
    f.told(TERM, (1, 'session'))
    assert f.job.end().rc == 0
    assert 1.5 <= time.monotonic() - begin < LIMIT / 2


def test_a_failures_are_asked_at_once_while_the_others_end(family, ends):
    f = family([LONG, LONG_LEFT], 'session', 'worker', env=ends(0, code=9), count=2)
    ends.go(0)
    f.told(TERM, (0, 'session'), (1, 'worker'))
    f.fence((1, 'session'), (1, 'worker'))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        f.job.signal(number)
        calm(f.job.pid)
    assert f.job.end().rc == 9
    f.all_gone()


# the job's own grace


@pytest.mark.parametrize('how, code', [('failure', 3), ('signal', 143), ('runtime', 124)])
def test_the_jobs_own_grace_bounds_theirs(family, ends, how, code):
    """The workers end at once, what they leave would stay for ten minutes."""
    f = family(['--shutdown-timeout=1', LONG_LEFT,
                *(['--max-runtime=2'] if how == 'runtime' else [])],
               KIN, KIN, env=ends(0, code=code) if how == 'failure' else {}, count=2)
    begin = time.monotonic()
    if how == 'failure':
        ends.go(0)
    elif how == 'signal':
        f.job.signal(TERM)
    assert f.job.end().rc == code
    took = time.monotonic() - (f.began if how == 'runtime' else begin)
    assert 1 <= took < LIMIT / 2
    f.all_gone()


def test_their_grace_is_theirs_in_a_long_one_of_the_job(family):
    f = family([LONG, '--leftover-grace=0.5'], KIN, KIN, count=2)
    begin = time.monotonic()
    f.job.signal(TERM)
    assert f.job.end().rc == 143
    assert 0.5 <= time.monotonic() - begin < LIMIT / 2
    f.all_gone()


def test_a_signal_does_not_lengthen_it(family, ends):
    """All workers have ended with 0, and what they left is waited for: a first signal brings the
    job's grace, which is longer."""
    f = family([LONG, '--leftover-grace=2'], 'session', 'session', env=ends(0))
    ends.go(0)
    f.told(TERM, (0, 'session'))
    f.job.signal(TERM)
    assert f.job.end().rc == 143
    f.all_gone()


def test_signals_cut_it_too(family, ends):
    f = family([LONG, LONG_LEFT], KIN, KIN, env=ends(0))
    ends.go(0)
    f.told(TERM, *f.of(*KIN.split()))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        f.job.signal(number)
        calm(f.job.pid)
    assert f.job.end().rc == 143
    f.all_gone()


def test_a_second_signal_leaves_them_five_seconds(family, ends):
    f = family([LONG, LONG_LEFT], 'session', 'session', env=ends(0))
    ends.go(0)
    f.told(TERM, (0, 'session'))
    begin = time.monotonic()
    for number in (signal.SIGTERM, signal.SIGINT):
        f.job.signal(number)
        calm(f.job.pid)
    assert f.job.end().rc == 143
    assert 5 <= time.monotonic() - begin < LIMIT / 2


# what the report says of them


def numbers(report):
    """(left, of these killed) of each worker, and of none that is known."""
    told = json.loads(report.read_text())
    return [(w['left'], w['left_killed']) for w in told['workers'] + [told]]


def lines_about(result):
    return [line for line in result.err.splitlines() if ' behind' in line]


def test_each_counts_once(family, place, ends):
    """A daemon is known by its environment when it is asked, and nobody reads that when it is
    killed."""
    report = place.tmp / 'report.json'
    f = family(['--leftover-grace=1', LONG, f'--report={report}'], KIN, KIN, env=ends(0))
    ends.go(0)
    f.told(TERM, *f.of(*KIN.split()))
    result = f.job.end()
    assert numbers(report) == [(4, 4), (1, 1)]
    assert lines_about(result) == [
        'launchd: warning: rank 0 left 4 processes behind; launchd killed them',
        'launchd: warning: workers left 1 process behind; launchd killed it']


def test_some_end_in_time_and_some_are_killed(family, place, ends):
    report = place.tmp / 'report.json'
    f = family(['--leftover-grace=0.3', LONG, f'--report={report}'], KIN, 'session daemon',
               env=ends(0))
    ends.go(0)
    f.told(TERM, *f.of(*KIN.split()))
    result = f.job.end()
    assert numbers(report) == [(4, 2), (1, 0)]
    assert lines_about(result) == [
        'launchd: warning: rank 0 left 4 processes behind; launchd killed 2 of them']


@pytest.fixture
def crowd(start, place):
    """crowd(number, env, option...): a worker with so many around it, the gate by which it ends,
    and where the report will be."""

    def make(number, env, *options):
        count = len(place.fifos)
        told, gate = place.fifo(f'told{count}'), place.fifo(f'gate{count}')
        report = place.tmp / f'report{count}.json'
        job = start([f'--report={report}', *options, *native('crowd')],
                    {'TELL': told.path, 'GO': gate.path, 'CROWD': str(number), **env})
        text = told.line()[2]
        if text != f'ready {number}':
            job.kill()
            pytest.skip(f'{number} processes are more than may be started here: {text}')
        return job, gate, report

    return make


@pytest.mark.parametrize('env', [{}, {'SESSIONS': '1'}], ids=['group', 'sessions'])
@pytest.mark.parametrize('when', ['left', 'asked', 'killed with it'])
def test_a_crowd_is_counted(crowd, env, when):
    """However many end at once, and whoever looks away meanwhile."""
    number = 250
    if when == 'killed with it':
        env = {**env, 'CLING': '1'}
    job, gate, report = crowd(number, env, '--leftover-grace=0.2', '--shutdown-timeout=0.2')
    if when == 'left':
        gate.go()
    else:
        job.signal(TERM)
    assert job.end().rc == (0 if when == 'left' else 143)
    left, killed = map(sum, zip(*numbers(report)))
    assert (left, killed) == (number, number)


@pytest.mark.long
@pytest.mark.parametrize('env', [{}, {'SESSIONS': '1'}], ids=['group', 'sessions'])
def test_a_large_crowd_takes_little_longer_than_the_kernel_does(crowd, env):
    """What launchd adds to the grace, against what it takes to start them."""
    number, grace = 4500, 1

    def measure():
        begin = time.monotonic()
        job, gate, report = crowd(number, env, f'--leftover-grace={grace}')
        started = time.monotonic() - begin
        gate.go()
        assert job.end().rc == 0
        left, killed = map(sum, zip(*numbers(report)))
        assert (left, killed) == (number, number)
        return (time.monotonic() - begin - started - grace) / started

    best_of_three(measure, least=0, most=4)


# zombies


def test_orphans_that_end_are_reaped_while_the_job_runs(start, place):
    """A long run with a helper now and then must not fill the table of processes."""
    ready, go = place.fifo('ready'), place.fifo('go')
    script = place.write('job.sh', '#!/bin/sh\n'
                         'for i in 1 2 3 4 5 6 7 8 9 10; do\n'
                         '    (setsid sh -c : & sh -c : & :)\n'
                         'done\n'
                         f'exec {native("ending")[-1]}\n', 0o755)
    job = start(['--nproc_per_node=2', '--no_python', '--use_env', script],
                {'TELL': ready.path, 'GO': go.path, 'END': 'exit:0'})
    workers = ready.expect('ready', 2)
    supervisor = supervisor_of(job.pid)
    until(lambda: children_of(supervisor) == set(workers.values()), 'all orphans to be reaped')
    go.go(2)
    assert job.end().rc == 0


def test_one_that_becomes_an_orphan_later_is_reaped(family, ends):
    """Its session's leader is a worker's child, which ends first."""
    f = family([LONG, LONG_LEFT], 'orphan daemon', env=ends(0))
    for name in ('orphan', 'daemon'):
        os.kill(f.pids[0, name], signal.SIGKILL)
        until(lambda: not status_of(f.pids[0, name]), f'{name} to be reaped')
    assert is_running(f.pids[0, 'worker'])
    ends.go(0)
    assert f.job.end().rc == 0
