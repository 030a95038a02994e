"""--on-hang and NCCL: workers that are alike in /proc are told apart by what NCCL's RAS counts. RAS is a fake."""
import json
import os
import signal

import pytest

from fake_ras import Ras, json_answer
from harness import children_of, is_running, let_pass, status_of, stop, supervisor_of, until

# Nobody has a connection to anybody, and all wait in the same way.
WORKER = '''
import os, pathlib, select, sys
place, rank = pathlib.Path(sys.argv[1]), os.environ['RANK']
end = os.open(place / 'end', os.O_RDONLY)
(place / f'new.{rank}').write_text(str(os.getpid()))
(place / f'new.{rank}').rename(place / f'pid.{rank}')
select.select([end], [], [])
'''
RANKS = 3
TEXT = (b'ERROR: Unknown command SET FORMAT json\nOK\nNCCL version 2.27.5 compiled with CUDA 12.9\n\n'
        b'Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n'
        b'    0         1         1         3         3         3   RUNNING  %s\n\nErrors\n======\n\n'
        b'Warnings\n========\n\n%s')
BEHIND = (b'#0-0 (cf264af53edbe986) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n'
          b'  2 ranks have launched up to operation 42\n  Rank 1 has launched up to operation 41 -- GPU 1 managed by '
          b'process 101 on node 127.0.0.1\n\n')


class Job:
    def __init__(self, start, place, env, *options, script=WORKER):
        self.place = place
        self.over = place.fifo('end')
        self.launcher = start(
            [f'--events={place.path}/events', f'--nproc_per_node={RANKS}', *options, '--use_env',
             place.write('job.py', script), str(place.path)], env)
        until(lambda: all((place.path / f'pid.{rank}').exists() for rank in range(RANKS)), 'workers')

    def asks(self):
        return [pid for pid in children_of(supervisor_of(self.launcher.pid))
                if status_of(pid).get('Name') == 'hang-ras']

    def hangs(self, state):
        try:
            whole, _, _ = (self.place.path / 'events').read_text().rpartition('\n')
        except FileNotFoundError:
            return []
        return [event for event in map(json.loads, whole.splitlines())
                if event['event'] == 'hang' and event['state'] == state]

    def await_hang(self):
        return until(lambda: self.hangs('suspect'), 'a suspicion')[0]

    def end(self):
        self.over.go()
        return self.launcher.end()


@pytest.fixture
def job(start, place):
    def begin(env, *options):
        return Job(start, place, env, *(options or ('--on-hang=report',)))

    return begin


@pytest.fixture
def ras():
    made = []

    def make(answer, **how):
        made.append(Ras(answer, **how))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize('answer, class_, ranks, text', [
    (json_answer({0: 5, 1: 4, 2: 5}), 'outside', [1],
     'has started 5 collectives of a communicator of NCCL\'s, while others have 6'),
    ([TEXT % (b'MISMATCH', BEHIND)], 'outside', [1], 'while others have 42'),
    (json_answer({0: 5, 2: 5}, lost=[1]), 'outside', [1], 'its process does not answer NCCL\'s RAS any more'),
    (json_answer({0: 5, 1: 5, 2: 5}), 'all_wait', [], 'all have started the same collectives of NCCL\'s'),
], ids=['one is behind', 'one is behind, in a text', 'one does not answer', 'all are even'])
def test_what_nccl_counts(job, ras, answer, class_, ranks, text):
    fake = ras(lambda: answer)
    one = job(fake.env)
    hang = one.await_hang()
    assert (hang['class'], hang['ranks']) == (class_, ranks)
    assert text in hang['text']
    assert fake.asked == b'SET FORMAT json\nTIMEOUT 3\nVERBOSE STATUS\n'
    assert one.end().rc == 0


def test_counts_that_move(job, ras):
    """The job works, though nothing else tells so; it is asked at a low rate."""
    asked = []

    def answer():
        asked.append(None)
        return json_answer({0: 5 + len(asked), 1: 4 + len(asked), 2: 5 + len(asked)})

    one = job(ras(answer).env)
    until(lambda: len(asked) >= 5, 'five questions', 100)
    assert not one.hangs('suspect')
    assert one.end().rc == 0


@pytest.mark.parametrize('pieces, hold', [
    ([], True), ([json_answer({0: 5, 1: 4, 2: 5})[0][:400]], True), ([b'\xff\x00 garbage\n' * 4000], False), ([], False),
], ids=['silence', 'half an answer', 'garbage', 'nothing'])
def test_an_answer_that_is_none(job, ras, place, pieces, hold):
    """It costs its child only: a hang is still found by other means."""
    fake = ras(lambda: pieces, hold=hold)
    one = job(fake.env)
    until(lambda: fake.clients >= 1, 'a question')
    [asks] = until(one.asks, 'who asks')
    # of those that sleep alike one that is stopped differs
    stop(int((place.path / 'pid.2').read_text()))
    hang = one.await_hang()
    assert (hang['class'], hang['ranks']) == ('stopped', [2])
    os.kill(int((place.path / 'pid.2').read_text()), signal.SIGKILL)
    assert one.launcher.end().rc == 137
    assert not is_running(asks)


@pytest.mark.parametrize('more, options', [
    ({'NCCL_RAS_ENABLE': '0'}, ['--on-hang=report']), ({}, ['--shutdown-timeout=30']),
], ids=['RAS is off', 'nobody looks for hangs'])
def test_nobody_asks(job, ras, more, options):
    fake = ras(lambda: json_answer({0: 5, 1: 4, 2: 5}))
    one = job({**fake.env, **more}, *options)
    let_pass(6, 'nobody asks')
    assert fake.clients == 0 and not one.asks()
    assert one.end().rc == 0


@pytest.mark.xdist_group('nccls-own-port')
def test_another_jobs_ras_is_not_asked(job, ras):
    """It is at NCCL's own port; the workers' address is taken from them, so that nobody knows it."""
    other = ras(lambda: json_answer({0: 5, 1: 4, 2: 5}), port=28028)
    one = job({}, '--on-hang=report', '--wrap=env -u NCCL_RAS_ADDR')
    let_pass(6, 'nobody asks')
    assert other.clients == 0 and not one.asks()
    assert one.end().rc == 0


# Each asks the store as the monitor of ProcessGroupNCCL does, until it is told to stop to.
POLLS = '''
import os, pathlib, select, socket, struct, sys
place, rank = pathlib.Path(sys.argv[1]), os.environ['RANK']
end = os.open(place / 'end', os.O_RDONLY)
store = socket.create_connection((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])))
store.sendall(struct.pack('=BI', 0, 0x3C85F7CE))
(place / f'new.{rank}').write_text(str(os.getpid()))
(place / f'new.{rank}').rename(place / f'pid.{rank}')
while not select.select([end], [], [], 0.5)[0]:
    if not (place / f'mute.{rank}').exists():
        store.sendall(struct.pack('=BQQ', 5, 1, 15) + b'/exception_dump')
        assert store.recv(1) == b'\\1'
'''


def test_one_that_asks_the_store_no_more(start, place):
    """What the others ask of it keeps the job from being quiet no more than it says that it moves."""
    one = Job(start, place, {}, '--on-hang=report', '--store=agent', script=POLLS)
    let_pass(5, 'looks have begun, by which the clients are known, and nothing says so')
    (place.path / 'mute.1').touch()
    hang = until(lambda: [event for event in one.hangs('suspect') if event['ranks'] == [1]], 'rank 1')[0]
    assert hang['class'] == 'outside'
    assert 'its NCCL monitor does not ask the store any more' in hang['text']
    assert one.end().rc == 0
