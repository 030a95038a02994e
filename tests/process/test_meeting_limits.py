"""Who says nothing to those who wait for a word: each of them waits for a limited time. Frames that a
relay takes away make a launcher of the one who is silent, but for its beats."""

import time

import pytest

from relay import Lost, Relay
from together import Cluster, errors, exit_codes, listens, warnings
from harness import let_pass, native, until

READY, START = 19, 28


@pytest.mark.parametrize('how', ['auto', 'required'])
def test_a_hub_that_does_not_answer_join(start, place, how):
    """It waits for a third node for much longer than this one wants to."""
    cluster = Cluster(start, 3, native('dump', f'--control={how}'), begin=False)
    hub = cluster.begin(0, ['--join-timeout=600'])
    until(lambda: listens(cluster.port + 1), 'node rank 0 to listen')
    cluster.begin(1, ['--join-timeout=2', '--node-timeout=4'])
    result = cluster.jobs.pop(1).end()
    assert result.rc == (how == 'required'), result
    [line] = errors(result) if how == 'required' else warnings(result)
    assert 'was reached, but did not start the job within 2 s (--join-timeout)' in line
    assert list(place.dumps()) == ([] if how == 'required' else [1])
    hub.signal(15)
    assert cluster.end()[0].rc == 143


@pytest.mark.long
def test_the_time_counts_from_the_nodes_own_start(start):
    """Not once more from when it has reached node rank 0, which waits for a third node."""
    cluster = Cluster(start, 3, native('dump', '--control=required'), begin=False)
    begun = time.monotonic()
    cluster.begin(1, ['--join-timeout=30', '--node-timeout=4'])
    let_pass(15, 'half of its time')
    hub = cluster.begin(0, ['--join-timeout=600'])
    result = cluster.jobs.pop(1).end()
    took = time.monotonic() - begun
    assert result.rc == 1 and 'was reached, but did not start the job within 30 s' in errors(result)[0], result
    assert 30 < took < 42, 'once more from there it would be 46 s'
    hub.signal(15)
    assert cluster.end()[0].rc == 143


def test_a_node_that_does_not_get_ready(start, place):
    cluster = Cluster(start, 3, native('dump'), begin=False)
    cluster.begin(0, ['--node-timeout=3'])
    with Relay(cluster.port + 1, up=Lost(READY)) as relay:
        cluster.begin(1, [f'--control-port={relay.port}'])
        cluster.begin(2)
        results = cluster.end()
    assert relay.changed == 1 and exit_codes(results) == [1, 1, 1], results
    for result in results:
        [line] = errors(result)
        assert 'node 1' in line and 'was not ready to start its workers within 3 s' in line
    assert not place.dumps()


def test_a_hub_that_does_not_start_the_job(start, place):
    cluster = Cluster(start, 2, native('dump'), begin=False)
    cluster.begin(0)
    with Relay(cluster.port + 1, down=Lost(START)) as relay:
        cluster.begin(1, [f'--control-port={relay.port}', '--node-timeout=3'])
        result = cluster.jobs[1].end()
    assert relay.changed == 1 and result.rc == 1, result
    [line] = errors(result)
    assert 'all nodes had met, but' in line and 'did not start the job within 3 s' in line
    assert cluster.jobs.pop(0).end().rc == 125
