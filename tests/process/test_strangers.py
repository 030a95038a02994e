"""Strangers at the port where launchers meet."""
import resource

import pytest

from crowd import Crowd
from together import Cluster, exit_codes, listens, warnings
from harness import native, until

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
