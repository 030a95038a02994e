"""--self-check: what people paste into an issue."""
import errno
import os

import pytest

from harness import BUILD
from sandbox import enter, without

NVML = str(BUILD / 'tests' / 'workers')


@pytest.fixture
def check(launch):
    """check(options, env=...) -> its rows by their labels; each line but the first of one begins with
    blanks."""

    def run(*options, env=None, **how):
        result = launch(['--self-check', *options], env, **how)
        assert (result.rc, result.err) == (0, '')
        lines = result.out.splitlines()
        assert all(len(line) <= 80 or ' ' not in line[12:] for line in lines), result.out
        assert len(lines) <= 24, result.out
        found = {}
        for line in lines:
            label, value = line[:12].strip(), line[12:]
            if label:
                found[label] = value
            else:
                found[list(found)[-1]] += ' ' + value
        return found

    return run


def test_what_there_is(check, place):
    found = check()
    assert found['kernel'] == f'Linux {os.uname().release}, {os.uname().machine}'
    assert found['C library'] == os.confstr('CS_GNU_LIBC_VERSION')
    for name in ('libpmix', 'libsodium', 'libcjson'):
        assert ', /' in found[name] or ', linked in' in found[name] or 'would add: ' in found[name]
    assert found['hwloc'].startswith(('/', 'linked in')) or 'would add: ' in found['hwloc']
    assert found['nodes'] == '1 (one node)'
    assert not list(place.tmp.iterdir())


def test_version_and_verbose_say_the_same(launch):
    assert launch(['--version', '--verbose']).out == launch(['--self-check']).out
    assert len(launch(['--version']).out.splitlines()) == 1


def test_what_an_old_kernel_has_not(check):
    found = check(before=lambda: enter('4.18'))
    assert 'CLONE_PIDFD (5.3) by SIGCHLD and waitid; ' in found['replaced']
    assert 'pidfd_open' not in found.get('used', '')


def test_what_a_sandbox_forbids(check):
    found = check(before=lambda: without('pidfd_open', error=errno.EPERM))
    assert f'pidfd_open (5.3; {os.strerror(errno.EPERM)}) by ' in found['replaced']
    assert 'seccomp filter' in found['sandbox']


def test_a_library_that_is_not_installed(check):
    found = check()['NVML']
    if found.startswith('/'):
        pytest.skip('NVML is installed here')
    assert found.startswith('libnvidia-ml.so.1 is not installed; it would add: ')


def test_a_library_that_can_t_be_loaded_says_why(check, place):
    place.write('no/libpmix.so.2', 'this is no library\n')
    found = check(env={'LD_LIBRARY_PATH': str(place.path / 'no')})['libpmix']
    assert 'libpmix.so.2: file too short' in found and 'installed' not in found


def test_gpus(check):
    found = check(env={'LD_LIBRARY_PATH': NVML, 'FAKE_GPUS': '8', 'CUDA_VISIBLE_DEVICES': '0,2,5'})
    assert found['NVML'] == f'{NVML}/libnvidia-ml.so.1'
    assert found['GPUs'] == '3 that workers would see'
    assert 'nvmlDeviceGetCount' in check(env={'LD_LIBRARY_PATH': NVML, 'FAKE_GPUS': 'broken'})['GPUs']


def test_what_nvml_says_where_it_counts_none(check):
    fake = {'LD_LIBRARY_PATH': NVML, 'FAKE_GPUS': '-1'}
    assert check(env=fake)['GPUs'] == '0 that workers would see; NVML: nvmlInit: the driver is not loaded'
    found = check(env={**fake, 'FAKE_GPUS': '8', 'FAKE_NVML': 'nvmlInit=18'})['GPUs']
    assert found.startswith('not known: NVML: nvmlInit: the driver that is loaded is not the one that is installed: ')


def test_nodes_with_these_settings(check):
    two = ['--nnodes=2', '--node_rank=1', '--master_addr=10.0.0.4']
    found = check(*two, '--control=auto', env={'LAUNCHD_KEY': 'x' * 40})
    assert found['nodes'] == '2 (--nnodes); their launchers would meet: 10.0.0.4:29501'
    assert 'xxx' not in str(found)
    assert check(*two, '--control=off')['nodes'] == '2 (--nnodes); their launchers would not meet'
    under_mpirun = {'OMPI_COMM_WORLD_RANK': '1', 'OMPI_COMM_WORLD_SIZE': '4', 'PMIX_NAMESPACE': 'a',
                    'PMIX_RANK': '1', 'PMIX_SERVER_URI41': 'nowhere', 'PMIX_VERSION': '4.1.2'}
    found = check('--control=auto', env=under_mpirun)
    assert found['started by'] == 'mpirun, with a PMIx 4.1.2 server'
    assert found['nodes'] == '4 (OMPI_COMM_WORLD_SIZE); their launchers would meet: by PMIx'


def test_settings_that_are_wrong_are_said(check, refused):
    assert check(env={'PET_NNODES': 'x'})['settings'].startswith('PET_NNODES: "x" is not ')
    assert check('--nnodes=2')['nodes'].startswith('the job has 2 nodes (--nnodes), but no ')
    refused(['--self-check', '--nnodes=x'], '--nnodes')
