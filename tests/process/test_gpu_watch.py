"""What NVML tells of GPUs while a job runs: a fatal Xid since its first check ends it before a restart. The kernel's
log, which would tell the same, can't be read here."""
import os
import socket as sockets

import pytest

from harness import BUILD, children_of, is_running, native, status_of, supervisor_of, until
from needs import needs_mounts
from nvidia_kernel import with_gpus
from own_mounts import OWN_MOUNTS
from together import errors

pytestmark = [needs_mounts, pytest.mark.skipif(not os.path.exists('/dev/kmsg'), reason='no /dev/kmsg here')]
NVML = {'LD_LIBRARY_PATH': str(BUILD / 'tests' / 'workers'), 'FAKE_GPUS': '4'}
HOST = sockets.gethostname()


class Job:
    """One whose worker fails when it is told to, and restarts."""

    def __init__(self, start, place, faults, *options, env=None):
        self.ready, self.go, self.told = (place.fifo(name) for name in ('ready', 'go', 'told'))
        with sockets.socket(sockets.AF_UNIX) as one:
            one.bind(f'{place.path}/kmsg')
        wrap = [*OWN_MOUNTS, 'bash', '-ec', 'mount --bind "$1" /dev/kmsg; shift; exec "$@"', 'bash',
                f'{place.path}/kmsg']
        self.launcher = start(
            ['--preflight=quick', *(options or ['--max-restarts=1']), *native('ending')],
            {**NVML, 'FAKE_NVML': faults, 'FAKE_XIDS_TOLD': self.told.path, 'TELL': self.ready.path,
             'GO': self.go.path, 'END': 'exit:7', **(env or {})}, wrap=wrap)
        self.ready.expect('ready', 1)
        self.supervisor = supervisor_of(self.launcher.pid)

    def watcher(self):
        """Nobody, or the one that is there."""
        found = [pid for pid in children_of(self.supervisor) if status_of(pid).get('Name') == 'gpu-watch']
        assert len(found) <= 1
        return found[0] if found else None

    def end(self, starts=1):
        """The result, with so many starts of the worker from now on."""
        for more in reversed(range(starts)):
            self.go.go()
            if more:
                self.ready.expect('ready', 1)
        return self.launcher.end()


@pytest.fixture
def job(start, place):
    def begin(*how, **more):
        return Job(start, place, *how, **more)

    return begin


def test_a_fatal_xid_between_two_attempts(job):
    one = job('xid@2=31 xid@3=79')
    one.told.expect('told', 1)
    watcher = one.watcher()
    result = one.end()
    assert result.rc == 122
    assert f'node 0 ({HOST}) is bad: GPU 3: Xid 79 since launchd has watched' in errors(result)[0]
    assert not is_running(watcher)


def test_a_gpu_that_fell_off_the_bus_keeps_its_number(job):
    """NVML doesn't tell the number of a GPU that is lost."""
    one = job('xid@3=79 nvmlDeviceGetIndex=15')
    one.told.expect('told', 1)
    [line, *_] = errors(one.end())
    assert 'GPU 3: Xid 79' in line and 'GPU 0' not in line


@pytest.mark.parametrize('xid', [13, 31, 43, 45, 68, 69])
def test_an_applications_xid_ends_no_job(job, xid):
    one = job(f'xid@1={xid}')
    one.told.expect('told', 1)
    watcher = one.watcher()
    result = one.end(2)
    assert result.rc == 7  # as the second attempt's worker has it
    assert 'gpu_xid' not in result.err.split('restart')[-1]
    assert not is_running(watcher)


@pytest.mark.parametrize('xid', [109, 149])
def test_an_xid_after_which_the_gpu_needs_a_reset(job, xid):
    one = job(f'xid@1={xid}')
    one.told.expect('told', 1)
    result = one.end()
    assert result.rc == 122 and 'is bad: GPU 1: ' in errors(result)[0]


def test_an_xid_after_which_the_driver_asks_for_nothing(job):
    one = job('xid@1=119 recovery=0')
    one.told.expect('told', 1)
    result = one.end(2)
    assert result.rc == 7 and ': 1 bad' not in result.err


@pytest.mark.parametrize('options, env', [
    ([], {'CUDA_VISIBLE_DEVICES': '0'}),
    ([], {'CUDA_VISIBLE_DEVICES': 'GPU-00000001'}),
    ([], {'CUDA_VISIBLE_DEVICES': 'MIG-aaaa'}),
    (['--gpus=0-2'], {}),
], ids=['number', 'uuid', 'mig', 'gpus'])
def test_an_xid_of_a_gpu_that_the_job_does_not_use(job, options, env):
    one = job('xid@3=79 mig@2=MIG-aaaa', '--max-restarts=1', *options, env=env)
    one.told.expect('told', 1)
    result = one.end(2)
    assert result.rc == 7 and ': 1 bad' not in result.err


def test_an_xid_of_a_gpu_of_which_the_job_uses_a_part(job):
    one = job('xid@2=79 mig@2=MIG-aaaa', env={'CUDA_VISIBLE_DEVICES': 'MIG-aaaa'})
    one.told.expect('told', 1)
    result = one.end()
    assert result.rc == 122 and 'GPU 2: Xid 79' in errors(result)[0]


def test_an_xid_where_it_is_not_known_which_gpus_are_the_jobs(job):
    """CUDA's numbers among several models are not NVML's: all are watched, and none condemns the node."""
    one = job('xid@3=79 name@0=NVIDIA_T4', env={'CUDA_VISIBLE_DEVICES': '0'})
    one.told.expect('told', 1)
    result = one.end(2)
    assert result.rc == 7 and ': 1 bad' not in result.err
    assert 'Xid 79 since launchd has watched: whether the job uses this GPU isn\'t known' in result.err


def test_it_stays_from_attempt_to_attempt(job):
    """It is neither a leftover of the workers nor one of the check, and there is one."""
    one = job('', '--max-restarts=2')
    one.told.expect('told', 1)
    watcher = one.watcher()
    for _ in range(2):
        one.go.go()
        one.ready.expect('ready', 1)
        assert one.watcher() == watcher
    result = one.end()
    assert result.rc == 7 and not is_running(watcher)
    assert 'left behind' not in result.err


def test_one_that_is_killed_is_unknown(job):
    one = job('')
    one.told.expect('told', 1)
    watcher = one.watcher()
    os.kill(watcher, 9)
    until(lambda: not is_running(watcher), 'the watcher to end')
    result = one.end(2)
    assert result.rc == 7
    assert 'nobody watched: its process was killed by SIGKILL in NVML' in result.err


def test_what_it_has_seen_stands_when_it_ends(job):
    """As with a GPU that has fallen off the bus: NVML has no more to say then."""
    one = job('xid@0=79')
    one.told.expect('told', 1)
    os.kill(one.watcher(), 9)
    result = one.end()
    assert result.rc == 122
    assert 'GPU 0: Xid 79 since launchd has watched' in errors(result)[0]


@pytest.mark.parametrize('fault, says', [
    ('nvmlEventSetCreate=999', 'nobody watched: nvmlEventSetCreate: an error inside the driver'),
    ('crash=nvmlEventSetWait', 'nobody watched: its process was killed by SIGABRT in NVML'),
    ('hang=nvmlEventSetCreate', 'NVML has not begun to watch'),
])
def test_an_nvml_that_fails_is_in_nobodys_way(job, fault, says):
    one = job(fault)
    if not fault.startswith('hang'):
        # the worker is left; by its name the watcher is not known from its first moment
        until(lambda: len(children_of(one.supervisor)) == 1, 'the watcher to end')
    result = one.end(2)
    assert result.rc == 7 and says in result.err


@pytest.mark.parametrize('options, env', [
    (['--max-restarts=0'], {}),
    (['--max-restarts=1'], {'FAKE_GPUS': '0'}),
    (['--max-restarts=1'], {'FAKE_GPUS': '-1'}),
    (['--max-restarts=1', '--preflight=none'], {}),
], ids=['no restarts', 'no GPU', 'no driver', 'no check'])
def test_none_where_nobody_asks(job, options, env):
    one = job('', *options, env=env)
    until(lambda: len(children_of(one.supervisor)) == 1, 'what looks at file systems to end')
    assert one.end(1 if options[0].endswith('0') else 2).rc == 7


@pytest.fixture
def held(start, place):
    """A job whose watch can't read a GPU's memory before the test writes it into the FIFO; its restart is checked."""
    os.mkfifo(place.path / 'used')
    ready, go = place.fifo('ready'), place.fifo('go')
    launcher = start(
        ['--max-restarts=1', *native('ending')],
        {**NVML, 'FAKE_NVML': f'used@0={place.path}/used', 'TELL': ready.path, 'GO': go.path, 'END': 'exit:0'},
        wrap=with_gpus(4))

    def write():
        try:
            return os.open(place.path / 'used', os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads it yet
            return None

    fifo = until(write, 'the watch to read')
    names = [status_of(pid).get('Name') for pid in children_of(supervisor_of(launcher.pid))]
    assert 'gpu-watch' in names and 'ending' not in names
    yield launcher, ready, go, fifo
    os.close(fifo)


def test_memory_is_read_before_workers_start(held):
    launcher, ready, go, fifo = held
    os.write(fifo, b'77\n')
    ready.expect('ready', 1)
    go.go()
    assert launcher.end().rc == 0


def test_a_job_that_is_stopped_before_it_is_read(held):
    launcher, _, _, _ = held
    launcher.signal(15)
    assert launcher.end().rc == 143


def test_it_ends_with_its_launcher(job):
    one = job('')
    one.told.expect('told', 1)
    watcher = one.watcher()
    one.launcher.kill()
    until(lambda: not is_running(watcher), 'the watcher to end')


def test_it_ends_with_a_job_that_is_stopped(job):
    one = job('')
    one.told.expect('told', 1)
    watcher = one.watcher()
    one.launcher.signal(15)
    assert one.launcher.end().rc == 143
    assert not is_running(watcher)
