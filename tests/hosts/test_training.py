"""A real PyTorch DDP job over two simulated hosts: by mpirun, and on static nodes without it."""
import importlib.util
import re

import pytest
from harness import TESTS

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no torch here")
TRAIN = [TESTS.parent / "examples" / "train_ddp.py", "--steps", "100"]


def check_training(hosts, output, port):
    """All ranks stood where they should, and rank 0 saw the loss fall."""
    for rank in range(4):
        assert re.search(
            rf"^rank {rank} of 4: local rank {rank % 2}, node rank {rank // 2}, "
            rf"host n{rank // 2}, pid \d+, master {hosts.addresses[0]}:{port}$", output, re.M)
    losses = [float(loss) for loss in re.findall(r"^step +\d+  loss (\S+)$", output, re.M)]
    assert len(losses) == 3
    assert losses[2] < losses[0] / 10


@pytest.mark.quick
def test_ddp_by_mpirun(make_hosts):
    hosts = make_hosts(2)
    result = hosts.run_mpi(hosts.launchd("--nproc_per_node", "2", *TRAIN),
                           export={"MASTER_ADDR": hosts.addresses[0]})
    assert result.returncode == 0, result
    check_training(hosts, result.stdout, 29500)


def test_ddp_on_static_nodes(make_hosts):
    hosts = make_hosts(2)
    jobs = [hosts.static(node, "--nproc_per_node=2", "--nnodes=2", f"--node_rank={node}",
                         f"--master_addr={hosts.addresses[0]}", "--master_port=29511",
                         "--use_env", *TRAIN) for node in range(2)]
    results = [hosts.finish(job) for job in jobs]
    assert [result.returncode for result in results] == [0, 0], results
    check_training(hosts, results[0].stdout + results[1].stdout, 29511)
    assert "node rank 1" not in results[0].stdout
