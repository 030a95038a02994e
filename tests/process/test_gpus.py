"""nproc_per_node gpu and auto: counted by NVML, of which the tests bring a fake one."""
import os

import pytest

from harness import BUILD, native

NVML = str(BUILD / 'tests' / 'workers')


def fake(gpus, visible=None):
    env = {'LD_LIBRARY_PATH': NVML, 'FAKE_GPUS': str(gpus)}
    return env if visible is None else {**env, 'CUDA_VISIBLE_DEVICES': visible}


@pytest.mark.parametrize('env, count', [
    (fake(8), '8'), (fake(8, '0,2,5'), '3'), (fake(2, 'GPU-a,GPU-b'), '2')])
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


def test_an_nvml_that_fails_is_said(refused):
    refused(native('dump', '--nproc_per_node=gpu'), 'nvmlDeviceGetCount', env=fake('broken'), rc=1)


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
