"""What tests/bench/run_output measures with: ways to run printing workers, and one measured run.

Every way is a command that starts COUNT workers, for which ./measure.py has the launchers, and a
directory of its own for the files that it writes; all write to the same console.
"""
import contextlib
import os
import pathlib
import subprocess
import tempfile
import threading
import time

import measure

LINE_BYTES = 93  # of lines.c


class Way:
    """How workers are run. options: before the program; files: a pattern of the files that hold
    every byte, in the directory that DIRECTORY stands for."""

    def __init__(self, name, launcher, *options, files=None, through=None):
        self.name = name
        self.launcher = measure.Launcher(launcher.name, *launcher.before, *options)
        self.files = files
        self.through = through

    def command(self, directory, count, program):
        if self.through:
            program = ["/bin/sh", "-c", self.through.format(program=" ".join(map(str, program)))]
        words = self.launcher.command(count, *program)
        return [word.replace("DIRECTORY", str(directory)) for word in words]

    def check(self, directory, count, size):
        """A run that lost a byte is no measurement."""
        if not self.files:
            return
        sizes = [path.stat().st_size for path in pathlib.Path(directory).glob(self.files)]
        if sizes != [size] * count:
            raise RuntimeError(f"{self.name} wrote {sizes} bytes, not {count} times {size}")


def ways(found):
    """By name: what is compared, of the launchers that are here."""
    tree = {"files": "logs/*/attempt_0/*/stdout.log"}
    logs = ["-t", "3", "--log-dir", "DIRECTORY/logs"]
    made = [
        Way("tee", found["bare"], files="*.log",
            through="{program} | cat | tee DIRECTORY/$RANK.log"),
        Way("inherited", found["bare"]),
        Way("launchd -t 3", found["launchd"], *logs, **tree),
        Way("launchd tagged", found["launchd"], "--log-line-prefix-template", "[1,${rank}]:"),
        Way("launchd", found["launchd"]),
    ]
    if "torchrun" in found:
        made.append(Way("torchrun -t 3", found["torchrun"], *logs, **tree))
    if "mpirun" in found:
        made.append(Way("mpirun --tag-output", found["mpirun"], "--tag-output"))
    return {way.name: way for way in made}


@contextlib.contextmanager
def console_of(kind, directory):
    """A stdout for a launcher: yields (fd, function that waits until all of it was read)."""
    if kind == "pipe":
        reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        fd = os.dup(reader.stdin.fileno())
        reader.stdin.close()

        def until_read():
            os.close(fd)
            reader.wait(measure.LIMIT_S)
        yield fd, until_read
        return
    path = "/dev/null" if kind == "null" else directory / "console"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    yield fd, lambda: os.close(fd)


class Job:
    """One run of COUNT workers that print `size` bytes each, `chunk` at a time (0: a line)."""

    def __init__(self, way, tools, home, count, size, chunk, console):
        self.way, self.count, self.size = way, count, size
        self.program = [tools / "lines", str(size), str(chunk)]
        self.home, self.console = home, console
        self.wall_s = self.all_s = self.own_s = self.high_kb = 0

    def run(self, watch=False):
        """Wall and CPU time, or with `watch` the memory, whose reader takes time from the others."""
        with tempfile.TemporaryDirectory(dir=self.home) as made:
            directory = pathlib.Path(made)
            with console_of(self.console, directory) as (fd, until_read), \
                    open(directory / "said", "wb") as said:
                begin = time.monotonic()
                process = subprocess.Popen(
                    self.way.command(directory, self.count, self.program), close_fds=False,
                    stdin=subprocess.DEVNULL, stdout=fd, stderr=said,
                    env={**os.environ, "LINES_USAGE": str(directory / "usage")})
                watcher = Watcher(process.pid) if watch else None
                limit = threading.Timer(measure.LIMIT_S, process.kill)
                limit.start()
                _, status, used = os.wait4(process.pid, 0)
                limit.cancel()
                process.returncode = os.waitstatus_to_exitcode(status)
                until_read()
                self.wall_s = time.monotonic() - begin
            if watcher:
                watcher.stop()
            measure.end_all_children()
            if process.returncode != 0:
                words = (directory / "said").read_text(errors="replace")
                raise RuntimeError(f"{self.way.name} ended with {process.returncode}: {words}")
            self.way.check(directory, self.count, self.size)
            self.all_s = used.ru_utime + used.ru_stime
            workers = [line.split() for line in (directory / "usage").read_text().splitlines()]
            self.own_s = self.all_s - sum(int(ns) for _, ns in workers) / 1e9
            if watcher:
                self.high_kb = watcher.without({int(pid) for pid, _ in workers})
        return self

    def gigabytes(self):
        return self.count * self.size / 1e9


class Watcher(threading.Thread):
    """Reads the peak memory of all processes of a run until stopped."""

    def __init__(self, pid):
        super().__init__()
        self.pid, self.high, self.over = pid, {}, threading.Event()
        self.start()

    def run(self):
        over = False
        while not over:
            for pid in measure.tree_of(self.pid):
                high = measure.kilobytes(measure.fields(f"/proc/{pid}/status"), "VmHWM")
                self.high[pid] = max(high, self.high.get(pid, 0))
            over = self.over.wait(0.005)

    def stop(self):
        self.over.set()
        self.join()

    def without(self, workers):
        """KB: the sum over those that were no workers, not even before their exec."""
        return sum(high for pid, high in self.high.items() if pid not in workers)


def in_turn(rounds, jobs):
    """The runs of these jobs: [[a, b], ...]; they are run a b b a, so that a machine whose speed
    changes does not change what a and b have to do with one another, nor the memory that the one
    leaves to the other, which is not cold then."""
    runs = []
    for i in range(rounds):
        made = [Job(*job) for job in jobs]
        for job in made[::-1 if i % 2 else 1]:
            job.run()
        runs.append(made)
    return runs
