"""--on-hang where nobody has asked for it: a modest report, which begins late, costs nothing before, and speaks only of
what is certain. --on-hang-after shortens its minute."""
import json
import os
import signal

import pytest

from harness import children_of, status_of, stop, supervisor_of, until
from test_events import of
from test_hang import Job, looker
from together import warnings

SOON = '--on-hang-after=10'
LOOKS = 6  # of 10 s each: two of them make a finding, and two more in a row make it certain


@pytest.fixture
def job(start, place):
    def begin(*how, **more):
        return Job(start, place, *how, **more)

    return begin


def dry_run(start, *options):
    return json.loads(start(['--dry-run=json', *options, '--no_python', '--use_env', '/bin/true']).end().out)


@pytest.mark.parametrize('options, said', [
    (['--nproc_per_node=2'], 'report, modestly'),
    (['--nproc_per_node=1', '--nnodes=2', '--node_rank=1', '--master_addr=127.0.0.1'], 'report, modestly'),
    (['--nproc_per_node=2', '--on-hang=report'], 'report'),
    (['--nproc_per_node=2', '--progress=notify'], 'report'),
    (['--nproc_per_node=2', '--on-hang=off'], None),
    (['--nproc_per_node=1'], None),
])
def test_who_has_it(start, options, said):
    assert dry_run(start, *options)['job'].get('on_hang', {'value': None})['value'] == said


def test_workers_environment_is_the_same(start):
    both = [dry_run(start, '--nproc_per_node=2', *options)['workers'] for options in ([], ['--on-hang=off'])]
    assert both[0] == both[1] and both[0][0]['environment']
    assert 'NCCL_RAS_ADDR' not in json.dumps(both[0])


@pytest.mark.long
def test_nothing_is_started_and_nothing_wakes_up_in_the_first_10_s(job):
    one = job()
    supervisor = supervisor_of(one.cluster.jobs[0].pid)
    until(lambda: status_of(supervisor)['Threads'] == '2', 'the thread that writes --events')
    until(lambda: status_of(supervisor)['State'][0] == 'S', 'the supervisor to wait')
    before = status_of(supervisor)
    with pytest.raises(AssertionError):
        until(lambda: [pid for pid in children_of(supervisor) if status_of(pid).get('Name') == 'hang-look'],
              'hang-look', 10)
    after = status_of(supervisor)
    assert after['Threads'] == '2'
    assert after['voluntary_ctxt_switches'] == before['voluntary_ctxt_switches']
    assert one.end()[0].rc == 0


@pytest.mark.long
@pytest.mark.parametrize('what, text', [('stop', 'rank 1 is stopped: by SIGSTOP'),
                                        ('lock', 'rank 1 is outside what all others wait in')])
def test_what_is_certain(job, what, text):
    """It is said once, and no suspicion before."""
    one = job(SOON)
    if what == 'stop':
        stop(one.pid(1))
    else:
        one.trouble(1, what)
    hang = until(lambda: one.hangs(), 'something that is said', 150)[0]
    assert (hang['state'], hang['ranks']) == ('certain', [1])
    assert text in hang['text']
    if what == 'stop':
        os.kill(one.pid(1), signal.SIGCONT)
        until(lambda: one.hangs('cleared'), 'the job to move', 100)
        [result] = one.end()
        assert result.rc == 0
    else:
        one.cluster.jobs[0].signal(signal.SIGTERM)
        [result] = one.end()
        assert result.rc == 143
    [warning] = warnings(result)
    assert 'nothing has moved for ' in warning and text in warning and 'hangs' not in warning


@pytest.mark.long
@pytest.mark.parametrize('what', ['sleep', 'spin', 'child'])
def test_who_may_be_well_is_not_named(job, what):
    """It sleeps, as an evaluator that waits for a file does; it computes in little memory; its child waits."""
    one = job(SOON)
    one.trouble(1, what)
    looker(one)
    with pytest.raises(AssertionError):
        until(one.hangs, 'a hang', 10 * LOOKS)
    one.cluster.jobs[0].signal(signal.SIGTERM)
    [result] = one.end()
    assert result.rc == 143 and not warnings(result)


@pytest.mark.long
def test_a_silent_job_that_moves_is_looked_at_and_not_named(job):
    one = job(SOON)
    first = looker(one)
    with pytest.raises(AssertionError):
        until(one.hangs, 'a hang', 10 * LOOKS)
    assert looker(one) == first
    assert one.end()[0].rc == 0


@pytest.mark.long
def test_a_new_attempt_has_not_been_quiet_before_it_began(job):
    """Though the one before was."""
    one = job('--on-hang-after=30', '--max-restarts=1')
    looker(one)
    before = [one.pid(rank) for rank in range(one.size)]
    os.kill(before[2], signal.SIGKILL)
    until(lambda: all(one.pid(rank) != pid for rank, pid in enumerate(before)), 'the next attempt')
    stop(one.pid(1))
    hang = until(lambda: one.hangs('certain'), 'something that is said', 150)[0]
    began = of(one.events(), 'attempt_started')[-1]
    assert hang['quiet_seconds'] <= (hang['mono_ns'] - began['mono_ns']) / 1e9
    one.cluster.jobs[0].signal(signal.SIGTERM)
    assert one.end()[0].rc == 143


@pytest.mark.long
def test_on_another_node_of_one_worker(job):
    one = job(SOON, nodes=2, nproc=1)
    stop(one.pid(1))
    hang = until(lambda: one.hangs('certain'), 'something that is said', 150)[0]
    assert (hang['class'], hang['ranks']) == ('stopped', [1])
    one.cluster.jobs[0].signal(signal.SIGTERM)
    assert [result.rc for result in one.end()] == [143, 143]


TRACEBACK = '''
import os, pathlib, sys, threading
gate = os.open(pathlib.Path(sys.argv[1]) / 'go', os.O_RDONLY)
if os.environ['RANK'] == '1':
    threading.Thread(target=os.read, args=(gate, 1)).start()
    raise ValueError('loss is NaN')
os.read(gate, 1)
'''


@pytest.mark.long
@pytest.mark.parametrize('options, said', [([], 1), (['--on-hang=off'], 0)])
def test_a_worker_that_lives_on_below_its_traceback(start, place, options, said):
    gate = place.fifo('go')
    one = start(['--nproc_per_node=2', SOON, *options, '--use_env', place.write('job.py', TRACEBACK), str(place.path)])
    note = 'rank 1 printed a traceback more than 60 s ago and is still running: ValueError: loss is NaN'
    if said:
        until(lambda: note in one.said(), 'the note', 150)
    else:
        with pytest.raises(AssertionError):
            until(lambda: note in one.said(), 'the note', 90)
    gate.go(2)
    result = one.end()
    assert result.err.count(note) == said
    assert result.rc == 1
