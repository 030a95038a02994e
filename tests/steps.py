"""steps.py - the steps of tests/run: which of them run beside which, what each says, and the sum.

Most tests wait, for a time limit or for another process; compilers, lint and valgrind compute. So
there are two lanes. In one stand the steps that wait, as many at once as keep the CPUs busy; in the
other those that compute, one after the other and with a lower priority, so that they take mostly
what the first lane leaves, but get on beside whatever else the machine does. The first build, for
which all wait, has the usual priority. What is judged by time comes last, alone.
"""
import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

SOURCE = Path(__file__).resolve().parent.parent
WORK = SOURCE / "build-test"
LOGS = WORK / "logs"
CPUS = len(os.sched_getaffinity(0))
# The share of all CPUs that running steps may add up to: busy is a mean, so 1 would leave CPUs idle.
MOST_BUSY = 1.2
SLOW = 1 if CPUS > 1 else 3  # a factor for what is limited in time
LIMIT_S = 1800 * SLOW  # no command takes a third of it
SHOWN_LINES = 80  # of the log of a command that failed
LISTED_LINES = 36  # of what failed, at the end: who sees 40 lines of all sees these
MOST_AGAIN = 5  # of more that fail, something is wrong: nothing is tried again
WORDS = 12  # lines by which a command that failed is known
LAUNCHERS_SAID = "what the launchers said"  # tests/conftest.py's heading


@dataclass
class Counts:
    """What has been run. reasons: why tests were skipped, with their numbers. failures: of each test
    that failed its name, and lines that say how; where only a number is known, there is none."""
    passed: int = 0
    failed: int = 0
    reasons: Counter = field(default_factory=Counter)
    failures: list = field(default_factory=list)

    @classmethod
    def of(cls, good):
        """Of a step that is one test."""
        return cls(int(bool(good)), int(not good))

    @property
    def skipped(self):
        return self.reasons.total()

    def __add__(self, other):
        return Counts(self.passed + other.passed, self.failed + other.failed,
                      self.reasons + other.reasons, self.failures + other.failures)

    def __str__(self):
        rest = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{rest}"


@dataclass(eq=False)
class Step:
    """run: () -> Counts. busy: how many CPUs it keeps so while it waits for the most part; None: it
    computes. alone: it is judged by time. needs: without their success there is nothing to run."""
    title: str
    run: Callable[[], Counts]
    busy: float | None = None
    alone: bool = False
    needs: tuple = ()
    nice: bool = False  # it leaves most of the CPUs to others
    counts: Counts | None = None  # once it has ended
    cpu_s: float = 0.0
    words: list = field(default_factory=list)  # of its commands that failed: how they did
    again: Callable[[str], Counts] | None = None  # runs one of its tests, by name

    @property
    def computes(self):
        return self.busy is None and not self.alone

    @property
    def failed(self):
        return self.counts is not None and self.counts.failed > 0


class Schedule:
    """Runs steps; where there is a choice, the first ones first."""

    def __init__(self, steps):
        self.waiting, self.running = list(steps), []
        self.sum = Counts()
        self.ended = []
        self.unsteady = []  # failures, as in Counts, of tests that passed by themselves afterwards
        self.change = threading.Condition()
        self.mistake = None  # an exception of a step's own

    def run(self):
        """Returns the sum of their counts."""
        with self.change:
            self._begin()
            while self.running and not self.mistake:
                self.change.wait()
                self._begin()
        if self.mistake:
            raise self.mistake
        if 0 < self.sum.failed <= MOST_AGAIN:
            for step in self.ended:
                self._try_again(step)
        return self.sum

    def _try_again(self, step):
        """Whoever fails beside others and passes alone is counted as passed, and named: a race, of the test or
        of what it tests. A whole run of 12,000 tests isn't repeated for it, which would hide it as well."""
        mine.step, step.nice = step, False
        for failure in list(step.counts.failures) if step.again else ():
            if step.again(failure[0].removeprefix(f"{step.title}: ")).passed == 1:
                self.sum.failures.remove(failure)
                self.sum.failed -= 1
                self.sum.passed += 1
                self.unsteady.append(failure)

    def _begin(self):
        for step in list(self.waiting):
            if any(need.failed for need in step.needs):
                step.counts = Counts(failed=1)  # and so on, for those that need this one
                self.waiting.remove(step)
                say(f"       {step.title}: not run")
            elif all(need.counts for need in step.needs) and self._has_room(step):
                self.waiting.remove(step)
                step.nice = step.computes and bool(self.running)
                self.running.append(step)
                threading.Thread(target=self._follow, args=[step], daemon=True).start()

    def _has_room(self, step):
        if step.alone:
            return not self.running and all(other.alone for other in self.waiting)
        if any(other.alone for other in self.running):
            return False
        if step.computes:
            return not any(other.nice for other in self.running)
        busy = sum(other.busy for other in self.running if not other.computes)
        return busy == 0 or busy + step.busy <= MOST_BUSY * CPUS

    def _follow(self, step):
        mine.step, began = step, time.monotonic()
        try:
            counts = step.run()
            if not counts.passed + counts.failed + counts.skipped:
                counts = Counts(failed=1)
                step.words.append("nothing ran")
            if counts.failed and not counts.failures:
                counts.failures = [["", *step.words]]
            for failure in counts.failures:
                failure[0] = f"{step.title}: {failure[0]}".rstrip(": ")
            tell(step, counts, time.monotonic() - began)
        except Exception as mistake:
            self.mistake, counts = mistake, Counts(failed=1)
        with self.change:
            step.counts = counts
            self.sum += counts
            self.ended.append(step)
            self.running.remove(step)
            self.change.notify()


mine = threading.local()  # step: that which the thread runs
printing = threading.Lock()
groups = set()  # process groups that run
ending = False


def say(*lines):
    """Lines that belong together."""
    with printing:
        print("\n".join(lines), flush=True)


def tell(step, counts, took_s):
    say(f"{'FAILED' if counts.failed else 'ok':6} {step.title}: {counts}, {took_s:.0f} s "
        f"({step.cpu_s:.0f} s of CPU)",
        *(f"       {times} skipped: {reason}" for reason, times in sorted(counts.reasons.items())))


# --- what failed ---

FAILED = "what failed:"
UNSTEADY = "what failed beside others and passed alone, a race that is to be mended:"


def listed(failures, heading=FAILED):
    """For the end of the output: the names of all, and of how each failed as much as there is room
    for. Lines that read_list() reads."""
    most = max(1, LISTED_LINES // max(1, len(failures)))
    lines = [line for name, *words in failures for line in
             (f"  {name}", *(f"      {word}" for word in words[:most - 1]))]
    if len(lines) > LISTED_LINES:
        lines[LISTED_LINES:] = [f"  and {len(lines) - LISTED_LINES} more"]
    return [heading, *lines] if failures else []


def read_list(text):
    """What listed() wrote into this output of another tests/run."""
    failures = []
    _, found, rest = text.rpartition(f"\n{FAILED}\n")
    for line in rest.splitlines() if found else ():
        if line.startswith("      "):
            failures[-1].append(line.strip())
        elif line.startswith("  "):
            failures.append([line.strip()])
    return failures


def telling(lines):
    """Of a log: those that name an error, or the last ones."""
    errors = [line for line in lines if re.search(r"\b(error|FAILED)\b", line, re.I)]
    return (errors or lines)[-WORDS:]


# --- commands ---

# A third of the share that a test has, also where the kernel gives each session a share of its own.
NICE = ["sh", "-c", '{ echo 5 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 5 "$@"', "sh"]


def compiled_by(compiler, base):
    """The environment for meson and ninja. base: the directory whose copies elsewhere have the same objects."""
    if not shutil.which("ccache"):
        return {"CC": compiler}
    return {"CC": f"ccache {compiler}", "CCACHE_BASEDIR": str(base), "CCACHE_NOHASHDIR": "1",
            "CCACHE_DEPEND": "1"}  # what has no entry yet isn't read twice, by the preprocessor first


def log_of(name):
    return LOGS / f"{name.replace(' ', '-').replace('/', '-')}.log"


def end_all():
    """What runs, and what would be run yet: at Ctrl-C. Tests may end by themselves what they have
    started, which is in other sessions, and remove what they have made."""
    global ending
    ending = True
    for number, patience_s in ((signal.SIGINT, 30), (signal.SIGKILL, 0)):
        for group in list(groups):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, number)
        end = time.monotonic() + patience_s
        while groups and time.monotonic() < end:
            time.sleep(0.05)


def command(name, argv, env=None, limit_s=LIMIT_S, good=(0,)):
    """Runs a command into its log; returns its exit code, and shows the log of a failure."""
    log = log_of(name)
    with open(log, "wb") as out:
        if ending:
            raise InterruptedError
        process = subprocess.Popen(
            [*(NICE if mine.step.nice else []), *map(str, argv)], cwd=SOURCE,
            env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True)
        groups.add(process.pid)
        rc = wait_for(process, limit_s, out)
        groups.remove(process.pid)
    if rc not in good:
        lines = log.read_text(errors="replace").splitlines()
        mine.step.words += [f"{name}: exit code {rc}", *telling(lines)]
        say(f"    {name}:", *(f"    | {line}" for line in lines[-SHOWN_LINES:]),
            f"    exit code {rc}; whole log: {log.relative_to(SOURCE)}")
    return rc


def wait_for(process, limit_s, out):
    """The exit code; adds what it used to the step's CPU seconds."""
    pidfd = os.pidfd_open(process.pid)
    if not select.select([pidfd], [], [], limit_s)[0]:
        os.killpg(process.pid, signal.SIGKILL)
        out.write(f"\ntests/run: no end after {limit_s} s: killed\n".encode())
    os.close(pidfd)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    mine.step.cpu_s += used.ru_utime + used.ru_stime
    return process.returncode
