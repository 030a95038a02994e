"""What --blackbox is told of the workers that still live: each source, and what becomes of the others where one never
answers. NVML and NCCL's RAS are fakes, and so is py-spy: nothing here needs a GPU, or has seen one."""
import json
import pathlib
import signal
import sys

import pytest

from fake_ras import Ras
from harness import BUILD, native, until
from needs import needs_mounts
from nvidia_kernel import with_gpus

NVML = {'LD_LIBRARY_PATH': str(BUILD / 'tests' / 'workers'), 'FAKE_GPUS': '2'}
WELL = 'no errors, as far as NCCL counts: operations that were launched, not done (nccl-ras.txt)'
REPORT = b'OK\nNCCL version 2.27.3\n\nJob summary\n===========\n\nErrors\n======\n\n%sWarnings\n========\n\n'
MISMATCH = b'#0-0 (cf26) MISMATCH\n  Communicator ranks have different collective operation counts\n\n'


class Kept:
    """This node's part of the only failure that was kept."""

    def __init__(self, place):
        [failure] = [path for path in (place.path / 'box').iterdir()]
        self.path = failure / 'node-0'
        self.findings = json.loads((self.path / 'bundle.json').read_text())['findings']

    def of(self, source, subject=None):
        """[(health, text)] of a source."""
        return [(found['health'], found['text']) for found in self.findings
                if found['source'] == source and subject in (None, found['subject'])]

    def text(self, name):
        return (self.path / name).read_text()


@pytest.fixture
def fail(start, place):
    """fail(...) -> Kept of a job whose last rank fails, while the others go on until they are told to end."""

    def run(*options, env=None, workers=2, before=lambda: None, command=None, wrap=()):
        ready, go = place.fifo('ready'), place.fifo('go')
        job = start([f'--nproc_per_node={workers}', f'--blackbox={place.path}/box', '--blackbox-hold=1h',
                     *options, *(command or native('ending'))],
                    {'TELL': ready.path, 'GO': go.path, 'END': 'never', f'END_{workers - 1}': 'exit:7', **(env or {})},
                    wrap=wrap)
        ready.expect('ready', workers)
        before()
        go.go(workers)
        assert job.end().rc == 7
        return Kept(place)

    return run


@pytest.fixture
def ras():
    made = []

    def make(*pieces, hold=False, port=0):
        made.append(Ras(lambda: pieces, hold, port))
        return made[-1]

    yield make
    for one in made:
        one.close()


def python(place, text):
    """A worker in Python that says when it is ready, and fails when it is told to if it is the last rank."""
    return ['--python', sys.executable, '--use_env', place.write('train.py', '''
import os, sys, time
rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
''' + text + '''
def tell():
    with open(os.environ['TELL'], 'w') as tell:
        tell.write(f'{rank} {os.getpid()} ready\\n')
def waits_for_ever():
    tell()
    while True:
        time.sleep(1)
if rank == size - 1:
    tell()
    os.read(os.open(os.environ['GO'], os.O_RDONLY), 1)
    os._exit(7)
waits_for_ever()
''')]


# --- the machine ---

def test_memory_and_threads(fail):
    kept = fail()
    [(health, text)] = kept.of('memory')
    assert health in ('good', 'bad') and 'GiB available' in text
    told = kept.text('memory.txt')
    assert '--- /proc/meminfo' in told and 'rank 0, pid ' in told and 'VmRSS' in told
    assert len(kept.of('room')) == 3 and len(kept.of('room', '/dev/shm')) == 1
    [(health, text)] = kept.of('threads', 'rank 0')
    assert (health, text[:9]) == ('good', '1 thread:') and text.endswith('(threads.rank-0.txt)')
    assert kept.text('threads.rank-0.txt').startswith('thread ')
    assert not kept.of('nvml') and not kept.of('nccl_ras') and not kept.of('flight_recorder')


# --- GPUs ---

def test_gpus(fail):
    kept = fail(env={**NVML, 'FAKE_NVML': 'ecc@1=3 throttled@1=64 power@0=22000 used@0=1073741824'})
    assert kept.of('nvml', 'GPU 0') == [('good', '1.0 of 80.0 GiB used, 22 W')]
    [(health, text)] = kept.of('nvml', 'GPU 1')
    assert health == 'bad'
    assert 'slowed down by heat (hardware)' in text and '3 uncorrectable errors of its memory' in text
    told = kept.text('gpus.txt')
    assert told.count('NVIDIA H100') == 2 and 'SM clock: 1980 MHz' in told


@pytest.mark.parametrize('list, ours', [('1', [1]), ('GPU-00000001', [1]), (None, [0, 1])])
def test_gpus_of_other_jobs(fail, list, ours):
    """They are in the file alone."""
    kept = fail(env={**NVML, 'FAKE_NVML': 'ecc@0=3', **({'CUDA_VISIBLE_DEVICES': list} if list else {})})
    assert [found['subject'] for found in kept.findings if found['source'] == 'nvml'] == [f'GPU {gpu}' for gpu in ours]
    assert ('--- GPU 0, which is not the job\'s\n' in kept.text('gpus.txt')) == (0 not in ours)


def test_the_processes_of_a_gpu(fail):
    """However many there are; NVML doesn't always tell how much one holds, and gives a list that fits or none."""
    use = ','.join(f'{pid}:{2 << 20}' for pid in range(4194000, 4194099))
    told = fail(env={**NVML, 'FAKE_GPU_USE': f'{use},4194099:{(1 << 64) - 1}'}).text('gpus.txt')
    processes = [line for line in told.splitlines() if line.startswith('  pid ')]
    assert processes == [*(f'  pid {pid}: 2 MiB, not seen here' for pid in range(4194000, 4194099)),
                         '  pid 4194099: not seen here']


@needs_mounts
def test_gpus_whose_driver_is_not_reached(fail):
    """They have device files here; where none has, nothing is said."""
    env = {**NVML, 'FAKE_GPUS': '-1'}
    assert fail(env=env, wrap=with_gpus(2)).of('nvml') == [('unknown', 'nvmlInit: the driver is not loaded')]


@pytest.mark.parametrize('folder, faults, celsius', [
    ('', '', 62), ('', 'nvmlDeviceGetTemperatureV=3 nvmlDeviceGetCurrentClocksEventReasons=13', 61),
    ('old_driver', '', 61),
], ids=['by their newer names', 'which do not answer', 'by their older ones'])
def test_what_has_an_older_name(fail, folder, faults, celsius):
    kept = fail(env={**NVML, 'LD_LIBRARY_PATH': f'{NVML["LD_LIBRARY_PATH"]}/{folder}',
                     'FAKE_NVML': f'throttled@1=64 {faults}'})
    told = kept.text('gpus.txt')
    assert told.count(f'temperature: {celsius} C') == 2 and told.count('slowed down by heat (hardware)') == 1


@pytest.mark.parametrize('fault, gpu, told', [
    ('hang=nvmlInit', None, 'nvmlInit'),
    ('hang@1=nvmlDeviceGetMemoryInfo', 'GPU 0', 'nvmlDeviceGetMemoryInfo of GPU 1'),
])
def test_a_driver_that_hangs(fail, fault, gpu, told):
    """It costs what it had not told yet, and no other source."""
    kept = fail(env={**NVML, 'FAKE_NVML': fault})
    late = [found for found in kept.of('nvml', '') if found[0] == 'unknown']
    assert late == [('unknown', f'no answer within 5 s ({told})')]
    assert len(kept.of('nvml')) == (2 if gpu else 1)
    assert not gpu or 'GiB used' in kept.of('nvml', gpu)[0][1] and '--- GPU 0' in kept.text('gpus.txt')
    assert kept.of('memory') and kept.of('threads', 'rank 0')[0][0] == 'good'


@pytest.mark.parametrize('error, words', [
    (8, 'the GPU\'s power cables are not attached properly'), (15, 'the GPU has fallen off the bus')])
def test_a_gpu_that_is_lost(fail, error, words):
    kept = fail(env={**NVML, 'FAKE_NVML': f'nvmlDeviceGetHandleByIndex@0={error}'})
    assert kept.of('nvml', 'GPU 0') == [('bad', words)]
    assert kept.of('nvml', 'GPU 1')[0][0] == 'good'


@pytest.mark.parametrize('faults, told', [
    ('xid@1=79 xid@0=31', [('GPU 1', 'Xid 79: the GPU needs a reset, or more'),
                           ('GPU 0', 'Xid 31, which the application causes')]),
    ('', []),
])
def test_xids_since_the_start(fail, place, faults, told):
    """A child listens to NVML from the first attempt on, where there are GPUs."""
    fifo = place.fifo('told')
    kept = fail('--nproc_per_node=gpu', before=lambda: fifo.expect('told', 1),
                env={**NVML, 'FAKE_NVML': faults, 'FAKE_XIDS_TOLD': fifo.path})
    found = [(found['subject'], found['health'], found['text']) for found in kept.findings if found['source'] == 'xid']
    assert sorted(found) == sorted((gpu, 'bad', text) for gpu, text in told) if told else \
        found == [('', 'good', 'none since the job began')]


# --- NCCL ---

@pytest.mark.parametrize('pieces, health, text', [
    ([REPORT % b''], 'good', WELL),
    ([REPORT[:30], (REPORT % b'')[30:]], 'good', WELL),
    ([REPORT % MISMATCH], 'bad', '#0-0 (cf26) MISMATCH: Communicator ranks have different collective operation counts '
                                 '(nccl-ras.txt)'),
    ([b'OK\nERROR: unknown command\n'], 'unknown', 'it answers: ERROR: unknown command (nccl-ras.txt)'),
    ([b'OK\nNCCL version 2'], 'unknown', 'it answers: NCCL version 2 (nccl-ras.txt)'),
    ([], 'unknown', 'no answer: the connection was closed'),
])
def test_nccl_tells(fail, ras, pieces, health, text):
    fake = ras(*pieces)
    kept = fail(env=fake.env)
    assert kept.of('nccl_ras', fake.env['NCCL_RAS_ADDR']) == [(health, text)]
    assert fake.asked == b'TIMEOUT 3\nVERBOSE STATUS\n'
    assert (kept.path / 'nccl-ras.txt').exists() == bool(pieces)


@pytest.mark.parametrize('pieces, health, text', [
    ([], 'unknown', 'no answer: Connection timed out'),
    ([REPORT % MISMATCH], 'bad', '; it had not ended after 4 s (nccl-ras.txt)'),
])
def test_nccl_that_does_not_end(fail, ras, pieces, health, text):
    fake = ras(*pieces, hold=True)
    [(is_health, is_text)] = fail(env=fake.env).of('nccl_ras')
    assert is_health == health and is_text.endswith(text)


def test_nccl_that_floods(fail, ras):
    fake = ras(*[b'x' * 65536] * 64)
    kept = fail(env=fake.env)
    [(health, text)] = kept.of('nccl_ras')
    assert health == 'unknown' and '; it was longer than 1 MB' in text
    assert (kept.path / 'nccl-ras.txt').stat().st_size <= 1 << 20


def test_what_is_set_for_nccl(dry):
    """Only with --blackbox, and only what nobody else has set."""
    names = {'TORCH_NCCL_DEBUG_INFO_TEMP_FILE', 'TORCH_NCCL_DEBUG_INFO_PIPE_FILE', 'NCCL_RAS_ADDR',
             'TORCH_NCCL_TRACE_BUFFER_SIZE'}
    assert not names & set(dry(['--log-dir=logs', '--blackbox=none']).edits())
    assert names <= set(dry(['--blackbox=box']).edits())
    edits = dry(['--blackbox=box', '--master_port=29500', '--env', 'TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/x']).edits()
    assert edits['NCCL_RAS_ADDR']['value'] == 'localhost:29529'
    assert edits['TORCH_NCCL_DEBUG_INFO_PIPE_FILE']['value'] == '/x'
    assert edits['TORCH_NCCL_TRACE_BUFFER_SIZE']['value'] == '2000'
    # the newer name says nothing to torch before 2.8, nor to the pipe of 2.8 to 2.10
    edits = dry(['--blackbox=box'], {'TORCH_FR_BUFFER_SIZE': '7'}).edits()
    assert edits['TORCH_NCCL_TRACE_BUFFER_SIZE']['value'] == '7'
    assert 'TORCH_NCCL_TRACE_BUFFER_SIZE' not in dry(['--blackbox=box'], {'TORCH_NCCL_TRACE_BUFFER_SIZE': '7'}).edits()


RECORDER = '''
prefix, pipe = os.environ['TORCH_NCCL_DEBUG_INFO_TEMP_FILE'], os.environ['TORCH_NCCL_DEBUG_INFO_PIPE_FILE']
os.mkfifo(f'{pipe}{rank}.pipe')
def record():
    with open(f'{prefix}{rank}', 'wb') as dump:
        dump.write(b'pickled %d' % rank)
def answer():
    fd = os.open(f'{pipe}{rank}.pipe', os.O_RDONLY | os.O_NONBLOCK)
    if rank == 1:
        threading.Event().wait()
    select.select([fd], [], [])
    record()
import select, threading
threading.Thread(target=answer, daemon=True).start()
if rank == size - 1:
    record()
'''


def test_the_flight_recorder(fail, place):
    """One has dumped by itself, and failed; of those that are asked one answers, one never looks."""
    kept = fail(workers=3, command=python(place, RECORDER))
    assert kept.of('flight_recorder') == [
        ('good', "2 dumps (flight-recorder.rank-N): read them with torch's fr_trace")]
    assert kept.text('flight-recorder.rank-0') == 'pickled 0'
    assert kept.text('flight-recorder.rank-2') == 'pickled 2'
    assert not (kept.path / 'flight-recorder.rank-1').exists()


# --- Python ---

FAULTHANDLER = '''
import faulthandler, signal
if rank == 0:
    faulthandler.register(signal.SIGUSR2, all_threads=True)
'''


def test_a_signal_for_stacks(fail, place):
    """Who has no handler would be killed by it, and gets none."""
    kept = fail('--stack-signal=USR2', '--log-dir=logs', workers=3, command=python(place, FAULTHANDLER))
    assert kept.of('stack_signal', 'rank 0') == [('good', 'SIGUSR2 was sent; what it wrote then is in its log')]
    assert kept.of('stack_signal', 'rank 1') == [
        ('unknown', 'it has no handler for the signal, so it was not sent')]
    assert 'in waits_for_ever' in kept.text('rank-0.stderr.txt')
    workers = json.loads(kept.text('bundle.json'))['workers']
    assert [worker['end'] for worker in workers[:2]] == ['killed by SIGTERM'] * 2


STUCK_HANDLERS = '''
import faulthandler, signal
if rank == 0:
    full = os.pipe()
    os.set_blocking(full[1], False)
    try:
        while True:
            os.write(full[1], b'x')
    except BlockingIOError:
        os.set_blocking(full[1], True)
    faulthandler.register(signal.SIGUSR2, file=full[1])
else:
    faulthandler.register(signal.SIGUSR2)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
'''


def test_who_does_not_come_to_an_end_with_a_signal_for_stacks(fail, place):
    """One waits in its handler, the other never runs it: neither stack can be there."""
    kept = fail('--stack-signal=USR2', workers=3, command=python(place, STUCK_HANDLERS))
    for rank in range(2):
        assert kept.of('stack_signal', f'rank {rank}') == [
            ('unknown', 'SIGUSR2 was sent, but it has not handled it yet')]


def test_signals_that_are_none(refused, dry):
    refused(['--blackbox=box', '--stack-signal=USR7', '/bin/true'], '--stack-signal', '"USR7" is no signal')
    refused(['--blackbox=box', '--stack-signal=KILL', '/bin/true'], '--stack-signal', 'nothing can handle SIGKILL')
    assert dry(['--stack-signal=USR1']).warnings() == ['--stack-signal has no effect without --blackbox']
    assert dry(['--blackbox=box', '--stack-signal=10']).value('stack_signal') == 'SIGUSR1'


PY_SPY = '''#!/bin/sh
[ "$1 $2 $3" = "dump --nonblocking --pid" ] || exit 9
[ -z "$SAYS" ] || { echo "$SAYS" >&2; exit 1; }
printf 'Process %s: python\\n\\nThread %s (idle): "MainThread"\\n    waits (train.py:7)\\n' "$4" "$4"
'''


@pytest.mark.parametrize('says, health, text', [
    ('', 'good', 'idle in waits (train.py:7) (python.rank-0.txt)'),
    ('Error: Permission Denied', 'unknown', 'py-spy: Error: Permission Denied'),
])
def test_py_spy(fail, place, says, health, text):
    place.write('bin/py-spy', PY_SPY, 0o755)
    path = {'PATH': f'{place.path}/bin:/usr/bin:/bin', 'SAYS': says}
    kept = fail(env=path, command=python(place, ''))
    assert kept.of('python', 'rank 0') == [(health, text)]


def test_a_worker_without_python(fail, place):
    """py-spy isn't run for it."""
    place.write('bin/py-spy', f'#!/bin/sh\n: > {place.path}/ran\n', 0o755)
    kept = fail(env={'PATH': f'{place.path}/bin:/usr/bin:/bin'})
    assert not kept.of('python') and not pathlib.Path(place.path / 'ran').exists()


def test_a_user_who_has_no_time(start, place):
    """While workers are held, as a source takes its time, a signal ends them at once."""
    ready, go, asked = place.fifo('ready'), place.fifo('go'), place.fifo('asked')
    place.write('bin/py-spy', f'#!/bin/sh\necho "0 $$ asked" > {asked.path}\nexec sleep 1000\n', 0o755)
    job = start(['--nproc_per_node=2', f'--blackbox={place.path}/box', '--blackbox-hold=1h', '--events=events.jsonl',
                 *python(place, '')],
                {'TELL': ready.path, 'GO': go.path, 'PATH': f'{place.path}/bin:/usr/bin:/bin'})
    ready.expect('ready', 2)
    go.go(2)
    asked.expect('asked', 1)
    events = place.path / 'events.jsonl'
    until(lambda: 'worker_ended' in events.read_text(), 'its end to be told')
    assert '"stop"' not in events.read_text()
    job.signal(signal.SIGTERM)
    assert job.end().rc == 7
    [told] = [event for event in map(json.loads, events.read_text().splitlines()) if event['event'] == 'stop']
    assert told['signal'] == 'SIGTERM'


@pytest.mark.xdist_group('nccls-own-port')
def test_another_jobs_ras_is_not_asked(fail, ras):
    """It is at NCCL's own port. No worker of this job lives, so none has an address."""
    other = ras(REPORT % MISMATCH, port=28028)
    kept = fail(workers=1)
    assert not kept.of('nccl_ras') and not (kept.path / 'nccl-ras.txt').exists()
    assert other.clients == 0
