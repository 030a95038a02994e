"""--progress: the steps that a job comes to, by lines of output, a file or a socket."""
import time

import pytest

from control import Control, socket_of
from harness import native, until
from test_events import of, read
from together import Cluster, exit_codes

# Does what lines of its FIFO say: "say TEXT", "send TEXT", "end".
WORKER = '''
import os, socket, sys
with open(sys.argv[1] + '.' + os.environ['RANK']) as orders:
    for order in orders:
        what, _, text = order.strip().partition(' ')
        if what == 'say':
            print(text, flush=True)
        elif what == 'bar':
            print('\\r' + text, end='', flush=True)
        elif what == 'send':
            to = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            to.sendto(text.encode(), os.environ['LAUNCHD_PROGRESS_SOCKET'])
        else:
            sys.exit(int(text))
'''


class Job:
    def __init__(self, start, place, *options, nodes=1):
        self.place = place
        self.fifos = [place.fifo(f'orders.{rank}') for rank in range(nodes)]
        script = place.write('job.py', WORKER)
        self.cluster = Cluster(start, nodes, [
            f'--events={place.path}/events', f'--metrics-file={place.path}/metrics', '--use_env', *options,
            script, f'{place.path}/orders'])
        self.orders = [open(fifo.path, 'w', buffering=1) for fifo in self.fifos]

    def do(self, order, rank=0):
        self.orders[rank].write(order + '\n')

    def await_step(self, step):
        with Control(socket_of(self.cluster.jobs[0])) as control:
            until(lambda: control.ask('status')['step'] == step, f'step {step}')

    def end(self, code=0):
        for orders in self.orders:
            orders.write(f'end {code}\n')
            orders.close()
        return self.cluster.end()


@pytest.fixture
def job(start, place):
    def begin(*how, **more):
        return Job(start, place, *how, **more)

    return begin


@pytest.mark.quick
def test_by_lines(job, place):
    one = job('--progress=^step +([0-9]+)')
    one.do('say step 3  loss 0.5')
    one.await_step(3)
    one.do('say no step 9')
    one.do('say step 12')
    one.await_step(12)
    [result] = one.end()
    assert result.rc == 0 and 'step 12\n' in result.out
    assert [event['step'] for event in of(read(place.path / 'events'), 'step')][-1] == 12
    assert 'launchd_job_step 12\n' in (place.path / 'metrics').read_text() or \
        'launchd_job_step{' in (place.path / 'metrics').read_text()


@pytest.mark.parametrize('options', [[], ['-r3', '--log-dir=logs'], ['-t3', '--log-dir=logs']])
def test_by_a_bar(job, place, options):
    """The state that stands there is a step, and so is what stands there at the end."""
    one = job('--progress= ([0-9]+)/100 ', *options)
    one.do('bar  7%|#   | 7/100 [00:01<')
    one.await_step(7)
    one.do('bar  8%|#   | 8/100 [00:01<')
    one.await_step(8)
    one.do('say')
    one.do('say')
    one.do('bar no step')
    one.do('bar at 90/100 [')
    [result] = one.end()
    assert result.rc == 0
    assert [event['step'] for event in of(read(place.path / 'events'), 'step')][-1] == 90


def test_a_last_line_without_end(launch, place):
    result = launch(['--progress=step ([0-9]+)', f'--events={place.path}/events', '--no_python', '--use_env',
                     'sh', '-c', 'echo step 1; printf "step 2"'])
    assert result.rc == 0
    assert [event['step'] for event in of(read(place.path / 'events'), 'step')][-1] == 2


@pytest.mark.parametrize('form', ['file:{}', '{}'])
def test_by_a_file(job, place, form):
    """How it was at first is no step: it is written until somebody has seen that."""
    path = place.path / 'steps'
    one = job(f'--progress={form.format(path)}')
    numbers = iter(range(1000))
    with Control(socket_of(one.cluster.jobs[0])) as control:
        until(lambda: place.write('steps', f'{next(numbers)}\n') and
              control.ask('status')['step'] is not None, 'a step')
    place.write('steps', '4100\n')
    written_ns = time.monotonic_ns()
    one.await_step(4100)
    assert one.end()[0].rc == 0
    [step] = [event for event in of(read(place.path / 'events'), 'step') if event['step'] == 4100]
    assert step['mono_ns'] < written_ns


@pytest.mark.parametrize('nodes', [1, 2])
def test_the_time_is_that_of_the_line(job, place, nodes):
    """Not that of launchd's next look: the step is seen only when its worker has ended already."""
    one = job('--progress=^step ([0-9]+)', '-r3', '--log-dir=logs', nodes=nodes)
    one.do('say step 1')
    one.await_step(1)
    last = nodes - 1
    one.do('say step 2', last)
    until(lambda: any('step 2' in log.read_text() for log in (place.path / 'logs').rglob('stdout.log')), 'the line')
    assert exit_codes(one.end()) == [0] * nodes
    events = [event for path in place.path.glob('events*') for event in read(path)]
    [step] = [event for event in of(events, 'step') if event['step'] == 2]
    assert step['mono_ns'] < min(event['mono_ns'] for event in of(events, 'worker_ended'))


def test_by_a_socket(job):
    one = job('--progress=notify')
    one.do('send STEP=5')
    one.await_step(5)
    one.do('send WATCHDOG=1')
    one.do('send STEP=6')
    one.await_step(6)
    assert one.end()[0].rc == 0


def test_the_newest_of_all_nodes(job):
    one = job('--progress=^step ([0-9]+)', nodes=2)
    one.do('say step 7', 1)
    one.await_step(7)
    one.do('say step 5', 0)
    one.do('say step 8', 1)
    one.await_step(8)
    assert exit_codes(one.end()) == [0, 0]


@pytest.mark.parametrize('value, says', [
    ('^step ([0-9]+', 'regular expression'), ('^step', 'group'), ('^(step) ([0-9]+)', 'group')])
def test_what_is_none(refused, value, says):
    refused(native('ending', f'--progress={value}'), '--progress', says)
