"""slurm.py - a real Slurm over simulated hosts: munged and slurmd on each, slurmctld on the first.

Its processes are tracked by process group, the weakest way there is: what a step leaves behind in
sessions of its own lives on, unless launchd ends it.
"""
import os
import shutil
import subprocess

from cluster import HOME
from harness import until

PROGRAMS = ("munged", "slurmctld", "slurmd", "salloc", "srun", "sbatch", "scancel", "setpriv")
CONF = """ClusterName=simulated
SlurmctldHost=n0({addresses[0]})
AuthType=auth/munge
AuthInfo=socket=/tmp/munge.socket,cred_expire={cred_expire}
SlurmUser=root
StateSaveLocation=/tmp/state
SlurmdSpoolDir=/tmp/spool
SlurmctldPidFile=/tmp/slurmctld.pid
SlurmdPidFile=/tmp/slurmd.pid
SlurmctldLogFile=/tmp/slurmctld.log
SlurmdLogFile=/tmp/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
MpiDefault=none
SlurmdParameters=config_overrides
KillWait=3
SchedulerParameters=sched_interval=1,batch_sched_delay=0
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_impossible():
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    return f"no {', '.join(missing)} here" if missing else None


class Slurm:
    """On hosts that are there already. cred_expire: so many seconds a requeued job waits. cpus: of each
    host, whatever the machine has."""

    def __init__(self, hosts, cred_expire=120, cpus=1):
        self.hosts = hosts
        nodes = [f"NodeName={name} NodeAddr={address} CPUs={cpus} State=UNKNOWN"
                 for name, address in zip(hosts.names, hosts.addresses)]
        (hosts.home / "slurm.conf").write_text(
            CONF.format(
                addresses=hosts.addresses, nodes="\n".join(nodes), cred_expire=cred_expire))
        key = hosts.home / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        for node, name in enumerate(hosts.names):
            hosts.run(node, ["mkdir", "-m", "755", "/tmp/state", "/tmp/spool", "/tmp/munge"])
            self.run_daemon(node, "munged", "--foreground", f"--key-file={HOME}/munge.key",
                            "--socket=/tmp/munge.socket", "--pid-file=/tmp/munge/pid",
                            "--log-file=/tmp/munge/log", "--seed-file=/tmp/munge/seed", "--force")
            self.run_daemon(node, "slurmd", "-D", "-N", name)
        self.run_daemon(0, "slurmctld", "-D")
        until(lambda: self.output("sinfo", "-h", "-o", "%T %D") == f"idle {len(hosts.names)}",
              "Slurm to be there")

    def run_daemon(self, node, *argv):
        self.hosts.popen(node, argv, {"SLURM_CONF": f"{HOME}/slurm.conf"},
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def popen(self, *argv, env=None):
        return self.hosts.popen(0, argv, {"SLURM_CONF": f"{HOME}/slurm.conf", **(env or {})})

    def output(self, *argv):
        return self.hosts.finish(self.popen(*argv)).stdout.strip()
