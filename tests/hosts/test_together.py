"""Several nodes act as one: they stop together, agree on who was first, and notice whoever is gone."""
import re
import signal
import time

import pytest
from harness import let_pass, until
from job import (CLOCKS_APART_MS, EVENTS, LOST_CODE, MS, ORTED, cut, frozen, launcher_killed, now_ns,
                 verdict)

TIMEOUT_S = 3
TIMEOUT = f"--node-timeout={TIMEOUT_S}"
SLACK_S = 10  # beyond the time-out, on a machine that does other things
SOON_MS = 5000  # for what takes a millisecond on an idle machine
KINDS = ["static", "mpirun"]


@pytest.fixture
def job_of(static_job, mpirun_job):
    """job_of(kind, hosts, *options, ...) -> a job"""
    return lambda kind, *how, **more: {"static": static_job, "mpirun": mpirun_job}[kind](
        *how, **more)


def stopped_together(job, since_ns, but, soon=None):
    """Every worker but some had its SIGTERM, and nothing is left."""
    terms = job.terms_ms(since_ns, but=but)
    soon = soon or min(SOON_MS, job.by_others_ms)
    assert all(ms is not None and -CLOCKS_APART_MS <= ms < soon for ms in terms.values()), terms
    job.nothing_left()
    return terms


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("culprit, act, code", [
    (4, "exit:7@20000", 7), (1, "exit:42@0", 42), (7, "signal:11@30000", 139)])
def test_a_failure_ends_the_job_on_all_nodes(make_hosts, job_of, record_property, kind, culprit,
                                             act, code):
    hosts = make_hosts(4)
    job = job_of(kind, hosts, nproc=2, **{f"ACT_{culprit}": act})
    job.start()
    ends = job.wait()
    assert verdict(ends) == (code, culprit), ends
    terms = stopped_together(job, job.board.part(culprit).died_ns, [culprit])
    record_property("worst SIGTERM after ms", max(terms.values()))
    if kind == "static":
        assert "command:" in ends[0].err, "node 0 prints the whole report"
        for node in range(1, 4):
            naming = [line for line in ends[node].err.splitlines() if f"rank {culprit} " in line]
            assert len(naming) == 1, ends[node].err


@pytest.mark.quick
def test_an_exception_is_told_by_node_0(make_hosts, static_job):
    hosts = make_hosts(4)
    job = static_job(hosts, ACT_2="raise:1@20000")
    job.start()
    ends = job.wait()
    assert verdict(ends) == (1, 2)
    assert "ValueError: the teapot is empty" in ends[0].err


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_all_well(make_hosts, job_of, kind):
    hosts = make_hosts(4)
    job = job_of(kind, hosts, nproc=2, ACT="exit:0@20000")
    job.start()
    assert verdict(job.wait()) == (0, None)
    job.nothing_left()


def test_nodes_that_finish_early_leave(make_hosts, static_job):
    """No barrier keeps them, and none of them is missed; node 0 is among them."""
    hosts = make_hosts(4)
    job = static_job(hosts, TIMEOUT, ACT="exit:0@20000", ACT_3="obey", ACT_0="exit:0@500000")
    job.start()
    early = job.wait(1, 2)
    assert {end.rc for end in early.values()} == {0}
    let_pass(2 * TIMEOUT_S, "no node notices anything")
    assert job.board.part(3).term_ns == 0
    job.board.order(3, "exit:0@0")
    assert verdict(job.wait()) == (0, None)


def test_a_failure_when_others_have_left(make_hosts, static_job):
    hosts = make_hosts(4)
    job = static_job(hosts, ACT="exit:0@20000", ACT_2="never", ACT_3="obey")
    job.start()
    assert {end.rc for end in job.wait(1).values()} == {0}
    given = job.board.order(3, "exit:9@0")
    ends = job.wait(2, 3)
    assert verdict(ends) == (9, 3)
    assert job.terms_ms(given, but=[0, 1, 3])[2] < SOON_MS


def test_sigterm_to_mpirun_ends_the_job_in_order(make_hosts, mpirun_job):
    """Workers have their time for a checkpoint, inside of mpirun's own time-outs: it sends CONT at
    once, TERM after the first of them and KILL after the second."""
    hosts = make_hosts(4)
    job = mpirun_job(hosts, ON_TERM="ms:500", kill_timeout=2)
    job.start()
    sent = now_ns()
    job.signal(0, signal.SIGTERM)
    end = job.wait()[0]
    assert end.rc != 0
    assert not end.culprits() and not end.lost(), end
    terms = stopped_together(job, sent, [], soon=2 * job.by_others_ms)
    assert max(terms.values()) - min(terms.values()) < 1000, "not together"


def test_a_request_cuts_the_farewell_not_the_report(make_hosts, static_job):
    """mpirun's SIGTERM comes soon after the first launcher's end: one that still waits for a frozen
    host to read the verdict, up to 10 s, leaves with its report and the job's exit code."""
    hosts = make_hosts(3)
    job = static_job(hosts, EVENTS, ACT_0="exit:7@20000", ON_TERM_1="ms:2000")
    job.start()
    until(lambda: job.happened("worker_ended", node=2), "the end of node 2's worker")
    job.idle(2)  # it is told
    hosts.freeze(2)
    assert job.wait(1)[1].rc == 7
    asked = time.monotonic()
    job.signal(0, signal.SIGTERM)
    end = job.wait(0)[0]
    assert time.monotonic() - asked < 5
    assert (end.rc, end.culprits()) == (7, [0]), end
    hosts.thaw(2)
    assert verdict(job.wait()) == (7, 0)


def hears_nothing(hosts, node):
    hosts.cut(node, "in")


def says_nothing(hosts, node):
    hosts.cut(node, "out")


def powered_off(hosts, node):
    hosts.power_off(node)


AT_ONCE = {launcher_killed}
BACK = {frozen: lambda hosts, node: hosts.thaw(node), cut: lambda hosts, node: hosts.heal(node),
        hears_nothing: lambda hosts, node: hosts.heal(node),
        says_nothing: lambda hosts, node: hosts.heal(node)}


@pytest.mark.parametrize("way", [launcher_killed, frozen, cut, hears_nothing, says_nothing,
                                 powered_off], ids=lambda way: way.__name__)
@pytest.mark.parametrize("node", [0, 2])
def test_a_node_vanishes(make_hosts, static_job, record_property, way, node):
    """The others stop and say which one; when it comes back, it finds its job over."""
    hosts = make_hosts(4, netem=True)
    job = static_job(hosts, TIMEOUT, nproc=2)
    job.start()
    since, begun = now_ns(), time.monotonic()
    way(hosts, node)
    others = [other for other in range(4) if other != node]
    ends = job.wait(*others, limit=TIMEOUT_S + SLACK_S)
    took = time.monotonic() - begun
    record_property("noticed after s", took)
    assert took > TIMEOUT_S / 2 or way in AT_ONCE
    assert {end.lost() == [node] for end in ends.values()} == {True}, ends
    assert {end.rc for end in ends.values()} == {LOST_CODE}, ends
    spared = list(job.ranks(node))
    terms = job.terms_ms(since, but=spared)
    assert all(ms is not None for ms in terms.values()), terms
    job.nothing_left(*others)
    if way in BACK:
        BACK[way](hosts, node)
        assert job.wait(node, limit=TIMEOUT_S + SLACK_S)[node].rc != 0
    job.nothing_left(node)


def test_node_0_is_told_that_it_may_be_the_one(make_hosts, static_job):
    hosts = make_hosts(4, netem=True)
    job = static_job(hosts, TIMEOUT)
    job.start()
    hosts.cut(0)
    ends = job.wait(limit=TIMEOUT_S + SLACK_S)
    assert ends[0].err.endswith(
        "launchd: note: no other node is heard from: node 0 (n0) may itself have been cut off\n"), ends
    assert all(ends[node].lost() == [0] for node in range(1, 4)), ends
    assert "; 3 of 4 nodes were lost: nodes 1-3\n" in ends[0].err, ends
    for node in range(1, 4):
        assert "was lost" not in ends[node].err, "it can't know that"
        assert "this node lost contact with node 0 (10.77.0.1)" in ends[node].err, ends
        assert "one of the two nodes was cut off, frozen or powered off" in ends[node].err, ends


def test_a_node_that_was_cut_off_says_what_it_saw(make_hosts, static_job):
    """The others have their verdict about it, and it can't know which of the two it was."""
    hosts = make_hosts(3, netem=True)
    job = static_job(hosts, TIMEOUT)
    job.start()
    hosts.cut(1)
    ends = job.wait(limit=TIMEOUT_S + SLACK_S)
    assert all(ends[node].lost() == [1] for node in (0, 2)), ends
    assert "node 0" in ends[1].err and "was lost" not in ends[1].err, ends[1]
    assert "this node lost contact with node 0 (10.77.0.1)" in ends[1].err, ends[1]


def test_a_killed_hub_may_have_missed_the_node(make_hosts, static_job):
    """What ended the connection was its kernel, so nothing was cut."""
    hosts = make_hosts(3)
    job = static_job(hosts, TIMEOUT)
    job.start()
    hosts.kill_launchers(0)
    for node, end in job.wait(1, 2).items():
        assert "lost contact with node 0 (10.77.0.1)" in end.err, (node, end)
        assert "; its launcher was killed, or had already considered this node lost" in end.err, (node, end)


def stopped(hosts, node):
    for pid in hosts.launchers(node):
        hosts.signal_pid(pid, signal.SIGSTOP)


def goes_on(hosts, node):
    for pid in hosts.launchers(node):  # one wakes the other, which may find all over, and end
        hosts.signal_pid(pid, signal.SIGCONT)


@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("hold, release", [(frozen, BACK[frozen]), (stopped, goes_on)],
                         ids=["frozen", "stopped"])
def test_a_node_that_did_not_run_says_so(make_hosts, static_job, node, hold, release):
    """It sees that it was itself; the others know no more than that it was silent."""
    hosts = make_hosts(3)
    job = static_job(hosts, TIMEOUT)
    job.start()
    hold(hosts, node)
    others = [other for other in range(3) if other != node]
    ends = job.wait(*others, limit=TIMEOUT_S + SLACK_S)
    assert all(end.lost() == [node] for end in ends.values()), ends
    release(hosts, node)
    end = job.wait(node, limit=TIMEOUT_S + SLACK_S)[node]
    assert end.rc == LOST_CODE and not end.lost(), end
    assert re.search(fr"^launchd: error: root cause: node {node} \(.*\) was itself frozen or "
                     r"suspended( after .* s)?: its launcher did not run for \d+\.\d s, so the "
                     "other nodes considered it lost$", end.err, re.M), end
    assert "was lost" not in end.err.replace("the node was lost", "") and \
        "lost contact" not in end.err and "cut off" not in end.err, end


def test_a_pause_shorter_than_the_time_out_is_no_excuse(make_hosts, static_job):
    """A node that is killed soon after it was."""
    hosts = make_hosts(3)
    job = static_job(hosts, TIMEOUT)
    job.start()
    hosts.freeze(0)
    let_pass(TIMEOUT_S / 4, "less than the time-out")
    hosts.thaw(0)
    hosts.kill_launchers(2)
    ends = job.wait(0, 1, limit=TIMEOUT_S + SLACK_S)
    assert all(end.lost() == [2] and "frozen or suspended" not in end.err
               for end in ends.values()), ends


UNSURE = "was lost, too; launchd can't tell which was first"


@pytest.mark.quick
def test_a_silence_that_began_before_another_nodes_end(make_hosts, static_job):
    """It is noticed later, and is the cause all the same: a word was due before the other ended. Of
    the one that has ended nobody knows that it was there to the last."""
    hosts = make_hosts(4, netem=True)
    job = static_job(hosts, TIMEOUT)
    job.start()
    hosts.cut(1)
    let_pass(TIMEOUT_S / 4, "three beats are missed")
    hosts.kill_launchers(2)
    end = job.wait(0, limit=TIMEOUT_S + SLACK_S)[0]
    assert end.lost() == [1] and f"node 2 (n2) {UNSURE}" in end.err, end


def test_an_end_before_another_nodes_silence(make_hosts, static_job):
    """It is missed when the job has been told to stop for a while, and was there to the end."""
    hosts = make_hosts(4, netem=True)
    job = static_job(hosts, TIMEOUT, ON_TERM_1="ms:2000")  # it is not done before it is cut
    job.start()
    job.beats()
    hosts.kill_launchers(2)
    hosts.cut(1)
    ends = job.wait(0, 3, limit=TIMEOUT_S + SLACK_S)
    assert all(end.lost() == [2] for end in ends.values()), ends
    assert "node 1 (n1) was lost, too" in ends[0].err, ends


@pytest.mark.parametrize("way", [launcher_killed, powered_off], ids=lambda way: way.__name__)
@pytest.mark.parametrize("node", [0, 2])
def test_a_node_vanishes_under_mpirun(make_hosts, mpirun_job, way, node):
    hosts = make_hosts(4)
    job = mpirun_job(hosts, TIMEOUT, nproc=2, kill_timeout=2)
    job.start()
    since = now_ns()
    way(hosts, node)
    others = [rank for rank in range(8) if rank not in job.ranks(node)]
    until(lambda: all(job.board.part(rank).term_ns for rank in others), "SIGTERM everywhere",
          TIMEOUT_S + SLACK_S)
    assert all(job.board.part(rank).term_ns > since - CLOCKS_APART_MS * MS for rank in others)
    job.nothing_left(*[one for one in range(1, 4) if one != node], spared=ORTED)


def sleep_a_little(hosts, who):
    """One for less than the time-out, or all of them for longer; returns for how long at most one
    that was awake heard nothing of one that was not."""
    times = [time.monotonic()]
    for host in who:
        hosts.freeze(host)
    times.append(time.monotonic())
    let_pass(TIMEOUT_S * (0.6 if len(who) == 1 else 2), "it sleeps")
    times.append(time.monotonic())
    for host in who:
        hosts.thaw(host)
    times.append(time.monotonic())
    begun, all_sleep, first_wakes, over = times
    return over - begun if len(who) == 1 else all_sleep - begun + over - first_wakes


@pytest.mark.long
@pytest.mark.parametrize("who", [[2], [0], [0, 1, 2, 3]], ids=str)
def test_no_alarm_when_a_host_sleeps_a_little(make_hosts, static_job, who):
    """On a busy machine it may sleep for longer than it was to: then the alarm is right."""
    hosts = make_hosts(4)
    for _ in range(3):
        job = static_job(hosts, TIMEOUT, ACT="obey")
        job.start()
        for _ in range(2):
            silent_s = sleep_a_little(hosts, who)
            let_pass(TIMEOUT_S * 1.5, "no alarm")
            if job.ended():
                break
        else:
            job.end_well()
            return
        assert silent_s > TIMEOUT_S * 0.8, job.described()
        job.wait()
    pytest.skip("three times a host slept for longer than it was to")


@pytest.mark.long
def test_no_alarm_on_a_bad_network(make_hosts, static_job):
    """The four minutes on 16 nodes are in test_soak.py."""
    hosts = make_hosts(8, netem=True)
    hosts.netem.set(loss=0.106, delay=100, jitter=10)  # both ways of two hosts: 20 % and 200 ms
    job = static_job(hosts, ACT="obey")
    job.start()
    let_pass(15, "no alarm")
    assert not job.ended(), job.described()
    job.end_well()


@pytest.mark.quick
def test_a_failure_on_a_bad_network(make_hosts, static_job):
    hosts = make_hosts(4, netem=True)
    job = static_job(hosts, ACT_2="exit:7@50000")
    job.meet()
    hosts.netem.set(loss=0.1, delay=50)
    job.board.start()
    assert verdict(job.wait()) == (7, 2)


@pytest.mark.parametrize("clocks", [[2000, 92_000, 0, 2007], None])
def test_clocks_do_not_matter(make_hosts, static_job, clocks):
    hosts = make_hosts(4, clocks=clocks)
    job = static_job(hosts, TIMEOUT, ACT_3="exit:7@20000")
    job.start()
    assert verdict(job.wait()) == (7, 3)
    stopped_together(job, job.board.part(3).died_ns, [3])


def test_sixty_four_static_nodes(make_hosts, static_job, record_property):
    hosts = make_hosts(64)
    job = static_job(hosts, ACT_40="exit:7@100000")
    job.start(after_s=0.5)
    ends = job.wait()
    assert verdict(ends) == (7, 40)
    terms = stopped_together(job, job.board.part(40).died_ns, [40])
    record_property("worst SIGTERM after ms", max(terms.values()))
