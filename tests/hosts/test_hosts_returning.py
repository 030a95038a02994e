"""A node's launcher that is killed and started again, while its job still runs on the others."""
import pytest
from harness import until
from job import LOST_CODE, launcher_killed

OPTIONS = ["--node-timeout=5", "--shutdown-timeout=7", "--control=required"]
RUNS = "launchd: note: this node can't rejoin its former job, which still runs on other nodes: it "
ENDS = RUNS + "ends there within 5 s (--node-timeout), as this node's former launcher is missed, and gives " \
              "workers up to 7 s for that; waiting for its next start\n"
IS_ENDING = RUNS + "is ending there, and gives workers up to 7 s for that; waiting for its next start\n"


def kill(job, node):
    """Its launcher, and waits until it has ended."""
    launcher_killed(job.hosts, node)
    job.wait(node)


def test_it_waits_until_the_job_has_ended_elsewhere_and_all_meet_again(make_hosts, static_job):
    """Others take all of their grace, and it is never started again for that, nor says it twice."""
    hosts = make_hosts(3)
    job = static_job(hosts, *OPTIONS, ON_TERM="ignore")
    job.start()
    kill(job, 1)
    again = static_job(hosts, *OPTIONS, ACT="obey", late=[0, 2])
    until(lambda: "waiting for its next start" in again.launchers[1].said(), "the refusal")
    ends = job.wait(0, 2)
    assert {end.rc for end in ends.values()} == {LOST_CODE} and all(end.lost() == [1] for end in ends.values()), ends
    for node in (0, 2):
        again.launch(node)
    again.end_well()
    ends = again.wait()
    said = [line for line in ends[1].err.splitlines(True) if "former job" in line]
    assert said in ([ENDS], [IS_ENDING]), ends[1]  # a node is missed soon where the host is well


@pytest.mark.parametrize("control", ["required", "auto"])
def test_no_other_comes_back(make_hosts, static_job, control):
    """It ends when its time is over, and its workers don't start alone. The job still ends then."""
    hosts = make_hosts(2)
    job = static_job(hosts, *OPTIONS, ON_TERM="ignore")
    job.start()
    kill(job, 1)
    [end] = static_job(hosts, *OPTIONS, f"--control={control}", "--join-timeout=3", ACT="obey", late=[0]).wait().values()
    assert end.rc == 1 and "waiting for its next start" in end.err and "within 3 s (--join-timeout)" in end.err, end
    job.wait(0)


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
