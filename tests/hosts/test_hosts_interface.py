"""Where a launcher and its store can be reached on hosts with two networks."""
import signal
import socket

import pytest
from harness import native, until

STORE, CONTROL = 29500, 29501
SLOW, FAST = 0, 1  # eth0, eth1


@pytest.fixture
def hosts(make_hosts):
    """A name of the first host in the second network as well."""
    hosts = make_hosts(3, networks=2)
    for host in range(3):
        script = f"""set -e
(cat /etc/hosts; echo {hosts.ipv4[FAST][0]} fast0) >/tmp/hosts
mount --bind /tmp/hosts /etc/hosts"""
        result = hosts.run(host, ["sh", "-c", script])
        assert result.returncode == 0, result
    return hosts


def answers(hosts, network, port):
    """Whether somebody listens at the first host's address, as the second one sees it."""
    with hosts.socket(1, socket.AF_INET, socket.SOCK_STREAM) as one:
        one.settimeout(20)
        try:
            one.connect((hosts.ipv4[network][0], port))
        except ConnectionRefusedError:
            return False
        return True


def seen(hosts, port):
    return [network for network in (SLOW, FAST) if answers(hosts, network, port)]


@pytest.mark.parametrize("address", ["10.78.0.1", "fast0"])
@pytest.mark.parametrize("how", ["--interface=eth1", "--local-addr=10.78.0.1"])
def test_static_nodes_listen_on_the_network_that_is_asked_for(hosts, static_job, address, how):
    """Whether the master address is a number or a name."""
    def command(_, node):
        return hosts.launchd("--nnodes=3", f"--node_rank={node}", f"--master_addr={address}",
                             "--store=agent", *([how] if node == 0 else []), *native("actor"))

    job = static_job(hosts, command=command, ACT="obey")
    job.start()
    assert (seen(hosts, CONTROL), seen(hosts, STORE)) == ([FAST], [FAST])
    job.end_well()


def test_an_address_that_is_none_of_this_host(hosts, static_job):
    """As where a router translates addresses: it can't be listened at."""
    def command(_, node):
        return hosts.launchd("--nnodes=3", f"--node_rank={node}", "--master_addr=10.99.0.9",
                             "--interface=eth1", *native("actor"))

    job = static_job(hosts, command=command, late=[1, 2])
    until(lambda: answers(hosts, FAST, CONTROL), "node 0 to listen")
    assert seen(hosts, CONTROL) == [FAST]
    job.signal(0, signal.SIGTERM)
    assert job.wait()[0].rc == 128 + signal.SIGTERM


def test_without_a_word_a_name_is_reached_by_all_networks(hosts, static_job):
    """What it means here need not be what it means to the others."""
    def command(_, node):
        return hosts.launchd("--nnodes=3", f"--node_rank={node}", "--master_addr=fast0",
                             *native("actor"))

    job = static_job(hosts, command=command, ACT="obey")
    job.start()
    assert seen(hosts, CONTROL) == [SLOW, FAST]
    job.end_well()


def test_launchers_that_meet_by_pmix_do(hosts, mpirun_job):
    job = mpirun_job(hosts, "--interface=eth1", f"--control-port={CONTROL}", ACT="obey")
    job.start()
    assert seen(hosts, CONTROL) == [FAST]
    for rank in range(3):
        job.board.order(rank, "exit:0@0")
    assert job.wait()[0].rc == 0
