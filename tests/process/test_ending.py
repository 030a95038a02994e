"""Section 5: watching and ending."""
import ctypes
import fcntl
import os
import pathlib
import re
import resource
import signal
import socket
import time

import pytest

from harness import children_of, is_running, let_pass, native, settled, status_of, stop, supervisor_of, until
from needs import PID_1, needs_mounts, needs_pids
from own_mounts import OWN_MOUNTS
from together import errors

PTRACE_SEIZE, WALL = 0x4206, 0x40000000
LONG = '--shutdown-timeout=600'  # so that nothing but what is tested ends a worker


def test_0_only_if_every_worker_ended_with_0(launch):
    result = launch(native('ending', '--nproc_per_node=3'),
                    {'END': 'exit:0', 'OMP_NUM_THREADS': '1'})
    assert (result.rc, result.err) == (0, '')


@pytest.mark.parametrize('code', [1, 2, 42, 127, 255])
def test_the_first_failures_own_code(launch, code):
    result = launch(native('ending', '--nproc_per_node=3', LONG), {'END_1': f'exit:{code}'})
    assert result.rc == code
    assert f'exit code {code}' in result.err


@pytest.mark.parametrize('name', ['SIGKILL', 'SIGSEGV', 'SIGABRT', 'SIGTERM', 'SIGUSR1',
                                  'SIGRTMIN'])
def test_128_and_the_signal(launch, name):
    number = int(getattr(signal, name))
    result = launch(native('ending', '--nproc_per_node=2', LONG), {'END_0': f'signal:{number}'})
    assert result.rc == 128 + number
    assert f'killed by {name}' in result.err


def test_a_core_dump_is_said(launch, place):
    pattern = pathlib.Path('/proc/sys/kernel/core_pattern').read_text().strip()
    if pattern.startswith(('|', '/')) or resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip('core files would not be written to the working directory')
    asan = os.environ.get('ASAN_OPTIONS', '') + ':disable_coredump=0'
    env = {'END': f'signal:{int(signal.SIGSEGV)}', 'ASAN_OPTIONS': asan}
    result = launch(native('ending'), env, core=True)
    assert result.rc == 139 and 'killed by SIGSEGV (core dumped)' in result.err


def test_a_worker_that_ends_with_0_ends_nobody(start, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(native('ending', '--nproc_per_node=2'),
                {'TELL': ready.path, 'END': 'exit:0', 'GO_1': go.path, 'END_1': 'exit:3'})
    pids = ready.expect('ready', 2)
    until(lambda: not status_of(pids[0]), 'rank 0 to be reaped')
    assert is_running(pids[1]) and is_running(job.pid)
    go.go()
    assert job.end().rc == 3


def test_the_first_failure_ends_the_others_with_sigterm(start, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    peers = place.write('job.sh', '#!/bin/sh\n'
                        f'[ $RANK = 1 ] && exec {native("ending")[-1]}\n'
                        f'exec {native("report_signals")[-1]}\n', 0o755)
    job = start(['--nproc_per_node=3', LONG, '--no_python', '--use_env', peers],
                {'TELL': ready.path, 'GO': go.path, 'END_1': 'exit:9', 'CODE_0': '5'})
    ready.expect('ready', 3)
    go.go()
    ready.expect('SIGTERM', 2)
    result = job.end()
    assert result.rc == 9
    assert re.search(r'note: rank 0 .*: exit code 5 within \S+ s of launchd\'s SIGTERM', result.err)
    assert re.search(r'note: rank 2 .*: exit code 0 within \S+ s of launchd\'s SIGTERM', result.err)


def test_a_failure_while_workers_start_is_seen_at_once(launch):
    """No more are started, and its time is its own, not that of the last start."""
    result = launch(native('ending', '--nproc_per_node=200', LONG), {'END_0': 'exit:3'})
    assert result.rc == 3 and 'root cause: rank 0 (' in result.err
    assert re.search(r'199(?: \(local rank 199\))?: not started', result.err)


def test_the_time_of_a_kill_is_measured_not_the_grace(start, place):
    """Three signals end a grace of ten minutes early; the report must not say ten minutes."""
    ready = place.fifo('ready')
    job = start(native('ignore_signals', LONG), {'TELL': ready.path})
    ready.expect('ready', 1)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # equal ones may become one
        job.signal(number)
    result = job.end()
    assert result.rc in (129, 130, 143)
    assert re.search(r"rank 0 .*: still running \d\.\d\d s after launchd's SIG\w+: killed by SIGKILL",
                     result.err)


def test_a_signal_during_the_start_leaves_nothing_behind(start, place):
    """At any moment: before workers are there it ends the launcher, later the job. nothing_left
    looks for run directories and processes."""
    for k in range(60):
        # no search for leaks at the very end: its helper process would outlive a killed launcher
        job = start(native('ending', '--nproc_per_node=4', '--quiet'),
                    {'END': 'exit:0', 'ASAN_OPTIONS': 'detect_leaks=0'})
        end = time.monotonic() + k * 0.0001
        while time.monotonic() < end:
            pass
        job.signal(signal.SIGTERM)
        assert job.end().rc in (0, -signal.SIGTERM, 128 + signal.SIGTERM)


def test_a_launcher_whose_report_nobody_reads_can_be_ended(start, place):
    """Its stderr is a full pipe: the job is over, and a signal must not wait for a reader."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 18)  # more launchd does not ask for
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b'x' * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    events = place.path / 'events'
    job = start(native('ending', '--quiet', f'--events={events}'), {'END': 'exit:5'}, err=writer)
    until(lambda: events.exists() and 'worker_ended' in events.read_text(), 'the worker to end')
    job.signal(signal.SIGTERM)
    assert job.end().rc == 5
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize('timeout, least', [('0', 0.0), ('0.3', 0.3), ('1', 1.0)])
def test_sigkill_after_the_shutdown_timeout(start, place, timeout, least):
    """For workers that ignore SIGTERM; from the failure on, not only after a signal to us."""
    ready, go = place.fifo('ready'), place.fifo('go')
    peers = place.write('job.sh', '#!/bin/sh\n'
                        f'[ $RANK = 1 ] && exec {native("ending")[-1]}\n'
                        f'exec {native("ignore_signals")[-1]}\n', 0o755)
    job = start(['--nproc_per_node=3', f'--shutdown-timeout={timeout}', '--no_python', '--use_env',
                 peers], {'TELL': ready.path, 'GO': go.path, 'END_1': 'exit:4'})
    ready.expect('ready', 3)
    begin = time.monotonic()
    go.go()
    result = job.end()
    assert least <= time.monotonic() - begin < least + 20
    assert result.rc == 4
    for rank in (0, 2):
        waited = re.search(rf"note: rank {rank} .*: still running (\S+) s after launchd's SIGTERM: "
                           'killed by SIGKILL', result.err)
        assert least <= float(waited.group(1)) < least + 20


@pytest.mark.parametrize('name', ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'])
def test_these_are_forwarded_and_end_the_job(start, place, name):
    ready = place.fifo('ready')
    job = start(native('report_signals', '--nproc_per_node=2', LONG), {'TELL': ready.path})
    ready.expect('ready', 2)
    number = getattr(signal, name)
    job.signal(number)
    ready.expect(name, 2)
    result = job.end()
    assert result.rc == 128 + number
    assert f'root cause: launchd received {name} on {socket.gethostname()}' in result.err
    assert len(re.findall(rf'exit code 0 within \S+ s of launchd\'s {name}', result.err)) == 2


@pytest.mark.parametrize('name', ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'])
def test_workers_that_the_signal_kills(start, place, name):
    ready = place.fifo('ready')
    job = start(native('ending', '--nproc_per_node=2', LONG), {'TELL': ready.path})
    ready.expect('ready', 2)
    job.signal(getattr(signal, name))
    result = job.end()
    assert result.rc == 128 + getattr(signal, name)
    assert result.err.count(f"ended by launchd's {name} within") == 2


def test_a_death_before_the_signal_that_both_wait_for_us_decides_the_code(start, place):
    """The launcher, guard and supervisor, is stopped meanwhile: it finds a dead worker and a signal
    at once."""
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(native('ending', '--nproc_per_node=2', LONG),
                {'TELL': ready.path, 'GO_1': go.path, 'END_1': 'exit:6', 'END_0': 'never'})
    pids = ready.expect('ready', 2)
    for pid in (job.pid, supervisor_of(job.pid)):
        stop(pid)
    go.go()
    until(lambda: not is_running(pids[1]), 'rank 1 to die')
    job.signal(signal.SIGTERM)
    job.signal(signal.SIGCONT)  # the guard wakes the supervisor
    result = job.end()
    assert result.rc == 6 and 'root cause: rank 1 (' in result.err


def test_sigkill_goes_to_the_workers_process_group(start, place):
    """A shell that waits for a program, both of which ignore SIGTERM: both are gone."""
    ready = place.fifo('ready')
    shell = f'trap "" TERM; {native("ignore_signals")[-1]}; exit 0'
    job = start(['--shutdown-timeout=0.2', '--no_python', '--use_env', 'sh', '-c', shell],
                {'TELL': ready.path})
    child = ready.expect('ready', 1)[0]
    place.orphans_expected = True  # the shell's child, which dies with it
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143
    until(lambda: not is_running(child), 'the child to end')


def test_a_failure_before_the_signal_decides_the_code(start, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    peers = place.write('job.sh', '#!/bin/sh\n'
                        f'[ $RANK = 1 ] && exec {native("ending")[-1]}\n'
                        f'exec {native("report_signals")[-1]}\n', 0o755)
    job = start(['--nproc_per_node=2', LONG, '--no_python', '--use_env', peers],
                {'TELL': ready.path, 'GO': go.path, 'END_1': 'exit:6', 'STAY': '1'})
    ready.expect('ready', 2)
    go.go()
    assert ready.line()[2] == 'SIGTERM'
    job.signal(signal.SIGINT)
    assert ready.line()[2] == 'SIGINT'
    job.signal(signal.SIGINT)
    assert ready.line()[2] == 'SIGINT'
    job.signal(signal.SIGINT)
    result = job.end()
    assert result.rc == 6 and 'root cause: rank 1' in result.err


def test_stopped_workers_are_ended_too(start, place):
    ready = place.fifo('ready')
    job = start(native('report_signals', '--nproc_per_node=2', LONG), {'TELL': ready.path})
    pids = ready.expect('ready', 2)
    for pid in pids.values():
        stop(pid)
    job.signal(signal.SIGTERM)
    ready.expect('SIGTERM', 2)
    assert job.end().rc == 143


def test_term_ignored_on_entry_still_ends_the_job(start, place):
    ready = place.fifo('ready')
    job = start(native('ending', LONG), {'TELL': ready.path},
                before=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))
    ready.expect('ready', 1)
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143


def test_signals_blocked_on_entry_are_seen(start, place):
    ready = place.fifo('ready')
    job = start(native('ending', LONG), {'TELL': ready.path},
                before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()))
    ready.expect('ready', 1)
    job.signal(signal.SIGINT)
    assert job.end().rc == 130


def test_the_report(start, place):
    """Who failed first (rank, local rank, host, pid), how, after how long; what the others did."""
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(['--nnodes=2', '--node_rank=1', '--master_addr=h', '--nproc_per_node=3', '--quiet',
                 *native('ending'), 'a b', '--x'],
                {'TELL': ready.path, 'GO': go.path, 'END_4': 'exit:7', 'END_3': 'exit:0',
                 'GO_3': '/dev/zero'})
    pids = ready.expect('ready', 3)
    until(lambda: not status_of(pids[3]), 'rank 3 to be reaped')
    go.go()
    result = job.end()
    host, program = re.escape(socket.gethostname()), re.escape(native('ending')[-1])
    lines = result.err.splitlines()
    assert result.rc == 7 and result.out == ''
    lines = [line for line in lines if not line.startswith('launchd: error: time: ')]
    assert len(lines) == 4
    for line, wanted in zip(lines, [
            rf'launchd: error: root cause: rank 4 \(local rank 1, pid {pids[4]}\) on {host} '
            r'\(node 1\): exit code 7 after \d+\.\d\d s',
            rf"launchd: error: command: {program} 'a b' --x",
            rf'launchd: note: rank 3 \(local rank 0, pid {pids[3]}\): exit code 0 after '
            r'\d+\.\d\d s',
            rf"launchd: note: rank 5 \(local rank 2, pid {pids[5]}\): ended by launchd's SIGTERM "
            r'within \d+\.\d\d s']):
        assert re.fullmatch(wanted, line), line


def test_workers_die_when_the_launcher_is_killed(start, place):
    ready = place.fifo('ready')
    job = start(native('ignore_signals', '--nproc_per_node=3'), {'TELL': ready.path})
    pids = ready.expect('ready', 3)
    job.kill()
    assert job.end().rc == -signal.SIGKILL
    until(lambda: not any(map(is_running, pids.values())), 'the workers to die')


def test_no_command_kills_both_processes_by_name(start, place):
    """pkill by name, by whole name and by command line each find one of the two."""
    ready = place.fifo('ready')
    job = start(native('ending'), {'TELL': ready.path})
    ready.expect('ready', 1)
    names, lines = [], []
    for pid in (job.pid, supervisor_of(job.pid)):
        names.append(pathlib.Path(f'/proc/{pid}/comm').read_text().strip())
        lines.append(pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().rstrip(b'\0').split(b'\0'))
    assert names == ['launchd', 'rank-supervisor']
    assert lines[0][1:] == [arg.encode() for arg in native('ending')]
    assert lines[1] == [b'rank-supervisor']
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143


@needs_pids
@pytest.mark.parametrize('script, code', [('exit 7', 7), ('kill -TERM 1; sleep 1000', 143)])
def test_as_process_1_of_a_container(launch, script, code):
    """The kernel drops signals to such a process that it would die of."""
    result = launch(['--shutdown-timeout=60', '--no_python', '--use_env', 'sh', '-c', script],
                    wrap=PID_1)
    assert result.rc == code, result


def test_nothing_wakes_up_while_nothing_happens(start, place):
    """A worker's end is an event, not something to look for: an idle launcher does not run."""
    ready = place.fifo('ready')
    job = start(native('ending', '--nproc_per_node=2'), {'TELL': ready.path})
    pids = ready.expect('ready', 2)
    supervisor = supervisor_of(job.pid)
    ours = job.pid, supervisor

    def switches():
        found = list(map(status_of, ours))
        return [(status['voluntary_ctxt_switches'], status['nonvoluntary_ctxt_switches']) for status in found] \
            if all(status['State'][0] == 'S' for status in found) else None

    before = settled(switches)
    let_pass(2, 'nothing wakes up')
    assert switches() == before
    assert children_of(supervisor) == set(pids.values())
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143


def test_a_dead_worker_that_a_debugger_holds(start, place):
    """Its pidfd is readable, but it can't be reaped before the debugger lets go: no busy wait."""
    ready = place.fifo('ready')
    job = start(native('ending'), {'TELL': ready.path})
    worker = ready.expect('ready', 1)[0]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(PTRACE_SEIZE, worker, None, None) != 0:
        pytest.skip(f'ptrace: {os.strerror(ctypes.get_errno())}')
    os.kill(worker, signal.SIGKILL)
    until(lambda: not is_running(worker), 'the worker to die')

    supervisor = supervisor_of(job.pid)

    def cpu_ticks():
        fields = pathlib.Path(f'/proc/{supervisor}/stat').read_text().rpartition(') ')[2].split()
        return int(fields[11]) + int(fields[12])

    before = cpu_ticks()
    let_pass(0.5, 'its CPU time is measured')
    used = cpu_ticks() - before
    assert os.waitpid(worker, WALL)[0] == worker
    assert job.end().rc == 137
    assert used <= 0.1 * os.sysconf('SC_CLK_TCK')


FILLS = """
import mmap, os, signal, sys
if sys.argv[1] != 'signal':
    with open('/dev/shm/full', 'w+b') as file:
        os.ftruncate(file.fileno(), 16 << 20)
        pages = mmap.mmap(file.fileno(), 0)
        try:
            for at in range(0, 16 << 20, 4096):
                os.pwrite(file.fileno(), b'x', at)
        except OSError:
            pass
    if sys.argv[1] == 'exit':
        sys.exit(3)
    pages[-1] = 1
os.kill(os.getpid(), signal.SIGBUS)
"""


@needs_mounts
@pytest.mark.parametrize('how, told', [
    ('touch', 'killed by SIGBUS (/dev/shm was full) after '), ('signal', 'killed by SIGBUS after '),
    ('exit', 'exit code 3 after ')])
def test_a_full_dev_shm(launch, place, how, told):
    """It is named where a worker died of it, with what to do, and else not."""
    wrap = [*OWN_MOUNTS, 'bash', '-ec',
            'mount -t tmpfs -o size=1m none /dev/shm; exec "$@"', 'bash']
    result = launch(['--use_env', place.write('fills.py', FILLS), how], {}, wrap=wrap)
    said = errors(result)
    assert told in said[0].replace(' (core dumped)', '')
    hint = 'launchd: error: hint: /dev/shm was full when it failed: give a container more (docker run --shm-size=16g; '
    assert any(line.startswith(hint) for line in said) == (how == 'touch')
    assert ('/dev/shm was full' in result.err) == (how == 'touch')


LOADS = """
import torch
from torch.utils.data import DataLoader, Dataset


class Big(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.zeros(1 << 20)


for batch in DataLoader(Big(), num_workers=2, batch_size=4):
    pass
"""


@needs_mounts
def test_a_data_loader_without_room(launch, place):
    """Its memory is free again when the rank dies, but its words tell."""
    wrap = [*OWN_MOUNTS, 'bash', '-ec',
            'mount -t tmpfs -o size=8m none /dev/shm; exec "$@"', 'bash']
    result = launch(['--use_env', place.write('loads.py', LOADS)], {}, wrap=wrap)
    hint = 'launchd: error: hint: its last words are about too little /dev/shm: give a container more (docker run '
    assert result.rc == 1 and any(line.startswith(hint) for line in errors(result)), result
