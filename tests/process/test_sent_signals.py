"""A worker, or what it has started, sends a signal to launchd: its failure where that ends the job."""
import json
import os
import re
import signal

import pytest

from harness import supervisor_of, until

# $SIG to $TO: the worker's parent or its parent, in the first attempt by rank 1
SENDER = '''#!/usr/bin/python3 -u
import os, signal, subprocess, sys, time
supervisor, number = os.getppid(), getattr(signal, os.environ['SIG'])
guard = int(open(f'/proc/{supervisor}/stat').read().rpartition(')')[2].split()[1])
to = guard if os.environ.get('TO') == 'guard' else supervisor
def stay():
    signal.pause()
def child(leave):
    """Another process sends it, and is there still when launchd looks, unless it is `gone`."""
    if os.fork() == 0:
        if leave:
            os.setsid()
            if os.fork():
                os._exit(0)
            while os.getppid() != supervisor:
                time.sleep(.001)
        if leave == 'gone':
            os.setsid()
        os.kill(to, number)
        if leave == 'gone':
            os._exit(0)
        stay()
    stay()
if os.environ['TORCHELASTIC_RESTART_COUNT'] != '0':
    sys.exit(0)
if os.environ['RANK'] != os.environ.get('BY', '1'):
    stay()
print('the engine has died', file=sys.stderr)
how = os.environ['HOW']
if how in ('child', 'daemon', 'gone'):
    child(how if how != 'child' else None)
os.kill(to, number)
if how == 'twice':
    os.kill(to, number)
if how.startswith('exit'):
    os._exit(int(how[4:]))
stay()
'''

HOWS = ['itself', 'child', 'daemon', 'twice', 'exit1', 'exit0']


@pytest.fixture
def sends(start, place):
    script = place.write('sender.py', SENDER, 0o755)

    def begin(how, number, *options, **env):
        return start(['--nproc_per_node=2', '--report=report', '--events=events', *options, '--no_python', '--use_env',
                      script], {'HOW': how, 'SIG': number, 'OMP_NUM_THREADS': '1', **env})
    return begin


def report(place):
    return json.loads((place.path / 'report').read_text())


def assert_rank_1(result, number):
    assert 'root cause: rank 1 (local rank 1, pid ' in result.err
    assert f'sent {number} to launchd' in result.err
    assert 'preemption' not in result.err


@pytest.mark.parametrize('to', ['supervisor', 'guard'])
@pytest.mark.parametrize('number', ['SIGQUIT', 'SIGTERM', 'SIGINT', 'SIGHUP'])
def test_a_signal_that_ends_the_job_is_that_ranks_failure(sends, place, number, to):
    """Also where SIGTERM from others is a preemption."""
    result = sends('itself', number, '--requeue-exit-code=99', TO=to).end()
    assert result.rc == 128 + getattr(signal, number)
    assert_rank_1(result, number)
    assert '    the engine has died' in result.err
    worker = report(place)['workers'][1]
    assert (worker['how'], worker['signal'], worker['ended_by_launchd']) == ('sent_signal', number, False)


@pytest.mark.parametrize('how, to', [(how, 'supervisor') for how in HOWS] + [
    (how, 'guard') for how in HOWS if not how.startswith('exit')])
def test_it_is_restarted(sends, how, to):
    result = sends(how, 'SIGTERM', '--requeue-exit-code=99', '--max-restarts=1', TO=to).end()
    assert result.rc == 0
    assert_rank_1(result, 'SIGTERM')
    assert 'restart 1 of at most 1' in result.err


@pytest.mark.parametrize('to', ['supervisor', 'guard'])
def test_a_daemon_that_has_gone_announces_no_preemption(sends, to):
    """Of two workers, whose session it has left: mostly nobody knows which one had started it."""
    result = sends('gone', 'SIGTERM', '--requeue-exit-code=99', TO=to).end()
    assert result.rc == 143 and 'preemption' not in result.err
    assert 'SIGTERM' in result.err


def test_its_death_seen_first_is_its_failure_as_well(sends):
    """The guard tells of the signal later: it ends no attempt, least of all the next one."""
    result = sends('exit1', 'SIGTERM', '--requeue-exit-code=99', '--max-restarts=1', TO='guard').end()
    assert result.rc == 0 and 'preemption' not in result.err
    assert 'root cause: rank 1 ' in result.err


@pytest.mark.parametrize('number, action, word', [
    ('SIGUSR2', 'restart', 'a restart was requested on .* from pid .*rank 1'),
    ('SIGQUIT', 'restart', 'a restart was requested on .* from pid .*rank 1'),
    ('SIGTERM', 'preempt', 'preemption was announced by SIGTERM .*rank 1'),
])
def test_what_on_signal_names_it_may_ask_for(sends, number, action, word):
    result = sends('itself', number, f'--on-signal={number}={action}').end()
    assert result.rc == (0 if action == 'restart' else 75)
    assert re.search(word, result.err), result.err


def test_stop_ends_the_job_as_well(sends):
    result = sends('itself', 'SIGUSR1', '--on-signal=USR1=stop:5').end()
    assert result.rc == 128 + signal.SIGUSR1
    assert_rank_1(result, 'SIGUSR1')


def test_one_that_is_ignored_ends_nothing(sends, place):
    job = sends('itself', 'SIGQUIT', '--on-signal=QUIT=ignore')
    events = place.path / 'events'
    until(lambda: events.exists() and '"signal_received"' in events.read_text(), 'the signal')
    job.signal(signal.SIGTERM)
    result = job.end()
    assert result.rc == 143 and 'sent SIGQUIT' not in result.err
    received = [e for e in map(json.loads, events.read_text().splitlines()) if e['event'] == 'signal_received']
    assert [(e['signal'], e['sender']['command'] == 'rank 1') for e in received] == [
        ('SIGQUIT', True), ('SIGTERM', False)]


def test_from_others_it_is_what_it_was(sends, place):
    """A stranger's signal to the supervisor alone."""
    job = sends('none', 'SIGUSR1', '--on-signal=USR1=ignore', '--max-restarts=1', '--requeue-exit-code=99', BY='7')
    events = place.path / 'events'
    until(lambda: events.exists() and events.read_text().count('"worker_started"') == 2, 'the workers')
    os.kill(supervisor_of(job.pid), signal.SIGTERM)
    result = job.end()
    assert result.rc == 99 and 'preemption was announced by SIGTERM' in result.err


GONE = '''#!/bin/sh
[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0
kill -STOP $PPID
/bin/kill -TERM $PPID
/bin/kill -CONT $PPID
exec sleep 1000
'''


def test_a_sender_that_has_gone(start, place):
    """Of one worker; launchd can't look before that."""
    result = start(['--nproc_per_node=1', '--max-restarts=1', '--requeue-exit-code=99', '--no_python', '--use_env',
                    place.write('gone.sh', GONE, 0o755)]).end()
    assert result.rc == 0
    assert 'rank 0 (local rank 0, pid ' in result.err and 'sent SIGTERM to launchd' in result.err


ALL = '''#!/bin/sh
[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0
tell() {
    kill -STOP $PPID
    /bin/kill -TERM $PPID
    /bin/kill -CONT $PPID
    exit 1
}
trap tell TERM
[ $RANK = 0 ] && kill -TERM $PPID
while :; do sleep .01; done
'''


def test_those_that_are_stopped_may_all_send_it(start, place):
    """By processes that have gone: the job was not asked to end."""
    result = start(['--nproc_per_node=4', '--max-restarts=1', '--no_python', '--use_env',
                    place.write('all.sh', ALL, 0o755)]).end()
    assert result.rc == 0, result.err
    assert 'root cause: rank 0 ' in result.err and 'restart 1 of at most 1' in result.err


FAILS = '''#!/bin/sh
[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exec sleep .3
[ $RANK = 0 ] || exec sleep 1000
kill -STOP $PPID
/bin/kill -TERM $PPID
/bin/kill -CONT $PPID
sleep .03
exit 3
'''


def test_one_that_fails_soon_after_it_has_ended_no_other_attempt(start, place):
    """What was doubted in the attempt before is forgotten."""
    result = start(['--nproc_per_node=3', '--max-restarts=1', '--no_python', '--use_env',
                    place.write('fails.sh', FAILS, 0o755)]).end()
    assert result.rc == 0, result.err
    assert 'root cause: rank 0 ' in result.err and 'exit code 3' in result.err
