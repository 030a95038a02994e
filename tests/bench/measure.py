"""What tests/bench/run measures with: the launchers, the processes of a run, and the workers' meeting.

The driver is a subreaper: whatever a launcher leaves behind becomes its child, and is ended.
"""
import contextlib
import ctypes
import math
import mmap
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "process"))
from waiting import until  # noqa: E402

LIMIT_S = 300.0  # of every wait; the slowest of them (mpirun with 512) takes seconds
PR_SET_CHILD_SUBREAPER = 36


class Launcher:
    """A way to start COUNT processes of one program."""

    def __init__(self, name, *before):
        self.name = name
        self.before = [str(word) for word in before]

    def command(self, count, *program):
        return [word.replace("COUNT", str(count)) for word in self.before] + list(map(str, program))


def own(build, *options):
    return Launcher("launchd", build / "launchd", "--quiet", *options, "--nproc_per_node", "COUNT", "--no_python",
                    "--use_env")


def launchers(build, torchrun):
    """The bare loop, launchd, and those of its peers that are here, by name."""
    found = [Launcher("bare", build / "tests" / "bench" / "bare", "COUNT"), own(build)]
    if torchrun:
        found.append(Launcher("torchrun", torchrun, "--no-python", "--nproc-per-node", "COUNT"))
    if shutil.which("mpirun"):
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        found.append(Launcher("mpirun", "mpirun", *root, "--oversubscribe", "-n", "COUNT"))
    return {launcher.name: launcher for launcher in found}


def children_of(pid):
    found = []
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has ended meanwhile
    return found


def tree_of(pid):
    """The process and all below it."""
    return [pid] + [below for child in children_of(pid) for below in tree_of(child)]


def program_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def fields(path):
    """A file of "Name: value" lines as a dict; empty if its process has ended."""
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def kilobytes(table, key):
    return int(table.get(key, "0 kB").split()[0])


def be_subreaper():
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_CHILD_SUBREAPER) failed")


@contextlib.contextmanager
def above_others(wanted):
    """What is started in it runs before all other programs of the machine, if wanted."""
    if wanted:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        if wanted:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def end_all_children():
    """SIGKILL to what a launcher has left to us, in rounds, as each death may bring more."""
    while children := children_of(os.getpid()):
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                pass


class Meeting:
    """The shared file of tests/bench/member.c."""

    def __init__(self, directory, count):
        self.count = count
        self.file = tempfile.NamedTemporaryFile(dir=directory)
        self.file.truncate(24 + 8 * count)
        self.memory = mmap.mmap(self.file.fileno(), 24 + 8 * count)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.memory.close()
        self.file.close()

    def word(self, index):
        return struct.unpack_from("Q", self.memory, 8 * index)[0]

    def there(self):
        return self.word(0)

    def reactions_ns(self, culprit):
        """For each peer of the culprit the time from the death to its SIGTERM; without end for one
        that got none."""
        terms = [self.word(3 + rank) for rank in range(self.count) if rank != culprit]
        return [term - self.word(2) if term else math.inf for term in terms]


class Run:
    """A launcher with COUNT members that runs."""

    def __init__(self, launcher, member, meeting, act):
        self.member = str(member)
        self.meeting = meeting
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            launcher.command(meeting.count, member, meeting.file.name, meeting.count, act),
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def until_all_are_there(self):
        until(lambda: self.meeting.there() >= self.meeting.count or self.process.poll() is not None,
              lambda: f"the workers: {self.said()}", LIMIT_S, RuntimeError)
        if self.meeting.there() < self.meeting.count:
            raise RuntimeError(f"workers do not start: {self.said()}")

    def own(self):
        """The launcher's own processes: all but the workers."""
        return [pid for pid in tree_of(self.process.pid) if program_of(pid) != self.member]

    def said(self):
        return os.pread(self.log.fileno(), 4096, 0).decode(errors="replace")

    def wait(self):
        return self.process.wait(LIMIT_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end_all_children()
        self.process.wait()
        self.log.close()


class Sampler(threading.Thread):
    """Reads the memory of all processes below a launcher until it is told to stop."""

    def __init__(self, run):
        super().__init__()
        self.run_, self.samples, self.high, self.over = run, [], {}, threading.Event()

    def run(self):
        while not self.over.is_set():
            sample = {}
            for pid in self.run_.own():
                smaps = fields(f"/proc/{pid}/smaps_rollup")
                sample[pid] = kilobytes(smaps, "Pss")
                high = kilobytes(fields(f"/proc/{pid}/status"), "VmHWM")
                self.high[pid] = max(high, self.high.get(pid, 0))
            self.samples.append(sample)
            self.over.wait(0.005)

    def peak(self, pids):
        """The largest sum of PSS, and the sum of VmHWM of these processes, in KB."""
        pss = max(sum(sample.get(pid, 0) for pid in pids) for sample in self.samples)
        return pss, sum(self.high.get(pid, 0) for pid in pids)


def switches(pids):
    """Context switches of every thread of these processes."""
    total = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            status = fields(task / "status")
            total += int(status["voluntary_ctxt_switches"])
            total += int(status["nonvoluntary_ctxt_switches"])
    return total


def weight(launcher, member, directory, count, idle_s):
    """Memory and wake-ups of one run: {"pss", "high": KB, "switches"}."""
    with Meeting(directory, count) as meeting, Run(launcher, member, meeting, "stay") as run:
        sampler = Sampler(run)
        sampler.start()
        try:
            run.until_all_are_there()
            time.sleep(1)  # what the start still has to do
            own = run.own()
        finally:
            sampler.over.set()
            sampler.join()
        before = switches(own)
        time.sleep(idle_s)  # the measured span itself
        woken = switches(own) - before
        ending = Sampler(run)
        ending.samples, ending.high = sampler.samples, sampler.high
        ending.start()
        try:
            run.process.send_signal(signal.SIGTERM)
            run.wait()
        finally:
            ending.over.set()
            ending.join()
        pss, high = ending.peak(own)
        return {"pss": pss, "high": high, "switches": woken}


def cpu_ms(pid):
    """CPU time of a process, as the scheduler counts it."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def look_weight(launcher, member, directory, count, span_s):
    """The same beside the process that looks at silent workers, once there is one: {"pss", "high": KB, "switches",
    "start_ms", "look_ms": CPU time of that process until its first look is over, and of a look}."""
    with Meeting(directory, count) as meeting, Run(launcher, member, meeting, "stay") as run:
        run.until_all_are_there()

        def looker():
            return [pid for pid in run.own() if fields(f"/proc/{pid}/status").get("Name") == "hang-look"]

        until(looker, "hang-look", LIMIT_S, RuntimeError)
        time.sleep(1)  # its first look
        own, [look] = run.own(), looker()
        before, started = switches(own), cpu_ms(look)
        time.sleep(span_s)  # the measured span itself
        woken, looked = switches(own) - before, cpu_ms(look) - started
        memory = Sampler(run)
        memory.start()
        memory.over.set()
        memory.join()
        pss, high = memory.peak(own)
        run.process.send_signal(signal.SIGTERM)
        run.wait()
        return {"pss": pss, "high": high, "switches": woken, "start_ms": started, "look_ms": looked / (span_s / 10)}


def reactions_ms(launchers_in_turn, member, directory, count, deaths):
    """For each launcher, of so many deaths the times until the last peer had its SIGTERM, sorted."""
    found = [[] for _ in launchers_in_turn]
    for i in range(deaths):
        culprit = i % count
        for launcher, times in zip(launchers_in_turn, found):
            with Meeting(directory, count) as meeting:
                with Run(launcher, member, meeting, culprit) as run:
                    if run.wait() == 0:
                        raise RuntimeError(f"{launcher.name} returned 0 for a failed worker")
                times.append(max(meeting.reactions_ns(culprit)) / 1e6)
    return [sorted(times) for times in found]


def meet(launcher, member, directory, count):
    """Seconds of a run in which all are alive at the same time, then end with 0."""
    begin = time.monotonic()
    with Meeting(directory, count) as meeting, Run(launcher, member, meeting, "meet") as run:
        code = run.wait()
        took = time.monotonic() - begin
        if code != 0 or meeting.there() != count:
            raise RuntimeError(f"{meeting.there()} of {count} met, exit code {code}: {run.said()}")
    return took
