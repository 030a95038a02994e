"""A node's launcher that is killed and started again, while its job still runs on the others."""
import contextlib

from harness import until
from job import LOST_CODE, launcher_killed, verdict

OPTIONS = ["--node-timeout=5", "--shutdown-timeout=7", "--control=required"]
REFUSED = "launchd: error: the job is still running on other nodes, and this node can't rejoin it: it "
AGAIN = "start this launcher again when the job has ended, as systemd does by itself (Restart=)\n"
ENDS = REFUSED + "ends there within 5 s (--node-timeout), as this node's former launcher is missed, and gives " \
                 "workers up to 7 s for that; " + AGAIN
IS_ENDING = REFUSED + "is ending there, and gives workers up to 7 s for that; " + AGAIN


def start_again(job, node):
    """Its End. The one before has ended."""
    job.wait(node)
    with contextlib.closing(job.launchers[node]):
        job.launch(node)
    return job.wait(node)[node]


def test_it_is_refused_the_job_ends_elsewhere_and_all_meet_again(make_hosts, static_job):
    hosts = make_hosts(3)
    job = static_job(hosts, *OPTIONS, ON_TERM="ignore")
    job.start()
    launcher_killed(hosts, 1)
    again = start_again(job, 1)
    assert again.rc == 1 and again.err in (ENDS, IS_ENDING), again  # a node is missed soon where the host is well
    until(lambda: job.board.part(0).term_ns and job.board.part(2).term_ns, "the stop of the others")
    again = start_again(job, 1)
    assert (again.rc, again.err) == (1, IS_ENDING), again
    ends = job.wait(0, 2)
    assert {end.rc for end in ends.values()} == {LOST_CODE} and all(end.lost() == [1] for end in ends.values()), ends
    job.nothing_left()
    static_job(hosts, *OPTIONS, ACT="obey").end_well()


def test_node_rank_0_waits_for_the_others_to_come_back(make_hosts, static_job):
    """The others' job ends with its hub; the new hub's is another one."""
    hosts = make_hosts(3)
    job = static_job(hosts, *OPTIONS, ACT="obey")
    job.start()
    launcher_killed(hosts, 0)
    job.wait(0)
    next_one = static_job(hosts, *OPTIONS, ACT="obey", late=[1, 2])
    ends = job.wait(1, 2)
    assert {end.rc for end in ends.values()} == {LOST_CODE}, ends
    for node in (1, 2):
        next_one.launch(node)
    next_one.end_well()


def test_a_second_launcher_beside_one_that_is_alive(make_hosts, static_job):
    hosts = make_hosts(2)
    job = static_job(hosts, *OPTIONS, ACT="obey")
    job.start()
    [end] = static_job(hosts, *OPTIONS, late=[0]).wait().values()
    assert end.rc == 1 and "the job is already running, and node 1 has a launcher in it that is alive" in end.err, end
    job.end_well()
