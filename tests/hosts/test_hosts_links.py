"""--preflight links on 16 hosts whose links have faults: exactly the bad ends are named, in time."""
import contextlib
import json
import re
import subprocess

import pytest
from cluster import HOME
from job import verdict

NODES, BAD_CODE = 16, 122
LIMIT_S = 10  # for the check, as launchd has measured it
TOOK = re.compile(r"checked 16 nodes \(quick, links\) in ([\d.]+) s: (.*)")
# nobody may keep the clock of the machine on which the tests run
WELL = re.compile(r"all good|none is bad; unknown: 16 nodes: clock: [^;]*")
NAMED = re.compile(r"warning: node (\d+) \(n\d+\) is bad: links: (.*)")


def limit(node, rate, direction="both"):
    return lambda hosts: hosts.netem.set(node, direction, rate=rate)


def lose(node, share, direction="both"):
    return lambda hosts: hosts.netem.set(node, direction, loss=share)


def swallow(node, size, direction):
    """No packet above a size gets through, and nobody is told."""
    return lambda hosts: hosts.netem.set(node, direction, max_size=size)


def silence(node):
    """Nothing that it sends arrives, but for what the job's control channel needs."""
    return lambda hosts: [hosts.netem.cut_pair(node, other) for other in range(1, NODES)
                          if other != node]


def shuffle(node, jitter_ms):
    """Packets that it receives overtake one another, and nothing is lost."""
    return lambda hosts: hosts.netem.set(node, "in", reorder=1, jitter=jitter_ms)


def shrink(node, mtu):
    def act(hosts):
        assert hosts.run(node, ["ip", "link", "set", "eth0", "mtu", mtu]).returncode == 0
    return act


def cut_apart(one, other):
    return lambda hosts: [hosts.netem.cut_pair(one, other), hosts.netem.cut_pair(other, one)]


def refuse(node):
    """As a firewall does that takes no new connections, and says so."""
    def act(hosts):
        done = hosts.run(node, ["iptables", "-A", "INPUT", "-p", "tcp", "--syn", "-j", "REJECT",
                                "--reject-with", "tcp-reset"])
        if done.returncode != 0:
            pytest.skip("there are no firewalls here")
    return act


FAULTS = {
    "slow": ([limit(5, 10)], {5: "slow"}),
    "slow in what it sends": ([limit(5, 10, "out")], {5: "slow"}),
    "node 0 is slow": ([limit(0, 10)], {0: "slow"}),
    "lossy": ([lose(5, 0.03)], {5: "lossy"}),
    "lossy in what it receives": ([lose(5, 0.03, "in")], {5: "lossy: .* of what it receives"}),
    "one-way": ([silence(5)], {5: "unreachable: no TCP connection to or from it"}),
    "takes no connections": ([refuse(5)], {5: "unreachable: no TCP connection to it .* refused"}),
    "small MTU": ([shrink(5, 1280)], {5: "small MTU: .*; its interface's MTU is 1280"}),
    "large packets lost": ([swallow(5, 1000, "in")], {5: "large packets that it receives"}),
    "two slow": ([limit(3, 10, "in"), limit(12, 10, "out")], {3: "slow", 12: "slow"}),
    "slow and one-way": ([limit(8, 10), silence(5)], {8: "slow", 5: "unreachable"}),
    "lossy and small MTU": ([lose(2, 0.03, "out"), shrink(5, 1280)],
                            {2: "lossy", 5: "small MTU"}),
    "one-way and large packets lost": ([silence(9), swallow(5, 1000, "out")],
                                       {9: "unreachable", 5: "large packets that it sends"}),
}


@contextlib.contextmanager
def busy_machine(loops=4):
    """Sessions of their own, or they would share what one of them has of the CPUs."""
    begun = [subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True)
             for _ in range(loops)]
    try:
        yield
    finally:
        for one in begun:
            one.kill()
            one.wait()


def check(job, node=0):
    """What a job has said: its ends, the bad nodes and what is wrong with each."""
    ends = job.wait()
    took = TOOK.search(ends[node].err)
    assert took and float(took[1]) < LIMIT_S, ends[node].err
    return ends, {int(number): text for number, text in NAMED.findall(ends[node].err)}


def assert_named(hosts, ends, named, expected):
    assert sorted(named) == sorted(expected), ends[0].err
    for node, text in expected.items():
        assert re.search(text, named[node]), named
    assert {end.rc for end in ends.values()} == {BAD_CODE}, ends
    cause = json.loads((hosts.home / "report").read_text())["cause"]
    assert cause["kind"] == "bad_node"
    assert cause["exclude"] == [f"n{node}" for node in sorted(expected)]


@pytest.mark.parametrize("name", FAULTS)
def test_exactly_the_bad_ends_are_named(make_hosts, static_job, name):
    hosts = make_hosts(NODES, netem=True)
    faults, expected = FAULTS[name]
    for fault in faults:
        fault(hosts)
    job = static_job(hosts, "--preflight=links", f"--report={HOME}/report")
    ends, named = check(job)
    assert_named(hosts, ends, named, expected)
    assert job.board.ready() == 0
    job.nothing_left()


def test_what_comes_late_is_not_lost(make_hosts, static_job):
    """As TCP takes it for lost, it sends it again; the receiver tells that it has come twice. It
    may be slower for that, and then it is named as slow."""
    hosts = make_hosts(NODES, netem=True)
    shuffle(5, 1)(hosts)
    job = static_job(hosts, "--preflight=links", START="auto", ACT="exit:0@0")
    _, named = check(job)
    assert not any("lossy" in text for text in named.values()), named


def test_under_mpirun(make_hosts, mpirun_job):
    hosts = make_hosts(NODES)
    shrink(5, 1280)(hosts)
    assert hosts.run(9, ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "100mbit",
                         "burst", "64kb", "latency", "50ms"]).returncode == 0
    job = mpirun_job(hosts, "--preflight=links", f"--report={HOME}/report")
    ends, named = check(job)
    assert_named(hosts, ends, named, {5: "small MTU", 9: "slow: it sends"})


def test_a_bad_pair_is_no_bad_node(make_hosts, static_job):
    """2 and 10 meet in one of the rounds; links_partner() says so."""
    hosts = make_hosts(NODES, netem=True)
    cut_apart(2, 10)(hosts)
    job = static_job(hosts, "--preflight=links", START="auto", ACT="exit:0@0")
    ends, named = check(job)
    assert verdict(ends) == (0, None) and not named
    assert re.search(r"node 2 \(n2\): link to node 10: .*no TCP connection.*; both are fine with",
                     ends[0].err), ends[0].err


@pytest.mark.parametrize("netem", [False, True], ids=["fast", "overloaded"])
def test_nobody_is_named_by_the_clock_of_a_busy_machine(make_hosts, static_job, netem):
    """All traffic goes through one process of netem.c, which has far too little time for it."""
    hosts = make_hosts(NODES, netem=netem)
    with busy_machine():
        for run in range(2):
            job = static_job(hosts, "--preflight=links", START="auto", ACT="exit:0@0",
                             port=29500 + 10 * run)
            ends, named = check(job)
            assert verdict(ends) == (0, None) and not named
            # a link may be told of, where both its ends are fine with others
            said = re.sub("; node [^;]*; both are fine with others", "", TOOK.search(ends[0].err)[2])
            assert WELL.fullmatch(said), ends[0].err
