"""Addresses that lead nowhere, names whose meaning changes, and a resolver that hangs."""
import time

import pytest
from harness import until
from job import closed_after
from test_hosts_names import PORT, Named


@pytest.fixture
def named():
    yield from closed_after(Named)


SILENT = [f"10.77.0.{100 + i}" for i in range(6)]  # a network's addresses from which nothing comes


def own_hosts_file(hosts, host):
    """/etc/hosts of this host alone, which means(...) writes. What is sent to SILENT is lost, and
    nobody says so."""
    script = "set -e; cat /etc/hosts >/tmp/hosts; mount --bind /tmp/hosts /etc/hosts\n" + "\n".join(
        f"ip neigh add {address} lladdr 02:00:00:00:00:{i:02x} dev eth0"
        for i, address in enumerate(SILENT))
    assert hosts.run(host, ["sh", "-c", script]).returncode == 0


def means(hosts, host, name, addresses):
    lines = "\n".join(f"{address} {name}" for address in addresses)
    script = f"grep -v ' {name}$' /etc/hosts >/tmp/new; echo '{lines}' >>/tmp/new; cat /tmp/new >/etc/hosts"
    assert hosts.run(host, ["sh", "-c", script]).returncode == 0


def dials(hosts, host):
    until(lambda: hosts.counted(host, "Tcp", "ActiveOpens"), f"n{host} to dial")


@pytest.mark.parametrize("count", [1, 6])
def test_addresses_that_lead_nowhere_take_no_longer_than_the_join_timeout(make_hosts, named, count):
    """A connection would be tried for 10 s, at each of them."""
    hosts = make_hosts(2)
    own_hosts_file(hosts, 1)
    means(hosts, 1, "hub", SILENT[:count])
    job = named(hosts, hosts.names)
    began = time.monotonic()
    job.launch(1, "--node_rank=1", "--master_addr=hub", "--control=required", "--join-timeout=5")
    [end] = job.end()
    assert end.rc == 1 and "was not reached within 5 s (--join-timeout): 10.77.0.10" in end.err, end
    assert time.monotonic() - began < 5 + 10 * (count - 1) / 2 + 4


def test_one_of_six_addresses_is_enough(make_hosts, named):
    """None of the five before it answers within the time that is there."""
    last = "10.77.0.200"  # the one that getaddrinfo() puts last, as it has least in common with n1's
    hosts = make_hosts(2)
    own_hosts_file(hosts, 1)
    means(hosts, 1, "hub", [*SILENT[:5], last])
    assert hosts.run(0, ["ip", "address", "add", f"{last}/24", "dev", "eth0"]).returncode == 0
    job = named(hosts, hosts.names)
    for host, addr in ((0, last), (1, "hub")):
        job.launch(host, f"--node_rank={host}", f"--master_addr={addr}", "--control=required",
                   "--join-timeout=20")
    assert job.attempt()[0] == {"n0": 0, "n1": 1}
    job.proceed()
    assert [end.rc for end in job.end()] == [0, 0]


@pytest.mark.quick
@pytest.mark.parametrize("how", ["master_addr", "c10d"])
def test_a_record_that_is_corrected_is_seen(make_hosts, named, how):
    """All know a wrong address at first. With c10d it may be the node itself that was meant."""
    hosts = make_hosts(2)
    job = named(hosts, hosts.names)
    for host in range(2):
        own_hosts_file(hosts, host)
        means(hosts, host, "hub", SILENT[:1])
        job.launch(host, "--control=required", "--join-timeout=40", *(
            [f"--node_rank={host}", "--master_addr=hub"] if how == "master_addr" else
            ["--rdzv-backend=c10d", f"--rdzv-endpoint=hub:{PORT}"]))
    for host in range(2):
        dials(hosts, host)
    for host in range(2):
        means(hosts, host, "hub", [hosts.addresses[0]])
    assert job.attempt()[0] == {"n0": 0, "n1": 1}
    job.proceed()
    assert [end.rc for end in job.end()] == [0, 0]


@pytest.mark.parametrize("told", [False, True])
def test_who_becomes_the_hub_late_listens_where_it_was_told(make_hosts, named, told):
    """The name is that of another node at first."""
    hosts = make_hosts(2, networks=2)
    own_hosts_file(hosts, 0)
    means(hosts, 0, "hub", SILENT[:1])
    job = named(hosts, hosts.names)
    where = ["--interface=eth0"] if told else []
    job.launch(0, "--control=required", "--join-timeout=40", "--rdzv-backend=c10d",
               f"--rdzv-endpoint=hub:{PORT}", *where)
    dials(hosts, 0)
    means(hosts, 0, "hub", [hosts.addresses[0]])
    until(lambda: listens(hosts, 0, PORT), "node 0 to listen")
    assert listens(hosts, 0, PORT) == ({hosts.addresses[0]} if told else {"*"})
    own_hosts_file(hosts, 1)
    means(hosts, 1, "hub", [hosts.addresses[0]])
    job.launch(1, "--control=required", "--join-timeout=40", "--rdzv-backend=c10d",
               f"--rdzv-endpoint=hub:{PORT}")
    assert job.attempt()[0] == {"n0": 0, "n1": 1}
    job.proceed()
    assert [end.rc for end in job.end()] == [0, 0]


def listens(hosts, host, port):
    """Addresses at which somebody listens there."""
    lines = hosts.run(host, ["ss", "-Hltn", f"sport = {port}"]).stdout.splitlines()
    return {line.split()[3].rpartition(":")[0] for line in lines}


@pytest.mark.parametrize("known", [False, True])
def test_a_resolver_that_hangs_holds_nobody_up(make_hosts, named, known):
    """It is asked for half a minute: at first, or once an address is known and is dialled."""
    hosts = make_hosts(2)
    own_hosts_file(hosts, 1)
    (hosts.home / "resolv.conf").write_text(f"nameserver {SILENT[5]}\noptions timeout:30 attempts:1\n")
    assert hosts.run(1, ["mount", "--bind", "/run/home/resolv.conf", "/etc/resolv.conf"]).returncode == 0
    if known:
        means(hosts, 1, "hub", SILENT[:1])
    job = named(hosts, hosts.names)
    began = time.monotonic()
    job.launch(1, "--node_rank=1", "--master_addr=hub", "--control=required", "--join-timeout=5")
    if known:
        dials(hosts, 1)
        means(hosts, 1, "hub", [])
    [end] = job.end()
    assert end.rc == 1 and "within 5 s (--join-timeout)" in end.err, end
    assert time.monotonic() - began < 25
