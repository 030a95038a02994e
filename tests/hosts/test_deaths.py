"""Whatever is killed under mpirun, nothing survives on its node; and what mpirun ends in its own
sequence (CONT, TERM after T, KILL after 2 T, odls_base_sigkill_timeout) ends in order."""
import re
import signal
import subprocess

import pytest
from harness import let_pass, signal_if_there, until
from scene import AROUND, group_of

# So long that nothing which dies in a test can have died of mpirun's own sequence.
NEVER = ("--mca", "odls_base_sigkill_timeout", "600")
AT_ONCE = ("--mca", "odls_base_sigkill_timeout", "0")
ONE_EACH = ("--map-by", "ppr:1:node")


def by_mpirun(hosts, *options):
    return lambda command, export: hosts.mpirun(
        command, options=[*ONE_EACH, *options], export=export)


def orted(s, node):
    return s.find(node, "orted")


@pytest.mark.parametrize("around", AROUND)
def test_a_process_is_killed_and_its_node_is_empty(hosts, scene, record_property, around):
    """... by launchd, as mpirun's sequence never comes to TERM here."""
    s = scene(hosts, by_mpirun(hosts, *NEVER), around=AROUND[around])
    for node, victim in ((1, s.guard(1)), (2, s.supervisor(2)), (3, orted(s, 3)), (0, s.pid)):
        s.kill(victim)
        record_property(f"n{node}", s.gone(node))
        assert not [n for n in range(node) if n > 0 and s.lives(n)]
    s.nothing_left()


@pytest.mark.quick
@pytest.mark.parametrize("around", ["nothing", "sh", "tee"])
def test_a_process_group_is_killed_and_its_node_is_empty(
        make_hosts, scene, record_property, around):
    hosts = make_hosts(2)
    s = scene(hosts, by_mpirun(hosts, *NEVER), around=AROUND[around])
    for node, member in ((1, orted(s, 1)), (0, s.pid)):
        s.kill(group_of(member), group=True)
        record_property(f"n{node}", s.gone(node))
    s.nothing_left()


@pytest.mark.parametrize("victim, codes", [
    ("guard", {137}), ("supervisor", {137}), ("orted", range(1, 256)), ("worker", {137})])
def test_what_mpirun_says_to_a_death(make_hosts, scene, victim, codes):
    """orted's: 205 with the Open MPI that this was written with, but that is mpirun's own. After a
    supervisor's its guard ends with 137, as the other node does, which it tells. mpirun must not
    kill that guard at once, too: without both a daemon may live on."""
    hosts = make_hosts(2)
    at_once = AT_ONCE if victim != "supervisor" else ()
    s = scene(hosts, by_mpirun(hosts, *at_once), "--shutdown-timeout=0", "--leftover-grace=0")
    s.kill({"guard": s.guard, "supervisor": s.supervisor, "worker": s.worker,
            "orted": lambda node: orted(s, node)}[victim](1))
    result = s.end()
    s.gone(0, 1)
    s.nothing_left()
    assert result.returncode in codes, result
    if victim == "worker":
        assert re.search(r"root cause: rank 1 .* killed by SIGKILL", result.stderr), result


@pytest.mark.quick
def test_mpiruns_death_ends_all_nodes(make_hosts, scene):
    hosts = make_hosts(3)
    s = scene(hosts, by_mpirun(hosts))
    s.kill(s.pid)
    s.gone(0)
    s.gone(1, 2)
    s.nothing_left(spared=re.compile("no such"))


def test_a_failure_leaves_the_others_their_time(make_hosts, scene):
    """One that needs longer is killed, with all that it has."""
    hosts = make_hosts(3)
    s = scene(hosts, by_mpirun(hosts), "--shutdown-timeout=5", "--leftover-grace=0",
              DO_0="save:500", DO_1="exit:7", DO_2="save:60000")
    s.go.go()
    result = s.end()
    assert s.hear(3) == {(0, "asked"), (0, "saved"), (2, "asked")}
    assert s.silent()
    assert result.returncode == 7, result
    assert re.search(r"root cause: rank 1 .* on n1 \(node 1\): exit code 7", result.stderr)
    s.nothing_left()


def test_sigterm_to_mpirun_gives_a_second_for_a_checkpoint(make_hosts, scene):
    hosts = make_hosts(2)
    s = scene(hosts, by_mpirun(hosts), "--leftover-grace=0", DO_0="save:500", DO_1="save:60000")
    s.kill(s.pid, signal.SIGTERM)
    result = s.end()
    assert s.hear(3) == {(0, "asked"), (0, "saved"), (1, "asked")}
    assert s.silent()
    assert result.returncode == 1, result
    assert "launchd received SIGTERM on n0 (node 0)" in result.stderr  # mpirun shows its own node's
    assert result.stderr.count("set OMPI_MCA_odls_base_sigkill_timeout=31 where mpirun") == 1, result
    s.nothing_left()


def test_a_second_sigint_makes_mpirun_go_and_nothing_stays(make_hosts, scene):
    """On the other node orted goes on with its sequence."""
    hosts = make_hosts(2)
    s = scene(hosts, by_mpirun(hosts), "--leftover-grace=0", DO="save:500")
    pid = s.pid

    def has_gone():
        signal_if_there(pid, signal.SIGINT)
        return s.job.poll() is not None

    s.kill(pid, signal.SIGINT)
    until(has_gone, "mpirun to give up")
    s.gone(0)
    s.hear_until(1, "saved")
    s.nothing_left()


def test_a_pipe_that_ends_by_mpiruns_sigterm_takes_no_time_away(make_hosts, scene):
    """mpirun signals the process group, and cat dies of it at once; the shell waits here. (One
    that does not may cost the second: mpirun's sleep ends when a child of it does.)"""
    hosts = make_hosts(2)
    s = scene(hosts, by_mpirun(hosts), "--leftover-grace=0", DO="save:700",
              around=("sh", "-c", 'trap : TERM; "$@" 2>&1 | cat; wait', "sh"))
    s.kill(s.pid, signal.SIGTERM)
    s.end()
    assert s.hear(4) == {(rank, text) for rank in (0, 1) for text in ("asked", "saved")}
    s.nothing_left()


def test_sigusr1_once_and_tstp_and_cont(make_hosts, scene):
    """mpirun makes a SIGSTOP of TSTP: launchd can but wait, workers go on."""
    hosts = make_hosts(2)
    s = scene(hosts, by_mpirun(hosts), nproc=2, DO="count")
    guards = [s.guard(node) for node in (0, 1)]
    once = {(rank, "SIGUSR1") for rank in range(4)}

    s.kill(s.pid, signal.SIGUSR1)
    assert s.hear(4) == once
    s.kill(s.pid, signal.SIGTSTP)
    until(lambda: all(map(s.is_stopped, guards)), "both launchers to stop")
    s.kill(s.pid, signal.SIGUSR1)
    s.kill(s.pid, signal.SIGCONT)
    until(lambda: not any(map(s.is_stopped, guards)), "both launchers to go on")
    assert s.hear(4) == once
    s.kill(s.pid, signal.SIGUSR1)
    assert s.hear(4) == once
    assert s.silent()
    assert s.lives(0) and s.lives(1)


def test_mpirun_is_killed_while_launchers_are_stopped(make_hosts, scene):
    hosts = make_hosts(2)
    s = scene(hosts, by_mpirun(hosts, *NEVER))
    guards = [s.guard(node) for node in (0, 1)]
    s.kill(s.pid, signal.SIGTSTP)
    until(lambda: all(map(s.is_stopped, guards)), "both launchers to stop")
    s.kill(orted(s, 1))
    s.gone(1)
    s.kill(s.pid)
    s.gone(0)
    s.nothing_left()


def quiet_forms():
    run = lambda script: ("bash", "-c", script, "bash")  # noqa: E731
    yield "tag-output", (), ("--tag-output",), ()
    yield "output-filename", (), ("--output-filename", "/tmp/out"), ()
    yield "stdin closed", run('exec "$@" <&-'), (), ()
    yield "to a file", run('"$@" >/tmp/log 2>&1'), (), ()
    yield "pty", run('exec script -qec "$(printf "%q " "$@")" /dev/null'), (), ()
    yield "inside: to a file", (), (), AROUND["file"]
    yield "inside: closed", (), (), ("sh", "-c", '"$@" >&- 2>&-', "sh")
    yield "inside: tee", (), (), AROUND["tee"]


def test_nothing_is_taken_for_mpiruns_end(make_hosts, scene):
    """Quiet workers, and every form of output: all live on for longer than a doubt takes."""
    hosts = make_hosts(1)
    started = []
    for name, before, options, around in quiet_forms():
        def start(command, export, before=before, options=options):
            return hosts.mpirun(command, options=options, export=export, before=before)
        started.append((name, scene(hosts, start, "--leftover-grace=0", around=around,
                                    DO="exit:0", label=name)))
    let_pass(0.5, "nothing ends: longer than launchd doubts")
    for name, s in started:
        assert s.lives(0), name
        s.go.go()
        assert s.end().returncode == 0, name


def test_without_mpirun_a_script_and_its_pipes_may_end(make_hosts, scene):
    hosts = make_hosts(1)
    s = scene(hosts, lambda command, export: hosts.in_a_script(
        '"$@" & echo $!', command, export, stderr=subprocess.STDOUT), DO="count")
    guard = s.guard(0)
    until(lambda: s.job.poll() is not None, "the script to end")
    s.job.stdout.close()
    let_pass(0.5, "nothing ends: longer than launchd doubts")
    s.kill(guard, signal.SIGUSR1)
    assert s.hear(1) == {(0, "SIGUSR1")}
    s.kill(guard)
    s.gone(0)
    s.nothing_left()
