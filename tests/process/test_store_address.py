"""Where the store listens that launchd hosts, and what the workers are told of it."""
import socket

import pytest
from harness import native
from needs import needs_localhost
from together import Cluster, errors

ASIDE = '203.0.113.7'  # of nobody: RFC 5737


def environments(place):
    return [dump['env'] for _, dump in sorted(place.dumps().items())]


@pytest.mark.parametrize('options', [
    [], pytest.param(['--master_addr=localhost'], marks=needs_localhost),
    pytest.param(['--local-addr=localhost'], marks=needs_localhost),
    [f'--master_addr={ASIDE}', '--local-addr=127.0.0.1'],
], ids=' '.join)
def test_one_node_tells_an_address(launch, place, options):
    result = launch([*options, '--store=agent', '--nproc_per_node=2', *native('dump')])
    assert result.rc == 0, result
    for env in environments(place):
        assert env['MASTER_ADDR'] == '127.0.0.1'
        assert env['TORCHELASTIC_USE_AGENT_STORE'] == 'True'


@needs_localhost
@pytest.mark.parametrize('store, told', [('agent', {'127.0.0.1', '::1'}),
                                         ('rank0', {'localhost'})], ids=['agent', 'rank0'])
def test_nodes_tell_an_address_for_a_name(start, place, store, told):
    """The name may mean another address to each of them; without a store of ours it is theirs."""
    cluster = Cluster(start, 2, native('dump'), host='localhost',
                      each=lambda node: ([f'--store={store}'], {}))
    assert [result.rc for result in cluster.end()] == [0, 0]
    for env in environments(place):
        assert env['MASTER_ADDR'] in told
        assert env['MASTER_PORT'] == str(cluster.port)


def test_an_address_of_another_machine(launch, place):
    result = launch([f'--master_addr={ASIDE}', '--store=agent', *native('dump')])
    assert result.rc == 1, result
    assert f"the store can't listen at {ASIDE}: Cannot assign requested address: set " \
        '--local-addr to an address of this node that the others can reach, or use --store rank0' \
        in result.err
    assert not place.dumps()


@pytest.mark.parametrize('store', ['agent', 'rank0'])
def test_a_port_that_is_taken_is_not_changed_for_another(start, place, store):
    """launchd's store can't listen there and says so on all nodes; worker 0 may have the port."""
    cluster = Cluster(start, 2, native('dump'), begin=False,
                      each=lambda node: ([f'--store={store}'], {}))
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', cluster.port))
        taken.listen()
        for node in range(2):
            cluster.begin(node)
        results = cluster.end()
    if store == 'rank0':
        assert [result.rc for result in results] == [0, 0], results
        assert {env['MASTER_PORT'] for env in environments(place)} == {str(cluster.port)}
        return
    assert [result.rc for result in results] == [1, 1], results
    for result in results:
        [line] = errors(result)
        assert f"the store can't listen at 127.0.0.1:{cluster.port}" in line
    assert not place.dumps()
