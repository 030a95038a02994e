"""The picture of a machine and its workers, of real machines' topologies (tests/topologies): by
--dry-run as text, which golden files hold (pytest --update-golden writes them anew), and as JSON; and by
launchctl status of a job that runs. --nic gpu, which goes by the same distances."""
import json
import subprocess

import pytest

from control import launchctl
from harness import BUILD, TESTS, native, until
from needs import WHY_NO_MEMORY_POLICY

GOLDEN = TESTS / 'golden'
TOPOLOGIES = TESTS / 'topologies'
NVML = str(BUILD / 'tests' / 'workers')
TURIN_BUSES = '0000:06:00.0,0000:16:00.0,0000:96:00.0,0000:e6:00.0'
CASES = {
    'turin-4gpu': (['--nproc_per_node=4', '--bind=auto'], {}),
    'turin-4gpu-shared': (['--nproc_per_node=4', '--nnodes=2', '--node_rank=1', '--master_addr=10.0.0.1',
                           '--gpus=3,1', '--share-gpus', '--bind=gpu'], {}),
    'dgx2': (['--nproc_per_node=8', '--gpus-per-worker=2', '--omp-threads=auto'], {}),
    'power9-gpu-memory': (['--nproc_per_node=3', '--bind=numa', '--membind=bind'], {}),
    'opteron-cpuset': (['--nproc_per_node=3', '--bind=core'], {}),
    'offline-node': (['--nproc_per_node=4', '--bind=core'], {}),
}


def topology(name):
    return {'HWLOC_XMLFILE': f'{TOPOLOGIES}/{name}.xml'}


def pictured(text):
    lines = text.partition('\nPlacement\n')[2].partition('\n\n')[0].splitlines()
    # the version of hwloc, and where the file is, are this machine's
    return [lines[0].rpartition(' (')[0].strip(), *lines[1:]]


@pytest.mark.parametrize('case', CASES)
def test_golden(launch, case, request):
    options, env = CASES[case]
    golden = GOLDEN / f'picture-{case}.txt'
    if WHY_NO_MEMORY_POLICY and golden.exists() and '  memory ' in golden.read_text():
        pytest.skip(WHY_NO_MEMORY_POLICY)
    name = next(path.stem for path in TOPOLOGIES.glob('*.xml') if case.startswith(path.stem))
    result = launch(['--dry-run', *native('dump', *options)], {**env, **topology(name)})
    assert result.rc == 0, result.err
    printed = '\n'.join(pictured(result.out)) + '\n'
    if request.config.getoption('--update-golden'):
        golden.write_text(printed)
    assert printed == golden.read_text()
    assert max(map(len, printed.splitlines())) <= 102


def test_json_has_the_same(dry, launch):
    argv = ['--nproc_per_node=4', '--bind=gpu']
    placement = dry(argv, topology('turin-4gpu')).json['placement']
    machine, workers = placement['machine'], placement['workers']
    assert [node['number'] for node in machine['numa_nodes']] == list(range(8))
    assert [gpu['bus'] for gpu in machine['gpus']] == TURIN_BUSES.split(',')
    assert [gpu['numa_node'] for gpu in machine['gpus']] == [1, 2, 6, 7]
    assert [worker['gpus'] for worker in workers] == [[0], [1], [2], [3]]
    assert [worker['cpus'] for worker in workers] == [
        machine['numa_nodes'][node]['cpus'] for node in (1, 2, 6, 7)]
    text = launch(['--dry-run', *native('dump', *argv)], topology('turin-4gpu')).out
    assert placement['picture'][1:] == [line[2:] for line in pictured(text)[1:]]


@pytest.mark.parametrize('argv', [[], ['--gpus=0', '--visible-devices=one'], ['--omp-threads=2']])
def test_nobody_who_does_not_ask_gets_one(dry, launch, argv):
    env = {'FAKE_GPUS': '4', 'LD_LIBRARY_PATH': NVML, 'HWLOC_XMLFILE': '/nowhere'}
    assert 'placement' not in dry(argv, env).json
    assert '\nPlacement\n' not in launch(['--dry-run', *native('dump', *argv)], env).out


def test_nvml_tells_names_and_which_gpus_are_here(dry):
    """In a container NVML numbers the GPUs that it has, which are not all of the machine's."""
    env = {**topology('turin-4gpu'), 'FAKE_GPUS': '2', 'LD_LIBRARY_PATH': NVML,
           'FAKE_GPU_BUSES': '0000:e6:00.0,0000:16:00.0'}
    placement = dry(['--nproc_per_node=2', '--omp-threads=auto'], env).json['placement']
    assert [worker['gpus'] for worker in placement['workers']] == [[3], [1]]
    gpus = {gpu['bus']: gpu for gpu in placement['machine']['gpus']}
    assert gpus['0000:e6:00.0']['index'] == 0 and gpus['0000:16:00.0']['index'] == 1
    assert gpus['0000:e6:00.0']['uuid'].startswith('GPU-00000000')
    assert gpus['0000:06:00.0']['uuid'] is gpus['0000:06:00.0']['index'] is None
    assert gpus['0000:16:00.0']['name'] == 'NVIDIA H100 80GB HBM3'


# of 4 GPUs those of NUMA nodes 6 and 7 have a port of their own, the others' are down
@pytest.mark.parametrize('options, ports', [
    (['--nproc_per_node=4'], ['mlx5_4:1', 'mlx5_5:1', 'mlx5_4:1', 'mlx5_5:1']),
    (['--nproc_per_node=2', '--gpus=3,2'], ['mlx5_5:1', 'mlx5_4:1']),
    (['--nproc_per_node=2', '--gpus-per-worker=2'], ['mlx5_4:1,mlx5_5:1', 'mlx5_4:1,mlx5_5:1']),
    (['--nproc_per_node=1', '--visible-devices=one'], ['mlx5_4:1'])])
def test_the_port_next_to_the_gpu(dry, options, ports):
    plan = dry(['--nic=gpu', *options], topology('turin-4gpu'))
    assert [plan.edits(rank)['UCX_NET_DEVICES']['value'] for rank in range(len(ports))] == ports
    assert {plan.edits(rank)['UCX_NET_DEVICES']['why'] for rank in range(len(ports))} == {'--nic gpu'}
    assert not any('NCCL' in name and 'ASYNC' not in name for name in plan.edits())


def test_a_port_that_the_user_chose_stays(dry):
    for options, env in [([], {'UCX_NET_DEVICES': 'mlx5_1:1'}), (['--env=UCX_NET_DEVICES=all'], {})]:
        plan = dry(['--nic=gpu', '--nproc_per_node=1', *options], {**env, **topology('turin-4gpu')})
        assert plan.edits().get('UCX_NET_DEVICES', {}).get('value') == ('all' if options else None)
        assert plan.warnings() == []


@pytest.mark.parametrize('name, options, why', [
    ('dgx2', ['--nproc_per_node=1'], 'no InfiniBand or RoCE port is up here'),
    ('turin-4gpu', ['--nproc_per_node=5'], "it isn't known which GPU each worker has"),
    ('turin-4gpu', ['--nproc_per_node=1', '--gpus=MIG-1'], "it isn't known which GPU each worker has")])
def test_no_port_is_said(dry, name, options, why):
    plan = dry(['--nic=gpu', *options], topology(name))
    assert f'--nic: {why}: UCX_NET_DEVICES is left to UCX' in plan.warnings()
    assert 'UCX_NET_DEVICES' not in plan.edits()


def test_launchctl_shows_where_workers_run(start, place, dry):
    options = ['--nproc_per_node=2', '--bind=auto']
    planned = dry(options).json['placement']
    tell, go = place.fifo('tell'), place.fifo('go')
    job = start(native('dump', *options), {'TELL': tell.path, 'GO': go.path})
    tell.expect('ready', 2)

    def ask(*words):
        done = subprocess.run([*launchctl(place), 'status', *words], env=place.environment({}),
                              capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else None

    shown = until(ask, 'an answer').partition('\nPlacement\n')[2].splitlines()
    assert shown == ['  ' + line for line in planned['picture']]
    assert json.loads(until(lambda: ask('--json'), 'an answer'))['placement'] == planned
    go.go(2)
    assert job.end().rc == 0
