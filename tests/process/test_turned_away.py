"""Launchers that their job does not take: another job's, and those that come too late."""
import signal
import socket

import pytest

from control import Control, kill_both, socket_of
from together import MEETS, C10d, Cluster, errors, exit_codes, free_ports, listens, warnings
from harness import native, until


def test_a_late_node_is_refused_and_starts_no_worker(start, place):
    tell, go = place.fifo('tell'), place.fifo('go')
    cluster = Cluster(start, 2, native('ending'),
                      {'TELL': tell.path, 'GO': go.path, 'END': 'exit:0'})
    tell.expect('ready', 2)
    late = start([*cluster.options(1), *native('ending')], {'TELL': tell.path, **MEETS}).end()
    assert late.rc == 1 and 'the job is already running' in errors(late)[0]
    go.go(2)
    assert exit_codes(cluster.end()) == [0, 0]


def named(run_id):
    return [] if run_id is None else ['--rdzv-id', run_id]


@pytest.mark.parametrize('kind', [Cluster, C10d])
@pytest.mark.parametrize('own, other, said_of_it', [
    ('A', 'B', 'this port belongs to job "A" (--rdzv-id): give job "B" another --rdzv-endpoint or '
               '--control-port'),
    ('\x1b[2J', 'B', r'this port belongs to job "\x1b[2J" (--rdzv-id)'),
    ('x' * 5000 + 'A', 'x' * 5000 + 'B', 'x..." (--rdzv-id)'),
    ('A', None, 'this port belongs to job "A" (--rdzv-id), and this launcher has none'),
    (None, 'B', 'this port belongs to a job without --rdzv-id'),
], ids=['A, not B', 'what a terminal obeys', 'long ones', 'A, not none', 'none, not B'])
def test_jobs_of_different_names_stay_apart(start, place, kind, own, other, said_of_it):
    cluster = kind(start, 2, native('dump'), begin=False)
    cluster.begin(0, named(own))
    until(lambda: listens(cluster.port + (kind is Cluster)), 'node 0 to listen')
    stranger = start([*cluster.options(1), *named(other), *native('dump')], MEETS).end()
    assert stranger.rc == 2
    [line] = errors(stranger)
    assert said_of_it in line
    until(lambda: 'was turned away' in cluster.jobs[0].said(), 'node 0 to make that clear')
    cluster.begin(1, named(own))
    assert exit_codes(cluster.end()) == [0, 0]
    dumps = place.dumps()
    assert [dumps[rank]['env']['TORCHELASTIC_RUN_ID'] for rank in (0, 1)] == [own or 'none'] * 2


def test_a_job_that_runs_tells_another_jobs_launcher_the_same(start, place):
    tell, go = place.fifo('tell'), place.fifo('go')
    cluster = Cluster(start, 2, native('ending', '--rdzv-id=A'),
                      {'TELL': tell.path, 'GO': go.path, 'END': 'exit:0'})
    tell.expect('ready', 2)
    late = start([*cluster.options(1), '--rdzv-id=B', *native('ending')],
                 {'TELL': tell.path, **MEETS}).end()
    assert late.rc == 2 and 'this port belongs to job "A"' in errors(late)[0]
    go.go(2)
    assert exit_codes(cluster.end()) == [0, 0]


def test_the_name_that_stands_for_none(start, place):
    """torchrun's default, given on one node only."""
    cluster = C10d(start, 2, native('dump'),
                   each=lambda node: (named('none' if node else None), {}))
    assert exit_codes(cluster.end()) == [0, 0]


class Begun:
    """A job that has started without one of its nodes, and runs until it is told to end."""

    def __init__(self, start, place, kind=Cluster, more=(), nodes=(0,)):
        self.start, self.more = start, more
        self.go, tell = place.fifo('go'), place.fifo('tell')
        self.cluster = kind(start, len(nodes) + 1,
                            native('ending', '--join-timeout=2', '--max-restarts=2', *more),
                            {'TELL': tell.path, 'GO': self.go.path, 'END': 'exit:0'}, begin=False)
        for node in nodes:
            self.cluster.begin(node)
        tell.expect('ready', len(nodes))

    def late(self, *options, node=None, worker=native('dump')):
        node = len(self.cluster.jobs) if node is None else node
        return self.start([*self.cluster.options(node), *self.more, *options, *worker],
                          MEETS).end()

    def end(self):
        self.go.go(len(self.cluster.jobs))
        return self.cluster.end()


AFTER = 'the job has started without this node, which arrived after --join-timeout'


@pytest.mark.parametrize('kind', [Cluster, C10d])
def test_auto_starts_the_workers_of_a_node_that_comes_too_late(start, place, kind):
    begun = Begun(start, place, kind, [f'--control-port={free_ports()}'])
    late = begun.late('--node_rank=1', '--max-restarts=2')
    assert late.rc == 0, late
    env = place.dumps()[1]['env']
    again = begun.late('--node_rank=1')
    assert again.rc == 1 and 'goes on to its end without this node' in errors(again)[0]
    [line] = warnings(late)
    for words in (AFTER, "this node's workers start without the others", 'there are no restarts'):
        assert words in line
    [first] = begun.end()
    assert first.rc == 0
    assert f'node 1 arrived after --join-timeout: {socket.gethostname()} (127.0.0.1:' in first.err
    assert (env['WORLD_SIZE'], env['RANK'], env['MASTER_PORT'], env['TORCHELASTIC_MAX_RESTARTS'],
            env['TORCHELASTIC_USE_AGENT_STORE']) == \
        ('2', '1', str(begun.cluster.port), '0', 'False')


@pytest.mark.parametrize('kind, more, options, words', [
    (Cluster, [], ['--nproc_per_node=2'], [AFTER, 'its number of workers differs']),
    (Cluster, [], ['--control=required'], [AFTER, '--control required']),
    (C10d, [], [], [AFTER, 'its rank: give --node_rank']),
    (C10d, [], ['--node_rank=1'], [AFTER, 'the port of worker 0: give all nodes a --control-port']),
], ids=['other ranks', 'required', 'no rank', 'no port'])
def test_a_node_that_comes_too_late_and_can_not_know_enough(start, place, kind, more, options,
                                                             words):
    begun = Begun(start, place, kind, more)
    late = begun.late(*options)
    assert late.rc == 1, late
    [line] = errors(late)
    assert all(word in line for word in words), line
    assert [result.rc for result in begun.end()] == [0] and not place.dumps()


def test_a_node_that_joined_can_not_come_back_though_another_is_absent(start, place):
    begun = Begun(start, place, nodes=(0, 1))
    late = begun.late(node=1)
    assert late.rc == 1 and 'node 1 has a launcher in it that is alive' in errors(late)[0]
    assert [result.rc for result in begun.end()] == [0, 0] and not place.dumps()


STUBBORN = ['--use_env', '--no_python', '/bin/sh', '-c',
            'trap "" TERM; echo $RANK $$ ready >$TELL; while :; do sleep 1; done']


@pytest.mark.parametrize('rank', [1, 2])
def test_who_comes_back_to_a_host_with_several_launchers(start, place, rank):
    """It has no rank, and its name is also another one's, which is alive."""
    tell = place.fifo('tell')
    cluster = C10d(start, 3, ['--shutdown-timeout=60', *STUBBORN], {'TELL': tell.path})
    tell.expect('ready', 3)
    [hub] = [job for job in cluster.jobs.values() if 'is not authenticated' in job.said()]
    with Control(socket_of(hub)) as control:
        seen = control.ask('status', nodes='all')['nodes']
        [node] = [i for i, job in cluster.jobs.items() if job.pid == seen[rank]['guard_pid']]
        kill_both(cluster.jobs[node])
        again = cluster.begin(node)
        until(lambda: 'waiting for its next start' in again.said(), 'it to wait')
        again.signal(signal.SIGTERM)
        assert again.end().rc == 143
        control.ask('stop', now=True)
    assert all(job.end().rc > 0 for job in cluster.jobs.values() if job is not again)


@pytest.mark.parametrize('kind', [Cluster, C10d])
def test_who_comes_back_is_not_one_that_never_came(start, place, kind):
    """Also if it has no rank, and another one is missed from the start."""
    tell = place.fifo('tell')
    cluster = kind(start, 3, ['--shutdown-timeout=60', *STUBBORN], {'TELL': tell.path}, begin=False)
    cluster.begin(0, ['--join-timeout=3'])
    until(lambda: 'is not authenticated' in cluster.jobs[0].said(), 'the hub to listen')
    cluster.begin(1)
    tell.expect('ready', 2)
    kill_both(cluster.jobs[1])
    again = cluster.begin(1)
    until(lambda: 'waiting for its next start' in again.said(), 'it to wait')
    again.signal(signal.SIGTERM)
    assert again.end().rc == 143
    with Control(socket_of(cluster.jobs[0])) as control:
        control.ask('stop', now=True)
    assert cluster.jobs[0].end().rc > 0


def test_who_waits_for_its_former_job_says_so_once(start, place):
    """It reaches node rank 0 again and again, whatever those are told who can't."""
    tell = place.fifo('tell')
    cluster = Cluster(start, 2, ['--shutdown-timeout=60', *STUBBORN], {'TELL': tell.path})
    tell.expect('ready', 2)
    kill_both(cluster.jobs[1])
    again = cluster.begin(1, ['--join-timeout=13'])
    ended = again.end()
    assert ended.rc == 1, ended
    said, error = ended.err.splitlines()
    assert 'waiting for its next start' in said and 'did not accept this node within 13 s' in error
    with Control(socket_of(cluster.jobs[0])) as control:
        control.ask('stop', now=True)
    assert cluster.jobs[0].end().rc == 125
