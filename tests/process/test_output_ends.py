"""What is left of a worker's words when it has died, and what can be in the way of writing them."""
import contextlib
import json
import os
import re
import signal
import socket
import time

import pytest
from hang_fs import HangFS
from harness import is_running, native, supervisor_of, until, waits_in
from needs import needs_mounts
from own_mounts import OWN_MOUNTS
from written import (Logs, all_streams, assert_console, assert_same, counted, lines_of,
                     shown, stream_of)

WRITER = native('writer')
WAYS = {'pass': [], 'direct': ['-r3', '--log-dir=logs'], 'tee': ['-t3', '--log-dir=logs'],
        'hidden': ['--local-ranks-filter=1'],
        'stamped': ['-r3', '--log-dir=logs', '--log-timestamps']}
FILES = ['direct', 'tee']




def sh(script, *options):
    return [*options, '--no_python', '--use_env', 'sh', '-c', script]


def last_words(result):
    """The numbers of those of `word N` that the report has."""
    return [int(line.split()[-1]) for line in result.err.splitlines()
            if re.match(r'    (\[default0\]:|\S+Z )?word \d+$', line)]


@pytest.mark.parametrize('way', WAYS)
@pytest.mark.parametrize('options, count', [([], 20), (['--tail-lines=5'], 5),
                                            (['--tail-lines=0'], 0)])
def test_the_culprits_last_lines_end_the_report(launch, way, options, count):
    """However its words went: to the console, a file, both or nowhere."""
    script = 'i=0; while [ $i -lt 30 ]; do echo "word $i" >&2; i=$((i + 1)); done; exit 3'
    result = launch(sh(script, *options, *WAYS[way]))
    assert result.rc == 3
    assert last_words(result) == list(range(30 - count, 30))


def test_the_culprits_and_nobody_elses(launch):
    script = ('[ $RANK = 1 ] && { echo "word 1" >&2; exit 4; }; echo "word 0" >&2; '
              'exec sleep 1000')
    result = launch(sh(script, '--nproc_per_node=2', '--shutdown-timeout=5'),
                    {'OMP_NUM_THREADS': '1'})
    assert result.rc == 4 and last_words(result) == [1]


def test_last_words_without_a_newline(launch):
    result = launch(sh('printf "word 1\\nword 2" >&2; kill -KILL $$'))
    assert result.rc == 137 and last_words(result) == [1, 2]


def test_last_words_that_are_no_text(launch):
    """Nothing of a terminal's own language comes through the report."""
    result = launch(sh(r'printf "\033[31mred \377\000 word\n" >&2; exit 1'))
    report = [line for line in result.err.splitlines() if line.startswith('launchd: ')]
    assert any('red' in line and 'word' in line for line in report)
    assert not any('\033' in line or '\0' in line for line in report)


def test_where_its_log_is(launch, place):
    result = launch(sh('echo out; exit 3', '--log-dir=logs', '-r3'))
    directory = Logs(place).file(0).parent
    assert re.search(rf'^launchd: error: .*{re.escape(str(directory))}', result.err, re.M)


@pytest.mark.parametrize('way', FILES)
@pytest.mark.parametrize('seed', range(3))
def test_every_byte_before_a_kill_is_in_the_file(launch, place, way, seed):
    counts = place.out / 'counts'
    counts.mkdir()
    env = {'SEED': str(seed), 'KINDS': 'ssebuxl', 'LINES': '200', 'END': 'kill',
           'COUNTS': str(counts)}
    assert launch([*WAYS[way], *WRITER], env).rc == 137
    for fd, name in ((1, 'stdout.log'), (2, 'stderr.log')):
        written, at_most = counted(counts, 0)[fd]
        assert written == at_most
        assert_same(Logs(place).file(0, name).read_bytes(),
                    stream_of(place.environment(env), 0, fd)[:written], name)


def test_a_kill_from_outside(start, place):
    """In the middle of what it writes; the others' files are as whole."""
    ready, counts = place.fifo('ready'), place.out / 'counts'
    counts.mkdir()
    env = {'SEED': '1', 'KINDS': 'ssebuxl', 'LINES': '3000', 'COUNTS': str(counts),
           'TELL': ready.path, 'OMP_NUM_THREADS': '1'}
    job = start(['--nproc_per_node=2', *WAYS['tee'], *WRITER], env)
    pids = ready.expect('ready', 2)
    until(lambda: counted(counts, 1)[1][0] > 100000, 'it to write')
    os.kill(pids[1], signal.SIGKILL)
    assert job.end().rc == 137
    for rank in range(2):
        for fd, name in ((1, 'stdout.log'), (2, 'stderr.log')):
            text = Logs(place).file(rank, name).read_bytes()
            written, at_most = counted(counts, rank)[fd]
            assert written <= len(text) <= at_most
            assert_same(text, stream_of(place.environment(env), rank, fd)[:len(text)], name)


@pytest.mark.parametrize('way', ['pass', *FILES])
def test_a_helper_that_keeps_the_streams(launch, place, way):
    """It is the worker's, so it ends with it."""
    env = {'SEED': '2', 'KINDS': 'ssebux', 'LINES': '100', 'END': 'helper:5'}
    result = launch([*WAYS[way], '--leftover-grace=0', *WRITER], env)
    assert result.rc == 5
    if way == 'pass':
        assert_console(result.out.encode(errors='surrogateescape'), all_streams(place, env, 1, 1))
    else:
        assert_same(Logs(place).file(0).read_bytes(), stream_of(place.environment(env), 0, 1), way)


GIVE = '''import os, socket, sys
with socket.socket(socket.AF_UNIX) as to:
    to.connect(os.environ['TO'])
    socket.send_fds(to, [b'x'], [1, 2])
    print('word 1', file=sys.stderr, flush=True)
    os.write(1, b'last words')
sys.exit(int(os.environ['CODE']))
'''


@pytest.fixture
def taken(place, nothing_left):
    """(path, take): take() -> the streams that a worker gives away there, kept until the end."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(place.path / 'give'))
        listener.listen()

        def take():
            with listener.accept()[0] as peer:
                fds = socket.recv_fds(peer, 1, 2)[1]
            for fd in fds:
                stack.callback(os.close, fd)
            return fds

        yield str(place.path / 'give'), take


@pytest.mark.parametrize('code', [0, 3])
@pytest.mark.parametrize('way', ['pass', 'tee'])
def test_a_stranger_with_the_streams_delays_the_end_by_a_second(start, place, taken, way, code):
    """A process that is not ours to end: the worker's own end counts, and what it wrote."""
    path, take = taken
    job = start([*WAYS[way], '--no_python', '--use_env', 'python3', place.write('give.py', GIVE)],
                {'TO': path, 'CODE': str(code)})
    assert len(take()) == 2
    given = time.monotonic()
    result = job.end()
    assert result.rc == code
    assert time.monotonic() - given < 10
    assert result.out == ('[default0]:' if way == 'tee' else '') + 'last words'
    assert last_words(result) == ([1] if code else [])
    if way == 'tee':
        assert Logs(place).read(0) == 'last words'


def test_a_stranger_delays_no_other_attempt(start, place, taken):
    path, take = taken
    job = start([*WAYS['tee'], '--max-restarts=1', '--no_python', '--use_env', 'python3',
                 place.write('give.py', GIVE)], {'TO': path, 'CODE': '3'})
    take()
    take()
    assert job.end().rc == 3
    assert [Logs(place).read(0, attempt=i) for i in range(2)] == ['last words'] * 2


SMALL = [*OWN_MOUNTS, 'bash', '-ec', 'mkdir logs; mount -t tmpfs -o size=256k none logs; '
         'exec "$@"', 'bash']


@needs_mounts
@pytest.mark.parametrize('slow', [False, True])
def test_a_full_disk(start, place, consoles, slow):
    """It is said once; the worker goes on, and so does the console, also one that lagged behind and
    would have read the file."""
    ready, go = place.fifo('ready'), place.fifo('go')
    env = {'SEED': '9', 'KINDS': 'ss', 'LINES': '20000'}
    more = {'TELL': ready.path, 'GO': go.path}
    console = consoles()
    job = start([*WAYS['tee'], *WRITER], {**env, **more}, wrap=SMALL, out=console.given)
    ready.expect('ready', 1)
    if not slow:
        console.begin()
    go.go()
    logs = os.open(f'/proc/{job.pid}/root{place.path}/logs', os.O_RDONLY)
    try:
        until(lambda: os.fstatvfs(logs).f_bavail == 0, 'the disk to be full')
        if slow:
            console.begin(slow=True)
        ready.expect('written', 1)
        result = job.end()
        [run] = os.listdir(logs)
        with open(f'/proc/self/fd/{logs}/{run}/attempt_0/0/stdout.log', 'rb') as file:
            kept = file.read()
    finally:
        os.close(logs)
    assert result.rc == 0
    assert_console(console.all(), all_streams(place, env, 1, 1, '[default{}]:'))
    notes = [line for line in result.err.splitlines()
             if line.startswith('launchd: ') and 'No space left' in line]
    assert len({re.search(r'std(out|err)\.log', line)[0] for line in notes}) == len(notes) > 0
    assert_same(kept, stream_of(place.environment(env), 0, 1)[:len(kept)], 'file')
    assert kept


SMALL_CONSOLE = [*OWN_MOUNTS, 'bash', '-c', 'mkdir small; '
                 'mount -t tmpfs -o size=256k none small || exit 99; "$@" >small/console; code=$?; '
                 'cat small/console >seen; exit $code', 'bash']


@needs_mounts
@pytest.mark.parametrize('way', ['pass', 'tee'])
def test_a_console_on_a_full_disk(launch, place, way):
    """It is said once; the worker lives on, and its file has all."""
    env = {'SEED': '9', 'KINDS': 'ss', 'LINES': '20000'}
    result = launch([*WAYS[way], *WRITER], env, wrap=SMALL_CONSOLE)
    assert result.rc == 0
    assert [line for line in result.err.splitlines() if 'No space left' in line] == [
        "launchd: warning: can't write to standard output: No space left on device; output "
        'is lost until there is room']
    written = stream_of(place.environment(env), 0, 1)
    prefix = b'[default0]:' if way == 'tee' else b''
    seen = (place.path / 'seen').read_bytes()
    assert 100000 < len(seen) <= 256 << 10
    lines = b''.join(line + b'\n' for line in shown(written, prefix))
    assert_same(seen, lines[:len(seen)], 'console')
    if way == 'tee':
        assert_same(Logs(place).file(0).read_bytes(), written, 'file')


@pytest.fixture
def hang(place, nothing_left):
    with contextlib.closing(HangFS(place)) as mounted:
        yield mounted


@needs_mounts
@pytest.mark.parametrize('how', ['stop', 'hold'])
@pytest.mark.parametrize('options', [['-t3'], ['-r3', '--log-timestamps']], ids=['tee', 'file'])
def test_a_file_system_that_hangs_delays_no_end(start, place, hang, options, how):
    """The worker hears of SIGTERM at once, and launchd ends within the grace, although what was
    said before can't be written. `hold`: not even SIGKILL ends who writes."""
    ready, go = place.fifo('ready'), place.fifo('go')
    script = (f'trap "echo 0 $$ SIGTERM >{ready.path}; exit 7" TERM; echo before; '
              f'echo 0 $$ ready >{ready.path}; read -r w <{go.path}; echo behind; '
              f'echo 0 $$ said >{ready.path}; while :; do read -r w <{go.path}; done')
    job = start(sh(script, f'--log-dir={hang.path}', *options, '--shutdown-timeout=5'),
                wrap=hang.mount, pass_fds=[hang.fd])
    ready.expect('ready', 1)
    until(lambda: b'before\n' in hang.file('stdout.log'), 'the first line in the file')
    getattr(hang, how)()
    os.write(go.fd, b'\n')
    ready.expect('said', 1)
    until(hang.hangs, 'a write that hangs')
    job.signal(signal.SIGTERM)
    [pid] = ready.expect('SIGTERM', 1).values()
    result = job.end()
    assert result.rc == 143 and not is_running(pid)
    if '-t3' in options:
        assert lines_of(result.out.encode())[0] == b'[default0]:before'
    place.orphans_expected = True
    hang.close()


def test_a_signal_while_a_failed_job_waits_for_its_console(start, place):
    """What is left for the console is given up; the report, its file and the exit code are not."""
    console, begin = os.pipe()
    try:
        job = start(sh('yes | head -n 1000000; exit 3', '--log-dir=logs', '--report=report.json',
                       '--events=events'), out=begin)
        events = place.path / 'events'
        supervisor = supervisor_of(job.pid)
        until(lambda: events.exists() and '"verdict"' in events.read_text(), 'the verdict')
        # its event loop has ended: it waits for the thread that writes
        until(lambda: 'futex' in waits_in(supervisor), 'launchd to wait for its console')
        os.kill(job.pid, signal.SIGTERM)
        result = job.end()
    finally:
        os.close(console)
        os.close(begin)
    assert result.rc == 3
    assert 'root cause: rank 0' in result.err and 'exit code 3' in result.err
    assert json.loads((place.path / 'report.json').read_text())['job']['exit_code'] == 3
