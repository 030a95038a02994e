"""What newer kernels have, and older ones and sandboxes don't: launchd does without."""
import errno
import os
import signal

import pytest

from harness import is_idle, is_running, native, stop, supervisor_of, until
from sandbox import BLIND, LEVEL, LEVELS, enter, without

LONG = '--shutdown-timeout=600'  # so that nothing but what is tested ends a worker
CALLS = {'pidfd_open': 'pidfd_open', 'pidfd_send_signal': 'pidfd_send_signal',
         'clone3': 'CLONE_INTO_CGROUP', 'close_range': 'CLOSE_RANGE_CLOEXEC'}
RANK_OF_MPIRUN = 'OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1'


@pytest.mark.parametrize('level', LEVELS)
def test_a_job_on_it(launch, place, level):
    """Log files, a failure, an ignored SIGTERM and a survivor."""
    result = launch(native('ending', '--nproc_per_node=3', '--log-dir=logs', '-t', '3', LONG),
                    {'END_1': 'exit:42'}, before=lambda: enter(level))
    assert result.rc == 42 and 'root cause: rank 1 ' in result.err
    assert (place.path / 'logs').exists()


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('error', [errno.EPERM, errno.ENOSYS])
def test_a_call_that_is_refused(launch, call, error):
    """Workers' output is theirs: EPERM of clone3 keeps glibc from starting a thread."""
    result = launch(native('ending', '--nproc_per_node=2', '--verbose', LONG), {'END_1': 'exit:7'},
                    before=lambda: without(call, error=error))
    assert result.rc == 7 and 'root cause: rank 1 ' in result.err
    assert f'{CALLS[call]} (Linux 5.' in result.err and f'{os.strerror(error)}; ' in result.err


def test_the_lack_is_named(launch):
    said = [launch(native('ending', option), {'END': 'exit:0'}, before=lambda: enter('4.18')).err
            for option in ('--verbose', '--standalone')]
    for name in ('CLONE_PIDFD', 'pidfd_open', 'pidfd_send_signal', 'CLONE_INTO_CGROUP',
                 'CLOSE_RANGE_CLOEXEC'):
        assert f'note: {name} (Linux 5.' in said[0], said[0]
    assert said[1] == ''


def stopped(job):
    """Its supervisor, which reads no signal now."""
    supervisor = supervisor_of(job.pid)
    until(lambda: is_idle(supervisor), 'what has happened so far to be read')
    stop(supervisor)
    return supervisor


def end_in_order(pids, *ranks):
    for rank in ranks:
        os.kill(pids[rank], signal.SIGKILL)
        until(lambda rank=rank: not is_running(pids[rank]), f'rank {rank} to end')


def run_of(start, place, level, nproc):
    ready = place.fifo('ready')
    job = start(native('ending', f'--nproc_per_node={nproc}', '--report=report.json', LONG),
                {'TELL': ready.path}, before=lambda: enter(level))
    return job, ready.expect('ready', nproc)


@pytest.mark.parametrize('level', BLIND)
def test_the_first_of_many_deaths_in_one_signal(start, place, level):
    job, pids = run_of(start, place, level, 64)
    supervisor = stopped(job)
    end_in_order(pids, 37, *(rank for rank in range(64) if rank != 37))
    os.kill(supervisor, signal.SIGCONT)
    result = job.end()
    assert result.rc == 137 and 'root cause: rank 37 ' in result.err, result.err
    assert 'possibly' not in result.err


@pytest.mark.parametrize('level', BLIND)
def test_no_order_is_claimed_that_is_not_known(start, place, level):
    """The one signal tells that rank 2 was stopped, and nothing of those that died behind it."""
    job, pids = run_of(start, place, level, 3)
    supervisor = stopped(job)
    stop(pids[2])
    end_in_order(pids, 1, 0)
    os.kill(supervisor, signal.SIGCONT)
    result = job.end()
    assert result.rc == 137 and 'root cause: possibly rank 0 ' in result.err, result.err
    assert 'rank 1 ' in result.err and 'failed at the same time: killed by SIGKILL; either may be ' \
        'the root cause' in result.err, result.err


@pytest.mark.parametrize('level', BLIND)
def test_the_second_of_two_is_known(start, place, level):
    job, pids = run_of(start, place, level, 3)
    supervisor = stopped(job)
    end_in_order(pids, 2, 0)
    os.kill(supervisor, signal.SIGCONT)
    result = job.end()
    assert result.rc == 137 and 'root cause: rank 2 ' in result.err, result.err


@pytest.mark.parametrize('level', [*BLIND, 'docker-19.03'])
@pytest.mark.parametrize('shell', ['', RANK_OF_MPIRUN], ids=['launcher', 'shell'])
def test_what_started_launchd_ends(start, place, level, shell):
    """mpirun's process, or the shell in which it starts launchd: neither is a child of ours."""
    ready = place.fifo('ready')
    above = f'exec env {shell} sh -c \'{RANK_OF_MPIRUN} "$@" & read never <"$0"\' "$0" "$@"'
    job = start(native('ending', '--nproc_per_node=1', LONG), {'TELL': ready.path},
                before=lambda: enter(level), wrap=('sh', '-c', above, place.fifo('never').path))
    ready.expect('ready', 1)
    job.kill()
    until(lambda: "launchd's parent process" in job.said(), 'the end to be told')
