"""Simulated machines are what the tests take them for."""
import subprocess

import pytest

GREETING = """import socket
server = socket.create_server(("n1", 7000))
print("there", flush=True)
server.accept()[0].sendall(b"good day")
"""
GUEST = "import socket; print(socket.create_connection(('n1', 7000)).recv(99).decode())"
CGROUP2 = "0::/system.slice/"


@pytest.mark.quick
def test_two_machines_boot_meet_and_one_of_them_again(make_machines):
    machines = make_machines(2, whole=True)
    assert [machines.must(i, "hostname").strip() for i in (0, 1)] == ["n0", "n1"]
    assert [machines.state(i) for i in (0, 1)] == ["running", "running"]

    with machines.start(1, "python3", "-c", GREETING) as host:
        assert host.stdout.readline() == "there\n"
        assert machines.must(0, "python3", "-c", GUEST) == "good day\n"
        assert host.wait() == 0

    own = machines.must(0, "systemd-run", "--quiet", "--wait", "--pipe", "cat", "/proc/self/cgroup")
    assert [line for line in own.splitlines() if line.startswith(CGROUP2)], own

    machines.file(1, "/etc/kept").write_text("kept")
    machines.reboot(1)
    assert machines.wait_booted(1) == "running"
    assert machines.file(1, "/etc/kept").read_text() == "kept"
    assert machines.state(0) == "running"


def test_nothing_is_left_of_a_machine(make_machines):
    machines = make_machines(1)
    top = machines._group
    assert not top or "n0" in [path.name for path in top.iterdir()]
    pids = [str(pid) for pid, _ in machines.processes()] + [str(machines.init_of(0))]
    machines.close()
    assert not top or not top.exists()
    left = subprocess.run(["ps", "-o", "pid=", "-p", ",".join(pids)], capture_output=True, text=True,
                          check=False)
    assert left.stdout == ""
