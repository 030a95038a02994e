"""cluster.py - simulated hosts on one machine, for tests with several nodes. Needs root.

A cluster is one PID, network and mount namespace with a bridge in it. A host is a network, UTS and
mount namespace in there, with its own address, name, /tmp and /dev/shm. All hosts see one process
table, because mpirun's remote shell must find the host it is to enter, and one directory,
/run/home, as the nodes of a real cluster share a file system.

Nothing has to be cleaned up: the cluster's process 1 ends when the pipe to this process closes,
whatever happened to us. The kernel then kills every process in the PID namespace, and with the
last of them go namespaces, mounts and network devices. No name is taken outside of them, so
clusters of parallel test runs don't meet.
"""
import os
import signal
import subprocess
import sys
from pathlib import Path

LIMIT_S = 120  # for whatever takes a few seconds on an idle machine
NETWORK = "10.77.0"
HOME = "/run/home"  # the shared directory, as the hosts name it
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# Process 1: reaps what is left to it, as an init does, until its standard input ends.
INIT = "import signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); sys.stdin.read()"

# The cluster; arguments: python, the text above, directories to share that lie in /tmp.
CLUSTER = """set -e
python=$1 init=$2
shift 2
mount -t tmpfs tmpfs /run
mkdir /run/home /run/share
: >/run/shared
for dir; do
    n=$(grep -c . /run/shared || true)
    mkdir "/run/share/$n"
    mount --rbind "$dir" "/run/share/$n"
    echo "$dir" >>/run/shared
done
ip link set lo up
ip link add switch type bridge
ip link set switch up
echo ready
exec "$python" -c "$init"
"""

# A host; arguments: name, address.
HOST = """set -e
hostname "$1"
mount --bind /run/hosts /etc/hosts
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
n=0
while read -r dir; do
    mkdir -p "$dir"
    mount --rbind "/run/share/$n" "$dir"
    n=$((n + 1))
done </run/shared
ip link add eth0 type veth peer name "$1" netns 1
ip address add "$2/24" dev eth0
ip link set lo up
ip link set eth0 up
nsenter --target 1 --net -- ip link set "$1" master switch up
echo $$ >"/run/$1.pid"
readlink /proc/self/ns/uts
exec sleep infinity
"""

# What mpirun calls for ssh: [-option...] HOST COMMAND... As with ssh, no environment goes along.
REMOTE_SHELL = f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
pid=$(cat "/run/$1.pid") || exit 255
shift
exec nsenter --target "$pid" --net --uts --mount -- \\
    env -i -C / PATH={PATH} HOME=/root sh -c "$*"
"""


class ClusterError(Exception):
    """The cluster can't be made, or a command in it did not end."""


def why_impossible():
    """Why this machine or user can't have a cluster; None: it can."""
    if os.geteuid() != 0:
        return "simulated hosts need root"
    for tool in ("unshare", "nsenter", "ip", "mount"):
        if not any(os.access(f"{d}/{tool}", os.X_OK) for d in PATH.split(":")):
            return f"simulated hosts need {tool}"
    trial = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount", "--net", "--uts", "--mount-proc",
         "ip", "link", "add", "switch", "type", "bridge"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if trial.returncode:
        return f"simulated hosts can't be made here: {trial.stderr.strip()}"
    return None


def _child_of(pid):
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


class Cluster:
    """Hosts n0, n1, ... `home` is the shared directory as this process names it.

    shared: directories that hosts must see even if they lie in /tmp, which each host has anew.
    """

    def __init__(self, count, shared=()):
        self.names = [f"n{i}" for i in range(count)]
        self.addresses = [f"{NETWORK}.{i + 1}" for i in range(count)]
        self._shared = sorted({str(Path(d).resolve()) for d in shared})
        self._started = []  # the cluster itself and its hosts
        self._commands = []
        self._uts = []

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def _spawn(self, argv, stdin):
        """Starts a long-lived process and waits for its first line, which is returned."""
        process = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self._started.append(process)
        line = process.stdout.readline().strip()
        if not line:
            raise ClusterError(f"a simulated host did not start: {process.stderr.read()}")
        return line

    def _start(self):
        masked = [d for d in self._shared if d.startswith(("/tmp/", "/dev/shm/"))]
        self._spawn(["unshare", "--pid", "--fork", "--mount", "--net", "--uts", "--mount-proc",
                     "sh", "-c", CLUSTER, "sh", sys.executable, INIT, *masked], subprocess.PIPE)
        self.init = _child_of(self._started[0].pid)
        run = Path(f"/proc/{self.init}/root/run")
        self.home = run / "home"
        hosts = ["127.0.0.1 localhost", *map(" ".join, zip(self.addresses, self.names))]
        (run / "hosts").write_text("\n".join(hosts) + "\n")
        (run / "rsh").write_text(REMOTE_SHELL)
        (run / "rsh").chmod(0o755)
        for name, address in zip(self.names, self.addresses):
            self._uts.append(self._spawn(
                [*self._enter(), "unshare", "--net", "--uts", "--mount",
                 "sh", "-c", HOST, "sh", name, address], subprocess.DEVNULL))
        self._holders = {_child_of(process.pid) for process in self._started[1:]}

    def _enter(self):
        return ["nsenter", "--target", str(self.init), "--pid", "--net", "--uts", "--mount", "--"]

    def close(self):
        """Ends everything on all hosts; returns when it is gone."""
        if not self._started:
            return
        self._started[0].stdin.close()
        for process in self._started + self._commands:
            try:
                process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for file in (process.stdin, process.stdout, process.stderr):
                if file:
                    file.close()
        self._started, self._commands = [], []

    def popen(self, host, argv, env=None, **options):
        """Starts a command on host number `host`, in /run/home, in a session of its own and with
        nothing of our environment."""
        pid = (self.home.parent / f"{self.names[host]}.pid").read_text().strip()
        variables = {"PATH": PATH, "HOME": "/root", **(env or {})}
        if "ASAN_OPTIONS" in os.environ:  # see conftest.py
            variables["ASAN_OPTIONS"] = os.environ["ASAN_OPTIONS"] + ":detect_leaks=0"
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                   "stderr": subprocess.PIPE, "text": True, **options}
        self._commands.append(subprocess.Popen(
            [*self._enter(), "nsenter", "--target", pid, "--net", "--uts", "--mount", "--",
             "setsid", "env", "-i", "-C", HOME, *(f"{k}={v}" for k, v in variables.items()),
             *map(str, argv)], **options))
        return self._commands[-1]

    def finish(self, process):
        """Waits for a command of popen(); a CompletedProcess."""
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            left = self.processes()
            self.kill_all()
            out, err = process.communicate()
            raise ClusterError(f"no end after {LIMIT_S} s; processes: {left}\n{out}\n{err}") \
                from None
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def run(self, host, argv, env=None):
        return self.finish(self.popen(host, argv, env))

    @staticmethod
    def pid_of(process):
        """The command's own pid, not that of the nsenter around it."""
        return _child_of(process.pid)

    def signal(self, process, number):
        os.kill(self.pid_of(process), number)

    def processes(self, host=None):
        """(pid, command line) of what runs on one host or on all; zombies don't count."""
        wanted = self._uts if host is None else [self._uts[host]]
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) in self._holders:
                continue
            try:
                if os.readlink(entry / "ns/uts") in wanted:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    found.append((int(entry.name), b" ".join(words).decode().strip()))
            except OSError:
                continue  # gone meanwhile
        return [p for p in found if p[1]]

    def kill_all(self):
        for pid, _ in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
