"""launchd in a service with Delegate=yes of a real systemd: its cgroups, and that nothing is left."""
import pytest
from waiting import read_if_there

UNIT = "job.service"
TOP = f"/sys/fs/cgroup/system.slice/{UNIT}"
# A worker, what it left behind, and what left its session.
WORKER = "setsid sleep 1000 & sleep 1000 & exec sleep 1000"


# What launchd does with what is delegated to it: a cgroup, and a child that is born in it.
TRIAL = """import ctypes, os, struct, sys
below = "/sys/fs/cgroup" + open("/proc/self/cgroup").read().partition("0::")[2].split("\\n")[0] + "/trial"
os.mkdir(below)
if not os.path.exists(below + "/cgroup.kill"):
    sys.exit("no cgroup.kill")
CLONE3, CLONE_INTO_CGROUP, SIGCHLD = 435, 0x200000000, 17
args = ctypes.create_string_buffer(struct.pack(
    "=11Q", CLONE_INTO_CGROUP, 0, 0, 0, SIGCHLD, 0, 0, 0, 0, 0, os.open(below, os.O_RDONLY)), 88)
libc = ctypes.CDLL(None, use_errno=True)
child = libc.syscall(CLONE3, args, 88)
if child == 0:
    os._exit("/trial\\n" not in open("/proc/self/cgroup").read())
if child < 0:
    sys.exit("clone3, CLONE_INTO_CGROUP: " + os.strerror(ctypes.get_errno()))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture
def machine(make_machines):
    machine = make_machines(1)
    trial = machine.on(0, "systemd-run", "--quiet", "--wait", "--pipe", "-p", "Delegate=yes", "python3", "-c", TRIAL)
    if trial.returncode:
        pytest.skip(f"no cgroup is delegated to a service here: {trial.stderr.strip()}")
    return machine


def start(machine, *options):
    machine.must(0, "systemd-run", f"--unit={UNIT}", "-p", "Delegate=yes", "-p", "KillMode=mixed",
                 "launchd", "--nproc_per_node=2", "--no_python", "--use_env", *options,
                 "/bin/sh", "-c", WORKER)
    machine.until(0, lambda: sorted(len(pids) for path, pids in cgroups(machine).items()
                                    if "/rank-" in path) == [3, 3], "all workers to run")


def cgroups(machine):
    """The pids in each cgroup of the service that has any; {}: it has none."""
    said = machine.on(0, "sh", "-c", f"cd {TOP} && grep -r . --include=cgroup.procs .").stdout
    found = {}
    for line in said.splitlines():
        path, _, pid = line.partition("/cgroup.procs:")
        found.setdefault(path, []).append(pid)
    return found


def pid_of(machine, name):
    found = [pid for path, pids in cgroups(machine).items() for pid in pids if
             read_if_there(machine.file(0, f"/proc/{pid}/comm")).strip() == name]
    assert len(found) == 1, found
    return found[0]


def test_each_worker_has_a_cgroup_and_each_attempt_another(machine):
    start(machine, "--on-signal=USR2=restart")
    before = cgroups(machine)
    [top] = {path.split("/")[1] for path in before if path.count("/") > 1}
    # the guard has one of its own where the kernel's controllers are in version 2
    assert set(before) - {f"./{top}-guard", "."} == {
        f"./{top}/{name}" for name in ("supervisor", "attempt-0/rank-0", "attempt-0/rank-1")}
    assert len({f"./{top}-guard", "."} & set(before)) == 1
    machine.must(0, "systemctl", "kill", "--kill-whom=main", "--signal=USR2", UNIT)
    machine.until(0, lambda: {f"./{top}/attempt-1/rank-0", f"./{top}/attempt-1/rank-1"} <=
                  set(cgroups(machine)), "the next attempt")
    assert not [path for path in cgroups(machine) if "attempt-0" in path]
    machine.on(0, "systemctl", "stop", UNIT)
    assert cgroups(machine) == {}


@pytest.mark.parametrize("victim", ["launchd", "rank-supervisor"])
def test_nothing_is_left_of_a_service_when_one_of_the_two_is_killed(machine, victim):
    start(machine)
    machine.must(0, "kill", "-KILL", pid_of(machine, victim))
    machine.until_unit(UNIT, ActiveState="failed")
    assert cgroups(machine) == {}
    assert machine.on(0, "pgrep", "sleep").stdout == ""
