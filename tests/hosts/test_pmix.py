"""Launchers meet by real PMIx: under mpirun, and as a step of Slurm. What meets is pmix_probe, which
has the processes of a launcher and nothing else to do."""
import os
import select
import signal

import pytest
from cluster import Cluster, why_impossible as why_no_hosts
from harness import BUILD, TESTS, let_pass, until
from scene import Watched, parent_of
from slurm import Slurm, why_impossible

IMPOSSIBLE = why_no_hosts()
PROBE = BUILD / "tests/workers/pmix_probe"
MISSED = "failed not all launchers of this job reached PMIx_Fence within 1 s"
KILLED = "the launchers of this job can't meet by PMIx: its process was killed by SIGKILL in "
OPENMPI5 = os.environ.get("LAUNCHD_OPENMPI5", "")  # its directory, in which there is bin/mpirun


def lines(result):
    """Without the time that it took."""
    return sorted(" ".join(words[:3]) if words[0] == "met" else line
                  for line in result.stdout.splitlines() for words in [line.split()])


def all_met(count, text="card/n0"):
    return sorted(f"met {rank} {text}" for rank in range(count))


def absent(rank, script):
    """All but one rank run the script, and that one sleeps and is content."""
    return ["sh", "-c", f'if [ "$PMIX_RANK" = {rank} ]; then sleep 3; exit 0; fi; {script}']


@pytest.mark.parametrize("count", [4, 16])
def test_all_have_what_rank_0_says(make_hosts, count, record_property):
    hosts = make_hosts(count)
    result = hosts.run_mpi([PROBE, 30000])
    record_property("slowest_ms", max(float(line.split()[3])
                                      for line in result.stdout.splitlines()))
    assert lines(result) == all_met(count)
    assert result.returncode == 0
    assert not [line for line in result.stderr.splitlines() if "PMIX" in line.upper()]
    assert not hosts.processes()


def test_one_job_after_the_other_under_one_mpirun(hosts):
    """A script that starts launchd thrice."""
    names = ["first", "second", "third"]
    result = hosts.run_mpi(["sh", "-c", " && ".join(f"{PROBE} 30000 {name}" for name in names)])
    assert lines(result) == sorted(sum([all_met(4, f"{name}/n0") for name in names], []))
    assert result.returncode == 0


def test_a_late_one_is_waited_for(hosts):
    result = hosts.run_mpi(
        ["sh", "-c", f'[ "$PMIX_RANK" != 2 ] || sleep 1; exec {PROBE} 30000'])
    assert lines(result) == all_met(4)
    assert result.returncode == 0


def test_one_that_never_comes_costs_no_more_than_the_limit(hosts):
    """... and mpirun has nothing to complain of: all have left PMIx in good order."""
    result = hosts.run_mpi(absent(2, f"{PROBE} 1000; [ $? -eq 3 ]"))
    assert lines(result) == [MISSED] * 3
    assert (result.returncode, result.stderr.count("exiting improperly")) == (0, 0)


def pmix_children(hosts):
    """Pids of the processes that talk to PMIx."""
    return [pid for pid, line in hosts.processes() if line == "rank-pmix"]


def waiting(hosts, count):
    """The children of so many launchers, which wait for one more. One that is killed in PMIx_Init
    leaves an orted or an mpirun that may not end, so they have its time."""
    children = until(lambda: len(pmix_children(hosts)) == count and pmix_children(hosts),
                     f"{count} to wait for another one")
    let_pass(1, "PMIx_Init returns, which nothing reports")
    return children


def test_the_child_is_killed(hosts):
    """The launcher lives, and says so."""
    job = hosts.mpirun(absent(2, f"{PROBE} 30000; exit 3"))
    children = waiting(hosts, 3)
    for pid in children:
        hosts.signal_pid(pid, signal.SIGKILL)
    result = hosts.finish(job)
    assert [KILLED in line for line in lines(result)] == [True] * 3
    assert result.returncode == 3
    assert not hosts.processes()


def test_the_child_ends_with_its_launcher(hosts):
    job = hosts.mpirun(absent(2, f"exec {PROBE} 30000"))
    child = waiting(hosts, 3)[0]
    with Watched(child) as watched:
        os.kill(parent_of(child), signal.SIGKILL)
        assert select.select([watched.fd], [], [], 30)[0], "it lives on"
    assert hosts.finish(job).returncode != 0
    until(lambda: not hosts.processes(), "the end of all")


def test_mpirun_is_asked_to_end(hosts):
    """Launchers are ended while they wait for others."""
    job = hosts.mpirun(absent(2, f"exec {PROBE} 30000"))
    waiting(hosts, 3)
    hosts.signal(job, signal.SIGTERM)
    hosts.finish(job)
    until(lambda: not hosts.processes(), "the end of all")


STALE = {"PMIX_NAMESPACE": "3735224321", "PMIX_RANK": "0",
         "PMIX_SERVER_URI41": "3735224320.0;tcp4://127.0.0.1:1"}


def test_variables_of_a_server_that_is_gone(make_hosts):
    hosts = make_hosts(1)
    result = hosts.popen(0, [PROBE, 30000], STALE)
    result = hosts.finish(result)
    assert result.stdout == ("unavailable the launchers of this job can't meet by PMIx: "
                             "PMIx_Init: UNREACHABLE (-25)\n")
    assert (result.returncode, result.stderr) == (3, "")


def test_no_pmix_on_this_node(make_hosts):
    """What the loader finds under its name is none."""
    hosts = make_hosts(1)
    hosts.run(0, ["sh", "-c", "mkdir /tmp/fake; echo no >/tmp/fake/libpmix.so.2"])
    result = hosts.run(0, [PROBE, 30000], {**STALE, "LD_LIBRARY_PATH": "/tmp/fake"})
    assert result.stdout.startswith("unavailable the launchers of this job can't meet by PMIx: "
                                    "libpmix: /tmp/fake/libpmix.so.2: ")
    assert "Debian's package is libpmix2" in result.stdout
    assert (result.returncode, result.stderr) == (3, "")


def test_not_under_pmix(make_hosts):
    hosts = make_hosts(1)
    result = hosts.run(0, [PROBE, 30000])
    assert (result.returncode, result.stdout) == (2, "not offered\n")


@pytest.mark.skipif(not OPENMPI5, reason="no Open MPI 5: LAUNCHD_OPENMPI5 names its directory")
@pytest.mark.skipif(bool(IMPOSSIBLE), reason=IMPOSSIBLE or "")
@pytest.mark.parametrize("before", [(), ("env", "-u", "OPAL_PREFIX", "-u", "LD_LIBRARY_PATH")],
                         ids=["its own libpmix", "the system's libpmix"])
def test_open_mpi_5(before):
    """Its PMIx is version 5. Where the system's libpmix.so.2 is version 4, a fence did not always
    bring the data along."""
    with Cluster(8, [TESTS.parent, BUILD, OPENMPI5]) as hosts:
        for _ in range(8):
            result = hosts.run(0, [
                f"{OPENMPI5}/bin/mpirun", "--allow-run-as-root", "--prtemca", "plm_ssh_agent",
                "/run/rsh", "-H", ",".join(hosts.names), "-n", 8, "--map-by", "ppr:1:node",
                *before, PROBE, 30000],
                {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
            assert lines(result) == all_met(8)
            assert result.returncode == 0


@pytest.mark.skipif(not OPENMPI5, reason="no Open MPI 5: LAUNCHD_OPENMPI5 names its directory")
@pytest.mark.skipif(bool(IMPOSSIBLE), reason=IMPOSSIBLE or "")
@pytest.mark.parametrize("program", ["mpirun", "prterun"])
def test_launchd_under_open_mpi_5(program):
    """No address is given; one worker fails, and all nodes say so. prterun has no variable for the size."""
    with Cluster(4, [TESTS.parent, BUILD, OPENMPI5]) as hosts:
        result = hosts.run(0, [
            f"{OPENMPI5}/bin/{program}", "--allow-run-as-root", "--prtemca", "plm_ssh_agent",
            "/run/rsh", "-H", ",".join(hosts.names), "-n", 4, "--map-by", "ppr:1:node",
            BUILD / "launchd", "--nproc_per_node=2", "--no_python", "--use_env", "sh", "-c",
            '[ $RANK != 5 ] || exit 7; exec sleep 60'],
            {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
             "PRTE_PREFIX": OPENMPI5, "OPAL_PREFIX": OPENMPI5})
        assert result.returncode == 7, result
        assert result.stderr.count("root cause: rank 5") == 1, result.stderr
        assert result.stderr.count("rank 5 on node 2 failed: node 0 reports") == 3, result.stderr
        assert not hosts.processes()


@pytest.mark.skipif(bool(why_impossible()), reason=why_impossible() or "")
def test_a_step_of_slurm(make_hosts):
    slurm = Slurm(make_hosts(3))

    def srun(*command):
        return slurm.hosts.finish(slurm.popen("srun", "-N3", "--mpi=pmix", *command))

    if "pmix" not in slurm.output("srun", "--mpi=list"):
        pytest.skip("this Slurm has no PMIx")
    result = srun(PROBE, 30000)
    assert lines(result) == all_met(3)
    assert (result.returncode, result.stderr) == (0, "")

    result = srun(*absent(2, f"{PROBE} 1000; [ $? -eq 3 ]"))
    assert lines(result) == [MISSED] * 2
    assert result.returncode == 0
