"""Strangers at the port where launchers meet."""
import os
import resource
import signal

import pytest

from crowd import Crowd
from together import C10d, Cluster, exit_codes, free_ports, listens, warnings
from harness import native, supervisor_of, until

KEY = {'LAUNCHD_KEY': 'a secret that is long enough'}
CROWD = 4500  # above what a launcher has places for, in handshakes that are not over


def crowded(result):
    return [line for line in warnings(result) if "connections to the launchers' port" in line]


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2 * CROWD,
                    reason='too few descriptors (ulimit -Hn)')
def test_a_crowd_that_says_nothing_keeps_no_node_out(start, place):
    """It is there before the node comes, and whoever is dropped comes again."""
    cluster = Cluster(start, 2, native('dump'), KEY, begin=False)
    hub = cluster.begin(0)
    until(lambda: listens(cluster.port + 1), 'node rank 0 to listen')
    with Crowd(cluster.port + 1, CROWD, 250) as crowd:
        until(lambda: crowd.dialed >= 2 * CROWD, 'all to be there, and some to come again')
        cluster.begin(1)
        results = cluster.end()
    assert exit_codes(results) == [0, 0] and sorted(place.dumps()) == [0, 1]
    [line] = crowded(results[0])
    assert 'not completed the handshake, the latest from 127.0.' in line
    assert not crowded(results[1])


def test_no_descriptors_for_a_crowd(start):
    """It is not scanned for that."""
    cluster = Cluster(start, 2, native('dump'), KEY, begin=False)
    cluster.begin(0, wrap=['prlimit', '--nofile=72'])
    until(lambda: listens(cluster.port + 1), 'node rank 0 to listen')
    with Crowd(cluster.port + 1, 80, 80) as crowd:
        until(lambda: crowd.dialed >= 160, 'all to be there, and some to come again')
    cluster.begin(1)
    results = cluster.end()
    assert exit_codes(results) == [0, 0], results
    [line] = crowded(results[0])
    assert 'out of file descriptors' in line and 'ulimit -n' in line


class Step(Cluster):
    """Tasks of srun, whose ports are the job's own unless one is given."""

    def __init__(self, start, argv, task=None, port=(), **how):
        self.task, self.given = task or {}, port
        super().__init__(start, 2, argv, {'MASTER_ADDR': '127.0.0.1'}, begin=False, **how)
        self.each = lambda node: ([], {
            'SLURM_JOB_ID': '17', 'SLURM_STEP_ID': '0', 'SLURM_PROCID': str(node), 'SLURM_NODEID': str(node),
            'SLURM_STEP_NUM_TASKS': '2', 'SLURM_STEP_NUM_NODES': '2', **self.task})

    def options(self, node):
        return list(self.given)


@pytest.mark.parametrize('other', [{'SLURM_STEP_ID': '1'}, {'SLURM_JOB_ID': '18'}, {'SLURM_RESTART_COUNT': '1'}],
                         ids=['step', 'job', 'requeued'])
def test_a_task_of_another_step_is_turned_away(start, place, other):
    """It comes in place of the one that is awaited, which comes then."""
    port = free_ports()
    mine, others = (Step(start, native('dump'), task, [f'--master_port={port}']) for task in ({}, other))
    first = mine.begin(0)
    until(lambda: listens(port + 1), 'node rank 0 to listen')
    stranger = others.begin(1).end()
    assert stranger.rc == 2 and "this port belongs to srun's job 17.0: give srun's job " in stranger.err, stranger
    mine.begin(1)
    results = mine.end()
    assert exit_codes(results) == [0, 0] and sorted(place.dumps()) == [0, 1]
    assert "a launcher of srun's job " in first.said()


def test_a_requeued_job_never_meets_what_it_has_left_behind(start, place):
    """Its old launcher is stopped, and has the old port still."""
    old = Step(start, native('dump'))
    left = old.begin(0)
    until(lambda: 'not authenticated' in left.said(), 'the old launcher to listen')
    stopped = [supervisor_of(left.pid), left.pid]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    again = Step(start, native('dump'), {'SLURM_RESTART_COUNT': '1'})
    again.begin(0)
    again.begin(1)
    assert exit_codes(again.end()) == [0, 0] and sorted(place.dumps()) == [0, 1]
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    left.signal(signal.SIGTERM)
    assert left.end().rc == 143


def test_a_second_launcher_on_a_host_is_told_of(start):
    """With c10d it may have taken the place of a node that hasn't come; with given ranks it can't."""
    unranked, ranked = (kind(start, 2, native('dump'), begin=False) for kind in (C10d, Cluster))
    for cluster, told in ((unranked, 1), (ranked, 0)):
        cluster.begin(0)
        until(lambda: listens(cluster.port + (1 - told)), 'node rank 0 to listen')
        cluster.begin(1)
        results = cluster.end()
        assert exit_codes(results) == [0, 0]
        for result in results:
            assert result.err.count("is a second launcher on its host, beside ") == told, result


@pytest.mark.parametrize('end', ['the last node', 'a signal'])
def test_a_refused_job_tells_who_comes_late(start, place, end):
    """It says so at once, and stays for the node that is missing; a signal ends that."""
    cluster = Cluster(start, 3, native('dump'), begin=False)
    first = cluster.begin(0)
    until(lambda: listens(cluster.port + 1), 'node rank 0 to listen')
    wrong = cluster.begin(1, ['--nnodes=2']).end()
    until(lambda: 'there is no job: ' in first.said(), 'the refusal')
    if end == 'a signal':
        first.signal(signal.SIGTERM)
        late = []
    else:
        late = [cluster.begin(2).end()]
    for result in (wrong, first.end(), *late):
        assert result.rc == 2, result
        assert result.err.count('launchd: error: ') == 1 and 'give all nodes the same --nnodes' in result.err, result
    assert not place.dumps()
