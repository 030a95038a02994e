"""The commands of config/docs/migrating.md that need several hosts, or mpirun or srun: on n0 and n1, as
they stand there. tests/process has the others."""
import json

import migrating
import pytest
from cluster import PATH
from harness import BUILD
from job import JobHosts
from slurm import Slurm, why_impossible

COMMANDS = migrating.new_commands(on_hosts=True)
# a cluster's own ways to reach its hosts; Open MPI's for root
SITE = {"PATH": f"{BUILD}:{PATH}", "OMPI_MCA_plm_rsh_agent": "/run/rsh", "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(hosts, pair, command):
    """The results of its launchers, or of the one mpirun or srun that has started them."""
    words, variables = migrating.assigned(command)
    assert not variables and words[0] in ("mpirun", "srun", "launchd"), f"how is {command} run?"
    if pair.section == "Azure ML":  # whose mpirun goes before it
        each = pair.says("process_count_per_instance")
        azure = {"AZUREML_RUN_ID": "run", "AZ_BATCH_MASTER_NODE": f"{hosts.addresses[0]}:6000"}
        return [hosts.run(0, ["mpirun", "-H", ",".join(f"{name}:{each}" for name in hosts.names),
                              *(word for name in azure for word in ("-x", name)), *words], azure)]
    if words[0] == "srun":
        if why_impossible():
            pytest.skip(why_impossible())
        slurm = Slurm(hosts, cpus=2)
        wanted = [word.partition("=")[2] for word in words if word.startswith("--mpi=")]
        if wanted and wanted[0] not in slurm.output("srun", "--mpi=list"):
            pytest.skip(f"this Slurm has no {wanted[0]}")
        return [hosts.finish(slurm.popen(*words))]
    nodes = range(len(hosts.names)) if "--cluster-hostfile" in words else [0]
    return [hosts.finish(job) for job in [hosts.popen(node, words) for node in nodes]]


@pytest.mark.parametrize("pair, command", COMMANDS, ids=[
    f"{pair.section} {number}" for number, (pair, _) in enumerate(COMMANDS)])
def test_a_new_command_starts_what_the_old_one_did(make_hosts, pair, command):
    hosts = make_hosts(2, variables=[{**SITE, **JobHosts.sanitizers()}] * 2)
    (hosts.home / "train.py").write_text(migrating.TRAIN)
    (hosts.home / "dumps").mkdir()
    (hosts.home / "hosts").write_text("".join(f"{n} slots={k}\n" for n, k in migrating.HOSTS.items()))
    results = run(hosts, pair, command)
    assert {result.returncode for result in results} == {migrating.EXIT_CODE}, results
    migrating.check_workers(pair, command, {int(file.stem): json.loads(file.read_text())
                                            for file in (hosts.home / "dumps").glob("*.json")})
