"""Issue 16: launchctl, and launchd ctl, with real jobs."""
import ctypes
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from control import Control, Refused, kill_both, launchctl, socket_of
from harness import BUILD, LIMIT, children_of, let_pass, native, stop, supervisor_of, until
from needs import PID_1, needs_mounts, needs_root
from together import Cluster

PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000


@pytest.fixture
def ctl(place):
    """Calls launchctl, by its other name; returns its exit code, what it printed and what it said."""
    def call(*words, **how):
        done = subprocess.run([*launchctl(place), *words], env=place.environment({}), cwd=place.path,
                              capture_output=True, text=True, timeout=LIMIT, check=False, **how)
        return done.returncode, done.stdout, done.stderr
    return call


@pytest.fixture
def follow(place):
    """Starts a launchctl that goes on until the job ends, and leaves none."""
    followers = []

    def begin(*words):
        followers.append(subprocess.Popen([*launchctl(place), *words], env=place.environment({}),
                                          stdout=subprocess.PIPE, text=True))
        return followers[-1]
    yield begin
    for follower in followers:
        follower.kill()
        follower.wait()
        follower.stdout.close()


@pytest.fixture
def ok(ctl):
    def call(*words):
        rc, out, err = ctl(*words)
        assert (rc, err) == (0, ''), (rc, out, err)
        return out
    return call


def answers(running):
    """Waits until it can be found and asked: a socket is there a moment before it listens."""
    Control(socket_of(running)).close()


@pytest.fixture
def job(start, place):
    def begin(*options, workers=2, env=None):
        ready = place.fifo(f'ready{len(place.fifos)}')
        running = start([*options, *native('ending', f'--nproc_per_node={workers}')],
                        {'TELL': ready.path, **(env or {})})
        running.pids = ready.expect('ready', workers)
        running.ready = ready
        answers(running)
        return running
    return begin


def test_both_names(ctl, place):
    named = place.path / 'launchctl'
    named.symlink_to(BUILD / 'launchd')
    done = subprocess.run([named, '--version'], capture_output=True, text=True, check=True)
    assert done.stdout.startswith('launchctl ') and ctl('--version')[1] == done.stdout
    assert ctl('--help')[1].startswith('usage: launchctl ')


def test_no_job(ctl, ok):
    assert ok('list').split() == ['JOB', 'RUN', 'ID', 'PID', 'USER', 'STATE', 'NODE', 'WORKERS', 'TIME']
    assert json.loads(ok('list', '--json')) == []
    for words in ['status'], ['stop', 'x'], ['-j', '4711', 'restart']:
        rc, out, err = ctl(*words)
        assert (rc, out) == (3, '') and err.startswith('launchctl: error: no job')
    rc, _, err = ctl('fly')
    assert rc == 2 and 'there is no command "fly"' in err


def test_status(job, ok):
    running = job('--rdzv-id=r17')
    first, second, head, *workers = ok('status').splitlines()
    assert re.fullmatch(r'r17: working for \d+s', first)
    assert re.fullmatch(rf'node 0 of 1 on .*: launcher {running.pid}, supervisor '
                        rf'{supervisor_of(running.pid)}', second)
    assert head.split()[:4] == ['RANK', 'LOCAL', 'PID', 'STATE']
    assert [line.split()[:4] for line in workers] == [
        [str(rank), str(rank), str(running.pids[rank]), 'running'] for rank in (0, 1)]
    with Control(socket_of(running)) as control:
        theirs, ours = control.ask('status'), json.loads(ok('status', '--json'))
        assert theirs.keys() == ours.keys() and theirs['guard_pid'] == ours['guard_pid']
    assert [row['run_id'] for row in json.loads(ok('list', '--json'))] == ['r17']
    assert re.search(rf'\nr17 +r17 +{running.pid} .* working +0 of 1 +2 of 2 ', ok('list'))
    ok('stop')
    assert running.end().rc == 143


def test_which_job(job, ctl, ok):
    first, second = job('--rdzv-id=one'), job('--rdzv-id=two')
    rc, _, err = ctl('status')
    assert rc == 2
    assert re.search(r'2 jobs match: (one|two) \(pid \d+\), (one|two) \(pid \d+\); name one by --job PID', err)
    assert str(first.pid) in err and str(second.pid) in err
    assert f'launcher {first.pid},' in ok('status', 'one')
    assert f'launcher {second.pid},' in ok('status', str(second.pid))
    assert 'RANK=1\n' in ok('-j', 'two', 'env', '1')
    ok('stop', 'one')
    assert first.end().rc == 143
    ok('stop')  # the only one now
    assert second.end().rc == 143


# Another user's processes: a guard, whose child listens by its pid as a launcher's does, and what that one says.
PRETENDER = """
import os, socket, sys, time
directory, says, name, backlog = sys.argv[1:5]
os.setgid(65534)
os.setuid(65534)
guard = os.getpid()
if os.fork():
    time.sleep(3600)
s = socket.socket(socket.AF_UNIX)
s.bind(f'{directory}/{name if int(name) else guard}.sock')
s.listen(int(backlog))
held = []
if backlog == '0':
    for _ in range(2):
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].setblocking(False)
        held[-1].connect_ex(s.getsockname())
print('listens', flush=True)
while backlog != '0':
    one = s.accept()[0]
    held.append(one)
    if says == 'drips':
        if os.fork() == 0:
            while True:
                one.send(b'.')
                time.sleep(0.1)
    elif says:
        one.recv(4096)
        one.sendall(b'{"v":1,"id":1,"ok":true,"result":' + says.encode() + b'}\\n')
time.sleep(3600)
"""
SAYS_TRAIN = '{"name":"train","run_id":"train","state":"working","nnodes":1,"node_rank":0,"workers":[],"awaited":[]}'


@pytest.fixture
def pretender(place):
    """Another user's sockets, in the directory that is named after that user."""
    began = []
    directory = place.path / 'users' / 'launchd-65534'

    def begin(says, name=0, backlog=8):
        if not began:
            os.chmod(place.path, 0o755)
            directory.mkdir(parents=True)
            os.chown(directory, 65534, 65534)
        began.append(subprocess.Popen([sys.executable, '-c', PRETENDER, directory, says, str(name), str(backlog)],
                                      stdout=subprocess.PIPE, text=True, start_new_session=True))
        assert began[-1].stdout.readline() == 'listens\n'
    yield begin
    for one in began:
        os.killpg(one.pid, signal.SIGKILL)
        one.wait()
        one.stdout.close()
    place.orphans_expected = bool(began)  # its listeners


@needs_root
@needs_mounts
@pytest.mark.parametrize('how', [
    {'says': ''}, {'says': 'drips'}, {'says': SAYS_TRAIN}, {'says': SAYS_TRAIN, 'named': True},
    {'says': '', 'backlog': 0}], ids=['silent', 'drips', 'has the same name', 'has the same pid', 'takes nobody'])
@pytest.mark.parametrize('by', ['name', 'pid', None])
def test_another_users_sockets_keep_root_from_nothing(job, ctl, pretender, how, by):
    """However many they are."""
    running = job('--job-name=train')
    for _ in range(1 if 'named' in how else 3):
        pretender(how['says'], running.pid if 'named' in how else 0, how.get('backlog', 8))
    if by is None and how == {'says': SAYS_TRAIN}:
        rc, _, err = ctl('stop')  # they are jobs as any other, and root says which is meant
        assert rc == 2 and f'train (pid {running.pid})' in err and ', uid 65534)' in err
        by = 'pid'
    began = time.monotonic()
    rows = ctl('list')[1]
    assert re.search(rf'\ntrain +\S+ +{running.pid} +root ', rows)
    assert not re.search(rf' {running.pid} +nobody ', rows)
    assert ctl('stop', *{'name': ['train'], 'pid': [str(running.pid)], None: []}[by]) == (0, '', '')
    assert running.end().rc == 143
    assert time.monotonic() - began < 14  # a launcher that is given up for its silence takes 15 s


@needs_root
@needs_mounts
@pytest.mark.parametrize('says', [
    '{},"more":{"name":"train"}', '{"name":"\x1b[2J"}', '{"name":"train","guard_pid":PID}',
    '{"name":"' + 9999 * 'x' + '"}', '0,"error":{"code":"busy","text":"busy"}'],
    ids=['more than one object', "a terminal's command", "another job's pid", 'a long name', 'busy'])
def test_what_another_user_says_spoils_no_list(job, ctl, pretender, says):
    running = job('--job-name=train')
    pretender(says.replace('PID', str(running.pid)))
    rc, out, _ = ctl('list', '--json')
    assert rc == 0 and '\x1b' not in out
    assert [row['supervisor_pid'] for row in json.loads(out) if row.get('guard_pid') == running.pid] == [
        supervisor_of(running.pid)]
    rows = ctl('list')[1]
    assert re.search(rf'\ntrain +\S+ +{running.pid} +root ', rows)
    assert not re.search(rf' {running.pid} +nobody ', rows)
    assert max(map(len, rows.splitlines())) < 300
    assert (' busy ' in rows) == ('"busy"' in says)
    assert ctl('stop', str(running.pid)) == (0, '', '')
    assert running.end().rc == 143


@needs_root
@needs_mounts
def test_a_launcher_in_a_container_is_named_by_its_pid_out_here(place, ok):
    """In there it is 2, as others may be elsewhere."""
    inner = subprocess.Popen([*PID_1, 'sh', '-c',
                              f'{BUILD}/launchd --no_python --use_env sleep 60; exit 0'],
                             env=place.environment({}), stderr=subprocess.DEVNULL)
    try:
        Control(place.run / 'launchd' / '2.sock').close()
        shell, = children_of(inner.pid)
        launcher, = children_of(shell)
        assert 'launcher 2,' in ok('status', str(launcher))
        assert ok('stop', str(launcher)) == ''
        assert inner.wait(LIMIT) == 0
    finally:
        inner.kill()
        inner.wait()


def test_steering(job, ctl, ok):
    running = job('--restart-delay=0')
    assert ok('restart') == ''
    pids = running.ready.expect('ready', 2)
    assert ok('loglevel') == 'info\n' and ok('loglevel', 'verbose') == 'verbose\n'
    assert 'launchd_restarts_total' in ok('metrics')
    real = pathlib.Path(f'/proc/{pids[1]}/environ').read_bytes().decode().split('\0')[:-1]
    assert sorted(ok('env', '1').splitlines()) == sorted(real)
    assert ctl('signal', 'USR1', '2') == (
        1, '', 'launchctl: error: there is no rank 2; node 0 has ranks 0 to 1\n')
    ok('reopen')
    ok('signal', 'KILL', '1')
    result = running.end()
    assert result.rc == 137
    assert re.search(r'SIGKILL is sent to rank 1, as pid \d+ \(uid \d+\) asks', result.err)


def test_who_stopped_it(job, ok):
    running = job()
    ok('stop', '--now')
    result = running.end()
    assert result.rc == 143 and re.search(r'SIGTERM .*\(launchd, uid ', result.err), result.err


def test_stack(job, place, ctl, ok):
    running = job()
    rc, said, _ = ctl('stack', '1')  # gdb talks on stderr, too
    assert rc == 0
    assert said.startswith(f'rank 1, pid {running.pids[1]}\nthread {running.pids[1]} ending: S (sleeping)')
    rc, _, err = ctl('stack', '5')
    assert (rc, err) == (1, 'launchctl: error: rank 5 does not run on this node\n')
    ok('stop')
    running.end()
    place.orphans_expected = True  # of gdb's, which has a process look into another mount namespace


def talker(place, said, go):
    return place.write('talks.py', f'''
import os
rank = os.environ["RANK"]
def tell(text):
    print(rank, text, flush=True)
for i in range(20):
    tell(f'step {{i}}')
with open({said.path!r}, 'w') as f:
    f.write(f'{{rank}} {{os.getpid()}} said\\n')
with open({go.path!r}) as f:
    while f.read(1):
        tell('more')
        with open({said.path!r}, 'w') as f2:
            f2.write(f'{{rank}} {{os.getpid()}} more\\n')
''')


def test_logs(start, place, ctl, ok, follow):
    said, go = place.fifo('said'), place.fifo('go')
    running = start(['--log-dir=logs', '-t3', '--nproc_per_node=2', '--use_env', '--no_python', sys.executable,
                     talker(place, said, go)])
    said.expect('said', 2)
    until(lambda: ctl('logs', '1', '-n', '1')[1] == '1 step 19\n', 'the output to be read')
    until(lambda: ctl('logs', '0', '-n', '1')[1] == '0 step 19\n', 'the output to be read')
    assert ok('logs', '1', '-n', '3').splitlines() == [f'1 step {i}' for i in (17, 18, 19)]
    assert ok('logs', '-n2').splitlines() == [
        f'[{rank}] {rank} step {i}' for rank in (0, 1) for i in (18, 19)]
    assert ctl('logs', '3')[0] == 1
    follower = follow('logs', '-f', '-n1')
    assert {follower.stdout.readline() for _ in range(2)} == {'[0] 0 step 19\n', '[1] 1 step 19\n'}
    go.go(5)
    for _ in range(5):
        said.line()
    lines = [follower.stdout.readline() for _ in range(5)]
    assert set(lines) <= {'[0] 0 more\n', '[1] 1 more\n'}
    ok('stop')
    running.end()
    assert follower.wait(LIMIT) == 0 and follower.stdout.read() == ''


@pytest.mark.parametrize('options', [
    ['--log-line-prefix-template=[${rank}] '],
    ['--log-dir=logs', '--redirects=2'],  # stdout by the launcher, stderr in a file of the worker's own
    ['--log-dir=logs', '--redirects=1', '--log-line-prefix-template=[${rank}] '],  # the other way round
    ['--log-dir=logs', '--redirects=0:3'],
], ids=['console', 'stderr to a file', 'stdout to a file', 'one worker to files'])
def test_logs_that_go_into_no_file_are_followed_too(start, place, ctl, ok, follow, options):
    said, go = place.fifo('said'), place.fifo('go')
    running = start([*options, '--nproc_per_node=2', '--use_env', '--no_python', sys.executable,
                     talker(place, said, go)])
    said.expect('said', 2)
    for rank in ('0', '1'):
        until(lambda: ctl('logs', rank, '-n', '1')[1] == f'{rank} step 19\n', 'the output to be read')
    both, one = follow('logs', '-f', '-n1'), follow('logs', '-f', '-n1', '1')
    assert [both.stdout.readline() for _ in range(2)] == ['[0] 0 step 19\n', '[1] 1 step 19\n']
    assert one.stdout.readline() == '1 step 19\n'
    go.go(5)
    told = [said.line() for _ in range(5)]
    count = [sum(rank == one for one, _, _ in told) for rank in (0, 1)]
    lines = [both.stdout.readline() for _ in range(5)]
    assert sorted(lines) == ['[0] 0 more\n'] * count[0] + ['[1] 1 more\n'] * count[1]
    ok('stop')
    running.end()
    assert both.wait(LIMIT) == 0 and both.stdout.read() == ''
    assert one.wait(LIMIT) == 0 and one.stdout.read() == '1 more\n' * count[1]


def shell(said, go, script):
    """A worker that says something, tells that it has, waits, and goes on so."""
    return ['--use_env', '--no_python', '/bin/sh', '-c',
            f'tell() {{ echo 0 $$ said >{said.path}; head -c1 {go.path} >/dev/null; }}; echo first; tell; {script}']


def test_lines_are_followed_to_the_last_one(start, place, ctl, follow):
    """... which has no end; the worker, and the job with it, ends by itself. They are more than the socket holds."""
    said, go = place.fifo('said'), place.fifo('go')
    running = start(shell(said, go, 'seq 1 9999; printf "\\n50%%\\r100%%"'))
    said.expect('said', 1)
    until(lambda: ctl('logs', '-n', '1')[1] == 'first\n', 'its first line to be read')
    follower = follow('logs', '-f')
    assert follower.stdout.readline() == 'first\n'
    go.go(1)
    assert running.end().rc == 0
    assert follower.wait(LIMIT) == 0
    assert follower.stdout.read().split('\n') == [*map(str, range(1, 10_000)), '', '100%', '']


def tail(control):
    """None: nothing is known yet."""
    try:
        return control.ask('tail', rank=0)
    except Refused:
        return None


def test_a_follower_that_does_not_read_holds_nobody_up(start, place):
    """It hears how many lines it has missed."""
    said, go = place.fifo('said'), place.fifo('go')
    running = start(shell(said, go, 'yes $(seq 20) | head -n 500000; tell; echo last'), out=subprocess.DEVNULL)
    said.expect('said', 1)
    with Control(socket_of(running)) as control:
        until(lambda: tail(control) == {'text': 'first'}, 'its first line to be read')
        number = control.send('logs', follow=True, ranks=[0])
        assert tail(control) == {'text': 'first'}  # the thread that reads the pipe knows of the follower
        go.go(1)
        said.expect('said', 1)  # all 25 MB are written
        status = control.send('status')  # answered when all before is read
        told = lost = 0
        for line in iter(control.line, {'v': 1, 'id': number, 'ok': True, 'result': {}}):
            if line['id'] == status:
                go.go(1)
            elif 'lost' in line:
                lost += line['lost']
            else:
                told += 1
                last = line['event']
        assert last == {'rank': 0, 'stream': 'stdout', 'line': 'last'}
        assert lost > 100_000 and told + lost == 500_001
    assert running.end().rc == 0


@pytest.mark.parametrize('options', [[], ['--tee=3'], ['--redirects=3'], ['--redirects=2']], ids=str)
def test_a_restart_is_followed(start, place, ctl, ok, follow, options):
    """Its log files are others, in another directory."""
    said, go = place.fifo('said'), place.fifo('go')
    logs = ['--log-dir=logs', *options] if options else []
    running = start([*logs, *shell(said, go, 'echo over >&2')], out=subprocess.DEVNULL)
    said.expect('said', 1)
    until(lambda: ctl('logs')[1] == 'first\n', 'the output to be read')
    follower = follow('logs', '-f')
    assert follower.stdout.readline() == 'first\n'
    ok('restart')
    said.expect('said', 1)
    go.go(1)
    assert running.end().rc == 0
    assert follower.wait(LIMIT) == 0 and sorted(follower.stdout) == ['first\n', 'over\n']


def test_a_stream_that_is_cut(start, place):
    """A launcher that was killed has told no end."""
    said, go = place.fifo('said'), place.fifo('go')
    running = start(shell(said, go, ''))
    said.expect('said', 1)
    until(socket_of(running).exists, 'the socket')
    with subprocess.Popen([*launchctl(place), 'logs', '-f'], env=place.environment({}), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as follower:
        assert follower.stdout.readline() == 'first\n'
        kill_both(running)
        assert 'warning: the last lines may be missing' in follower.stderr.read()
        assert follower.wait(LIMIT) == 0


def test_no_logs(job, ctl, ok):
    running = job()
    rc, _, err = ctl('logs', '0')
    assert rc == 1 and 'is not known now' in err
    ok('stop')
    running.end()


def test_lines_that_go_to_a_terminal_can_not_be_followed(start, place, ctl, ok):
    said, go = place.fifo('said'), place.fifo('go')
    master, slave = os.openpty()
    running = start(shell(said, go, ''), out=slave, err=slave)
    said.expect('said', 1)
    answers(running)
    for ranks in [], ['0']:
        rc, _, err = ctl('logs', '-f', *ranks)
        assert rc == 1 and 'launchd reads nothing of what the workers write' in err
    assert ctl('logs', '-f', '3')[2].startswith('launchctl: error: there is no rank 3')
    ok('stop')
    running.end()
    os.close(master)
    os.close(slave)


def test_events_until_the_end(job, ok, follow):
    running = job()
    follower = follow('events', '-f')

    def follows():
        """Whether it has seen something of this restart: it may have come too late for it."""
        ok('restart')
        running.ready.expect('ready', 2)
        return select.select([follower.stdout], [], [], 0)[0]

    until(follows, 'an event')
    ok('stop')
    running.end()
    events = [json.loads(line)['event'] for line in follower.stdout]
    assert events[-1] == 'verdict' and follower.wait(LIMIT) == 0


def test_a_stopped_supervisor_is_said_to_be_stopped(job, ctl, ok):
    """And is sent nothing: what was refused is not done when it goes on."""
    running = job('--job-name=train')
    supervisor = supervisor_of(running.pid)
    stop(running.pid)  # after 10 s the guard would wake its supervisor
    stop(supervisor)
    try:
        rc, _, err = ctl('status')
        assert rc == 1
        assert f'pid {supervisor}, is stopped by a signal; kill -CONT {supervisor} resumes it\n' in err
        assert ctl('stop')[::2] == (1, err) == ctl('signal', 'KILL', '1')[::2]
        rc, _, err = ctl('status', 'train')
        assert rc == 1 and f'the launcher with pid {running.pid} does not answer' in err
        assert re.search(rf'- +- +{running.pid} .* does not answer: stopped', ok('list'))
    finally:
        os.kill(supervisor, signal.SIGCONT)
        os.kill(running.pid, signal.SIGCONT)
    assert ok('status').count('running') == 2 and ok('status').startswith('train: working')
    ok('stop')
    assert running.end().rc == 143


def test_a_supervisor_that_a_debugger_stops(job, ctl, ok, follow):
    """For a moment, as strace does (and LeakSanitizer, at its end): that is waited for; then for longer."""
    running = job()
    supervisor = supervisor_of(running.pid)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def stop():
        if libc.ptrace(PTRACE_ATTACH, supervisor, None, None) != 0:
            pytest.skip(f'ptrace: {os.strerror(ctypes.get_errno())}')
        assert os.waitpid(supervisor, WALL)[0] == supervisor

    stop()
    try:
        asker = follow('status')
        let_pass(1, 'it waits for the supervisor')
        libc.ptrace(PTRACE_DETACH, supervisor, None, None)
        assert asker.stdout.read().count('running') == 2 and asker.wait(LIMIT) == 0
        stop()
        assert ctl('status')[::2] == (1, f'launchctl: error: the supervisor, pid {supervisor}, is stopped by a '
                                         'debugger, which must let it go, and it will then carry out this request\n')
    finally:
        libc.ptrace(PTRACE_DETACH, supervisor, None, None)
    ok('stop')
    assert running.end().rc == 143


def test_watch(job, ok, follow):
    running = job()
    watcher = follow('status', '--watch=0.05', '--json')
    for _ in range(3):
        assert json.loads(watcher.stdout.readline())['state'] == 'working'
    ok('stop')
    running.end()
    watcher.stdout.read()
    assert watcher.wait(LIMIT) == 0  # the job's end is no error


class TestGpuMemory:
    """NVML is the tests' own."""

    @pytest.fixture
    def see(self, place):
        def call(use, *words, gpus=2, faults=''):
            env = place.environment({'LD_LIBRARY_PATH': str(BUILD / 'tests' / 'workers'), 'FAKE_NVML': faults,
                                     'FAKE_GPUS': str(gpus), 'FAKE_GPU_USE': use})
            done = subprocess.run([*launchctl(place), 'status', *words], env=env, capture_output=True, text=True,
                                  timeout=LIMIT, check=True)
            assert done.stderr == ''
            return done.stdout
        return call

    def test_of_whom(self, job, see, ok):
        """A worker's and its children's are its own; strangers', and what is not said, are nobody's."""
        running = job('--wrap', 'sh -c \'"$@" & wait\' sh')
        below = running.pids
        use = f'{below[0]}:1073741824,{below[0]}:1073741824,{below[1]}:18446744073709551615,{os.getpid()}:77'
        head, *workers = see(use).splitlines()[2:]
        assert head.split()[6:] == ['MEMORY', 'GPU', 'MEMORY', 'STORE', 'LAST', 'LINE']
        at = head.index('GPU MEMORY')
        assert [line[at:at + 7] for line in workers] == ['2.0 GiB', '0 B    ']
        told = json.loads(see(use, '--json'))
        assert told['gpu_memory'] == [{'pid': worker['pid'], 'bytes': size} for worker, size in
                                      zip(told['workers'], [2 << 30, 0])]
        ok('stop')
        running.end()

    def test_a_gpu_that_may_not_be_asked_hides_no_other(self, job, see, ok):
        running = job()
        said = see(f'{running.pids[0]}:1073741824', gpus=4, faults='nvmlDeviceGetHandleByIndex@3=4')
        assert 'GPU MEMORY' in said and '1.0 GiB' in said and 'not known' not in said
        ok('stop')
        running.end()

    def test_a_driver_that_hangs(self, job, see, ok):
        running = job()
        said = see('hang')
        assert 'GPU MEMORY' not in said and 'GPU memory is not known: NVML did not finish within 5 s' in said
        assert 'GPU memory is not known: NVML: GPU 0 does not report who uses it' in see('fail')
        assert 'GPU MEMORY' in see('', faults='hang=nvmlShutdown')
        assert 'GPU memory is not known: NVML: nvmlInit: the driver that is loaded' in see('', faults='nvmlInit=18')
        for gpus in 0, -1:
            assert 'GPU' not in see('', gpus=gpus)
            assert 'gpu_memory' not in json.loads(see('', '--json', gpus=gpus))
        ok('stop')
        running.end()


def test_sockets_that_were_left(job, ctl, ok):
    """Of a launcher both of whose processes were killed."""
    running = job()
    path = socket_of(running)
    kill_both(running)
    assert path.exists()
    assert ctl('status')[0] == 3 and len(ok('list').splitlines()) == 1
    path.unlink()


def test_each_node_is_asked_by_itself(start, ctl, ok):
    """Two launchers of one job on one host; stop reaches both."""
    cluster = Cluster(start, 2, native('ending', '--nproc_per_node=2'))
    pids = [cluster.jobs[node].pid for node in (0, 1)]
    for node in (0, 1):
        until(lambda pid=pids[node]: ctl('status', str(pid))[1].count('running') == 2, 'the workers')
        ranks = [line.split()[0] for line in ok('status', str(pids[node])).splitlines()[3:]]
        assert ranks == [str(2 * node), str(2 * node + 1)]
    rc, _, err = ctl('-j', str(pids[0]), 'env', '2')
    assert rc == 1 and 'rank 2 runs on another node' in err
    ok('stop', str(pids[1]))
    assert [result.rc for result in cluster.end()] == [143, 143]


def test_all_nodes_from_node_0(start, ctl, ok, follow):
    cluster = Cluster(start, 2, native('ending', '--nproc_per_node=2'))
    first, second = (str(cluster.jobs[node].pid) for node in (0, 1))
    until(lambda: ctl('status', first, '-a')[1].count(' running ') == 4, 'the workers')
    job, node, head, *rows = ok('status', first, '--all-nodes').splitlines()
    assert re.fullmatch(r'job: working for \d+s', job) and node.startswith('node 0 of 2 on ')
    assert head.split()[:5] == ['NODE', 'HOST', 'RANK', 'LOCAL', 'PID']
    assert [row.split()[0] + row.split()[2] for row in rows] == ['00', '01', '12', '13']
    assert len(json.loads(ok('status', first, '-a', '--json'))['nodes']) == 2
    rc, _, err = ctl('status', second, '-a')
    assert rc == 1 and "this is node 1: only node 0's launcher, at 127.0.0.1, can ask all nodes" in err
    watcher = follow('status', first, '-a', '--watch=0.1')
    shown = iter(watcher.stdout.readline, '')
    assert sum(line.startswith('NODE') for _, line in zip(range(20), shown)) >= 2
    ok('stop', second)
    assert watcher.wait(LIMIT) == 0
    assert [result.rc for result in cluster.end()] == [143, 143]
