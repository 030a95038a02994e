"""Nodes with different builds of launchd: what is said, and on which side."""
import re
import subprocess

import pytest

from relay import Relay
from together import Cluster, errors, warnings
from harness import BUILD, native

OURS, OTHERS = b'LNCHD\x0a\x00', b'LNCHD\x0b\x00'  # the protocol's version, in HELLO
DIFFER = 'speaks version 11 of the protocol, this launchd version 10: all nodes need the same launchd'


@pytest.fixture(scope='module')
def version():
    found = subprocess.run([BUILD / 'launchd', '--version'], capture_output=True, text=True,
                           check=True)
    return re.search(r'\d+\.\d+\.\d+', found.stdout)[0]


@pytest.mark.parametrize('differs', [True, False])
def test_another_version_is_said_by_node_0_and_the_job_runs(start, place, version, differs):
    there = version.replace('.', '-') if differs else version
    words = (version.encode(), there.encode())
    cluster = Cluster(start, 3, native('dump'), begin=False)
    cluster.begin(0)
    with Relay(cluster.port + 1, up=words) as relay:
        cluster.begin(1, [f'--control-port={relay.port}'])
        cluster.begin(2)
        results = cluster.end()
    assert ([result.rc for result in results], relay.changed) == ([0, 0, 0], 1), results
    said = [line for result in results for line in warnings(result)]
    assert said == warnings(results[0]) and len(said) == differs
    if differs:
        assert re.fullmatch(rf'launchd: warning: \S+ \(127\.0\.0\.1:\d+\) runs launchd {there}, '
                            rf'this node {version}', said[0])
    assert {dump['env']['WORLD_SIZE'] for dump in place.dumps().values()} == {'3'}


@pytest.mark.parametrize('how', ['auto', 'required'])
def test_another_protocol_can_not_be_joined(start, place, how):
    """There is no use in trying again: node 1 does at once what --control says, and not after
    --join-timeout. Node 0 waits for one that speaks as it does."""
    cluster = Cluster(start, 2, native('dump', f'--control={how}'), begin=False)
    cluster.begin(0, ['--join-timeout=6'])
    with Relay(cluster.port + 1, up=(OURS, OTHERS), down=(OURS, OTHERS)) as relay:
        cluster.begin(1, [f'--control-port={relay.port}', '--join-timeout=600'])
        results = cluster.end()
    assert relay.changed == 2
    assert [result.rc for result in results] == [how == 'required'] * 2, results
    told = warnings(results[1]) + errors(results[1])
    assert len(told) == 1 and "can't join node rank 0's launcher" in told[0], results
    assert [len(re.findall(DIFFER, result.err)) for result in results] == [1, 1], results
    assert 'a launcher was turned away' in results[0].err
    assert sorted(place.dumps()) == ([] if how == 'required' else [0, 1])
