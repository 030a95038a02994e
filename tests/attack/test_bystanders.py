"""What launchd did not start lives on, whatever ends: and launchd itself, when only the shell that
started it has ended."""
import os
import signal

import pytest
from arena import Handle, children_of, is_running, reap, until
from harness import signal_if_there, worker

OPTIONS = ['--shutdown-timeout=0.2', '--leftover-grace=0.1', '--nproc_per_node=2', '--no_python',
           '--use_env', worker('stubborn'), worker('ending')]
HELPERS = 'daemon+ignore,session+stop,orphan'
# Scripts that become launchd. $B waits for ever; say() tells its pid to the test.
PRELUDE = 'say() { echo $1 >>"$PIDS"; }\n'
SCENES = {
    'a background job': '"$B" & say $!',
    'in a session of its own': 'setsid "$B" & say $!',
    'an orphan': '("$B" & say $!)',
    'one with a child': 'sh -c \'"$B" & echo $! >>"$PIDS"; wait\' & say $!',
    'one that has ended': 'true & "$B" & say $!',
    'an orphan of later': '(read x <"$LATER"; ("$B" & say $!); "$B") & say $!',
}
ENDS = {
    'exit 7': lambda scene: scene.gate.go(2),
    'TERM': lambda scene: scene.guard.send(signal.SIGTERM),
    'guard killed': lambda scene: scene.guard.send(signal.SIGKILL),
    'supervisor killed': lambda scene: scene.supervisor.send(signal.SIGKILL),
}


class Scene:
    """A launchd, and processes of its script's."""

    def __init__(self, start, place, script, **how):
        bystander = place.write('bystander', '#!/bin/sh\nexec env -u TELL END=never '
                                f'{worker("ending")}\n', 0o755)
        self.file = place.path / 'pids'
        self.file.touch()
        # a test with two of these: a worker opens its gate some time after it is ready
        self.ready, self.gate, self.later = (
            place.fifo(f'{name}{len(place.fifos)}') for name in ('ready', 'gate', 'later'))
        env = {'TELL': self.ready.path, 'GO': self.gate.path, 'END_0': 'exit:7',
               'HELPERS': HELPERS, 'PIDS': str(self.file), 'B': bystander,
               'LATER': self.later.path}
        place.orphans_expected = True
        self.job = start(OPTIONS, env, wrap=('sh', '-c', PRELUDE + script, 'sh'), **how)
        place.orphans_expected = True
        self.workers = self.ready.expect('ready', 2)

    def pids(self, count):
        def read():
            text = self.file.read_text()
            return text.endswith('\n') and text.count('\n') >= count and text
        return [int(word) for word in until(read, f'{count} bystanders').split()]

    def handles(self, guard, others=()):
        found = children_of(guard) - set(others)
        supervisor = {pid for pid in found
                      if set(self.workers.values()) <= children_of(pid)}
        assert len(supervisor) == 1, found
        self.guard, self.supervisor = Handle(guard), Handle(supervisor.pop())

    def close(self):
        self.guard.close()
        self.supervisor.close()


def end_bystanders(pids):
    """Returns those that lived."""
    lived = {pid for pid in pids if is_running(pid)}
    for pid in lived:
        signal_if_there(pid, signal.SIGKILL)
    for pid in pids:
        until(lambda: not is_running(pid), 'a bystander to end')
        reap(pid)
    return lived


@pytest.mark.parametrize('end', ENDS)
@pytest.mark.parametrize('script', SCENES)
def test_of_the_process_that_became_launchd(start, place, script, end):
    scene = Scene(start, place, SCENES[script] + '\nexec "$@"')
    count = {'one with a child': 2, 'an orphan of later': 1}.get(script, 1)
    pids = scene.pids(count)
    scene.handles(scene.job.pid, pids)
    if script == 'an orphan of later':
        os.write(scene.later.fd, b'\n')
        pids = scene.pids(2)
    ENDS[end](scene)
    assert scene.guard.ended(30) and scene.supervisor.ended(30)
    scene.job.end()
    scene.close()
    assert end_bystanders(pids) == set(pids)


@pytest.mark.quick
@pytest.mark.parametrize('end', ENDS)
def test_beside_launchd(start, place, end):
    """A job of the same shell, which waits for launchd."""
    scene = Scene(start, place, '"$B" & say $!\n"$@" & say $!\nwait $!')
    pids = scene.pids(2)
    scene.handles(pids[1])
    ENDS[end](scene)
    assert scene.guard.ended(30) and scene.supervisor.ended(30)
    codes = {'exit 7': 7, 'TERM': 143, 'guard killed': 137, 'supervisor killed': 137}
    assert scene.job.end().rc == codes[end]
    scene.close()
    assert end_bystanders(pids[:1]) == {pids[0]}


def outlives(scene):
    """Not for ever, but long enough for whatever follows an end at once."""
    assert not scene.guard.ended(0.5)
    assert all(map(is_running, scene.workers.values()))


def test_launchd_outlives_the_script_that_started_it(start, place):
    scene = Scene(start, place, '"$@" & say $!')
    assert scene.job.end().rc == 0
    guard, = scene.pids(1)
    scene.handles(guard)
    outlives(scene)
    scene.gate.go(2)
    assert os.waitstatus_to_exitcode(os.waitpid(guard, 0)[1]) == 7
    scene.close()


def test_launchd_outlives_the_reader_of_its_output(start, place):
    """As in `launchd ... 2>&1 | head`."""
    reader, writer = os.pipe()
    scene = Scene(start, place, 'exec "$@"', out=writer, err=writer)
    os.close(writer)
    scene.handles(scene.job.pid)
    os.close(reader)
    outlives(scene)
    scene.gate.go(2)
    assert scene.job.end().rc == 7
    scene.close()


def test_a_process_of_the_same_name(start, place):
    """Another launchd of the same user, with the same workers."""
    other = Scene(start, place, 'exec "$@"')
    other.handles(other.job.pid)
    scene = Scene(start, place, 'exec "$@"')
    scene.handles(scene.job.pid)
    scene.supervisor.send(signal.SIGKILL)
    assert scene.job.end().rc == 137
    outlives(other)
    other.gate.go(2)
    assert other.job.end().rc == 7
    for each in (other, scene):
        each.close()
