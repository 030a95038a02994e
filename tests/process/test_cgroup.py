"""A cgroup of launchd's own, where one is delegated, and what the kernel ends for want of memory.

Each test makes a cgroup below the one that pytest is in, which only root can do, and removes it.
"""
import contextlib
import os
import pathlib
import re
import signal
import subprocess

import pytest

from control import kill_both
from harness import BUILD, children_of, is_running, native, status_of, until

NOBODY = 65534
LONG = '--shutdown-timeout=600'  # so that nothing but what is tested ends a worker


def own_cgroup(controller):
    """The directory of pytest's own cgroup: version 1's with a controller, or version 2's (''),
    where mounts show trees from their roots on; None elsewhere."""
    paths = {}
    for line in pathlib.Path('/proc/self/cgroup').read_text().splitlines():
        _, controllers, path = line.split(':', 2)
        paths.update(dict.fromkeys(controllers.split(','), path))
    for line in pathlib.Path('/proc/self/mountinfo').read_text().splitlines():
        fields, _, of = line.partition(' - ')
        kind, _, options = of.split(' ', 2)
        root, point = fields.split(' ')[3:5]
        wanted = kind == 'cgroup' and controller in options.split(',') if controller else \
            kind == 'cgroup2'
        if wanted and controller in paths and root == '/' and '/..' not in paths[controller]:
            return pathlib.Path(point + paths[controller].rstrip('/'))
    return None


def processes_in(cgroup):
    """Of version 2, with all cgroups below it; of version 1, its own."""
    found = set()
    for directory, _, _ in os.walk(cgroup):
        with contextlib.suppress(OSError):
            found.update(map(int, (pathlib.Path(directory) / 'cgroup.procs').read_text().split()))
    return found


class Cgroup:
    """An empty cgroup, where `user` is at home, and how a launcher gets there."""

    def __init__(self, path, user=0):
        self.path, self.user = path, user

    def enter(self):
        """Runs between fork and exec."""
        (self.path / 'cgroup.procs').write_text('0')
        if self.user:
            os.setgroups([])
            os.setgid(self.user)
            os.setuid(self.user)

    def cgroups(self):
        """What was made in it, at any depth."""
        return [pathlib.Path(directory) / name for directory, names, _ in os.walk(self.path)
                for name in names]

    def is_clean(self):
        # in this order: a supervisor that leaves its leaf to remove it is missed by the other one
        return not self.cgroups() and not processes_in(self.path)

    def what_is_left(self):
        """In words: its cgroups, and each process in one, with what it does."""
        processes = [f'{pid} ({status.get("Name", "gone")}) {status.get("State")} '
                     f'parent {status.get("PPid")} tracer {status.get("TracerPid")}'
                     for pid in sorted(processes_in(self.path)) for status in [status_of(pid)]]
        return f'cgroups {list(map(str, self.cgroups()))}, processes {processes}'

    def remove(self):
        def gone():
            for pid in processes_in(self.path):  # all of them are the test's
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                for directory in reversed([self.path, *self.cgroups()]):
                    directory.rmdir()
            return not self.path.exists()

        kill = self.path / 'cgroup.kill'
        if kill.exists():
            kill.write_text('1')
        until(gone, 'the test\'s cgroup to be empty')


@contextlib.contextmanager
def made(controller):
    """A new cgroup; skips the test where none can be made."""
    parent = own_cgroup(controller)
    if parent is None:
        pytest.skip(f'no cgroup tree to be seen ({controller or "version 2"})')
    path = parent / f'launchd-pytest-{os.getpid()}'
    try:
        path.mkdir()
    except OSError as error:
        pytest.skip(f'no cgroup can be made: {error.strerror}')
    cgroup = Cgroup(path)
    try:
        if os.geteuid() != 0:
            pytest.skip('needs root')
        yield cgroup
    finally:
        cgroup.remove()


def give(cgroup, place, user):
    """The cgroup becomes the user's, as systemd does it, and the test's directory, too."""
    try:
        subprocess.run([str(BUILD / 'launchd'), '--version'], user=user, group=user,
                       extra_groups=[], cwd='/', capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip('another user can\'t execute what was built')
    cgroup.user = user
    place.give(user)
    for path in (cgroup.path, cgroup.path / 'cgroup.procs'):
        os.chown(path, user, user)


@pytest.fixture
def plain(place, nothing_left):
    """A cgroup of version 2 that is root's and that nobody has marked."""
    with made('') as cgroup:
        yield cgroup


@pytest.fixture(params=['user', 'root'])
def delegated(request, plain, place):
    if not (plain.path / 'cgroup.kill').exists():
        pytest.skip('cgroup.kill is not there (Linux 5.14)')
    place.ready, place.go = place.fifo('ready'), place.fifo('go')
    if request.param == 'user':
        give(plain, place, NOBODY)
    else:
        try:
            os.setxattr(plain.path, 'user.delegate', b'1')
        except OSError as error:
            pytest.skip(f'no mark can be set: {error}')
    return plain


def cgroup_of(pid, names=1):
    """Of version 2, as its last names."""
    lines = pathlib.Path(f'/proc/{pid}/cgroup').read_text().splitlines()
    return '/'.join(next(line for line in lines if line.startswith('0::')).split('/')[-names:])


def names_in(cgroup):
    """But that of a guard, which is there where the kernel's controllers are."""
    return {str(path.relative_to(cgroup.path)) for path in cgroup.cgroups()
            if not path.name.endswith('-guard')}


def supervisor_of(job):
    pids = children_of(job.pid)
    assert len(pids) == 1
    return pids.pop()


def kill_guard(job, place):
    job.kill()
    return -signal.SIGKILL


def kill_supervisor(job, place):
    os.kill(supervisor_of(job), signal.SIGKILL)
    return 137


def terminate(job, place):
    job.signal(signal.SIGTERM)
    return 143


def let_end(job, place):
    place.go.go()
    return 7


ENDS = [terminate, kill_guard, kill_supervisor, let_end]


def end_by(how, job, place, cgroup):
    """Ends the job, and waits until its cgroup is as it was before."""
    rc = how(job, place)
    result = job.end()
    assert result.rc == rc, result
    if how is kill_guard:
        until(cgroup.is_clean, lambda: f'the supervisor to clean up: {cgroup.what_is_left()}')
    assert cgroup.is_clean(), cgroup.what_is_left()


@pytest.mark.parametrize('how', ENDS)
def test_workers_live_in_a_leaf_that_does_not_outlive_the_job(start, place, delegated, how):
    job = start(native('ending', '--nproc_per_node=2', LONG),
                {'TELL': place.ready.path, 'GO': place.go.path, 'END': 'never', 'END_1': 'exit:7'},
                before=delegated.enter)
    workers = place.ready.expect('ready', 2)
    leaf = f'launchd-{job.pid}'
    attempt = f'{leaf}/attempt-0'
    assert names_in(delegated) == {leaf, f'{leaf}/supervisor', attempt, f'{attempt}/rank-0',
                                   f'{attempt}/rank-1'}
    assert {rank: cgroup_of(pid, 3) for rank, pid in workers.items()} == \
        {rank: f'{attempt}/rank-{rank}' for rank in (0, 1)}
    assert cgroup_of(supervisor_of(job), 2) == f'{leaf}/supervisor'
    assert cgroup_of(job.pid) in (delegated.path.name, f'{leaf}-guard')
    end_by(how, job, place, delegated)


def test_a_job_without_failure_leaves_nothing(launch, place, delegated):
    result = launch(native('ending', '--nproc_per_node=2'), {'END': 'exit:0'},
                    before=delegated.enter)
    assert (result.rc, delegated.cgroups()) == (0, [])


def test_what_two_killed_processes_left_goes_with_the_next_launcher(start, launch, place, delegated):
    """And beside it a job that runs keeps its own."""
    ready = {'TELL': place.ready.path, 'END': 'never'}
    killed = start(native('ending', '--nproc_per_node=1', LONG), ready, before=delegated.enter)
    place.ready.expect('ready', 1)
    running = start(native('ending', '--nproc_per_node=1', LONG), ready, before=delegated.enter)
    place.ready.expect('ready', 1)
    its_own = {name for name in names_in(delegated) if name.startswith(f'launchd-{running.pid}')}
    kill_both(killed)
    until(lambda: not processes_in(delegated.path / f'launchd-{killed.pid}'), 'its worker to end')
    assert names_in(delegated) - its_own
    result = launch(native('ending', '--nproc_per_node=1'), {'END': 'exit:0'}, before=delegated.enter)
    assert (result.rc, names_in(delegated)) == (0, its_own)
    end_by(terminate, running, place, delegated)


def test_a_restart_has_a_cgroup_of_its_own(start, place, delegated):
    """And that of the attempt before is gone, with what the workers had made in it."""
    script = place.write('job.sh', FREEZES.format(path=delegated.path, above='', then=f'''
[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exec {native('ending')[-1]}
mkdir -p $own/a/b || exit 98
setsid sleep 1000 &
exit 3'''), 0o755)
    job = start(['--no_python', '--use_env', '--max-restarts=1', '--nproc_per_node=2', LONG,
                 '--leftover-grace=0.1', script], {'TELL': place.ready.path},
                before=delegated.enter)
    workers = place.ready.expect('ready', 2)
    leaf = f'launchd-{job.pid}'
    assert names_in(delegated) == {leaf, *(f'{leaf}/{name}' for name in (
        'supervisor', 'attempt-1', 'attempt-1/rank-0', 'attempt-1/rank-1'))}
    assert cgroup_of(supervisor_of(job), 2) == f'{leaf}/supervisor'
    assert {cgroup_of(pid, 2) for pid in workers.values()} == \
        {'attempt-1/rank-0', 'attempt-1/rank-1'}
    end_by(terminate, job, place, delegated)


@pytest.mark.parametrize('how', [terminate, kill_guard, kill_supervisor])
def test_what_forks_without_end_is_ended(start, place, delegated, how):
    """Nothing shows whose these are, and nobody is quick enough to signal them one by one."""
    job = start(native('fork_chain', '--shutdown-timeout=0.5'),
                {'TELL': place.ready.path, 'STAY': '1'}, before=delegated.enter)
    place.ready.expect('ready', 1)
    end_by(how, job, place, delegated)


def test_what_forks_without_end_does_not_outlive_a_worker_that_ended_with_0(launch, place,
                                                                             delegated):
    result = launch(native('fork_chain', '--leftover-grace=0.2'), before=delegated.enter)
    assert result.rc == 0, result
    assert delegated.is_clean()


@pytest.mark.parametrize('how', [terminate, kill_guard, kill_supervisor])
def test_cgroups_that_workers_make_go_with_the_leaf(start, place, delegated, how):
    script = place.write('job.sh', f'''#!/bin/sh
leaf={delegated.path}$(sed -n 's|^0::.*{delegated.path.name}||p' /proc/self/cgroup)
mkdir -p $leaf/a/b && echo 0 >$leaf/a/b/cgroup.procs || exit 98
exec {native('ending')[-1]}
''', 0o755)
    job = start(['--no_python', '--use_env', '--shutdown-timeout=5', script],
                {'TELL': place.ready.path}, before=delegated.enter)
    worker = place.ready.expect('ready', 1)[0]
    assert cgroup_of(worker, 4) == 'attempt-0/rank-0/a/b' and len(names_in(delegated)) == 6
    end_by(how, job, place, delegated)


FREEZES = '''#!/bin/sh
own={path}$(sed -n 's|^0::.*{path.name}||p' /proc/self/cgroup)
leaf=$own{above}
{then}
'''


UP = '/../..'  # from a worker's cgroup to that of all


def expires(job, place, delegated):
    assert job.end(30).rc == 124
    assert delegated.is_clean()


@pytest.mark.parametrize('how, option', [
    (terminate, LONG), (kill_guard, LONG), (kill_supervisor, LONG), (expires, '--max-runtime=3')])
def test_a_leaf_that_a_worker_freezes_is_thawed(start, place, delegated, how, option):
    """Nothing in it would take a signal, and the supervisor see no time pass."""
    program, now = native('ending')[-1], place.fifo('now')
    script = place.write('job.sh', FREEZES.format(path=delegated.path, above=UP, then=f'''
[ $RANK = 1 ] && exec {program}
sleep 1000 &
read -r _ <{now.path}
echo 1 >$leaf/cgroup.freeze
echo >{place.path}/thawed
wait'''), 0o755)
    job = start(['--no_python', '--use_env', '--nproc_per_node=2', option, script],
                {'TELL': place.ready.path}, before=delegated.enter)
    place.ready.expect('ready', 1)
    os.write(now.fd, b'\n')
    until((place.path / 'thawed').exists, 'it to go on')
    if how is expires:
        expires(job, place, delegated)
    else:
        end_by(how, job, place, delegated)


def test_a_leaf_that_is_frozen_again_and_again_ends_the_job(start, place, delegated):
    script = place.write('job.sh', FREEZES.format(path=delegated.path, above=UP, then=f'''
echo "0 $$ ready" >{place.ready.path}
while :; do echo 1 >$leaf/cgroup.freeze; done'''), 0o755)
    job = start(['--no_python', '--use_env', LONG, script], {'TELL': place.ready.path},
                before=delegated.enter)
    place.launcher_killed = True
    end = job.end(60)
    assert end.rc == 137 and 'frozen again and again' in end.err, end
    assert delegated.is_clean()


def test_a_worker_in_a_frozen_cgroup_of_its_own_gets_its_signal(start, place, delegated):
    script = place.write('job.sh', FREEZES.format(path=delegated.path, above='', then=f'''
mkdir -p $leaf/a/b && echo 0 >$leaf/a/b/cgroup.procs || exit 98
exec {native('report_signals')[-1]}'''), 0o755)
    job = start(['--no_python', '--use_env', LONG, script], {'TELL': place.ready.path},
                before=delegated.enter)
    place.ready.expect('ready', 1)
    [b] = [path for path in delegated.cgroups() if path.name == 'b']
    (b / 'cgroup.freeze').write_text('1')
    until(lambda: 'frozen 1' in (b / 'cgroup.events').read_text(), 'it to freeze')
    job.signal(signal.SIGTERM)
    place.ready.expect('SIGTERM', 1)
    assert job.end().rc == 143


@pytest.mark.parametrize('how', [terminate, kill_guard, kill_supervisor])
def test_a_launcher_in_a_worker_has_a_leaf_in_the_leaf(start, place, delegated, how):
    if delegated.user == 0:
        pytest.skip('the outer leaf is not marked as delegated: the inner launchd makes none')
    inner = [str(BUILD / 'launchd'), '--shutdown-timeout=5', *native('ending')]
    job = start(['--no_python', '--use_env', '--shutdown-timeout=5', *inner],
                {'TELL': place.ready.path}, before=delegated.enter)
    place.ready.expect('ready', 1)
    outer, inner = sorted((path for path in delegated.cgroups() if re.fullmatch(r'launchd-\d+', path.name)),
                          key=lambda path: len(path.parts))
    assert outer.name == f'launchd-{job.pid}' and inner.parent == outer / 'attempt-0' / 'rank-0'
    place.launcher_killed = how is not terminate  # the inner one, with its run directory
    end_by(how, job, place, delegated)


def test_nothing_beside_the_leaf_is_killed(start, place, delegated):
    """A process in the cgroup that launchd was started in, and another launchd's workers there."""
    beside = subprocess.Popen(['sleep', '1000'], preexec_fn=delegated.enter, cwd='/')
    try:
        job, other = [start(native('ending', LONG), {'TELL': place.ready.path},
                            before=delegated.enter) for _ in range(2)]
        workers = [place.ready.line()[1] for _ in range(2)]
        assert {name for name in names_in(delegated) if '/' not in name} == \
            {f'launchd-{job.pid}', f'launchd-{other.pid}'}
        place.launcher_killed = place.orphans_expected = True
        os.kill(supervisor_of(job), signal.SIGKILL)
        assert job.end().rc == 137
        assert all(name.startswith(f'launchd-{other.pid}') for name in names_in(delegated))
        assert beside.poll() is None and sum(map(is_running, workers)) == 1
        other.signal(signal.SIGTERM)
        assert other.end().rc == 143
        assert beside.poll() is None and not delegated.cgroups()
    finally:
        beside.kill()
        beside.wait()


@pytest.mark.parametrize('user', [0, NOBODY])
def test_where_nothing_is_delegated_no_cgroup_is_made(start, place, plain, user):
    """Root could make one everywhere; that does not make it root's to divide."""
    ready = place.fifo('ready')
    if user:
        give(plain, place, user)
        os.chown(plain.path, 0, 0)
    job = start(native('ending'), {'TELL': ready.path}, before=plain.enter)
    worker = ready.expect('ready', 1)[0]
    assert not plain.cgroups()
    assert {cgroup_of(pid) for pid in (worker, job.pid, supervisor_of(job))} == {plain.path.name}
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143


@pytest.fixture
def small(place, nothing_left):
    """A cgroup with 64 MiB of memory."""
    version_1 = own_cgroup('memory') is not None
    with made('memory' if version_1 else '') as cgroup:
        limits = [('memory.limit_in_bytes', 64 << 20), ('memory.memsw.limit_in_bytes', 64 << 20),
                  ('memory.max', 64 << 20), ('memory.swap.max', 0)]
        limits = [(cgroup.path / name, limit) for name, limit in limits
                  if (cgroup.path / name).exists()]
        if not limits:
            pytest.skip('the memory controller is not for us')
        for file, limit in limits:
            file.write_text(str(limit))
        yield cgroup


def run_out_of_memory(start, place, cgroup):
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(native('glutton', '--nproc_per_node=3'),
                {'TELL': ready.path, 'GO': go.path, 'TAKER': '1'}, before=cgroup.enter)
    ready.expect('ready', 3)
    go.go()
    result = job.end()
    assert result.rc == 137, result
    assert 'SIGKILL' in result.err and re.search('memory|OOM', result.err)
    for line in result.err.splitlines():  # the others were ended by launchd
        assert not re.search('rank [02].*(memory|OOM)', line)
    return result.err


def test_want_of_memory_is_named(start, place, small):
    assert 'likely' not in run_out_of_memory(start, place, small)


def test_want_of_memory_is_likely_where_others_share_the_cgroup(start, place, small):
    other = subprocess.Popen(['sleep', '1000'], preexec_fn=small.enter)
    try:
        assert 'likely' in run_out_of_memory(start, place, small)
    finally:
        other.kill()
        other.wait()


def test_a_sigkill_by_somebody_is_no_want_of_memory(launch, place, small):
    result = launch(native('ending', '--nproc_per_node=2'), {'END_1': 'signal:9'},
                    before=small.enter)
    assert result.rc == 137 and 'SIGKILL' in result.err
    assert not re.search('memory|OOM', result.err)
