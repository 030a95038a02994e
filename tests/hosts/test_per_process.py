"""--per-process over several hosts: each worker has the rank, and the MPI identity, of its launcher."""
import importlib.util

import pytest
from cluster import mpirun_on
from harness import native
from slurm import Slurm, why_impossible

TELL = ('echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $NODE_RANK $GROUP_RANK/$GROUP_WORLD_SIZE '
        '$ROLE_RANK/$ROLE_WORLD_SIZE $(uname -n)"')
SUM = ("from mpi4py import MPI; import os; c = MPI.COMM_WORLD; e = os.environ; "
       "print(c.rank, c.size, c.allreduce(c.rank), e['RANK'], e['WORLD_SIZE'], flush=True)")
needs_slurm = pytest.mark.skipif(bool(why_impossible()), reason=why_impossible() or "")
needs_mpi4py = pytest.mark.skipif(not importlib.util.find_spec("mpi4py"), reason="no mpi4py here")


def per_process(hosts, *words):
    return hosts.launchd("--per-process", "--use_env", *words)


def told(stdout):
    return sorted(line for line in stdout.replace("\r", "").splitlines() if "/" in line)


@pytest.mark.quick
@pytest.mark.parametrize("mapping, places", [
    # ranks' hosts and local ranks
    ("slot", [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]),
    ("node", [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]),
])
def test_ranks_are_mpiruns(make_hosts, mapping, places):
    hosts = make_hosts(3)
    result = hosts.run_mpi(per_process(hosts, "--no_python", "sh", "-c", TELL), n=5,
                           options=["--map-by", mapping])
    assert result.returncode == 0, result
    assert told(result.stdout) == [
        f"{rank}/5 {local}/{2 if host < 2 else 1} {host} {host}/3 {rank}/5 n{host}"
        for rank, (host, local) in enumerate(places)], result


@needs_mpi4py
@pytest.mark.parametrize("option, mapping, count", [
    ("--per-process", ["--map-by", "slot"], 4), ("--mpi-env=keep", ["--map-by", "ppr:1:node"], 2)])
def test_the_mpi_identity_is_the_workers(make_hosts, option, mapping, count):
    hosts = make_hosts(2)
    result = hosts.run_mpi(
        hosts.launchd(option, "--use_env", "-m", "mpi4py", "-c", SUM), n=count, options=mapping,
        export={"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1"})
    assert result.returncode == 0, result
    assert sorted(result.stdout.replace("\r", "").splitlines()) == [
        f"{r} {count} {sum(range(count))} {r} {count}" for r in range(count)]


@pytest.mark.quick
def test_a_failure_ends_all_of_them(make_hosts):
    hosts = make_hosts(2)
    ready, tell = hosts.fifo("tell")
    go, wait = hosts.fifo("go")
    job = hosts.mpirun(per_process(hosts, *native("ending")), n=4, options=["--map-by", "slot"],
                       export={"TELL": tell, "GO": wait, "END": "never", "END_3": "exit:7"})
    ready.expect("ready", 4)
    go.go()
    result = hosts.finish(job)
    assert result.returncode == 7, result
    # node rank 0's launcher tells all, that of local rank 0 on the other host who does
    assert result.stderr.count("root cause: rank 3 (local rank 1, pid ") == 1, result
    assert result.stderr.count("rank 3 on node 3 failed: node 0 reports") == 1, result.stderr
    for host in (0, 1):
        assert not hosts.processes(host), result


def test_rank_0_on_another_host_than_mpirun_needs_an_address(make_hosts):
    """PMIx, which would tell it, is left to the workers."""
    hosts = make_hosts(3)
    names = hosts.names[1:]
    command = per_process(hosts, "--no_python", "sh", "-c", TELL)
    lost = hosts.finish(hosts.popen(0, [*mpirun_on(names, count=4), *command]))
    assert lost.returncode == 2, lost
    assert ("rank 0 on another host, n1: give --master_addr to all launchers, the address of rank 0's "
            "host, as PMIx is left to the workers") in lost.stderr, lost
    found = hosts.finish(hosts.popen(0, [
        *mpirun_on(names, count=4), *per_process(
            hosts, "--master_addr", hosts.addresses[1], "--no_python", "sh", "-c", TELL)]))
    assert found.returncode == 0, found
    assert len(told(found.stdout)) == 4


def test_hydra_tells_local_ranks_and_needs_an_address(make_hosts):
    hosts = make_hosts(2)
    command = per_process(hosts, "--master_addr", hosts.addresses[0], "--no_python", "sh", "-c", TELL)
    result = hosts.finish(hosts.popen(0, [
        "mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", "/run/rsh", "-hosts",
        ",".join(hosts.names), "-ppn", "2", "-n", "4", *command], hosts.sanitizers()))
    assert result.returncode == 0, result
    assert told(result.stdout) == [
        f"{rank}/4 {rank % 2}/2 {rank // 2} {rank // 2}/2 {rank}/4 n{rank // 2}" for rank in range(4)]


@needs_slurm
@pytest.mark.parametrize("mpi", ["none", "pmi2", "pmix"])
def test_ranks_are_sruns(make_hosts, mpi):
    """The address is that of the step's first host."""
    slurm = Slurm(make_hosts(2))
    if mpi not in slurm.output("srun", "--mpi=list"):
        pytest.skip(f"this Slurm has no {mpi}")
    result = slurm.hosts.finish(slurm.popen(
        "srun", "-N2", "-n3", "--overcommit", f"--mpi={mpi}", *per_process(
            slurm.hosts, "--no_python", "sh", "-c", TELL)))
    assert result.returncode == 0, result
    assert told(result.stdout) == ["0/3 0/2 0 0/2 0/3 n0", "1/3 1/2 0 0/2 1/3 n0",
                                   "2/3 0/1 1 1/2 2/3 n1"], result
