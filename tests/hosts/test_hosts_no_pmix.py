"""Under mpirun without PMIx, the launchers meet at the address that all know, as static nodes do."""
import os
import re
import socket

from cluster import HOME
from harness import let_pass, native, until
from test_hosts_meet import absent, fake_library

PORT = 29500
NO_PMIX = "launchd: note: the launchers of this job can't meet by PMIx: "
UNKEYED = "the control channel is not authenticated"
TAKEN = f"without PMIx launchers meet at port {PORT + 1}, where another program on this node " \
    "is listening: give all nodes another --control-port or MASTER_PORT"


def run(hosts, *options, wrap=lambda launchd: launchd):
    """A job of `dump` workers."""
    return hosts.run_mpi(
        [*fake_library(hosts), *wrap(hosts.launchd(*options, *native("dump")))],
        export={"MASTER_ADDR": hosts.addresses[0], "MASTER_PORT": str(PORT)})


def errors(result):
    return re.findall("launchd: error: (.*)", result.stderr)


def is_told_by_node_0(result):
    """It has the reason; what mpirun's SIGTERM or the other job lets the rest say is no reason."""
    assert result.returncode == 1, result
    assert errors(result).count(TAKEN) == 1, result


def test_the_channel_without_a_key_is_said_once(make_hosts):
    result = run(make_hosts(3))
    assert result.returncode == 0, result
    assert result.stderr.count(UNKEYED) == 1, result
    assert NO_PMIX not in result.stderr, result


def test_verbose_says_why(make_hosts):
    hosts = make_hosts(2)
    result = run(hosts, "--verbose")
    assert result.returncode == 0, result
    why = rf"{NO_PMIX}libpmix: .*; they meet at {re.escape(hosts.addresses[0])}, port {PORT + 1} instead\n"
    assert len(re.findall(why, result.stderr)) == 2, result


def test_node_0_may_be_the_last_to_notice(make_hosts):
    """Until then it listens with the key that PMIx is to carry; the others try again."""
    hosts = make_hosts(3)
    (hosts.home / "slow").mkdir()
    os.mkfifo(hosts.home / "slow/libpmix.so.2")  # opening it takes until somebody writes
    told, tell = hosts.fifo("tell")
    go, wait = hosts.fifo("go")
    script = f'[ "$PMIX_RANK" != 0 ] || LD_LIBRARY_PATH={HOME}/slow; exec "$@"'
    job = hosts.mpirun(
        [*fake_library(hosts), "sh", "-c", script, "sh", *hosts.launchd(*native("ending"))],
        export={"MASTER_ADDR": hosts.addresses[0], "MASTER_PORT": str(PORT), "TELL": tell,
                "GO": wait, "END": "exit:0"})
    until(lambda: all(hosts.launchers(node)[1:] for node in range(3)), "all launchers")
    let_pass(2, "the others are turned away, and try again")
    os.close(os.open(hosts.home / "slow/libpmix.so.2", os.O_WRONLY))
    told.expect("ready", 3)
    go.go(3)
    result = hosts.finish(job)
    assert result.returncode == 0, result
    assert "warning" not in result.stderr, result


def test_a_node_that_never_comes_is_not_waited_for_without_end(make_hosts):
    """... and is named by node 0, which waits as long as it is told to."""
    hosts = make_hosts(3)
    result = run(hosts, "--control=auto", "--join-timeout=2", wrap=lambda launchd: absent(2, launchd))
    assert result.returncode == 0, result
    assert "launchd: warning: node 2 did not join within 2 s" in result.stderr, result
    assert sorted(hosts.place.dumps()) == [0, 1]


def test_a_program_that_listens_there(make_hosts):
    """It would keep the others waiting, and node 0 can't know of them."""
    hosts = make_hosts(3)
    with hosts.socket(0, socket.AF_INET, socket.SOCK_STREAM) as other:
        other.bind(("0.0.0.0", PORT + 1))
        other.listen()
        is_told_by_node_0(run(hosts))
    assert not hosts.place.dumps()


def test_another_job_that_meets_there(make_hosts, static_job):
    """It runs, and goes on as if nothing were. Whoever comes first says it: node 0, that the port is taken, or one of
    the others, which the other job's launcher turns away."""
    hosts = make_hosts(3)
    job = static_job(hosts, port=PORT, ACT="obey")
    job.start()
    result = run(hosts)
    assert result.returncode in (1, 2), result
    assert any(text == TAKEN or text.startswith("this port belongs to a job without --rdzv-id: give mpirun's job ")
               for text in errors(result)), result
    assert not hosts.place.dumps()
    assert not job.ended() and not any(part.term_ns for part in job.board.parts(3))
    for rank in range(3):
        job.board.order(rank, "exit:0@0")
    assert {end.rc for end in job.wait().values()} == {0}
