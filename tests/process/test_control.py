"""Issue 16: the control socket: who is answered, what is told, and that it costs a job nothing."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from control import Control, Refused, kill_both, socket_dir, socket_of
from harness import LIMIT, is_idle, is_running, let_pass, native, status_of, supervisor_of, until, worker
from needs import needs_root
from together import Cluster

LONG = '--shutdown-timeout=600'
MANY = 400  # requests: their answers are more than sockets hold


@pytest.fixture
def job(start, place):
    """A job of workers that run until they are signalled, and the pids of them."""
    def begin(*options, workers=2, env=None, command=('ending',), **how):
        ready = place.fifo('ready')
        running = start([*options, *native(command[0], f'--nproc_per_node={workers}'), *command[1:]],
                        {'TELL': ready.path, **(env or {})}, **how)
        running.pids = ready.expect('ready', workers)
        running.ready = ready
        return running
    return begin


def gone(place):
    assert not socket_dir(place).exists(), list(socket_dir(place).iterdir())


def test_status(job, place):
    before = time.time()
    running = job('--rdzv-id=r17', '--max-restarts=2')
    with Control(socket_of(running)) as control:
        status = control.ask('status')
    assert status['run_id'] == 'r17' and status['state'] == 'working'
    assert (status['attempt'], status['max_restarts']) == (0, 2)
    assert (status['nnodes'], status['nproc_per_node'], status['world_size']) == (1, 2, 2)
    assert status['node_rank'] == 0 and status['host'] == socket.gethostname()
    assert status['guard_pid'] == running.pid
    assert status['supervisor_pid'] == supervisor_of(running.pid)
    assert before - 1 <= status['started_at'] <= status['attempt_started_at'] <= time.time() + 1
    assert status['stopping'] is None and status['awaited'] == []
    assert [worker['rank'] for worker in status['workers']] == [0, 1]
    for rank, worker in enumerate(status['workers']):
        assert worker['pid'] == running.pids[rank] and worker['local_rank'] == rank
        assert worker['state'] == 'running' and worker['ended_at'] is None
        assert worker['exit_code'] is None and worker['signal'] is None
        assert before - 1 <= worker['started_at'] <= time.time() + 1
        assert 0 <= worker['cpu_seconds'] < LIMIT and worker['memory_bytes'] > 4096
        assert worker['stdout'] is None and worker['stderr'] is None
    assert os.stat(socket_dir(place)).st_mode & 0o7777 == 0o700
    running.signal(signal.SIGTERM)
    assert running.end().rc == 143
    gone(place)


def test_a_job_that_ends(job, place):
    """One worker has ended, another one is being stopped, and that is told."""
    go = place.fifo('go')
    running = job(LONG, env={'END_0': 'exit:3', 'GO': go.path, 'HELPERS_1': 'me+ignore'},
                  command=('stubborn', worker('ending')))
    with Control(socket_of(running)) as control:
        go.go()
        status = until(lambda: (lambda s: s if s['stopping'] else None)(control.ask('status')),
                       'the stop to be told')
        first, second = status['workers']
        assert status['stopping'] == 'a worker failed'
        assert (first['state'], first['exit_code'], first['signal']) == ('ended', 3, None)
        assert first['pid'] == running.pids[0] and first['ended_at'] >= first['started_at']
        assert first['memory_bytes'] is None
        assert second['state'] == 'stopping' and second['memory_bytes'] > 0
        assert control.ask('stop', now=True) == {}
    assert running.end().rc == 3
    gone(place)


def test_stop_and_who_asked(job):
    running = job()
    with Control(socket_of(running)) as control:
        assert control.ask('stop') == {}
        assert control.line() is None  # with the job
    result = running.end()
    assert result.rc == 143
    assert re.search(rf'SIGTERM.*pid {os.getpid()}\b', result.err), result.err


def test_stop_now(job):
    """Workers that take no SIGTERM, and a grace of ten minutes."""
    running = job(LONG, command=('ignore_signals',))
    with Control(socket_of(running)) as control:
        control.ask('stop')
        control.ask('stop', now=True)
    assert running.end().rc == 143


def test_restart(job):
    running = job('--restart-delay=0')
    with Control(socket_of(running)) as control:
        assert control.ask('restart') == {}
        again = running.ready.expect('ready', 2)
        assert not set(again.values()) & set(running.pids.values())
        assert until(lambda: control.ask('status')['attempt'] == 1, 'the next attempt')
        control.ask('stop')
    assert running.end().rc == 143


def test_signal(start, place):
    got, ready = place.fifo('got'), place.fifo('ready')
    script = place.write('signals.py', f'''
import os, signal
def tell(fifo, text):
    with open(fifo, 'w') as f:
        f.write(f'{{os.environ["RANK"]}} {{os.getpid()}} {{text}}\\n')
for number in signal.SIGUSR1, signal.SIGUSR2:
    signal.signal(number, lambda number, _: tell({got.path!r}, signal.Signals(number).name))
tell({ready.path!r}, 'ready')
while True:
    signal.pause()
''')
    running = start(['--nproc_per_node=2', '--use_env', '--no_python', sys.executable, script])
    ready.expect('ready', 2)
    with Control(socket_of(running)) as control:
        assert control.ask('signal', signal='USR1', ranks=[1]) == {'sent': [1]}
        assert got.line()[::2] == (1, 'SIGUSR1')
        assert control.ask('signal', signal='SIGUSR2') == {'sent': [0, 1]}
        assert sorted(got.line()[::2] for _ in range(2)) == [(0, 'SIGUSR2'), (1, 'SIGUSR2')]
        with pytest.raises(Refused, match='no-rank.*there is no rank 2; node 0 has ranks 0 to 1'):
            control.ask('signal', signal='USR1', ranks=[0, 2])
        assert control.ask('signal', signal='KILL', ranks=[0]) == {'sent': [0]}
    result = running.end()
    assert result.rc == 137
    assert f'SIGUSR1 is sent to rank 1, as pid {os.getpid()} (uid {os.getuid()}) asks' in result.err


def test_env_is_the_workers(job):
    running = job('--env=TEAPOT=full of "tea"')
    with Control(socket_of(running)) as control:
        for rank, pid in running.pids.items():
            real = pathlib.Path(f'/proc/{pid}/environ').read_bytes().decode().split('\0')[:-1]
            told = control.ask('env', rank=rank)['env']
            assert sorted(told) == sorted(real)
            assert 'TEAPOT=full of "tea"' in told and f'RANK={rank}' in told
        with pytest.raises(Refused, match='no-rank'):
            control.ask('env', rank=2)
        control.ask('stop')
    running.end()


@pytest.mark.parametrize('options', [['--log-dir=logs', '-t3'], ['--log-dir=logs', '-r3'], ['--log-line-prefix-template=[${rank}] ']])
def test_what_workers_wrote_last(start, place, options):
    wrote = place.fifo('wrote')
    script = place.write('talks.py', f'''
import os, time
print('\\n'.join(f'step {{i}}' for i in range(30)), flush=True)
os.write(2, b'a "warning"\\n')
open({wrote.path!r}, 'w').write(f'{{os.environ["RANK"]}} {{os.getpid()}} wrote\\n')
time.sleep(600)
''')
    running = start([*options, '--nproc_per_node=2', '--use_env', '--no_python', sys.executable, script])
    wrote.expect('wrote', 2)
    last = ['step 29', 'a "warning"']
    with Control(socket_of(running)) as control:
        def knows():
            text = control.ask('tail', rank=1, lines=1000)['text']
            return text if len(text.splitlines()) == 31 else None
        lines = until(knows, 'all to be read').splitlines()
        assert sorted(lines) == sorted([f'step {i}' for i in range(30)] + last[1:])
        assert control.ask('tail', rank=0, lines=2)['text'].splitlines() in (
            last, ['step 28', 'step 29'])
        assert len(control.ask('tail', rank=0)['text'].splitlines()) == 10
        status = control.ask('status')
        assert all(worker['last_line'] in last for worker in status['workers'])
        if '--log-dir=logs' in options:
            for worker in status['workers']:
                assert 'step 29\n' in pathlib.Path(worker['stdout']).read_text()
                assert pathlib.Path(worker['stderr']).read_text() == 'a "warning"\n'
        with pytest.raises(Refused, match='no-rank'):
            control.ask('tail', rank=7)
        control.ask('stop')
    running.end()


def test_nothing_is_known_of_output_that_is_not_read(job):
    running = job(out=subprocess.DEVNULL, err=subprocess.DEVNULL)
    with Control(socket_of(running)) as control:
        assert [worker['last_line'] for worker in control.ask('status')['workers']] == [None, None]
        control.ask('stop')
    running.process.wait()


def test_reopen(job, place):
    running = job('--log-dir=logs', '-r3', '--log-max-size=1G')
    with Control(socket_of(running)) as control:
        log = pathlib.Path(control.ask('status')['workers'][0]['stdout'])
        log.rename(log.with_suffix('.1'))
        assert control.ask('reopen') == {}
        until(log.exists, 'the file to be made again')
        control.ask('stop')
    running.end()


def test_events(job):
    """A follower has all from now on, with the verdict last; others come and go meanwhile."""
    running = job('--max-restarts=1', '--restart-delay=0')
    with Control(socket_of(running)) as follower, Control(socket_of(running)) as control:
        follower.send('events', follow=True)
        control.ask('status')
        until(lambda: control.ask('status'), 'both to be served')
        os.kill(running.pids[1], signal.SIGKILL)
        running.ready.expect('ready', 2)
        control.ask('stop')
        lines = []
        while line := follower.line():
            lines.append(line)
        assert all(line['id'] == 0 for line in lines)
        assert lines.pop()['result'] == {}
        kinds = [line['event']['event'] for line in lines]
        assert kinds[0] == 'worker_ended' and kinds[-1] == 'verdict'
        assert kinds.count('attempt_started') == 1 and kinds.count('restart') == 1
        assert lines[0]['event']['rank'] == 1
    running.end()


def test_metrics_and_level(job):
    running = job()
    with Control(socket_of(running)) as control:
        page = control.ask('metrics')['text']
        assert 'launchd_workers{' in page and 'state="running"} 2\n' in page
        assert control.ask('loglevel') == {'level': 'info'}
        assert control.ask('loglevel', level='quiet') == {'level': 'quiet'}
        control.ask('signal', signal='CONT')
        assert control.ask('loglevel', level='info') == {'level': 'info'}
        control.ask('signal', signal='CONT', ranks=[0])
        control.ask('stop')
    said = running.end().err
    assert 'SIGCONT is sent to ranks 0-1' not in said and 'SIGCONT is sent to rank 0,' in said


def test_errors_leave_the_connection(job):
    running = job()
    with Control(socket_of(running)) as control:
        for line, code in (b'{}', 'version'), (b'\xff\xfe', 'malformed'), (b'[' * 4000, 'malformed'), \
                (b'x' * 100000, 'too-long'), (b'{"v":1,"id":1,"op":"status","nodes":1}', 'malformed'):
            control.socket.sendall(line + b'\n')
            assert control.line()['error']['code'] == code
        assert control.ask('status')['state'] == 'working'
        control.ask('stop')
    running.end()


def test_requests_in_flight(job):
    """All are sent before the first answer is read; meanwhile a worker's end is acted on."""
    running = job('--max-restarts=1', '--restart-delay=0')
    with Control(socket_of(running)) as control, Control(socket_of(running)) as other:
        control.socket.setblocking(False)
        requests = b''.join(json.dumps({'v': 1, 'id': i, 'op': 'status'}).encode() + b'\n'
                            for i in range(MANY))
        sent = 0
        try:
            while sent < len(requests):
                sent += control.socket.send(requests[sent:])
        except BlockingIOError:
            pass  # it is not read as long as its answers aren't
        control.socket.settimeout(LIMIT)
        assert other.ask('status')['state'] == 'working'
        os.kill(running.pids[0], signal.SIGKILL)
        running.ready.expect('ready', 2)
        whole = requests[:sent].count(b'\n')
        assert whole > 0
        for i in range(whole):
            line = control.line()
            assert line['id'] == i and line['ok']
        control.socket.sendall(requests[sent:])
        for i in range(whole, MANY):
            assert control.line()['id'] == i
        other.ask('stop')
    running.end()


def test_one_that_does_not_read_and_one_that_goes_away(job):
    running = job()
    slow = [Control(socket_of(running)) for _ in range(8)]
    for control in slow:
        for _ in range(20):
            control.send('env', rank=0)
            control.send('status')
    with Control(socket_of(running)) as control:
        assert control.ask('status')['state'] == 'working'
        for gone_one in slow[:4]:
            gone_one.close()
        assert control.ask('status')['state'] == 'working'
        descriptors = pathlib.Path(f'/proc/{supervisor_of(running.pid)}/fd')
        control.ask('stop')
        running.end()
        assert not descriptors.exists()
    for control in slow[4:]:
        control.close()


@needs_root
def test_a_foreign_user_is_refused(job, place):
    """Whoever gets past the directory's mode is refused by the launcher itself."""
    running = job()
    os.chmod(place.path, 0o755)
    with Control(socket_of(running)) as control:
        for path in (place.run, socket_dir(place)):
            os.chmod(path, 0o755)
        os.chmod(socket_of(running), 0o777)
        text = ('import os, socket, sys\nos.setgid(65534)\nos.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\n'
                's.connect(sys.argv[1])\n'
                'try:\n'
                '    s.sendall(b\'{"v":1,"id":1,"op":"stop"}\\n\' * int(sys.argv[2]))\n'
                'except BrokenPipeError:\n'
                '    pass\n'
                'print(s.makefile().readline())')
        for speaks in '0', '1':
            done = subprocess.run([sys.executable, '-c', text, socket_of(running), speaks],
                                  capture_output=True, text=True, timeout=LIMIT, check=False)
            assert done.returncode == 0, done.stderr
            line = json.loads(done.stdout)
            assert line['id'] is None and line['error']['code'] == 'denied'
        assert control.ask('status')['state'] == 'working'
        control.ask('stop')
    running.end()


def test_none(job, place):
    running = job('--ctl-socket=none')
    running.signal(signal.SIGTERM)
    assert running.end().rc == 143
    gone(place)


def test_no_directory(job, place):
    """The job runs without a socket; it is said only to who wants to know all."""
    wide = place.path / 'wide'
    wide.mkdir()
    wide.chmod(0o777)
    running = job(env={'RUNTIME_DIRECTORY': str(wide)})
    with Control(socket_of(running)) as control:  # the next one
        control.ask('stop')
    running.end()
    assert not list(wide.iterdir())


@pytest.mark.parametrize('who', ['guard', 'supervisor', 'both'])
def test_killed_ones_leave_no_socket(job, place, who):
    """Unless both are killed at once, when nobody is there to remove it."""
    running = job()
    path = socket_of(running)
    until(path.exists, 'the socket')
    supervisor = supervisor_of(running.pid)
    if who == 'supervisor':
        os.kill(supervisor, signal.SIGKILL)
        running.end()
        gone(place)
        return
    if who == 'both':
        kill_both(running)
        path.unlink()
        return
    running.kill()
    running.process.wait()
    until(lambda: not is_running(supervisor), 'the supervisor to end')
    gone(place)


def test_it_costs_nothing(job):
    """While nobody asks nothing wakes up; and a question wakes no worker."""
    running = job()
    supervisor = supervisor_of(running.pid)
    until(socket_of(running).exists, 'the socket')

    def switches(pids):
        return [status_of(pid)['voluntary_ctxt_switches'] for pid in pids]

    with Control(socket_of(running)) as control:
        control.ask('status')
        until(lambda: is_idle(supervisor), 'it to be idle')
        workers = switches(running.pids.values())
        ours = switches([running.pid, supervisor])
        let_pass(1, 'nothing wakes up')
        assert switches([running.pid, supervisor]) == ours
        for _ in range(50):
            control.ask('status')
        assert switches(running.pids.values()) == workers
        assert switches([running.pid]) == ours[:1]
        control.ask('stop')
    running.end()


def test_while_nodes_meet(start, place):
    """Whom it waits for; then ranks of the whole job."""
    cluster = Cluster(start, 3, native('ending', '--nproc_per_node=2'), begin=False)
    cluster.begin(0)
    with Control(socket_of(cluster.jobs[0])) as control:
        status = until(lambda: (lambda s: s if s['state'] == 'meeting' else None)(control.ask('status')),
                       'the meeting')
        assert status['awaited'] == [1, 2] and status['workers'] == []
        with pytest.raises(Refused, match='not-now.*have not met'):
            control.ask('env', rank=0)
        with pytest.raises(Refused, match='not-now'):
            control.ask('restart')
        cluster.begin(1)
        until(lambda: control.ask('status')['awaited'] == [2], 'node 1 to have come')
        cluster.begin(2)
        with Control(socket_of(cluster.jobs[1])) as other:
            until(lambda: other.ask('status')['state'] == 'working', 'all to be there')
            status = other.ask('status')
            assert status['node_rank'] == 1
            assert [worker['rank'] for worker in status['workers']] == [2, 3]
            assert [worker['local_rank'] for worker in status['workers']] == [0, 1]
            with pytest.raises(Refused, match='elsewhere.*rank 0 runs on another node'):
                other.ask('env', rank=0)
            other.ask('stop')
    assert [result.rc for result in cluster.end()] == [143] * 3
    gone(place)
