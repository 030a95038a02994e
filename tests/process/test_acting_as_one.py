"""Several launchers on loopback: what happens to one of them happens to the job."""
import json
import os
import re
import signal
import socket
import time

import pytest

from together import Cluster, errors, exit_codes
from harness import is_idle, is_running, let_pass, native, status_of, stop, supervisor_of, until

KEY = {'LAUNCHD_KEY': 'a secret that is long enough'}


class Running(Cluster):
    """A job whose workers are there; pids by rank."""

    def __init__(self, start, place, nnodes=3, options=(), env=None, worker='ending', **how):
        self.tell = place.fifo('tell')
        super().__init__(start, nnodes, native(worker, *options),
                         {'TELL': self.tell.path, **(env or {})}, **how)
        self.pids = self.tell.expect('ready', nnodes)


EVENTS = '--events=events%n'


def told_everywhere(place, nodes, text):
    """Waits until an event with this text has come to each of the first nodes."""
    files = [place.path / f'events{node}' for node in range(nodes)]
    until(lambda: all(file.exists() and text in file.read_text() for file in files),
          f'{text} on {nodes} nodes')


def all_gone(pids):
    until(lambda: not any(map(is_running, pids.values())), 'workers to end')


def test_a_failure_ends_all_with_its_code(start, place):
    go = place.fifo('go')
    cluster = Running(start, place, env={'GO_2': go.path, 'END_2': 'exit:7'})
    go.go()
    results = cluster.end()
    assert exit_codes(results) == [7, 7, 7]
    assert 'root cause: rank 2' in results[0].err
    for result in results[1:]:
        [line] = errors(result)
        assert 'rank 2 ' in line and 'exit code 7' in line


def as_slurm(node):
    return [], {'SLURM_STEP_ID': '0', 'SLURM_STEP_NUM_TASKS': '3', 'SLURM_PROCID': str(node)}


@pytest.mark.parametrize('restarts', [[], ['--max-restarts=1']])
def test_a_failure_is_reported_once_where_the_nodes_share_a_console(start, place, restarts):
    """srun shows what all say in one place."""
    cluster = Cluster(start, 3, native('ending', *restarts), {'END': 'never', 'END_2': 'exit:7'}, each=as_slurm)
    results = cluster.end()
    assert exit_codes(results) == [7, 7, 7]
    assert len(re.findall('error: root cause: rank 2 ', results[0].err)) == 1
    for result in results[1:]:
        assert errors(result) == ['launchd: error: rank 2 on node 2 failed: node 0 reports'], result
        assert 'root cause' not in result.err


def test_a_node_without_node_0_says_all_itself(start, place):
    place.launcher_killed = place.orphans_expected = True
    cluster = Running(start, place, each=as_slurm)
    os.kill(supervisor_of(cluster.jobs[0].pid), signal.SIGKILL)
    os.kill(cluster.jobs[0].pid, signal.SIGKILL)
    results = [cluster.jobs[node].end() for node in (1, 2)]
    for result in results:
        assert re.search('root cause: (this node lost contact with )?node 0 ', errors(result)[0]), result


def test_without_a_channel_each_node_says_all_itself(start, place):
    go = place.fifo('go')
    cluster = Running(start, place, env={'LAUNCHD_CONTROL': 'off', 'GO': go.path, 'END': 'exit:7'}, each=as_slurm)
    go.go(3)
    for rank, result in enumerate(cluster.end()):
        assert result.rc == 7 and f'root cause: rank {rank} ' in errors(result)[0], result


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize('node', [0, 2])
def test_a_request_to_one_launcher_ends_all(start, place, node, number):
    cluster = Running(start, place)
    cluster.jobs[node].signal(number)
    results = cluster.end()
    assert exit_codes(results) == [128 + number] * 3
    for result in results:
        assert signal.Signals(number).name in result.err and f'node {node}' in result.err


def test_the_second_and_the_third_request_count_everywhere(start, place):
    cluster = Running(start, place, worker='ignore_signals',
                      options=['--shutdown-timeout=600', EVENTS])
    cluster.jobs[1].signal(signal.SIGTERM)
    told_everywhere(place, 3, '"urgency":"stop"')
    assert all(map(is_running, cluster.pids.values()))
    cluster.jobs[1].signal(signal.SIGTERM)  # 5 s are left of the grace
    told_everywhere(place, 3, '"urgency":"hurry"')
    cluster.jobs[1].signal(signal.SIGTERM)
    assert exit_codes(cluster.end()) == [143, 143, 143]
    for node in range(3):
        said = map(json.loads, (place.path / f'events{node}').read_text().splitlines())
        at = {e['urgency']: e['mono_ns'] for e in said if e['event'] == 'stop'}
        assert at['kill'] - at['hurry'] < 5e9


def test_a_second_request_hurries_everywhere(start, place):
    cluster = Running(start, place, worker='ignore_signals',
                      options=['--shutdown-timeout=600', EVENTS])
    cluster.jobs[2].signal(signal.SIGTERM)
    told_everywhere(place, 3, '"urgency":"stop"')
    cluster.jobs[2].signal(signal.SIGTERM)
    assert exit_codes(cluster.end(30)) == [143, 143, 143]


@pytest.mark.parametrize('env, heard', [(KEY, [0, 1, 2]), ({}, [1])])
def test_signals_are_forwarded_to_all_nodes_with_a_key(start, place, env, heard):
    tell = place.fifo('told')
    script = ('trap "printf \\"%s %s usr1\\n\\" $RANK $$ > $TOLD" USR1; '
              'printf "%s %s ready\\n" $RANK $$ > $TOLD; '
              'while :; do sleep 0.02; done')
    cluster = Cluster(start, 3, ['--no_python', '--use_env', '/bin/sh', '-c', script],
                      {'TOLD': tell.path, **env})
    tell.expect('ready', 3)
    cluster.jobs[1].signal(signal.SIGUSR1)
    assert sorted(tell.expect('usr1', len(heard))) == heard
    cluster.jobs[1].signal(signal.SIGUSR1)  # after the first one was taken: each is told once
    assert sorted(tell.expect('usr1', len(heard))) == heard
    cluster.jobs[0].signal(signal.SIGTERM)
    assert exit_codes(cluster.end()) == [143, 143, 143]
    assert tell.rest == b''


@pytest.mark.parametrize('node', [0, 1])
@pytest.mark.parametrize('which', ['both', 'supervisor', 'guard'])
def test_a_killed_launcher_ends_the_job(start, place, node, which):
    cluster = Running(start, place)
    job = cluster.jobs[node]
    supervisor = supervisor_of(job.pid)
    if which == 'both':
        stop(job.pid)  # else it may have told the others by then
    if which != 'guard':
        place.launcher_killed = place.orphans_expected = True
        os.kill(supervisor, signal.SIGKILL)
    if which != 'supervisor':
        job.kill()
    all_gone(cluster.pids)
    results = cluster.end()
    others = [result for number, result in enumerate(results) if number != node]
    if which == 'guard':
        assert exit_codes(others) == [137, 137]
        for result in others:
            assert f'(node {node})' in result.err or f'node {node}' in result.err
        return
    if which == 'supervisor':
        assert exit_codes(results) == [137, 137, 137], results
        for result in others:
            assert f'node {node}' in result.err
            assert 'its supervisor was killed by SIGKILL' in result.err
        return
    assert exit_codes(others) == [125, 125], others
    for result in others:
        assert f'node {node}' in result.err
        assert ('lost contact with' if node == 0 else 'was lost') in result.err


def test_a_failure_of_which_node_0_can_not_tell(start, place):
    """Its launcher is stopped when the worker fails, and so says nothing of it."""
    go = place.fifo('go')
    cluster = Running(start, place, env={'GO_2': go.path, 'END_2': 'raise'},
                      options=['--node-timeout=3'])
    supervisor = supervisor_of(cluster.jobs[0].pid)
    stop(supervisor)
    try:
        # its last beats are read, and not after the worker's death
        others = [supervisor_of(cluster.jobs[node].pid) for node in (1, 2)]
        until(lambda: all(map(is_idle, others)), 'what it sent to be read')
        go.go()
        results = [cluster.jobs[node].end() for node in (1, 2)]
    finally:
        os.kill(supervisor, signal.SIGCONT)
    assert exit_codes(results) == [125, 125]
    for result in results:
        assert 'this node lost contact with node 0 (127.0.0.1)' in errors(result)[0]
        assert 'one of the two nodes was cut off, frozen or powered off' in errors(result)[0]
    assert 'first failure' not in results[0].err and 'root cause: rank' not in results[1].err
    told = results[1].err.partition('launchd: error: first failure on this node: ')[2]
    assert told.startswith('rank 2 '), results[1]
    assert 'launchd: error: exception: ValueError: the teapot is empty' in told
    cluster.jobs[0].end()


@pytest.mark.parametrize('node', [0, 2])
def test_a_frozen_launcher_is_lost_after_the_time_out(start, place, node):
    cluster = Running(start, place, options=['--node-timeout=3'])
    supervisor = supervisor_of(cluster.jobs[node].pid)
    began = time.monotonic()
    stop(supervisor)
    others = [number for number in range(3) if number != node]
    results = [cluster.jobs[number].end() for number in others]
    took = time.monotonic() - began
    try:
        assert exit_codes(results) == [125, 125]
        assert 2.5 < took < 8
        for result in results:
            assert 'nothing was heard from it for' in result.err
    finally:
        os.kill(supervisor, signal.SIGCONT)
    late = cluster.jobs[node].end()
    assert late.rc != 0, late
    all_gone(cluster.pids)


def test_all_asleep_at_once_is_no_alarm(start, place):
    go = place.fifo('go')
    cluster = Running(start, place, options=['--node-timeout=3'],
                      env={'GO': go.path, 'END': 'exit:0'})
    supervisors = [supervisor_of(job.pid) for job in cluster.jobs.values()]
    for pid in supervisors:
        stop(pid)
    let_pass(6, 'all sleep')
    for pid in supervisors:
        os.kill(pid, signal.SIGCONT)
    let_pass(1.5, 'no alarm')
    assert all(map(is_running, cluster.pids.values()))
    go.go(3)
    assert exit_codes(cluster.end()) == [0, 0, 0]


def test_nodes_that_have_finished_leave_at_once(start, place):
    first, last = place.fifo('first'), place.fifo('last')
    cluster = Running(start, place, env={'GO': first.path, 'GO_1': last.path, 'END': 'exit:0',
                                         'END_1': 'exit:3'})
    first.go(2)
    assert cluster.jobs.pop(2).end().rc == 0
    until(lambda: not is_running(cluster.pids[0]), "node 0's worker to end")
    assert is_running(cluster.jobs[0].pid) and is_running(cluster.pids[1])
    last.go()
    assert exit_codes(cluster.end()) == [3, 3]


def descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


@pytest.mark.parametrize('by', ['SLURM_PROCID', 'FLUX_TASK_RANK'])
def test_nodes_that_have_finished_stay_where_their_launcher_would_end_the_others(start, place, by):
    """srun (WaitTime) and Flux (exit-timeout) kill the rest some time after the first exit, with 0 too."""
    def each(node):
        slurm = {'SLURM_STEP_ID': '0', 'SLURM_STEP_NUM_TASKS': '3'} if by == 'SLURM_PROCID' else {}
        return [], {by: str(node), 'FLUX_JOB_SIZE': '3', **slurm}
    go = place.fifo('go')
    cluster = Running(start, place, env={'GO_1': go.path, 'END_1': 'exit:0', 'GO_0': go.path, 'END_0': 'exit:0'},
                      options=[EVENTS], each=each)
    go.go(2)
    until(lambda: not any(is_running(cluster.pids[rank]) for rank in (0, 1)), 'two workers to end')
    let_pass(1, 'they would leave at once')
    assert all(is_running(cluster.jobs[node].pid) for node in range(3))
    cluster.jobs[2].signal(signal.SIGTERM)
    assert exit_codes(cluster.end()) == [143] * 3


def test_strangers_at_the_control_port_do_no_harm(start, place):
    go = place.fifo('go')
    # AddressSanitizer keeps what was freed, of 5,000 connections
    options = os.environ.get('ASAN_OPTIONS', '') + ':quarantine_size_mb=1'
    cluster = Running(start, place, env={'GO': go.path, 'END': 'exit:0', 'ASAN_OPTIONS': options})
    supervisor = supervisor_of(cluster.jobs[0].pid)
    at = ('127.0.0.1', cluster.port + 1)
    # a worker may be ready before its launcher has opened what it watches it by
    before = descriptors(supervisor) + 2
    waiting = []
    try:
        for n in range(5000):
            sock = socket.create_connection(at)
            if n % 50 == 0:
                waiting.append(sock)  # half a handshake, or none at all
                if n % 100 == 0:
                    sock.send(b'\x00\x00')
                continue
            if n % 3 == 0:
                sock.send(os.urandom(64))
            sock.close()
        flood = socket.create_connection(at)
        waiting.append(flood)
        flood.settimeout(5)
        with pytest.raises(OSError):
            for _ in range(1000):
                flood.sendall(os.urandom(65536))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            for _ in range(1000):
                udp.sendto(os.urandom(64), at)
        assert all(map(is_running, cluster.pids.values()))
        assert int(status_of(supervisor)['VmRSS'].split()[0]) < 64 * 1024
        cluster.jobs[1].signal(signal.SIGSTOP)  # the guard: no harm either
        cluster.jobs[1].signal(signal.SIGCONT)
    finally:
        for sock in waiting:
            sock.close()
    until(lambda: descriptors(supervisor) <= before, 'their descriptors to be closed')
    go.go(3)
    assert exit_codes(cluster.end()) == [0, 0, 0]


# --- restarts

SCRIPT = '''
setsid /bin/sh -c 'trap "" TERM; printf "%s %s left\\n" $RANK $$ > $TELL; sleep 600' &
printf '%s %s up:%s:%s:%s\\n' $RANK $$ $TORCHELASTIC_RESTART_COUNT $MASTER_PORT $WORLD_SIZE > $TELL
eval 'go=${GO_'$RANK':-$GO}'
read -r word < $go
[ "$RANK" = "$BAD" ] && [ "$TORCHELASTIC_RESTART_COUNT" -lt "$FAILS" ] && eval "$HOW"
exit 0
'''


class Restarting(Cluster):
    def __init__(self, start, place, options=(), how='exit 5', fails=9, bad=2, **more):
        self.tell = place.fifo('tell')
        self.go, self.fail = place.fifo('go'), place.fifo('fail')
        script = place.write('work.sh', SCRIPT)
        super().__init__(start, 3, [*options, '--no_python', '--use_env', '/bin/sh', script],
                         {'TELL': self.tell.path, 'GO': self.go.path,
                          f'GO_{bad}': self.fail.path, 'HOW': how, 'BAD': str(bad),
                          'FAILS': str(fails)}, **more)

    def attempt(self, number):
        """Waits until all workers of it are there: their pids, those left behind, and the port."""
        pids, left, ports = {}, {}, set()
        while len(pids) < 3 or len(left) < 3:
            rank, pid, text = self.tell.line()
            if text == 'left':
                left[rank] = pid
                continue
            up, count, port, world = text.split(':')
            assert (up, int(count), world) == ('up', number, '3')
            pids[rank] = pid
            ports.add(port)
        [port] = ports
        return pids, left, port

    def fail_now(self):
        """The others get no word: it would be the next attempt's."""
        os.write(self.fail.fd, b'\n')

    def proceed(self):
        os.write(self.go.fd, b'\n\n')
        os.write(self.fail.fd, b'\n')


def test_a_job_is_restarted_on_all_nodes_in_step(start, place):
    cluster = Restarting(start, place, ['--max-restarts=2', '--leftover-grace=1'], fails=2)
    seen = []
    for number in range(3):
        pids, left, port = cluster.attempt(number)
        for old in seen:
            assert not any(is_running(pid) for pid in old), 'of an earlier attempt'
        seen.append([*pids.values(), *left.values()])
        (cluster.fail_now if number < 2 else cluster.proceed)()
    results = cluster.end()
    assert exit_codes(results) == [0, 0, 0], results
    assert len(re.findall('restart [12] of at most 2', results[0].err)) == 2
    for old in seen:
        assert not any(is_running(pid) for pid in old)


@pytest.mark.parametrize('asked', range(3))
def test_any_node_can_ask_for_a_restart_which_is_not_counted(start, place, asked):
    cluster = Restarting(start, place, ['--max-restarts=1', '--leftover-grace=1', '--restart-delay=300',
                                        '--on-signal=USR2=restart'], fails=9)
    pids, left, _ = cluster.attempt(0)
    cluster.jobs[asked].signal(signal.SIGUSR2)
    again, left_again, _ = cluster.attempt(1)
    assert not any(is_running(pid) for pid in [*pids.values(), *left.values()])
    cluster.jobs[asked].signal(signal.SIGUSR2)
    cluster.attempt(2)
    assert not any(is_running(pid) for pid in [*again.values(), *left_again.values()])
    cluster.proceed()  # rank 2 fails, and the one restart that counts would come in 300 s
    until(lambda: 'restart 1 of at most 1 starts in 300' in cluster.jobs[0].said(), 'a failure')
    cluster.jobs[0].signal(signal.SIGTERM)
    results = cluster.end()
    assert exit_codes(results) == [143, 143, 143], results
    assert 'restarts: 0 of at most 1, and 2 on request' in results[0].err
    said = [line for line in results[0].err.splitlines() if 'a restart was requested' in line]
    assert len(said) == 2
    assert all(line.startswith('launchd: note: ') and f'(node {asked})' in line and
               line.endswith('; the next attempt starts now') for line in said), said


def test_a_job_that_was_asked_to_end_is_not_restarted(start, place):
    cluster = Restarting(start, place, ['--leftover-grace=1', '--on-signal=USR2=restart'])
    cluster.attempt(0)
    stop(cluster.jobs[1].pid)
    cluster.jobs[0].signal(signal.SIGTERM)
    cluster.jobs[0].signal(signal.SIGUSR2)
    cluster.jobs[1].signal(signal.SIGCONT)
    assert exit_codes(cluster.end()) == [143, 143, 143]


def test_a_node_that_left_can_not_start_again(start, place):
    cluster = Restarting(start, place, ['--leftover-grace=1', '--on-signal=USR2=restart'], fails=0)
    cluster.attempt(0)
    os.write(cluster.fail.fd, b'\n')
    assert cluster.jobs.pop(2).end().rc == 0
    cluster.jobs[0].signal(signal.SIGUSR2)
    until(lambda: "a restart was requested, but a node has ended and left" in
          cluster.jobs[0].said(), 'a warning')
    os.write(cluster.go.fd, b'\n\n')
    assert exit_codes(cluster.end()) == [0, 0]


def test_node_0s_settings_of_restarts_count(start, place):
    """Those of the others have no effect: node 1 would allow none, node 2 too many, and both have
    rules of their own."""
    own = {0: ['--max-restarts=1'],
           1: ['--max-restarts=0'],
           2: ['--max-restarts=14', '--no-restart-on=5', '--restart-delay=300',
               '--restart-min-uptime=600']}
    cluster = Restarting(start, place, ['--leftover-grace=1'], each=lambda node: (own[node], {}))
    for number in range(2):
        cluster.attempt(number)
        cluster.fail_now()
    results = cluster.end()
    assert exit_codes(results) == [5, 5, 5]
    assert 'no restart: the limit is reached' in results[0].err
    said = [re.findall(r"has --max-restarts (\d+), but node rank 0's value applies: 1$", result.err,
                       re.M) for result in results]
    assert said[0] in (['0'], ['14']) and said[1:] == [['0'], ['14']], results


@pytest.mark.parametrize('options, how, code, why', [
    (['--restart-on=6,SIGKILL'], 'exit 5', 5, 'exit code 5 is not in --restart-on'),
    (['--no-restart-on=1-9'], 'exit 5', 5, 'exit code 5 is in --no-restart-on'),
    (['--no-restart-on=SIGKILL'], 'kill -9 $$', 137, 'SIGKILL is in --no-restart-on'),
    (['--restart-min-uptime=600'], 'exit 5', 5, 'sooner than --restart-min-uptime'),
])
def test_ends_that_no_restart_follows(start, place, options, how, code, why):
    cluster = Restarting(start, place, ['--max-restarts=3', '--leftover-grace=0.1', *options], how)
    cluster.attempt(0)
    cluster.fail_now()
    results = cluster.end()
    assert exit_codes(results) == [code] * 3
    assert why in results[0].err


def test_the_delay_and_a_request_in_it(start, place):
    cluster = Restarting(start, place, ['--max-restarts=3', '--leftover-grace=0.1',
                                        '--restart-delay=1'])
    cluster.attempt(0)
    cluster.fail_now()
    began = time.monotonic()
    cluster.attempt(1)
    assert time.monotonic() - began > 0.9
    cluster.fail_now()
    until(lambda: 'restart 2 of at most 3' in cluster.jobs[0].said(), 'the pause')
    cluster.jobs[1].signal(signal.SIGTERM)
    assert exit_codes(cluster.end()) == [143] * 3


@pytest.mark.parametrize('node', [0, 1])
def test_a_launcher_that_is_lost_in_the_pause(start, place, node):
    cluster = Restarting(start, place, ['--max-restarts=3', '--leftover-grace=0.1',
                                        '--restart-delay=100'])
    cluster.attempt(0)
    cluster.fail_now()
    until(lambda: 'restart 1 of at most 3' in cluster.jobs[0].said(), 'the pause')
    job = cluster.jobs[node]
    place.launcher_killed = place.orphans_expected = True
    os.kill(supervisor_of(job.pid), signal.SIGKILL)
    job.kill()
    results = cluster.end()
    for number, result in enumerate(results):
        assert number == node or result.rc not in (0, -9), results


def test_a_node_that_has_finished_is_restarted_with_the_others(start, place):
    cluster = Restarting(start, place, ['--max-restarts=1', '--leftover-grace=0.1', EVENTS],
                         fails=1)
    pids, _, _ = cluster.attempt(0)
    os.write(cluster.go.fd, b'\n\n')
    told_everywhere(place, 2, '"worker_ended"')  # their launchers wait
    assert is_running(pids[2]) and all(is_running(job.pid) for job in cluster.jobs.values())
    os.write(cluster.fail.fd, b'\n')
    cluster.attempt(1)
    cluster.proceed()
    assert exit_codes(cluster.end()) == [0, 0, 0]


@pytest.mark.parametrize('store', ['agent', 'rank0'])
def test_the_users_port_stays_in_every_attempt(start, place, store):
    cluster = Restarting(start, place, ['--max-restarts=2', '--leftover-grace=0.1',
                                        f'--store={store}'], fails=2)
    ports = []
    for number in range(3):
        ports.append(cluster.attempt(number)[2])
        with socket.socket() as one:  # worker 0 here has no store
            listens = one.connect_ex(('127.0.0.1', int(ports[-1]))) == 0
        assert listens == (store == 'agent')
        (cluster.fail_now if number < 2 else cluster.proceed)()
    assert exit_codes(cluster.end()) == [0, 0, 0]
    assert ports == [str(cluster.port)] * 3
