"""What the worker `writer` writes, and whether files and console have it."""
import collections
import fcntl
import os
import pathlib
import re
import struct
import subprocess
import termios
import threading
import time

from harness import LIMIT, let_pass, worker

NAME = re.compile(rb' \{(\d+)\.(\d)#(\d+)\}$')  # at the end of a line: rank, stream, number


def stream_of(env, rank, fd):
    """All that this writer has to say on a stream, if it lives."""
    return subprocess.run([worker('writer'), str(rank), str(fd)], env=env, check=True,
                          capture_output=True).stdout


def counted(directory, rank):
    """(bytes that were written, bytes that may have been), of stdout and of stderr."""
    path = pathlib.Path(directory) / str(rank)
    data = path.read_bytes() if path.exists() else b''
    numbers = struct.unpack('=4q', data) if data else (0, 0, 0, 0)  # killed before it wrote
    return {1: numbers[:2], 2: numbers[2:]}


def lines_of(text):
    """Without newlines; an end without one is a line, too."""
    lines = text.split(b'\n')
    return lines if lines[-1] else lines[:-1]


def shown(text, prefix=b''):
    """What a console shows of it: of each line what stands behind its last carriage return that has
    something behind it. An end that shows nothing is no line."""
    lines = [line.rstrip(b'\r').rpartition(b'\r')[2] for line in lines_of(text)]
    if lines and not lines[-1] and not text.endswith(b'\n'):
        lines.pop()
    return [prefix + line for line in lines]


def logged(console):
    """The console's lines, without those of launchd and what it quotes below them."""
    found, quoted = [], False
    for line in lines_of(console):
        quoted = line.startswith(b'launchd: ') or quoted and line.startswith(b'    ')
        if not quoted:
            found.append(line)
    return found


def assert_same(got, wanted, what):
    """Bytes: says where they part, not all of them."""
    if got == wanted:
        return
    at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b),
              min(len(got), len(wanted)))
    raise AssertionError(f'{what}: {len(got)} bytes instead of {len(wanted)}; from byte {at} on '
                         f'{got[at:at + 80]!r} instead of {wanted[at:at + 80]!r}')


def assert_console(console, streams, what='console'):
    """The console has all lines of these streams (lists of lines), whole, and no other; those of
    each stream in its order."""
    got = logged(console)
    wanted = [line for stream in streams for line in stream]
    missing = collections.Counter(wanted) - collections.Counter(got)
    strange = collections.Counter(got) - collections.Counter(wanted)
    assert not missing and not strange, \
        f'{what}: {sum(missing.values())} lines are missing {brief(missing)}, ' \
        f'{sum(strange.values())} are strange {brief(strange)}'
    for stream in streams:
        own = [line for line in stream if NAME.search(line)]
        known = set(own)
        assert [line for line in got if line in known] == own, f'{what}: out of order'


def brief(lines):
    return [line if len(line) < 200 else line[:90] + b' ... ' + line[-90:]
            for line in list(lines)[:3]]


class Logs:
    """A --log-dir of the test's."""

    def __init__(self, place, name='logs'):
        self.path = place.path / name
        self.option = f'--log-dir={self.path}'

    @property
    def run(self):
        """The only run's directory in it."""
        [path] = [path for path in self.path.iterdir() if path.name != 'blackbox']
        return path

    def file(self, rank, name='stdout.log', attempt=0):
        return self.run / f'attempt_{attempt}' / str(rank) / name

    def read(self, rank, name='stdout.log', attempt=0):
        return self.file(rank, name, attempt).read_text(errors='surrogateescape')

    def names(self):
        """All that lies there, below the run's directory; of directories the empty ones."""
        return sorted(str(path.relative_to(self.run)) for path in self.run.rglob('*')
                      if path.is_file() or not any(path.iterdir()))


def all_streams(place, env, count, fd, prefix=''):
    """What a console shows of one stream of all these writers, if they live."""
    variables = place.environment(env)
    return [shown(stream_of(variables, rank, fd), prefix.format(rank).encode())
            for rank in range(count)]


def blocked(counts, rank, fd):
    """Whether a writer has stood still within a write for as long as nobody needs."""
    before = counted(counts, rank)[fd]
    let_pass(0.3, 'it writes, or stands still')
    return before[0] < before[1] and counted(counts, rank)[fd] == before


class Reader:
    """A pipe as launchd's console, or a terminal, which is read when the test wants it to be.
    given: the launcher's end."""

    def __init__(self, fd=-1):
        self.fd, self.given = (fd, -1) if fd >= 0 else os.pipe()
        self.thread, self.chunks = None, []

    def begin(self, slow=False):
        """The launcher has its end by now."""
        self.drop_given()
        self.thread = threading.Thread(target=self.read, args=[slow], daemon=True)
        self.thread.start()

    def read(self, slow):
        while True:
            try:
                chunk = os.read(self.fd, 1 << 14 if slow else 1 << 20)
            except OSError:  # a terminal that is closed
                chunk = b''
            if not chunk:
                return
            self.chunks.append(chunk)
            if slow:
                time.sleep(0.001)  # that is what a slow reader does

    def all(self):
        self.thread.join(LIMIT)
        assert not self.thread.is_alive(), 'somebody still has the console'
        return b''.join(self.chunks)

    def waiting(self):
        """How many bytes nobody has read."""
        return struct.unpack('i', fcntl.ioctl(self.fd, termios.FIONREAD, bytes(4)))[0]

    def drop_given(self):
        if self.given >= 0:
            os.close(self.given)
        self.given = -1

    def close(self):
        self.drop_given()
        if self.thread:
            self.thread.join(LIMIT)  # what it reads ends with the launcher
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1
