"""What a machine or a user may lack, as marks of the tests that need it; each skip says what."""
import ctypes
import functools
import os
import stat
import subprocess

import pytest

from harness import BUILD
from own_mounts import OWN_MOUNTS

CAP_SYS_PTRACE = 19
SET_MEMPOLICY = {'x86_64': 238, 'aarch64': 237}

# Process 1 of a PID namespace, with its own /proc.
PID_1 = [*OWN_MOUNTS, 'unshare', '--pid', '--fork', '--mount-proc', '--kill-child']


def why_not(*argv, limit=30, pass_fds=()):
    """Why a command can't be run, in its own words; '': it can."""
    try:
        trial = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               errors='replace', timeout=limit, check=False,
                               pass_fds=pass_fds)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if trial.returncode == 0:
        return ''
    lines = [line.strip() for line in trial.stderr.splitlines() if line.strip('- ')]
    return ' '.join(lines) or f'{argv[0]} ends with {trial.returncode}'


def mark(why):
    return pytest.mark.skipif(bool(why), reason=why)


def why_no_localhost():
    """Not from getaddrinfo(3), which may wait for DNS."""
    why = why_not('getent', 'ahosts', 'localhost', limit=5)
    return why and 'the name localhost is not known here (/etc/hosts)'


@functools.cache
def why_no_mpirun():
    """Open MPI 4 starts nothing where there is no network but loopback."""
    root = ['--allow-run-as-root'] if os.geteuid() == 0 else []
    return why_not('mpirun', *root, '--oversubscribe', '-n', '1', 'true', limit=60)


def why_no_memory_policy():
    """A container's sandbox forbids it to whoever has no CAP_SYS_NICE."""
    if WHY_NO_NUMA:
        return WHY_NO_NUMA
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(SET_MEMPOLICY[os.uname().machine], 0, None, 0) == 0:
        return ''
    return f'set_mempolicy: {os.strerror(ctypes.get_errno())}'


def why_no_shm():
    """A node with several GPUs is bad where NCCL has no room."""
    there = os.statvfs('/dev/shm')
    return '' if there.f_bavail * there.f_frsize >= 1 << 30 else 'needs 1 GiB of /dev/shm'


def has(capability):
    with open('/proc/self/status', encoding='ascii') as status:
        [held] = [line.split()[1] for line in status if line.startswith('CapEff:')]
    return int(held, 16) >> capability & 1


def for_all(path):
    """Whether every user can reach it."""
    return all(each.stat().st_mode & stat.S_IXOTH for each in (path, *path.parents))


needs_root = mark('' if os.geteuid() == 0 else 'needs root')
needs_ptrace = mark('' if has(CAP_SYS_PTRACE) else 'needs CAP_SYS_PTRACE')
needs_open_build = mark('' if not BUILD.exists() or for_all(BUILD) else
                        'another user can\'t reach what was built')
WHY_NO_MOUNTS = why_not(*OWN_MOUNTS, 'true')
needs_mounts = mark(WHY_NO_MOUNTS)
needs_pids = mark(why_not(*PID_1, 'true'))
needs_localhost = mark(why_no_localhost())
needs_shm = mark(why_no_shm())
WHY_NO_NUMA = '' if os.path.exists('/proc/self/numa_maps') else 'this kernel has no NUMA'
needs_numa = mark(WHY_NO_NUMA)
WHY_NO_MEMORY_POLICY = why_no_memory_policy()
needs_memory_policy = mark(WHY_NO_MEMORY_POLICY)
LOCALHOST = pytest.param('localhost', marks=needs_localhost)


def dropping(*capabilities):
    """Words before a command that root is to run without some capabilities: also not by the
    inheritable ones, which are all there in some containers."""
    less = ','.join(f'-{name}' for name in capabilities)
    return ['setpriv', f'--bounding-set={less}', f'--inh-caps={less}'] if os.geteuid() == 0 else []
