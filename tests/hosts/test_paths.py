"""A way between the nodes that brings nothing, while another one lives: TCP that is dropped, or reset,
or whose state a firewall has forgotten; a hole that only large packets fall into."""
import os
import subprocess
import time

import pytest
from harness import let_pass, until
from job import LOST_CODE, now_ns, verdict

TIMEOUT_S = 3
TIMEOUT = f"--node-timeout={TIMEOUT_S}"
SLACK_S = 10  # beyond the time-out, on a machine that does other things
NODES, FAR = 3, 2

# host, direction, what its wall does
TCP = {"TCP dropped at a node": (FAR, "both", {"no_tcp": 1}),
       "TCP dropped towards it": (FAR, "in", {"no_tcp": 1}),
       "TCP dropped from it": (FAR, "out", {"no_tcp": 1}),
       "TCP dropped at node 0": (0, "both", {"no_tcp": 1}),
       "TCP reset at a node": (FAR, "both", {"reset": 1}),
       "TCP reset at node 0": (0, "in", {"reset": 1}),
       "TCP forgotten at a node": (FAR, "both", {"forget": 100}),
       "large packets dropped towards node 0": (0, "in", {"max_size": 299}),
       "large packets dropped at a node": (FAR, "both", {"max_size": 299})}


@pytest.mark.parametrize("wall", TCP)
@pytest.mark.parametrize("culprit", [FAR, 0, 1])
def test_a_worker_fails_behind_a_dead_path(make_hosts, static_job, record_property, wall, culprit):
    """As ever, but for the time: all nodes end with its code and name it, and its words get through."""
    host, direction, what = TCP[wall]
    hosts = make_hosts(NODES, netem=True)
    job = static_job(hosts, TIMEOUT, ACT="obey")
    job.start()
    job.beats()
    hosts.netem.set(host, direction, **what)
    begun = time.monotonic()
    job.board.order(culprit, "raise:7@300000")
    ends = job.wait(limit=TIMEOUT_S + SLACK_S)
    record_property("ended after s", time.monotonic() - begun)
    assert verdict(ends) == (7, culprit), ends
    assert "ValueError: the teapot is empty" in ends[0].err, ends
    job.nothing_left()


@pytest.mark.parametrize("wall", [*TCP])
def test_no_alarm_behind_a_dead_path(make_hosts, static_job, wall):
    """Beats get through, and so does the end."""
    host, direction, what = TCP[wall]
    hosts = make_hosts(NODES, netem=True)
    job = static_job(hosts, TIMEOUT, ACT="obey")
    job.start()
    hosts.netem.set(host, direction, **what)
    let_pass(3 * TIMEOUT_S, "no alarm")
    assert not job.ended(), job.described()
    job.end_well(TIMEOUT_S + SLACK_S)
    job.nothing_left()


@pytest.mark.parametrize("direction", ["both", "in", "out"])
def test_no_alarm_when_udp_ends(make_hosts, static_job, direction):
    """Beats go by TCP before the time-out is over, also where only one end misses the other's."""
    hosts = make_hosts(NODES, netem=True)
    job = static_job(hosts, TIMEOUT, ACT="obey")
    job.start()
    hosts.netem.set(FAR, direction, no_udp=1)
    let_pass(3 * TIMEOUT_S, "no alarm")
    assert not job.ended(), job.described()
    job.end_well(TIMEOUT_S + SLACK_S)
    job.nothing_left()


def without_udp(make_hosts, static_job):
    hosts = make_hosts(NODES, netem=True)
    hosts.netem.set(no_udp=1)
    job = static_job(hosts, TIMEOUT, ACT="obey")
    job.start()
    until(lambda: sum(cut for one in hosts.netem.stats() for *_, cut in one.values()) >= 8 * (NODES - 1),
          "four datagrams of each to be lost")
    return hosts, job


def a_firewall_starts_anew(hosts):
    """It has forgotten the connection, and takes others."""
    hosts.netem.set(FAR, forget=50)
    let_pass(1, "beats come every 0.25 s, and each is dropped")
    hosts.netem.set(FAR, forget=900)


def a_firewall_resets(hosts):
    hosts.netem.set(FAR, reset=1)
    let_pass(0.6, "beats come every 0.25 s, and each is answered by a reset")
    hosts.netem.set(FAR, reset=0)


@pytest.mark.parametrize("what", [a_firewall_starts_anew, a_firewall_resets],
                         ids=lambda what: what.__name__)
@pytest.mark.parametrize("culprit", [FAR, 0])
def test_without_udp_a_fresh_connection_helps(make_hosts, static_job, what, culprit):
    hosts, job = without_udp(make_hosts, static_job)
    what(hosts)
    let_pass(2 * TIMEOUT_S, "no alarm")
    assert not job.ended(), job.described()
    job.board.order(culprit, "raise:7@0")
    ends = job.wait(limit=TIMEOUT_S + SLACK_S)
    assert verdict(ends) == (7, culprit), ends
    job.nothing_left()


@pytest.mark.quick
def test_nothing_gets_through(make_hosts, static_job):
    """Neither way: the node is lost, and it finds itself alone."""
    hosts, job = without_udp(make_hosts, static_job)
    hosts.netem.set(FAR, no_tcp=1)
    begun = time.monotonic()
    ends = job.wait(limit=TIMEOUT_S + SLACK_S)
    assert time.monotonic() - begun > TIMEOUT_S / 2
    assert {end.rc for end in ends.values()} == {LOST_CODE}, ends
    assert ends[0].lost() == ends[1].lost() == [FAR], ends
    job.nothing_left()


@pytest.mark.long
@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_one_direction_is_cut(make_hosts, static_job, record_property, node, direction):
    """Whoever hears nothing any more says so by the way that still works: here only datagrams do."""
    timeout_s = 8
    hosts = make_hosts(2, netem=True)
    job = static_job(hosts, f"--node-timeout={timeout_s}")
    job.start()
    job.beats()
    hosts.netem.set(node, no_tcp=1)
    hosts.netem.set(node, direction, cut=1)
    begun_ns = now_ns()
    ends = job.wait(limit=2 * timeout_s + SLACK_S)
    assert {end.rc for end in ends.values()} == {LOST_CODE}, ends
    deaf = node if direction == "in" else 1 - node
    took = [(ends[who].ended_ns - begun_ns) / 1e9 for who in (deaf, 1 - deaf)]
    record_property("s until both ends ended", took)
    assert took[0] > timeout_s / 2
    assert took[1] - took[0] < timeout_s / 4, f"the end that still hears came much later: {took}"
    assert "its heartbeats arrive, but ours no longer reach it" in ends[1 - deaf].err, ends
    job.nothing_left()


def test_a_dead_path_and_a_vanished_node(make_hosts, static_job):
    hosts = make_hosts(NODES, netem=True)
    job = static_job(hosts, TIMEOUT)
    job.start()
    hosts.netem.set(FAR, no_tcp=1)
    let_pass(TIMEOUT_S, "no alarm: beats still come")
    hosts.kill_launchers(FAR)
    ends = job.wait(0, 1, limit=TIMEOUT_S + SLACK_S)
    assert {(end.rc, *end.lost()) for end in ends.values()} == {(LOST_CODE, FAR)}, ends
    job.nothing_left(0, 1)


@pytest.mark.long
@pytest.mark.parametrize("no_udp", [0, 1])
def test_an_idle_connection_is_not_forgotten(make_hosts, static_job, no_udp):
    """By a firewall that forgets after 30 s: the kernel's probes come every 20 s."""
    hosts = make_hosts(2, netem=True)
    hosts.netem.set(1, forget=30_000, no_udp=no_udp)
    job = static_job(hosts, TIMEOUT, ACT="obey")
    job.start()
    let_pass(45, "longer than the firewall remembers")
    hosts.netem.set(no_udp=1)  # so that nothing helps but that connection
    given = time.monotonic()
    job.board.order(1, "raise:7@0")
    ends = job.wait(limit=TIMEOUT_S + SLACK_S)
    assert time.monotonic() - given < TIMEOUT_S / 4, "TCP was not alive"
    assert verdict(ends) == (7, 1), ends


# By hand: LAUNCHD_LOSS_S=3600
LOSS_S = float(os.environ.get("LAUNCHD_LOSS_S", "20"))


def burner():
    return subprocess.Popen(["sh", "-c", "while :; do :; done"])


@pytest.mark.long
@pytest.mark.parametrize("trouble", ["loss", "load"])
def test_no_alarm_by_loss_or_load(make_hosts, static_job, record_property, trouble):
    """30 % of the packets lost, each way; or as many busy processes as CPUs, and as many again."""
    hosts = make_hosts(4, netem=True)
    job = static_job(hosts, ACT="obey")
    job.start()
    busy = []
    try:
        if trouble == "loss":
            hosts.netem.set(direction="out", loss=0.3)
        else:
            busy = [burner() for _ in range(2 * (os.cpu_count() or 1))]
        end = time.monotonic() + LOSS_S
        while time.monotonic() < end:
            let_pass(1, "no alarm")
            assert not job.ended(), job.described()
        record_property("packets", hosts.netem.stats()[0])
        job.end_well(120)
    finally:
        for one in busy:
            one.kill()
            one.wait()
    job.nothing_left()
