"""Issue 16: node rank 0's launcher is asked how all nodes are, by the control channel."""
import json
import os
import signal

import pytest

from control import Control, Refused, socket_of
from harness import is_idle, native, stop, supervisor_of, until
from relay import Relay
from together import Cluster

UNHURRIED = ['--node-timeout=300', '--max-restarts=1']  # nobody is lost, and nobody leaves early


@pytest.fixture
def cluster(start, place):
    """Nodes of workers that run until they are signalled, all of which do."""
    def begin(nnodes, *options, workers=2, **how):
        ready = place.fifo('ready')
        nodes = Cluster(start, nnodes, [*options, *native('ending', f'--nproc_per_node={workers}')],
                        env={'TELL': ready.path}, **how)
        nodes.ready = ready
        return nodes
    return begin


def all_of(control):
    return control.ask('status', nodes='all')['nodes']


def ranks_of(nodes):
    return [[worker['rank'] for worker in node['workers']] if 'workers' in node else node['error']
            for node in nodes]


def stopped(job):
    """A supervisor that answers nobody any more."""
    pid = supervisor_of(job.pid)
    stop(pid)
    return pid


def test_all_nodes(cluster):
    nodes = cluster(3)
    ready = nodes.ready.expect('ready', 6)
    with Control(socket_of(nodes.jobs[0])) as control:
        seen = all_of(control)
        assert ranks_of(seen) == [[0, 1], [2, 3], [4, 5]]
        assert [node['node_rank'] for node in seen] == [0, 1, 2]
        assert [node['guard_pid'] for node in seen] == [nodes.jobs[i].pid for i in range(3)]
        assert [w['pid'] for node in seen for w in node['workers']] == [ready[i] for i in range(6)]
        assert seen[0].keys() == seen[2].keys() == control.ask('status').keys()
        with Control(socket_of(nodes.jobs[1])) as other:
            with pytest.raises(Refused, match='elsewhere.*node 1: only node 0.*at 127.0.0.1'):
                all_of(other)
            assert other.ask('status')['node_rank'] == 1
        control.ask('stop')
    assert [result.rc for result in nodes.end()] == [143] * 3


def test_it_costs_nothing_while_nobody_asks(cluster):
    nodes = cluster(2, *UNHURRIED)
    nodes.ready.expect('ready', 4)
    with Control(socket_of(nodes.jobs[0])) as control:
        for _ in range(100):
            assert ranks_of(all_of(control)) == [[0, 1], [2, 3]]
        for job in nodes.jobs.values():
            until(lambda pid=supervisor_of(job.pid): is_idle(pid), 'the supervisor to sleep')
        control.ask('stop')
    nodes.end()


def test_one_that_does_not_answer_holds_up_nobody_else(cluster):
    nodes = cluster(3, *UNHURRIED)
    nodes.ready.expect('ready', 6)
    with Control(socket_of(nodes.jobs[0])) as control:
        pid = stopped(nodes.jobs[1])
        number = control.send('status', nodes='all')
        with Control(socket_of(nodes.jobs[0])) as another:  # meanwhile
            assert ranks_of([another.ask('status')]) == [[0, 1]]
        answer = control.line()
        assert answer['id'] == number
        assert ranks_of(answer['result']['nodes']) == [
            [0, 1], 'its launcher has not answered within 2 s', [4, 5]]
        os.kill(pid, signal.SIGCONT)
        # it answers what it was asked before, which nobody waits for any more, and then this
        until(lambda: ranks_of(all_of(control)) == [[0, 1], [2, 3], [4, 5]], 'it to answer again')
        control.ask('stop')
    assert [result.rc for result in nodes.end()] == [143] * 3


def test_many_ask_at_once_and_some_go_away(cluster):
    nodes = cluster(2, *UNHURRIED)
    nodes.ready.expect('ready', 4)
    pid = stopped(nodes.jobs[1])
    clients = [Control(socket_of(nodes.jobs[0])) for _ in range(40)]
    for client in clients:
        client.send('status', nodes='all')
    for client in clients[::2]:
        client.close()
    for client in clients[1::2]:
        assert ranks_of(client.line()['result']['nodes'])[0] == [0, 1]
    os.kill(pid, signal.SIGCONT)
    for client in clients[1::2]:
        client.close()
    nodes.jobs[0].signal(signal.SIGTERM)
    assert [result.rc for result in nodes.end()] == [143] * 2


def test_the_job_ends_while_one_waits(cluster):
    nodes = cluster(2, *UNHURRIED)
    nodes.ready.expect('ready', 4)
    pid = stopped(nodes.jobs[1])
    with Control(socket_of(nodes.jobs[0])) as control:
        control.send('status', nodes='all')
        with Control(socket_of(nodes.jobs[0])) as another:
            another.ask('stop', now=True)
        os.kill(pid, signal.SIGCONT)
        told = control.line()
        assert told is None or told['ok'] or told['error']['code'] == 'over'
        assert told is None or control.line() is None
    assert [result.rc for result in nodes.end()] == [143] * 2


def test_while_nodes_meet_and_when_they_have_left(cluster, place):
    go = place.fifo('go')
    nodes = cluster(3, begin=False, each=lambda node: ([], {
        'GO': go.path, 'END': 'exit:0' if node == 2 else 'never'}))
    nodes.begin(0)
    with Control(socket_of(nodes.jobs[0])) as control:
        missing = 'it has not joined'
        until(lambda: control.ask('status')['awaited'] == [1, 2], 'the meeting')
        assert ranks_of(all_of(control)) == [[], missing, missing]
        nodes.begin(1)
        until(lambda: control.ask('status')['awaited'] == [2], 'node 1 to have come')
        seen = all_of(control)
        assert ranks_of(seen) == [[], 'it has joined; the nodes have not met', missing]
        assert seen[1]['host'] == seen[0]['host'] and seen[2]['host'] is None
        with Control(socket_of(nodes.jobs[1])) as other:
            with pytest.raises(Refused, match='not-now.*have not met'):
                all_of(other)
        nodes.begin(2)
        nodes.ready.expect('ready', 6)
        go.go(2)
        assert nodes.jobs[2].end().rc == 0
        until(lambda: ranks_of(all_of(control))[2] == 'it has left: its workers have exited with 0',
              'node 2 to have left')
        control.ask('stop')
    assert [nodes.jobs[node].end().rc for node in (0, 1)] == [143] * 2


def test_no_channel(start, place):
    """--control off: each node is alone with its part of the job."""
    ready = place.fifo('ready')
    job = start(['--control=off', '--nnodes=2', '--node_rank=1', '--master_addr=127.0.0.1',
                 '--master_port=29400', *native('ending', '--nproc_per_node=2')], {'TELL': ready.path})
    ready.expect('ready', 2)
    with Control(socket_of(job)) as control:
        with pytest.raises(Refused, match='unavailable.*no control channel'):
            all_of(control)
        control.ask('stop')
    assert job.end().rc == 143


def test_one_node(start, place):
    ready = place.fifo('ready')
    job = start(native('ending', '--nproc_per_node=2'), {'TELL': ready.path})
    ready.expect('ready', 2)
    with Control(socket_of(job)) as control:
        assert ranks_of(all_of(control)) == [[0, 1]]
        control.ask('stop')
    assert job.end().rc == 143


@pytest.mark.parametrize('to', [b'{"launchd";', b'}"launchd":', b'{"launchd"\n', b'{"launchd"\0'])
def test_an_answer_that_is_no_json(cluster, to):
    """Of a launcher that is none: it can't break the line that holds it."""
    nodes = cluster(2, *UNHURRIED, begin=False)
    nodes.begin(0)
    with Relay(nodes.port + 1, up=(b'{"launchd":', to)) as relay:
        nodes.begin(1, [f'--control-port={relay.port}'])
        nodes.ready.expect('ready', 4)
        with Control(socket_of(nodes.jobs[0])) as control:
            assert ranks_of(all_of(control)) == [[0, 1], "its launcher's answer can't be used"]
            assert relay.changed == 1
            assert json.dumps(control.ask('status'))
            control.ask('stop')
        assert [result.rc for result in nodes.end()] == [143] * 2


def test_a_node_without_a_socket_answers_too(cluster):
    nodes = cluster(2, each=lambda node: (['--ctl-socket=none'] if node else [], {}))
    nodes.ready.expect('ready', 4)
    with Control(socket_of(nodes.jobs[0])) as control:
        assert ranks_of(all_of(control)) == [[0, 1], [2, 3]]
        control.ask('stop')
    assert [result.rc for result in nodes.end()] == [143] * 2


def test_a_long_last_line_is_cut(start, place):
    """After 200 bytes at most, and never in a character."""
    done = place.fifo('done')
    script = place.write('long.py', """
import os, time
print('\u00e4' * 300 + 'x', flush=True)
with open(os.environ['DONE'], 'w') as done:
    done.write(f'{os.environ["RANK"]} {os.getpid()} done\\n')
time.sleep(600)
""")
    nodes = Cluster(start, 2, ['--tee=3', '--log-dir', str(place.path / 'logs'), '--use_env', script], env={'DONE': done.path, 'PYTHONIOENCODING': 'utf-8'})
    done.expect('done', 2)
    with Control(socket_of(nodes.jobs[0])) as control:
        until(lambda: [node['workers'][0]['last_line'] for node in all_of(control)] ==
              ['\u00e4' * 100] * 2, 'the lines')
        assert control.ask('status')['workers'][0]['last_line'].endswith('x')
        control.ask('stop', now=True)
    nodes.end()
