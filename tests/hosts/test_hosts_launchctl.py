"""launchctl on the hosts of a job, whoever has started it: this node's workers, and on node 0 all."""
import json

import pytest
from harness import native, until
from job import BUILD, verdict
from slurm import Slurm, why_impossible


def ctl(hosts, host, *words):
    return hosts.run(host, [BUILD / "launchd", "ctl", *words])


def ok(hosts, host, *words):
    done = ctl(hosts, host, *words)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def all_nodes(hosts):
    """Of each node: its ranks, or why they are not known."""
    done = ctl(hosts, 0, "status", "--all-nodes", "--json")
    if done.returncode != 0:
        return done
    return [[worker["rank"] for worker in node["workers"]] if "workers" in node else node["error"]
            for node in json.loads(done.stdout)["nodes"]]


def steer(hosts, job, ready):
    """What it is asked, and then to end."""
    ready.expect("ready", 2 * len(hosts.names))
    nodes = len(hosts.names)
    ranks = [[2 * node, 2 * node + 1] for node in range(nodes)]
    until(lambda: all_nodes(hosts) == ranks, lambda: all_nodes(hosts))
    shown = ok(hosts, 0, "status", "-a").splitlines()
    assert [row.split()[:3] for row in shown[3:]] == [
        [str(rank // 2), f"n{rank // 2}", str(rank)] for rank in range(2 * nodes)]
    for node in range(nodes):
        assert ok(hosts, node, "status").count(" running ") == 2
    there = ctl(hosts, 1, "status", "-a")
    assert there.returncode == 1 and "this is node 1" in there.stderr
    assert f"RANK={2 * nodes - 1}\n" in ok(hosts, nodes - 1, "env", 2 * nodes - 1)
    ok(hosts, nodes - 1, "stop")
    return hosts.finish(job)


@pytest.mark.quick
def test_under_mpirun(make_hosts):
    hosts = make_hosts(3)
    ready, tell = hosts.fifo("tell")
    job = hosts.mpirun(hosts.launchd("--nproc_per_node", "2", *native("ending")), export={"TELL": tell})
    result = steer(hosts, job, ready)
    assert result.returncode == 143, result
    assert "launchd received SIGTERM on n2 (node 2) from pid" in result.stderr


@pytest.mark.skipif(bool(why_impossible()), reason=why_impossible() or "")
def test_under_srun(make_hosts):
    slurm = Slurm(make_hosts(2))
    ready, tell = slurm.hosts.fifo("tell")
    job = slurm.popen("srun", "-N2", "--mpi=none", *slurm.hosts.launchd("--nproc_per_node", "2", *native("ending")),
                      env={"TELL": tell})
    assert steer(slurm.hosts, job, ready).returncode == 143


@pytest.mark.parametrize("how", ["frozen", "cut off"])
def test_a_node_that_is_not_there(make_hosts, static_job, how):
    """Nobody is held up: it is said after 2 s, and that it is lost once that is known."""
    hosts = make_hosts(3)
    ready, tell = hosts.fifo("tell")
    job = static_job(hosts, "--node-timeout=60", nproc=2, worker=native("ending"), TELL=tell)
    ready.expect("ready", 6)
    until(lambda: all_nodes(hosts) == [[0, 1], [2, 3], [4, 5]], lambda: all_nodes(hosts))
    if how == "frozen":
        hosts.freeze(1)
    else:
        hosts.cut(1)
    assert all_nodes(hosts) == [[0, 1], "its launcher has not answered within 2 s", [4, 5]]
    assert "\nnode 1 on n1: its launcher has not answered within 2 s\n" in ok(hosts, 0, "status", "-a")
    if how == "frozen":
        hosts.thaw(1)
    else:
        hosts.heal(1)
    until(lambda: all_nodes(hosts) == [[0, 1], [2, 3], [4, 5]], lambda: all_nodes(hosts))
    ok(hosts, 2, "stop", "--now")
    assert verdict(job.wait())[0] == 143
