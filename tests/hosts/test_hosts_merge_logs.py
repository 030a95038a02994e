"""--merge-logs on hosts of their own: started one by one, and by srun."""
import pytest
from slurm import Slurm, why_impossible

SCRIPT = "for i in 1 2 3 4 5 6 7 8 9; do echo out $i; echo err $i >&2; done; printf end"
WORKER = ["--no_python", "--use_env", "sh", "-c", SCRIPT]


def lines_of(names, word, end=()):
    """What workers write, two on each host, with host and rank."""
    return [[f"[{name}:{2 * node + i}]:{text}" for text in
             [f"{word} {n}" for n in range(1, 10)] + list(end)]
            for node, name in enumerate(names) for i in range(2)]


def assert_merged(text, streams):
    """All lines are there, those of each stream in its order, and nothing else but launchd's."""
    got = [line for line in text.splitlines() if not line.startswith("launchd: ")]
    assert sorted(got) == sorted(line for stream in streams for line in stream)
    for stream in streams:
        assert [line for line in got if line in stream] == stream


def test_nodes_that_are_started_one_by_one(make_hosts, static_job):
    hosts = make_hosts(4)
    ends = static_job(hosts, "--merge-logs", nproc=2, worker=WORKER).wait()
    assert {end.rc for end in ends.values()} == {0}
    with_end = lines_of(hosts.names, "out", ["end"])
    for node in range(4):
        assert_merged(ends[node].out, with_end if node == 0 else [])
        assert_merged(ends[node].err, lines_of(hosts.names, "err") if node == 0 else [])


@pytest.mark.skipif(bool(why_impossible()), reason=why_impossible() or "")
def test_a_step_of_srun(make_hosts):
    """srun's label is the task that has written: node rank 0's."""
    slurm = Slurm(make_hosts(2))
    result = slurm.hosts.finish(slurm.popen(
        "srun", "-l", "-N2", "--mpi=none", *slurm.hosts.launchd(
            "--merge-logs", "--nproc_per_node", "2", *WORKER), env={"OMP_NUM_THREADS": "1"}))
    assert result.returncode == 0, result
    assert_merged("".join(line.removeprefix("0: ") for line in
                          result.stdout.splitlines(keepends=True)),
                  lines_of(slurm.hosts.names, "out", ["end"]))
    words = [line for line in result.stderr.splitlines() if "launchd: " not in line]
    assert_merged("\n".join(line.removeprefix("0: ") for line in words),
                  lines_of(slurm.hosts.names, "err"))
