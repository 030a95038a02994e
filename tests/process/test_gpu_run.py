"""tests/gpu/run, which runs on a real GPU: that it says so where there is none, and its rehearsal with fakes."""
import os
import shutil
import subprocess

import pytest

from harness import BUILD, LIMIT, TESTS

RUN = TESTS / 'gpu' / 'run'


@pytest.fixture
def run(place):
    """run(*words) -> (exit code, lines of its summary, all that it printed)."""
    def call(*words, **env):
        done = subprocess.run([RUN, '--build', BUILD, '--out', place.path / 'out', *words],
                              env=place.environment({'PATH': os.environ['PATH'], **env}), capture_output=True,
                              text=True, timeout=3 * LIMIT, check=False)
        summary = place.path / 'out' / 'summary.txt'
        return done.returncode, summary.read_text().splitlines() if summary.exists() else [], done.stdout + done.stderr
    return call


@pytest.mark.skipif(shutil.which('nvidia-smi') is not None, reason='there is a GPU here')
def test_without_a_gpu(run):
    rc, lines, _ = run()
    assert rc == 77
    assert lines == ['SKIP  no GPU here (there is no nvidia-smi): nothing was run; --fake rehearses with fakes']


def test_with_fakes(run, place):
    steps = ['self_check', 'check_node', 'count', 'nodecheck', 'failure', 'kill9']
    rc, lines, said = run('--fake', 'facts', *steps, 'xid')
    assert rc == 0, said
    assert not [line for line in lines if line.startswith('FAIL')]
    passed = {line.split()[1].rstrip(':') for line in lines if line.startswith('PASS')}
    assert passed == set(steps)
    assert [line for line in lines if line.startswith('SKIP')] == ['SKIP  xid: no nvcc, or no GPU for it, here']
    raw = place.path / 'out' / 'raw'
    assert (raw / 'check_node' / 'nvml.json').stat().st_size > 1000
    assert list((raw / 'failure' / 'box').glob('failure-*')) and (place.path / 'out' / 'raw.tgz').exists()


def test_jobs_that_are_looked_at(run):
    rc, lines, said = run('--fake', 'nccl', 'hang')
    assert rc == 0, said
    assert {line.split()[1] for line in lines if line.startswith('PASS')} == {'nccl:', 'hang:'}


@pytest.mark.parametrize('faults, says', [
    ('ecc=3', 'FAIL  check_node: exit code 0 on a machine that is idle and well (is 3)'),
    ('recovery=1', 'FAIL  check_node: nvml: this machine is not bad'),
])
def test_a_gpu_that_is_bad_fails(run, faults, says):
    rc, lines, _ = run('--fake', 'check_node', FAKE_NVML=faults)
    assert rc == 1 and says in lines


def test_what_has_no_time_left_is_skipped(run):
    rc, lines, _ = run('--fake', '--budget', '5', 'self_check')
    assert (rc, lines) == (0, ['SKIP  self_check: no time is left'])


@pytest.mark.parametrize('words, says', [
    (['everything'], 'everything: no such step'), (['--fast'], '--fast: no such option'),
    (['--budget', 'soon'], '--budget: "soon" is no number of seconds'), (['--build', '/nowhere'], '/nowhere/launchd'),
])
def test_usage(run, words, says):
    rc, lines, said = run(*words)
    assert (rc, lines) == (2, []) and says in said


@pytest.mark.skipif(shutil.which('shellcheck') is None, reason='no shellcheck here')
def test_the_shell_is_clean():
    subprocess.run(['shellcheck', RUN], check=True, timeout=LIMIT)
