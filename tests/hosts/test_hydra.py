"""MPICH's mpiexec (Hydra, as Intel MPI has it too) over four simulated hosts."""
import re
import shutil

import pytest
from harness import native, until

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


def test_a_failure_is_the_jobs_exit_code(hosts):
    """Hydra does not end the other nodes for it: they end by themselves here."""
    ready, tell = hosts.fifo("tell")
    go, wait = hosts.fifo("go")
    job = hosts.hydra(hosts.launchd("--nproc_per_node", "2", *native("ending")),
                      {"MASTER_ADDR": hosts.addresses[0], "TELL": tell, "GO": wait,
                       "END": "exit:0", "END_5": "exit:7"})
    ready.expect("ready", 8)
    go.go(8)
    result = hosts.finish(job)
    assert result.returncode == 7, result
    assert "first to fail: rank 5" in result.stderr
    until(lambda: not hosts.processes(), "the processes on all hosts to end")
