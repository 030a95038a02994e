"""--node-env: the script is started once on each node and starts its own ranks."""
import json
import sys

import pytest

from harness import native
from together import Cluster

RANKS = {'RANK': '3', 'LOCAL_RANK': '1', 'WORLD_SIZE': '8', 'LOCAL_WORLD_SIZE': '2', 'GROUP_RANK': '1',
         'GROUP_WORLD_SIZE': '4', 'ROLE_NAME': 'x', 'ROLE_RANK': '3', 'ROLE_WORLD_SIZE': '8',
         'TORCHELASTIC_RESTART_COUNT': '0', 'TORCHELASTIC_USE_AGENT_STORE': 'True'}

# As Lightning's own launcher and torch.multiprocessing.spawn do it: each node's script starts two
# processes, which sum their ranks by gloo.
SPAWNS = """import os, sys
import torch.distributed as dist, torch.multiprocessing as mp, torch

def rank_main(local, node, nodes):
    dist.init_process_group('gloo', rank=node * 2 + local, world_size=nodes * 2)
    t = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(t)
    print(f'rank {dist.get_rank()} of {dist.get_world_size()} sum {int(t)}', flush=True)
    dist.destroy_process_group()

if __name__ == '__main__':
    mp.spawn(rank_main, args=(int(os.environ['NODE_RANK']), int(sys.argv[1])), nprocs=2)
"""


def names(env):
    return {name for name in env if name in RANKS or name.startswith('TORCHELASTIC_')}


def test_the_script_gets_the_node_and_the_master_only(launch, place):
    assert launch(['--node-env', *native('dump'), '--x'], RANKS).rc == 0
    [path] = place.out.glob('*.json')  # one script, and none has a rank in its name
    dump = json.loads(path.read_text())
    env = dict(entry.split('=', 1) for entry in dump['environ'])
    assert names(env) == set()
    assert (env['MASTER_ADDR'], env['NODE_RANK']) == ('127.0.0.1', '0') and int(env['MASTER_PORT'])
    assert dump['argv'][1:] == ['--x']


def test_the_identity_under_mpi_goes_too(dry):
    env = {'OMPI_COMM_WORLD_RANK': '1', 'OMPI_COMM_WORLD_SIZE': '2', 'PMIX_RANK': '1'}
    edits = dry(['--node-env', '--master_addr=h'], env).edits()
    assert {edits[name]['change'] for name in env} == {'removed'}
    assert edits['NODE_RANK']['value'] == '1'
    edits = dry(['--node-env', '--master_addr=h', '--mpi-env=rewrite'], env).edits()
    assert edits['OMPI_COMM_WORLD_RANK']['value'] == '1'


@pytest.mark.parametrize('argv, words', [
    (['--nproc_per_node=2'], ['--node-env starts the script once', '--nproc_per_node says 2']),
    (['--nproc_per_node=cpu'], ['--nproc_per_node says cpu']),
    (['--virtual-local-rank'], ['--node-env', '--virtual-local-rank', 'exclusive']),
    (['--jax-env'], ['--node-env', '--jax-env', 'exclusive']),
    (['--tf-config'], ['--node-env', '--tf-config', 'exclusive']),
    (['--store=agent'], ['--node-env', '--store agent', 'exclusive']),
    (['--mpi-env=rewrite-slurm'], ['--node-env', '--mpi-env rewrite-slurm', 'exclusive']),
    (['--mpi-env=rewrite-pmi'], ['--node-env', '--mpi-env rewrite-pmi', 'exclusive']),
])
def test_what_needs_ranks_of_workers_is_refused(refused, argv, words):
    refused(['--node-env', *argv, *native('dump')], *words)


def test_one_worker_may_be_said_and_restarts_need_no_store(dry):
    plan = dry(['--node-env', '--nproc_per_node=1', '--max-restarts=1'])
    assert (plan.value('nproc_per_node'), plan.source('nproc_per_node')) == ('1', '--node-env')
    assert (plan.value('store'), plan.source('store')) == ('rank0', '--node-env')


def test_a_failure_has_the_nodes_rank_and_the_scripts_code(launch):
    result = launch(['--node-env', '--no_python', 'sh', '-c', 'exit 9'])
    assert result.rc == 9 and 'root cause: rank 0 (local rank 0, ' in result.err


def test_two_nodes_whose_scripts_start_two_ranks_each(start, place):
    pytest.importorskip('torch')
    script = place.write('spawns.py', SPAWNS)
    job = Cluster(start, 2, ['--node-env', '--python', sys.executable, script, '2'],
                  env={'GLOO_SOCKET_IFNAME': 'lo'})
    results = job.end()
    assert [result.rc for result in results] == [0, 0], results
    said = ''.join(result.out for result in results).splitlines()
    assert sorted(said) == [f'rank {rank} of 4 sum 6' for rank in range(4)]


# The script is its rank 0, and starts the others, as Lightning does. Its rank 1 fails by itself, and
# then rank 0, which has lost it.
LOSES = """import os, signal, subprocess, sys, time
if len(sys.argv) == 1:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # or the node that ends first has the other one's words cut short
    ready = os.path.join(os.path.dirname(sys.argv[0]), 'ready')
    if os.environ['NODE_RANK'] == '1':
        open(ready, 'w').close()
    while not os.path.exists(ready):
        time.sleep(0.01)
    child = subprocess.Popen([sys.executable, sys.argv[0], '1'])
    child.wait()
    for i in range(12):
        print('flushes', i, flush=True)
    def all_reduce():
        raise RuntimeError('[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:561] Connection closed by peer '
                           '[127.0.0.1]:11164')
    all_reduce()
def pour():
    raise ValueError('the teapot is empty')
if os.environ['NODE_RANK'] == '1':
    pour()
"""


def test_the_exception_of_a_rank_of_the_script_comes_before_those_that_lost_it(start, place):
    """On the other node, too, which ends first."""
    script = place.write('train.py', LOSES)
    results = Cluster(start, 2, ['--node-env', '--python', sys.executable, '--tail-lines=5', script]).end()
    for result in results:
        assert 'root cause: rank 1 (local rank 0' in result.err, result.err
    assert 'launchd: error: exception: ValueError: the teapot is empty' in results[0].err
    assert "raise ValueError('the teapot is empty')" in results[0].err


# Its ranks are 0 and 1 of its own: neither is launchd's rank 1, which is the other node's script.
TIMES_OUT = """import os, sys, time
if os.environ['NODE_RANK'] == '1':
    time.sleep(600)
def monitored_barrier():
    raise RuntimeError('[Rank 0]: Rank 1 failed to pass monitoredBarrier in 4000 ms')
monitored_barrier()
"""


def test_ranks_that_the_script_names_are_its_own(start, place):
    """Nobody is blamed, where launchd's ranks are others."""
    job = Cluster(start, 2, ['--node-env', '--python', sys.executable, place.write('train.py', TIMES_OUT)])
    for result in job.end():
        assert 'root cause: timed out waiting for another rank (rank 0 waited)' in result.err, result.err
