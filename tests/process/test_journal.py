"""systemd's journal: launchd's own messages and workers' lines as entries with fields."""
import array
import os
import re
import shutil
import signal
import socket
import struct
import subprocess

import pytest

from harness import BUILD, native, until
from needs import needs_mounts, needs_root
from own_mounts import OWN_MOUNTS

JOURNALD = '/lib/systemd/systemd-journald'
# in a mount namespace of its own, whose /run/systemd/journal is a directory of the test's
MOUNT = ('mount -t tmpfs none /run && mkdir -p /run/systemd/journal && '
         'mount --bind "$0" /run/systemd/journal && exec "$@"')
# and with a journald of its own, whose entries it prints at the end
REAL = r'''mount -t tmpfs none /run && mount -t tmpfs none /var/log && mkdir -p /run/systemd/journal /run/log/journal
mkdir -p /run/systemd/journald.conf.d
printf '[Journal]\nReadKMsg=no\nStorage=volatile\n' >/run/systemd/journald.conf.d/test.conf
"$0" & daemon=$!
for i in $(seq 600); do [ -S /run/systemd/journal/socket ] && break; sleep 0.1; done
"$@"; rc=$?
for i in $(seq 600); do journalctl JOB_EXIT_CODE=$rc | grep -q 'the job has ended' && break; sleep 0.1; done
journalctl --no-pager -o cat RANK=1 STREAM=stdout
kill $daemon; wait $daemon; exit $rc'''

pytestmark = needs_mounts


def parse(data):
    """An entry of the native protocol: {name: bytes}."""
    entry = {}
    while data:
        line, _, rest = data.partition(b'\n')
        name, equals, value = line.partition(b'=')
        if not equals:
            [size] = struct.unpack('<Q', rest[:8])
            value, end, rest = rest[8:8 + size], rest[8 + size:9 + size], rest[9 + size:]
            assert end == b'\n'
        assert name not in entry
        entry[name.decode()] = value
        data = rest
    return entry


class Journal:
    """What stands in for journald: its socket."""

    def __init__(self, place):
        self.directory = place.path / 'journal'
        self.directory.mkdir()
        self.wrap = [*OWN_MOUNTS, 'sh', '-c', MOUNT, str(self.directory)]
        self.socket = None
        self.entries = []

    def open(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.directory / 'socket'))
        os.chmod(self.directory / 'socket', 0o666)
        return self

    def close(self):
        if self.socket:
            self.socket.close()

    def read(self):
        """All that has come so far."""
        while True:
            try:
                data, control, _, _ = self.socket.recvmsg(1 << 20, 1024, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return self.entries
            for _, _, fds in control:
                with os.fdopen(array.array('i', fds)[0], 'rb') as file:
                    data = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
            self.entries.append(parse(data))

    def lines(self, **fields):
        wanted = {name: value.encode() for name, value in fields.items()}
        return [entry['MESSAGE'] for entry in self.read() if wanted.items() <= entry.items()]


@pytest.fixture
def journal(place):
    it = Journal(place)
    yield it
    it.close()


@pytest.fixture
def ended(start, journal):
    """ended(argv, ...) -> Result: with a journald that reads all the time."""

    def run(argv, env=None, **how):
        job = start(argv, {'OMP_NUM_THREADS': '1', **(env or {})}, wrap=journal.wrap, **how)
        until(lambda: journal.read() is not None and job.process.poll() is not None, 'its end')
        journal.read()
        return job.end()

    return run


def sh(script, *options):
    return [*options, '--no_python', '--use_env', 'sh', '-c', script]


def test_workers_lines_have_fields(ended, journal):
    """In place of the console: byte for byte, in their order, the last one without an end."""
    journal.open()
    script = (r'printf "one\ntwo\000\377\n\ncarriage\rreturn\n"; printf "\001err" >&2; '
              'echo $$ >$DUMP_DIR/$RANK')
    result = ended(sh(script, '--journal=all', '--nproc_per_node=2', '--rdzv-id=r7'))
    assert (result.rc, result.out, result.err) == (0, '', '')
    for rank in ('0', '1'):
        assert journal.lines(RANK=rank, STREAM='stdout') == [b'one', b'two\0\xff', b'', b'return']
        assert journal.lines(RANK=rank, STREAM='stderr') == [b'\1err']
    entry = next(entry for entry in journal.entries if entry.get('RANK') == b'1' and 'STREAM' in entry)
    assert entry.pop('SYSLOG_PID').isdigit()
    del entry['MESSAGE'], entry['STREAM']
    assert entry == {'PRIORITY': b'6', 'SYSLOG_IDENTIFIER': b'sh', 'RANK': b'1', 'LOCAL_RANK': b'1',
                     'NODE_RANK': b'0', 'RUN_ID': b'r7', 'ATTEMPT': b'0', 'JOB': b'r7'}


def test_the_pid_is_the_workers(ended, journal):
    journal.open()
    assert ended(sh('echo $$', '--journal=all', '--nproc_per_node=3')).rc == 0
    told = [(entry['SYSLOG_PID'], entry['MESSAGE']) for entry in journal.read() if 'STREAM' in entry]
    assert len(told) == 3 and all(pid == message for pid, message in told)


def test_a_long_line_comes_in_parts(ended, journal):
    """None is larger than a line of journald's own streams; nothing of it is missing."""
    journal.open()
    size = 1000003
    assert ended(sh(f'head -c {size} /dev/zero | tr "\\0" x; echo; echo next', '--journal=all')).rc == 0
    entries = [entry for entry in journal.read() if 'STREAM' in entry]
    parts, rest = entries[:-1], entries[-1]
    assert rest['MESSAGE'] == b'next' and 'LINE_PART' not in rest
    assert [int(entry['LINE_PART']) for entry in parts] == list(range(1, len(parts) + 1))
    assert b''.join(entry['MESSAGE'] for entry in parts) == b'x' * size
    assert max(len(entry['MESSAGE']) for entry in parts) <= 49153


def test_a_failure(ended, journal):
    """The events are in their order, and the verdict's id is there."""
    journal.open()
    result = ended(sh('test $RANK = 0 || exit 3; exec sleep 600', '--journal=messages', '--nproc_per_node=2'))
    assert result.rc == 3
    events = [entry for entry in journal.read() if 'MESSAGE_ID' in entry]
    assert [entry['EVENT'] for entry in events] == [b'job_started', b'attempt_started', b'worker_failed',
                                                    b'stop', b'verdict_exit']
    last = events[-1]
    assert (last['RANK'], last['LOCAL_RANK'], last['EXIT_CODE'], last['PRIORITY'], last['JOB_EXIT_CODE'],
            last['ATTEMPT']) == (b'1', b'1', b'3', b'3', b'3', b'0')
    # stderr isn't the journal: it has all of the report as well
    said = [re.sub(r'^launchd: \w+: ', '', line).encode() for line in result.err.splitlines()]
    assert [line for line in journal.lines() if line in said] == said
    assert b'ended with exit code' not in b''.join(said)


def as_stream(place, env=None):
    """A stderr that JOURNAL_STREAM names."""
    file = open(place.path / 'stderr', 'w+b', buffering=0)  # pylint: disable=consider-using-with
    stat = os.fstat(file.fileno())
    return file, {'JOURNAL_STREAM': f'{stat.st_dev}:{stat.st_ino}', **(env or {})}


@pytest.mark.parametrize('is_there', [True, False])
def test_a_stderr_that_is_the_journal(ended, journal, place, is_there):
    """Messages are there once: in the journal, or, where that can't be reached, on stderr. The empty line tells
    journald whose they are, and is no entry."""
    if is_there:
        journal.open()
    else:
        journal.read = lambda: []
    file, env = as_stream(place)
    with file:
        result = ended(sh('echo own >&2; exit 3'), env, err=file)
        file.seek(0)
        said = file.read().decode()
    assert result.rc == 3
    assert 'own\n' in said  # the worker's
    assert ('launchd: error: root cause: rank 0' in said) is not is_there
    if is_there:
        assert said == '\nown\n'
        assert any(line.startswith(b'root cause: rank 0') for line in journal.lines(PRIORITY='3'))
    else:
        assert said.count('root cause: rank 0') == 1
        assert 'the journal (/run/systemd/journal/socket): No such file or directory' in said


def test_another_stderr_is_no_journal(ended, journal, place):
    """The variable is inherited, but the stream was led elsewhere."""
    journal.open()
    file, env = as_stream(place)
    with file:
        result = ended(sh('exit 3'), env)
    assert 'launchd: error: root cause: rank 0' in result.err
    assert journal.read() == []


def test_chosen_none(ended, journal, place):
    journal.open()
    file, env = as_stream(place)
    with file:
        ended(sh('exit 3', '--journal=none'), env, err=file)
        file.seek(0)
        assert b'launchd: error: root cause: rank 0' in file.read()
    assert journal.read() == []


@pytest.mark.parametrize('overflow', ['block', 'drop'])
def test_a_journald_that_is_stuck(start, journal, overflow):
    """It never reads: the job goes on and ends, and what it could not take is on the console."""
    journal.open()
    job = start(sh('seq 20000', '--journal=all', f'--console-overflow={overflow}'), {'OMP_NUM_THREADS': '1'},
                wrap=journal.wrap)
    result = job.end()
    taken = [int(line) for line in journal.lines(STREAM='stdout')]
    shown = [int(line.removeprefix('[0]: ')) for line in result.out.splitlines()]
    assert result.rc == 0 and taken
    assert 'the journal (/run/systemd/journal/socket): it has taken nothing for 10 seconds' in result.err or \
        overflow == 'drop'
    if overflow == 'block':
        assert taken + shown == list(range(1, 20001))
    else:
        assert taken + shown == sorted(set(taken + shown))


def test_a_stop_does_not_wait_for_it(start, journal, place):
    """SIGTERM ends a job whose journald is stuck, within moments."""
    journal.open()
    ready = place.fifo('ready')
    job = start(sh('seq 20000 & echo "0 $$ ready" >$READY; exec sleep 600', '--journal=all'),
                {'READY': ready.path, 'OMP_NUM_THREADS': '1'}, wrap=journal.wrap)
    ready.expect('ready', 1)
    until(lambda: len(journal.lines(STREAM='stdout')) > 0, 'the first lines')
    job.signal(signal.SIGTERM)
    assert job.end().rc == 128 + signal.SIGTERM


def test_a_journald_that_is_started_again(start, journal, place):
    """Nothing is lost while its socket is another one."""
    fifos = {name: place.fifo(name) for name in ('READY', 'GO')}
    journal.open()
    job = start(sh('echo before; echo "0 $$ begun" >$READY; read -r w <$GO; echo after', '--journal=all'),
                {'OMP_NUM_THREADS': '1', **{name: fifo.path for name, fifo in fifos.items()}}, wrap=journal.wrap)
    fifos['READY'].expect('begun', 1)
    until(lambda: journal.lines(STREAM='stdout') == [b'before'], 'the first line')
    journal.close()
    os.unlink(journal.directory / 'socket')
    journal.open()
    os.write(fifos['GO'].fd, b'\n')
    result = job.end()
    assert (result.rc, result.out) == (0, '')
    assert journal.lines(STREAM='stdout') == [b'before', b'after']


@needs_root
@pytest.mark.skipif(not os.path.exists(JOURNALD) or not shutil.which('journalctl'), reason='needs systemd-journald')
def test_a_real_journald(place, nothing_left):
    """journalctl RANK=1 finds the lines of rank 1."""
    del nothing_left
    ran = subprocess.run(
        [*OWN_MOUNTS, 'sh', '-c', REAL, JOURNALD, str(BUILD / 'launchd'),
         *sh('echo line of $RANK', '--journal=all', '--nproc_per_node=2')],
        env=place.environment({'OMP_NUM_THREADS': '1', 'LAUNCHD_CONTROL': 'off'}), cwd=place.path,
        capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran
    assert ran.stdout == 'line of 1\n', ran


def test_it_is_in_the_plan(launch):
    plan = launch(['--dry-run', '--journal=all', *native('ending')]).out
    assert 'the journal, in whole lines' in plan
