"""--restart-gate: before another attempt, what the one before has left on the nodes."""
import contextlib
import json
import os
import signal
import socket
import time

import pytest

from harness import BUILD, children_of, is_running, native, status_of, stop, supervisor_of, until
from hang_fs import STATFS, HangFS
from needs import needs_mounts
from own_mounts import OWN_MOUNTS
from test_events import of, read
from together import Cluster, errors, exit_codes, warnings

HOST = socket.gethostname()
NVML = {'LD_LIBRARY_PATH': str(BUILD / 'tests' / 'workers'), 'FAKE_GPUS': '2'}
GB = 10**9


class Job:
    """One on several nodes whose workers fail when they are told to."""

    def __init__(self, start, place, nodes, *options, env=None, faults=''):
        self.place = place
        self.ready, self.go = place.fifo('ready'), place.fifo('go')
        for node in range(nodes):
            self.use(node, 0)
        self.nodes = nodes
        self.cluster = Cluster(
            start, nodes, ['--max-restarts=3', *options, *native('ending', '--nproc_per_node=1')],
            {**NVML, 'TELL': self.ready.path, 'GO': self.go.path, 'END': 'exit:7', **(env or {})},
            lambda node: ([], {'FAKE_NVML': f'used@1={place.path}/used.{node} {faults}'}))
        self.ready.expect('ready', nodes)

    def use(self, node, amount):
        """GPU 1 of this node holds so many bytes from now on."""
        path = self.place.path / f'used.{node}'
        self.place.write(f'new.{node}', str(amount))
        (self.place.path / f'new.{node}').rename(path)

    def fail(self):
        """One does, and the others are ended."""
        self.go.go()

    def checker(self, node=0):
        """The process that looks, once it is there."""
        supervisor = supervisor_of(self.cluster.jobs[node].pid)

        def found():
            return [pid for pid in children_of(supervisor) if status_of(pid).get('Name') == 'node-check']

        return until(found, 'the gate')[0]

    def end(self):
        return self.cluster.end()


@pytest.fixture
def job(start, place):
    def begin(*how, **more):
        return Job(start, place, *how, **more)

    return begin


@pytest.mark.quick
def test_memory_that_goes_away_is_waited_for(job, place):
    one = job(1, f'--events={place.path}/events', '--max-restarts=1')
    one.use(0, 70 * GB)
    one.fail()
    one.checker()
    one.use(0, GB // 2)
    one.ready.expect('ready', 1)
    one.fail()
    [result] = one.end()
    assert result.rc == 7 and 'is bad' not in result.err and ': checked ' not in result.err
    events = read(place.path / 'events')
    assert [event['attempt'] for event in of(events, 'check_started')] == [1]
    assert [event['phases'] for event in of(events, 'check_started')] == ['gate']


@pytest.mark.parametrize('bad', [0, 1])
def test_memory_that_stays_ends_the_job_on_all_nodes(job, place, bad):
    one = job(2, '--restart-gate-timeout=0.5', f'--report={place.path}/report',
              env={'FAKE_GPU_USE': f'{os.getpid()}:7'})
    one.use(bad, 70 * GB)
    one.fail()
    results = one.end()
    assert exit_codes(results) == [122, 122]
    for result in results:
        [line, *_] = errors(result)
        assert f'root cause: node {bad} ({HOST}) is bad: GPU 1: 65.' in line
        assert 'of its memory are still in use after 0.5 s' in line and line.endswith(f'exclude: {HOST}')
    report = json.loads((place.path / 'report').read_text())
    assert (report['cause']['kind'], report['job']['attempt']) == ('bad_node', 1)
    assert [past['decision'] for past in report['restarts']] == ['restart', 'no']


def test_the_process_that_holds_it_is_named(job):
    """The fake tells of processes of GPU 0 alone."""
    one = job(1, '--restart-gate-timeout=0.5', faults=f'used@0={70 * GB}',
              env={'FAKE_GPU_USE': f'{os.getpid()}:7'})
    one.fail()
    [result] = one.end()
    assert result.rc == 122
    assert f'; process {os.getpid()} (' in errors(result)[0]


@pytest.mark.parametrize('held', [False, True])
def test_memory_of_a_gpu_that_is_a_numa_node(job, held):
    """The operating system may have it: unknown, and nothing to wait for, unless a process is seen."""
    env = {'FAKE_GPU_USE': f'{os.getpid()}:7'} if held else {}
    one = job(1, f'--restart-gate-timeout={0.5 if held else 600}', '--max-restarts=1',
              faults=f'used@0={20 * GB} numa=3', env=env)
    one.fail()
    if held:
        [result] = one.end()
        assert result.rc == 122 and 'GPU 0: 18.626 GiB of its memory are still in use' in errors(result)[0]
        return
    one.ready.expect('ready', 1)
    one.fail()
    [result] = one.end()
    assert result.rc == 7 and 'none is bad; unknown: ' in result.err and 'the GPU is a NUMA node' in result.err


def test_what_was_in_use_before_the_first_attempt_may_stay(job, place):
    told = place.fifo('told')
    one = job(1, '--restart-gate-timeout=0.5', '--preflight=quick', '--max-restarts=1',
              '--on-bad-node=report', faults=f'used@0={40 * GB}', env={'FAKE_XIDS_TOLD': told.path})
    told.expect('told', 1)
    one.fail()
    one.ready.expect('ready', 1)
    one.fail()
    [result] = one.end()
    assert result.rc == 7
    # before the first attempt the quick check had a word to say
    assert len(warnings(result)) >= 1 and 'still in use' not in result.err


def test_a_gpu_that_the_job_does_not_see_may_be_in_use(job):
    one = job(1, '--restart-gate-timeout=0.5', '--max-restarts=1', env={'CUDA_VISIBLE_DEVICES': '0'})
    one.use(0, 70 * GB)
    one.fail()
    one.ready.expect('ready', 1)
    one.fail()
    assert one.end()[0].rc == 7


@pytest.mark.parametrize('list, is_bad', [(None, True), ('1', True), ('0', False), ('GPU-00000000', False)])
def test_a_gpu_that_fell_off_the_bus(job, list, is_bad):
    """NVML gives no handle of it any more."""
    one = job(1, '--restart-gate-timeout=0.5', '--max-restarts=1', faults='nvmlDeviceGetHandleByIndex@1=15',
              env={'CUDA_VISIBLE_DEVICES': list} if list else {})
    one.fail()
    if not is_bad:
        one.ready.expect('ready', 1)
        one.fail()
    [result] = one.end()
    assert result.rc == (122 if is_bad else 7)
    if is_bad:
        assert 'is bad: GPU 1: nvmlDeviceGetHandleByIndex: the GPU has fallen off the bus' in errors(result)[0]


def test_a_driver_that_was_unloaded(job, place):
    """The job had GPUs before: it is said, though no GPU is here any more."""
    told = place.fifo('told')
    place.write('init', '0')
    one = job(1, '--max-restarts=1', '--preflight=quick', '--check-when=start', faults=f'nvmlInit={place.path}/init',
              env={'FAKE_XIDS_TOLD': told.path})
    told.expect('told', 1)
    place.write('init', '9')
    one.fail()
    one.ready.expect('ready', 1)
    one.fail()
    [result] = one.end()
    assert result.rc == 7 and 'gpu_held: nvmlInit: the driver is not loaded' in result.err


def test_off(job):
    one = job(1, '--restart-gate=off', '--max-restarts=1')
    one.use(0, 70 * GB)
    one.fail()
    one.ready.expect('ready', 1)
    one.fail()
    assert one.end()[0].rc == 7


def test_reported_only(job):
    one = job(1, '--restart-gate-timeout=0.5', '--on-bad-node=report', '--max-restarts=1')
    one.use(0, 70 * GB)
    one.fail()
    one.ready.expect('ready', 1)
    one.fail()
    [result] = one.end()
    assert result.rc == 7 and 'is bad: GPU 1: ' in result.err


@pytest.mark.long
def test_a_driver_that_never_answers_is_unknown(job):
    """It costs its time, and not the job."""
    one = job(1, '--restart-gate-timeout=0.1', '--max-restarts=1', faults='hang=nvmlDeviceGetMemoryInfo')
    one.fail()
    one.ready.expect('ready', 1)
    one.fail()
    [result] = one.end()
    assert result.rc == 7
    assert 'nvmlDeviceGetMemoryInfo' in result.err and ': none is bad; unknown: ' in result.err


def test_a_signal_ends_the_wait(job):
    one = job(2)
    one.use(1, 70 * GB)
    one.fail()
    checker = one.checker(1)
    one.cluster.jobs[0].signal(signal.SIGTERM)
    assert exit_codes(one.end()) == [143, 143]
    assert not is_running(checker)


def test_who_looks_is_killed(job):
    """What it could have found is not known, which is no reason to end a job."""
    one = job(1, '--max-restarts=1')
    one.use(0, 70 * GB)
    one.fail()
    os.kill(one.checker(), signal.SIGKILL)
    one.ready.expect('ready', 1)
    one.fail()
    [result] = one.end()
    assert result.rc == 7 and 'could not be checked' in result.err


def test_a_node_that_dies_in_the_wait_is_lost(job):
    one = job(3)
    one.use(1, 70 * GB)
    one.fail()
    one.checker(1)
    supervisor = supervisor_of(one.cluster.jobs[2].pid)
    stop(one.cluster.jobs[2].pid)
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not is_running(supervisor), 'the supervisor to end')
    one.cluster.jobs.pop(2).kill()
    assert set(exit_codes(one.end())) == {125}


GATE_S, SLACK_S = 4, 3  # it took 13 s more and longer, before --restart-gate-timeout was all of it


@pytest.mark.parametrize('who', ['checker', 'checker of node 0', 'launcher'])
def test_the_gate_takes_no_longer_whoever_is_stopped(job, who):
    """What a stopped node could have found isn't known."""
    one = job(2, f'--restart-gate-timeout={GATE_S}', '--node-timeout=600', '--max-restarts=1')
    node = 0 if who == 'checker of node 0' else 1
    one.use(node, 70 * GB)
    one.fail()
    checker = one.checker(node)
    stopped = supervisor_of(one.cluster.jobs[1].pid) if who == 'launcher' else checker
    os.kill(stopped, signal.SIGSTOP)
    before = time.monotonic()
    one.ready.expect('ready', 1 if who == 'launcher' else 2)
    assert time.monotonic() - before < GATE_S + SLACK_S
    if who == 'launcher':
        os.kill(stopped, signal.SIGCONT)
        one.ready.expect('ready', 1)
    one.fail()
    results = one.end()
    assert exit_codes(results) == [7, 7]
    assert f'node {node} ({HOST}): gate: ' in results[0].err


@pytest.mark.long
def test_what_comes_too_late_is_not_the_next_phases(job):
    """A node wakes to node rank 0's word for the gate, with the quick check's result behind it: told as the
    gate's, that said nothing bad of the node."""
    one = job(2, '--preflight=quick', '--check-when=restart', '--check-command=sleep 1', '--check-timeout=2',
              '--max-restarts=1', '--restart-gate-timeout=10', '--node-timeout=600')
    for node in range(2):
        one.use(node, 70 * GB)
    one.fail()
    first, checker, guard = one.checker(0), one.checker(1), one.cluster.jobs[1].pid
    for pid in checker, guard, supervisor_of(guard):
        stop(pid)
    until(lambda: not is_running(first), 'node 0 to have been checked')
    one.checker(0)  # once node 1 is given up: its gate
    os.kill(checker, signal.SIGCONT)
    until(lambda: not is_running(checker), 'its result')
    for pid in supervisor_of(guard), guard:
        os.kill(pid, signal.SIGCONT)
    one.use(0, 0)
    results = one.end()
    assert exit_codes(results) == [122, 122]
    assert f'root cause: node 1 ({HOST}) is bad: GPU 1: 65.' in errors(results[0])[0]


@needs_mounts
def test_the_gate_takes_no_longer_whatever_hangs(start, place):
    """Not even SIGKILL ends who waits for that file system."""
    with contextlib.closing(HangFS(place)) as mounted:
        ready, go = place.fifo('ready'), place.fifo('go')
        cluster = Cluster(start, 1, [f'--restart-gate-timeout={GATE_S}', '--max-restarts=1', *native('ending')],
                          {'TELL': ready.path, 'GO': go.path, 'END': 'exit:7', 'TMPDIR': str(mounted.path)},
                          begin=False)
        cluster.begin(0, wrap=mounted.mount, pass_fds=[mounted.fd])
        ready.expect('ready', 1)
        mounted.hold(STATFS)
        before = time.monotonic()
        place.orphans_expected = True
        go.go()
        until(lambda: '; exclude: ' in cluster.jobs[0].said(), 'the verdict')
        assert time.monotonic() - before < GATE_S + SLACK_S
        [result] = cluster.end()  # which waits longer for what can't be ended
        assert result.rc == 122
        assert f'{mounted.path}: no answer within ' in errors(result)[0]


def hanging_disk(start, place, mounted, **env):
    """A job with TMPDIR on a file system that has hung from the start, where it is looked at."""
    ready, go = place.fifo('ready'), place.fifo('go')
    mounted.hold(STATFS)
    cluster = Cluster(start, 1, ['--max-restarts=1', '--restart-gate-timeout=3', *native('ending')],
                      {'TELL': ready.path, 'GO': go.path, 'TMPDIR': str(mounted.path), **env}, begin=False)
    cluster.begin(0, wrap=mounted.mount, pass_fds=[mounted.fd])
    ready.expect('ready', 1)
    until(mounted.hangs, 'the look at what is free')
    return cluster, ready, go


@needs_mounts
def test_a_look_that_hangs_does_not_hold_the_end(start, place):
    """SIGKILL doesn't end who looks: it took 6 s."""
    with contextlib.closing(HangFS(place)) as mounted:
        cluster, _, go = hanging_disk(start, place, mounted, END='exit:0')
        before = time.monotonic()
        go.go()
        [result] = cluster.end()
        place.orphans_expected = True
        assert (result.rc, result.err) == (0, '')
        assert time.monotonic() - before < SLACK_S


@pytest.mark.long
@needs_mounts
def test_a_look_that_hangs_is_no_process_of_the_attempt(start, place):
    """The gate called it one, and the node bad."""
    with contextlib.closing(HangFS(place)) as mounted:
        cluster, ready, go = hanging_disk(start, place, mounted, END='exit:7')
        looks = [pid for pid in children_of(supervisor_of(cluster.jobs[0].pid))
                 if status_of(pid).get('Name') == 'space-look']
        until(lambda: status_of(looks[0])['State'].startswith('D'), 'its time to be over')
        time.sleep(1.5)  # for which it is waited for after SIGKILL
        mounted.hold(-1)
        go.go()
        ready.expect('ready', 1)
        go.go()
        [result] = cluster.end()
        place.orphans_expected = True
        assert result.rc == 7 and 'is bad' not in result.err and 'still alive' not in result.err


def test_the_users_command(start, place):
    """Where no other check runs it."""
    own = place.write('own', '#!/bin/sh\necho no scratch here\nexit 1\n', 0o755)
    [result] = Cluster(start, 1, [
        '--max-restarts=3', f'--check-command={own}', '--check-when=restart', *native('ending')],
        {'END': 'exit:7'}).end()
    assert result.rc == 122
    assert 'is bad: own: exit code 1: no scratch here' in errors(result)[0]


def on_a_disk(start, disk, size, script, *options):
    """A worker of its own on a file system of so many bytes, which is TMPDIR."""
    disk.mkdir(parents=True)
    wrap = [*OWN_MOUNTS, 'bash', '-ec', f'mount -t tmpfs -o size={size} disk "$1"; shift; exec "$@"', 'bash',
            str(disk)]
    cluster = Cluster(start, 1, [*options, '--no_python', '--use_env', 'sh', '-c', script],
                      {'TMPDIR': str(disk), 'DISK': str(disk)}, begin=False)
    cluster.begin(0, wrap=wrap)
    return cluster


@needs_mounts
@pytest.mark.parametrize('above', ['', 'x' * 80])
def test_a_file_system_that_is_full(start, place, above):
    """The worker has filled it, and its time is waited for. However long its path is, that one is judged."""
    disk = place.path / above / 'disk'
    before = time.monotonic()
    [result] = on_a_disk(start, disk, '20m', 'sleep 0.2; head -c 19000000 /dev/zero > $DISK/data; exit 7',
                         '--max-restarts=3', '--restart-gate-timeout=4').end()
    assert result.rc == 122
    assert time.monotonic() - before > 1.5
    [line, *_] = errors(result)
    assert ('...xxx' if above else str(disk)) in line and '/disk: it is full: ' in line
    assert ", and 20 MiB were before the job's first attempt" in line


@needs_mounts
def test_a_small_file_system_is_not_full(start, place):
    """Nor is one that was full before."""
    for size, before in ('10m', ''), ('20m', 'head -c 19000000 /dev/zero > $DISK/data; '):
        disk = place.path / size
        script = f'mount -t tmpfs -o size={size} disk $DISK; {before}exec "$@"'
        disk.mkdir()
        cluster = Cluster(start, 1, ['--max-restarts=1', '--restart-gate-timeout=1', '--no_python', '--use_env',
                                     'sh', '-c', 'exit 7'], {'TMPDIR': str(disk), 'DISK': str(disk)}, begin=False)
        cluster.begin(0, wrap=[*OWN_MOUNTS, 'bash', '-ec', script, 'bash'])
        [result] = cluster.end()
        assert result.rc == 7 and 'is full' not in result.err


@needs_mounts
def test_a_file_system_that_is_emptied_in_time(start, place):
    """By what outlives the attempt."""
    [result] = on_a_disk(
        start, place.path / 'disk', '20m',
        '[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 5; sleep 0.2; head -c 19000000 /dev/zero > $DISK/data; '
        'echo full > $DISK/../full; exit 7', '--max-restarts=1', '--restart-gate-timeout=600',
        '--check-when=restart', f'--check-command=rm {place.path}/disk/data').end()
    assert result.rc == 5 and 'is full' not in result.err
