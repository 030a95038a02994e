"""A real Slurm over two simulated hosts: steps of srun, and batch scripts without it."""
import os
import signal

import pytest
from cluster import HOME
from harness import native, until
from needs import needs_open_build
from scene import AROUND, Watched
from slurm import Slurm, why_impossible

pytestmark = pytest.mark.skipif(bool(why_impossible()), reason=why_impossible() or "")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.fixture
def slurm(make_hosts):
    return Slurm(make_hosts(2))


def by_srun(slurm, user=(), srun=("-N2",)):
    return lambda command, export: slurm.popen(*user, "srun", *srun, *command, env=export)


@pytest.mark.quick
@pytest.mark.parametrize("mpi", ["none", "pmix"])
def test_a_failure_ends_the_step_on_all_nodes(slurm, mpi):
    """No address is given: by PMIx, or by the step's first node."""
    if mpi not in slurm.output("srun", "--mpi=list"):
        pytest.skip(f"this Slurm has no {mpi}")
    ready, tell = slurm.hosts.fifo("tell")
    go, wait = slurm.hosts.fifo("go")
    job = slurm.popen("srun", "-N2", f"--mpi={mpi}", *slurm.hosts.launchd(
        "--nproc_per_node", "2", *native("ending")),
        env={"TELL": tell, "GO": wait, "END": "never", "END_3": "exit:7"})
    ready.expect("ready", 4)
    go.go()
    result = slurm.hosts.finish(job)
    assert result.returncode == 7, result
    assert result.stderr.count("root cause: rank 3") == 2, result.stderr
    assert "this one won't be told" not in result.stderr


@pytest.mark.parametrize("store", ["rank0", "agent"])
def test_a_step_without_pmix_meets_at_its_own_first_host(make_hosts, store):
    """... which is not the job's, and not where srun runs; the port is that of torchrun."""
    slurm = Slurm(make_hosts(4))
    result = slurm.hosts.finish(slurm.popen(
        "salloc", "-Q", "-N4", "srun", "-N2", "--relative=2", "--mpi=none", *slurm.hosts.launchd(
            "--nproc_per_node", "2", "--control=required", f"--store={store}", *native("dump")),
        env={"DUMP_DIR": f"{HOME}/out"}))
    assert result.returncode == 0, result
    dumps = slurm.hosts.place.dumps()
    address = "n2" if store == "rank0" else slurm.hosts.addresses[2]
    assert {rank: (dump["env"]["GROUP_RANK"], dump["env"]["MASTER_ADDR"],
                   dump["env"]["MASTER_PORT"]) for rank, dump in dumps.items()} == {
        rank: (str(rank // 2), address, "29500") for rank in range(4)}


def stepd(s, node):
    return s.find(node, r"slurmstepd: \[\d+\.\d+\]")


@pytest.mark.parametrize("user", [pytest.param((), id="root"), pytest.param(
    NOBODY, id="nobody", marks=needs_open_build)])
@pytest.mark.parametrize("around", ["nothing", "tee"])
def test_slurmstepd_is_killed_and_its_node_is_empty(slurm, scene, record_property, user, around):
    """It is root's; whose launchd is does not matter. srun ends the other node where its connection
    was reset, and waits where it was closed."""
    s = scene(slurm.hosts, by_srun(slurm, user), around=AROUND[around])
    with Watched(s.guard(0)) as other:
        s.kill(stepd(s, 1))
        record_property("n1", s.gone(1))
        other.kill()
        s.gone(0)


def test_srun_is_killed_and_all_nodes_are_empty(slurm, scene):
    s = scene(slurm.hosts, by_srun(slurm))
    s.kill(s.pid)
    s.gone(0, 1)


def test_scancel_gives_killwait_for_a_checkpoint(slurm, scene):
    """3 s here. One that needs longer is killed."""
    s = scene(slurm.hosts, by_srun(slurm), "--leftover-grace=0", DO_0="save:500",
              DO_1="save:60000")
    slurm.output("scancel", slurm.output("squeue", "-h", "-o", "%i"))
    s.gone(0, 1)
    assert s.hear(3) == {(0, "asked"), (0, "saved"), (1, "asked")}
    assert s.silent()


def test_signals_reach_the_workers_once(slurm, scene):
    s = scene(slurm.hosts, by_srun(slurm), DO="count")
    for _ in range(2):
        slurm.output("scancel", "-s", "USR1", slurm.output("squeue", "-h", "-o", "%i"))
        assert s.hear(2) == {(0, "SIGUSR1"), (1, "SIGUSR1")}
    assert s.silent()


def test_a_steps_script_ends_and_launchd_with_it(slurm, scene):
    """One in a session of its own, which Slurm does not find by its process group."""
    s = scene(slurm.hosts, by_srun(slurm), around=("sh", "-c", 'setsid "$@" & wait', "sh"))
    s.kill(s.find(1, r"\S*sh -c setsid"))
    s.gone(1)


def test_a_batch_script_ends_and_launchd_lives_on(slurm, scene):
    enough, path = slurm.hosts.fifo("enough")

    def batch(command, export):
        script = slurm.hosts.home / "job.sh"
        script.write_text('#!/bin/sh\nsetsid "$@" >/dev/null 2>&1 &\n'
                          f'read -r _ <{path}\n')
        return slurm.popen("sbatch", "-N1", "-o", "/dev/null", "job.sh", *command, env=export)

    s = scene(slurm.hosts, batch, nodes=1, DO="count")
    os.write(enough.fd, b"\n")
    until(lambda: slurm.output("squeue", "-h") == "", "the batch job to end")
    s.kill(s.guard(0), signal.SIGUSR1)
    assert s.hear(1) == {(0, "SIGUSR1")}
    s.kill(s.guard(0), signal.SIGTERM)


@pytest.mark.parametrize("policy, tasks", [("rewrite", 1), ("rewrite-slurm", 3)])
def test_a_workers_own_srun_starts_what_slurm_ntasks_says(slurm, policy, tasks):
    """Nothing by default, so one task; with rewrite-slurm as many as the job has workers."""
    script = 'test $RANK = 0 || exit 0; exec srun sh -c "echo task of $SLURM_PROCID"'
    result = slurm.hosts.finish(slurm.popen("srun", "-N1", "--mpi=none", *slurm.hosts.launchd(
        "--nproc_per_node=3", f"--mpi-env={policy}", "--no_python", "--use_env", "sh", "-c", script),
        env={"SLURM_OVERLAP": "1", "SLURM_OVERCOMMIT": "1", "SLURM_MPI_TYPE": "none"}))
    assert result.returncode == 0, result
    assert result.stdout.count("task of") == tasks, result
