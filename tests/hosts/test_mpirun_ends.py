"""Jobs that end on all nodes of a real mpirun: who is told what, with which exit code, how fast."""
import os
import re
import signal

import pytest
from harness import let_pass, native
from job import LOST_CODE, ORTED

from test_deaths import by_mpirun, orted

VERDICT = r"^launchd: error: root cause: rank (\d+) \(local rank \d+, pid \d+\) on (n\d+) " \
          r"\(node \d+\): exit code (\d+)(.*)$"
RUNS = int(os.environ.get("RUNS", "2"))  # more show the tail, by hand


def percentiles(times_ms):
    times = sorted(times_ms)
    return (f"p50 {times[len(times) // 2]:.1f} ms, p99 {times[int(len(times) * 0.99)]:.1f} ms, "
            f"most {times[-1]:.1f} ms of {len(times)}")


class Stamps:
    """The moments that stamp workers tell of."""

    def __init__(self, hosts, label=""):
        self.hosts = hosts
        self.told, self.tell = hosts.fifo(f"tell{label}")
        self.go, self.wait = hosts.fifo(f"go{label}")

    def variables(self, **more):
        return {"TELL": self.tell, "GO": self.wait, **more}

    def command(self, *options):
        """launchd, with the moment of its start."""
        stamp = native("stamp")[-1]
        return [stamp, *self.hosts.launchd(*options, *native("stamp"))]

    def next(self, what, count=1):
        """[(rank, ns)] of the next lines, all of which tell of this."""
        found = []
        for _ in range(count):
            rank, _, text = self.told.line()
            word, ns = text.split()
            assert word == what
            found.append((rank, int(ns)))
        return found

    def launched(self, nodes, workers):
        """From the last launchd's start to the last worker's, ms; told in any order."""
        lines = [self.told.line()[2].split() for _ in range(nodes + workers)]
        launched = [int(ns) for word, ns in lines if word == "launched"]
        started = [int(ns) for word, ns in lines if word == "started"]
        assert (len(launched), len(started)) == (nodes, workers), lines
        return (min(started) - max(launched)) / 1e6, (max(started) - max(launched)) / 1e6


def run_failing(hosts, count, label="", linger="0"):
    """One job of two workers on each node, in which one fails: its result, and ms to the last
    SIGTERM and to the first worker."""
    stamps = Stamps(hosts, label)
    culprit = 2 * count - 3
    job = hosts.mpirun(["sh", "-c", 'RANK=$PMIX_RANK exec "$@"', "sh",
                        *stamps.command("--nproc_per_node", "2")],
                       export=stamps.variables(**{f"END_{culprit}": "exit:7"}, LINGER_MS=linger))
    first_ms, _ = stamps.launched(count, 2 * count)
    stamps.go.go()
    [(rank, died)] = stamps.next("died")
    assert rank == culprit
    asked = stamps.next("asked", 2 * count - 1)
    assert {rank for rank, _ in asked} == set(range(2 * count)) - {culprit}
    result = hosts.finish(job)
    assert not stamps.told.rest, "a worker was asked twice"
    return result, (max(ns for _, ns in asked) - died) / 1e6, first_ms


@pytest.mark.long
@pytest.mark.parametrize("count", [4, 16])
def test_a_failure_stops_all_and_is_told_in_full(make_hosts, record_property, count):
    """Node 0 has its say before mpirun ends it, each time; the others say a line; mpirun returns
    the culprit's code."""
    hosts = make_hosts(count)
    stops, starts = [], []
    culprit = 2 * count - 3
    for i in range(RUNS):
        result, stop_ms, start_ms = run_failing(hosts, count, str(i))
        stops.append(stop_ms)
        starts.append(start_ms)
        assert result.returncode == 7, result
        told = re.findall(VERDICT, result.stderr, re.M)
        assert [line[:3] for line in told] == [(str(culprit), f"n{culprit // 2}", "7")]
        short = f"launchd: error: rank {culprit} on node {culprit // 2} failed: node 0 reports"
        assert told[0][3].startswith(" after ") and result.stderr.count(short) == count - 1, result.stderr
        assert "launchd: note: rank" in result.stderr, result.stderr
        assert not hosts.processes()
    record_property("stops", percentiles(stops))
    record_property("starts", percentiles(starts))
    print(f"\n{count} nodes: failure to last SIGTERM {percentiles(stops)}; "
          f"launchd's start to first worker {percentiles(starts)}")


def test_nobody_is_asked_twice(hosts):
    """... when mpirun's own SIGTERM comes while workers take their time."""
    result, _, _ = run_failing(hosts, 4, linger="700")
    assert result.returncode == 7
    assert not hosts.processes()


# --- requests ---

@pytest.mark.parametrize("count", [4, 16])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_mpirun(make_hosts, count, number):
    """All workers get it once, inside mpirun's second."""
    hosts = make_hosts(count)
    stamps = Stamps(hosts)
    job = hosts.mpirun(hosts.launchd("--nproc_per_node", "2", *native("stamp")),
                       export=stamps.variables(LINGER_MS="300"))
    stamps.next("started", 2 * count)
    hosts.signal(job, number)
    asked = stamps.next("asked", 2 * count)
    result = hosts.finish(job)
    assert {rank for rank, _ in asked} == set(range(2 * count))
    assert not stamps.told.rest, "a worker was asked twice"
    assert result.returncode == 1, result
    assert not hosts.processes()


@pytest.mark.parametrize("node", [0, 2])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_one_launcher(hosts, scene, node, number):
    """The whole job ends for it, and all say on which node it came."""
    s = scene(hosts, by_mpirun(hosts), DO="save:100")
    s.kill(s.guard(node), number)
    if number == signal.SIGTERM:  # launchd passes on what came, and SIGINT just ends these workers
        assert s.hear(8) == {(rank, text) for rank in range(4) for text in ("asked", "saved")}
    for other in range(4):
        s.gone(other)
    result = s.end()
    name = signal.Signals(number).name
    told = [line for line in result.stderr.splitlines() if line.startswith("launchd: error:")]
    assert [line for line in told if name in line and f"on n{node} (node {node})" in line], result
    assert result.returncode == 128 + number, result
    s.nothing_left()


# On a machine that does other things mpirun's second is not enough for a report.
SOME_TIME = ("--mca", "odls_base_sigkill_timeout", "2")


@pytest.mark.parametrize("victims", [
    "guard 2", "supervisor 2", "orted 2"])
def test_who_is_lost_is_said(hosts, scene, victims):
    """A launcher of which a process is killed: its own node is empty, the others stop in good
    order and name it."""
    s = scene(hosts, by_mpirun(hosts, *SOME_TIME), DO="save:100")
    who, node = victims.split()
    node = int(node)
    find = {"guard": s.guard, "supervisor": s.supervisor, "orted": lambda n: orted(s, n)}[who]
    s.kill(find(node))
    others = [n for n in range(4) if n != node]
    heard = s.hear(6)
    assert heard >= {(n, "saved") for n in others}, heard
    for n in range(4):
        s.gone(n)
    result = s.end()
    # without its orted all others end, too, and any of their launchers may be the first to see it
    told = r"\blaunchd's parent process\b" if who == "orted" else rf"\bnode {node}\b"
    assert re.search(rf"launchd: error: .*{told}", result.stderr), result.stderr
    s.nothing_left()


# launchd.1, "Under mpirun", for that time-out. On a machine that does other things probes may tell
# before the launchers have ended.
NODE_TIMEOUT_S, KILL_TIMEOUT_S, PROBES = 3, 5, {"time": 2, "intvl": 1, "probes": 6}
PROBES_TOLD_CODE = 205
QUIET_S = 2  # what mpirun has sent to the node is acknowledged: else it sends that again, no probes


@pytest.mark.long
def test_mpirun_returns_when_a_node_is_cut_off(make_hosts, mpirun_job):
    """Without these settings it stays for 15 minutes."""
    hosts = make_hosts(3, netem=True)
    probes = [word for name, value in PROBES.items()
              for word in ("--mca", f"oob_tcp_keepalive_{name}", str(value))]
    job = mpirun_job(hosts, f"--node-timeout={NODE_TIMEOUT_S}", kill_timeout=KILL_TIMEOUT_S,
                     mpi=probes, ACT="obey")
    job.start()
    let_pass(QUIET_S, "mpirun sends nothing")
    hosts.cut(2)
    end = job.wait(limit=120)[0]
    hosts.heal(2)
    assert end.rc in (LOST_CODE, PROBES_TOLD_CODE), end
    assert "node 2 (n2) was lost" in end.err, end
    job.nothing_left(spared=ORTED)


# --- restarts ---

def test_restarts_of_the_whole_job(hosts, record_property):
    """Three restarts each; from a death to the last worker of the next attempt."""
    shares = []
    for i in range(RUNS):
        stamps = Stamps(hosts, str(i))
        ends = {f"END_AT_{attempt}_{rank}": "exit:7" for attempt, rank in ((0, 5), (1, 0), (2, 7))}
        job = hosts.mpirun(hosts.launchd("--nproc_per_node", "2", "--max-restarts", "3",
                                         *native("stamp")),
                           export=stamps.variables(**ends, END_AT_3="exit:0"))
        stamps.next("started", 8)
        for attempt in range(3):
            stamps.go.go()
            [(_, died)] = stamps.next("died")
            lines = [stamps.told.line() for _ in range(7 + 8)]
            words = [text.split()[0] for _, _, text in lines]
            assert words == ["asked"] * 7 + ["started"] * 8, (attempt, lines)
            shares.append((max(int(text.split()[1]) for _, _, text in lines) - died) / 1e6)
        stamps.go.go(8)
        result = hosts.finish(job)
        assert result.returncode == 0, result
        assert result.stderr.count("restart 3 of at most 3") == 1, result.stderr
        assert not hosts.processes()
    record_property("restarts", percentiles(shares))
    print(f"\n4 nodes: death to the last worker of the next attempt {percentiles(shares)}")
