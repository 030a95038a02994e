"""Simulated hosts are what the tests take them for."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import BUILD, until

HERE = Path(__file__).resolve().parent
PORT = 7000
# Answers to each byte on each connection.
ECHO = """import socket, sys, threading
def serve(one):
    while data := one.recv(1):
        one.send(data)
server = socket.create_server((sys.argv[1], 7000), family=socket.AF_INET6 if ":" in sys.argv[1]
                              else socket.AF_INET)
print("there", flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""


@pytest.fixture
def talk(make_hosts):
    """talk(hosts, address) -> a connection from host 0 to a process on host 1"""
    made = []

    def make(hosts, address=None):
        address = address or hosts.addresses[1]
        job = hosts.popen(1, [sys.executable, "-c", ECHO, address])
        assert job.stdout.readline() == "there\n"
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        made.append(hosts.socket(0, family, socket.SOCK_STREAM))
        made[-1].settimeout(30)
        made[-1].connect((address, PORT))
        assert answers(made[-1])
        return made[-1]

    yield make
    for one in made:
        one.close()


def answers(one, limit=30.0):
    """Whether the other end answers; None: there is no other end any more."""
    one.settimeout(limit)
    try:
        one.send(b"x")
        return one.recv(1) == b"x" or None
    except TimeoutError:
        return False


def threads(hosts, host):
    """The states of all threads there."""
    return {stat.read_text().rpartition(")")[2].split()[0] for pid, _ in hosts.processes(host)
            for stat in Path(f"/proc/{pid}/task").glob("*/stat")}


@pytest.mark.parametrize("netem", [False, True])
def test_a_frozen_host_says_nothing_and_goes_on_when_thawed(make_hosts, talk, netem):
    hosts = make_hosts(2, netem=netem)
    one = talk(hosts)
    hosts.freeze(1)
    assert answers(one, 0.3) is False
    hosts.thaw(1)
    one.settimeout(30)
    assert one.recv(1) == b"x"


def test_a_host_is_frozen_without_control_groups_as_well(make_hosts, talk, monkeypatch):
    monkeypatch.setattr("cluster._make_group", lambda: None)
    hosts = make_hosts(2)
    one = talk(hosts)
    hosts.freeze(1)
    # the thread that has the signal stops the others, as soon as it has a core
    until(lambda: threads(hosts, 1) == {"T"}, "all threads to stop")
    assert answers(one, 0.3) is False
    hosts.thaw(1)
    one.settimeout(30)
    assert one.recv(1) == b"x"
    hosts.kill_all(1)
    assert one.recv(1) == b""


@pytest.mark.parametrize("netem", [False, True])
def test_power_off_is_silence_and_kill_all_is_not(make_hosts, talk, netem):
    hosts = make_hosts(2, netem=netem)
    one = talk(hosts)
    hosts.kill_all(1)
    assert one.recv(1) == b""
    one = talk(hosts)
    hosts.power_off(1)
    assert answers(one, 0.5) is False
    assert hosts.processes(1) == []


@pytest.mark.parametrize("netem", [False, True])
def test_a_cut_link_heals(make_hosts, talk, netem):
    hosts = make_hosts(2, netem=netem)
    one = talk(hosts)
    hosts.cut(1)
    assert answers(one, 0.3) is False
    hosts.heal(1)
    one.settimeout(30)
    assert one.recv(1) == b"x"


@pytest.mark.parametrize("netem", [False, True])
@pytest.mark.parametrize("ipv6", [False, True, "only"])
def test_two_networks_and_both_families(make_hosts, talk, netem, ipv6):
    hosts = make_hosts(2, netem=netem, networks=2, ipv6=ipv6)
    wanted = {False: [hosts.ipv4], True: [hosts.ipv4, hosts.ipv6], "only": [hosts.ipv6]}[ipv6]
    for family in wanted:
        for network in family:
            assert answers(talk(hosts, network[1]))
    listed = hosts.run(1, ["ip", "-o", "address"]).stdout
    for family in (hosts.ipv4, hosts.ipv6):
        assert (f" {family[1][1]}/" in listed) == (family in wanted)


def test_hosts_have_clocks_of_their_own_and_one_wall_clock(make_hosts):
    clocks = [1000, 101_000, 0]
    hosts = make_hosts(3, clocks=clocks, variables=[
        {}, {}, {"LD_PRELOAD": BUILD / "tests/hosts/wallshift.so",
                 "LAUNCHD_TEST_WALL_SHIFT": "3600.5"}])
    tell = "import time; print(time.monotonic(), time.time())"
    for host, (clock, shift) in enumerate(zip(clocks, (0, 0, 3600.5))):
        monotonic, wall = map(float, hosts.run(
            host, [sys.executable, "-c", tell]).stdout.split())
        assert abs(monotonic - time.monotonic() - clock) < 5
        assert abs(wall - time.time() - shift) < 5
    assert abs(int(hosts.run(2, ["date", "+%s"]).stdout) - time.time() - 3600.5) < 5


@pytest.mark.skipif(not shutil.which("mpirun"), reason="there is no mpirun")
@pytest.mark.parametrize("count, clocks", [(16, None), (4, [5000, 0, 9000, 300])])
def test_mpirun_finds_all_hosts(make_hosts, count, clocks):
    hosts = make_hosts(count, clocks=clocks)
    result = hosts.run_mpi(["sh", "-c", "echo $(uname -n) $(cut -d. -f1 /proc/uptime)"])
    assert result.returncode == 0, result
    told = dict(line.split() for line in result.stdout.splitlines())
    assert sorted(told) == sorted(hosts.names)
    if clocks:
        base = int(told["n1"])
        assert all(abs(int(told[f"n{i}"]) - base - clock) < 5 for i, clock in enumerate(clocks))


SCRIPT = """import sys
sys.path[:0] = sys.argv[1:3]
from cluster import Cluster
hosts = Cluster(4).__enter__()
for i in range(4):
    hosts.popen(i, ["setsid", "sleep", "600"])
hosts.freeze(2)
print(hosts.init, hosts._group, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_of_a_test_that_is_killed(make_hosts, number):
    make_hosts(1)  # or a skip
    with subprocess.Popen([sys.executable, "-c", SCRIPT, HERE, HERE.parent / "process"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, start_new_session=True) as test:
        init, group = test.stdout.readline().split()
        space = os.readlink(f"/proc/{init}/ns/pid")
        os.killpg(test.pid, number)  # as Ctrl-C and timeout(1) do
        test.wait()
    until(lambda: not Path(f"/proc/{init}").exists(), "process 1 to end")
    until(lambda: not spaces(space), "everything to end")
    if group != "None":
        until(lambda: not Path(group).exists(), lambda: f"to go: {members(Path(group))}")


def members(group):
    """The control groups from one on, and who is in them."""
    return {str(entry): (entry / "cgroup.procs").read_text().split()
            for entry in [group, *filter(Path.is_dir, group.rglob("*"))]}


def spaces(wanted):
    """Processes in a PID namespace."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "ns/pid") == wanted:
                found.append(entry.name)
        except OSError:
            continue
    return found
