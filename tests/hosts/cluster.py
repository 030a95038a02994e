"""cluster.py - simulated hosts on one machine, for tests with several nodes. Needs root.

A cluster is one PID, network and mount namespace with a switch in it. A host is a network, UTS and
mount namespace in there, if wanted a time namespace as well, with its own address, name, /tmp and
/dev/shm. All hosts see one process table, because mpirun's remote shell must find the host it is to
enter, and one directory, /run/home, as the nodes of a real cluster share a file system. The switch
is a bridge, or netem.c, which can lose and delay what it carries.

Nothing has to be cleaned up: the cluster's process 1 ends when the pipe to this process closes,
whatever happened to us. It takes the hosts' control groups along, the only things outside of the
namespaces; the kernel then kills every process in the PID namespace, and with the last of them go
namespaces, mounts and network devices. Clusters of parallel test runs don't meet.
"""
import ctypes
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

from netem import Netem
from own_mounts import OWN_MOUNTS
from waiting import read_if_there, signal_if_there, until, until_group

LIMIT_S = 120  # for whatever takes a few seconds on an idle machine
NETWORK = "10.{}.0.{}"
NETWORK6 = "fd{}::{:x}"
FIRST_NETWORK = 77
HOME = "/run/home"  # the shared directory, as the hosts name it
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
MPIRUNS = 2  # at once, of all tests: when there were four, Open MPI itself hung now and then
NAMESPACES = ["unshare", "--pid", "--fork", "--mount", "--net", "--uts", "--mount-proc"]

# Process 1: reaps what is left to it, as an init does, until its standard input ends. A control
# group can be removed when the last process in it is gone; a process that was on its way in when
# all were killed comes in meanwhile. The kernel reports both in cgroup.events.
INIT = """import os, pathlib, select, signal, sys, time
for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
sys.stdin.read()
top = pathlib.Path(sys.argv[1])
if not top.name or not top.exists():
    sys.exit()
events = os.open(top / "cgroup.events", os.O_RDONLY)
poll = select.poll()
poll.register(events, select.POLLPRI)
end = time.monotonic() + 30
while time.monotonic() < end:
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.pread(events, 4096, 0)  # poll() reports what changes from here on
    try:
        for below in sorted(filter(pathlib.Path.is_dir, top.rglob("*")), reverse=True):
            below.rmdir()
        top.rmdir()
        break
    except OSError:
        poll.poll(1000)
"""

# The cluster; arguments: python, the text above, control group, networks of bridges, directories to
# share that lie in /tmp.
CLUSTER = """set -e
cd /
python=$1 init=$2 group=$3 bridges=$4
shift 4
mount -t tmpfs tmpfs /run
mkdir /run/home /run/share
if [ ! -e /etc/hosts ]; then
    cp -a /etc /run/etc
    : >/run/etc/hosts
    mount --bind /run/etc /etc
fi
: >/run/shared
for dir; do
    n=$(grep -c . /run/shared || true)
    mkdir "/run/share/$n"
    mount --rbind "$dir" "/run/share/$n"
    echo "$dir" >>/run/shared
done
ip link set lo up
for n in $bridges; do
    ip link add "switch$n" type bridge
    ip link set "switch$n" up
done
echo ready
exec "$python" -c "$init" "$group"
"""

# A host; arguments: name, networks of bridges. The test says when its devices are there.
HOST = """set -e
cd /
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
for n in $2; do
    ip link add "eth$n" type veth peer name "$1.$n" netns 1
    nsenter --target 1 --net -- ip link set "$1.$n" master "switch$n" up
done
echo $$ >"/run/$1.pid"
readlink /proc/self/ns/uts
read -r go
ip -batch "/run/$1.ip"
echo up
exec sleep infinity </dev/null
"""

# Goes to a host's control group, if there is one, and becomes what follows.
INTO_GROUP = '[ ! -e "$0" ] || echo 0 >"$0/cgroup.procs"; exec "$@"'

# Becomes the parent of what follows. An nsenter that has forked stops itself with its child, for good, and so never
# reaps it; a shell, which is outside of the child's PID namespace, just waits.
WAITING = ["sh", "-c", '"$@"; exit $?', "sh"]

# What mpirun calls for ssh: [-option...] [USER@]HOST[.DOMAIN] COMMAND... As with ssh, no environment goes along.
REMOTE_SHELL = f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
name=${{1#*@}}
name=${{name%%.*}}
pid=$(cat "/run/$name.pid") || exit 255
group=$(cat "/run/group")/$name more=$(cat "/run/$name.env")
shift
[ ! -e "$group" ] || echo 0 >"$group/cgroup.procs"
exec nsenter --target "$pid" --net --uts --mount --root --wd --time -- \
    env -i -C / PATH={PATH} HOME=/root $more sh -c "$*"
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
        [*OWN_MOUNTS, *NAMESPACES, "ip", "link", "add", "switch", "type", "bridge"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if trial.returncode:
        return f"simulated hosts can't be made here: {trial.stderr.strip()}"
    return None


def _child_of(pid):
    """Its first child. ProcessLookupError: it has none, or has ended."""
    children = read_if_there(f"/proc/{pid}/task/{pid}/children").split()
    if not children:
        raise ProcessLookupError(f"process {pid} has no child")
    return int(children[0])


def _states(pid):
    """Of its threads."""
    found = (read_if_there(stat).rpartition(") ")[2] for stat in Path(f"/proc/{pid}/task").glob("*/stat"))
    return {stat[0] for stat in found if stat}


def _make_group():
    """A control group of version 2 for the cluster, or None where there can't be one."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()
              if line.split()[2] == "cgroup2"]
    own = Path("/proc/self/cgroup").read_text().partition("0::")[2].split("\n")[0]
    for parent in (f"{mounts[0]}{own}", mounts[0]) if mounts else ():
        made = Path(parent) / f"launchd-hosts-{secrets.token_hex(6)}"
        try:
            made.mkdir()
        except OSError:
            continue
        if (made / "cgroup.freeze").exists() and (made / "cgroup.kill").exists():
            return made
        made.rmdir()
    return None


def has_groups():
    """Whether each host of a cluster has a control group of its own."""
    made = _make_group()
    if made:
        made.rmdir()
    return bool(made)


def mpirun_slot():
    """Waits for one of MPIRUNS slots; it is held until the returned socket is closed."""
    names = [f"\0launchd-tests-mpirun-{number}" for number in range(MPIRUNS)]
    while True:
        for name in names:
            slot = socket.socket(socket.AF_UNIX)
            try:
                slot.bind(name)
                slot.listen(1024)
                return slot
            except OSError:  # it is taken
                slot.close()
        _wait_until_one_closes(names)


def _wait_until_one_closes(names):
    """Until one of these listening sockets is closed, which hangs up on all that have connected to it."""
    poll, connected = select.poll(), [socket.socket(socket.AF_UNIX) for _ in names]
    try:
        for one, name in zip(connected, names):
            one.connect(name)
            poll.register(one, select.POLLIN)
        poll.poll()
    except ConnectionRefusedError:
        pass  # it has been closed, or does not listen yet
    finally:
        for one in connected:
            one.close()


def mpirun_on(names, *options, count=None, exported=()):
    """The words of an mpirun on hosts of these names, for two processes each; what follows is the
    program. Without a count one process a host; exported: the variables that all are given."""
    return ["mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", "/run/rsh",
            "-H", ",".join(f"{name}:2" for name in names), "-n", str(count or len(names)),
            *options, *(word for name in exported for word in ("-x", name))]


class Cluster:
    """Hosts n0, n1, ... `home` is the shared directory as this process names it.

    shared: directories that hosts must see even if they lie in /tmp, which each host has anew.
    netem: the path of that program, which is then the switch; `self.netem` is the first network's.
    networks: each host has eth0, eth1, ...; names mean addresses of the first one.
    ipv6: True: IPv6 addresses as well; "only": no others.
    clocks: how many seconds CLOCK_MONOTONIC and CLOCK_BOOTTIME of each host are ahead of ours; not
        behind, as these can't be before the machine's start, which may have been a minute ago.
    variables: for each host, what every command there finds in its environment.
    """

    def __init__(self, count, shared=(), *, netem=None, seed=1, networks=1, ipv6=False, clocks=None,
                 variables=None):
        self.names = [f"n{i}" for i in range(count)]
        self.ipv4 = [[NETWORK.format(FIRST_NETWORK + n, i + 1) for i in range(count)]
                     for n in range(networks)]
        self.ipv6 = [[NETWORK6.format(FIRST_NETWORK + n, i + 1) for i in range(count)]
                     for n in range(networks)]
        self.by_network = self.ipv6 if ipv6 == "only" else self.ipv4
        self.addresses = self.by_network[0]
        self.netem = None
        self._families = {False: "4", True: "46", "only": "6"}[ipv6]
        self._netem, self._seed = netem, seed
        self._clocks = clocks or [None] * count
        self._variables = variables or [{}] * count
        self._shared = sorted({str(Path(d).resolve()) for d in shared})
        self._started = []  # the cluster itself and its hosts
        self._commands = []
        self._uts = []
        self._group = None
        self._slot = None

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def _spawn(self, argv):
        self._started.append(subprocess.Popen(
            list(map(str, argv)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            start_new_session=True))  # Ctrl-C is for the test, which ends the rest
        return self._started[-1]

    @staticmethod
    def _line(process):
        """The next line of a long-lived process."""
        line = process.stdout.readline().strip()
        if not line:
            raise ClusterError(f"a simulated host did not start: {process.stderr.read()}")
        return line

    def _start(self):
        masked = [d for d in self._shared if d.startswith(("/tmp/", "/dev/shm/"))]
        bridges = "" if self._netem else " ".join(map(str, range(len(self.ipv4))))
        self._group = _make_group()
        self._line(self._spawn(
            [*OWN_MOUNTS, *NAMESPACES, "sh", "-c", CLUSTER, "sh", sys.executable, INIT,
             self._group or "", bridges, *masked]))
        self.init = _child_of(self._started[0].pid)
        run = Path(f"/proc/{self.init}/root/run")
        self.home = run / "home"
        self._write_files(run)
        hosts = []
        for name, clock in zip(self.names, self._clocks):
            ahead = [] if clock is None else [
                "--time", f"--monotonic={clock}", f"--boottime={clock}"]
            hosts.append(self._spawn([*self._enter(), "unshare", "--net", "--uts", "--mount",
                                      *ahead, "sh", "-c", HOST, "sh", name, bridges]))
        self._uts = [self._line(host) for host in hosts]
        self._pids = [(run / f"{name}.pid").read_text().strip() for name in self.names]
        self._networks = []
        for n in range(len(self.ipv4) if self._netem else 0):
            self._networks.append(Netem(self._spawn(
                [*self._enter(), self._netem, f"eth{n}", self._seed + n, *self._pids]), self._line))
            self.netem = self._networks[0]
        for host in hosts:
            host.stdin.write("go\n")
            host.stdin.flush()
        for host in hosts:
            self._line(host)
        self._holders = {_child_of(process.pid) for process in self._started[1:]}

    def _write_files(self, run):
        """What hosts and the remote shell read."""
        names = ["127.0.0.1 localhost", "::1 localhost"]
        for i, name in enumerate(self.names):
            lines = ["link set lo up"]
            for n, (v4, v6) in enumerate(zip(self.ipv4, self.ipv6)):
                lines += [f"address add {v4[i]}/24 dev eth{n}"] if "4" in self._families else []
                lines += [f"address add {v6[i]}/64 dev eth{n} nodad"] \
                    if "6" in self._families else []
                lines.append(f"link set eth{n} up")
            (run / f"{name}.ip").write_text("\n".join(lines) + "\n")
            (run / f"{name}.env").write_text(
                " ".join(f"{k}={v}" for k, v in self._variables[i].items()))
            names += [f"{family[0][i]} {name}" for digit, family in
                      (("4", self.ipv4), ("6", self.ipv6)) if digit in self._families]
            if self._group:
                (self._group / name).mkdir()
        (run / "hosts").write_text("\n".join(names) + "\n")
        (run / "group").write_text(str(self._group or "/nowhere"))
        (run / "rsh").write_text(REMOTE_SHELL)
        (run / "rsh").chmod(0o755)

    def _enter(self):
        # into its root, too, which in a chroot is not the namespace's; nor may we stay where we are
        return ["nsenter", "--target", str(self.init), "--pid", "--net", "--uts", "--mount",
                "--root", "--wd", "--no-fork", "--", *WAITING]

    def _inside(self, host):
        """Words before a command that is to run on a host."""
        return [*self._enter(), "nsenter", "--target", self._pids[host], "--net", "--uts",
                "--mount", "--root", "--wd", "--time", "--", "sh", "-c", INTO_GROUP,
                str(self._group / self.names[host]) if self._group else ""]

    def close(self):
        """Ends everything on all hosts; returns when it is gone."""
        if not self._started:
            if self._group and self._group.exists():
                self._group.rmdir()
            return
        self._started[0].stdin.close()
        for process in self._started + self._commands:
            try:
                self._await_end(process)
            except ClusterError:
                process.kill()
                self._await_end(process)
            for file in (process.stdin, process.stdout, process.stderr):
                if file:
                    try:
                        file.close()
                    except BrokenPipeError:
                        pass
        self._started, self._commands = [], []
        if self._slot:
            self._slot.close()

    @staticmethod
    def _await_end(process):
        until(lambda: process.poll() is not None, f"{process.args} to end", LIMIT_S, ClusterError)

    def popen(self, host, argv, env=None, **options):
        """Starts a command on host number `host`, in /run/home, in a session of its own and with
        nothing of our environment."""
        is_mpirun = any(str(word).startswith(("mpirun", "--mpirun-host")) for word in argv)
        if is_mpirun and not self._slot:
            self._slot = mpirun_slot()
        variables = {"PATH": PATH, "HOME": "/root", **self._variables[host], **(env or {})}
        if "ASAN_OPTIONS" in os.environ:  # see conftest.py
            variables["ASAN_OPTIONS"] = os.environ["ASAN_OPTIONS"] + ":detect_leaks=0"
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                   "stderr": subprocess.PIPE, "text": True, "start_new_session": True, **options}
        self._commands.append(subprocess.Popen(
            [*self._inside(host), "setsid", "env", "-i", "-C", HOME,
             *(f"{k}={v}" for k, v in variables.items()), *map(str, argv)], **options))
        return self._commands[-1]

    def socket(self, host, family, kind):
        """A socket on a host that is this process's own."""
        libc = ctypes.CDLL(None, use_errno=True)
        path = f"/proc/{self.init}/root/proc/{self._pids[host]}/ns/net"
        with open("/proc/thread-self/ns/net", "rb") as here, open(path, "rb") as there:
            if libc.setns(there.fileno(), 0) < 0:
                raise OSError(ctypes.get_errno(), "setns")
            try:
                return socket.socket(family, kind)
            finally:
                if libc.setns(here.fileno(), 0) < 0:
                    os.abort()  # a test process in the wrong network must not go on

    def finish(self, process, limit_s=LIMIT_S):
        """Waits for a command of popen(); a CompletedProcess."""
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            left = self.processes()
            self.kill_all()
            out, err = process.communicate()
            raise ClusterError(f"no end after {limit_s} s; processes: {left}\n{out}\n{err}") \
                from None
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def run(self, host, argv, env=None):
        return self.finish(self.popen(host, argv, env))

    def counted(self, host, protocol, name):
        """What a host's kernel has counted since its start, as it stands in its /proc/net/snmp."""
        text = Path(f"/proc/{_child_of(self._started[1 + host].pid)}/net/snmp").read_text()
        names, values = (line.split()[1:] for line in text.splitlines()
                         if line.startswith(f"{protocol}:"))
        return int(values[names.index(name)])

    @staticmethod
    def pid_of(process):
        """The command's own pid, not that of the nsenter around it."""
        return _child_of(process.pid)

    def signal(self, process, number):
        os.kill(self.pid_of(process), number)

    @staticmethod
    def signal_pid(pid, number):
        """To one of processes(), if it is still there."""
        signal_if_there(pid, number)

    def processes(self, host=None):
        """(pid, command line) of what runs on one host or on all; zombies don't count."""
        wanted = self._uts if host is None else [self._uts[host]]
        found = []
        for name in os.listdir("/proc"):  # of all the machine, often: a Path for each costs more than the look
            if not name.isdigit() or int(name) in self._holders:
                continue
            try:
                if os.readlink(f"/proc/{name}/ns/uts") in wanted:
                    with open(f"/proc/{name}/cmdline", "rb") as file:
                        found.append((int(name), file.read().replace(b"\0", b" ").decode().strip()))
            except OSError:
                continue  # gone meanwhile
        return [p for p in found if p[1]]

    def kill_all(self, host=None):
        """Everything that runs on one host or on all, at once; a host's link stays as it is."""
        for one in range(len(self.names)) if self._group and host is None else [host]:
            if self._group:
                (self._group / self.names[one] / "cgroup.kill").write_text("1")
        for pid, _ in self.processes(host):
            signal_if_there(pid, signal.SIGKILL)

    def supervisors(self, host):
        """launchd's processes that are connected to other nodes."""
        return [pid for pid, line in self.processes(host) if line.startswith("rank-supervisor")]

    def launchers(self, host):
        """launchd's own two processes on a host, guard and supervisor, as they are there."""
        return self.supervisors(host) + [
            pid for pid, line in self.processes(host)
            if os.path.basename(line.split()[0]) == "launchd"]

    def kill_launchers(self, host):
        """Both, so that neither can tell other nodes of the other: the guard is stopped meanwhile.
        The host's kernel is still there and closes what they had open."""
        supervisors = self.supervisors(host)
        guards = [pid for pid in self.launchers(host) if pid not in supervisors]
        for pids, number in ((guards, signal.SIGSTOP), (supervisors, signal.SIGKILL),
                             (guards, signal.SIGKILL)):
            for pid in pids:
                signal_if_there(pid, number)

        if not self._is_frozen(host):  # there nobody reaps it
            until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in guards), "the guards to be reaped", LIMIT_S)

    def cut(self, host, direction="both"):
        """Nothing passes between a host and the switch any more. "in" and "out", what it receives
        and what it sends, are for netem only; a bridge's host sees that its cable is out."""
        for network in self._networks:
            network.set(host, direction, cut=1)
        if not self._networks:
            self._plug(host, "down")

    def heal(self, host):
        for network in self._networks:
            network.set(host, cut=0)
        if not self._networks:
            self._plug(host, "up")

    def _plug(self, host, how):
        for n in range(len(self.ipv4)):
            subprocess.run([*self._enter(), "ip", "link", "set", f"{self.names[host]}.{n}", how],
                           check=True)

    def power_off(self, host):
        """Silence: not even the kernel says that anything has ended."""
        self.cut(host)
        self.kill_all(host)

    def freeze(self, host):
        """All processes of a host stop, and none of them can tell; its kernel goes on."""
        self._freeze(host, "1", signal.SIGSTOP)

    def _is_frozen(self, host):
        return bool(self._group) and \
            "frozen 1" in (self._group / self.names[host] / "cgroup.events").read_text()

    def thaw(self, host):
        self._freeze(host, "0", signal.SIGCONT)

    def _freeze(self, host, state, number):
        if self._group:
            group = self._group / self.names[host]
            (group / "cgroup.freeze").write_text(state)
            until_group(group, f"frozen {state}", LIMIT_S)
        elif number == signal.SIGSTOP:
            until(lambda: self._all_stop(host), f"all processes of {self.names[host]} to stop", LIMIT_S)
        else:
            for pid, _ in self.processes(host):
                signal_if_there(pid, number)

    def _all_stop(self, host):
        """Stops all that run; whether none was found that did. Those that were born meanwhile are found next."""
        running = [pid for pid, _ in self.processes(host) if _states(pid) - set("TtZX")]
        for pid in running:
            signal_if_there(pid, signal.SIGSTOP)
        return not running
