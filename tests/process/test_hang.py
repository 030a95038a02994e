"""--on-hang: a job that hangs is noticed, and named by what its workers do. Its workers are small
programs that wait for each other over TCP, as gloo's do; real jobs are in tests/witness."""
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from control import Control, socket_of
from harness import BUILD, children_of, is_running, native, status_of, stop, supervisor_of, until
from test_events import of
from together import Cluster, errors, exit_codes, free_ports, warnings

HOST = socket.gethostname()

# Rank 0 hears all others, then answers them. Before a step each does what its file `trouble` says,
# for as long as that is there; all the time, beside that, what its variable BESIDE.RANK says.
WORKER = '''
import contextlib, mmap, multiprocessing, os, pathlib, socket, subprocess, sys, threading, time
rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
place, port = pathlib.Path(sys.argv[1]), int(sys.argv[2])
trouble = place / f'trouble.{rank}'
end, listens = place / 'end', place / f"listens.{os.environ['TORCHELASTIC_RESTART_COUNT']}"
with contextlib.suppress(FileExistsError):
    os.mkfifo(listens)
listens = os.open(listens, os.O_RDWR)
if rank == 0:
    listener = socket.create_server(('127.0.0.1', port))
    os.write(listens, bytes(size - 1))
    peers = [listener.accept()[0] for _ in range(size - 1)]
else:
    os.read(listens, 1)
    peers = [socket.create_connection(('127.0.0.1', port))]
(place / f'new.{rank}').write_text(str(os.getpid()))
(place / f'new.{rank}').rename(place / f'pid.{rank}')
def runs_programs():
    while True:
        subprocess.run(['/bin/true'])
        time.sleep(1)
def samples():
    while True:
        for path in pathlib.Path('/proc').glob('[0-9]*/status'):
            with contextlib.suppress(OSError):
                path.read_text()
        time.sleep(1)
def faults():
    while True:
        with mmap.mmap(-1, 8 << 20) as room:
            touch(room)
        time.sleep(3)
def touch(room):
    for at in range(0, len(room), 4096):
        room[at] = 1
def spin():
    room, last = bytearray(8 << 20), time.monotonic()
    while True:
        if time.monotonic() - last > 5:
            touch(room)  # now and then
            last = time.monotonic()
def load(port):
    def receive():
        loader = socket.create_connection(('127.0.0.1', port))
        while loader.recv(1 << 20):
            pass
        os.write(filled, b'.')
    ready, filled = os.pipe()
    fork.Process(target=receive).start()
    os.read(ready, 1)
    trouble.unlink()
fork = multiprocessing.get_context('fork')
beside = os.environ.get(f'BESIDE_{rank}', '')
if beside == 'child samples':
    fork.Process(target=samples, daemon=True).start()
elif beside:
    threading.Thread(target={'runs programs': runs_programs, 'samples': samples, 'faults': faults}[beside],
                     daemon=True).start()
def step(last):
    word = b'e' if last else b'g'
    if rank == 0:
        for peer in peers:
            peer.recv(1)
        for peer in peers:
            peer.send(word)
        return last
    time.sleep(0.02 * rank)  # so that each but the last one waits for the others
    peers[0].send(b's')
    return peers[0].recv(1) != b'g'
step(False)
while True:
    while trouble.exists():
        what = trouble.read_text()
        if what == 'spin':
            spin()
        elif what.startswith('load'):
            load(int(what.split()[1]))
        elif what == 'lock':
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()
        elif what == 'now and then':
            time.sleep(8)
            for _ in range(12):
                open('/dev/zero', 'rb').read(1 << 20)
                time.sleep(2)
            trouble.unlink()
        elif what == 'child':
            subprocess.run(['sleep', '1000'])
        else:
            time.sleep(1000 if what == 'sleep' else 0.05)
    if step(end.exists()):
        break
    time.sleep(0.05)  # a step takes a while
'''


class Job:
    def __init__(self, start, place, *options, nodes=1, nproc=3, env=None):
        self.place = place
        script = place.write('job.py', WORKER)
        self.cluster = Cluster(
            start, nodes, [f'--events={place.path}/events', f'--report={place.path}/report',
                           f'--nproc_per_node={nproc}', '--use_env', *options, script, str(place.path),
                           str(free_ports('127.0.0.1'))], env or {},
            lambda node: ([], {}))
        self.size = nodes * nproc
        self.started()

    def started(self):
        until(lambda: all((self.place.path / f'pid.{rank}').exists() for rank in range(self.size)),
              'all workers')

    def pid(self, rank):
        return int((self.place.path / f'pid.{rank}').read_text())

    def trouble(self, rank, what):
        self.place.write(f'trouble.{rank}', what)

    def calm(self, rank):
        (self.place.path / f'trouble.{rank}').unlink()

    def events(self):
        whole, _, _ = (self.place.path / 'events').read_text().rpartition('\n')
        return [json.loads(line) for line in whole.splitlines()]

    def hangs(self, state=None):
        return [event for event in self.events() if event['event'] == 'hang' and
                state in (None, event['state'])]

    def await_hang(self, state):
        return until(lambda: self.hangs(state), f'the state {state}')[0]

    def end(self):
        (self.place.path / 'end').touch()
        return self.cluster.end()


@pytest.fixture
def job(start, place):
    def begin(*how, **more):
        return Job(start, place, *how, **more)

    return begin


@pytest.mark.quick
def test_one_that_is_stopped_is_named_and_the_job_moves_again(job):
    one = job('--on-hang=report')
    stop(one.pid(1))
    hang = one.await_hang('suspect')
    assert (hang['class'], hang['ranks']) == ('stopped', [1])
    assert 'rank 1 is stopped: by SIGSTOP' in hang['text']
    with Control(socket_of(one.cluster.jobs[0])) as control:
        assert 'rank 1 is stopped' in control.ask('status')['hang']
    os.kill(one.pid(1), signal.SIGCONT)
    one.await_hang('cleared')
    [result] = one.end()
    assert result.rc == 0
    [warning] = warnings(result)
    assert 'the job may hang, nothing has moved for ' in warning and 'rank 1 is stopped' in warning
    assert 'the job moves again' in result.err


@pytest.mark.parametrize('what, class_', [('sleep', 'outside'), ('spin', 'spinning')])
def test_one_that_others_wait_for(job, what, class_):
    one = job('--on-hang=report')
    one.trouble(2, what)
    hang = one.await_hang('suspect')
    assert (hang['class'], hang['ranks']) == (class_, [2])
    one.cluster.jobs[0].signal(signal.SIGTERM)
    assert one.end()[0].rc == 143


def test_on_the_other_node(job):
    one = job('--on-hang=report', nodes=2, nproc=2)
    stop(one.pid(3))
    hang = one.await_hang('suspect')
    assert (hang['class'], hang['ranks']) == ('stopped', [3])
    assert f'rank 3 is on {HOST} (node 1)' in hang['text']
    one.cluster.jobs[0].signal(signal.SIGTERM)
    assert exit_codes(one.end()) == [143, 143]


def looker(one, but=()):
    """The process that looks at the workers, other than those."""
    return until(lambda: [pid for pid in children_of(supervisor_of(one.cluster.jobs[0].pid))
                          if status_of(pid).get('Name') == 'hang-look' and pid not in but], 'hang-look')[0]


def stop_lookers(one, count):
    """So many, one after the other: each takes the place of the one before."""
    seen = []
    while len(seen) < count:
        seen.append(looker(one, seen))
        stop(seen[-1])
    return seen


@pytest.mark.long
def test_a_look_that_is_stopped_names_no_rank_of_a_job_that_moves(job):
    """For longer than --on-hang-after. It is killed and replaced."""
    one = job('--on-hang=stop', '--on-hang-after=10')
    seen = stop_lookers(one, 2)
    looker(one, seen)
    assert not any(map(is_running, seen))
    assert one.end()[0].rc == 0
    assert not one.hangs()


def test_a_look_that_is_stopped_hides_no_hang_and_names_nobody_else(job):
    one = job('--on-hang=report')
    first = looker(one)
    one.trouble(1, 'sleep')
    stop(first)
    one.await_hang('suspect')
    assert {tuple(hang['ranks']) for hang in one.hangs()} == {(1,)}
    one.cluster.jobs[0].signal(signal.SIGTERM)
    assert one.end()[0].rc == 143


@pytest.mark.long
def test_looks_that_never_finish_are_said_once_and_blame_nobody(job):
    """Of three in a row; a child may have finished its first look before it is stopped."""
    one = job('--on-hang=stop', '--on-hang-after=10')
    stop_lookers(one, 4)
    [result] = one.end()
    assert result.rc == 0
    assert [line.count('got stuck each time') for line in warnings(result)] == [1]
    assert not one.hangs()


def test_stop(job):
    """After --on-hang-after and not before."""
    one = job('--on-hang=stop', '--on-hang-after=10')
    one.trouble(2, 'sleep')
    [result] = one.cluster.end()
    assert result.rc == 121
    assert re.search(r'root cause: the job hung after [\d.]+ s: rank 2 is outside what all others wait in', errors(result)[0])
    events = one.events()
    states = [event['state'] for event in of(events, 'hang')]
    assert states[0] == 'suspect' and states[-1] == 'certain' and states.count('certain') == 1
    assert of(events, 'hang')[-1]['quiet_seconds'] >= 10
    report = json.loads((one.place.path / 'report').read_text())
    assert report['cause']['kind'] == 'hang' and 'rank 2 ' in report['cause']['detail']
    assert report['job']['exit_code'] == 121


def test_restart_counts_as_a_failure(job, place):
    one = job('--on-hang=restart', '--on-hang-after=10', '--max-restarts=1', f'--blackbox={place.path}/box')
    one.trouble(2, 'sleep')
    before = one.pid(2)
    one.await_hang('certain')
    one.calm(2)
    until(lambda: one.pid(2) != before, 'the next attempt')
    [result] = one.end()
    assert result.rc == 0
    assert 'the job hangs: rank 2 ' in result.err
    [kept] = (place.path / 'box').iterdir()
    assert ('launchd: warning: the job hung; restart 1 of at most 1 starts now\n'
            f'launchd: warning: evidence: launchd --explain {kept}\n') in result.err


def looks_at(place, rank):
    trace = place.path / 'trace'
    return trace.exists() and trace.read_text().count(f'rank={rank} ')


@pytest.mark.parametrize('beside', ['runs programs', 'samples', 'child samples'])
def test_a_hang_beside_what_always_goes_on(job, place, beside):
    """A monitor is no sign of life: it does the same while the job moves."""
    one = job('--on-hang=report', f'--hang-trace={place.path}/trace', env={'BESIDE_2': beside})
    until(lambda: looks_at(place, 2) > 5, 'looks at a job that moves')
    one.trouble(2, 'sleep')
    hang = one.await_hang('suspect')
    assert (hang['class'], hang['ranks']) == ('outside', [2])
    one.cluster.jobs[0].signal(signal.SIGTERM)
    assert one.end()[0].rc == 143
    assert [event['state'] for event in one.hangs()] == ['suspect']


def test_one_that_spins_is_ended(job):
    """One rank's CPU time is no progress, even if it touches memory now and then; neither are page
    faults of a peer."""
    one = job('--on-hang=stop', '--on-hang-after=10', env={'BESIDE_1': 'faults'})
    one.trouble(2, 'spin')
    [result] = one.cluster.end()
    assert result.rc == 121
    events = of(one.events(), 'hang')
    assert [event['state'] for event in events] == ['suspect', 'certain']
    assert (events[-1]['class'], events[-1]['ranks']) == ('spinning', [2])


def send_slowly(listener, seconds):
    """1 MB/s to whoever comes."""
    with listener.accept()[0] as peer:
        for _ in range(8 * seconds):
            peer.sendall(bytes(125_000))
            time.sleep(0.125)


def test_a_loader_that_receives_is_no_hang(job):
    """A rank waits for its child, which uses no CPU time and reads no file: what comes over the
    child's socket is work."""
    one = job('--on-hang=stop', '--on-hang-after=10')
    with socket.create_server(('127.0.0.1', 0)) as listener:
        sends = threading.Thread(target=send_slowly, args=[listener, 18])
        sends.start()
        one.trouble(1, f'load {listener.getsockname()[1]}')
        sends.join()
    until(lambda: not (one.place.path / 'trouble.1').exists(), 'the data')
    assert one.end()[0].rc == 0
    assert not one.hangs()


def test_one_that_works_in_every_second_look_is_not_ended(job):
    """Which clears no suspicion."""
    one = job('--on-hang=stop', '--on-hang-after=15')
    one.trouble(1, 'now and then')
    one.await_hang('suspect')
    until(lambda: not (one.place.path / 'trouble.1').exists() or one.hangs('certain'), 'the end of its work')
    assert not one.hangs('certain')
    assert one.end()[0].rc == 0


def test_dump_keeps_what_can_be_known_and_the_job_goes_on(job, place):
    one = job('--on-hang=dump', '--on-hang-after=10', f'--blackbox={place.path}/box')
    one.trouble(2, 'sleepy')
    one.await_hang('certain')
    [kept] = until(lambda: of(one.events(), 'blackbox'), 'the bundle')
    assert kept['error'] is None and kept['path'].startswith(f'{place.path}/box/')
    one.calm(2)
    one.await_hang('cleared')
    result = one.end()[0]
    assert result.rc == 0
    assert f'launchd: note: evidence: launchd --explain {os.path.dirname(kept["path"])}\n' in result.err


def test_dump_needs_a_place(refused):
    refused(native('ending', '--on-hang=dump'), '--on-hang', 'dump', '--blackbox')


def test_a_job_that_its_user_suspends_is_none_that_hangs(job):
    one = job('--on-hang=report')
    launcher = one.cluster.jobs[0]
    launcher.signal(signal.SIGTSTP)
    until(lambda: status_of(one.pid(1))['State'][0] == 'T', 'the workers to be stopped')
    with pytest.raises(AssertionError):
        until(one.hangs, 'a hang', 15)
    launcher.signal(signal.SIGCONT)
    assert one.end()[0].rc == 0
    assert not one.hangs()


def test_with_progress_it_is_reported_unless_the_user_says_otherwise(job, place):
    one = job(f'--progress=file:{place.path}/steps')
    stop(one.pid(1))
    one.await_hang('suspect')
    place.write('steps', '17')
    one.await_hang('cleared')
    os.kill(one.pid(1), signal.SIGCONT)
    assert one.end()[0].rc == 0


def news_of(trace):
    return [line for line in trace.splitlines() if line.split()[1] in ('suspect', 'cleared', 'certain')]


def test_what_was_seen_can_be_judged_again(job, place):
    """--hang-trace has all that counts: the same comes of it, at the same times."""
    one = job(f'--hang-trace={place.path}/trace', '--store=agent')
    one.trouble(2, 'sleepy')
    one.await_hang('suspect')
    one.calm(2)
    one.await_hang('cleared')
    assert one.end()[0].rc == 0
    trace = (place.path / 'trace').read_text()
    again = subprocess.run([BUILD / 'tests/unit/daemon/witness/witness_trace', 'replay'], input=trace, text=True,
                           capture_output=True, check=True)
    assert again.stdout.splitlines() == news_of(trace)
    assert [line.split()[1] for line in news_of(trace)] == ['suspect', 'cleared']
    assert ' suspect outside 2 rank 2 is outside' in trace


def test_a_trace_needs_who_looks(refused):
    refused(native('ending', '--on-hang=off', '--hang-trace=trace'), '--hang-trace', '--on-hang')
