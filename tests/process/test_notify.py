"""Issue 16: launchd as systemd's service: what NOTIFY_SOCKET hears, in which order, and what workers don't."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from control import Control, socket_of
from harness import BUILD, LIMIT, children_of, native, supervisor_of, until
from together import Cluster

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SLEEP = ['--standalone', '--no_python', '--use_env', '/bin/sleep', '1000']
OF_SYSTEMD = ('NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID LISTEN_PID LISTEN_FDS LISTEN_FDNAMES '
              'RUNTIME_DIRECTORY STATE_DIRECTORY LOGS_DIRECTORY CACHE_DIRECTORY '
              'CONFIGURATION_DIRECTORY CREDENTIALS_DIRECTORY INVOCATION_ID JOURNAL_STREAM '
              'SYSTEMD_EXEC_PID MANAGERPID').split()


class Manager:
    """The socket that systemd listens to, and what it has heard."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name)
        self.socket.settimeout(LIMIT)
        self.heard = []

    def close(self):
        self.socket.close()

    def until(self, text):
        """Listens until something that has `text` was said, and returns that datagram."""
        while True:
            said = self.socket.recv(8192).decode()
            self.heard.append(said)
            if text in said:
                return said

    def told(self, name):
        return [line for said in self.heard for line in said.splitlines()
                if line.startswith(name + '=')]


@pytest.fixture
def manager(place):
    with contextlib.closing(Manager(str(place.path / 'notify'))) as manager:
        yield manager


def service(place, **more):
    return {'NOTIFY_SOCKET': str(place.path / 'notify'), **more}


def test_order_of_a_run_that_is_stopped(start, place, manager):
    job = start([*SLEEP[:-2], '--nproc_per_node=2', '--shutdown-timeout=1', *SLEEP[-2:]],
                service(place))
    manager.until('READY=1')
    assert manager.heard == ['STATUS=starting\n', 'STATUS=attempt 0: starting 2 workers\n',
                             'READY=1\nSTATUS=attempt 0: 2 of 2 workers running\n']
    job.signal(signal.SIGTERM)
    manager.until('ended with exit code 143')
    job.end()
    assert manager.told('READY') == ['READY=1'] and manager.told('STOPPING') == ['STOPPING=1']
    assert manager.heard.index('STOPPING=1\nEXTEND_TIMEOUT_USEC=61000000\n') == 3
    assert not manager.told('MAINPID') and not manager.told('WATCHDOG')


def test_an_abstract_socket(launch):
    name = f'launchd-test-{os.getpid()}'
    with contextlib.closing(Manager('\0' + name)) as manager:
        assert launch(native('dump', '--standalone'), {'NOTIFY_SOCKET': '@' + name}).rc == 0
        manager.until('ended with exit code 0')
        assert manager.told('READY')


def test_it_lives_until_all_is_read(start, place, manager):
    """systemd drops what a process has sent that has ended by then: it finds the unit by the sender's pid."""
    job = start(native('dump', '--standalone'), service(place))
    manager.until('ended with exit code 0')
    said, [barrier], _, _ = socket.recv_fds(manager.socket, 64, 1)
    assert said == b'BARRIER=1' and supervisor_of(job.pid)
    os.close(barrier)
    assert job.end().rc == 0


def test_signs_of_life(start, place, manager):
    job = start(SLEEP,
                service(place, WATCHDOG_USEC='100000'))
    manager.until('READY=1')
    for _ in range(3):
        manager.until('WATCHDOG=1')
    job.signal(signal.SIGTERM)
    job.end()


def test_another_ones_watchdog(launch, place, manager):
    env = service(place, WATCHDOG_USEC='2000', WATCHDOG_PID='1')
    assert launch(native('dump', '--standalone'), env).rc == 0
    manager.until('ended with')
    assert not manager.told('WATCHDOG')


def test_a_failure_and_another_attempt(launch, place, manager):
    script = place.write('fail', '#!/bin/sh\nexit $((3 - TORCHELASTIC_RESTART_COUNT))\n', 0o755)
    result = launch(['--standalone', '--max-restarts=1', '--no_python', '--use_env', script],
                    service(place))
    assert result.rc == 2
    manager.until('ended with exit code 2')
    assert manager.told('READY') == ['READY=1'] and manager.told('STOPPING') == ['STOPPING=1']
    status = manager.told('STATUS')
    restart = next(i for i, line in enumerate(status) if 'attempt 1 starts in' in line)
    assert 'exit code 3' in status[restart]
    assert 'STATUS=attempt 1: 1 of 1 worker running' in status[restart:]
    assert 'STOPPING=1' in manager.heard[-1]


JOINS = '''
import os, socket
with open(os.environ['TELL'], 'w') as f:
    f.write(f"{os.environ['RANK']} {os.getpid()} started\\n")
def wait(fifo):
    os.read(os.open(os.environ[fifo], os.O_RDONLY), 1)
wait('GO')
store = socket.create_connection(('127.0.0.1', int(os.environ['MASTER_PORT'])))
wait('LEAVE')
'''


@pytest.mark.parametrize('master', ['127.0.0.1', 'localhost'])
def test_ready_when_joined(start, place, manager, master):
    """Rank 0 of another node hosts the store."""
    started, go, leave = (place.fifo(name) for name in ('started', 'go', 'leave'))
    with socket.create_server(('127.0.0.1', 0)) as store:
        job = start(['--nproc_per_node=2', '--ready-when=joined', f'--master_addr={master}',
                     '--store=rank0', f'--master_port={store.getsockname()[1]}', '--no_python', '--use_env',
                     sys.executable, place.write('joins.py', JOINS)],
                    service(place, TELL=started.path, GO=go.path, LEAVE=leave.path))
        started.expect('started', 2)
        manager.until('2 of 2 workers running, not all have joined the store')
        assert not manager.told('READY')
        go.go(2)
        assert manager.until('READY=1') == 'READY=1\nSTATUS=attempt 0: 2 of 2 workers running\n'
        leave.go(2)
        assert job.end().rc == 0
    assert manager.told('READY') == ['READY=1']


def test_workers_hear_nothing_of_it(launch, place, manager):
    env = service(place, **{name: '1' for name in OF_SYSTEMD[1:]})
    assert launch(native('dump', '--standalone', '--nproc_per_node=2'), env).rc == 0
    for dump in place.dumps().values():
        assert not set(OF_SYSTEMD) & set(dump['env'])


def test_what_a_login_shell_has_of_its_unit_stays(launch, place):
    assert launch(native('dump', '--standalone'), {name: '1' for name in OF_SYSTEMD[1:]}).rc == 0
    env = place.dumps()[0]['env']
    assert env['INVOCATION_ID'] == '1' and env['JOURNAL_STREAM'] == '1'
    assert not {'WATCHDOG_USEC', 'WATCHDOG_PID', 'LISTEN_FDS'} & set(env)


@pytest.mark.parametrize('whose, rc', [('the manager', -signal.SIGTERM), ('a stranger', 143)])
def test_who_asked_for_the_end(start, place, manager, whose, rc):
    """systemd counts death by SIGTERM as clean, and exit code 143 as a failure."""
    job = start(SLEEP, service(place))
    manager.until('READY=1')
    if whose == 'the manager':
        job.signal(signal.SIGTERM)
    else:
        subprocess.run(['/bin/kill', str(job.pid)], check=True)
    assert job.end().rc == rc


def test_a_worker_that_a_stranger_has_ended(start, place, manager):
    job = start(SLEEP, service(place))
    manager.until('READY=1')
    [worker] = until(lambda: [pid for pid in children_of(supervisor_of(job.pid))
                              if b'sleep' in pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()], 'it to be sleep')
    os.kill(worker, signal.SIGTERM)
    assert job.end().rc == 143


def test_nodes_that_are_awaited(start, place, manager):
    cluster = Cluster(start, 3, native('dump'), begin=False,
                      each=lambda node: ([], service(place) if node == 0 else {}))
    cluster.begin(0)
    manager.until('waiting for 2 of 3 nodes: nodes 1, 2')
    cluster.begin(2)
    manager.until('waiting for 1 of 3 nodes: node 1\n')
    cluster.begin(1)
    manager.until('READY=1')
    for job in cluster.jobs.values():
        assert job.end().rc == 0


def test_nodes_that_are_awaited_by_name(start, place, manager):
    """... where [cluster] lists them: systemd, the note on stderr and launchctl name them."""
    cluster = Cluster(start, 3, native('dump'), begin=False,
                      each=lambda node: (['--cluster-nodes=gpu[1-3]'], service(place) if node == 0 else {}))
    cluster.begin(0)
    manager.until('STATUS=waiting for 2 of 3 nodes: gpu2 (node 1), gpu3 (node 2)\n')
    cluster.begin(2)
    manager.until('STATUS=waiting for 1 of 3 nodes: gpu2 (node 1)\n')
    with Control(socket_of(cluster.jobs[0])) as control:
        status = control.ask('status')
        assert (status['awaited'], status['awaited_hosts']) == ([1], ['gpu2'])
        assert control.ask('status', nodes='all')['nodes'][1]['host'] == 'gpu2'
    until(lambda: 'is missing: gpu2 (node 1); joined: ' in cluster.jobs[0].said(), 'a note')
    cluster.begin(1)
    manager.until('READY=1')
    for job in cluster.jobs.values():
        assert job.end().rc == 0


def unit(place):
    """The unit as it is installed, with a program that is there."""
    text = (SOURCE / 'systemd/launchd@.service.in').read_text()
    (place.path / 'launchd').symlink_to(BUILD / 'launchd')
    (place.path / 'launchctl').symlink_to(BUILD / 'launchd')
    return place.write('launchd@.service', text.replace('@bindir@', str(place.path)))


@pytest.mark.skipif(not shutil.which('systemd-analyze'), reason='systemd-analyze is not installed')
class TestUnits:
    def analyze(self, *argv):
        done = subprocess.run(['systemd-analyze', '--no-pager', *argv], capture_output=True,
                              text=True, check=False, timeout=LIMIT)
        return done.returncode, done.stdout + done.stderr

    def test_they_have_no_mistake(self, place):
        shutil.copy(SOURCE / 'systemd/launchd.target', place.path / 'launchd.target')
        instance = pathlib.Path(unit(place)).rename(place.path / 'launchd@train.service')
        rc, said = self.analyze('verify', '--man=no', '--recursive-errors=no', str(instance),
                                str(place.path / 'launchd.target'))
        if 'Failed to create directory' in said:  # where systemd doesn't run
            pytest.skip(said.strip())
        assert rc == 0 and 'launchd' not in said, said

    def test_how_exposed_it_is(self, place):
        rc, said = self.analyze('security', '--offline=yes', unit(place))
        level = re.search(r'Overall exposure level for \S+: ([\d.]+)', said)
        if not level:
            pytest.skip('systemd-analyze has no --offline')
        assert float(level[1]) <= 4.0, said
