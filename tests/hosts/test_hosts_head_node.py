"""launchd --mpirun-hosts on simulated hosts: launchd on n0 becomes a real mpirun."""
import os
import signal

import pytest
from harness import native

OPENMPI5 = os.environ.get("LAUNCHD_OPENMPI5", "")  # its directory, in which there is bin/mpirun
KEY = "a key that no command line may show"
BY_4 = {"OMPI_MCA_plm_rsh_agent": "/run/rsh"}
BY_5 = {"PRTE_MCA_plm_ssh_agent": "/run/rsh", "PATH": f"{OPENMPI5}/bin:/usr/bin:/bin"}
TELL = 'echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $(uname -n) <$ODD> $#"'


@pytest.fixture(params=[4, pytest.param(5, marks=pytest.mark.skipif(
    not OPENMPI5, reason="no Open MPI 5: LAUNCHD_OPENMPI5 names its directory"))])
def job(request, make_hosts):
    """job(*options, ...) -> the process of launchd on n0, which becomes mpirun; job.hosts"""
    hosts = make_hosts(3, shared=[OPENMPI5] if request.param == 5 else [])

    def start(*options, env=None):
        return hosts.popen(0, hosts.launchd(*options), {
            **(BY_4 if request.param == 4 else BY_5), "DUMP_DIR": "/run/home/out",
            "LAUNCHD_KEY": KEY, **hosts.sanitizers(), **(env or {})})

    start.hosts = hosts
    return start


def shell(script, *args):
    return ["--no_python", "--use_env", "sh", "-c", script, "sh", *args]


def test_one_launcher_on_each_host(job):
    """As many workers as the file says; variables and arguments are those of the head node."""
    (job.hosts.home / "hosts").write_text("n0 slots=1\nn1 slots=2 max_slots=2\nn2:2\n")
    result = job.hosts.finish(job(
        "--mpirun-hostfile", "hosts", *shell(TELL, "a b", "", "--host", "*"), env={"ODD": "x;y 'z'"}))
    assert sorted(result.stdout.splitlines()) == [
        "0/5 0/1 n0 <x;y 'z'> 4", "1/5 0/2 n1 <x;y 'z'> 4", "2/5 1/2 n1 <x;y 'z'> 4",
        "3/5 0/2 n2 <x;y 'z'> 4", "4/5 1/2 n2 <x;y 'z'> 4"], result
    assert result.returncode == 0, result
    assert not job.hosts.processes()


def test_on_other_hosts_than_this_one(job):
    result = job.hosts.finish(job("--mpirun-hosts=n1,n2", "--nproc_per_node=2", *native("dump")))
    assert result.returncode == 0, result
    dumps = job.hosts.place.dumps()
    assert sorted(dumps) == [0, 1, 2, 3]
    assert all("LAUNCHD_KEY" not in dump["env"] for dump in dumps.values())


def test_hosts_that_are_known_by_whole_names_alone(job):
    """... which ssh looks up; and as whom mpirun logs in there is the file's."""
    looks_up = job.hosts.home / "shell"
    looks_up.write_text('#!/bin/sh\ngetent hosts "${1#*@}" >/dev/null && exec /run/rsh "$@"\n')
    looks_up.chmod(0o755)
    agent = {name: "/run/home/shell" for name in (*BY_4, *BY_5) if name != "PATH"}
    for host in range(3):
        job.hosts.run(host, ["sh", "-ec", "sed 's/ n[0-2]$/&.cluster/' /etc/hosts >/tmp/hosts; "
                             "mount --bind /tmp/hosts /etc/hosts"])
    for text in ("n2.cluster:1\nn0.cluster:1\n", "root@n2.cluster slots=1\nroot@n0.cluster slots=1\n"):
        (job.hosts.home / "hosts").write_text(text)
        result = job.hosts.finish(job("--mpirun-hostfile", "hosts", *shell("uname -n"), env=agent))
        assert result.returncode == 0 and sorted(result.stdout.split()) == ["n0", "n2"], result


def test_the_culprits_exit_code(job):
    result = job.hosts.finish(job("--mpirun-hosts=n0,n1", "--nproc_per_node=2",
                                  *shell("[ $RANK != 2 ] || exit 7; exec sleep 60")))
    assert result.returncode == 7, result
    assert "root cause: rank 2 (local rank 0" in result.stderr, result
    assert not job.hosts.processes()


# It starts no program when it is told to end: beside many programs that start and end, one may wait for seconds
# for a lock that the kernel keeps for each library.
SAVES = """
import os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("started", flush=True)
signal.sigwait([signal.SIGTERM])
time.sleep(1.5)
print("saved", os.environ["RANK"], flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("job", [4], indirect=True)  # Open MPI 5 has no such time
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_the_time_that_was_asked_for(job, number):
    """Of Ctrl-C, too. By itself mpirun leaves 1 s; it ends after twice what it leaves. No command line
    has the job's key."""
    process = job("--mpirun-hosts=n0,n1", "--shutdown-timeout=5", "--nproc_per_node=2",
                  "--no_python", "--use_env", "/usr/bin/python3", "-S", "-c", SAVES)
    assert [process.stdout.readline() for _ in range(4)] == ["started\n"] * 4
    lines = [line for _, line in job.hosts.processes()]
    assert [line for line in lines if "-x LAUNCHD_KEY" in line] and KEY not in " ".join(lines)
    job.hosts.signal(process, number)
    result = job.hosts.finish(process)
    assert sorted(result.stdout.splitlines()) == [f"saved {rank}" for rank in range(4)], result
    assert "mpirun sends SIGKILL" not in result.stderr, result
    assert result.returncode == 1, result
    assert not job.hosts.processes()
