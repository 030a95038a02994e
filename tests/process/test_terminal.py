"""Stopping and waking a job: Ctrl-Z, fg, Ctrl-C, a resize and a hang-up, on a real terminal under a
real shell that has job control; and what TSTP and CONT do without one."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import pytest

from family import LONG, Family, calm, is_stopped
from harness import LIMIT, children_of, is_running, supervisor_of, until

# The shell says how its job has stopped or ended, and goes on with it when the test says so.
SHELL = r'''
set -m
"$@"
code=$?
while [ -n "$(jobs -s)" ]; do
    echo "shell: stopped"
    read -r word < "$GO_ON"
    $word
    code=$?
done
echo "shell: ended with $code"
'''


# The job is in the background, and the shell reads on; or the other way round.
READING_SHELLS = {'background': r'''
set -m
"$@" &
read -r typed
echo "shell: read $typed"
wait $!
echo "shell: ended with $?"
''', 'foreground': r'''
set -m
"$@"
echo "shell: ended with $?"
'''}


class Pty:
    """A terminal, as who sits before it has it."""

    def __init__(self):
        self.master, self.slave = pty.openpty()
        self.text = ''

    def streams(self):
        """For a process that it becomes the controlling terminal of."""
        return {'stdin': self.slave, 'out': self.slave, 'err': self.slave,
                'before': lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)}

    def given(self):
        """The process has its streams."""
        os.close(self.slave)

    def press(self, key):
        os.write(self.master, key)

    def shows(self, *what):
        """One of these; the one that comes first."""
        end = time.monotonic() + LIMIT
        while not any(one in self.text for one in what):
            left = end - time.monotonic()
            assert left > 0 and select.select([self.master], [], [], left)[0], self.text
            self.text += os.read(self.master, 4096).decode()
        first = min((one for one in what if one in self.text), key=self.text.index)
        self.text = self.text.partition(first)[2]
        return first

    def close(self):
        if self.master >= 0:
            os.close(self.master)
        self.master = -1


class Terminal(Pty):
    """One with a shell on it, whose job in the foreground is a family."""

    def __init__(self, start, place, options=(), **how):
        super().__init__()
        self.go_on = place.fifo('go_on')
        how['env'] = {'GO_ON': self.go_on.path, **how.get('env', {})}
        self.family = Family(
            start, place, options, wrap=['bash', '-c', SHELL, 'bash'], **self.streams(), **how)
        self.given()
        self.shell = self.family.job
        [self.pid] = children_of(self.shell.pid)
        self.supervisor = supervisor_of(self.pid)

    def fg(self):
        os.write(self.go_on.fd, b'fg\n')

    def has_terminal(self):
        return os.tcgetpgrp(self.master) == self.pid

    def ended_with(self, code):
        self.shows(f'shell: ended with {code}')
        assert self.shell.end().rc == 0
        self.family.all_gone()
        assert not is_running(self.pid) and not is_running(self.supervisor)


@pytest.fixture
def terminal(start, place):
    opened = []

    def make(options=(), **how):
        opened.append(Terminal(start, place, options, **how))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def stopped(t, but=()):
    """launchd and all workers' groups, and the shell knows."""
    t.shows('shell: stopped')
    ours = [t.pid, *(pid for key, pid in t.family.pids.items() if key[1] not in but)]
    until(lambda: all(map(is_stopped, ours)), 'the job to stop')


def test_ctrl_z_stops_and_fg_wakes(terminal):
    """More than once. Who has left a worker's group is not part of what was stopped."""
    t = terminal([LONG], kin='child session', count=2)
    for _ in range(3):
        t.press(b'\x1a')
        stopped(t, but=['session'])
        assert not is_stopped(t.supervisor)
        t.fg()
        until(lambda: not any(map(is_stopped, [t.pid, *t.family.pids.values()])), 'it to wake')
    t.press(b'\x03')
    t.family.told(signal.SIGINT, *t.family.workers())
    t.family.told(signal.SIGTERM, *t.family.of('child', 'session'))  # left behind
    t.ended_with(130)


def test_ctrl_c_ends_the_job(terminal):
    """The terminal signals launchd's group: workers hear of it once, from launchd."""
    t = terminal([LONG], kin='child', stay='worker', count=2)
    t.press(b'\x03')
    t.family.told(signal.SIGINT, *t.family.workers())
    t.family.fence(*t.family.pids)
    for _ in range(2):
        t.press(b'\x03')
        calm(t.pid)
    t.ended_with(130)


def test_a_signal_to_a_stopped_job_waits_for_fg(terminal):
    """As for any job that a shell has stopped."""
    t = terminal([LONG], stay='worker', count=2)
    t.press(b'\x1a')
    stopped(t)
    os.kill(t.pid, signal.SIGTERM)
    assert is_stopped(t.pid)
    t.fg()
    t.family.told(signal.SIGTERM, *t.family.workers())
    t.family.end_when_calm(t.pid)
    t.ended_with(143)


def test_bg_wakes_too(terminal):
    t = terminal([LONG], count=2)
    t.press(b'\x1a')
    stopped(t)
    os.kill(t.pid, signal.SIGCONT)  # as bg does
    until(lambda: not any(map(is_stopped, [t.pid, *t.family.pids.values()])), 'it to wake')
    os.kill(t.pid, signal.SIGUSR1)
    t.family.told(signal.SIGUSR1, *t.family.workers())
    t.fg()
    until(t.has_terminal, 'the job to have the terminal')
    t.press(b'\x03')
    t.family.told(signal.SIGINT, *t.family.workers())
    t.ended_with(130)


def test_ctrl_backslash_ends_the_job(terminal):
    t = terminal([LONG])
    t.press(b'\x1c')
    t.family.told(signal.SIGQUIT, (0, 'worker'))
    t.ended_with(131)


@pytest.fixture
def reader(start):
    """reader(place, options) -> (Pty, Job): a shell whose job is a worker that reads."""
    opened = []

    def make(where, *options):
        opened.append(Pty())
        job = start([*options, '--no_python', '--use_env', '/bin/sh', '-c',
                     'echo "worker: reads"; exec sed "s/^/worker: /"'],
                    wrap=['bash', '-c', READING_SHELLS[where], 'bash'], **opened[-1].streams())
        opened[-1].given()
        return opened[-1], job

    yield make
    for one in opened:
        one.close()


def test_a_worker_reads_the_terminal(reader):
    t, job = reader('foreground')
    t.shows('worker: reads')
    t.press(b'for the worker\n\x04')
    t.shows('worker: for the worker')
    t.shows('shell: ended with 0')
    assert job.end().rc == 0


@pytest.mark.parametrize('options', [[], ['--nproc_per_node=2'], ['--log-dir=logs', '-t', '3']])
def test_a_job_in_the_background_does_not_read_what_is_typed_for_the_shell(reader, options):
    """Its workers have sessions of their own, so the terminal would not stop them."""
    t, job = reader('background', *options)
    t.shows('worker: reads')
    t.press(b'for the shell\n')
    t.shows('shell: read for the shell')
    t.shows('shell: ended with 0')
    assert job.end().rc == 0


def test_a_job_in_the_background_may_be_told_to_read(reader):
    t, job = reader('background', '--stdin=inherit')
    t.shows('worker: reads')
    t.press(b'one for both\n')
    while t.shows('shell: read ', 'worker: ') == 'worker: ':  # the shell reads a single line
        t.press(b'one more for both\n')
    t.press(b'the next is for the job\n')
    t.shows('worker: ')
    t.press(b'\x04')
    t.shows('shell: ended with 0')
    assert job.end().rc == 0


def test_a_resize_reaches_the_workers(terminal):
    t = terminal([LONG], count=2)
    for rows in (30, 40):
        fcntl.ioctl(t.master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, 100, 0, 0))
        t.family.told(signal.SIGWINCH, *t.family.workers())
    t.press(b'\x03')
    t.family.told(signal.SIGINT, *t.family.workers())
    t.ended_with(130)


def test_a_terminal_that_hangs_up_ends_the_job(terminal, place):
    """Its window was closed: HUP, to the shell and to its job."""
    t = terminal([LONG], kin='session', count=2)
    t.close()
    # what a worker leaves is ended at once, perhaps before the other worker hears of it
    t.family.told_all([(*key, signal.SIGHUP if key[1] == 'worker' else signal.SIGTERM) for key in t.family.pids])
    t.family.gone(*t.family.pids)
    place.orphans_expected = True  # launchd, when the shell has died of HUP
    t.shell.end()
    until(lambda: not is_running(t.pid) and not is_running(t.supervisor), 'launchd to end')


# without a terminal


@pytest.fixture
def family(start, place):
    return lambda *args, **how: Family(start, place, *args, **how)


def test_tstp_stops_and_cont_wakes_without_a_terminal(family):
    f = family([LONG], 'child', count=2)
    for _ in range(3):
        f.job.signal(signal.SIGTSTP)
        until(lambda: all(map(is_stopped, [f.job.pid, *f.pids.values()])), 'the job to stop')
        f.job.signal(signal.SIGCONT)
        until(lambda: not any(map(is_stopped, [f.job.pid, *f.pids.values()])), 'it to wake')
    f.forward(signal.SIGUSR1)
    f.job.signal(signal.SIGTERM)
    f.told(signal.SIGTERM, *f.workers())
    f.told(signal.SIGTERM, *f.of('child'))
    assert f.job.end().rc == 143


def test_a_signal_that_ends_the_job_wakes_all_that_was_stopped(family):
    """As `kill %1` sends it: CONT follows, for launchd; what that means is for all."""
    f = family([LONG], 'child', count=2, stay='child', env={'JOIN': '1'})
    f.job.signal(signal.SIGTSTP)
    until(lambda: all(map(is_stopped, [f.job.pid, *f.pids.values()])), 'the job to stop')
    f.job.signal(signal.SIGTERM)
    f.job.signal(signal.SIGCONT)
    f.told(signal.SIGTERM, *f.pids)
    f.end_when_calm(f.job.pid)
    assert f.job.end().rc == 143


def test_a_failure_in_a_stopped_job_wakes_all_that_was_stopped(family):
    """The worker waits for its data loader, which was stopped with it."""
    f = family([LONG], 'child', count=2, env={'JOIN': '1'})
    f.job.signal(signal.SIGTSTP)
    until(lambda: all(map(is_stopped, [f.job.pid, *f.pids.values()])), 'the job to stop')
    os.kill(f.pids[1, 'worker'], signal.SIGKILL)
    f.told_all([(0, 'worker', 15), (0, 'child', 15), (1, 'child', 15)])
    f.gone(*f.pids)
    assert f.job.end().rc == 137  # and the supervisor wakes its guard


def test_a_job_that_ends_is_not_stopped(family):
    """Its grace runs, and a stopped worker could not use it."""
    f = family([LONG], stay='worker')
    f.job.signal(signal.SIGTERM)
    f.told(signal.SIGTERM, (0, 'worker'))
    f.job.signal(signal.SIGTSTP)
    until(lambda: is_stopped(f.job.pid), 'the launcher to stop')
    f.fence((0, 'worker'))
    for number in (signal.SIGCONT, signal.SIGINT, signal.SIGQUIT):
        f.job.signal(number)
        calm(f.job.pid)
    assert f.job.end().rc == 143


def test_tstp_can_be_ignored_and_forwarded(family):
    f = family([LONG, '--on-signal=TSTP=ignore'])
    f.job.signal(signal.SIGTSTP)
    f.forward(signal.SIGUSR1)
    assert not is_stopped(f.job.pid)
    f.job.signal(signal.SIGTERM)
    f.told(signal.SIGTERM, (0, 'worker'))
    assert f.job.end().rc == 143


TASK_SHELL = 'export SLURM_TASK_PID=$$; %s "$@"; echo "shell: ended with $?"; exit 0'


@pytest.mark.parametrize('how, refused', [
    ('set -m;', True), ('set -m; timeout 60', True), ('', False), ('timeout 60', False)],
    ids=['typed', 'typed behind timeout', 'a script', 'a script with timeout'])
def test_a_command_typed_in_the_terminal_of_srun_pty(start, how, refused):
    """Task 0 of two has a shell with job control, and no launcher runs in the other; a script under srun --pty
    is run by both."""
    terminal = Pty()
    env = {'SLURM_JOB_ID': '7', 'SLURM_STEP_ID': '0', 'SLURM_PROCID': '0', 'SLURM_STEP_NUM_TASKS': '2',
           'SLURM_STEP_NUM_NODES': '2', 'SLURM_NODEID': '0', 'SLURM_STEP_NODELIST': 'n[0-1]'}
    job = start(['--dry-run', '--no_python', '--use_env', '/bin/true'], env,
                wrap=['bash', '-c', TASK_SHELL % how, 'bash'], **terminal.streams())
    terminal.given()
    if refused:
        terminal.shows('SLURM_STEP_NUM_TASKS says 2')
        terminal.shows('--standalone')
    terminal.shows(f'shell: ended with {2 if refused else 0}')
    assert job.end().rc == 0
    terminal.close()
