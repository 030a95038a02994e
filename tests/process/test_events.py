"""Issue 6: --events, what happens in a run as one JSON object a line."""
import datetime
import fcntl
import json
import os
import pathlib
import re
import signal
import time

import pytest

from harness import (BUILD, children_of, is_idle, is_running, let_pass, native, status_of, stop, supervisor_of,
                     until)
from sandbox import BLIND, LEVEL
from together import C10d, Cluster

LONG = '--shutdown-timeout=600'  # so that nothing but what is tested ends a worker
NUMBER, TEXT, FLAG, NONE = int, str, bool, type(None)
WORKER = {'rank': (NUMBER,), 'local_rank': (NUMBER,), 'attempt': (NUMBER,), 'pid': (NUMBER, NONE)}
ENDS = {'how': ('exit', 'signal', 'not_startable'), 'exit_code': (NUMBER, NONE),
        'signal': (TEXT, NONE), 'error': (TEXT, NONE), 'core_dumped': (FLAG,),
        'oom': ('no', 'likely', 'yes', 'child'), 'oom_limit': ('own', 'above', 'machine', None),
        'oom_limit_bytes': (NUMBER, NONE), 'ended_by_launchd': (FLAG,), 'killed_by_launchd': (FLAG,),
        'asked_signal': (TEXT, NONE), 'seconds': (float,)}
CAUSES = ('failure', 'signal', 'max_runtime', 'launchd_killed', 'launcher_ended', 'hang_up',
          'node_lost', 'bad_node', 'preempted')
# Each kind's members: the types, or the words, that a value may have.
SCHEMA = {
    'job_started': {'run_id': (TEXT, NONE), 'launchd': (TEXT,), 'host': (TEXT,),
                    'nnodes': (NUMBER,), 'nproc_per_node': (NUMBER,), 'first_rank': (NUMBER,),
                    'world_size': (NUMBER,), 'max_restarts': (NUMBER,), 'command': (list,)},
    'attempt_started': {'attempt': (NUMBER,), 'master_addr': (TEXT,), 'master_port': (NUMBER,)},
    'worker_started': WORKER,
    'worker_ended': {**WORKER, **ENDS},
    'signal_received': {'signal': (TEXT,), 'sender': (dict, NONE), 'reaction': (TEXT,)},
    'signal_forwarded': {'signal': (TEXT,)},
    'stop': {'urgency': ('stop', 'hurry', 'kill'), 'cause': CAUSES, 'cause_node': (NUMBER,),
             'cause_signal': (TEXT, NONE), 'detail': (TEXT, NONE), 'signal': (TEXT, NONE),
             'grace_seconds': (float,)},
    'node_joined': {'node_rank': (NUMBER,), 'name': (TEXT,)},
    'node_lost': {'node_rank': (NUMBER,), 'name': (TEXT,), 'detail': (TEXT,)},
    'restart': {'next_attempt': (NUMBER,), 'delay_seconds': (float,), 'decision': ('restart',),
                'reason': (TEXT, NONE), 'exclude': (list, NONE)},
    'verdict': {'attempt': (NUMBER,), 'exit_code': (NUMBER,), 'text': (TEXT,),
                'culprit_rank': (NUMBER, NONE), 'cause': ('none', 'restart_requested', *CAUSES),
                'exclude': (list, NONE), 'restart': (dict, NONE)},
    'step': {'attempt': (NUMBER,), 'step': (NUMBER,)},
    'check_started': {'attempt': (NUMBER,), 'phases': (TEXT,), 'limit_seconds': (float,)},
    'check_ended': {'attempt': (NUMBER,), 'nodes': (NUMBER,), 'bad': (NUMBER,), 'unknown': (NUMBER,),
                    'seconds': (float,), 'exclude': (list, NONE)},
    'job_ended': {'exit_code': (NUMBER,), 'goodput': (dict, NONE)},
}
SENDER = {'pid': (NUMBER, NONE), 'uid': (NUMBER, NONE), 'command': (TEXT, NONE), 'kernel': (FLAG,)}
COMMON = {'v': (NUMBER,), 'event': tuple(SCHEMA), 'mono_ns': (NUMBER,), 'time': (TEXT,),
          'node': (NUMBER, NONE)}


def check(members, schema):
    assert list(members) == list(schema), members
    for name, allowed in schema.items():
        value = members[name]
        if isinstance(allowed[0], str):
            assert value in allowed, (name, value)
        else:
            assert type(value) in allowed, (name, value)


def parse(text):
    """The events, each checked; a line that is cut or torn fails."""
    assert text == '' or text.endswith('\n')
    events = [json.loads(line) for line in text.splitlines()]
    for event in events:
        check(event, {**COMMON, **SCHEMA[event['event']]})
        assert event['v'] == 1
        assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z', event['time'])
        if event.get('sender'):
            check(event['sender'], SENDER)
    return events


def read(path):
    return parse(pathlib.Path(path).read_text())


def kinds(events):
    return [event['event'] for event in events]


def of(events, kind):
    return [event for event in events if event['event'] == kind]


def only(events, kind):
    [event] = of(events, kind)
    return event


@pytest.fixture
def log(place):
    return place.path / 'events.jsonl'


def test_a_run_that_goes_well(launch, log):
    before = time.monotonic_ns(), time.time()
    result = launch([f'--events={log}', *native('ending', '--nproc_per_node=2', '--rdzv-id=x"y')],
                    {'END': 'exit:0', 'OMP_NUM_THREADS': '1'})
    after = time.monotonic_ns(), time.time()
    assert (result.rc, result.err) == (0, '')
    events = read(log)
    assert kinds(events)[:4] == ['job_started', 'attempt_started', 'worker_started',
                                 *kinds(events)[3:4]]
    assert sorted(kinds(events)[2:6]) == ['worker_ended'] * 2 + ['worker_started'] * 2
    assert kinds(events)[6:] == ['verdict', 'job_ended']
    for event in events:
        wall = datetime.datetime.fromisoformat(event['time'].replace('Z', '+00:00')).timestamp()
        assert before[0] <= event['mono_ns'] <= after[0]
        assert before[1] - 1 <= wall <= after[1] + 1
        assert event['node'] == 0
    job = only(events, 'job_started')
    assert (job['run_id'], job['nnodes'], job['nproc_per_node'], job['world_size']) == \
        ('x"y', 1, 2, 2)
    assert job['command'] == [native('ending')[-1]]
    version = launch(['--version']).out.split()[1]
    assert job['launchd'] == version
    assert only(events, 'attempt_started')['master_addr'] == '127.0.0.1'
    assert 0 < only(events, 'attempt_started')['master_port'] < 65536
    started = {event['rank']: event['pid'] for event in of(events, 'worker_started')}
    ended = of(events, 'worker_ended')
    assert {event['rank']: event['pid'] for event in ended} == started and len(started) == 2
    assert [(event['how'], event['exit_code']) for event in ended] == [('exit', 0)] * 2
    assert only(events, 'verdict')['exit_code'] == only(events, 'job_ended')['exit_code'] == 0
    assert only(events, 'verdict')['culprit_rank'] is None


def test_a_failure_and_what_follows(start, place, log):
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start([f'--events={log}', LONG, *native('ending', '--nproc_per_node=3')],
                {'TELL': ready.path, 'GO_1': go.path, 'END_1': 'exit:7'})
    pids = ready.expect('ready', 3)
    go.go()
    result = job.end()
    assert result.rc == 7
    events = read(log)
    assert kinds(events) == ['job_started', 'attempt_started', *['worker_started'] * 3,
                             'worker_ended', 'stop', *['worker_ended'] * 2, 'verdict', 'job_ended']
    first, *others = of(events, 'worker_ended')
    assert (first['rank'], first['pid'], first['exit_code'], first['ended_by_launchd']) == \
        (1, pids[1], 7, False)
    for event in others:
        assert (event['signal'], event['ended_by_launchd'], event['asked_signal']) == \
            ('SIGTERM', True, 'SIGTERM')
    stop = only(events, 'stop')
    assert (stop['urgency'], stop['cause'], stop['cause_node'], stop['signal'],
            stop['grace_seconds']) == ('stop', 'failure', 0, 'SIGTERM', 600.0)
    verdict = only(events, 'verdict')
    assert (verdict['exit_code'], verdict['culprit_rank']) == (7, 1)
    assert verdict['text'].startswith('root cause: rank 1 (')
    assert events[-1]['exit_code'] == 7


def deaths_in_order(start, place, log):
    """Ranks 2, 0, 3, 1 die while launchd can't look: in which order that is told. The first of them is
    the cause, and not the lowest."""
    ready = place.fifo(f'ready{log.name}')
    gates = [place.fifo(f'go{rank}{log.name}') for rank in range(4)]
    env = {'TELL': ready.path}
    for rank, gate in enumerate(gates):
        env.update({f'GO_{rank}': gate.path, f'END_{rank}': f'exit:{10 + rank}'})
    job = start([f'--events={log}', LONG, *native('ending', '--nproc_per_node=4')], env)
    pids = ready.expect('ready', 4)
    supervisor = supervisor_of(job.pid)
    until(lambda: is_idle(supervisor), 'the last worker, which is ready, to be watched')
    stop(supervisor)
    for rank in (2, 0, 3, 1):
        gates[rank].go()
        until(lambda: not is_running(pids[rank]), f'rank {rank} to die')
    os.kill(supervisor, signal.SIGCONT)
    result = job.end()
    assert result.rc == 12 and 'root cause: rank 2 (' in result.err
    assert "launchd's SIGTERM" not in result.err  # they had died by themselves
    ended = of(read(log), 'worker_ended')
    assert not any(event['ended_by_launchd'] for event in ended)
    times = [event['mono_ns'] for event in ended]
    assert times == sorted(times)
    return [event['rank'] for event in ended]


def test_deaths_are_told_in_their_order(start, place, log):
    known = 1 if LEVEL in BLIND else 4
    for i in range(5):
        told = deaths_in_order(start, place, log.with_name(f'log{i}'))
        assert told[:known] == [2, 0, 3, 1][:known]


def test_many_that_die_as_they_like(launch, log):
    """A worker ends after it was started, and time goes on from line to line but for starts, whose
    time is taken before they are tried."""
    result = launch([f'--events={log}', *native('ending', '--nproc_per_node=60')],
                    {'END': 'exit:0', 'OMP_NUM_THREADS': '1'})
    assert result.rc == 0
    events = read(log)
    alive = set()
    for event in events:
        if event['event'] == 'worker_started':
            alive.add(event['pid'])
        elif event['event'] == 'worker_ended':
            alive.remove(event['pid'])
    assert not alive and len(of(events, 'worker_ended')) == 60
    times = [event['mono_ns'] for event in events if event['event'] != 'worker_started']
    assert times == sorted(times)


def test_signals(start, place, log):
    ready = place.fifo('ready')
    job = start([f'--events={log}', '--on-signal=WINCH=ignore,INT=stop:500',
                 *native('report_signals', '--nproc_per_node=2')], {'TELL': ready.path})
    ready.expect('ready', 2)
    job.signal(signal.SIGUSR1)
    ready.expect('SIGUSR1', 2)
    job.signal(signal.SIGWINCH)
    until(lambda: len(of(read(log), 'signal_received')) == 2, 'the second signal')
    job.signal(signal.SIGINT)
    ready.expect('SIGTERM', 2)
    assert job.end().rc == 128 + signal.SIGINT
    events = read(log)
    told = [(event['event'], event.get('signal'), event.get('reaction'))
            for event in events if event['event'].startswith('s')]
    assert told == [('signal_received', 'SIGUSR1', 'forward'),
                    ('signal_forwarded', 'SIGUSR1', None),
                    ('signal_received', 'SIGWINCH', 'ignore'),
                    ('signal_received', 'SIGINT', 'stop:500'),
                    ('stop', 'SIGTERM', None)]
    for event in of(events, 'signal_received'):
        assert (event['sender']['pid'], event['sender']['uid'], event['sender']['kernel']) == \
            (os.getpid(), os.getuid(), False)
        assert event['sender']['command'] == pathlib.Path('/proc/self/comm').read_text().strip()
    stop = only(events, 'stop')
    assert (stop['cause'], stop['cause_signal'], stop['grace_seconds']) == \
        ('signal', 'SIGINT', 500.0)


def test_more_urgent_stops(start, place, log):
    """A second and a third request, of workers that don't mind."""
    ready = place.fifo('ready')
    job = start([f'--events={log}', '--shutdown-timeout=600', *native('report_signals')],
                {'TELL': ready.path, 'STAY': '1'})
    ready.expect('ready', 1)
    job.signal(signal.SIGTERM)
    ready.expect('SIGTERM', 1)
    job.signal(signal.SIGTERM)
    ready.expect('SIGTERM', 1)
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143
    events = read(log)
    assert [(event['urgency'], event['signal']) for event in of(events, 'stop')] == \
        [('stop', 'SIGTERM'), ('hurry', 'SIGTERM'), ('kill', 'SIGKILL')]
    graces = [event['grace_seconds'] for event in of(events, 'stop')]
    assert graces[0] == 600 and 0 < graces[1] <= 5 and graces[2] == 0
    ended = only(events, 'worker_ended')
    assert (ended['signal'], ended['killed_by_launchd']) == ('SIGKILL', True)
    assert len(of(events, 'signal_received')) == 3


def test_a_request_that_comes_by_both_ways_is_one(start, place, log):
    """As from a batch system, which signals every process of a job."""
    ready = place.fifo('ready')
    job = start([f'--events={log}', LONG, *native('report_signals')],
                {'TELL': ready.path, 'STAY': '1'})
    ready.expect('ready', 1)
    os.kill(supervisor_of(job.pid), signal.SIGTERM)
    job.signal(signal.SIGTERM)
    ready.expect('SIGTERM', 1)
    until(lambda: of(read(log), 'stop'), 'the stop')
    # one that is still pending would swallow the next
    until(lambda: not int(status_of(job.pid)['ShdPnd'], 16) >> (signal.SIGTERM - 1) & 1, 'the guard')
    job.signal(signal.SIGTERM)
    until(lambda: [event['urgency'] for event in of(read(log), 'stop')] == ['stop', 'hurry'],
          'the second request')
    assert len(of(read(log), 'signal_received')) == 2
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143
    assert len(of(read(log), 'signal_received')) == 3


def test_the_end_of_the_grace_is_told(launch, log):
    result = launch([f'--events={log}', '--shutdown-timeout=0.2', '--max-runtime=3',
                     *native('report_signals')], {'STAY': '1'})
    assert result.rc == 124
    assert [(event['urgency'], event['cause']) for event in of(read(log), 'stop')] == \
        [('stop', 'max_runtime'), ('kill', 'max_runtime')]


def test_restarts(launch, log):
    result = launch([f'--events={log}', '--max-restarts=1', '--restart-delay=0.05',
                     *native('ending', '--nproc_per_node=2')], {'END_0': 'exit:3'})
    assert result.rc == 3
    events = read(log)
    assert [event['attempt'] for event in of(events, 'attempt_started')] == [0, 1]
    assert (only(events, 'restart')['next_attempt'], only(events, 'restart')['delay_seconds']) == \
        (1, 0.05)
    order = [kind for kind in kinds(events) if not kind.startswith('worker') and kind != 'stop']
    assert order == ['job_started', 'attempt_started', 'restart', 'attempt_started',
                     'check_started', 'check_ended', 'verdict', 'job_ended']
    assert only(events, 'restart')['reason'] == 'restart 1 of at most 1'
    assert only(events, 'verdict')['restart'] == {'decision': 'no', 'reason': 'the limit is reached'}
    assert only(events, 'verdict')['attempt'] == 1
    assert {event['attempt'] for event in of(events, 'worker_started')} == {0, 1}


def test_a_worker_that_cannot_be_started(launch, place, log):
    text = place.write('text', 'no program', 0o755)
    os.truncate(text, 0)
    pathlib.Path(text).write_bytes(b'\x7fELF' + bytes(60))
    result = launch([f'--events={log}', '--nproc_per_node=2', '--no_python', '--use_env', text])
    assert result.rc == 126
    events = read(log)
    ended = only(events, 'worker_ended')
    assert (ended['how'], ended['pid'], ended['rank']) == ('not_startable', None, 0)
    assert ended['error'] == 'Exec format error'
    assert not of(events, 'worker_started') and events[-1]['exit_code'] == 126


def test_a_descriptor_that_no_worker_has(start, place):
    ready = place.fifo('ready')
    end, begin = os.pipe()
    os.set_inheritable(begin, True)
    try:
        job = start([f'--events=fd:{begin}', *native('dump')], {'TELL': ready.path},
                    pass_fds=[begin])
        os.close(begin)
        begin = -1
        assert job.end().rc == 0
        with os.fdopen(os.dup(end)) as pipe:
            events = parse(pipe.read())  # to its end: nobody has it any more
    finally:
        os.close(end)
        if begin >= 0:
            os.close(begin)
    assert kinds(events)[0] == 'job_started' and kinds(events)[-1] == 'job_ended'
    assert set(place.dumps()[0]['fds']) == {'0', '1', '2'}


def test_a_reader_that_stops_holds_nobody_up(start, place):
    """Its pipe is full: files are written on, and the end of the job is as fast as without it."""
    go = place.fifo('go')
    end, begin = os.pipe()
    fcntl.fcntl(begin, fcntl.F_SETPIPE_SZ, 4096)
    os.set_inheritable(begin, True)
    script = 'trap "" USR1; i=0; while echo line $i; read -r go <$GO; do i=$((i + 1)); done'
    try:
        job = start([f'--events=fd:{begin}', '--log-dir=logs', '-r', '3', '--log-timestamps',
                     '--use_env', '--no-python', 'sh', '-c', script], {'GO': go.path},
                    pass_fds=[begin])
        os.close(begin)
        begin = -1
        until(lambda: list(place.path.glob('logs/*/attempt_0/0/stdout.log')), 'its log')
        logfile, = place.path.glob('logs/*/attempt_0/0/stdout.log')
        for count in range(100):
            until(lambda: f'line {count}\n' in logfile.read_text(), 'the line')
            os.kill(job.pid, signal.SIGUSR1)
            os.write(go.fd, b'\n')
        os.kill(job.pid, signal.SIGTERM)
        result = job.end()
    finally:
        os.close(end)
        if begin >= 0:
            os.close(begin)
    assert result.rc == 128 + signal.SIGTERM
    assert 'the disk does not respond' not in result.err
    assert result.err.count("the reader has stalled; no more events are written") == 1


def test_on_a_console_they_stand_between_lines(start, place):
    """Of workers that write their lines in pieces."""
    go = place.fifo('go')
    script = 'i=0; while [ $i -lt 300 ]; do i=$((i + 1)); printf "line "; echo $i; done'
    job = start(['--events=fd:1', '--nproc_per_node=3', '--use_env', '--no-python', 'sh', '-c',
                 f'trap "" USR1; echo begun; {script}; {script}; read -r go <$GO'], {'GO': go.path})
    until(lambda: job.said(0).count('begun\n') == 3, 'the first lines')
    for _ in range(50):
        os.kill(job.pid, signal.SIGUSR1)
        let_pass(.001, 'more than one event falls between two lines, and the workers write on')
    os.write(go.fd, b'\n\n\n')
    result = job.end()
    assert result.rc == 0
    lines = result.out.splitlines()
    events = parse(''.join(f'{line}\n' for line in lines if line.startswith('{')))
    assert kinds(events)[0] == 'job_started' and kinds(events)[-1] == 'job_ended'
    assert sorted(line for line in lines if not line.startswith('{')) == \
        sorted(['begun'] * 3 + [f'line {i}' for i in range(1, 301) for _ in range(6)])


@pytest.mark.parametrize('fd', [1, 2])
def test_the_last_one_is_a_line_behind_one_without_an_end(launch, fd):
    result = launch([f'--events=fd:{fd}', '--use_env', '--no-python', 'sh', '-c',
                     f'printf "no end" >&{fd}'], {'OMP_NUM_THREADS': '1'})
    *before, last = (result.out if fd == 1 else result.err).splitlines()
    assert json.loads(last)['event'] == 'job_ended' and 'no end' in before


def test_a_reader_that_comes_back_gets_them_soon(start, place):
    """Without another event that would bring them."""
    go = place.fifo('go')
    end, begin = os.pipe()
    fcntl.fcntl(begin, fcntl.F_SETPIPE_SZ, 4096)
    os.set_inheritable(begin, True)
    text = b''
    try:
        job = start([f'--events=fd:{begin}', '--nproc_per_node=64', '--use_env', '--no-python', 'sh',
                     '-c', 'read -r go <$GO'], {'GO': go.path}, pass_fds=[begin])
        os.close(begin)
        begin = -1
        # they have been told, whether or not anybody reads them
        supervisor = supervisor_of(job.pid)
        until(lambda: len(children_of(supervisor)) == 64 and is_idle(supervisor),
              'all workers, and launchd to have no more to do')
        while text.count(b'"worker_started"') < 64:
            text += os.read(end, 65536)
        os.write(go.fd, b'\n' * 64)
        with os.fdopen(os.dup(end), 'rb') as pipe:
            text += pipe.read()
        assert job.end().rc == 0
    finally:
        os.close(end)
        if begin >= 0:
            os.close(begin)
    assert kinds(parse(text.decode()))[-1] == 'job_ended'


@pytest.mark.parametrize('which, words', [
    ('closed', ['descriptor']),
    ('reading', ['descriptor', 'reading']),
])
def test_a_descriptor_that_cannot_be_written(refused, which, words):
    end, begin = os.pipe()
    try:
        number = end if which == 'reading' else 199
        refused([f'--events=fd:{number}', *native('dump')], '--events', str(number), *words,
                pass_fds=[end])
    finally:
        os.close(end)
        os.close(begin)


def test_runs_are_appended(launch, log):
    for _ in range(2):
        assert launch([f'--events={log}', *native('ending')], {'END': 'exit:0'}).rc == 0
    assert len(of(read(log), 'job_ended')) == 2


def test_a_full_disk_is_said_once_and_costs_nothing_else(launch, place):
    result = launch(['--events=/dev/full', *native('ending', '--nproc_per_node=2')],
                    {'END': 'exit:0', 'OMP_NUM_THREADS': '1'})
    assert result.rc == 0
    assert result.err == 'launchd: warning: --events /dev/full: write failed: No space ' \
        'left on device; no more events are written\n'


def test_without_it_nothing_is_opened(launch, place):
    before = set(place.path.iterdir())
    assert launch(native('ending'), {'END': 'exit:0'}).rc == 0
    assert set(place.path.iterdir()) == before


# --- several nodes

def test_nodes_that_join_and_are_lost(start, place):
    ready = place.fifo('ready')
    cluster = Cluster(start, 3, [f'--events={place.path}/events.%n', LONG, *native('ending')],
                      {'TELL': ready.path})
    ready.expect('ready', 3)
    supervisor = supervisor_of(cluster.jobs[2].pid)
    os.kill(supervisor, signal.SIGKILL)  # its guard ends what is left there, and tells the others
    place.orphans_expected = place.launcher_killed = True
    results = cluster.end()
    assert results[0].rc == 137
    logs = [read(place.path / f'events.{node}') for node in range(3)]
    assert sorted(event['node_rank'] for event in of(logs[0], 'node_joined')) == [1, 2]
    lost = only(logs[0], 'node_lost')
    assert lost['node_rank'] == 2 and lost['detail']
    after = logs[0][logs[0].index(lost) + 1:]
    assert kinds(after)[0] == 'stop' and after[0]['cause_node'] == 2
    for node in range(2):
        assert {event['node'] for event in logs[node]} == {node}
        stop = only(logs[node], 'stop')
        assert (stop['cause'], stop['cause_node'], stop['detail']) == \
            ('node_lost', 2, lost['detail'])
        assert only(logs[node], 'verdict')['exit_code'] == 137
        assert logs[node][-1]['event'] == 'job_ended' and logs[node][-1]['exit_code'] == 137
        assert only(logs[node], 'job_started')['world_size'] == 3
    assert not of(logs[1], 'node_joined') and not of(logs[1], 'node_lost')
    assert not of(logs[2], 'job_ended')


def test_a_failure_on_another_node_is_one_stop(start, place):
    """The node itself has stopped its workers before it hears that it must."""
    ready, go = place.fifo('ready'), place.fifo('go')
    cluster = Cluster(start, 2, [f'--events={place.path}/events.%n', LONG,
                                 *native('ending', '--nproc_per_node=2')],
                      {'TELL': ready.path, 'GO_3': go.path, 'END_3': 'exit:9'})
    ready.expect('ready', 4)
    go.go()
    assert [result.rc for result in cluster.end()] == [9, 9]
    for node in range(2):
        events = read(place.path / f'events.{node}')
        stop = only(events, 'stop')
        assert (stop['cause'], stop['cause_node']) == ('failure', 1)
        assert [event['rank'] for event in of(events, 'worker_started')] == \
            [2 * node, 2 * node + 1]
        assert only(events, 'verdict')['culprit_rank'] == 3
        assert not of(events, 'node_lost')


def test_without_a_placeholder_node_0_writes(start, place, log):
    cluster = Cluster(start, 2, [f'--events={log}', *native('ending')], {'END': 'exit:0'})
    assert [result.rc for result in cluster.end()] == [0, 0]
    events = read(log)
    assert {event['node'] for event in events} == {0}
    assert only(events, 'job_ended')


def test_nodes_without_ranks_have_the_right_files(start, place):
    """What happens before a node has its rank has a line, too, and is not in another's file."""
    cluster = C10d(start, 2, [f'--events={place.path}/events.%n', *native('ending')],
                   {'END': 'exit:0'})
    assert [result.rc for result in cluster.end()] == [0, 0]
    for node in range(2):
        events = read(place.path / f'events.{node}')
        assert only(events, 'job_started')['first_rank'] == node
        assert {event['node'] for event in events} <= {node, None}
        assert kinds(events)[-1] == 'job_ended'


def test_a_job_that_does_not_come_about(start, place):
    """Nodes contradict each other: it ends, and that is all."""
    cluster = Cluster(start, 2, [f'--events={place.path}/events.%n', *native('ending')],
                      each=lambda node: ([f'--rdzv-id=job{node}', '--control=required',
                                          '--join-timeout=1'], {}))
    results = cluster.end()
    assert results[0].rc != 0
    events = read(place.path / 'events.0')
    assert kinds(events) == ['job_ended'] and events[0]['exit_code'] == results[0].rc


# --- the man page

def section():
    page = (BUILD / 'config' / 'docs' / 'launchd.1').read_text()
    return re.search(r'^\.Sh EVENTS$(.*?)^\.Sh ', page, re.M | re.S)[1]


def test_the_man_page_has_every_name():
    text = section()
    names = {*COMMON, *SCHEMA, *SENDER}
    for schema in SCHEMA.values():
        names.update(schema)
        for allowed in schema.values():
            names.update(word for word in allowed if isinstance(word, str))
    assert {name for name in names if not re.search(rf'\b{name}\b', text)} == set()
