"""Preemption: what announces it, what workers are told, how long they have, and the exit code that asks for another
start. The watch of these tests waits for the test's words: what to print, and its exit code."""
import http.server
import json
import os
import select
import signal
import threading
import time

import pytest

from control import Control, socket_of
from family import Family
from harness import TESTS, children_of, is_running, native, status_of, stop, supervisor_of, until
from together import Cluster, errors, exit_codes, warnings

WATCH = """#!/bin/sh
echo "- $$ watches" > {told}
read code words < {orders}
[ -z "$words" ] || echo "$words"
echo 'said on stderr' >&2
[ "$code" -lt 128 ] || kill -"$((code - 128))" $$
exit "$code"
"""
EXAMPLES = TESTS.parent / 'examples'


class Watch:
    """A command for --preempt-watch."""

    def __init__(self, place, name='watch'):
        self.told, self.orders = place.fifo(f'{name}.told'), place.fifo(f'{name}.orders')
        self.command = place.write(name, WATCH.format(told=self.told.path, orders=self.orders.path), 0o755)
        self.option = f'--preempt-watch={self.command}'

    def runs(self):
        """Waits until it runs, and is its pid."""
        words = b''
        while not words.endswith(b'\n'):
            until(lambda: ready_to_read(self.told.fd), 'the watch to run')
            words += os.read(self.told.fd, 1)
        return int(words.split()[1])

    def end(self, code, words=''):
        os.write(self.orders.fd, f'{code} {words}\n'.encode())


def ready_to_read(fd):
    return select.select([fd], [], [], 0.2)[0]


@pytest.fixture
def watch(place):
    return Watch(place)


@pytest.fixture
def family(start, place):
    return lambda *args, **how: Family(start, place, *args, **how)


def events_of(path, kind):
    return [event for event in map(json.loads, open(path)) if event['event'] == kind]


def preemption(path):
    [event] = events_of(path, 'preemption')
    return event


def watchers(job):
    return [pid for pid in children_of(supervisor_of(job.pid)) if status_of(pid).get('Name') == 'preempt-watch']


# the watch


def test_workers_that_go_on_and_exit_by_themselves(family, watch, place):
    """They are told by the signal of the user's choice, have the time that is left, and the code asks for another
    start although all of them exited with 0."""
    go, log = place.fifo('go'), place.path / 'events'
    f = family([watch.option, '--preempt-signal=USR1', f'--events={log}', '--max-restarts=3',
                f'--report={place.path}/report.json'], count=2, env={'GO': go.path})
    pid = watch.runs()
    watch.end(0, '600 s left, they say')
    f.told(signal.SIGUSR1, (0, 'worker'), (1, 'worker'))
    until(lambda: not is_running(pid), 'the watch to end')
    f.fence((0, 'worker'), (1, 'worker'))
    go.go(2)
    result = f.job.end()
    assert result.rc == 75
    assert 'launchd: note: preemption was announced by --preempt-watch: workers get SIGUSR1 and have 600 s to end' \
        in result.err
    assert 'root cause: preemption was announced by --preempt-watch (600 s left)' in errors(result)[0]
    assert len(events_of(log, 'attempt_started')) == 1
    event = preemption(log)
    assert (event['source'], event['signal']) == ('--preempt-watch', 'SIGUSR1')
    assert event['seconds_left'] == 600
    report = json.loads((place.path / 'report.json').read_text())
    assert report['job']['exit_code'] == 75
    assert report['cause']['kind'] == 'preempted' and report['cause']['detail'] == '600 s left'
    assert not warnings(result)


def test_those_that_do_not_are_killed_when_the_time_is_over(start, watch, place):
    ready = place.fifo('ready')
    job = start([watch.option, '--requeue-exit-code=42', *native('ignore_signals')], {'TELL': ready.path})
    [pid] = ready.expect('ready', 1).values()
    watch.runs()
    began = time.monotonic()
    watch.end(0, '1500ms')
    result = job.end()
    assert result.rc == 42 and not is_running(pid)
    assert time.monotonic() - began >= 1.5
    assert 'SIGKILL' in result.err


def test_the_time_that_is_left_is_shown(family, watch):
    f = family([watch.option, '--shutdown-timeout=400'], stay='worker')
    watch.runs()
    watch.end(0)  # prints nothing
    f.told(signal.SIGTERM, (0, 'worker'))
    with Control(socket_of(f.job)) as control:
        stopping = control.ask('status')['stopping']
    assert stopping.startswith('preemption was announced by --preempt-watch, time left: ')
    assert 0 < float(stopping.split()[-2]) <= 400
    f.job.signal(signal.SIGTERM)  # from now on 30 s: still the first request
    f.job.signal(signal.SIGINT)
    f.job.signal(signal.SIGQUIT)
    assert f.job.end().rc == 75


@pytest.mark.parametrize('words, shown', [('soon', '"soon"'), ('-5', '"-5"'), ('\x1b[31m7', '"\\x1b[31m7"')])
def test_what_is_no_time(family, watch, words, shown):
    f = family([watch.option, '--shutdown-timeout=500'])
    watch.runs()
    watch.end(0, words)
    result = f.job.end()
    assert result.rc == 75
    assert f'what it printed is no time, such as 30: {shown}; --shutdown-timeout counts, 500 s' in warnings(result)[0]


@pytest.mark.parametrize('code, how', [(3, 'exited with code 3'), (137, 'was killed by SIGKILL')])
def test_a_watch_that_fails_is_said_once_and_run_again(family, watch, code, how):
    f = family([watch.option])
    for _ in range(2):
        watch.runs()
        watch.end(code)
    watch.runs()
    watch.end(0, '77')
    result = f.job.end()
    assert result.rc == 75 and '77 s' in result.err
    [warning] = warnings(result)
    assert f'--preempt-watch {watch.command} failed: it {how}; it printed: said on stderr' in warning


def test_a_command_that_cannot_be_run(refused, place):
    refused(['--preempt-watch=nowhere', *native('dump')], '--preempt-watch: nowhere: no such file on PATH', rc=127)
    refused(["--preempt-watch='", *native('dump')], '--preempt-watch', 'is not a command')
    refused(['--preempt-watch= ', *native('dump')], '--preempt-watch')
    refused(['--preempt-signal=NOW', *native('dump')], '--preempt-signal: "NOW" is not a signal')
    refused(['--requeue-exit-code=0', *native('dump')], '--requeue-exit-code', 'from 1 to 255')


def test_one_that_prints_without_end_is_in_nobodys_way(family, watch, place):
    script = place.write('loud', f'#!/bin/sh\nyes >&2 & yes | head -c 1000000; exec {watch.command}\n', 0o755)
    f = family([f'--preempt-watch={script}'])
    watch.runs()
    watch.end(0)
    result = f.job.end()
    assert result.rc == 75 and 'no time, such as 30: "y"' in result.err


def test_the_job_ends_while_it_runs(family, watch, place):
    """Nothing of it is left: neither the command, nor what it has started, in whatever session."""
    script = place.write('deep', f'#!/bin/sh\nsleep 1000 & setsid sleep 1001 & exec {watch.command}\n', 0o755)
    f = family([f'--preempt-watch={script}'])
    pid = watch.runs()
    [watcher] = watchers(f.job)
    below = children_of(pid)
    assert len(below) == 2
    f.job.signal(signal.SIGTERM)
    result = f.job.end()
    assert result.rc == 143
    assert not any(map(is_running, [pid, watcher, *below]))


def test_it_lives_through_a_restart(start, watch, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start([watch.option, '--max-restarts=1', *native('ending')],
                {'TELL': ready.path, 'GO': go.path, 'END': 'exit:7'})
    ready.expect('ready', 1)
    pid = watch.runs()
    go.go()
    ready.expect('ready', 1)
    assert is_running(pid)
    watch.end(0, '500')
    assert job.end().rc == 75
    assert not ready_to_read(watch.told.fd)


def test_one_that_comes_between_two_attempts(start, watch, place):
    """There are no workers to be told: no other attempt follows, and that it was a preemption is an event."""
    log = place.path / 'events'
    job = start([watch.option, '--max-restarts=1', '--restart-delay=300', f'--events={log}', *native('ending')],
                {'END': 'exit:7'})
    watch.runs()
    until(lambda: log.exists() and events_of(log, 'restart'), 'the pause')
    watch.end(0, '20')
    result = job.end()
    assert result.rc == 75
    event = preemption(log)
    assert (event['source'], event['seconds_left'], event['signal']) == ('--preempt-watch', 20, None)
    assert 'note: preemption was announced by --preempt-watch: no worker is running here, and none will be started' \
        in result.err
    assert len(events_of(log, 'attempt_started')) == 1
    assert 'root cause: preemption was announced by --preempt-watch (20 s left)' in errors(result)[0]


def test_none_where_nobody_asks(family):
    f = family()
    assert not watchers(f.job)
    f.job.signal(signal.SIGTERM)
    assert f.job.end().rc == 143


# signals


@pytest.mark.parametrize('options, number, rc, told', [
    ([], signal.SIGTERM, 143, signal.SIGTERM),
    (['--preempt-signal=USR2'], signal.SIGTERM, 143, signal.SIGTERM),
    (['--requeue-exit-code=75'], signal.SIGTERM, 75, signal.SIGTERM),
    (['--requeue-exit-code=9', '--preempt-signal=USR2'], signal.SIGTERM, 9, signal.SIGUSR2),
    (['--requeue-exit-code=9'], signal.SIGINT, 130, signal.SIGINT),
    (['--requeue-exit-code=9', '--on-signal=TERM=stop'], signal.SIGTERM, 143, signal.SIGTERM),
    (['--on-signal=USR1=preempt:100', '--preempt-signal=USR2'], signal.SIGUSR1, 75, signal.SIGUSR2),
    (['--on-signal=USR1=preempt'], signal.SIGUSR1, 75, signal.SIGTERM),
])
def test_signals_that_mean_it(family, place, options, number, rc, told):
    go, log = place.fifo('go'), place.path / 'events'
    f = family([*options, f'--events={log}'], stay='worker', env={'GO': go.path})
    f.job.signal(number)
    f.told(told, (0, 'worker'))
    go.go()
    assert f.job.end().rc == rc
    events = events_of(log, 'preemption')
    assert [event['source'] for event in events] == ([number.name] if rc in (75, 9) else [])


def test_workers_that_the_signal_reached_first(start, place):
    """Slurm sends it to all processes of a step: a worker that dies of it is no failure."""
    ready = place.fifo('ready')
    job = start(['--nproc_per_node=2', '--requeue-exit-code=75', '--max-restarts=2', *native('ending')],
                {'TELL': ready.path})
    pids = ready.expect('ready', 2).values()
    stop(supervisor_of(job.pid))
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    until(lambda: not any(map(is_running, pids)), 'the workers to die')
    job.signal(signal.SIGTERM)
    result = job.end()
    assert result.rc == 75
    assert result.err.count('attempt') == 0


def test_a_stop_that_a_user_asks_for_is_none(family):
    f = family(['--requeue-exit-code=75'])
    with Control(socket_of(f.job)) as control:
        control.ask('stop')
    assert f.job.end().rc == 143


def test_the_batch_systems_sigterm_after_its_warning(family, place):
    """It shortens the time, and the exit code stays."""
    f = family(['--on-signal=USR1=preempt:600', '--preempt-signal=USR2'], stay='worker')
    f.job.signal(signal.SIGUSR1)
    f.told(signal.SIGUSR2, (0, 'worker'))
    began = time.monotonic()
    f.job.signal(signal.SIGTERM)
    result = f.job.end()
    assert result.rc == 75
    assert time.monotonic() - began < 60


# several nodes


@pytest.mark.parametrize('which', [0, 1])
def test_one_of_two_nodes(start, place, which):
    watches = [Watch(place, f'watch{node}') for node in range(2)]
    ready, logs = place.fifo('ready'), [place.path / f'events{node}' for node in range(2)]
    cluster = Cluster(start, 2, ['--preempt-signal=USR1', '--max-restarts=3', f'--events={place.path}/events%n',
                                 *native('report_signals')],
                      {'TELL': ready.path}, lambda node: ([watches[node].option], {}))
    pids = ready.expect('ready', 2)
    for each in watches:
        each.runs()
    watches[which].end(0, '300')
    told = ready.expect('SIGUSR1', 2)
    assert told == pids
    for pid in pids.values():
        os.kill(pid, signal.SIGTERM)  # it ends with 0 then
    ready.expect('SIGTERM', 2)
    results = cluster.end()
    assert exit_codes(results) == [75, 75]
    assert f'(node {which}): workers get SIGUSR1 and have 300 s to end' in results[0].err
    assert 'workers get' not in results[1].err
    for log in logs:
        event = preemption(log)
        assert (event['source'], event['cause_node'], event['seconds_left']) == ('--preempt-watch', which, 300)


def test_both_at_once_is_one(start, place):
    ready = place.fifo('ready')
    watches = [Watch(place, f'watch{node}') for node in range(2)]
    cluster = Cluster(start, 2, native('report_signals'), {'TELL': ready.path},
                      lambda node: ([watches[node].option], {}))
    ready.expect('ready', 2)
    for each in watches:
        each.runs()
    for each in watches:
        each.end(0, '300')
    ready.expect('SIGTERM', 2)
    assert exit_codes(cluster.end()) == [75, 75]


def test_a_node_that_goes_before_its_time(start, place):
    """The other one knew why."""
    ready = place.fifo('ready')
    watches = [Watch(place, f'watch{node}') for node in range(2)]
    cluster = Cluster(start, 2, ['--preempt-signal=USR1', '--node-timeout=3', '--shutdown-timeout=5',
                                 *native('report_signals')], {'TELL': ready.path},
                      lambda node: ([watches[node].option], {}))
    ready.expect('ready', 2)
    for each in watches:
        each.runs()
    watches[1].end(0, '4')
    ready.expect('SIGUSR1', 2)
    os.kill(supervisor_of(cluster.jobs[1].pid), signal.SIGKILL)
    place.launcher_killed = True
    results = cluster.end()
    assert results[0].rc == 75


# examples


class Metadata(http.server.BaseHTTPRequestHandler):
    """Azure's metadata service."""

    def do_GET(self):
        assert self.headers['Metadata'] == 'true'
        self.server.asked += 1
        body = json.dumps({'DocumentIncarnation': 1, 'Events': self.server.events}).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


@pytest.fixture
def metadata():
    with http.server.HTTPServer(('127.0.0.1', 0), Metadata) as server:
        server.events, server.asked = [], 0
        thread = threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def not_before(seconds):
    return time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime(time.time() + seconds))


def test_azures_scheduled_events(family, metadata):
    f = family([f'--preempt-watch=/usr/bin/python3 {EXAMPLES}/azureml/scheduled_events.py', '--preempt-signal=USR1'],
               stay='worker', env={'SCHEDULED_EVENTS': f'http://127.0.0.1:{metadata.server_port}/?api-version=1',
                                   'AZ_VM_NAME': 'vm_7', 'http_proxy': 'http://127.0.0.1:1'})
    metadata.events = [{'EventType': 'Freeze', 'Resources': ['vm_7'], 'NotBefore': not_before(100)},
                       {'EventType': 'Preempt', 'Resources': ['vm_8'], 'NotBefore': not_before(100)}]
    before = metadata.asked
    until(lambda: metadata.asked >= before + 2, 'it to be asked')
    metadata.events = [{'EventType': 'Preempt', 'Resources': ['vm_8', 'vm_7'], 'NotBefore': not_before(605)}]
    f.told(signal.SIGUSR1, (0, 'worker'))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        f.job.signal(number)
    result = f.job.end()
    assert result.rc == 75
    [left] = [line.split(' have ')[1].split()[0] for line in result.err.splitlines() if 'workers get SIGUSR1' in line]
    assert 550 < int(left) <= 600
