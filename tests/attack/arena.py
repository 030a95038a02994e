"""What the attacks are made of: a job with helpers that are hard to end, the witness that tells when
all of it is gone, and bystanders that must outlive it.

Nothing here looks for processes by name, environment or session, to judge: the kernel's count of
who holds a FIFO open does. Needs no pytest run, so that the campaign can use it by hand.
"""
import mmap
import os
import pathlib
import select
import shutil
import signal
import struct
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'process'))
from harness import (BUILD, LIMIT, Job, Place, children_of, is_running, signal_if_there,  # noqa: E402,F401
                     status_of, until)
from needs import for_all  # noqa: E402

NOBODY = 65534
# Not what is asked (1 s), for slow machines that run other tests: the worst is measured and said.
GONE_LIMIT = 10.0


class Handle:
    """A process that a signal reaches, or nobody: its number may be another's by then."""

    def __init__(self, pid):
        self.pid = pid
        self.fd = os.pidfd_open(pid)
        self.poll = select.poll()
        self.poll.register(self.fd, select.POLLIN)

    def send(self, number):
        """Whether it was still there."""
        try:
            signal.pidfd_send_signal(self.fd, number)
            return True
        except ProcessLookupError:
            return False

    def stop(self):
        self.send(signal.SIGSTOP)
        until(lambda: status_of(self.pid).get('State', 'Z')[0] in 'TZ', 'it to stop')

    def ended(self, wait=0.0):
        return bool(self.poll.poll(wait * 1000))

    def close(self):
        os.close(self.fd)


class Witness:
    """A FIFO that every process of a job holds open for writing, from before its birth on."""

    def __init__(self, path):
        self.path = str(path)
        os.mkfifo(self.path, 0o666)
        os.chmod(self.path, 0o666)
        self.fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self.poll = select.poll()
        self.poll.register(self.fd, select.POLLIN)

    def is_gone(self, wait=0.0):
        """Whether the last process that had it open is gone. False before the first had."""
        return any(event & select.POLLHUP for _, event in self.poll.poll(wait * 1000))

    def holders(self):
        """Who has it open: to name and to end what is left, when a test has failed already."""
        mine, found = os.stat(self.path), {}
        for entry in pathlib.Path('/proc').iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                with os.scandir(entry / 'fd') as fds:
                    if any(os.path.samestat(os.stat(fd.path), mine) for fd in fds):
                        status = status_of(int(entry.name))
                        found[int(entry.name)] = f"{status['Name']} ({status['State']})"
            except (OSError, KeyError):
                continue
        return found

    def described(self):
        found = self.holders()
        return f'{len(found)} processes, as {list(found.items())[:8]}'

    def end_holders(self, limit=30.0):
        end = time.monotonic() + limit
        while not self.is_gone() and time.monotonic() < end:
            for pid in self.holders():
                signal_if_there(pid, signal.SIGKILL)

    def close(self):
        os.close(self.fd)


def programs(path, user):
    """Where the programs are for a user, and for a helper that becomes nobody: neither may be able
    to reach the build directory."""
    if user is None and for_all(BUILD):
        return BUILD, BUILD / 'tests' / 'workers'
    home = path / 'bin'
    if not home.exists():
        home.mkdir()
        shutil.copy(BUILD / 'launchd', home)
        for name in ('stubborn', 'ending', 'act'):
            shutil.copy(BUILD / 'tests' / 'workers' / name, home)
        for entry in (path, *path.rglob('*')) if user is not None else ():
            os.chown(entry, user, user)
    return home, home


def as_user(user):
    return () if user is None else (
        'setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups', '--')


def sanitizers():
    """With sanitizers: crashes are the kernel's, and no process that looks for leaks is there to
    be left behind when a signal comes at the very end."""
    return {'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') +
            ':detect_leaks=0:handle_segv=0:handle_sigbus=0'}


class Attack:
    """A job of workers that `end` says, each with helpers, and a bystander that launchd's own
    process had as a child before it became launchd."""

    def __init__(self, place, helpers, *, workers=2, options=(), env=None, user=None, cgroup=None,
                 program='ending', around=(), bystander=True):
        self.place, self.cgroup = place, cgroup
        for path in (place.path, place.tmp, place.out):
            path.chmod(0o777)
        launchd, home = programs(place.path, user)
        self.witness = Witness(place.path / 'witness')
        self.bystander = None
        wrap, before = as_user(user), None
        if bystander:
            # in launchd's session and process group, and of the same name as the workers
            script = f'env -u TELL END=never {home}/ending & echo $! >{place.path}/pid; exec "$@"'
            wrap = (*wrap, 'sh', '-c', script, 'sh')
        if cgroup:
            def before():
                (cgroup / 'cgroup.procs').write_text('0')
        line = [*options, f'--nproc_per_node={workers}', '--no_python', '--use_env',
                str(home / 'stubborn'), str(home / program)]
        env = {'WITNESS': self.witness.path, 'HELPERS': helpers, **sanitizers(), **(env or {})}
        if around:  # mpirun and its words
            line = [*around[1:], str(launchd / 'launchd'), *line]
        self.job = Job(place, line, env, wrap=wrap, before=before,
                       program=pathlib.Path(around[0]) if around else launchd / 'launchd')
        if bystander:
            pid = until(lambda: (place.path / 'pid').exists() and
                        (place.path / 'pid').read_text().strip(), 'the bystander')
            self.bystander = int(pid)

    @property
    def guard(self):
        return self.job.pid

    def supervisor(self):
        """The guard's other child, while workers run."""
        found = children_of(self.guard) - {self.bystander}
        assert len(found) == 1, found
        return found.pop()

    def wait_gone(self, limit=GONE_LIMIT):
        """Seconds until nothing is left; fails if something is."""
        start = time.monotonic()
        assert self.witness.is_gone(limit), f'left behind: {self.witness.described()}'
        return time.monotonic() - start

    def end_bystander(self):
        """Whether the bystander has outlived the job; ends it."""
        if self.bystander is None:
            return True
        pid, self.bystander = self.bystander, None
        lives = is_running(pid)
        if lives:
            signal_if_there(pid, signal.SIGKILL)
        until(lambda: not is_running(pid), 'the bystander to end')
        reap(pid)
        return lives

    def close(self):
        """Leaves nothing behind, however the test went. Returns what was left, in words."""
        self.end_bystander()
        if not self.job.files[0].closed:
            self.job.close()
        left = '' if self.witness.is_gone() else self.witness.described()
        if left:
            self.witness.end_holders()
        self.witness.close()
        return left


def reap(pid):
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # launchd had it as a child, and ended later


def cgroup2_mount():
    for line in pathlib.Path('/proc/self/mountinfo').read_text().splitlines():
        left, _, right = line.partition(' - ')
        if right.split()[0] == 'cgroup2':
            return pathlib.Path(left.split()[4])
    return None


def make_cgroup(user=None):
    """A delegated cgroup of version 2 of our own, or None where there can't be one."""
    top = cgroup2_mount()
    if not top or os.geteuid() != 0:
        return None
    own = pathlib.Path('/proc/self/cgroup').read_text().partition('0::')[2].split('\n')[0]
    for parent in (top / own.lstrip('/'), top):
        try:
            made = pathlib.Path(tempfile.mkdtemp(prefix='launchd-test-', dir=parent))
        except OSError:
            continue
        made.chmod(0o755)
        if user is None:
            try:
                # as systemd marks one that is root's; CAP_SYS_ADMIN may
                os.setxattr(made, 'trusted.delegate', b'1')
            except OSError:
                made.rmdir()
                return None
        else:
            for path in (made, *(made / f'cgroup.{end}' for end in
                                 ('procs', 'threads', 'subtree_control'))):
                os.chown(path, user, user)
        return made
    return None


def end_cgroup(path):
    """Removes it with what is in it; returns the cgroups that were left below it."""
    below = sorted((p for p in path.rglob('*') if p.is_dir()), reverse=True)
    if below:
        (path / 'cgroup.kill').write_text('1')
    for each in (*below, path):
        until(lambda: 'populated 0' in (each / 'cgroup.events').read_text(), 'an empty cgroup')
        each.rmdir()
    return below




class Page:
    """What workers of tests/workers/act.c share with the test: their start, and when each died."""
    HEAD, EACH, WORKERS = struct.Struct('=qq'), struct.Struct('=qq'), 1024

    def __init__(self, path):
        self.path = str(path)
        with open(path, 'w+b') as file:
            file.truncate(self.HEAD.size + self.EACH.size * self.WORKERS)
            self.map = mmap.mmap(file.fileno(), 0)
        os.chmod(path, 0o666)

    def ready(self):
        return self.HEAD.unpack_from(self.map)[1]

    def start(self, after_s):
        """Returns when, by time.monotonic_ns()."""
        start = time.monotonic_ns() + int(after_s * 1e9)
        struct.pack_into('=q', self.map, 0, start)
        return start

    def pid(self, rank):
        return self.EACH.unpack_from(self.map, self.HEAD.size + self.EACH.size * rank)[0]

    def deaths(self, workers):
        """Rank: when it died, by time.monotonic_ns(); of those that died by themselves."""
        found = {}
        for rank in range(workers):
            died = self.EACH.unpack_from(self.map, self.HEAD.size + self.EACH.size * rank)[1]
            if died:
                found[rank] = died
        return found

    def close(self):
        self.map.close()
