"""job.py - a job of workers/actor.c over simulated hosts: one launchd on each, without mpirun or by
it; what each of them said, when it ended and how; and what each worker did and when.

All times are CLOCK_REALTIME in ns, which hosts with clocks of their own share with us. Two processes
may read it CLOCKS_APART_MS apart, because a machine may step it: what follows from what is proved by
events, not by times.
"""
import contextlib
import ctypes
import dataclasses
import math
import mmap
import os
import re
import select
import struct
import sys
import tempfile
import time

from cluster import HOME, Cluster, mpirun_on
from harness import BUILD, TESTS, is_idle, native, until

EVENTS = "--events=events%n"  # for Job.happened()
LIMIT_S = 60  # for what takes a second or two
SYS_FUTEX, FUTEX_WAKE = 202, 1
MS = 1_000_000
CLOCKS_APART_MS = 1000  # 7 were seen on a virtual machine
# What launchd says of the culprit: the report of node 0, or the line of the others.
CULPRIT = re.compile(r"^launchd: error: (?:root cause: )?(?:possibly )?rank (\d+) "
                     r"(?:\(|on node \d+ failed: node 0 reports)", re.M)
# What it says of a node that has vanished.
LOST = re.compile(r"^launchd: error: root cause: (?:node (\d+)\b.*? was lost|"
                  r"this node lost contact with node (\d+)\b)", re.M)
LOST_CODE, KILLED_CODE = 125, 137
NOBODY = re.compile(r"(?!)")
# What mpirun has on other nodes than its own; it does not notice at once that mpirun has vanished.
ORTED = re.compile(r"orted|sh -c +orted")


def closed_after(kind):
    """A fixture's whole body: it gives what makes one of this kind, and closes all that it made."""
    with contextlib.ExitStack() as made:
        yield lambda *how, **more: made.enter_context(contextlib.closing(kind(*how, **more)))


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


class JobHosts(Cluster):
    """A cluster on which launchd runs. netem: on a network of netem.c."""

    def __init__(self, count, *, netem=False, shared=(), **options):
        super().__init__(count, [TESTS.parent, BUILD, *shared], **options,
                         netem=BUILD / "tests" / "hosts" / "netem" if netem else None)

    @staticmethod
    def launchd(*options):
        return [BUILD / "launchd", "--python", sys.executable, *options]

    @staticmethod
    def sanitizers():
        """No search for leaks: its helper process outlives a launcher that is killed while it
        searches."""
        return {name: os.environ[name] + more for name, more in (
            ("ASAN_OPTIONS", ":detect_leaks=0"), ("UBSAN_OPTIONS", "")) if name in os.environ}


@dataclasses.dataclass
class Part:
    """What a worker of one attempt did; 0: it did not."""
    pid: int
    born_ns: int
    term_ns: int  # its first SIGTERM or SIGINT
    died_ns: int  # by itself
    overlap: int  # something of the attempt before was alive when it came


class Board:
    """The file that workers/actor.c shares with us: orders go there, and what came of them."""
    ATTEMPTS, WORKERS, ORDER = 16, 512, 32
    WORD = 16 * ATTEMPTS
    ORDERS = WORD + 8
    PARTS = ORDERS + WORKERS * ORDER
    PART = struct.Struct("=qqqqqq")

    def __init__(self, path):
        with open(path, "w+b") as file:
            file.truncate(self.PARTS + self.ATTEMPTS * self.WORKERS * self.PART.size)
            self.map = mmap.mmap(file.fileno(), 0)
        os.chmod(path, 0o666)

    def ready(self, attempt=0):
        return struct.unpack_from("=q", self.map, 8 * (self.ATTEMPTS + attempt))[0]

    def started_ns(self, attempt=0):
        return struct.unpack_from("=q", self.map, 8 * attempt)[0]

    def start(self, attempt=0, after_s=0.02):
        """Lets the workers begin so much later; when that is."""
        start = now_ns() + int(after_s * 1e9)
        struct.pack_into("=q", self.map, 8 * attempt, start)
        self._wake()
        return start

    def order(self, rank, act, attempt=0):
        """Tells one whose ACT is "obey" what to do, times being from now on; returns now."""
        start = now_ns()
        struct.pack_into("=q", self.map, 8 * attempt, start)
        at = self.ORDERS + self.ORDER * rank
        self.map[at:at + self.ORDER] = act.encode().ljust(self.ORDER, b"\0")
        self._wake()
        return start

    def _wake(self):
        word, = struct.unpack_from("=I", self.map, self.WORD)
        struct.pack_into("=I", self.map, self.WORD, word + 1 & 0xffffffff)
        futex = ctypes.c_uint32.from_buffer(self.map, self.WORD)
        ctypes.CDLL(None).syscall(SYS_FUTEX, ctypes.byref(futex), FUTEX_WAKE, 2**31 - 1,
                                  None, None, 0)
        del futex

    def part(self, rank, attempt=0):
        at = self.PARTS + self.PART.size * (attempt * self.WORKERS + rank)
        return Part(*self.PART.unpack_from(self.map, at)[:5])

    def parts(self, world, attempt=0):
        return [self.part(rank, attempt) for rank in range(world)]

    def close(self):
        self.map.close()


@dataclasses.dataclass
class End:
    rc: int  # below 0: killed by that signal
    out: str
    err: str
    ended_ns: int

    def culprits(self):
        """The ranks that it names as the root cause, each once."""
        return sorted({int(rank) for rank in CULPRIT.findall(self.err)})

    def lost(self):
        """The nodes that it says were lost."""
        return sorted({int("".join(found)) for found in LOST.findall(self.err)})


class Launcher:
    """A command on one host whose output goes to files, so that nobody has to read meanwhile."""

    def __init__(self, hosts, host, argv, env):
        self.files = [tempfile.TemporaryFile() for _ in range(2)]
        self.process = hosts.popen(host, argv, env, stdout=self.files[0], stderr=self.files[1])
        self.fd = os.pidfd_open(self.process.pid)
        self.host, self.ended_ns = host, 0

    def said(self, file=1):
        size = os.fstat(self.files[file].fileno()).st_size
        return os.pread(self.files[file].fileno(), size, 0).decode(errors="replace")

    def end(self):
        """None: it runs."""
        if self.process.poll() is None:
            return None
        return End(self.process.returncode, self.said(0), self.said(1), self.ended_ns)

    def close(self):
        os.close(self.fd)
        for file in self.files:
            file.close()


class Job:
    """What static jobs and those of mpirun have in common. `launchers` are the commands that were
    started, by their host's number."""
    made = 0
    by_others_ms = math.inf  # before that only launchd has sent a SIGTERM

    def __init__(self, hosts, *options, nodes=None, nproc=1, worker=None, env=None, **variables):
        Job.made += 1
        self.hosts, self.options = hosts, options
        self.nodes = len(hosts.names) if nodes is None else nodes
        self.nproc = [nproc] * self.nodes if isinstance(nproc, int) else list(nproc)
        self.world = sum(self.nproc)
        self.board = Board(hosts.home / f"board{Job.made}")
        self.worker = native("actor") if worker is None else worker
        self.env = {"BOARD": f"{HOME}/board{Job.made}", "OMP_NUM_THREADS": "1", **(env or {}),
                    **{name: str(value) for name, value in variables.items()}}
        self.launchers = {}
        self.dead = set()  # launchers of which no verdict is to be expected

    def ranks(self, node):
        """The ranks of a node, if all nodes are there."""
        first = sum(self.nproc[:node])
        return range(first, first + self.nproc[node])

    def node_of(self, rank):
        return next(node for node in range(self.nodes) if rank in self.ranks(node))

    def meet(self, attempt=0, count=None, limit=LIMIT_S):
        """Waits until the workers are there."""
        count = self.world if count is None else count
        until(lambda: self.board.ready(attempt) >= count or self.ended(),
              f"{count} workers", limit)
        assert self.board.ready(attempt) >= count, \
            f"{self.board.ready(attempt)} of {count} workers; {self.described()}"

    def start(self, attempt=0, after_s=0.02):
        """Waits for all, and lets them begin; when that is."""
        self.meet(attempt)
        return self.board.start(attempt, after_s)

    def happened(self, event, count=1, node=0):
        """Whether a node's launcher, which was started with EVENTS, has told of it so often."""
        file = self.hosts.home / f"events{node}"
        return file.exists() and file.read_text().count(f'"event":"{event}"') >= count

    def idle(self, *nodes):
        """Waits until these launchers have done what there was to do."""
        until(lambda: all(map(is_idle, [pid for node in nodes
                                        for pid in self.hosts.supervisors(node)])), "idle launchers")

    def beats(self, count=2):
        """Waits until so many datagrams have come to each node."""
        until(lambda: all(self.hosts.counted(node, "Udp", "InDatagrams") >= count
                          for node in range(self.nodes)), "beats")

    def ended(self):
        return [node for node, one in self.launchers.items() if one.process.poll() is not None]

    def wait(self, *nodes, limit=LIMIT_S):
        """Waits for the end of these launchers, by default all; their Ends by node. Those that do
        not end fail the test."""
        wanted = {self.launchers[node].fd: self.launchers[node]
                  for node in nodes or self.launchers}
        poll = select.poll()
        waiting = {fd for fd, one in wanted.items() if not one.ended_ns}
        for fd in waiting:
            poll.register(fd, select.POLLIN)
        stop = time.monotonic() + limit
        while waiting:
            found = poll.poll(max(0, (stop - time.monotonic()) * 1000))
            assert found, f"no end within {limit} s; {self.described()}"
            for fd, _ in found:
                wanted[fd].ended_ns = now_ns()
                wanted[fd].process.wait()
                poll.unregister(fd)
                waiting.discard(fd)
        return {one.host: one.end() for one in wanted.values()}

    def end_well(self, limit=LIMIT_S):
        """Workers whose ACT is "obey" end with 0, and so does the job."""
        for rank in range(self.world):
            self.board.order(rank, "exit:0@0")
        assert verdict(self.wait(limit=limit)) == (0, None)

    def described(self):
        """What there is to see when something is wrong."""
        text = [f"ended: {self.ended()}", f"processes: {self.hosts.processes()}"]
        text += [f"n{node} said:\n{one.said()}" for node, one in self.launchers.items()]
        return "\n".join(text)

    def signal(self, node, number):
        """To the command itself; launchd's guard, or mpirun."""
        self.hosts.signal(self.launchers[node].process, number)

    def alive(self, *nodes):
        """The workers' processes of these nodes, or of all, and what they started."""
        found = []
        for node in nodes or range(self.nodes):
            found += [line for _, line in self.hosts.processes(node)
                      if self.worker[-1] in line and
                      os.path.basename(line.split()[0]) != "launchd"]
        return found

    def nothing_left(self, *nodes, spared=NOBODY):
        """spared: how the command lines begin that may go on."""
        for node in nodes or range(self.nodes):
            def left(node=node):
                return [line for _, line in self.hosts.processes(node) if not spared.match(line)]
            until(lambda: not left(), lambda: f"the end of everything on n{node}: {left()}")

    def terms_ms(self, since_ns, but=(), attempt=0):
        """For each rank but some: ms until its SIGTERM; None: it had none."""
        parts = enumerate(self.board.parts(self.world, attempt))
        return {rank: (part.term_ns - since_ns) / MS if part.term_ns else None
                for rank, part in parts if rank not in but}

    def close(self):
        """The hosts end the processes; a job that is over by then leaves them for the next one."""
        for node, one in self.launchers.items():
            if one.process.poll() is None:
                self.hosts.thaw(node)
        if any(one.process.poll() is None for one in self.launchers.values()):
            self.hosts.kill_all()
        for one in self.launchers.values():
            one.process.wait(LIMIT_S)
            one.close()
        self.board.close()


class StaticJob(Job):
    """One `launchd --nnodes N --node_rank R --master_addr A --master_port P` on each host.

    late: nodes that are not started yet (launch() does). of_node: further options of a node.
    command(job, node): another launcher's command line.
    """

    def __init__(self, hosts, *options, late=(), of_node=None, port=29500, master=0, command=None,
                 **more):
        super().__init__(hosts, *options, **more)
        self.command = command
        self.of_node, self.port, self.master = of_node or {}, port, master
        try:
            for node in range(self.nodes):
                if node not in late:
                    self.launch(node)
        except BaseException:
            self.close()
            raise

    def launch(self, node, *options):
        argv = self.hosts.launchd(
            f"--nnodes={self.nodes}", f"--node_rank={node}",
            f"--master_addr={self.hosts.addresses[self.master]}", f"--master_port={self.port}",
            f"--nproc_per_node={self.nproc[node]}", *self.options, *self.of_node.get(node, ()),
            *options, *self.worker)
        if self.command:
            argv = self.command(self, node)
        self.launchers[node] = Launcher(self.hosts, node, argv,
                                        {**self.hosts.sanitizers(), **self.env})


class MpirunJob(Job):
    """One launchd on each host by mpirun on the first one; its output has that of all. What the
    workers find in their environment gets there by -x. kill_timeout: mpirun's, in s: so long it waits
    between CONT, TERM and KILL when it ends a job itself, as it does after the first launcher that
    fails; it takes four times that before it returns. around: words before launchd itself."""

    def __init__(self, hosts, *options, mpi=(), kill_timeout=2, around=(), **more):
        super().__init__(hosts, *options, **more)
        self.by_others_ms = 1000 * kill_timeout
        exported = {**hosts.sanitizers(), **self.env}
        argv = [*mpirun_on(hosts.names[:self.nodes], "--map-by", "ppr:1:node", "--bind-to", "none",
                           "--mca", "odls_base_sigkill_timeout", str(kill_timeout), *mpi,
                           exported=exported),
                *around,
                *hosts.launchd(f"--nproc_per_node={self.nproc[0]}", *self.options, *self.worker)]
        try:
            self.launchers[0] = Launcher(hosts, 0, argv, exported)
        except BaseException:
            self.close()
            raise

    def guard(self, node):
        """launchd's own process on a node, as mpirun's side knows it."""
        supervisors = self.hosts.supervisors(node)
        [guard] = [pid for pid in self.hosts.launchers(node) if pid not in supervisors]
        return guard


# Ways in which a node is lost.
def launcher_killed(hosts, node):
    hosts.kill_launchers(node)


def frozen(hosts, node):
    hosts.freeze(node)


def cut(hosts, node):
    hosts.cut(node)


def verdict(ends):
    """What all of these launchers agree on: (exit code, culprit's rank or None)."""
    codes = {end.rc for end in ends.values()}
    named = [end.culprits() for end in ends.values()]
    assert len(codes) == 1, f"different exit codes: {ends}"
    assert all(one == named[0] for one in named) and len(named[0]) <= 1, f"different: {ends}"
    return codes.pop(), named[0][0] if named[0] else None

