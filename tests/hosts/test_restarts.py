"""Restarts of the whole job, in step on all nodes."""
import importlib.util
import os

import pytest
from harness import TESTS
from job import MS, verdict

KINDS = [("static", 2), ("static", 4), ("mpirun", 4)]
# Restarts of a job of torch and gloo; 100 by hand.
RESTARTS = int(os.environ.get("LAUNCHD_RESTARTS", "2"))
GLOO = TESTS / "libraries" / "scripts" / "fail_until.py"


@pytest.fixture
def job_of(static_job, mpirun_job):
    return lambda kind, *how, **more: {"static": static_job, "mpirun": mpirun_job}[kind](
        *how, START="auto", **more)


def in_step(job, attempts):
    """All workers came to each of these attempts, and to no other; nothing of the attempt before
    was alive. Returns for each restart the ms from the death to the last new worker."""
    assert [job.board.ready(attempt) for attempt in range(attempts + 1)] == \
        [job.world] * attempts + [0]
    took = []
    for attempt in range(attempts):
        parts = job.board.parts(job.world, attempt)
        assert not any(part.overlap for part in parts), f"attempt {attempt}"
        if attempt:
            before = job.board.parts(job.world, attempt - 1)
            died = min(part.died_ns for part in before if part.died_ns)
            assert min(part.born_ns for part in parts) > max(
                part.term_ns for part in before)
            took.append((max(part.born_ns for part in parts) - died) / MS)
    return took


@pytest.mark.quick
@pytest.mark.parametrize("kind, nodes", KINDS)
def test_the_whole_job_is_restarted_until_it_succeeds(make_hosts, job_of, record_property, kind,
                                                      nodes):
    hosts = make_hosts(nodes)
    job = job_of(kind, hosts, "--max-restarts=3", nproc=2, ACT="never;never;never;exit:0@20000",
                 ACT_1="exit:7@20000;never;signal:11@1000;exit:0@0",
                 ACT_3="never;exit:9@0;never;exit:0@0")
    ends = job.wait()
    assert {end.rc for end in ends.values()} == {0}, ends
    record_property("restarts after ms", [round(ms, 1) for ms in in_step(job, 4)])
    job.nothing_left()


@pytest.mark.parametrize("kind, nodes", KINDS)
def test_when_all_restarts_are_used_the_last_failure_is_the_jobs(make_hosts, job_of, kind, nodes):
    hosts = make_hosts(nodes)
    job = job_of(kind, hosts, "--max-restarts=2", ACT_1="exit:7@0;exit:8@0;exit:9@0")
    assert verdict(job.wait())[0] == 9
    in_step(job, 3)
    job.nothing_left()


def test_failures_on_several_nodes_count_once(make_hosts, job_of):
    hosts = make_hosts(4)
    job = job_of("static", hosts, "--max-restarts=1", ACT="exit:7@10000;exit:0@0")
    assert verdict(job.wait()) == (0, None)
    in_step(job, 2)


@pytest.mark.parametrize("kind, nodes", KINDS[1:])
def test_nothing_of_an_attempt_is_left_when_the_next_one_starts(make_hosts, job_of, kind, nodes):
    """Not even what ignores SIGTERM in a session of its own."""
    hosts = make_hosts(nodes)
    job = job_of(kind, hosts, "--max-restarts=2", "--shutdown-timeout=0.3", "--leftover-grace=0.2",
                 nproc=2, CHILD="1", ON_TERM="ignore", ON_TERM_2="", ACT="never;never;exit:0@0",
                 ACT_2="exit:7@0;exit:7@0;exit:0@0")
    assert {end.rc for end in job.wait().values()} == {0}
    in_step(job, 3)
    job.nothing_left()


def test_clocks_do_not_matter(make_hosts, job_of):
    hosts = make_hosts(4, clocks=[300, 800_300, 0, 305])
    job = job_of("static", hosts, "--max-restarts=2", ACT="never;never;exit:0@0",
                 ACT_3="exit:7@0;exit:7@0;exit:0@0")
    assert verdict(job.wait())[0] == 0
    in_step(job, 3)


@pytest.mark.parametrize("options, act, attempts", [
    (["--restart-on=7,SIGSEGV"], "signal:11@0", 3), (["--no-restart-on=7"], "exit:7@0", 1),
])
def test_which_ends_are_restarted(make_hosts, job_of, options, act, attempts):
    hosts = make_hosts(2)
    job = job_of("static", hosts, "--max-restarts=2", *options, ACT_1=act)
    assert verdict(job.wait())[0] == (139 if "signal" in act else int(act[5]))
    in_step(job, attempts)


@pytest.mark.quick
def test_a_lost_launcher_is_not_restarted(make_hosts, job_of):
    hosts = make_hosts(4)
    job = job_of("static", hosts, "--max-restarts=3", "--node-timeout=3")
    job.meet()
    hosts.kill_launchers(2)
    ends = job.wait(0, 1, 3)
    assert 0 not in {end.rc for end in ends.values()}
    assert {tuple(end.lost()) for end in ends.values()} == {(2,)}, ends
    in_step(job, 1)
    job.nothing_left()


def test_sixty_four_nodes(make_hosts, job_of, record_property):
    """The launcher's own share is measured by tests/bench/run_nodes."""
    hosts = make_hosts(64)
    job = job_of("static", hosts, "--max-restarts=1", ACT="never;exit:0@0",
                 ACT_33="exit:7@0;exit:0@0")
    assert verdict(job.wait())[0] == 0
    record_property("restarts after ms", in_step(job, 2))


@pytest.mark.long
@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no torch here")
@pytest.mark.parametrize("kind, nodes", [("static", 4), ("mpirun", 2)])
def test_a_gloo_job_is_restarted(make_hosts, static_job, mpirun_job, kind, nodes):
    hosts = make_hosts(nodes)
    start = static_job if kind == "static" else mpirun_job
    job = start(hosts, f"--max-restarts={RESTARTS}", "--store=agent",
                worker=["--use_env", GLOO, RESTARTS])
    ends = job.wait(limit=60 + 30 * RESTARTS)
    assert {end.rc for end in ends.values()} == {0}, ends
    said = "".join(end.out for end in ends.values())
    assert sorted(line for line in said.splitlines() if line.startswith("rank ")) == sorted(
        f"rank {rank} of {nodes} done in attempt {RESTARTS}" for rank in range(nodes))
    job.nothing_left()
