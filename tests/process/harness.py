"""What the whole-program tests are made of: a test's directory, running launchers, the FIFOs by
which workers meet the test, and --dry-run's answer.

The build directory is $LAUNCHD_BUILD_DIR, by default build beside tests.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import resource
import select
import signal
import subprocess
import tempfile
import time

import pytest

import sandbox
from waiting import (LIMIT, let_pass, read_if_there, running_after, settled, signal_if_there, stop,  # noqa: F401
                     until)

TESTS = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('LAUNCHD_BUILD_DIR', TESTS.parent / 'build')).resolve()


def children_of(pid):
    """Pids of the direct children, zombies too."""
    found = set()
    for task in pathlib.Path(f'/proc/{pid}/task').iterdir():
        try:
            found.update(int(word) for word in (task / 'children').read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def descendants_of(pid):
    found = set()
    with contextlib.suppress(FileNotFoundError):  # it is gone
        for child in children_of(pid):
            found |= {child} | descendants_of(child)
    return found


def supervisor_of(pid):
    """Of a launchd that runs workers: its only child."""
    until(lambda: children_of(pid), 'the supervisor to be there')
    [supervisor] = children_of(pid)
    return supervisor


def status_of(pid):
    """/proc/PID/status as a dict; empty if there is no such process."""
    return {key: value.strip() for key, _, value in
            (line.partition(':') for line in read_if_there(f'/proc/{pid}/status').splitlines())}


def is_running(pid):
    return status_of(pid).get('State', 'Z')[0] not in 'ZX'


def waits_in(pid):
    """The kernel's function in which its first thread sleeps; '0' if it does not."""
    return read_if_there(f'/proc/{pid}/wchan')


def waits_for(pid, x86_64, aarch64):
    """Whether its first thread waits in one of these system calls. Linux 5.10 doesn't say what it waits
    for in there."""
    words = read_if_there(f'/proc/{pid}/syscall').split()
    return bool(words) and words[0] in {'x86_64': x86_64, 'aarch64': aarch64}[os.uname().machine]


def is_idle(pid):
    """Whether its event loop waits for something to happen: in epoll_wait or epoll_pwait."""
    return waits_for(pid, x86_64=['232', '281'], aarch64=['22'])


def reap(pids):
    """Those of our children that have ended. One may wait for another one of them, as the first process of a PID
    namespace does for all that were in it."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):  # subprocess was faster
            os.waitpid(pid, os.WNOHANG)


def end_children(before):
    """Kills and reaps the children that were not there before. Returns what was still alive."""
    alive = {}

    def are_gone():
        found = children_of(os.getpid()) - before
        for pid in filter(is_running, found):
            alive.setdefault(pid, status_of(pid).get('Name', '?'))
            signal_if_there(pid, signal.SIGKILL)
        reap(found)
        return not found

    until(are_gone, lambda: f'{alive} to end')
    return alive


class Fifo:
    """A FIFO that the test holds open at both ends, so that no worker waits in open()."""

    def __init__(self, path):
        self.path = str(path)
        os.mkfifo(self.path)
        self.fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.rest = b''

    def line(self, writers=()):
        """The next line's words: rank, pid, text. writers: Popens; it fails at once when one of them ends."""
        with contextlib.ExitStack() as opened:
            ends = [os.pidfd_open(one.pid) for one in writers if one.poll() is None]
            for fd in ends:
                opened.callback(os.close, fd)
            end = time.monotonic() + LIMIT
            while b'\n' not in self.rest:
                ready = select.select([self.fd, *ends], [], [], max(0, end - time.monotonic()))[0]
                assert self.fd in ready, f'no line in {self.path}' + ''.join(
                    f'\n{one.args}: {one.communicate()}' for one in writers if one.poll() is not None)
                self.rest += os.read(self.fd, 4096)
        line, _, self.rest = self.rest.partition(b'\n')
        rank, pid, text = line.decode().split(' ', 2)
        return int(rank), int(pid), text

    def expect(self, text, count, writers=()):
        """Waits until count workers have told this text; returns their pids by rank."""
        pids = {}
        for _ in range(count):
            rank, pid, told = self.line(writers)
            assert told == text
            pids[rank] = pid
        assert len(pids) == count
        return pids

    def go(self, count=1):
        os.write(self.fd, b'x' * count)

    def close(self):
        os.close(self.fd)


@dataclasses.dataclass
class Result:
    rc: int  # below 0: the launcher was killed by this signal
    out: str
    err: str
    pid: int


class Job:
    """A launcher that runs."""

    def __init__(self, place, argv, env, *, name='launchd', cwd=None, stdin=subprocess.DEVNULL,
                 wrap=(), before=None, pass_fds=(), out=None, err=None,
                 core=False, program=BUILD / 'launchd'):
        assert program.exists(), f'{program} is not there: build first, or set LAUNCHD_BUILD_DIR'
        if name != 'launchd':
            named = place.path / name
            if not named.is_symlink():
                named.symlink_to(program)
            program = named
        if not any(word.startswith(('--control', '--dry-run')) for word in argv):
            env = {'LAUNCHD_CONTROL': 'off', **(env or {})}  # most tests have no other nodes
        self.place = place
        place.orphans_expected = place.launcher_killed
        for dump in place.out.glob('*.json'):
            dump.unlink()  # of an earlier launcher
        self.files = [tempfile.TemporaryFile(dir=place.path) for _ in range(2)]
        self.process = subprocess.Popen(
            [*wrap, str(program), *argv], env=place.environment(env), cwd=cwd or place.path,
            stdin=stdin, stdout=self.files[0] if out is None else out,
            stderr=self.files[1] if err is None else err, start_new_session=True,
            pass_fds=pass_fds, preexec_fn=lambda: fresh_process(before, core))
        self.pid = self.process.pid
        self.killed = False
        self.last_words = ''

    def how(self):
        rc = self.process.poll()
        return 'still runs' if rc is None else f'exit code {rc}'

    def said(self, file=1):
        if file == 1 and self.files[1].closed:
            return self.last_words
        size = os.fstat(self.files[file].fileno()).st_size
        return os.pread(self.files[file].fileno(), size, 0).decode(errors='surrogateescape')

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """The launcher dies without a chance to clean up; its workers may become ours."""
        self.killed = True
        self.place.launcher_killed = self.place.orphans_expected = True
        self.process.kill()

    def end(self, limit=LIMIT):
        try:
            rc = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            text = f'launchd did not end within {limit:.0f} s; it said:\n{self.said()}'
            self.close()
            pytest.fail(text)
        result = Result(rc, self.said(0), self.said(1), self.pid)
        self.close()
        return result

    def close(self):
        """Ends what is left; true if the launcher still ran."""
        left = self.process.poll() is None
        if left:
            self.kill()
            self.process.wait()
        self.last_words = self.said()
        for file in self.files:
            file.close()
        return left


def fresh_process(before, core):
    """What a launcher begins with, whatever pytest was started with: no signal is ignored or
    blocked, and a crash leaves no core file. Runs between fork and exec."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most if core else 0, most))
    sandbox.enter(sandbox.LEVEL)
    if before:
        before()


class Place:
    """A test's directory, with `tmp` in it for $TMPDIR, `run` for control sockets and `out` for what
    workers dump."""

    def __init__(self, path):
        self.path = path
        self.tmp = path / 'tmp'
        self.out = path / 'out'
        self.run = path / 'run'
        self.tmp.mkdir()
        self.out.mkdir()
        self.run.mkdir(mode=0o700)
        # Whether processes may end after their parents. Not those of a launcher that was not
        # killed: it outlives and reaps its workers.
        self.orphans_expected = True
        self.launcher_killed = False
        self.fifos = []

    def give(self, user):
        """It becomes the user's, and what is in it: the directory of control sockets, too."""
        for path in (self.path, *self.path.iterdir()):
            os.chown(path, user, user)

    def environment(self, more):
        env = {'PATH': '/usr/bin:/bin', 'HOME': str(self.path), 'LC_ALL': 'C.UTF-8',
               'TMPDIR': str(self.tmp), 'XDG_RUNTIME_DIR': str(self.run), 'DUMP_DIR': str(self.out)}
        env.update({name: os.environ[name] for name in
                    ('ASAN_OPTIONS', 'LSAN_OPTIONS', 'UBSAN_OPTIONS') if name in os.environ})
        env.update(more or {})
        return {name: value for name, value in env.items() if value is not None}

    def fifo(self, name):
        self.fifos.append(Fifo(self.path / name))
        return self.fifos[-1]

    def write(self, name, text, mode=0o644):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def dumps(self):
        """What the dump workers of the latest launcher wrote, by rank; env is a dict made of
        environ."""
        found = {}
        for path in self.out.glob('*.json'):
            dump = json.loads(path.read_bytes().decode(errors='surrogateescape'))
            pairs = [entry.partition('=') for entry in dump['environ']]
            dump['env'] = {name: value for name, _, value in pairs}
            assert len(dump['env']) == len(pairs), 'a variable stands twice in environ'
            found[int(path.stem)] = dump
        return found


def worker(name):
    """The path of a program of tests/workers."""
    path = BUILD / 'tests' / 'workers' / name
    assert path.exists(), f'{path} is not there: build first'
    return str(path)


def native(name, *options):
    """A command line that runs a program of tests/workers."""
    return [*options, '--no_python', '--use_env', worker(name)]


class Plan:
    """What --dry-run=json says."""

    def __init__(self, text):
        self.json = json.loads(text)
        assert self.json['schema'] == 2
        self.workers = self.json['workers']
        self.notes = self.json['notes']

    def value(self, name):
        return self.json['job'][name]['value']

    def source(self, name):
        return self.json['job'][name]['source']

    def setting(self, name):
        row = self.json['settings'][name]
        return row['value'], row['source']

    def edits(self, local_rank=0):
        return {edit['name']: edit for edit in self.workers[local_rank]['environment']}

    def warnings(self):
        return [note['text'] for note in self.notes if note['level'] == 'warning']

    def said(self):
        return [note['text'] for note in self.notes]
