"""A real Slurm over two simulated hosts: steps of srun, and batch scripts without it."""
import json
import os
import pathlib
import re
import signal
import subprocess

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
@pytest.mark.parametrize("mpi", ["none", "pmi2", "pmix"])
def test_a_failure_ends_the_step_on_all_nodes(slurm, mpi):
    """No address is given: by PMIx, by PMI-1, or by the step's first node."""
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
    assert result.stderr.count("root cause: rank 3") == 1, result.stderr
    assert result.stderr.count("rank 3 on node 1 failed: node 0 reports") == 1, result.stderr
    assert "this one won't be told" not in result.stderr


@pytest.mark.parametrize("store", ["rank0", "agent"])
def test_a_step_without_pmix_meets_at_its_own_first_host(make_hosts, store):
    """... which is not the job's, and not where srun runs; the port is the step's own."""
    slurm = Slurm(make_hosts(4))
    result = slurm.hosts.finish(slurm.popen(
        "salloc", "-Q", "-N4", "srun", "-N2", "--relative=2", "--mpi=none", *slurm.hosts.launchd(
            "--nproc_per_node", "2", "--control=required", f"--store={store}", *native("dump")),
        env={"DUMP_DIR": f"{HOME}/out"}))
    assert result.returncode == 0, result
    dumps = slurm.hosts.place.dumps()
    port = dumps[0]["env"]["MASTER_PORT"]
    assert store == "agent" or 16384 <= int(port) < 32767
    assert {rank: (dump["env"]["GROUP_RANK"], dump["env"]["MASTER_ADDR"],
                   dump["env"]["MASTER_PORT"]) for rank, dump in dumps.items()} == {
        rank: (str(rank // 2), "n2", port) for rank in range(4)}


@pytest.mark.parametrize("port", [(), ("--master_port=29500",)], ids=["own ports", "one port"])
def test_steps_that_share_nodes_never_mix(slurm, port):
    """The second step's launchers come while the first one still misses its second node."""
    late, wait = slurm.hosts.fifo("late")
    job = re.search(r"\d+", slurm.hosts.finish(slurm.popen("salloc", "--no-shell", "-N2")).stderr)[0]
    each = ("sh", "-c", '[ "$LATE" != "$SLURM_PROCID" ] || head -c 1 "$WAIT" >/dev/null; exec "$@"', "sh")

    def step(name, late_rank, first):
        (slurm.hosts.home / name).mkdir()
        return slurm.popen(
            "srun", f"--jobid={job}", "--overlap", "-N2", "-w", first, "--mpi=none", *each,
            *slurm.hosts.launchd(*port, *native("dump")),
            env={"DUMP_DIR": f"{HOME}/{name}", "WAIT": wait, "LATE": late_rank})

    one = step("a", "1", "n0,n1")
    if port:
        until(lambda: ":733D " in slurm.hosts.run(0, ["cat", "/proc/net/tcp", "/proc/net/tcp6"]).stdout,
              "port 29501 to be open")
    two = step("b", "none", "n0,n1")
    if port:  # they have one: whoever comes second ends, and says whose it is
        result = slurm.hosts.finish(two)
        assert result.returncode != 0 and "29501" in result.stderr, result
    else:
        result = slurm.hosts.finish(two)
        assert result.returncode == 0, result
    late.go()
    result = slurm.hosts.finish(one)
    assert result.returncode == 0, result
    for name in ("a",) if port else ("a", "b"):
        dumps = [json.loads(path.read_text()) for path in sorted((slurm.hosts.home / name).glob("*.json"))]
        assert len(dumps) == 2
    slurm.output("scancel", job)


@pytest.mark.parametrize("mpi", ["none", "pmi2", "pmix"])
def test_every_order_of_tasks(make_hosts, mpi):
    """Slurm's list of nodes is sorted, whatever the order of tasks: without PMI that is an error, and no guess."""
    slurm = Slurm(make_hosts(3))
    if mpi not in slurm.output("srun", "--mpi=list"):
        pytest.skip(f"this Slurm has no {mpi}")
    order = slurm.hosts.place.write("order", "n2\nn0\nn1\n")
    command = slurm.hosts.launchd("--nproc_per_node", "2", *native("dump"))
    for number, (how, env) in enumerate((
            (["-N1"], {}), (["-N2"], {}), (["-N3"], {}), (["-N3", "-w", "n2,n0,n1"], {}),
            (["-N3", "-n3", "-m", "cyclic"], {}),
            (["-N3", "-n3", "-m", "arbitrary"], {"SLURM_HOSTFILE": f"{HOME}/{pathlib.Path(order).name}"}),
            (["-N1", *command, ":", "-N2"], {}))):  # a heterogeneous job
        out = slurm.hosts.home / str(number)
        out.mkdir()
        result = slurm.hosts.finish(slurm.popen(
            "srun", f"--mpi={mpi}", *how, *command, env={"DUMP_DIR": f"{HOME}/{number}", **env}))
        if mpi == "none" and "arbitrary" in how:
            assert "SLURM_DISTRIBUTION=arbitrary" in result.stderr and result.returncode != 0, result
            continue
        assert result.returncode == 0, (how, result)
        nodes = 1 if how == ["-N1"] else 2 if how == ["-N2"] else 3
        assert {path.stem for path in out.glob("*.json")} == set(map(str, range(2 * nodes))), how


@pytest.mark.parametrize("mpi", ["pmix", "pmi2"])
def test_a_name_that_the_others_do_not_know(make_hosts, mpi):
    """Slurm's list names the first node; the others have no such name, and get an address."""
    slurm = Slurm(make_hosts(2))
    if mpi not in slurm.output("srun", "--mpi=list"):
        pytest.skip(f"this Slurm has no {mpi}")
    apart = ["unshare", "-m", "sh", "-c", "echo '127.0.0.1 localhost' >/tmp/hosts$SLURM_PROCID && "
             "mount --bind /tmp/hosts$SLURM_PROCID /etc/hosts && exec \"$@\"", "sh"]
    result = slurm.hosts.finish(slurm.popen(
        "srun", f"--mpi={mpi}", "-N2", *apart, *slurm.hosts.launchd("--nproc_per_node", "1", *native("dump")),
        env={"DUMP_DIR": f"{HOME}"}))
    assert result.returncode == 0, result
    told = {one for path in slurm.hosts.home.glob("*.json") for one in json.loads(path.read_text())["environ"]
            if one.startswith("MASTER_ADDR=")}
    assert len(told) == 1 and re.fullmatch(r"MASTER_ADDR=10\.[0-9.]+", *told), told


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


def test_a_command_typed_in_the_terminal_of_srun_pty(slurm):
    """Task 0's shell has the terminal, and the other task reads nothing: nobody waits for a second launcher."""
    spawn = "import pty; pty.spawn(['srun', '-N2', '--pty', 'bash', '--norc', '-i'])"
    shell = slurm.hosts.popen(0, ["python3", "-c", spawn], {"SLURM_CONF": f"{HOME}/slurm.conf"}, stdin=subprocess.PIPE)
    for options in (), ("--standalone",):
        typed = slurm.hosts.launchd(*options, "--no_python", "--use_env", "/bin/true")
        shell.stdin.write(f"{' '.join(map(str, typed))}; echo code=$?\n")
    shell.stdin.write("exit\n")
    result = slurm.hosts.finish(shell)
    assert "SLURM_STEP_NUM_TASKS says 2, but this command was typed" in result.stdout, result
    codes = re.findall(r"^code=(\d+)", result.stdout, re.M)
    assert codes == ["2", "0"], result
