"""A temporary directory that is cleaned under a job: what launchd has there is left alone, or made anew."""
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess

import pytest

from control import Control, launchctl, socket_dir, socket_of
from harness import LIMIT, is_idle, let_pass, native, status_of, stop, supervisor_of, until
from needs import needs_root
from test_events import of, read
from together import warnings

RECORD = json.dumps({'message': {'message': 'ValueError: the teapot is empty'}})

# A worker that does away with what is in $TMPDIR, and fails; the next one tells its step, and fails with words.
CLEANS = f'''
import os, shutil, socket, sys
if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':
    print('first')
    CLEAN
    sys.exit(3)
with open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w') as f:
    f.write({RECORD!r})
if 'LAUNCHD_PROGRESS_SOCKET' in os.environ:
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'STEP=7', os.environ['LAUNCHD_PROGRESS_SOCKET'])
print('second')
sys.exit(4)
'''
ALL = "[shutil.rmtree(entry.path) for entry in os.scandir(os.environ['TMPDIR'])]"
RUN = "run = os.path.dirname(os.environ['TORCHELASTIC_ERROR_FILE'])"


@pytest.fixture
def cleaned(launch, place):
    """cleaned(clean, options): a job whose first attempt cleans, and what it said."""
    def run(clean, *options, **env):
        script = place.write('job.py', CLEANS.replace('CLEAN', clean))
        return launch([f'--report={place.path}/report', f'--events={place.path}/events', '--max-restarts=1',
                       '--nproc_per_node=1', '--use_env', *options, script], env)
    return run


def assert_words(place, result):
    assert result.rc == 4 and 'ValueError: the teapot is empty' in result.err, result


@pytest.mark.needs('systemd-tmpfiles')
def test_systemd_leaves_it_alone(start, place):
    """A cleaner with an age of 0 removes all that it may."""
    ready, go = place.fifo('ready'), place.fifo('go')
    old = place.tmp / 'old' / 'file'
    old.parent.mkdir()
    old.touch()
    job = start(native('ending', '--nproc_per_node=1', '-r3'), {'TELL': ready.path, 'GO': go.path, 'END': 'raise'})
    [worker] = ready.expect('ready', 1).values()
    before = sorted(place.tmp.rglob('launchd_*/**/*'))
    assert len(before) == 5  # of the logs
    conf = place.write('clean.conf', f'e {place.tmp} - - - 0\n')
    user = [] if os.geteuid() == 0 else ['--user']
    subprocess.run(['systemd-tmpfiles', *user, '--clean', conf], check=True, timeout=LIMIT)
    assert not old.exists()
    assert sorted(place.tmp.rglob('launchd_*/**/*')) == before and len(list(place.tmp.glob('launchd_*'))) == 2
    for entry in pathlib.Path(f'/proc/{worker}/fd').iterdir():
        assert not os.path.isdir(entry), os.readlink(entry)  # no worker has a lock
    go.go()
    result = job.end()
    assert result.rc == 1 and 'ValueError: the teapot is empty' in result.err
    [logs] = place.tmp.glob('launchd_logs_*')
    shutil.rmtree(logs)


@pytest.mark.quick
def test_the_next_attempt_has_another_one(cleaned, place):
    result = cleaned(ALL, '--progress=notify')
    assert_words(place, result)
    said = warnings(result)[1]
    assert f'warning: {place.tmp}/launchd_' in said
    assert f' has been removed; {place.tmp}/launchd_' in said
    assert [event['step'] for event in of(read(place.path / 'events'), 'step')] == [7]
    assert not list(place.tmp.iterdir())


def test_the_socket_of_progress_alone(cleaned, place):
    result = cleaned("os.unlink(os.environ['LAUNCHD_PROGRESS_SOCKET'])", '--progress=notify')
    assert_words(place, result)
    assert [event['step'] for event in of(read(place.path / 'events'), 'step')] == [7]


def test_it_is_as_private_as_the_first(cleaned, place):
    """Its place may be gone with it."""
    gone = place.path / 'gone'
    gone.mkdir()
    seen = place.path / 'seen'
    result = cleaned(f"shutil.rmtree(os.environ['TMPDIR'])\n    sys.exit(3)\n"
                     f"os.symlink(os.path.dirname(os.environ['TORCHELASTIC_ERROR_FILE']), '{seen}')\n"
                     f"mode = oct(os.stat('{seen}').st_mode)\nprint('mode', mode)\nif 0:\n    pass", TMPDIR=str(gone))
    assert_words(place, result)
    assert f'mode {oct(stat.S_IFDIR | 0o700)}\n' in result.out
    assert os.readlink(seen).startswith('/tmp/launchd_') and not os.path.exists(seen)


@pytest.mark.parametrize('put', ['os.mkdir(run); os.chown(run, 65534, 65534)', "os.symlink('/tmp', run)",
                                 'os.symlink(away, run)'], ids=['directory', 'link', 'link to it'])
@needs_root
def test_somebody_elses_is_not_used(cleaned, place, put):
    result = cleaned(f"{RUN}; away = {str(place.path / 'away')!r}; os.rename(run, away); {put}")
    assert_words(place, result)
    [theirs] = place.tmp.iterdir()
    assert theirs.is_symlink() or not list(theirs.iterdir())
    theirs.rename(place.path / 'theirs')  # the fixture's search for what a run leaves


@pytest.mark.parametrize('options', [['-t3'], ['-t3', '--log-dir={tmp}/logs']], ids=['default', 'given'])
def test_logs(cleaned, place, options):
    result = cleaned(ALL, *[option.format(tmp=place.tmp) for option in options])
    assert result.rc == 4 and 'ValueError: the teapot is empty' in result.err
    said = [line for line in warnings(result) if "workers' log files: " in line]
    assert len(said) == 1 and ' has been removed; ' in said[0]
    new = pathlib.Path(said[0].partition('log files: ')[2])
    assert (new / 'attempt_1' / '0' / 'stdout.log').read_text() == 'second\n'
    shutil.rmtree(new.parent)


@pytest.fixture
def job(start, place):
    ready = place.fifo('ready')
    job = start(native('ending', '--nproc_per_node=1'), {'TELL': ready.path})
    ready.expect('ready', 1)
    Control(socket_of(job)).close()
    return job


def remove_directory(place, job):
    shutil.rmtree(socket_dir(place), ignore_errors=True)  # it may have another socket again


def remove_socket(place, job):
    socket_of(job).unlink()


def move_directory(place, job):
    socket_dir(place).rename(place.path / 'away')


@pytest.mark.long
@pytest.mark.parametrize('clean', [remove_directory, remove_socket, move_directory])
def test_control_socket(job, place, clean):
    """Without a restart, twice; and who was connected stays so."""
    with Control(socket_of(job)) as first:
        for _ in range(2):
            clean(place, job)
            shutil.rmtree(place.path / 'away', ignore_errors=True)
            with Control(socket_of(job)) as control:
                assert control.ask('status')['guard_pid'] == job.pid
        assert first.ask('status')['guard_pid'] == job.pid
    listed = subprocess.run([*launchctl(place), 'list', '--json'], env=place.environment({}), cwd=place.path,
                            capture_output=True, text=True, timeout=LIMIT, check=True)
    assert [row['guard_pid'] for row in json.loads(listed.stdout)] == [job.pid]
    with Control(socket_of(job)) as control:
        control.ask('stop')
    assert job.end().rc == 143 and not socket_dir(place).exists()


def test_nothing_wakes_up_while_nothing_happens(job):
    supervisor = supervisor_of(job.pid)
    until(lambda: is_idle(supervisor), 'it to wait for events')
    before = [status_of(pid)['voluntary_ctxt_switches'] for pid in (job.pid, supervisor)]
    let_pass(3, 'nothing wakes either of them')
    assert [status_of(pid)['voluntary_ctxt_switches'] for pid in (job.pid, supervisor)] == before
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143


@pytest.mark.long
def test_a_link_in_place_of_its_directory(job, place):
    """The socket is in a directory that nobody else can have made."""
    supervisor = supervisor_of(job.pid)
    stop(supervisor)  # else it is faster
    move_directory(place, job)
    socket_dir(place).symlink_to(place.path / 'away')
    os.kill(supervisor, signal.SIGCONT)
    other = pathlib.Path(f'/tmp/launchd-{os.geteuid()}/{job.pid}.sock')
    with Control(other) as control:
        control.ask('stop')
    assert job.end().rc == 143 and not other.exists()
    assert not list((place.path / 'away').iterdir())
