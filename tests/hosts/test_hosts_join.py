"""How the nodes of a job come together: contradictions, who is missing, keys, addresses."""
import contextlib
import re
import sys

import pytest
from cluster import HOME
from harness import let_pass, native, until
from job import Launcher, verdict

SLACK_S = 10  # beyond the time-out, on a machine that does other things


@pytest.mark.parametrize("node", [0, 2])
def test_a_node_that_starts_late_is_waited_for_by_name(make_hosts, static_job, node):
    hosts = make_hosts(4)
    job = static_job(hosts, late=[node], ACT="exit:0@0")
    let_pass(3, "the others wait")
    assert job.board.ready() == 0 and not job.ended()
    job.launch(node)
    job.start()
    assert verdict(job.wait()) == (0, None)


def test_nobody_joins_himself(make_hosts):
    """Where nobody listens yet, the kernel may choose the very port that is dialed, here the only
    one there is, and connect a launcher to itself: it goes on dialing."""
    hosts = make_hosts(1)

    def start(node):
        return hosts.static(0, "--nnodes=2", f"--node_rank={node}", "--master_addr=127.0.0.1",
                            "--master_port=29500", *native("dump"))

    def ports(first, last):
        script = f"echo {first} {last} >/proc/sys/net/ipv4/ip_local_port_range"
        assert hosts.run(0, ["sh", "-c", script]).returncode == 0

    ports(29501, 29501)
    early = start(1)
    until(lambda: hosts.counted(0, "Tcp", "ActiveOpens") >= 3, "it to dial again and again")
    ports(32768, 60999)
    ends = [hosts.finish(start(0)), hosts.finish(early)]
    assert [end.returncode for end in ends] == [0, 0], ends
    assert not any("warning" in end.stderr for end in ends), ends


@pytest.mark.quick
@pytest.mark.parametrize("ipv6", [True, "only"])
def test_ipv6(make_hosts, static_job, ipv6):
    hosts = make_hosts(3, ipv6=ipv6)
    job = static_job(hosts, ACT_1="exit:7@20000")
    job.start()
    assert verdict(job.wait()) == (7, 1)


def test_mpirun_meets_on_the_interface_that_is_asked_for(make_hosts, mpirun_job):
    hosts = make_hosts(2, networks=2)
    job = mpirun_job(hosts, "--interface=eth1", worker=native("dump"), DUMP_DIR="/run/home/out")
    end = job.wait()[0]
    assert end.rc == 0, end
    dumps = hosts.place.dumps()
    assert {dump["env"]["MASTER_ADDR"] for dump in dumps.values()} == {hosts.ipv4[1][0]}
    assert sorted(dumps) == [0, 1]


# --- an address that leads nowhere ---

def test_a_name_that_cannot_be_resolved(make_hosts, static_job):
    """The launchers look for it as long as was said, also where the resolver is silent for longer."""
    hosts = make_hosts(2)
    (hosts.home / "resolv.conf").write_text("nameserver 10.77.0.250\noptions timeout:30 attempts:1\n")
    script = """ip neigh add 10.77.0.250 lladdr 02:00:00:00:00:fa dev eth0 &&
mount --bind /run/home/resolv.conf /etc/resolv.conf"""
    assert hosts.run(1, ["sh", "-c", script]).returncode == 0
    job = static_job(hosts, "--control=auto", "--join-timeout=2", "--master_addr=train-0.train", late=[0])
    job.meet(count=1, limit=20)
    wanted = r"launchd: warning: node 1 \(n1\) could not find node rank 0's launcher within 2 s " \
        r"\(--join-timeout\): the name train-0.train can't be resolved: "
    until(lambda: re.search(wanted, job.launchers[1].said()), lambda: job.described())


TWO = r"launchd: error: two launchers have node rank 0: n0 \(node 0\) and n1 \(10\.77\.0\.2:\d+\)"
NOT_OURS = r"launchd: warning: this node has node rank 0, but {} is not one of its addresses \("
ELSE = r"launchd: warning: {} is this node, which has node rank 1, but no launcher with node rank 0 runs here"
LOOPBACK = r"launchd: warning: {} is a loopback address"


@pytest.mark.parametrize("late", [[], [0], [1]], ids=["at once", "the right one late", "late"])
@pytest.mark.parametrize("master", ["10.77.0.1", "n0"])
def test_node_rank_0_given_twice(make_hosts, static_job, late, master):
    """The one that does not have the address looks who is there."""
    hosts = make_hosts(2)
    job = static_job(hosts, f"--master_addr={master}", of_node={1: ["--node_rank=0"]}, late=late)
    if late == [0]:
        until(lambda: re.search(NOT_OURS.format(master), job.launchers[1].said()), "a warning")
    if late == [1]:
        until(lambda: hosts.run(0, ["ss", "-Hltn", "sport = 29501"]).stdout, "node 0 to listen")
    for node in late:
        job.launch(node)
    ends = job.wait(limit=20)
    for end in ends.values():
        assert end.rc == 2 and len(re.findall(TWO, end.err)) == 1, ends
        assert end.err.count("launchd: error: ") == 1, ends
    assert job.board.ready() == 0
    job.nothing_left()


def test_node_rank_0_given_twice_in_a_job_with_a_name(make_hosts, static_job):
    hosts = make_hosts(2)
    job = static_job(hosts, "--rdzv-id=night", of_node={1: ["--node_rank=0"]})
    for end in job.wait(limit=20).values():
        assert end.rc == 2 and len(re.findall(TWO, end.err)) == 1, end
        assert "night" not in end.err, end


@pytest.mark.parametrize("master", ["10.77.0.1", "n0"])
def test_node_ranks_the_wrong_way_round(make_hosts, static_job, master):
    hosts = make_hosts(2)
    job = static_job(hosts, "--control=required", "--join-timeout=12", f"--master_addr={master}",
                     of_node={0: ["--node_rank=1"], 1: ["--node_rank=0"]})
    ends = job.wait(limit=12 + SLACK_S)
    assert {end.rc for end in ends.values()} == {1}
    for node, warning in enumerate((ELSE, NOT_OURS)):
        assert len(re.findall(warning.format(master), ends[node].err)) == 1, ends
        assert ends[node].err.count("warning") == 1, ends


@pytest.mark.parametrize("master", ["127.0.0.1", "localhost", "::1"])
@pytest.mark.parametrize("ranks", ["told", "not told"])
def test_an_address_of_loopback_on_several_hosts(make_hosts, static_job, master, ranks):
    hosts = make_hosts(2)

    def c10d(job, node):
        endpoint = f"[{master}]:29400" if ":" in master else f"{master}:29400"
        return hosts.launchd("--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}",
                             *job.options, *job.worker)

    options = [] if ranks == "not told" else [f"--master_addr={master}"]
    job = static_job(hosts, "--control=required", "--join-timeout=12", *options,
                     command=c10d if ranks == "not told" else None)
    ends = job.wait(limit=12 + SLACK_S)
    assert {end.rc for end in ends.values()} == {1}
    for end in ends.values():
        assert len(re.findall(LOOPBACK.format(master), end.err)) == 1, ends
        assert end.err.count("warning") == 1, ends


# Connects what comes to n0's port to n1's, as a service does.
FORWARDER = """import socket, sys, threading
def pump(a, b):
    while data := a.recv(65536):
        b.sendall(data)
    b.shutdown(socket.SHUT_WR)
listener = socket.create_server(("10.77.0.1", 29501))
print("ready", flush=True)
while True:
    a, _ = listener.accept()
    b = socket.create_connection(("10.77.0.2", 29501))
    for pair in (a, b), (b, a):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"""


def test_an_address_that_leads_to_node_rank_0(make_hosts):
    """... which does not have it: nothing is wrong, and nothing is said."""
    hosts = make_hosts(3)
    forwarder = hosts.popen(0, [sys.executable, "-c", FORWARDER], {})
    assert forwarder.stdout.readline().strip() == "ready"

    def start(host, rank):
        return hosts.static(host, "--nnodes=2", f"--node_rank={rank}", "--master_addr=10.77.0.1",
                            *native("dump"))

    first = start(1, 0)
    until(lambda: hosts.counted(1, "Tcp", "PassiveOpens"), "it to have called itself")
    ends = [hosts.finish(one) for one in (start(2, 1), first)]
    assert [end.returncode for end in ends] == [0, 0], ends
    assert not any("warning" in end.stderr for end in ends), ends
    assert sorted(hosts.place.dumps()) == [0, 1]


def test_an_address_that_leads_nowhere_yet(make_hosts):
    """Node rank 0 warns, and goes on waiting: the service may come later."""
    hosts = make_hosts(3)

    warning = NOT_OURS.format("10.77.0.1")

    def start(host, rank):
        return Launcher(hosts, host, hosts.launchd(
            "--nnodes=2", f"--node_rank={rank}", "--master_addr=10.77.0.1", *native("dump")),
            {**hosts.sanitizers(), "DUMP_DIR": f"{HOME}/out"})

    first, second = start(1, 0), start(2, 1)
    until(lambda: re.search(warning, first.said()), "a warning")
    forwarder = hosts.popen(0, [sys.executable, "-c", FORWARDER], {})
    assert forwarder.stdout.readline().strip() == "ready"
    until(lambda: first.end() and second.end(), "both to end")
    with contextlib.closing(first), contextlib.closing(second):
        ends = [first.end(), second.end()]
    assert [end.rc for end in ends] == [0, 0], ends
    assert len(re.findall(warning, ends[0].err)) == 1, ends
    assert "warning" not in ends[1].err


def test_a_lost_node_0_is_named_by_its_address(make_hosts, static_job):
    hosts = make_hosts(2)
    job = static_job(hosts, "--node-timeout=3")
    job.start()
    hosts.cut(0)
    end = job.wait(1, limit=3 + SLACK_S)[1]
    assert end.rc == 125
    lost = r"^launchd: error: root cause: this node lost contact with node 0 \(10\.77\.0\.1\) after "
    assert re.search(lost, end.err, re.M), end


def test_verbose_tells_of_the_meeting(make_hosts, static_job, mpirun_job):
    hosts = make_hosts(2)
    met = r"launchd: note: the launchers have met after \d+\.\d\d s; this is node rank {}\n"
    job = static_job(hosts, "--verbose", ACT="exit:0@0")
    job.start()
    for node, end in job.wait().items():
        assert re.search(r"launchd: note: the launchers of 2 nodes meet at 10\.77\.0\.1, port 29501 "
                         r"\(master port \+ 1\)\n(launchd: note: .*\n)*" + met.format(node),
                         end.err), end
    job = mpirun_job(hosts, "--verbose", ACT="exit:0@0")
    job.start()
    end = job.wait()[0]
    assert end.err.count("launchd: note: the launchers of 2 nodes meet by PMIx\n") == 2, end
    assert all(re.search(met.format(node), end.err) for node in range(2)), end
    job = static_job(hosts, ACT="exit:0@0")
    job.start()
    assert not any("met" in end.err for end in job.wait().values())
