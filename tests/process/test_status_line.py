"""One line at the foot of the terminal while workers start: that it is there, and gone when anything
else is written; and that it is nowhere else."""
import fcntl
import os
import pty
import re
import signal
import struct
import termios

import pytest
from harness import until

ROWS = 30
DRAWN = re.compile(rf'\0337\033\[{ROWS};1H\033\[2K(\d/\d) started(, \d/\d joined)?, \d+ s\0338')
BEGUN = f'\033D\0337\033[1;{ROWS - 1}r\0338\033[1A'
TAKEN_AWAY = f'\0337\033[1;{ROWS}r\033[{ROWS};1H\033[2K\0338'
WAITS = ['--no_python', '--use_env', 'sh', '-c', 'read -r word <"$GO"; echo "hello of $RANK"']


class Screen:
    """A terminal whose job in the foreground is launchd."""

    def __init__(self, start, reader_of, argv, env):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack('HHHH', ROWS, 100, 0, 0))
        self.reader = reader_of(self.master)
        self.start, self.argv, self.env = start, argv, {'TERM': 'xterm', **env}

    def begin(self, **streams):
        given = {'stdin': self.slave, 'out': self.slave, 'err': self.slave, **streams}
        self.job = self.start(self.argv, self.env, **given,
                              before=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.reader.begin()
        return self.job

    def text(self):
        return b''.join(self.reader.chunks).decode()

    def all(self):
        os.close(self.slave)
        return self.reader.all().decode()


@pytest.fixture
def screen(start, consoles, place):
    go = place.fifo('go')

    def make(options=(), env=None, command=WAITS):
        made = Screen(start, consoles, [*options, *command],
                      {'GO': go.path, 'OMP_NUM_THREADS': '1', **(env or {})})
        made.go = lambda: os.write(go.fd, b'\n\n')
        return made

    return make


def test_it_counts_and_is_gone_when_output_begins(screen):
    s = screen(['--nproc_per_node=2'])
    job = s.begin()
    until(lambda: len(DRAWN.findall(s.text())) > 1, 'the line to be drawn twice')
    assert {drawn for drawn, _ in DRAWN.findall(s.text())} == {'2/2'}
    assert TAKEN_AWAY not in s.text()
    s.go()
    assert job.end().rc == 0
    text = s.all()
    assert text.count(TAKEN_AWAY) == 1
    assert text.startswith(BEGUN)
    assert DRAWN.search(text[text.index('hello'):]) is None
    words = DRAWN.sub('', text.replace(BEGUN, '')).replace(TAKEN_AWAY, '')
    assert sorted(words.splitlines()) == ['hello of 0', 'hello of 1']


def test_it_is_gone_when_the_job_ends_in_silence(screen):
    s = screen()
    job = s.begin()
    until(lambda: DRAWN.search(s.text()), 'the line to be drawn')
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143
    text = s.all()
    assert text.index(TAKEN_AWAY) < text.index('root cause: launchd received SIGTERM')


@pytest.mark.parametrize('options, env', [
    (['--quiet'], {}), ([], {'TERM': 'dumb'}), (['--log-format=json'], {}),
    ([], {'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '1', 'OMPI_COMM_WORLD_LOCAL_RANK': '0',
          'OMPI_COMM_WORLD_LOCAL_SIZE': '1', 'OMPI_COMM_WORLD_NODE_RANK': '0'}),
], ids=['quiet', 'dumb', 'json', 'under mpirun'])
def test_never_elsewhere_on_a_terminal(screen, options, env):
    """Twice as long as until it would have been drawn."""
    s = screen(options, env, ['--no_python', '--use_env', 'sleep', '2.2'])
    assert s.begin().end().rc == 0
    assert '\033' not in s.all()


def test_never_where_stderr_is_no_terminal(screen):
    s = screen(command=['--no_python', '--use_env', 'sleep', '2.2'])
    result = s.begin(err=None).end()
    assert result.rc == 0
    assert '\033' not in result.err + s.all()


def test_a_stopped_terminal_delays_nothing(screen):
    """Ctrl-S: the line can't be drawn, nor the report be said."""
    s = screen(command=['--no_python', '--use_env', 'sh', '-c', ': >"$STARTED"; exec sleep 1000'])
    started = s.env['STARTED'] = s.env['GO'] + '.started'
    termios.tcflow(s.slave, termios.TCOOFF)
    job = s.begin()
    until(lambda: os.path.exists(started), 'the worker to start')
    with pytest.raises(AssertionError, match='drawn'):
        until(lambda: DRAWN.search(s.text()), 'the line to be drawn', 2.5)
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143
    termios.tcflow(s.slave, termios.TCOON)
    s.all()
