"""nproc_per_node gpu and auto: counted by NVML, of which the tests bring a fake one."""
import os

import pytest

from harness import BUILD, native

NVML = str(BUILD / 'tests' / 'workers')


def fake(gpus, visible=None):
    env = {'LD_LIBRARY_PATH': NVML, 'FAKE_GPUS': str(gpus)}
    return env if visible is None else {**env, 'CUDA_VISIBLE_DEVICES': visible}


@pytest.mark.parametrize('env, count', [
    (fake(8), '8'), (fake(1), '1'), (fake(8, '0,2,5'), '3'), (fake(4, '0,7'), '1'),
    (fake(2, 'GPU-a,GPU-b'), '2')])
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
