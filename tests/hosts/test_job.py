"""What the tests of several nodes see by: jobs, their board, and what workers write there. None of
this needs the nodes to know of each other."""
import signal

import pytest
from harness import until
from job import CLOCKS_APART_MS, MS, now_ns

CLOCKS = [0, 50_000, 7000]


def assert_acted(at_ns, start_ns, ms):
    """So many ms after the start, on a machine that may be slow."""
    assert -CLOCKS_APART_MS <= (at_ns - start_ns) / MS - ms < 5000


def test_workers_act_when_they_should_whatever_their_hosts_clock(make_hosts, static_job):
    """Each node is alone here: three jobs, which end by their own worker."""
    hosts = make_hosts(3, clocks=CLOCKS)
    job = static_job(hosts, "--control=off", ACT_0="exit:7@30000", ACT_1="signal:6@20000",
                     ACT_2="raise:1@40000")
    start = job.start()
    ends = job.wait()
    assert [ends[node].rc for node in range(3)] == [7, 134, 1]
    assert [ends[node].culprits() for node in range(3)] == [[0], [1], [2]]
    assert "ValueError: the teapot is empty" in ends[2].err
    for rank, ms in enumerate((30, 20, 40)):
        part = job.board.part(rank)
        assert_acted(part.died_ns, start, ms)
        assert 0 < part.born_ns < start + CLOCKS_APART_MS * MS and not part.overlap
        assert ends[rank].ended_ns > part.died_ns - CLOCKS_APART_MS * MS
        assert part.term_ns == 0
    job.nothing_left()


def test_words_of_a_lost_peer(make_hosts, static_job):
    hosts = make_hosts(2)
    job = static_job(hosts, "--control=off", ACT_0="reset:1@1000", ACT_1="text:1@1000")
    job.start()
    ends = job.wait()
    assert "Connection closed by peer" in ends[0].err
    assert "Connection closed by peer" in ends[1].err
    assert [ends[node].rc for node in range(2)] == [1, 1]


@pytest.mark.parametrize("on_term, rc", [("", 143), ("exit:5", 5), ("ms:100", 143)])
def test_sigterm_is_noted(make_hosts, static_job, on_term, rc):
    hosts = make_hosts(1)
    job = static_job(hosts, nproc=2, ACT_0="exit:7@0", ON_TERM_1=on_term)
    job.start()
    assert job.wait()[0].rc == 7
    died = job.board.part(0).died_ns
    assert_acted(job.board.part(1).term_ns, died, 0)


def test_an_order_at_any_time(make_hosts, static_job):
    hosts = make_hosts(2)
    job = static_job(hosts, "--control=off", ACT="obey")
    job.start()
    until(lambda: job.board.started_ns() < now_ns(), "the start")
    given = job.board.order(1, "exit:9@2000")
    assert job.wait(1)[1].rc == 9
    assert_acted(job.board.part(1).died_ns, given, 2)
    job.board.order(0, "signal:9@0")
    assert job.wait(0)[0].rc == 137


def test_a_start_of_their_own(make_hosts, static_job):
    hosts = make_hosts(2)
    job = static_job(hosts, "--control=off", ACT="exit:0@0", START="auto")
    assert {end.rc for end in job.wait().values()} == {0}
    for part in job.board.parts(2):
        assert_acted(part.died_ns, job.board.started_ns(), 0)


def test_what_is_alive_of_the_attempt_before_is_seen(make_hosts):
    hosts = make_hosts(2)
    from harness import worker
    from job import Board
    board = Board(hosts.home / "board")

    def actor(host, attempt, **more):
        return hosts.popen(host, [worker("actor")], {
            "BOARD": "/run/home/board", "RANK": str(host), "WORLD_SIZE": "2",
            "TORCHELASTIC_RESTART_COUNT": str(attempt), **more})

    actor(0, 0, CHILD="1")
    until(lambda: board.ready(0) == 1, "the first")
    hosts.run(0, ["sh", "-c", "kill $(pgrep -o actor)"])
    actor(1, 1)
    until(lambda: board.ready(1) == 1, "the second")
    assert board.part(1, 1).overlap == 1  # a child of it lives
    hosts.kill_all(0)
    actor(1, 2)
    until(lambda: board.ready(2) == 1, "the third")
    assert board.part(1, 2).overlap == 1  # the second one
    hosts.kill_all(1)
    actor(1, 3)
    until(lambda: board.ready(3) == 1, "the fourth")
    assert board.part(1, 3).overlap == 0
    board.close()


def test_sixty_four_hosts(make_hosts, static_job):
    hosts = make_hosts(64, netem=True)
    job = static_job(hosts, "--control=off", ACT="exit:0@0")
    job.start()
    ends = job.wait()
    assert len(ends) == 64 and {end.rc for end in ends.values()} == {0}
    job.nothing_left()


def test_a_job_by_mpirun(make_hosts, mpirun_job):
    hosts = make_hosts(4)
    job = mpirun_job(hosts, f"--master_addr={hosts.addresses[0]}", nproc=2, ACT_5="exit:7@0",
                     kill_timeout=1)
    job.start()
    end = job.wait()[0]
    assert end.rc == 7, end
    assert end.culprits() == [5]
    job.nothing_left()


def test_launchers_are_killed_and_workers_are_not_spared(make_hosts, static_job):
    hosts = make_hosts(2)
    job = static_job(hosts, "--control=off")
    job.start()
    assert len(hosts.launchers(1)) == 2
    hosts.kill_launchers(1)
    # the guard may be quicker to notice the supervisor's death than its own SIGKILL
    assert job.wait(1)[1].rc in (-signal.SIGKILL, 128 + signal.SIGKILL)
    job.nothing_left(1)
    assert len(job.alive()) == 1
