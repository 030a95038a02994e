"""scene.py - a job of workers that cling to life, one or more on each host, and what is left of it.

On each host all of them, and whatever they start, hold a FIFO open for writing; its reader finds
the end when the last of them has gone, by the kernel's own count.
"""
import contextlib
import os
import re
import select
import signal
import time

from cluster import HOME
from harness import native, signal_if_there, status_of, until

LIMIT_S = 30  # for what takes milliseconds on an idle machine
# What runs on a host for the launcher.
LAUNCHERS = re.compile(
    r"mpirun|orted|sh -c +orted|mpiexec|(sh -c )?\S*hydra_pmi_proxy|"
    r"munged|(\S*/sbin/|: )?slurm|srun|\S*bash \S*/slurm_script")

# What stands between the launcher and launchd.
AROUND = {
    "nothing": (),
    "sh": ("sh", "-c", '"$@"; echo never', "sh"),
    "bash": ("bash", "-c", '"$@"; echo never', "bash"),
    "pipe": ("sh", "-c", '"$@" 2>&1 | cat; echo never', "sh"),
    "tee": ("bash", "-c", 'exec > >(tee /tmp/log) 2>&1; "$@"; echo never', "bash"),
    "file": ("sh", "-c", '"$@" >/tmp/log 2>&1; echo never', "sh"),
}


class Scene:
    """Starts the job by start(command, variables), a Popen, and waits until all are at work."""

    def __init__(self, hosts, start, *options, nproc=1, around=(), nodes=None, label="",
                 **variables):
        self.hosts = hosts
        self.nodes = len(hosts.names) if nodes is None else nodes
        self.told, tell = hosts.fifo(f"tell{label}")
        self.go, wait = hosts.fifo(f"go{label}")
        self.began = time.monotonic()
        self.witnesses = []
        for node in range(self.nodes):
            path = hosts.home / f"witness{label}.{node}"
            os.mkfifo(path)
            path.chmod(0o666)  # workers may be anyone's
            self.witnesses.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        for fifo in (self.told, self.go):
            os.chmod(fifo.path, 0o666)
        launchd = hosts.launchd(f"--nproc_per_node={nproc}", *options, *native("clinging"))
        self.job = start([*around, *map(str, launchd)], {
            "MASTER_ADDR": hosts.addresses[0], "TELL": tell, "GO": wait,
            "WITNESS": f"{HOME}/witness{label}", **variables})
        self.pids = self.told.expect("ready", nproc * self.nodes)

    def close(self):
        for witness in self.witnesses:
            os.close(witness)

    @property
    def pid(self):
        """Of mpirun or its like."""
        return self.hosts.pid_of(self.job)

    def find(self, node, pattern):
        """The one process of a node whose command line begins so."""
        [pid] = [p for p, line in self.hosts.processes(node) if re.match(pattern, line)]
        return pid

    def supervisor(self, node):
        [pid] = self.hosts.supervisors(node)
        return pid

    def guard(self, node):
        return parent_of(self.supervisor(node))

    def worker(self, rank):
        """A worker knows its pid as the hosts' namespace has it."""
        for pid, _ in self.hosts.processes():
            if status_of(pid).get("NSpid", "").split()[-1:] == [str(self.pids[rank])]:
                return pid
        raise AssertionError(f"rank {rank} does not live")

    @staticmethod
    def is_stopped(pid):
        return stat_of(pid)[0] == "T"

    def kill(self, pid, number=signal.SIGKILL, group=False):
        self.began = time.monotonic()
        signal_if_there(pid, number, os.killpg if group else os.kill)

    def gone(self, *nodes):
        """Waits until no worker of these nodes nor anything they started lives; seconds since
        kill()."""
        for node in nodes:
            ready = select.select([self.witnesses[node]], [], [], LIMIT_S)[0]
            assert ready, f"on n{node} lives: {self.hosts.processes(node)}"
        return time.monotonic() - self.began

    def lives(self, node):
        """Whether a worker, or what one started, is there."""
        return not select.select([self.witnesses[node]], [], [], 0)[0]

    def left(self, node, spared=LAUNCHERS):
        """What is on a node beside the launcher's own processes."""
        return [line for _, line in self.hosts.processes(node) if not spared.match(line)]

    def nothing_left(self, *nodes, spared=LAUNCHERS):
        for node in nodes or range(self.nodes):
            until(lambda: not self.left(node, spared),
                  lambda: f"the end of everything on n{node}, but there is "
                          f"{self.left(node, spared)}")

    def hear(self, count):
        """The next lines of the workers: {(rank, text)}."""
        lines = [self.told.line() for _ in range(count)]
        heard = {(rank, text) for rank, _, text in lines}
        assert len(heard) == count, lines
        return heard

    def hear_until(self, rank, text):
        while self.hear(1) != {(rank, text)}:
            pass

    def silent(self):
        return not self.told.rest and not select.select([self.told.fd], [], [], 0)[0]

    def end(self):
        return self.hosts.finish(self.job)


class Watched:
    """A process that may have ended when it is to be killed; its number is never another's."""

    def __init__(self, pid):
        self.fd = os.pidfd_open(pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def kill(self, number=signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.fd, number)


def stat_of(pid):
    """State, parent, process group of a process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        state, parent, group = file.read().rpartition(")")[2].split()[:3]
    return state, int(parent), int(group)


def parent_of(pid):
    return stat_of(pid)[1]


def group_of(pid):
    return stat_of(pid)[2]
