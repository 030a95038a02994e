"""--tf-config, --tf-roles and --jax-env: what workers are told, by launchers that meet, and on one
node. What TensorFlow and JAX make of it is seen by tests/libraries."""
import json
import socket

import pytest

from harness import native, until, worker
from together import C10d, Cluster, errors, exit_codes, listens

BOTH = ['--tf-config', '--jax-env']
OTHERS = {'JAX_COORDINATOR_BIND_ADDRESS': 'x', 'OMPI_VERSION': '5.0.1', 'TF_CONFIG': 'x'}


def config_of(dump):
    return json.loads(dump['env']['TF_CONFIG'])


def workers(dumps):
    """The one list that all have, of a job without roles, whose ranks are their indices."""
    lists = [config_of(dump)['cluster']['worker'] for dump in dumps.values()]
    assert all(one == lists[0] for one in lists)
    assert {rank: config_of(dump)['task'] for rank, dump in dumps.items()} == \
        {rank: {'type': 'worker', 'index': rank} for rank in dumps}
    return lists[0]


@pytest.mark.parametrize('kind', [Cluster, C10d])
def test_nodes_tell_one_another_their_ports(start, place, kind):
    cluster = kind(start, 2, native('dump', *BOTH), env=OTHERS,
                   each=lambda node: ([f'--nproc_per_node={node + 1}',
                                       f'--local-addr=127.0.0.{node + 1}'], {}))
    assert exit_codes(cluster.end()) == [0, 0]
    dumps = place.dumps()
    assert sorted(dumps) == [0, 1, 2]
    places = workers(dumps)
    first = [dump['env']['NODE_RANK'] for dump in dumps.values()].count('0')
    assert len(places) == len(set(places)) == 3
    assert len({one.rpartition(':')[0] for one in places[:first]}) == 1
    assert len({one.rpartition(':')[0] for one in places[first:]}) == 1
    coordinator = {dump['env']['JAX_COORDINATOR_ADDRESS'] for dump in dumps.values()}
    assert len(coordinator) == 1 and coordinator.isdisjoint(places)
    for rank, dump in dumps.items():
        env = dump['env']
        local = env['LOCAL_RANK']
        assert env['JAX_COORDINATOR_ADDRESS'] == f'127.0.0.1:{coordinator.copy().pop()[10:]}'
        assert env['JAX_COORDINATOR_ADDRESS'] != f'127.0.0.1:{env["MASTER_PORT"]}'
        assert (env['JAX_NUM_PROCESSES'], env['JAX_PROCESS_ID'],
                env['JAX_LOCAL_DEVICE_IDS']) == ('3', str(rank), local)
        assert (env['OMPI_COMM_WORLD_SIZE'], env['OMPI_COMM_WORLD_RANK'],
                env['OMPI_COMM_WORLD_LOCAL_RANK'], env['OMPI_MCA_orte_hnp_uri']) == \
            ('3', str(rank), local, '')
        assert 'JAX_COORDINATOR_BIND_ADDRESS' not in env and env['OMPI_VERSION'] == '4'


def test_the_address_is_the_nodes_own(start, place):
    cluster = Cluster(start, 2, native('dump', '--tf-config'),
                      each=lambda node: ([f'--local-addr=127.0.0.{node + 1}'], {}))
    assert exit_codes(cluster.end()) == [0, 0]
    assert [one.rpartition(':')[0] for one in workers(place.dumps())] == ['127.0.0.1', '127.0.0.2']


def test_roles(start, place):
    cluster = Cluster(start, 2, native('dump', '--tf-config', '--nproc_per_node=2',
                                       '--tf-roles=chief=1,ps=1,evaluator=1,worker=1'))
    assert exit_codes(cluster.end()) == [0, 0]
    configs = [config_of(dump) for _, dump in sorted(place.dumps().items())]
    assert [config['task']['type'] for config in configs] == ['chief', 'ps', 'evaluator', 'worker']
    assert {config['task']['index'] for config in configs} == {0}
    assert {name: len(places) for name, places in configs[0]['cluster'].items()} == \
        {'chief': 1, 'ps': 1, 'worker': 1}


def test_one_node_has_ports_that_stay_its_own(start, place):
    """Held, but not listened at: nobody else gets them, and a worker may listen there. The next
    attempt has the same."""
    gate = place.fifo('gate')
    script = place.write('train.sh', f"""#!/bin/sh
echo "$TF_CONFIG" > "$HOME/$TORCHELASTIC_RESTART_COUNT.$RANK"
[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] && exit 0
"{worker('dump')}"
dd bs=1 count=1 of=/dev/null 2>/dev/null < "{gate.path}"
exit 1
""", 0o755)
    job = start([*BOTH, '--nproc_per_node=2', '--max-restarts=1', '--no_python', '--use_env', script])
    until(lambda: len(place.dumps()) == 2, 'both workers')
    places = workers(place.dumps())
    ports = [int(one.rpartition(':')[2]) for one in places]
    ports.append(int(place.dumps()[0]['env']['JAX_COORDINATOR_ADDRESS'].rpartition(':')[2]))
    assert len(set(ports)) == 3 and places[0].startswith('127.0.0.1:')
    for port in ports:
        assert not listens(port)
        with socket.socket() as other, pytest.raises(OSError):
            other.bind(('127.0.0.1', port))
        with socket.socket() as own:  # as gRPC does
            own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            own.bind(('0.0.0.0', port))
            own.listen()
    gate.go(2)
    assert job.end().rc == 0
    for rank in '0', '1':
        first, second = ((place.path / f'{attempt}.{rank}').read_text() for attempt in (0, 1))
        assert first == second


@pytest.mark.parametrize('option', BOTH)
def test_a_node_without_it_is_named_before_anything_starts(start, place, option):
    for without in 0, 1:
        cluster = Cluster(start, 2, native('dump'),
                          each=lambda node: ([option] if node != without else [], {}))
        results = cluster.end()
        assert exit_codes(results) == [2, 2]
        for result in results:
            assert f'{option}: node {without} (' in ''.join(errors(result))
        assert place.dumps() == {}


def test_roles_are_counted_when_the_size_is_known(start, refused, place):
    roles = ['--tf-config', '--tf-roles=ps=1,worker=2']
    refused([*roles, '--nproc_per_node=2', *native('dump')], '--tf-roles', '3 workers', 'has 2')
    cluster = Cluster(start, 2, native('dump', *roles, '--nproc_per_node=2'))
    results = cluster.end()
    assert exit_codes(results) == [2, 2]
    assert '3 workers, but the job has 4' in ''.join(errors(results[1]))
    assert place.dumps() == {}


@pytest.mark.parametrize('option', BOTH)
def test_nodes_that_do_not_meet(start, refused, place, option):
    argv = [option, '--nnodes=2', '--node_rank=0', '--master_addr=127.0.0.1', *native('dump')]
    refused(['--control=off', *argv], option, '--control')
    refused(['--only-rank=0', option, *native('dump')], option, '--only-rank')
    cluster = Cluster(start, 2, native('dump', option, '--join-timeout=1500ms'), begin=False)
    cluster.begin(0)
    assert exit_codes(cluster.end()) == [2]
    cluster = Cluster(start, 2, native('dump', option, '--join-timeout=1500ms'), begin=False)
    cluster.begin(1)
    [result] = cluster.end()
    assert result.rc == 2 and 'they could not meet' in result.err
    assert place.dumps() == {}


def test_a_trial_takes_no_port(dry):
    plan = dry(['--nproc_per_node=2', *BOTH, '--nnodes=2', '--node_rank=1', '--master_addr=h',
                '--control=auto'])
    edits = {name: edit['value'] for name, edit in plan.edits(1).items()}
    assert json.loads(edits['TF_CONFIG']) == {
        'cluster': {'worker': ['h:PORT', 'h:PORT', 'HOST:PORT', 'HOST:PORT']},
        'task': {'type': 'worker', 'index': 3}}
    assert edits['JAX_COORDINATOR_ADDRESS'] == 'h:PORT'


def test_a_trial_without_ranks(dry):
    plan = dry(['--nproc_per_node=2', *BOTH, '--nnodes=2', '--rdzv-backend=c10d',
                '--rdzv-endpoint=h:7', '--control=auto'])
    edits = {name: edit['value'] for name, edit in plan.edits(1).items()}
    assert {edits[name] for name in ('TF_CONFIG', 'JAX_PROCESS_ID', 'OMPI_COMM_WORLD_RANK')} == \
        {'<decided when nodes meet>'}
    assert edits['JAX_LOCAL_DEVICE_IDS'] == '1'


def test_tensorflow_alone_is_said(dry, place):
    script = place.write('train.py', 'import tensorflow as tf\n')
    several = ['--nproc_per_node=2', '--env', 'OMP_NUM_THREADS=1']

    def said(options, env=None):
        return dry(options, env, command=[script]).warnings()

    assert said(several) == [
        f'{script} imports tensorflow, but TF_CONFIG is not set: each of the 2 workers would train '
        'alone; --tf-config lets them train together (--env TF_CONFIG= if they are to be alone)']
    assert said([]) == said([*several, '--tf-config']) == said([*several, '--env=TF_CONFIG=']) == []
    [line] = said(several, {'TF_CONFIG': '{}'})
    assert 'all 2 workers of this node get the same TF_CONFIG' in line
    assert said([*several, '--tf-config'], {'TF_CONFIG': '{}'}) == []
