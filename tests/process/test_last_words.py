"""launchd's end comes with the right exit code, whoever doesn't read and whatever file system hangs."""
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import socket
import termios
import time

import pytest

from hang_fs import CREATE, INIT, MKDIR, WRITE, HangFS
from harness import BUILD, status_of, supervisor_of, until
from needs import needs_mounts


@pytest.fixture
def hang(place, nothing_left):
    with contextlib.closing(HangFS(place)) as mounted:
        yield mounted


@pytest.fixture
def full(nothing_left):
    """full(kind) -> a descriptor that takes nothing, as nobody reads it."""
    with contextlib.ExitStack() as stack:
        def make(kind):
            if kind == 'pipe':
                reader, writer = os.pipe()
            elif kind == 'terminal':
                reader, writer = pty.openpty()
                termios.tcflow(writer, termios.TCOOFF)
            else:
                ends = socket.socketpair()
                reader, writer = (end.detach() for end in ends)
            for fd in (reader, writer):
                stack.callback(os.close, fd)
            fcntl.fcntl(writer, fcntl.F_SETFL, os.O_NONBLOCK)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(writer, b'x' * 512)
            fcntl.fcntl(writer, fcntl.F_SETFL, 0)
            return writer
        yield make


# files at the end


ALL, MAKING = [opcode for opcode in range(1, 60) if opcode != INIT], [MKDIR, CREATE]
FILES = {
    'report': (['--report={}/file'], {}),
    'error file': ([], {'TORCHELASTIC_ERROR_FILE': '{}/file'}),
    'both': (['--report={}/file'], {'TORCHELASTIC_ERROR_FILE': '{}/other'}),
    'metrics': (['--metrics-file={}/file'], {}),
    'events': (['--events={}/file'], {}),
    'bundle': (['--blackbox={}/box'], {}),
    'run directory': ([], {'TMPDIR': '{}'}),
    'socket': (['--ctl-socket=auto'], {'XDG_RUNTIME_DIR': '{}'}),
    'all': (['--report={}/file', '--metrics-file={}/metrics', '--events={}/events', '--blackbox={}/box'], {}),
}


@needs_mounts
@pytest.mark.parametrize('how', ['stop', 'hold'])
@pytest.mark.parametrize('what', FILES)
def test_a_file_system_that_hangs_keeps_no_exit_code(start, place, hang, what, how):
    """`hold`: SIGKILL doesn't end who waits."""
    ready, go = place.fifo('ready'), place.fifo('go')
    options, env = FILES[what]
    job = start([*(option.format(hang.path) for option in options), '--no_python', '--use_env', 'sh', '-c',
                 f'echo 0 $$ ready >{ready.path}; read -r w <{go.path}; exit 3'],
                {name: value.format(hang.path) for name, value in env.items()},
                wrap=hang.mount, pass_fds=[hang.fd])
    ready.expect('ready', 1)
    if what == 'socket':
        until(lambda: len(hang.nodes) > 2, 'the socket in its directory')
    if how == 'stop':
        hang.stop()
    else:
        hang.hold(*range(1, 60))
    os.write(go.fd, b'\n')
    result = job.end()
    assert result.rc == 3
    assert 'root cause: rank 0' in result.err
    if what in ('report', 'error file', 'both'):
        assert "can't be written: its file system does not respond" in result.err
    if what == 'run directory':
        assert "can't be removed: its file system does not respond" in result.err
    place.orphans_expected = True
    hang.close()


@needs_mounts
def test_a_killed_supervisor_whose_run_directory_hangs(start, place, hang):
    ready = place.fifo('ready')
    job = start(['--no_python', '--use_env', 'sh', '-c', f'echo 0 $$ ready >{ready.path}; exec sleep 1000'],
                {'TMPDIR': str(hang.path)}, wrap=hang.mount, pass_fds=[hang.fd])
    ready.expect('ready', 1)
    hang.hold(*ALL)
    os.kill(supervisor_of(job.pid), signal.SIGKILL)
    result = job.end()
    assert result.rc == 137
    assert 'this directory could not be removed: ' in result.err
    place.orphans_expected = True
    hang.close()


@needs_mounts
def test_a_child_that_hangs_there_keeps_no_reader(start, place, hang, consoles):
    """Not even that of launchd's output, whose end it waits for."""
    ready, go = place.fifo('ready'), place.fifo('go')
    console = consoles()
    job = start([f'--report={hang.path}/file', '--no_python', '--use_env', 'sh', '-c',
                 f'echo 0 $$ ready >{ready.path}; read -r w <{go.path}; exit 3'],
                wrap=hang.mount, pass_fds=[hang.fd], out=console.given)
    ready.expect('ready', 1)
    hang.hold(*range(1, 60))
    console.begin()
    os.write(go.fd, b'\n')
    assert job.end().rc == 3
    console.all()  # which comes to an end
    place.orphans_expected = True
    hang.close()


@needs_mounts
def test_a_signal_cuts_that_short(start, place, hang):
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start([f'--report={hang.path}/file', '--no_python', '--use_env', 'sh', '-c',
                 f'echo 0 $$ ready >{ready.path}; read -r w <{go.path}; exit 3'],
                wrap=hang.mount, pass_fds=[hang.fd])
    ready.expect('ready', 1)
    hang.hold(*range(1, 60))
    os.write(go.fd, b'\n')
    until(hang.hangs, 'the report to hang')
    for _ in range(3):
        job.signal(signal.SIGTERM)
    assert job.end(8).rc == 3
    place.orphans_expected = True
    hang.close()


STREAMS = {'stderr': '2>"$0"', 'stdout': '>"$0"', 'both': '>"$0" 2>&1'}


@needs_mounts
@pytest.mark.parametrize('streams', STREAMS)
@pytest.mark.parametrize('said', ['true', 'echo word; echo word >&2'], ids=['quiet', 'loud'])
@pytest.mark.parametrize('held', [[WRITE], ALL], ids=['writes', 'all'])
def test_its_own_output_goes_to_a_file_system_that_hangs(start, place, hang, streams, said, held):
    """As a batch system has it; the workers' output is read by launchd."""
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(['-t3', '--log-dir=logs', '--no_python', '--use_env', 'sh', '-c',
                 f'echo 0 $$ ready >{ready.path}; read -r w <{go.path}; {said}; exit 3'],
                wrap=[*hang.mount, 'sh', '-c', f'exec "$@" {STREAMS[streams]}', f'{hang.path}/log'],
                pass_fds=[hang.fd])
    ready.expect('ready', 1)
    hang.hold(*held)
    os.write(go.fd, b'\n')
    assert job.end().rc == 3
    place.orphans_expected = True
    hang.close()


@needs_mounts
def test_a_message_at_the_start_to_a_file_system_that_hangs(start, place, hang):
    """A warning about an unknown variable: the job starts."""
    hang.hold(WRITE)
    job = start(['--no_python', '--use_env', 'true'], {'LAUNCHD_NPROC_PER_NOD': '2'},
                wrap=[*hang.mount, 'sh', '-c', 'exec "$@" 2>"$0"', f'{hang.path}/log'], pass_fds=[hang.fd])
    assert job.end().rc == 0
    assert hang.hangs()
    place.orphans_expected = True
    hang.close()


# files at the start


TRUE = ['--no_python', '--use_env', 'true']
STATIC = ['--nnodes=2', '--node-rank=0', '--master-addr=127.0.0.1', '--master-port=1']
STARTS = {
    'report': ('--report', '/file', ['--report={}', *TRUE]),
    'metrics': ('--metrics-file', '/file', ['--metrics-file={}', *TRUE]),
    'events': ('--events', '/file', ['--events={}', *TRUE]),
    'progress': ('--progress', '/file', ['--progress=file:{}', *TRUE]),
    'trace': ('--hang-trace', '/file', ['--hang-trace={}', *TRUE]),
    'log directory': ('--log-dir', '/logs', ['--log-dir={}', '--redirects=3', *TRUE]),
    'settings': ('--config', '/job.conf', ['--config={}', *TRUE]),
    'settings that are checked': ('--check', '/job.conf', ['--check={}']),
    'list of nodes': ('--cluster-hostfile', '/nodes', ['--cluster-hostfile={}', *TRUE]),
    'list of hosts': ('--mpirun-hostfile', '/nodes', ['--mpirun-hostfile={}', *TRUE]),
    'key': ('--key-file', '/key', ['--key-file={}', *STATIC, *TRUE]),
    'key of one node': ('--key-file', '/key', ['--key-file={}', *TRUE]),
    'wrapper': ('--wrap', '/tool', ['--wrap={}', *TRUE]),
    'Python': ('--python', '/python', ['--python={}', '--use_env', '-m', 'this']),
    'script': ('', '/train.py', ['{}']),
    'program': ('', '/train', ['--no_python', '--use_env', '{}']),
    'module': ('PYTHONPATH', '', ['--use_env', '-m', 'this']),
    'program on PATH': ('PATH', '', TRUE),
    'program beside a plan': ('PATH', '', ['--dry-run', *TRUE]),
    'run directory': ('TMPDIR', '', TRUE),
    'socket': ('XDG_RUNTIME_DIR', '', ['--ctl-socket=auto', *TRUE]),
    'allocation': ('PBS_NODEFILE', '/nodes', TRUE),
    'bundle': ('--explain', '/box', ['--explain={}']),
    'link': ('--install-torchrun', '/bin', ['--install-torchrun={}']),
}


@pytest.mark.parametrize('held,what', [(ALL, STARTS), (MAKING, ['events', 'log directory', 'run directory', 'socket'])],
                         ids=['nothing answers', 'frozen'])
@needs_mounts
def test_a_file_system_that_hangs_at_the_start(start, place, nothing_left, held, what):
    """One that is frozen can be looked at. launchd itself waits for none, and starts nothing."""
    jobs, said = {}, {}
    with contextlib.ExitStack() as stack:
        for i, name in enumerate(what):
            mounted = stack.enter_context(contextlib.closing(HangFS(place, f'mounted{i}')))
            mounted.hold(*held)
            where, below, args = STARTS[name]
            path = f'{mounted.path}{below}'
            env = {'TORCHELASTIC_ERROR_FILE': f'{mounted.path}/error'}
            if where.isupper():
                env[where] = f'{path}:{os.environ["PATH"]}' if where == 'PATH' else path
            if where == 'PBS_NODEFILE':
                env['PBS_JOBID'] = '1.server'
            jobs[name] = start([arg.format(path) for arg in args], env, wrap=mounted.mount,
                               pass_fds=[mounted.fd]), f'{where}{": " if where else ""}{path}'
        for name, (job, place_said) in jobs.items():
            result = job.end()
            line = next((line for line in result.err.splitlines() if 'error' in line), '')
            right = (line.startswith(f'launchd: error: {place_said}') and
                     line.endswith(': its file system does not respond'))
            said[name] = result.rc, right or line
        assert said == dict.fromkeys(what, (1, True))
        place.orphans_expected = True


@needs_mounts
@pytest.mark.parametrize('held', [MKDIR, CREATE])
@pytest.mark.parametrize('options', [[], ['--max-restarts=1']], ids=['once', 'restarts'])
def test_log_files_that_cannot_be_made(start, place, hang, held, options):
    hang.hold(held)
    job = start([f'--log-dir={hang.path}', '--redirects=3', *options, *TRUE], wrap=hang.mount, pass_fds=[hang.fd])
    result = job.end()
    assert result.rc == 1
    assert f'launchd: error: --log-dir: {hang.path}: its file system does not respond\n' in result.err
    place.orphans_expected = True
    hang.close()


@needs_mounts
def test_log_files_of_a_restart_that_cannot_be_made(start, place, hang):
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start([f'--log-dir={hang.path}', '--redirects=3', '--max-restarts=1', '--no_python', '--use_env', 'sh', '-c',
                 f'echo 0 $$ ready >{ready.path}; read -r w <{go.path}; exit 3'], wrap=hang.mount, pass_fds=[hang.fd])
    ready.expect('ready', 1)
    hang.hold(MKDIR)
    os.write(go.fd, b'\n')
    result = job.end()
    assert result.rc == 1
    assert f'launchd: error: --log-dir: {hang.path}: its file system does not respond\n' in result.err
    place.orphans_expected = True
    hang.close()


# readers


@pytest.mark.parametrize('kind', ['pipe', 'terminal', 'socket'])
@pytest.mark.parametrize('streams', ['out', 'err', 'both'])
def test_a_reader_that_reads_nothing(start, place, full, kind, streams):
    """From the very start to the report of a failure. To a terminal workers write themselves, and wait."""
    fd = full(kind)
    said = 'true' if kind == 'terminal' else 'echo word'
    given = {name: fd for name in ('out', 'err') if streams in (name, 'both')}
    job = start(['--shutdown-timeout=1', '--report=report', '--no_python', '--use_env', 'sh', '-c',
                 f'{said}; exit 3'], **given)
    assert job.end().rc == 3
    assert json.loads((place.path / 'report').read_text())['job']['exit_code'] == 3


@pytest.mark.parametrize('options', [['-t3', '--log-dir=logs'], ['--console-overflow=drop']], ids=['files', 'drops'])
def test_what_nobody_reads_takes_no_memory(start, place, full, options):
    """56 MB, and as many lines that were dropped."""
    ready, go = place.fifo('ready'), place.fifo('go')
    fd = full('pipe')
    lines = f'yes {"x" * 92} | head -n 300000'
    job = start(['--shutdown-timeout=1', *options, '--no_python', '--use_env', 'sh', '-c',
                 f'{lines}; {lines} >&2; echo 0 $$ ready >{ready.path}; read -r w <{go.path}; exit 3'],
                out=fd, err=fd)
    ready.expect('ready', 1)
    peak = max(int(status_of(pid)['VmHWM'].split()[0]) for pid in (job.pid, supervisor_of(job.pid)))
    os.write(go.fd, b'\n')
    assert job.end().rc == 3
    # sanitizers take more
    if not re.search(b'__[at]san_init', (BUILD / 'launchd').read_bytes()):
        assert peak < 16 << 10


def test_fifos_that_take_nothing_have_one_time_for_all(start, place):
    """And --metrics-file's keeps no worker's lines."""
    names = ['report', 'error', 'metrics']
    for name in names:
        fd = place.fifo(name).fd
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(fd, b'x' * 512)
    begin = time.monotonic()
    result = start(['--report=report', '--metrics-file=metrics', '-t', '3', '--log-dir=logs', '--no_python',
                    '--use_env', 'sh', '-c',
                    'echo word; exit 3'], {'TORCHELASTIC_ERROR_FILE': 'error'}).end()
    assert result.rc == 3 and time.monotonic() - begin < 15
    assert result.err.count("can't be written: its reader takes nothing") == 3
    assert 'incomplete' not in result.err


@pytest.mark.parametrize('way', ['/dev/fd/{}', '/proc/self/fd/{}'])
@pytest.mark.parametrize('kind', ['pipe', 'file'])
def test_a_report_to_a_descriptor(start, place, way, kind):
    """As that of a shell's `>(command)`: the child that writes at the end has no files of others."""
    with open(place.path / 'report', 'w+b') as file, contextlib.ExitStack() as stack:
        reader, writer = (file.fileno(), file.fileno()) if kind == 'file' else os.pipe()
        if kind == 'pipe':
            stack.callback(os.close, reader)
            stack.callback(os.close, writer)
        result = start([f'--report={way.format(writer)}', '--no_python', '--use_env', 'sh', '-c', 'exit 3'],
                       pass_fds=[writer]).end()
        assert result.rc == 3 and "can't be written" not in result.err
        said = os.read(reader, 1 << 16) if kind == 'pipe' else (place.path / 'report').read_bytes()
    assert json.loads(said)['job']['exit_code'] == 3


def test_a_page_of_metrics_to_a_pipe(start):
    """The last one, too."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 20)
    result = start([f'--metrics-file=/dev/fd/{writer}', '--no_python', '--use_env', 'sh', '-c', 'exit 3'],
                   pass_fds=[writer]).end()
    os.close(writer)
    with open(reader, 'rb') as pages:
        assert 'launchd_' in pages.read().decode()
    assert result.rc == 3 and "can't be written" not in result.err


@pytest.mark.parametrize('kind', ['pipe', 'terminal', 'socket'])
def test_a_message_at_the_start_finds_no_reader(start, full, kind):
    """A warning about an unknown variable: the job starts."""
    job = start(['--shutdown-timeout=1', '--no_python', '--use_env', 'true'], {'LAUNCHD_NPROC_PER_NOD': '2'},
                err=full(kind))
    assert job.end().rc == 0


@pytest.mark.parametrize('kind', ['pipe', 'terminal', 'socket'])
def test_a_killed_supervisor_whose_stderr_is_full(start, place, full, kind):
    ready = place.fifo('ready')
    job = start(['--shutdown-timeout=1', '--no_python', '--use_env', 'sh', '-c',
                 f'echo 0 $$ ready >{ready.path}; exec sleep 1000'], err=full(kind))
    ready.expect('ready', 1)
    os.kill(supervisor_of(job.pid), signal.SIGKILL)
    assert job.end().rc == 137
    place.launcher_killed = place.orphans_expected = True
