"""MPICH's mpiexec (Hydra, as Intel MPI has it too) over four simulated hosts."""
import re
import shutil

import pytest
from harness import native, until
from scene import AROUND

pytestmark = pytest.mark.skipif(not shutil.which("mpiexec.hydra"), reason="no mpich here")


def test_every_worker_has_its_place(hosts):
    result = hosts.finish(hosts.hydra(
        hosts.launchd("--nproc_per_node", "2", *native("dump")),
        {"MASTER_ADDR": hosts.addresses[0]}))
    assert result.returncode == 0, result
    dumps = hosts.place.dumps()
    assert sorted(dumps) == list(range(8))
    for rank, dump in dumps.items():
        env = dump["env"]
        assert [env["RANK"], env["LOCAL_RANK"], env["NODE_RANK"], env["WORLD_SIZE"]] == \
            [str(rank), str(rank % 2), str(rank // 2), "8"]
        assert [env["MASTER_ADDR"], env["MASTER_PORT"]] == [hosts.addresses[0], "29500"]
        assert not [name for name in env if re.match(r"PMI|HYD|MPI_LOCAL", name)]
        assert dump["fds"]["0"] == "/dev/null"


def test_no_address_is_needed(hosts):
    """Rank 0's comes by PMI-1, and the key with it."""
    result = hosts.finish(hosts.hydra(hosts.launchd("--nproc_per_node", "2", *native("dump")), {}))
    assert result.returncode == 0, result
    dumps = hosts.place.dumps()
    assert sorted(dumps) == list(range(8))
    assert {dump["env"]["MASTER_ADDR"] for dump in dumps.values()} == {hosts.addresses[0]}
    assert "not authenticated" not in result.stderr


@pytest.mark.quick
@pytest.mark.parametrize("others", ["exit:0", "never"])
def test_a_failure_is_the_jobs_exit_code(hosts, others):
    """Hydra does not end the other nodes for it: the launchers do, and one says why."""
    ready, tell = hosts.fifo("tell")
    go, wait = hosts.fifo("go")
    job = hosts.hydra(hosts.launchd("--nproc_per_node", "2", *native("ending")),
                      {"MASTER_ADDR": hosts.addresses[0], "TELL": tell, "GO": wait,
                       "END": others, "END_5": "exit:7"})
    ready.expect("ready", 8)
    go.go(8 if others == "exit:0" else 1)
    result = hosts.finish(job)
    assert result.returncode == 7, result
    assert result.stderr.count("root cause: ") == result.stderr.count("root cause: rank 5") == 1
    if others == "never":  # else some have finished before
        assert result.stderr.count("rank 5 on node 2 failed: node 0 reports") == 3
    until(lambda: not hosts.processes(), "the processes on all hosts to end")


def by_hydra(hosts):
    return lambda command, export: hosts.hydra(command, export)


def proxy(s, node):
    return s.find(node, r"\S*hydra_pmi_proxy")


# Of the node whose neighbour is lost: its workers end by SIGKILL only.
GRACES = ("--shutdown-timeout=3", "--leftover-grace=1")


@pytest.mark.parametrize("around", ["nothing", "tee", "file"])
@pytest.mark.parametrize("victim", ["mpiexec", "proxy", "guard"])
def test_a_death_ends_all_nodes(make_hosts, scene, record_property, victim, around):
    """Hydra ends the other nodes itself, at once; not after an exit code, be it 137."""
    hosts = make_hosts(2)
    s = scene(hosts, by_hydra(hosts), *GRACES, around=AROUND[around])
    s.kill({"mpiexec": lambda: s.pid, "proxy": lambda: proxy(s, 1), "guard": lambda: s.guard(1)}
           [victim]())
    record_property("n1", s.gone(1))
    if victim != "guard" or around == "nothing":
        s.gone(0)
        s.nothing_left()


def test_the_supervisors_death_ends_its_node(make_hosts, scene):
    hosts = make_hosts(2)
    s = scene(hosts, by_hydra(hosts))
    s.kill(s.supervisor(1))
    s.gone(1)
    s.nothing_left(1)
    assert s.lives(0)
