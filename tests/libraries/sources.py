"""sources.py - who starts launchd: each of these on two simulated hosts, one launchd on each.

A source gives launchd the nodes, their ranks and where they meet, in its own way. What follows it,
workers and their number, is the same for all.
"""
import shutil
from dataclasses import dataclass, replace
from typing import Callable

import environments
import pytest
import slurm
from cluster import HOME, mpirun_on
from harness import BUILD

NPROC = ("--nproc_per_node", "2")
PER_PROCESS = ("--per-process",)
HYDRA = ("-launcher", "ssh", "-launcher-exec", "/run/rsh", "-hosts", "n0,n1")


def launchd(name="launchd"):
    """torchrun is the same program by another name, a link that lies in the shared directory."""
    return BUILD / name if name == "launchd" else f"{HOME}/{name}"


def on_each(hosts, words, env):
    """A command on each host, as by a user who is logged in there. words: of node n."""
    return [hosts.popen(n, words(n), env) for n in range(2)]


def by_hand(hosts, command, env):
    return on_each(hosts, lambda n: [
        launchd(), "--nnodes=2", f"--node_rank={n}", "--master_addr=n0", "--master_port=29500",
        *NPROC, *command], env)


def by_pet(hosts, command, env):
    """As Kubeflow's trainer does it, where torchrun reads them."""
    return [hosts.popen(n, [launchd(), *command], {
        **env, "PET_NNODES": "2", "PET_NPROC_PER_NODE": "2", "PET_NODE_RANK": str(n),
        "PET_MASTER_ADDR": "n0", "PET_MASTER_PORT": "29500"}) for n in range(2)]


def by_torchrun(hosts, command, env):
    (hosts.home / "torchrun").symlink_to(launchd())
    return on_each(hosts, lambda n: [
        launchd("torchrun"), "--nnodes=2", "--rdzv_backend=c10d", "--rdzv_endpoint=n0:29400",
        "--rdzv_id=job", *NPROC, *command], env)


def by_openmpi4(hosts, command, env, own=NPROC):
    each = 2 if own == PER_PROCESS else 1
    return [hosts.popen(0, [
        *mpirun_on(hosts.names, "--map-by", f"ppr:{each}:node", "--bind-to", "none",
                   count=2 * each, exported=env), launchd(), *own, *command], env)]


def by_openmpi5(hosts, command, env, own=NPROC):
    each = 2 if own == PER_PROCESS else 1
    return [hosts.popen(0, [
        environments.home() / "openmpi5/bin/mpirun", "--allow-run-as-root", "--prtemca",
        "plm_ssh_agent", "/run/rsh", "-H", "n0:2,n1:2", "-n", 2 * each,
        "--map-by", f"ppr:{each}:node", "--bind-to", "none",
        *(word for name in env for word in ("-x", name)), launchd(), *own, *command], env)]


def by_azure(hosts, command, env, own=NPROC):
    """A job of the distribution MPI, whose process_count_per_instance is 1, or 2 --per-process; these
    come to each node."""
    head = hosts.addresses[0]
    return by_openmpi4(hosts, command, {
        **env, "AZUREML_RUN_ID": "run", "AZUREML_NODE_COUNT": "2",
        "AZ_BATCH_MASTER_NODE": f"{head}:6000", "AZ_BATCHAI_MPI_MASTER_NODE": head}, own)


def by_hydra(program, settings=None):
    """It hands the whole environment over, and launchd needs an address, as it has no PMIx."""
    def start(hosts, command, env, own=NPROC):
        each = 2 if own == PER_PROCESS else 1
        return [hosts.popen(0, [program(), *HYDRA, "-ppn", each, "-n", 2 * each, launchd(),
                                "--master_addr=n0", *own, *command],
                            {**env, **(settings() if settings else {})})]

    return start


def by_srun(mpi):
    def start(hosts, command, env, own=NPROC):
        there = slurm.Slurm(hosts, cpus=2)
        if mpi not in there.output("srun", "--mpi=list"):
            pytest.skip(f"this Slurm has no {mpi}")
        tasks = ["--ntasks-per-node=2"] if own == PER_PROCESS else []
        return [there.popen("srun", "-N2", *tasks, f"--mpi={mpi}", launchd(), *own, *command, env=env)]

    return start


def per_process(start):
    """One launchd for each worker, as one process of MPI."""
    return lambda hosts, command, env: start(hosts, command, env, PER_PROCESS)


def of_system(program):
    return lambda: None if shutil.which(program) else f"no {program} here"


def of_environment(name):
    return lambda: environments.why_not(name)


@dataclass(frozen=True)
class Source:
    """title: for the table; the version stands behind it. python: the environment that has the
    source's own MPI for mpi4py; None: Debian's."""
    title: str
    start: Callable  # (hosts, command, env) -> processes
    why_not: Callable = lambda: None
    version: Callable = lambda: []  # a command that says it
    python: str | None = None


def in_environment(name, program):
    return lambda: [environments.home() / name / "bin" / program, "--version"]


BY_HAND = {
    "shell": Source("--nnodes …", by_hand),
    "pet": Source("PET_*", by_pet),
    "torchrun": Source("torchrun, c10d", by_torchrun),
}
BY_LAUNCHERS = {
    "openmpi4": Source("Open MPI", by_openmpi4, of_system("mpirun"), lambda: ["mpirun", "--version"]),
    "openmpi5": Source("Open MPI", by_openmpi5, of_environment("openmpi5"),
                       in_environment("openmpi5", "mpirun"), "openmpi5"),
    "mpich4": Source("MPICH", by_hydra(lambda: "mpiexec.hydra"), of_system("mpiexec.hydra"),
                     lambda: ["mpiexec.hydra", "--version"]),
    "mpich5": Source("MPICH", by_hydra(lambda: environments.home() / "mpich/bin/mpiexec.hydra"),
                     of_environment("mpich"), in_environment("mpich", "mpiexec.hydra"), "mpich"),
    "impi": Source("Intel MPI", by_hydra(
        lambda: environments.home() / "impi/bin/mpiexec.hydra",
        lambda: {"I_MPI_ROOT": str(environments.home() / "impi")}),
                   of_environment("impi"), in_environment("impi", "mpiexec.hydra"), "impi"),
    "srun": Source("srun", by_srun("none"), slurm.why_impossible, lambda: ["slurmd", "-V"]),
    "srun-pmix": Source("srun --mpi=pmix", by_srun("pmix"), slurm.why_impossible,
                        lambda: ["slurmd", "-V"]),
    "azureml": Source("Azure ML", by_azure, of_system("mpirun")),
}
# these start one launchd for each worker
PER_WORKER = {f"{name}-each": replace(source, start=per_process(source.start))
              for name, source in BY_LAUNCHERS.items()}
SOURCES = BY_HAND | BY_LAUNCHERS | PER_WORKER
