"""--preflight on several hosts, each with GPUs of its own, some of which are bad."""
import json

import pytest
from cluster import HOME
from harness import BUILD, until
from job import EVENTS, verdict

NVML = {"LD_LIBRARY_PATH": str(BUILD / "tests" / "workers"), "FAKE_GPUS": "8"}
BAD = "GPU 2: 4 uncorrectable"
TIMEOUT_S = 3
UNREACHED_S = 60
RESTART_S = 10  # it took 20 to 80 s while the nodes met in a store at a port of its own


def gpus(count, **faults):
    """Of each host; a name: what NVML says there."""
    return [{**NVML, **({"FAKE_NVML": faults[f'n{node}']} if f"n{node}" in faults else {})}
            for node in range(count)]


@pytest.fixture
def job_of(static_job, mpirun_job):
    """By mpirun what all launchers say comes from one."""
    return lambda kind, *how, **more: {"static": static_job, "mpirun": mpirun_job}[kind](
        *how, **more)


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["static", "mpirun"])
def test_a_bad_node_is_named_everywhere_and_no_worker_starts(make_hosts, job_of, kind):
    hosts = make_hosts(4, variables=gpus(4, n2="ecc@2=4"))
    job = job_of(kind, hosts, "--preflight=quick", f"--report={HOME}/report")
    ends = job.wait()
    assert {end.rc for end in ends.values()} == {122}, ends
    for end in ends.values():
        assert f"root cause: node 2 (n2) is bad: {BAD}" in end.err and "; exclude: n2" in end.err
    assert job.board.ready() == 0
    cause = json.loads((hosts.home / "report").read_text())["cause"]
    assert (cause["kind"], cause["node"], cause["exclude"]) == ("bad_node", 2, ["n2"])
    job.nothing_left()


def test_all_bad_nodes_are_excluded(make_hosts, static_job):
    hosts = make_hosts(4, variables=gpus(4, n1="failed@5=1", n3="ecc@2=4"))
    job = static_job(hosts, "--preflight=quick", f"--report={HOME}/report", EVENTS)
    ends = job.wait()
    assert {end.rc for end in ends.values()} == {122}, ends
    for node, end in ends.items():
        assert "root cause: node 1 (n1) is bad: GPU 5: " in end.err
        assert "; 2 nodes are bad; exclude: n1,n3" in end.err
        assert '"cause":"bad_node","exclude":["n1","n3"]' in \
            (hosts.home / f"events{node}").read_text()
    assert "node 1 (n1) is bad: " in ends[0].err and f"node 3 (n3) is bad: {BAD}" in ends[0].err
    assert json.loads((hosts.home / "report").read_text())["cause"]["exclude"] == ["n1", "n3"]


@pytest.mark.parametrize("how", [{"ipv6": "only"}, {"clocks": [None, 50000, 100000]}],
                         ids=["IPv6 only", "clocks of their own"])
def test_good_nodes(make_hosts, static_job, how):
    """Their monotonic clocks are days apart, and that says nothing of the time of day."""
    hosts = make_hosts(3, variables=gpus(3), **how)
    job = static_job(hosts, "--preflight=quick", START="auto", ACT="exit:0@0")
    ends = job.wait()
    assert verdict(ends) == (0, None)
    assert "checked 3 nodes (quick) in " in ends[0].err
    assert "clock_offset" not in ends[0].err and "did not answer" not in ends[0].err


@pytest.fixture
def behind_a_firewall(make_hosts):
    """Hosts between which only the launchers' port and the master port are open."""
    hosts = make_hosts(3, variables=gpus(3))
    wall = ["iptables", "-A", "OUTPUT", "!", "-o", "lo", "-p", "tcp", "--syn", "-m", "multiport",
            "!", "--dports", "29500,29501", "-j", "DROP"]
    for node in range(3):
        if hosts.run(node, wall).returncode != 0:
            pytest.skip("there are no firewalls here")
    return hosts


def test_the_check_needs_no_port_of_its_own(behind_a_firewall, static_job):
    job = static_job(behind_a_firewall, "--preflight=quick", START="auto", ACT="exit:0@0")
    ends = job.wait(limit=UNREACHED_S)
    assert verdict(ends) == (0, None)
    assert "launchd: note: checked 3 nodes (quick) in " in ends[0].err
    assert not any("could not be checked" in end.err or "did not answer" in end.err
                   for end in ends.values())


def test_a_restart_needs_no_port_of_its_own(behind_a_firewall, static_job, record_property):
    """Each attempt begins at once, as the gate has nothing to wait for."""
    job = static_job(behind_a_firewall, "--max-restarts=2", START="auto",
                     ACT="never;never;exit:0@0", ACT_1="exit:7@0;exit:7@0;exit:0@0")
    ends = job.wait(limit=3 * UNREACHED_S)
    assert verdict(ends) == (0, None)
    parts = [job.board.parts(job.world, attempt) for attempt in range(3)]
    took = [(max(part.born_ns for part in after) - min(part.died_ns for part in before
                                                        if part.died_ns)) / 1e9
            for before, after in zip(parts, parts[1:])]
    record_property("restarts after s", took)
    assert max(took) < RESTART_S, took
    assert not any("check" in end.err for end in ends.values()), ends


@pytest.mark.parametrize("how", [{}, {"ipv6": "only"}], ids=["", "IPv6 only"])
def test_gpus_of_several_hosts_meet(make_hosts, static_job, how):
    """In a store of node rank 0's, which takes the job's nodes only."""
    hosts = make_hosts(3, variables=[{**one, "PATH": f"{HOME}/programs:/usr/bin:/bin", "FAKE_GPUS": "2"}
                                     for one in gpus(3)], **how)
    (hosts.home / "programs").mkdir()
    (hosts.home / "programs" / "launchd-nodecheck").symlink_to(
        BUILD / "tests" / "workers" / "launchd-nodecheck-fake")
    job = static_job(hosts, "--preflight=gpu", START="auto", ACT="exit:0@0",
                     FAKE_GPU_FAULTS="1.0:compute-slow")
    ends = job.wait(limit=UNREACHED_S)
    assert {end.rc for end in ends.values()} == {122}, ends
    assert "root cause: node 1 (n1) is bad: GPU 0 (0000:10:00.0): slow, each of 2 times" in ends[0].err


@pytest.mark.parametrize("node", [0, 2])
def test_a_node_that_is_lost_during_the_check(make_hosts, static_job, node):
    hosts = make_hosts(3, variables=gpus(3))
    job = static_job(hosts, "--preflight=quick", "--check-command=sleep 1000",
                     "--check-timeout=1000", f"--node-timeout={TIMEOUT_S}")
    for each in range(3):
        until(lambda each=each: any("sleep 1000" in line and "launchd" not in line
                                    for _, line in hosts.processes(each)), "the checks to begin")
    hosts.freeze(node)
    others = [each for each in range(3) if each != node]
    ends = job.wait(*others)
    assert {(end.rc, *end.lost()) for end in ends.values()} == {(125, node)}, ends
    assert job.board.ready() == 0
    job.nothing_left(*others)
    hosts.thaw(node)
    assert job.wait(node)[node].rc != 0
    job.nothing_left()
