"""launchd-nodecheck: under real launchers, with plain memory in place of GPUs and the faults that a test
asks for; and the program itself, as far as it goes without a GPU."""
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import BUILD, TESTS
from together import Cluster, exit_codes

FAKE = BUILD / 'tests' / 'workers' / 'launchd-nodecheck-fake'
REAL = BUILD / 'daemon' / 'nodecheck' / 'cuda' / 'launchd-nodecheck'


class Check:
    """A check of some nodes with so many GPUs each; what rank 0 said of it."""

    def __init__(self, start, nnodes, gpus, faults='', options=('--json',), env=None):
        assert FAKE.exists(), f'{FAKE} is not there: build first'
        argv = ['--nproc_per_node', str(gpus), '--store', 'agent', '--no_python', '--use_env', str(FAKE),
                *options]
        self.results = Cluster(start, nnodes, argv,
                               {'FAKE_GPU_FAULTS': faults, **(env or {})}).end()
        self.out = self.results[0].out

    @property
    def code(self):
        """Node rank 0's; others have ended well before, or are ended with it."""
        return exit_codes(self.results)[0]

    @property
    def verdict(self):
        return json.loads(self.out)

    def findings(self, *healths):
        """(node, check, subject) of each finding of that health."""
        return {(node['node_rank'], found['check'], found['subject'])
                for node in self.verdict['nodes'] for found in node['check']['findings']
                if found['health'] in healths}

    def text(self, node):
        return ' | '.join(found['text'] for found in self.verdict['nodes'][node]['check']['findings'])


def test_all_good(start):
    check = Check(start, 3, 2)
    assert check.code == 0
    assert check.verdict['verdict'] == 'good'
    assert check.findings('bad', 'unknown') == set()
    told = {found for node, found, _ in check.findings('good') if node == 2}
    assert told == {'gpu', 'node_reduce', 'nic_reduce', 'pair_reduce', 'job_reduce'}
    assert check.verdict['nodes'][1]['node_bus_mb_s'] == pytest.approx(400000, rel=.001)
    assert check.verdict['nodes'][1]['nic_bus_mb_s'] == pytest.approx(40000, rel=.001)


@pytest.mark.parametrize('fault, found, says', [
    ('1.1:memory-wrong', (1, 'gpu_memory', 'GPU 1 (0000:11:00.0)'), 'words, first'),
    ('0.3:memory-slow', (0, 'gpu_memory', 'GPU 3 (0000:13:00.0)'), '0.50 GB/s, where its peers have 2.00 GB/s'),
    ('1.0:compute-wrong', (1, 'gpu_compute', 'GPU 0 (0000:10:00.0)'), 'elements of matrix products'),
    ('1.0:compute-slow', (1, 'gpu_compute', 'GPU 0 (0000:10:00.0)'), 'slow, each of 2 times'),
    ('0.2:ecc', (0, 'gpu_memory', 'GPU 2 (0000:12:00.0)'), 'uncorrectable ECC error'),
])
def test_bad_gpu(start, fault, found, says):
    check = Check(start, 2, 4, fault)
    assert check.code == 3
    assert check.findings('bad') == {found}
    assert says in check.text(found[0])
    assert check.findings('unknown') == set()


@pytest.mark.parametrize('fault, subject', [
    ('0.1:link-wrong', 'GPU 1 (0000:11:00.0)'), ('0.1-2:link-wrong', 'GPU 1 - GPU 2'),
])
def test_bad_link_inside_a_node(start, fault, subject):
    check = Check(start, 2, 4, fault)
    assert check.code == 3
    assert check.findings('bad') == {(0, 'node_reduce', ''), (0, 'node_reduce', subject)}


def test_bad_network_card(start):
    """By its own node's all-reduce, which the cards carry; NVLink's is good."""
    check = Check(start, 3, 4, '2.3:nic-slow')
    assert check.code == 3
    assert check.findings('bad') == {(2, 'nic_reduce', ''), (2, 'nic_reduce', 'GPU 3 (0000:13:00.0)')}
    assert (2, 'node_reduce', '') in check.findings('good')


@pytest.mark.parametrize('fault, did', [
    ('net-slow', 'is slow: 15.0 GB/s, where its peers have 60.0 GB/s'), ('net-wrong', 'gave a wrong result'),
    ('net-error', 'failed: ncclAllReduce: unhandled system error'),
])
def test_bad_node(start, fault, did):
    """Its partners are cleared by others."""
    check = Check(start, 5, 2, f'3:{fault}')
    assert check.code == 3
    assert check.findings('bad') == {(3, 'pair_reduce', '')}
    assert check.findings('unknown') == set()
    assert f'other nodes {did}' in check.text(3)


@pytest.mark.long
@pytest.mark.parametrize('fault', ['net-hang', 'net-stuck'])
def test_hanging_node(start, fault):
    """Whether the library ends the operation itself or its process has to be killed."""
    check = Check(start, 4, 1, f'2:{fault}', ['--json', '--limit', '2', '--only', 'gpu,pairs,job'])
    assert check.code == 3
    assert check.findings('bad') == {(2, 'pair_reduce', '')}
    assert 'did not end' in check.text(2)


@pytest.mark.long
def test_hanging_gpu(start):
    check = Check(start, 1, 2, '0.1:memory-hang', ['--json', '--limit', '1'])
    assert check.code == 3
    assert check.findings('bad') == {(0, 'gpu', 'GPU 1')}
    assert '1 s were over while writing and reading its memory' in check.text(0)


def test_two_bad_nodes(start):
    check = Check(start, 8, 1, '0:net-slow 5:net-wrong', ['--json', '--only', 'gpu,pairs,job'])
    assert check.code == 3
    assert check.findings('bad') == {(0, 'pair_reduce', ''), (5, 'pair_reduce', '')}


def test_slow_once(start):
    """A rate needs two sightings."""
    check = Check(start, 4, 1, '2:net-slow-once', ['--json', '--only', 'gpu,pairs'])
    assert check.code == 0
    assert check.findings('bad', 'unknown') == set()


def test_bad_link_between_nodes(start):
    """No node is bad, and the link is named on both ends."""
    check = Check(start, 4, 1, '1-2:net-wrong', ['--json', '--only', 'gpu,pairs,job'])
    assert check.code == 3
    assert check.findings('bad') == set()
    assert {(node, found) for node, found, _ in check.findings('unknown')} == {
        (1, 'pair_reduce'), (2, 'pair_reduce')}
    assert 'with others they are good' in check.text(1)


@pytest.mark.parametrize('fault, says', [
    ('1.0:none', 'no driver here'), ('1.0:busy', 'another process has it'),
    ('1.0:dies', 'its process died of signal 11 (Segmentation fault) while multiplying matrices'),
])
def test_unknown_is_not_bad(start, fault, says):
    check = Check(start, 2, 2, fault)
    assert check.code == 0
    assert check.verdict['verdict'] == 'unknown'
    assert check.findings('unknown') == {(1, 'gpu', subject) for _, _, subject in check.findings('unknown')}
    assert says in check.text(1)
    assert check.findings('bad') == set()


def test_no_nccl(start):
    """Nobody waits for a rank that can't take part, and its own reason is told."""
    check = Check(start, 2, 2, '1.1:no-nccl', ['--json', '--only', 'gpu,node'])
    assert check.code == 0
    assert check.findings('unknown') == {(1, 'node_reduce', '')}
    assert "libnccl.so.2 isn't there, in this test (rank 3)" in check.text(1)


def test_no_gpu_anywhere(start):
    check = Check(start, 2, 1, '0.0:none 1.0:none', [])
    assert check.code == 4
    assert 'launchd-nodecheck: error: no driver here, in this test' in check.results[0].err
    assert check.out == ''


def test_table(start):
    check = Check(start, 3, 1, '1:net-slow', ['--only', 'gpu,pairs'])
    assert check.code == 3
    head, *nodes, said, verdict = check.out.splitlines()
    assert head.startswith('NODE HOST') and [line.split()[0] for line in nodes] == ['0', '1', '2']
    assert '(node 1): bad: all-reduce with each of 2 other nodes is slow' in said
    assert verdict.startswith('1 of 3 nodes is bad: ') and verdict.endswith('(node 1)')


def test_demands(start):
    """Where there are no peers."""
    check = Check(start, 1, 2, '', ['--json', '--least', 'node=500', '--only', 'gpu,node'])
    assert check.code == 3
    assert '400 GB/s, where 500 GB/s are demanded' in check.text(0)


def test_shared_gpu(start):
    """Only where it is asked for."""
    one = {'FAKE_GPUS': '1'}
    refused = Check(start, 1, 2, '', env=one)
    assert refused.code == 0
    assert 'there are 1 GPUs for 2 ranks: --share-gpu lets them share' in refused.text(0)
    assert Check(start, 1, 2, '', ['--json', '--share-gpu'], env=one).verdict['verdict'] == 'good'
    shown = Check(start, 1, 2, '', env={**one, 'CUDA_VISIBLE_DEVICES': '0'})
    assert shown.verdict['verdict'] == 'good'


def test_by_hand(place):
    """One rank of one, without a launcher."""
    done = subprocess.run([FAKE, '--json'], env=place.environment({}), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ''
    assert json.loads(done.stdout)['nodes'][0]['gpus'] == 1


def test_no_store(place):
    env = {'RANK': '1', 'WORLD_SIZE': '2', 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': '1'}
    done = subprocess.run([FAKE], env=place.environment(env), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert 'launchd hosts one with --store agent' in done.stderr


def test_rank_does_not_come(start):
    result = start(['--nproc_per_node', '2', '--store', 'agent', '--no_python', '--use_env', '/bin/sh', '-c',
                    f'test $RANK = 0 || exec sleep 2; exec {FAKE} --limit 1']).end()
    assert result.rc == 0
    assert ': unknown: rank 1 did not come' in result.out


def cuda_is_here():
    """What the program is built of, looked for as little like meson does as can be."""
    nvcc = shutil.which('nvcc') or shutil.which('/usr/local/cuda/bin/nvcc')
    if not nvcc:
        return False
    includes = Path(nvcc).resolve().parent.parent / 'include'
    return subprocess.run(['cc', '-E', '-x', 'c', f'-I{includes}', '-'], input='#include <nccl.h>\n',
                          capture_output=True, text=True).returncode == 0


def build_option(name):
    told = json.loads((BUILD / 'meson-info' / 'intro-buildoptions.json').read_text())
    return next(option['value'] for option in told if option['name'] == name)


def test_it_is_built_where_cuda_is():
    """Or compiling and linking it would be lost without a word."""
    if not (BUILD / 'meson-info').exists():
        pytest.skip("this is no build directory of meson's")
    if build_option('bundled') or build_option('nodecheck') == 'disabled':
        pytest.skip('this build is to have no launchd-nodecheck')
    if not cuda_is_here():
        pytest.skip('nvcc or nccl.h is missing')
    log = (BUILD / 'meson-logs' / 'meson-log.txt').read_text()
    assert REAL.exists(), re.findall('.*no launchd-nodecheck.*', log)


@pytest.fixture
def real(place):
    if not REAL.exists():
        pytest.skip('this build has no launchd-nodecheck: nvcc or nccl.h is missing')

    def run(*argv, **env):
        return subprocess.run([REAL, *argv], env=place.environment(env), capture_output=True, text=True,
                              timeout=120)
    return run


def test_real_without_a_gpu(real):
    done = real()
    if done.returncode in (0, 3):
        pytest.skip('there is a GPU here')
    assert done.returncode == 4
    assert done.stderr.startswith('launchd-nodecheck: error: ') and done.stderr.count('\n') == 1
    assert done.stdout == ''
    assert json.loads(real('--json').stdout)['exit_code'] == 4


def test_real_says_what_it_is(real):
    name, serves = real('--version').stdout.splitlines()
    assert name.startswith('launchd-nodecheck ')
    assert re.fullmatch(r'Built with CUDA \d+\.\d: for drivers R\d+ and later, and GPUs of compute capability \d+\.\d and '
                        r'above\.', serves)
    assert '--least' in real('--help').stdout
    assert real('--fast').returncode == 2


def test_real_needs_no_cuda_library(real):
    """It runs wherever a driver is: neither CUDA's libraries nor NCCL are bound to it."""
    listed = subprocess.run(['ldd', REAL], capture_output=True, text=True, check=True).stdout
    assert 'libc.so.6' in listed
    assert not any(word in listed for word in ('libcud', 'libnccl', 'libstdc++', 'not found'))
    if build_option('b_sanitize') == 'none':
        found = set(re.findall(r'\b(lib[^.\s/]*)\.so', listed))
        assert found <= {'libc', 'libdl', 'libm', 'libpthread', 'librt', 'libuv', 'libinih'}


def test_man_page_has_every_option():
    said = subprocess.run([FAKE, '--help'], capture_output=True, text=True, check=True).stdout
    page = (TESTS.parent / 'config' / 'docs' / 'launchd-nodecheck.1.in').read_text()
    options = re.findall(r'^  --([a-z-]+)', said, re.MULTILINE)
    assert len(options) >= 10
    for option in options:
        assert re.search(rf'^\.It .*Fl \\-{option}\b', page, re.MULTILINE), option


@pytest.mark.skipif(not shutil.which('mandoc'), reason='no mandoc here')
def test_man_page_is_clean():
    page = TESTS.parent / 'config' / 'docs' / 'launchd-nodecheck.1.in'
    done = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning', page], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
