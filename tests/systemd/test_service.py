"""launchd@.service of a real systemd, on machines that it boots: a job's whole life as its operators see it."""
import contextlib
import os
import pathlib
import shutil
import textwrap

import pytest
from cluster import HOME, has_groups
from harness import Fifo
from waiting import read_if_there

UNIT = "launchd@train.service"
# Every rank's sum of all ranks, in a file of its own; then it works until it is told that it is done.
GLOO = """
import os, pathlib
import torch, torch.distributed as dist
dist.init_process_group("gloo")
sum = torch.tensor([float(dist.get_rank())])
dist.all_reduce(sum)
home = pathlib.Path("%s")
(home / f"sum{dist.get_rank()}.part").write_text(str(int(sum)))
(home / f"sum{dist.get_rank()}.part").rename(home / f"sum{dist.get_rank()}")
os.read(os.open(home / "done", os.O_RDONLY), 1)
dist.destroy_process_group()
""" % HOME
WORKS = "import time; time.sleep(1000)"
CONF = """
[launchd]
script = {home}/train.py
python = /usr/bin/python3
use_env = yes
nproc_per_node = {nproc}
nnodes = {nnodes}
node_rank = {node}
master_addr = n0
{more}
[env]
OMP_NUM_THREADS = 1
"""


class Service:
    """The same job on all machines, not yet enabled."""

    def __init__(self, machines, script, nproc=2, more=""):
        self.machines, self.all, self.fifos = machines, range(len(machines.names)), []
        (machines.home / "train.py").write_text(textwrap.dedent(script))
        for i in self.all:
            machines.file(i, "/etc/launchd/train.conf").write_text(CONF.format(
                home=HOME, nproc=nproc, nnodes=len(self.all), node=i, more=more))
            dropin = machines.file(i, f"/etc/systemd/system/{UNIT}.d")
            dropin.mkdir(parents=True)
            # the directory that all machines share
            (dropin / "shared.conf").write_text(f"[Service]\nReadWritePaths={HOME}\n")
            machines.must(i, "systemctl", "daemon-reload")

    def start(self, *hosts):
        for i in hosts or self.all:
            self.machines.must(i, "systemctl", "start", "--no-block", UNIT)

    def fifo(self, name):
        """In the directory that all machines share, for their workers."""
        self.fifos.append(Fifo(self.machines.home / name))
        os.chmod(self.fifos[-1].path, 0o666)
        return self.fifos[-1]

    def close(self):
        for fifo in self.fifos:
            fifo.close()

    def until(self, host=None, **wanted):
        for i in self.all if host is None else [host]:
            self.machines.until_unit(UNIT, i, **wanted)

    def log(self, host=0):
        return self.machines.journal(host, "--unit", UNIT)

    def pids(self, host=0):
        """By name; of those that have not ended meanwhile."""
        said = self.machines.on(host, "sh", "-c", f"cat $(find /sys/fs/cgroup/system.slice/*/{UNIT} "
                                "-name cgroup.procs)").stdout
        found = {}
        for pid in said.split():
            found.setdefault(read_if_there(self.machines.file(host, f"/proc/{pid}/comm")).strip(), []).append(pid)
        found.pop("", None)
        return found

    def status(self, host=0):
        return self.machines.show(UNIT, "StatusText", host=host)["StatusText"]


@pytest.fixture
def service(make_machines):
    """service(count, script, ...) -> Service; whole: see make_machines()"""
    with contextlib.ExitStack() as made:
        yield lambda count, script, whole=False, **more: made.enter_context(
            contextlib.closing(Service(make_machines(count, whole), script, **more)))


def has_torch():
    return os.system("/usr/bin/python3 -c 'import torch' 2>/dev/null") == 0


def test_three_nodes_start_their_job_as_they_boot(service):
    if not has_torch():
        pytest.skip("/usr/bin/python3 has no torch")
    job = service(3, GLOO, whole=True)
    done, machines = job.fifo("done"), job.machines
    for i in job.all:
        machines.must(i, "systemctl", "enable", "launchd.target", UNIT)
    for i in (2, 1):
        machines.reboot(i)
        # the boot is over, and the job waits for the others
        machines.until_unit("multi-user.target", i, ActiveState="active")
        job.until(i, ActiveState="activating")
    machines.reboot(0)
    machines.until(0, lambda: (machines.home / "sum5").exists(), "six ranks to meet")
    job.until(ActiveState="active", SubState="running")
    machines.until(0, lambda: [(machines.home / f"sum{i}").exists() for i in range(6)] == [True] * 6,
                   "six sums")
    assert {(machines.home / f"sum{i}").read_text() for i in range(6)} == {"15"}
    assert [machines.state(i) for i in job.all] == ["running"] * 3
    done.go(6)
    job.until(ActiveState="inactive", Result="success")
    assert [machines.state(i) for i in job.all] == ["running"] * 3


def test_a_stop_ends_the_job_on_all_nodes_and_is_no_failure_where_it_was_asked_for(service):
    job = service(2, WORKS)
    job.start()
    job.until(ActiveState="active")
    assert "2 workers" in job.status(), job.status()
    job.machines.must(1, "systemctl", "stop", UNIT)
    job.until(1, ActiveState="inactive", Result="success")
    assert not job.pids(1)
    job.until(0, Result="exit-code")
    assert "launchd received SIGTERM on n1 (node 1)" in job.log(0)


@pytest.mark.parametrize("victim", ["launchd", "rank-supervisor"])
def test_a_killed_launcher_is_a_failure_and_leaves_nothing(service, victim):
    job = service(1, WORKS)
    job.start()
    job.until(ActiveState="active")
    pids = [pid for all in job.pids().values() for pid in all]
    job.machines.must(0, "kill", "-KILL", *job.pids()[victim])
    job.machines.until(0, lambda: job.machines.show(UNIT, "Result")["Result"] != "success", "a failure")
    # systemd says so as soon as one process has died
    job.machines.until(0, lambda: not [p for p in pids if job.machines.file(0, f"/proc/{p}").exists()],
                       "its processes to be gone")


STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ignores SIGTERM", flush=True)
time.sleep(1000)
"""


def start_stubborn(job):
    """Starts the job and waits until its workers, two on each node, ignore SIGTERM."""
    job.start()
    job.until(ActiveState="active", SubState="running")
    for i in job.all:
        job.machines.until(i, lambda i=i: job.log(i).count("ignores SIGTERM") == 2, "its workers to ignore SIGTERM")


def test_a_node_that_comes_back_while_the_others_still_end_waits_for_them(service):
    """Its service is killed as a whole; on the other node workers take all of their grace, which is far more than
    systemd would start a launcher in vain."""
    if not has_groups():
        pytest.skip("machines have no control group of version 2 of their own here, and systemd kills no service whole")
    job = service(2, STUBBORN, more="shutdown_timeout = 8")
    machines = job.machines
    machines.file(1, f"/etc/systemd/system/{UNIT}.d/restart.conf").write_text("[Service]\nRestartSec=1\n")
    machines.must(1, "systemctl", "daemon-reload")
    start_stubborn(job)
    machines.must(1, "systemctl", "kill", "--kill-whom=all", "--signal=KILL", UNIT)
    machines.until(1, lambda: "this node can't rejoin its former job, which still runs on other nodes: it is ending "
                   "there, and gives workers up to 8 s for that; waiting for its next start" in job.log(1), "a refusal")
    machines.until(0, lambda: machines.show(UNIT, "NRestarts", host=0) == {"NRestarts": "1"}, "the others' end")
    job.until(ActiveState="active", SubState="running", Result="success", NRestarts="1")
    for i in job.all:
        machines.on(i, "systemctl", "stop", UNIT)


def test_a_grace_is_longer_than_systemd_would_wait(service):
    """As launchd asks for that time (EXTEND_TIMEOUT_USEC=)."""
    job = service(1, STUBBORN, more="shutdown_timeout = 5")
    dropin = job.machines.file(0, f"/etc/systemd/system/{UNIT}.d/limit.conf")
    dropin.write_text("[Service]\nTimeoutStopSec=1\n")
    job.machines.must(0, "systemctl", "daemon-reload")
    start_stubborn(job)
    job.machines.must(0, "systemctl", "stop", UNIT)
    job.until(ActiveState="inactive", Result="success")
    assert "s after launchd's SIGTERM: killed by SIGKILL" in job.log()


@pytest.mark.parametrize("rebooted", [(1,), (0, 2)], ids=["a node", "node rank 0 and another"])
def test_the_job_comes_back_after_a_reboot(service, rebooted):
    """It ends on the nodes that stay, and all meet again when those that went have booted."""
    job = service(3, WORKS)
    machines = job.machines
    for i in job.all:
        machines.must(i, "systemctl", "enable", "--now", "--no-block", "launchd.target", UNIT)
    job.until(ActiveState="active", SubState="running")
    pids = {i: job.pids(i) for i in job.all}
    booted = {i: machines.init_of(i) for i in rebooted}
    for i in rebooted:
        machines.must(i, "systemctl", "reboot", "--no-block")
    for i in rebooted:
        machines.until(i, lambda i=i: machines.is_up(i) and machines.init_of(i) != booted[i], "it to boot again")
    job.until(ActiveState="active", SubState="running")
    for i in set(job.all) - set(rebooted):
        assert not {pid for all in pids[i].values() for pid in all} & {
            pid for all in job.pids(i).values() for pid in all}
        assert int(machines.show(UNIT, "NRestarts", host=i)["NRestarts"]) >= 1
    for i in job.all:
        machines.on(i, "systemctl", "stop", UNIT)


def test_a_stranger_that_ends_a_worker_is_told_from_a_stop(service):
    job = service(1, WORKS)
    job.start()
    job.until(ActiveState="active")
    job.machines.must(0, "kill", "-TERM", job.pids()["python3"][0])
    job.machines.until(0, lambda: job.machines.show(UNIT, "Result")["Result"] == "exit-code", "a failure")
    assert "killed by SIGTERM" in job.log()
    assert job.status().startswith("ended with exit code 143: root cause: rank 0 "), job.status()


def test_a_frozen_supervisor_is_ended_by_the_watchdog(service):
    job = service(1, WORKS)
    dropin = job.machines.file(0, f"/etc/systemd/system/{UNIT}.d/watchdog.conf")
    dropin.write_text("[Service]\nWatchdogSec=2\nRestart=no\nTimeoutStopSec=5\nTimeoutAbortSec=5\n")
    job.machines.must(0, "systemctl", "daemon-reload")
    job.start()
    job.until(ActiveState="active")
    pids = [pid for all in job.pids().values() for pid in all]
    job.machines.must(0, "kill", "-STOP", *job.pids()["rank-supervisor"])
    job.until(ActiveState="failed", Result="watchdog")
    assert not [pid for pid in pids if job.machines.file(0, f"/proc/{pid}").exists()]


def test_a_wrong_configuration_fails_at_once_and_is_not_tried_again(service):
    """Its errors are all in the journal by then; the first one once more, by the start itself."""
    job = service(1, WORKS, more="nproc_per_nod = 3\nstdin = nul\n")
    job.machines.on(0, "systemctl", "start", UNIT)
    job.until(ActiveState="failed", Result="exit-code", ExecMainStatus="2", NRestarts="0")
    said = [line for line in job.log().splitlines() if "/etc/launchd/train.conf:" in line]
    assert ["did you mean nproc_per_node?" in line for line in said] == [True, False, True]
    assert 'stdin: "nul" is not one of' in said[1]


def test_a_job_on_the_port_of_another_is_turned_away(service):
    """And the other one waits on for its own nodes, which may not be there yet."""
    job = service(2, WORKS)
    machines = job.machines
    conf = machines.file(1, "/etc/launchd/train.conf")
    machines.file(1, "/etc/launchd/eval.conf").write_text(conf.read_text())
    job.start(0)
    job.until(0, ActiveState="activating")
    machines.on(1, "systemctl", "start", "launchd@eval")
    machines.until_unit("launchd@eval.service", 1, ActiveState="failed", ExecMainStatus="2")
    said = machines.journal(1, "--unit", "launchd@eval")
    assert 'this port belongs to job "train"' in said
    job.start(1)
    job.until(ActiveState="active", SubState="running", NRestarts="0")
    for i in job.all:
        machines.on(i, "systemctl", "stop", UNIT)


def test_a_job_without_a_file_is_a_failure(service):
    machines = service(1, WORKS).machines
    machines.on(0, "systemctl", "start", "launchd@trian")
    machines.until_unit("launchd@trian.service", ActiveState="failed", ExecMainStatus="2", NRestarts="0")
    said = machines.journal(0, "--unit", "launchd@trian")
    assert "/etc/launchd/trian.conf: can't be read: No such file or directory" in said


def test_no_job_has_the_name_launchd(service):
    """The file of that name is every job's."""
    job = service(1, WORKS)
    conf = job.machines.file(0, "/etc/launchd/train.conf")
    conf.rename(conf.with_name("launchd.conf"))
    job.machines.on(0, "systemctl", "start", "launchd@launchd.service")
    job.machines.until_unit("launchd@launchd.service", ActiveState="failed", ExecMainStatus="2", NRestarts="0")
    said = job.machines.journal(0, "--unit", "launchd@launchd.service")
    assert "so no job can have the name launchd" in said


# Its workers join the store when they may.
JOINS = """
import os, time
import torch.distributed as dist
os.read(os.open("%s/join", os.O_RDONLY), 1)
dist.init_process_group("gloo")
time.sleep(1000)
""" % HOME


def test_ready_when_all_have_joined_the_store(service):
    if not has_torch():
        pytest.skip("/usr/bin/python3 has no torch")
    job = service(2, JOINS, more="ready-when = joined")
    join = job.fifo("join")
    job.start()
    for i in job.all:
        job.machines.until(i, lambda i=i: "not all have joined the store" in job.status(i), "the workers")
    job.until(ActiveState="activating")
    join.go(4)
    job.until(ActiveState="active", SubState="running")


def test_a_right_configuration_is_checked_in_silence(service):
    job = service(1, WORKS, more="restart-delay = 5\n")
    job.start()
    job.until(ActiveState="active", SubState="running")
    assert "train.conf: no errors" not in job.log()
    assert job.log().count("restart-delay has no effect") == 1


def test_a_worker_sees_nothing_of_systemds_variables(service):
    job = service(1, f"import os; open('{HOME}/env', 'w').write('\\n'.join(sorted(os.environ)))", nproc=1)
    job.start()
    job.until(ActiveState="inactive", Result="success")
    names = set((job.machines.home / "env").read_text().split("\n"))
    assert "RANK" in names
    assert not names & {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID",
                        "RUNTIME_DIRECTORY", "STATE_DIRECTORY", "LOGS_DIRECTORY"}


# Says who it is; rank 1 fails when it is told to.
SAYS = """
import os, signal
rank = os.environ["RANK"]
print("rank", rank, "speaks", flush=True)
if rank != "1":
    signal.pause()
os.read(os.open("%s/fail", os.O_RDONLY), 1)
raise SystemExit(3)
""" % HOME


def test_the_journal_has_fields_and_explains_the_end(service):
    """journalctl RANK=1, and -x with what the catalogue says."""
    job = service(1, SAYS, more="journal = all\n")
    fail, machines = job.fifo("fail"), job.machines
    machines.must(0, "journalctl", "--update-catalog")
    dropin = machines.file(0, f"/etc/systemd/system/{UNIT}.d/journal.conf")
    dropin.write_text("[Service]\nRestart=no\n")
    machines.must(0, "systemctl", "daemon-reload")
    job.start()

    def said(*matches):
        return machines.journal(0, *matches)

    machines.until(0, lambda: said("JOB=train", "RANK=1", "STREAM=stdout") == "rank 1 speaks\n", "its line")
    machines.must(0, "systemctl", "restart", "systemd-journald")  # in the middle of it
    with machines.start(0, "launchctl", "-j", "train", "logs", "-f", "1") as follower:
        assert follower.stdout.readline() == "rank 1 speaks\n"
        fail.go()
        assert follower.wait() == 0
    job.until(ActiveState="failed", Result="exit-code", ExecMainStatus="3")
    assert said("JOB=train", "RANK=0", "STREAM=stdout") == "rank 0 speaks\n"
    assert "rank 1" in said("JOB=train", "EVENT=verdict_exit")
    explained = machines.journal(0, "--output=short", "--catalog", "JOB=train")
    assert "Subject: Rank 1 has failed" in explained and "journalctl RANK=1 RUN_ID=" in explained


def test_launchctl_asks_and_steers_a_service(service):
    """As root, by its name; its stop is a clean end there, which systemd doesn't answer by a restart."""
    job = service(2, WORKS)
    machines = job.machines
    job.start()
    job.until(ActiveState="active", SubState="running")
    listed = machines.must(1, "launchctl", "list")
    assert "train" in listed and "1 of 2" in listed and "2 of 2" in listed
    status = machines.must(1, "launchctl", "status", "train")
    assert status.startswith("train: working for ") and "node 1 of 2 on n1" in status
    assert [line.split()[0] for line in status.splitlines()[3:]] == ["2", "3"]
    assert "RANK=3\n" in machines.must(1, "launchctl", "env", "3")
    other = machines.on(1, "setpriv", "--reuid=nobody", "--clear-groups", "launchctl", "status", "train")
    assert other.returncode == 3 and "root can ask" in other.stderr
    [supervisor] = job.pids(1)["rank-supervisor"]
    machines.must(1, "kill", "-STOP", supervisor)
    silent = machines.on(1, "launchctl", "stop", "train")
    assert silent.returncode == 1 and f"pid {supervisor}, is stopped by a signal" in silent.stderr
    machines.must(1, "kill", "-CONT", supervisor)
    assert machines.must(1, "launchctl", "status", "train").startswith("train: working for ")
    machines.must(1, "launchctl", "stop", "train")
    job.until(1, ActiveState="inactive", Result="success", NRestarts="0")
    job.until(0, ActiveState="activating")  # it waits for the next start here


def test_logs_are_rotated(service):
    if not shutil.which("logrotate"):
        pytest.skip("logrotate is not installed")
    # a worker that takes its time for a step
    job = service(1, "import time\nwhile True:\n    print('step', flush=True)\n    time.sleep(0.05)",
                  more="log_dir = /var/log/launchd/train\ntee = 3\n")
    machines = job.machines
    job.start()
    job.until(ActiveState="active", SubState="running")
    logs = machines.file(0, "/var/log/launchd/train")

    def files(name):
        return sorted(path for path in logs.glob(f"*/attempt_0/*/{name}") if path.stat().st_size > 0)

    machines.until(0, lambda: len(files("stdout.log")) == 2, "both to write")
    machines.must(0, "cp", "/usr/local/share/doc/launchd/launchd.logrotate", "/etc/logrotate.d/launchd")
    machines.must(0, "logrotate", "--force", "/etc/logrotate.d/launchd")
    machines.until(0, lambda: len(files("stdout.log.1")) == len(files("stdout.log")) == 2, "new files")
    sizes = [path.stat().st_size for path in files("stdout.log.1")]
    machines.until(0, lambda: all(path.stat().st_size > 50 for path in files("stdout.log")), "them to grow")
    assert [path.stat().st_size for path in files("stdout.log.1")] == sizes
    assert job.status().startswith("attempt 0: 2 of 2 workers running")


def test_a_rotation_does_not_wait_for_a_job_that_waits(service):
    """A reload of a unit that is starting is over when it has started, which may take hours."""
    job = service(2, WORKS)
    script = (SOURCE / "systemd/launchd.logrotate").read_text().partition("postrotate")[2].partition("endscript")[0]
    job.start(0)
    job.until(0, ActiveState="activating")
    job.machines.must(0, "timeout", "20", "sh", "-ec", script)
    job.until(0, ActiveState="activating")
    job.machines.on(0, "systemctl", "stop", UNIT)


SOURCE = pathlib.Path(__file__).resolve().parents[2]
README = SOURCE / "README.md"
LAUNCHING = SOURCE / "config/docs/launching.md"


def commands_of(text):
    """What stands in its indented blocks."""
    return textwrap.dedent("\n".join(line for line in text.splitlines() if line.startswith("    ")))


def commands_in(text):
    return [line.partition("  #")[0].strip() for line in commands_of(text).splitlines()]


def section_of(page, title):
    return page.read_text().partition(f"## {title}")[2].partition("\n## ")[0]


def test_what_the_readme_shows(service):
    """Each command of "On a static cluster", and of the guide, as it stands there, on two machines."""
    prepare, ask = section_of(README, "On a static cluster").split("Each node finds itself")
    *look, stop = commands_in(ask)
    logs, restart = commands_in(section_of(LAUNCHING, "A job as a systemd service"))
    assert len(look) == 4
    job = service(2, WORKS)
    machines = job.machines
    for i in job.all:
        shown = commands_of(prepare).replace("n[0-2]", "n[0-1]")
        shown = shown.replace("= gpu", "= 2").replace("/srv/train.py", f"{HOME}/train.py")
        machines.must(i, "sh", "-ec", shown)
    job.until(ActiveState="active", SubState="running")
    for command in look:
        for i in job.all[:1] if "all-nodes" in command else job.all:
            assert machines.must(i, "sh", "-ec", command)
    for i in job.all:
        machines.on(i, "sh", "-ec", logs)  # these workers have written nothing
    before = job.pids(0)
    for i in job.all:
        machines.must(i, "sh", "-ec", restart)
    machines.until(0, lambda: "rank-supervisor" in job.pids(0) and job.pids(0) != before, "another launcher")
    job.until(ActiveState="active", SubState="running")
    for i in job.all:
        machines.must(i, "sh", "-ec", stop)
    job.until(ActiveState="inactive")
