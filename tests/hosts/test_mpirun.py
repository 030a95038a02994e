"""Real mpirun over four simulated hosts: what workers get, and how a job ends on all of them."""
import os
import re

import pytest
from harness import native, until

SCRUBBED = re.compile(
    r"PMIX_|PMI_|PRTE_|ORTE_|"
    r"OMPI_MCA_(orte_|ess|pmix|plm|rmaps|routed|initial_wdir|shmem_RUNTIME|mpi_oversubscribe)|"
    r"OMPI_(UNIVERSE_SIZE|NUM_APP_CTX|FIRST_RANKS|APP_CTX_NUM_PROCS|COMMAND|ARGV|FILE_LOCATION)")


def two_dumps(hosts):
    return hosts.launchd("--nproc_per_node", "2", *native("dump"))


def by_x(hosts):
    return {"export": {"MASTER_ADDR": hosts.addresses[0]}}


def by_azure(hosts):
    """Azure ML's job hands AZ_BATCH_MASTER_NODE over on every node."""
    return {"export": {"AZ_BATCH_MASTER_NODE": f"{hosts.addresses[0]}:6000"}}


@pytest.mark.parametrize("how, port", [(by_x, "29500"), (by_azure, "6105")],
                         ids=["MASTER_ADDR", "AZ_BATCH_MASTER_NODE"])
def test_every_worker_has_its_place(hosts, how, port):
    result = hosts.run_mpi(two_dumps(hosts), **how(hosts))
    assert result.returncode == 0, result
    dumps = hosts.place.dumps()
    assert sorted(dumps) == list(range(8))
    for rank, dump in dumps.items():
        expected = {
            "RANK": rank, "LOCAL_RANK": rank % 2, "WORLD_SIZE": 8, "LOCAL_WORLD_SIZE": 2,
            "NODE_RANK": rank // 2, "GROUP_RANK": rank // 2, "GROUP_WORLD_SIZE": 4,
            "MASTER_ADDR": hosts.addresses[0], "MASTER_PORT": port,
            "OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": 8,
            "OMPI_COMM_WORLD_LOCAL_RANK": rank % 2, "OMPI_COMM_WORLD_LOCAL_SIZE": 2,
            "OMPI_COMM_WORLD_NODE_RANK": rank % 2,
        }
        assert {name: dump["env"].get(name) for name in expected} == \
            {name: str(value) for name, value in expected.items()}


def test_nodes_count_in_the_order_of_hosts(hosts):
    tell = 'echo "$RANK on $(uname -n)"'
    result = hosts.run_mpi(
        hosts.launchd("--nproc_per_node", "2", "--no_python", "--use_env", "sh", "-c", tell),
        **by_x(hosts))
    assert sorted(result.stdout.splitlines()) == [f"{r} on n{r // 2}" for r in range(8)]
    assert result.returncode == 0


def test_wire_up_of_mpi_stays_away_from_workers(hosts):
    """... and users' tuning gets through."""
    result = hosts.run_mpi(["env"], **by_x(hosts))
    given = {line.partition("=")[0] for line in result.stdout.splitlines()}
    assert any(name.startswith("PMIX_") for name in given), "mpirun no longer sets what we remove"

    result = hosts.run_mpi(two_dumps(hosts), env={"OMPI_MCA_btl_tcp_links": "2"}, **by_x(hosts))
    assert result.returncode == 0, result
    dumps = hosts.place.dumps()
    assert sorted(dumps) == list(range(8))
    for dump in dumps.values():
        assert not [name for name in dump["env"] if SCRUBBED.match(name)]
        assert dump["env"]["OMPI_MCA_btl_tcp_links"] == "2"
        assert {name for name in given if name.startswith(("OMPI_", "PMIX_"))
                and not SCRUBBED.match(name)} <= dump["env"].keys()


def test_workers_read_nothing_from_stdin(hosts):
    """mpirun gives the launcher of rank 0 a pipe, and closed ones to the others."""
    result = hosts.run_mpi(two_dumps(hosts), **by_x(hosts))
    assert result.returncode == 0, result
    dumps = hosts.place.dumps()
    assert {dump["fds"]["0"] for dump in dumps.values()} == {"/dev/null"}
    assert {tuple(sorted(dump["fds"])) for dump in dumps.values()} == {("0", "1", "2")}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU: nothing to bind away")
def test_mpiruns_binding_is_taken_off_and_said_on_request(make_hosts):
    """With one or two processes mpirun binds each to one core; all workers would share it."""
    hosts = make_hosts(2)
    bound = hosts.run_mpi(["sh", "-c", "grep Cpus_allowed_list /proc/self/status"],
                          options=[], n=2)
    assert re.search(r":\s*\d+$", bound.stdout, re.M), "mpirun no longer binds to a core"
    for options, said in ((["--verbose"], 2), ([], 0)):
        result = hosts.run_mpi(
            hosts.launchd("--nproc_per_node", "2", *options, *native("dump")), options=[], n=2,
            export={"MASTER_ADDR": hosts.addresses[0]})
        assert result.returncode == 0, result
        assert result.stderr.count("mpirun bound this launcher to fewer CPUs") == said, result
    # nothing else needs anybody
    assert re.findall("launchd: note: .*", result.stderr) == [
        "launchd: note: OMP_NUM_THREADS is not set: launchd sets it to 1 for each worker"], result
    dumps = hosts.place.dumps()
    assert {dump["cpus"] for dump in dumps.values()} == {len(os.sched_getaffinity(0))}


def meeting(hosts, **more):
    """Starts workers that tell when they are there and then do as END says; pids by rank."""
    ready, tell = hosts.fifo("tell")
    go, wait = hosts.fifo("go")
    job = hosts.mpirun(
        hosts.launchd("--nproc_per_node", "2", *native("ending")),
        export={"MASTER_ADDR": hosts.addresses[0], "TELL": tell, "GO": wait, **more})
    return job, ready.expect("ready", 8), go


def nothing_is_left(hosts):
    until(lambda: not hosts.processes(), "the processes on all hosts to end")
    find = ["find", "/tmp", "-maxdepth", "1", "-name", "launchd_*"]  # directories of the run
    left = [hosts.run(host, find).stdout for host in range(4)]
    assert left == ["", "", "", ""]


@pytest.mark.quick
def test_first_failure_is_the_jobs_exit_code_and_ends_all_nodes(hosts):
    job, pids, go = meeting(hosts, END="never", END_5="exit:7")
    go.go()
    result = hosts.finish(job)
    assert result.returncode == 7, result
    assert re.search(rf"root cause: rank 5 \(local rank 1, pid {pids[5]}\) on n2 \(node 2\): "
                     r"exit code 7", result.stderr), result.stderr
    nothing_is_left(hosts)
