"""--preflight=gpu and full: launchd-nodecheck on all nodes before the workers start. NVML and the GPUs are
fakes, and so are their faults."""
import socket

import pytest

from harness import BUILD, children_of, is_running, native, status_of, supervisor_of, until
from needs import needs_shm
from together import Cluster, errors, exit_codes, warnings

pytestmark = needs_shm
FAKE = BUILD / 'tests' / 'workers' / 'launchd-nodecheck-fake'
HOST = socket.gethostname()
NVML = {'LD_LIBRARY_PATH': str(BUILD / 'tests' / 'workers'), 'FAKE_GPUS': '2'}


@pytest.fixture
def env(place):
    """With the program on PATH; the build's own launchd has none beside it."""
    there = place.path / 'programs'
    there.mkdir()
    (there / 'launchd-nodecheck').symlink_to(FAKE)
    return {**NVML, 'PATH': f'{there}:/usr/bin:/bin', 'END': 'exit:0'}


def job(start, nodes, env, faults='', mode='gpu', each=None, options=()):
    return Cluster(start, nodes, [f'--preflight={mode}', *options, *native('ending', '--nproc_per_node=1')],
                   {**env, 'FAKE_GPU_FAULTS': faults}, each)


def checked(result):
    return [line for line in result.err.splitlines() if ': checked ' in line]


@pytest.mark.parametrize('nodes', [1, 3])
def test_all_good(start, env, nodes):
    """Also on one node alone, whose GPUs have a store of their own to meet in."""
    results = job(start, nodes, env).end()
    assert exit_codes(results) == [0] * nodes
    assert not any(map(warnings, results))
    [line] = checked(results[0])
    assert '(quick, gpu) in ' in line
    # what quick can't know of this machine, as its clock, is said there, too
    assert line.endswith(': all good') or ': none is bad; ' in line and ': gpu: ' not in line
    assert [result.out for result in results] == [''] * nodes  # the verdict is launchd's to tell


@pytest.mark.parametrize('nodes, faults, bad, says', [
    (1, '0.1:memory-wrong', 0, 'GPU 1 (0000:11:00.0): its memory test gave a wrong result'),
    (2, '1.0:compute-slow', 1, 'GPU 0 (0000:10:00.0): slow, each of 2 times'),
    (4, '2:net-slow', 2, 'all-reduce with each of 3 other nodes is slow: 15.0 GB/s'),
])
def test_a_bad_node_is_named(start, env, nodes, faults, bad, says):
    results = job(start, nodes, env, faults).end()
    assert exit_codes(results) == [122] * nodes
    [warning] = warnings(results[0])
    assert f'node {bad} ({HOST}) is bad: ' in warning and says in warning
    for result in results:
        assert errors(result)[0].endswith(f'; exclude: {HOST}')


def test_rates_are_demanded_by_model(start, env, place):
    """Of those sections that fit, the one with the longest name counts."""
    def least(model, **numbered):
        place.write('job.ini', f'[check]\nleast-node = 900.4\n\n[check {model}]\nleast-node = 0.5\n')
        return job(start, 1, {**env, **numbered}, options=['--config=job.ini']).end()[0]

    assert least('H100').rc == 0
    result = least('A100')
    assert result.rc == 122 and ', where 900 GB/s are demanded' in errors(result)[0]
    # the first that workers see
    of_two = {'FAKE_NVML': 'name@1=NVIDIA_A100-SXM4-80GB', 'FAKE_GPUS': '2'}
    mixed = {**of_two, 'CUDA_DEVICE_ORDER': 'PCI_BUS_ID'}
    for number in '01':  # by speed: which model that is isn't known, so that nothing is demanded
        assert least('A100', **of_two, CUDA_VISIBLE_DEVICES=number).rc == 0
    assert least('A100', **mixed, CUDA_VISIBLE_DEVICES='1').rc == 0
    assert least('A100', **mixed, CUDA_VISIBLE_DEVICES='1,0').rc == 0
    assert least('A100', **mixed, CUDA_VISIBLE_DEVICES='GPU-00000001,0').rc == 0
    assert least('A100', **mixed, CUDA_VISIBLE_DEVICES='0,1').rc == 122
    for name in 'MIG-aaaa,MIG-bbbb', 'GPU-0000abcd,GPU-00000000':  # parts, and one that NVML doesn't know
        assert least('A100', CUDA_VISIBLE_DEVICES=name).rc == 0


def test_a_bad_link_ends_no_job(start, env):
    """No node can be blamed for it: it is said."""
    results = job(start, 4, env, '0-1:net-wrong').end()
    assert exit_codes(results) == [0] * 4
    assert 'with others they are good' in results[0].err


def test_full(start, env):
    """All phases; and what one finds ends it."""
    results = job(start, 2, env, mode='full').end()
    assert exit_codes(results) == [0, 0]
    assert '(quick, gpu) in ' in checked(results[0])[0].replace('links, ', '')
    results = job(start, 2, {**env, 'FAKE_NVML': 'ecc@1=4'}, mode='full').end()
    assert exit_codes(results) == [122, 122]
    assert 'uncorrectable' in errors(results[0])[0]


def test_uneven_nodes(start, env):
    """Ranks are counted through all nodes: what is bad is the second GPU of the second one."""
    results = job(start, 3, env, '1.1:memory-wrong',
                  each=lambda node: ([], {'FAKE_GPUS': str(node + 1)})).end()
    assert exit_codes(results) == [122] * 3
    assert f'node 1 ({HOST}) is bad: GPU 1 (' in errors(results[0])[0]


def test_a_node_without_gpus_is_unknown(start, env):
    """To this phase. The quick one, before it, goes by what most nodes have."""
    def each(node):
        return [], {'FAKE_GPUS': '0' if node == 1 else '2'}

    results = job(start, 3, env, each=each, options=['--on-bad-node=report']).end()
    assert exit_codes(results) == [0] * 3
    [warning] = warnings(results[0])
    assert f'node 1 ({HOST}) is bad: gpu_count: none, but 2 of 3 nodes have 2' in warning
    assert f'node 1 ({HOST}): gpu: NVML counts none' in checked(results[0])[0]


def test_no_program(start, refused, place):
    """gpu wants it; of a full check it is a part that is said to be missing."""
    refused(native('ending', '--preflight=gpu'), '--preflight', 'launchd-nodecheck', 'nvcc', env=NVML)
    [result] = job(start, 1, {**NVML, 'END': 'exit:0'}, mode='full').end()
    assert result.rc == 0
    assert 'there is no launchd-nodecheck beside launchd' in result.err


def test_a_program_that_fails(start, place):
    """Says why, and is no reason to exclude a node."""
    there = place.path / 'programs'
    place.write('programs/launchd-nodecheck', '#!/bin/sh\necho the sky is falling >&2\nexit 1\n', 0o755)
    [result] = job(start, 1, {**NVML, 'PATH': f'{there}:/usr/bin:/bin', 'END': 'exit:0'}).end()
    assert result.rc == 0
    assert 'launchd-nodecheck has found nothing: the sky is falling' in result.err


def test_the_nccl_of_the_jobs_torch(start, place):
    """It is beside torch where pip has put it, and no loader looks there."""
    place.write('site/torch/version.py', "__version__ = '2.8.0'\n")
    place.write('site/nvidia/nccl/lib/libnccl.so.2', '')
    place.write('programs/launchd-nodecheck', '#!/bin/sh\necho home $NCCL_HOME >&2\nexit 1\n', 0o755)
    env = {**NVML, 'PATH': f'{place.path}/programs:/usr/bin:/bin', 'PYTHONPATH': f'{place.path}/site'}
    argv = ['--preflight=gpu', place.write('job.py', '')]
    for more, home in ({}, f'{place.path}/site/nvidia/nccl'), ({'NCCL_HOME': '/mine'}, '/mine'):
        [result] = Cluster(start, 1, argv, {**env, **more}).end()
        assert f'has found nothing: home {home}' in result.err


def test_nothing_outlives_a_launcher_that_is_killed(start, env):
    """While a GPU hangs: launchd-nodecheck, its part and the store are all below the check's process."""
    def below(pid):
        try:
            return [pid, *(further for child in children_of(pid) for further in below(child))]
        except FileNotFoundError:
            return []  # it has just ended

    def hanging():
        found = below(supervisor)
        names = [status_of(pid).get('Name') for pid in found]
        return found if names.count('nodecheck-part') == names.count('launchd-nodeche') == 2 else None

    cluster = job(start, 1, env, '0.0:open-hang 0.1:open-hang')
    supervisor = supervisor_of(cluster.jobs[0].pid)
    processes = until(hanging, 'both GPUs to hang')
    cluster.jobs[0].kill()
    until(lambda: not any(map(is_running, processes)), 'all to be gone')


def test_a_stop_ends_the_check(start, env):
    cluster = job(start, 1, env, '0.0:open-hang')
    supervisor = supervisor_of(cluster.jobs[0].pid)
    until(lambda: any(status_of(pid).get('Name') == 'node-check' for pid in children_of(supervisor)),
          'the check to begin')
    cluster.jobs[0].signal(15)
    [result] = cluster.end()
    assert result.rc == 143
