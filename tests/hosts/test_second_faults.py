"""A worker fails, and while the others still end the hub of the control channel is lost, in every way
in which it can be: whoever heard of the culprit keeps it, and all end with its exit code."""
import json
import re
import signal

import pytest
from harness import let_pass, until
from job import KILLED_CODE, LOST_CODE, cut, frozen, launcher_killed
from scene import parent_of

TIMEOUT = "--node-timeout=3"
GRACE = "--shutdown-timeout=6"
LIMIT_S = 60


def supervisor(hosts, node):
    [pid] = hosts.supervisors(node)
    return pid


def guard_killed(hosts, node):
    hosts.signal_pid(parent_of(supervisor(hosts, node)), signal.SIGKILL)


def supervisor_killed(hosts, node):
    hosts.signal_pid(supervisor(hosts, node), signal.SIGKILL)


LOSSES = [guard_killed, supervisor_killed, launcher_killed, frozen, cut]


def report_of(hosts, node):
    return json.loads((hosts.home / f"report{node}.json").read_text())


@pytest.mark.parametrize("way", LOSSES, ids=lambda way: way.__name__)
def test_the_hub_is_lost_after_a_failure(make_hosts, static_job, way):
    """The failure is the verdict of all that heard of it, and each writes its report."""
    hosts = make_hosts(3)
    job = static_job(hosts, TIMEOUT, GRACE, "--report=report%n.json", ACT_2="exit:7@20000",
                     ON_TERM="ignore")
    job.start()
    until(lambda: job.board.part(1).term_ns, "the stop on node 1")
    job.idle(0, 1, 2)
    way(hosts, 0)
    ends = job.wait(1, 2, limit=LIMIT_S)
    assert {(end.rc, *end.culprits()) for end in ends.values()} == {(7, 2)}, ends
    assert "on n2 (node 2): exit code 7" in ends[1].err, ends
    for node in (1, 2):
        report = report_of(hosts, node)
        assert report["job"]["exit_code"] == 7
        assert report["cause"]["kind"] == "failure" and report["cause"]["node"] == 2
        assert (report["culprit"]["rank"], report["culprit"]["node"]) == (2, 2)


def test_a_request_after_a_failure_by_another_clock(make_hosts, static_job):
    """It is the later one, though the clock of its node, which was booted later, is days behind."""
    hosts = make_hosts(2, clocks=[500_000, 1])
    job = static_job(hosts, "--shutdown-timeout=3", ACT_0="exit:7@0", ACT_1="never",
                     ON_TERM_1="ignore")
    job.start()
    until(lambda: job.board.part(1).term_ns, "the stop on node 1")
    job.signal(1, signal.SIGTERM)
    ends = job.wait(limit=LIMIT_S)
    assert {(end.rc, *end.culprits()) for end in ends.values()} == {(7, 0)}, ends


def test_a_failure_after_the_hub_is_lost(make_hosts, static_job):
    """The loss is the root cause, the only one that is said; the node's own failure is said beside
    it, with its words."""
    hosts = make_hosts(2)
    job = static_job(hosts, TIMEOUT, GRACE, ACT_0="never", ACT_1="obey")
    job.start()
    hosts.freeze(0)
    let_pass(1, "the node fails well after the hub is silent")
    job.board.order(1, "exit:9@0")
    end = job.wait(1, limit=LIMIT_S)[1]
    assert end.rc == 125 and end.lost() == [0], end
    assert re.findall("^launchd: error: root cause: .*", end.err, re.M) == [
        line for line in end.err.splitlines() if "lost contact with node 0" in line], end
    assert re.search(r"^launchd: error: first failure on this node: rank 1 \(.* on n1 \(node 1\): "
                     r"exit code 9 after .* s\nlaunchd: error: time: .*\nlaunchd: error: command: ",
                     end.err, re.M), end


@pytest.mark.parametrize("way", [guard_killed, launcher_killed], ids=lambda way: way.__name__)
def test_the_hub_is_lost_after_a_failure_under_mpirun(make_hosts, mpirun_job, way):
    """What is left names the culprit, and nothing crashes."""
    hosts = make_hosts(3)
    job = mpirun_job(hosts, TIMEOUT, "--shutdown-timeout=3", ACT_2="exit:7@20000",
                     ON_TERM="ignore", kill_timeout=5)
    job.start()
    until(lambda: job.board.part(1).term_ns, "the stop on node 1")
    way(hosts, 0)
    end = job.wait(0, limit=LIMIT_S)[0]
    assert end.rc != 0
    assert end.culprits() == [2], end
    assert re.search(r"on n2 \(node 2\): exit code 7", end.err), end
    assert not re.search(r"SIGSEGV|Segmentation fault|[Ee]xit code:? +139\b", end.err), end


@pytest.mark.parametrize("node", [0, 2])
def test_one_exit_code_when_a_guard_is_killed(make_hosts, static_job, node):
    """Its supervisor ends as all other nodes do; the kernel itself gives the guard that code."""
    hosts = make_hosts(3)
    job = static_job(hosts, TIMEOUT)
    job.start()
    guard_killed(hosts, node)
    ends = job.wait(limit=LIMIT_S)
    assert ends.pop(node).rc in (KILLED_CODE, -signal.SIGKILL)
    assert {end.rc for end in ends.values()} == {KILLED_CODE}, ends


def say_how(ends, node, number):
    """All ends name the node, and say by which signal its supervisor was killed."""
    name = signal.Signals(number).name
    assert "(pid " in ends[node].err and f"was killed by {name}" in ends[node].err, ends
    for other, end in ends.items():
        if other != node:
            assert end.lost() == [node], ends
            assert f"its supervisor was killed by {name}" in end.err, ends


@pytest.mark.parametrize("keyed", [False, True], ids=["no key", "key"])
@pytest.mark.parametrize("node", [0, 2])
def test_one_exit_code_when_a_supervisor_is_killed(make_hosts, static_job, node, keyed):
    """Its guard tells all others, at once; they end with what it ends with."""
    hosts = make_hosts(3)
    options = []
    if keyed:
        (hosts.home / "key").write_text("a key of the job, long enough\n")
        (hosts.home / "key").chmod(0o600)
        options = ["--key-file=/run/home/key"]
    job = static_job(hosts, "--node-timeout=60", "--report=report%n.json", *options)
    job.start()
    supervisor_killed(hosts, node)
    ends = job.wait(limit=LIMIT_S)
    assert {end.rc for end in ends.values()} == {KILLED_CODE}, ends
    say_how(ends, node, signal.SIGKILL)
    for other in {0, 1, 2} - {node}:
        cause = report_of(hosts, other)["cause"]
        assert (cause["kind"], cause["node"], cause["signal"]) == ("node_lost", node, "SIGKILL")


@pytest.mark.parametrize("node", [0, 1])
def test_one_exit_code_when_a_supervisor_crashes(make_hosts, static_job, node):
    """Nor does a hub whose only peer that was believe that it was cut off itself."""
    hosts = make_hosts(2)
    job = static_job(hosts, TIMEOUT)
    job.start()
    hosts.signal_pid(supervisor(hosts, node), signal.SIGBUS)
    ends = job.wait(limit=LIMIT_S)
    assert {end.rc for end in ends.values()} == {128 + signal.SIGBUS}, ends
    say_how(ends, node, signal.SIGBUS)
    assert not any("cut off" in end.err for end in ends.values()), ends


@pytest.mark.parametrize("node", [0, 2])
def test_a_killed_supervisor_that_nobody_hears_of(make_hosts, static_job, node):
    """Without UDP its guard can't tell, and knows that: the node was lost, on all nodes."""
    hosts = make_hosts(3, netem=True)
    hosts.netem.set(no_udp=1)
    job = static_job(hosts, TIMEOUT)
    job.start()
    supervisor_killed(hosts, node)
    ends = job.wait(limit=LIMIT_S)
    assert {end.rc for end in ends.values()} == {LOST_CODE}, ends
    assert "supervisor" in ends[node].err and "was killed by SIGKILL" in ends[node].err, ends
    for other in {0, 1, 2} - {node}:
        assert ends[other].lost() == [node], ends


def test_a_killed_hub_that_one_node_does_not_hear_of(make_hosts, static_job):
    """Who hears of it waits until all do: one exit code, and the reason where it is known."""
    hosts = make_hosts(3, netem=True)
    job = static_job(hosts, "--node-timeout=6")
    job.start()
    job.beats()
    hosts.netem.set(2, no_udp=1)
    supervisor_killed(hosts, 0)
    ends = job.wait(limit=LIMIT_S)
    assert {end.rc for end in ends.values()} == {LOST_CODE}, ends
    assert "its supervisor was killed by SIGKILL" in ends[1].err, ends
    assert "its supervisor" not in ends[2].err and ends[2].lost() == [0], ends


@pytest.mark.quick
def test_a_killed_supervisor_on_a_bad_way(make_hosts, static_job):
    """Notices and answers come again until they get through."""
    hosts = make_hosts(3, netem=True)
    job = static_job(hosts, "--node-timeout=20")
    job.start()
    job.beats()
    hosts.netem.set(direction="out", loss=0.1)
    supervisor_killed(hosts, 0)
    ends = job.wait(limit=LIMIT_S)
    assert {end.rc for end in ends.values()} == {KILLED_CODE}, ends
    say_how(ends, 0, signal.SIGKILL)


@pytest.mark.parametrize("node", [0, 1, 2])
def test_a_supervisor_is_killed_after_a_failure(make_hosts, static_job, node):
    """What its node was told is the guard's exit code, too."""
    hosts = make_hosts(3)
    job = static_job(hosts, TIMEOUT, GRACE, ACT_2="exit:7@20000", ON_TERM="ignore")
    job.start()
    until(lambda: all(job.board.part(other).term_ns for other in (0, 1)), "the stop")
    job.idle(0, 1, 2)
    supervisor_killed(hosts, node)
    ends = job.wait(limit=LIMIT_S)
    assert {end.rc for end in ends.values()} == {7}, ends
    del ends[node]
    assert {tuple(end.culprits()) for end in ends.values()} == {(2,)}, ends
