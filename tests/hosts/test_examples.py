"""What users copy from examples/, on two simulated hosts: as it stands there, but with two workers for
each host's GPUs, and with what stands for Azure's Key Vault."""
import functools
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from cluster import HOME, PATH, mpirun_on
from harness import BUILD, LIMIT, TESTS, until
from slurm import Slurm, why_impossible

yaml = pytest.importorskip("yaml")
EXAMPLES = TESTS.parent / "examples"
pytestmark = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no torch here")

# The directory of an Open MPI 4.1 with its internal PMIx, as in Azure ML's images, such as that of the
# tarball in Debian's source package after ./configure --prefix=... --with-pmix=internal
# --with-libevent=internal --with-hwloc=internal --enable-orterun-prefix-by-default (--disable-oshmem
# --disable-mpi-fortran --disable-io-romio save time: then it takes 8 minutes on two CPUs)
INTERNAL = os.environ.get("LAUNCHD_OPENMPI_INTERNAL", "")
internal = pytest.param(INTERNAL, id="internal PMIx", marks=pytest.mark.skipif(
    not INTERNAL, reason="LAUNCHD_OPENMPI_INTERNAL names no Open MPI with its internal PMIx"))
# a Python that has azure-ai-ml
AZURE_PYTHON = os.environ.get("LAUNCHD_AZURE_PYTHON", sys.executable)
UNKEYED = "the control channel is not authenticated"

VAULT = '''import os
class DefaultAzureCredential:
    def __init__(self, managed_identity_client_id=None):
        pass
class Secret:
    value = os.environ.get("IN_THE_VAULT")
class SecretClient:
    def __init__(self, vault_url, credential):
        assert vault_url == "https://my-vault.vault.azure.net"
        assert isinstance(credential, DefaultAzureCredential)
    def get_secret(self, name):
        assert name == "launchd-key" and Secret.value, "no such secret"
        return Secret
'''


@pytest.fixture
def copied(make_hosts):
    """copied(variables) -> hosts with the examples in their working directory. variables: of all, or a
    list with those of each host."""
    def make(variables=()):
        each = variables if isinstance(variables, list) else [dict(variables)] * 2
        path = {"PATH": f"{HOME}/bin:{BUILD}:{PATH}", "OMP_NUM_THREADS": "1"}
        hosts = make_hosts(2, variables=[{**path, **more} for more in each],
                           shared=[INTERNAL] if INTERNAL else [])
        shutil.copytree(EXAMPLES, hosts.home, dirs_exist_ok=True)
        (hosts.home / "bin").mkdir()
        (hosts.home / "bin/python").symlink_to(sys.executable)
        return hosts

    return make


def on_cpus(text, nproc=2):
    assert text.count("nproc_per_node gpu") + text.count("nproc_per_node = gpu") == 1
    return re.sub("(nproc_per_node (= )?)gpu", rf"\g<1>{nproc}", text)


def check_training(output, master=r"\S+"):
    """All ranks stood where they should, and rank 0 saw the loss fall."""
    for rank in range(4):
        assert re.search(
            rf"^rank {rank} of 4: local rank {rank % 2}, node rank {rank // 2}, "
            rf"host n{rank // 2}, pid \d+, master {master}$", output, re.M), output
    losses = [float(loss) for loss in re.findall(r"^step +\d+  loss (\S+)$", output, re.M)]
    assert len(losses) >= 3 and losses[-1] < losses[0] / 10


# --- Azure ML ---


@functools.cache
def data():
    """Inputs and targets for --data."""
    make = ("import sys, torch; x = torch.randn(4096, 16); "
            "torch.save((x, torch.tanh(x.sum(1, keepdim=True) / 4)), sys.stdout.buffer)")
    return subprocess.run([sys.executable, "-c", make], check=True, stdout=subprocess.PIPE).stdout


def azure_command(job, *more):
    """The job's command as Azure ML hands it over."""
    command = on_cpus(job["command"]).replace("${{inputs.data}}", f"{HOME}/data.pt")
    command = command.replace("${{outputs.model}}", f"{HOME}/model")
    assert "${{" not in command
    return " ".join([command.strip(), *more])


class Azure:
    """Two nodes of an Azure ML job of examples/azureml. by_mpirun: the directory of Open MPI, "": this
    system's; False: none. What launchd could load of PMIx is hidden from it. vault: the key on each
    node. of_node: Azure's variables of each."""

    def __init__(self, copied, file, by_mpirun, vault=("a-secret-that-is-long-enough",) * 2, edit=None):
        self.job = yaml.safe_load((EXAMPLES / "azureml" / file).read_text())
        assert self.job["resources"]["instance_count"] == 2
        assert self.job["distribution"]["process_count_per_instance"] == 1
        given = {name: str(value) for name, value in self.job["environment_variables"].items()}
        given.update(edit or {})
        head = "10.77.0.1"
        azure = {"AZUREML_RUN_ID": "run", "AZ_BATCH_MASTER_NODE": f"{head}:6000",
                 "AZ_BATCHAI_MPI_MASTER_NODE": head, "PYTHONPATH": f"{HOME}/vault"}
        if by_mpirun is False:
            azure.update(AZUREML_NODE_COUNT="2", MASTER_ADDR=head, MASTER_PORT="6105",
                         WORLD_SIZE="2", LOCAL_RANK="0")
        own = [{"RANK": str(n), "NODE_RANK": str(n)} if by_mpirun is False else {} for n in range(2)]
        self.hosts = hosts = copied([{**azure, **given, **own[n], "IN_THE_VAULT": vault[n]}
                                     for n in range(2)])
        assert hosts.addresses[0] == head
        self.mpirun = f"{by_mpirun}/bin/mpirun" if by_mpirun else "mpirun"
        self._write_files()

    def _write_files(self):
        home = self.hosts.home
        for name in ("identity", "keyvault/secrets"):
            (home / "vault/azure" / name).mkdir(parents=True)
            (home / "vault/azure" / name / "__init__.py").write_text("from vault import *\n")
        (home / "vault/vault.py").write_text(VAULT)
        (home / "model").mkdir()
        (home / "no-pmix").mkdir()
        (home / "no-pmix/libpmix.so.2").write_text("no library")
        launchd = home / "bin/launchd"
        launchd.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={HOME}/no-pmix exec {BUILD}/launchd "$@"\n')
        launchd.chmod(0o755)
        (home / "data.pt").write_bytes(data())

    def start(self, *more, command=None):
        _, *options = mpirun_on(self.hosts.names, "--map-by", "ppr:1:node")
        return self.hosts.popen(0, [self.mpirun, *options, "bash", "-c",
                                    command or azure_command(self.job, *more)])

    def run(self, *more, command=None):
        return self.hosts.finish(self.start(*more, command=command))

    def run_without_mpirun(self, *more):
        command = ["bash", "-c", azure_command(self.job, *more)]
        jobs = [self.hosts.popen(node, command) for node in range(2)]
        return [self.hosts.finish(job) for job in jobs]

    def await_training(self):
        until((self.hosts.home / "model/checkpoint.pt").exists, "the first step")

    def all_gone(self):
        until(lambda: not self.hosts.processes(), "the end of everything")


by_mpirun = pytest.mark.parametrize("openmpi", [pytest.param("", id="PMIx hidden"), internal])
by_the_internal = pytest.mark.parametrize("openmpi", [internal])


@pytest.mark.parametrize("file", ["mpi.yml", "pytorch.yml"])
def test_azure_takes_the_job(file):
    """Its own schema, which knows no unknown field."""
    if subprocess.run([AZURE_PYTHON, "-c", "import azure.ai.ml"], check=False,
                      capture_output=True).returncode != 0:
        pytest.skip("no azure-ai-ml here: LAUNCHD_AZURE_PYTHON names a Python that has it")
    script = ("import sys; from azure.ai.ml import load_job; job = load_job(sys.argv[1]); "
              "print(job.distribution.type, job.environment.conda_file['name'], job.identity.type)")
    told = subprocess.run([AZURE_PYTHON, "-c", script, EXAMPLES / "azureml" / file], check=True,
                          capture_output=True, text=True).stdout
    assert told.lower().split() == [file.partition(".")[0], "train", "managed_identity"]


@by_mpirun
def test_azure_by_mpirun(copied, openmpi):
    azure = Azure(copied, "mpi.yml", openmpi)
    result = azure.run()
    assert result.returncode == 0, result
    check_training(result.stdout, "10.77.0.1:6105")
    assert "warning" not in result.stderr and UNKEYED not in result.stderr, result
    assert (azure.hosts.home / "model/checkpoint.pt").exists()


@by_mpirun
def test_azure_by_mpirun_when_a_rank_fails(copied, openmpi):
    azure = Azure(copied, "mpi.yml", openmpi, edit={"OMPI_MCA_odls_base_sigkill_timeout": "1"})
    result = azure.run("--fail-rank", "3", "--fail-step", "60")
    assert result.returncode == 7, result
    assert result.stderr.count("root cause: rank 3 (local rank 1, pid ") == 1, result
    azure.all_gone()


def test_azure_without_mpirun(copied):
    """A rank fails once; the next attempt goes on from the checkpoint."""
    azure = Azure(copied, "pytorch.yml", False)
    results = azure.run_without_mpirun("--fail-rank", "3", "--fail-step", "60",
                                       "--fail-attempts", "1")
    assert [result.returncode for result in results] == [0, 0], results
    check_training("".join(result.stdout for result in results), r"10.77.0.1:\d+")
    assert "rank 0: resumes with step 51" in results[0].stdout
    assert results[0].stderr.count("root cause: rank 3") == 1 and "restart 1 of" in results[0].stderr
    assert UNKEYED not in results[0].stderr + results[1].stderr


def test_azure_without_its_key(copied):
    """The vault has none, and no job starts without."""
    azure = Azure(copied, "pytorch.yml", False, vault=("", ""))
    results = azure.run_without_mpirun()
    assert [result.returncode for result in results] == [1, 1], results
    assert all("no such secret" in result.stderr for result in results)
    assert not any("launchd" in result.stderr.replace("launchd-key", "") for result in results)


@by_the_internal
def test_azure_by_mpirun_without_a_key(copied, openmpi):
    """As Azure's own script would run it; this is said once."""
    azure = Azure(copied, "mpi.yml", openmpi)
    command = azure_command(azure.job)
    result = azure.run(command=command[command.index("launchd "):])
    assert result.returncode == 0, result
    check_training(result.stdout, "10.77.0.1:6105")
    assert result.stderr.count(UNKEYED) == 1, result


@by_the_internal
def test_azure_by_mpirun_with_another_key_on_one_node(copied, openmpi):
    azure = Azure(copied, "mpi.yml", openmpi, vault=("a-secret-that-is-long-enough", "another-one-that-is-long-enough"),
                  edit={"OMPI_MCA_odls_base_sigkill_timeout": "1"})
    command = azure_command(azure.job).replace("--use_env", "--use_env --join-timeout 5")
    result = azure.run(command=command)
    assert result.returncode != 0 and "key" in result.stderr, result
    azure.all_gone()


@by_the_internal
def test_azure_by_mpirun_when_a_launcher_is_killed(copied, openmpi):
    azure = Azure(copied, "mpi.yml", openmpi, edit={"OMPI_MCA_odls_base_sigkill_timeout": "1"})
    job = azure.start("--steps", "1000000", "--every", "1000000")
    azure.await_training()
    azure.hosts.kill_launchers(1)
    result = azure.hosts.finish(job)
    assert result.returncode != 0, result
    assert "node 1" in result.stderr and "lost" in result.stderr, result
    azure.all_gone()


@by_the_internal
def test_azure_by_mpirun_that_is_told_to_end(copied, openmpi):
    """Training has the time to write its checkpoint, and the next job goes on from it."""
    azure = Azure(copied, "mpi.yml", openmpi, edit={"OMPI_MCA_odls_base_sigkill_timeout": "10"})
    job = azure.start("--steps", "1000000", "--every", "1000000")
    azure.await_training()
    azure.hosts.signal(job, signal.SIGTERM)
    result = azure.hosts.finish(job)
    stopped = re.findall(r"^rank (\d): stopped before step (\d+)$", result.stdout, re.M)
    assert sorted(rank for rank, _ in stopped) == ["0", "1", "2", "3"], result
    assert len({step for _, step in stopped}) == 1 and result.returncode != 0
    azure.all_gone()
    again = azure.run("--steps", stopped[0][1])
    assert again.returncode == 0, again
    assert f"rank 0: resumes with step {stopped[0][1]}\n" in again.stdout


# --- the others ---


@pytest.mark.quick
def test_mpirun_script(copied):
    hosts = copied()
    script = hosts.home / "mpirun.sh"
    script.write_text(on_cpus(script.read_text()))
    result = hosts.finish(hosts.popen(0, ["./mpirun.sh", "n0,n1", "--steps", "150"], {
        "OMPI_MCA_plm_rsh_agent": "/run/rsh", "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}))
    assert (result.returncode, result.stderr) == (0, ""), result
    check_training(result.stdout)


def test_static_nodes(copied):
    """A rank fails once; the next attempt goes on from the checkpoint."""
    hosts = copied()
    config = hosts.home / "static.ini"
    config.write_text(on_cpus(config.read_text()).replace("gpu[01-02]", "n[0-1]"))
    key = hosts.home / "job.key"
    key.write_text("a secret that is long enough\n")
    key.chmod(0o400)
    jobs = [hosts.popen(node, ["launchd", "--config", "static.ini", "train_ddp.py", "--checkpoint",
                               "checkpoint.pt", "--fail-rank", "3", "--fail-step", "60",
                               "--fail-attempts", "1", "--steps", "150"])
            for node in range(2)]
    results = [hosts.finish(job) for job in jobs]
    assert [result.returncode for result in results] == [0, 0], results
    check_training("".join(result.stdout for result in results), "n0:29500")
    assert "rank 0: resumes with step 51" in results[0].stdout
    assert UNKEYED not in results[0].stderr + results[1].stderr


@pytest.mark.skipif(bool(why_impossible()), reason=why_impossible() or "")
def test_slurm_script(copied):
    """The time is over: training writes its checkpoint, and the job, back in the queue, goes on."""
    slurm = Slurm(copied(), cred_expire=10)
    hosts = slurm.hosts
    if "pmix" not in slurm.output("srun", "--mpi=list"):
        pytest.skip("this Slurm has no pmix")
    script = hosts.home / "slurm.sh"
    script.write_text(on_cpus(script.read_text(), nproc=1))
    job = slurm.output("sbatch", "--parsable", "-o", "log", "slurm.sh", "--steps", "1000000",
                       "--every", "1000000")
    until((hosts.home / "checkpoint.pt").exists, "the first step")
    slurm.output("scancel", "-s", "USR1", job)  # as --signal does it
    until(lambda: slurm.output("squeue", "-h", "-o", "%T") == "PENDING", "the requeue")
    out = (hosts.home / "log").read_text()
    [step] = set(re.findall(r"^rank \d: stopped before step (\d+)$", out, re.M))
    assert re.search(r"root cause: preemption was announced by SIGUSR1 \(\d+ s left\) on n[01] \(node [01]\)", out), out
    assert not [line for _, line in hosts.processes() if "launchd" in line or "train_ddp" in line]
    resumed = f"rank 1: resumes with step {step}\n"
    until(lambda: resumed in (hosts.home / "log").read_text(),
          lambda: f"the job's second run: {(hosts.home / 'log').read_text()} {slurm.output('squeue')}",
          3 * LIMIT)
    slurm.output("scancel", job)
    until(lambda: slurm.output("squeue", "-h") == "", "the job to end")
