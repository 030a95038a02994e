"""nproc_per_node gpu and auto: counted by NVML, of which the tests bring a fake one."""
import os

import pytest

from harness import BUILD, native
from needs import needs_mounts
from nvidia_kernel import with_gpus

NVML = str(BUILD / 'tests' / 'workers')


def fake(gpus, visible=None):
    env = {'LD_LIBRARY_PATH': NVML, 'FAKE_GPUS': str(gpus)}
    return env if visible is None else {**env, 'CUDA_VISIBLE_DEVICES': visible}


@pytest.mark.parametrize('env, count', [
    (fake(8), '8'), (fake(8, '0,2,5'), '3'), (fake(2, 'GPU-a,GPU-b'), '2'),
    ({**fake(8), 'FAKE_NVML': 'hang=nvmlShutdown'}, '8')])
@pytest.mark.parametrize('word', ['gpu', 'auto'])
def test_gpus_are_counted_as_cuda_shows_them(dry, word, env, count):
    plan = dry([f'--nproc_per_node={word}'], env)
    assert plan.value('nproc_per_node') == count
    assert plan.source('nproc_per_node') == f'--nproc_per_node={word}, GPUs'


@pytest.mark.parametrize('env', [fake(0), fake(-1), fake(8, ''), fake(8, '-1')])
def test_no_gpu(dry, refused, env):
    """auto takes the CPUs; gpu says why not."""
    cpus = str(len(os.sched_getaffinity(0)))
    assert dry(['--nproc_per_node=auto'], env).value('nproc_per_node') == cpus
    refused(native('dump', '--nproc_per_node=gpu'), '--nproc_per_node', 'GPU', 'NVML', env=env)


UPDATED = 'NVML: nvmlInit: the driver that is loaded is not the one that is installed: reboot'


@pytest.mark.parametrize('word', ['gpu', 'auto'])
@pytest.mark.parametrize('env, says', [
    (fake('broken'), 'NVML: nvmlDeviceGetCount: an error inside the driver'),
    ({**fake(8), 'FAKE_NVML': 'nvmlInit=18'}, UPDATED),
    ({**fake(8, '0,1'), 'FAKE_NVML': 'nvmlInit=18'}, UPDATED),
    ({**fake(8), 'FAKE_NVML': 'nvmlInit=999'}, 'NVML: nvmlInit: an error inside the driver'),
    ({**fake(8), 'FAKE_NVML': 'nvmlInit=4'}, 'NVML: nvmlInit: no permission'),
    ({**fake(8), 'FAKE_NVML': 'nvmlInit=12'}, 'NVML: nvmlInit: error 12'),
    ({**fake(8), 'FAKE_NVML': 'crash=nvmlInit'}, 'NVML: the process that asked it died'),
])
def test_an_nvml_that_fails_is_said(refused, place, word, env, says):
    """Nobody guesses: no worker starts."""
    refused(native('dump', f'--nproc_per_node={word}'), f'--nproc_per_node: "{word}" needs the number of GPUs', says,
            'give a number, or cpu', env=env)
    assert not place.dumps()


@pytest.mark.parametrize('options', [['--gpus=0,1'], ['--gpus-per-worker=2'], ['--visible-devices=one']])
def test_gpus_that_are_asked_for_where_nvml_fails(refused, options):
    refused(native('dump', *options), options[0].split('=')[0], UPDATED, env={**fake(8), 'FAKE_NVML': 'nvmlInit=18'})


def test_who_does_not_ask_for_gpus_starts_where_nvml_fails(dry):
    env = {**fake(8), 'FAKE_NVML': 'nvmlInit=18'}
    assert dry(['--nproc_per_node=cpu'], env).value('nproc_per_node') == str(len(os.sched_getaffinity(0)))
    assert dry(['--nproc_per_node=3'], env).value('nproc_per_node') == '3'
    assert dry(['--nproc_per_node=auto'], {**env, 'CUDA_VISIBLE_DEVICES': ''}).source('nproc_per_node').endswith('CPUs')


@needs_mounts
@pytest.mark.parametrize('env, says', [
    (fake(-1), 'NVML: nvmlInit: the driver is not loaded'),
    (fake(0), 'NVML counts none'),
    ({}, 'libnvidia-ml.so.1'),
], ids=['not reached', 'none', 'no library'])
def test_gpus_with_device_files_that_nvml_does_not_count(refused, dry, env, says):
    """In a container without GPUs auto takes the CPUs, although the driver is loaded."""
    refused(native('dump', '--nproc_per_node=auto'), "isn't known here", says, env=env, wrap=with_gpus(8))
    assert dry(['--nproc_per_node=auto'], env, wrap=with_gpus(0)).source('nproc_per_node').endswith('CPUs')


@needs_mounts
@pytest.mark.parametrize('kernel, variable', [
    (with_gpus(0, 'kfd', 'nvidiactl'), 'HIP_VISIBLE_DEVICES'),
    (with_gpus(2, 'kfd', 'nvidiactl'), 'CUDA_VISIBLE_DEVICES'),
    (with_gpus(0), 'CUDA_VISIBLE_DEVICES'),
], ids=["AMD's, and a file that NVML has left", 'both', 'neither'])
def test_whose_gpus_are_here(dry, kernel, variable):
    plan = dry(['--nproc_per_node=2', '--visible-devices=one'], wrap=kernel)
    assert plan.edits(1)[variable]['value'] == '1'
    assert ('HIP_VISIBLE_DEVICES' in plan.edits(1)) == (variable == 'HIP_VISIBLE_DEVICES')


NODE = pytest.mark.skipif(os.geteuid() != 0 or os.path.exists('/proc/driver/nvidia'), reason='only root makes device '
                          'files, and only where no driver is')


@NODE
@pytest.mark.parametrize('command', [
    ['--self-check'], ['--check-node'], native('dump', '--nproc_per_node=auto'),
    native('ending', '--nproc_per_node=2', '--preflight=quick', '--max-restarts=1'),
])
@pytest.mark.parametrize('gpus', ['-1', '2'])
def test_asking_nvml_makes_no_device_file(launch, place, command, gpus):
    launch(command, {**fake(gpus), 'FAKE_CONTROL_DEVICE': f'{place.path}/nvidiactl', 'END': 'exit:0'})
    assert not (place.path / 'nvidiactl').exists()


def test_nvml_is_loaded_only_where_it_is_asked(dry):
    assert dry(['--nproc_per_node=2'], fake('broken')).value('nproc_per_node') == '2'


VARIABLES = ['CUDA_VISIBLE_DEVICES', 'HIP_VISIBLE_DEVICES', 'ROCR_VISIBLE_DEVICES', 'ZE_AFFINITY_MASK']
UUIDS = [f'GPU-{number:08}-0000-0000-0000-000000000000' for number in range(8)]


@pytest.fixture
def seen(launch, place):
    """seen(options, env) -> for each worker its LOCAL_RANK and what it has of the variables."""

    def run(options, env):
        result = launch(native('dump', *options), env)
        assert result.rc == 0, result.err
        dumps = [place.dumps()[rank]['env'] for rank in range(len(place.dumps()))]
        return [(found['LOCAL_RANK'], *[f'{name}={found[name]}' for name in VARIABLES if name in found])
                for found in dumps]

    return run


@pytest.mark.parametrize('options, env, expected', [
    (['--nproc_per_node=2'], fake(4, '3,1'), [('0', 'CUDA_VISIBLE_DEVICES=3,1'),
                                              ('1', 'CUDA_VISIBLE_DEVICES=3,1')]),
    (['--nproc_per_node=gpu', '--gpus=3,0-1'], fake(4),
     [(rank, 'CUDA_VISIBLE_DEVICES=3,0,1') for rank in '012']),
    (['--nproc_per_node=gpu', '--gpus-per-worker=2', '--visible-devices=one'], fake(4),
     [('0', 'CUDA_VISIBLE_DEVICES=0,1'), ('0', 'CUDA_VISIBLE_DEVICES=2,3')]),
    (['--nproc_per_node=3', '--virtual-local-rank', '--share-gpus'], fake(2),
     [('0', f'CUDA_VISIBLE_DEVICES={device}') for device in '010']),
    (['--nproc_per_node=2', '--virtual-local-rank', '--visible-devices=one'], {},
     [('0', 'CUDA_VISIBLE_DEVICES=0'), ('0', 'CUDA_VISIBLE_DEVICES=1')]),
    (['--nproc_per_node=2', '--visible-devices=none'], fake(4, '0'),
     [('0', 'CUDA_VISIBLE_DEVICES=-1'), ('1', 'CUDA_VISIBLE_DEVICES=-1')]),
    ([f'--gpus={UUIDS[3]},{UUIDS[0]}', '--nproc_per_node=gpu', '--visible-devices=one'], fake(4),
     [('0', f'CUDA_VISIBLE_DEVICES={UUIDS[3]}'), ('0', f'CUDA_VISIBLE_DEVICES={UUIDS[0]}')]),
    (['--nproc_per_node=2', '--visible-devices=one'], {'HIP_VISIBLE_DEVICES': '6,4'},
     [('0', 'CUDA_VISIBLE_DEVICES=6', 'HIP_VISIBLE_DEVICES=6'),
      ('0', 'CUDA_VISIBLE_DEVICES=4', 'HIP_VISIBLE_DEVICES=4')]),
    (['--nproc_per_node=gpu', '--visible-devices=one'], {'ROCR_VISIBLE_DEVICES': '6,4'},
     [('0', 'CUDA_VISIBLE_DEVICES=0', 'HIP_VISIBLE_DEVICES=0', 'ROCR_VISIBLE_DEVICES=6,4'),
      ('0', 'CUDA_VISIBLE_DEVICES=1', 'HIP_VISIBLE_DEVICES=1', 'ROCR_VISIBLE_DEVICES=6,4')]),
    (['--nproc_per_node=gpu', '--visible-devices=one'], {'ZE_AFFINITY_MASK': '0.0,0.1'},
     [('0', 'ZE_AFFINITY_MASK=0.0'), ('0', 'ZE_AFFINITY_MASK=0.1')])])
def test_what_workers_see(seen, options, env, expected):
    assert seen(options, env) == expected


def test_the_user_has_the_last_word(seen):
    assert seen(['--gpus=1', '--env=CUDA_VISIBLE_DEVICES=2'], fake(4)) == [('0', 'CUDA_VISIBLE_DEVICES=2')]


def test_jaxs_devices(dry):
    plan = dry(['--nproc_per_node=2', '--gpus-per-worker=2', '--jax-env'], fake(4))
    assert [plan.edits(rank)['JAX_LOCAL_DEVICE_IDS']['value'] for rank in range(2)] == ['0,1', '2,3']


@pytest.mark.parametrize('options, env, words', [
    (['--nproc_per_node=3', '--gpus=0,1'], fake(4),
     ['--gpus: 3 workers need 3 GPUs, but there are 2', '--share-gpus']),
    ([f'--gpus={UUIDS[3]}'], fake(2), [UUIDS[3], 'among the 2 GPUs']),
    (['--nproc_per_node=gpu', '--gpus-per-worker=5'], fake(4), ['one worker for 5 GPUs', 'fewer']),
    (['--virtual-local-rank', '--visible-devices=none'], {},
     ['--virtual-local-rank and --visible-devices none are mutually exclusive']),
    (['--virtual-local-rank', '--visible-devices=keep'], {}, ['keep are mutually exclusive']),
    (['--gpus=1', '--visible-devices=none'], {}, ['--gpus and --visible-devices none']),
    (['--gpus-per-worker=2', '--visible-devices=none'], {}, ['--gpus-per-worker and --visible-devices']),
    (['--node-env', '--visible-devices=one'], {}, ['--node-env and --visible-devices one']),
    (['--nproc_per_node=2', '--visible-devices=one'], {'HIP_VISIBLE_DEVICES': '-1'},
     ['2 workers need 2 GPUs, but there are 0 (HIP_VISIBLE_DEVICES=-1)']),
    (['--gpus=0,0'], {}, ['"0,0"', 'each once'])])
def test_what_can_not_be_seen(refused, options, env, words):
    refused(native('dump', *options), *words, env=env)


def test_gpus_that_are_left_over(dry):
    plan = dry(['--nproc_per_node=gpu', '--gpus-per-worker=3'], fake(8))
    assert plan.value('nproc_per_node') == '2'
    assert '--gpus-per-worker: 2 of 8 GPUs are left over, as each worker takes 3' in plan.warnings()


def test_nvml_is_not_asked_for_what_it_does_not_tell(seen):
    """--virtual-local-rank is torchrun's, which doesn't ask it."""
    for options in (['--virtual-local-rank'], ['--gpus=all'], ['--share-gpus'], ['--visible-devices=keep']):
        assert seen(options, fake('broken'))
