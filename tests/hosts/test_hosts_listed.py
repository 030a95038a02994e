"""[cluster]: the same file on all hosts, in which each finds itself."""
import pytest
from cluster import HOME
from harness import native, until
from job import verdict


@pytest.fixture
def listed(make_hosts, static_job):
    """listed(hosts, text of [cluster], ...) -> the job of that one file."""

    def start(hosts, text, *options, worker=None, variables=(), **more):
        (hosts.home / "job.ini").write_text(f"[launchd]\njoin-timeout = 60\ncontrol = required\n[cluster]\n{text}\n")
        worker = worker or native("dump")

        def command(_, __):
            return hosts.launchd(f"--config={HOME}/job.ini", *options, *worker)

        return static_job(hosts, command=command, worker=worker, DUMP_DIR=f"{HOME}/out", **dict(variables), **more)

    return start


def ranks_of(hosts):
    """{rank: (node rank, master address)}"""
    return {rank: (int(dump["env"]["GROUP_RANK"]), dump["env"]["MASTER_ADDR"])
            for rank, dump in hosts.place.dumps().items()}


def named(hosts, script):
    """Each host's own /etc/hosts, made of the common one by a script."""
    for host in range(len(hosts.names)):
        result = hosts.run(host, ["sh", "-ec", f"({script}) </etc/hosts >/tmp/hosts; mount --bind /tmp/hosts /etc/hosts"])
        assert result.returncode == 0, result


@pytest.mark.quick
def test_by_names_the_first_is_the_master(make_hosts, listed):
    hosts = make_hosts(3)
    job = listed(hosts, "nodes = n2, n[0-1]")
    assert verdict(job.wait()) == (0, None)
    assert ranks_of(hosts) == {0: (0, "n2"), 1: (1, "n2"), 2: (2, "n2")}
    dumps = hosts.place.dumps()
    assert {rank: dump["env"]["WORLD_SIZE"] for rank, dump in dumps.items()} == {rank: "3" for rank in range(3)}


@pytest.mark.parametrize("ipv6", [False, "only"])
def test_by_addresses(make_hosts, listed, ipv6):
    hosts = make_hosts(3, ipv6=ipv6)
    first = hosts.addresses[1]
    job = listed(hosts, f"nodes = {first}, {hosts.addresses[0]} [{hosts.addresses[2]}]" if ipv6 else
                 f"nodes = {first}, {hosts.addresses[0]} {hosts.addresses[2]}")
    assert verdict(job.wait()) == (0, None)
    assert ranks_of(hosts) == {rank: (rank, first) for rank in range(3)}


def test_by_names_that_only_the_resolver_knows(make_hosts, listed):
    """The hosts call themselves something else, without any domain in common."""
    hosts = make_hosts(3)
    named(hosts, "cat; " + "; ".join(f"echo {address} node-{i}.cluster" for i, address in enumerate(hosts.addresses)))
    job = listed(hosts, "nodes = node-[0-2].cluster")
    assert verdict(job.wait()) == (0, None)
    assert ranks_of(hosts) == {rank: (rank, "node-0.cluster") for rank in range(3)}


def test_slots_of_a_host_file(make_hosts, listed):
    hosts = make_hosts(3)
    (hosts.home / "hosts").write_text("n0 slots=1\nn1 slots=3 # a larger one\nn2 slots=2\n")
    job = listed(hosts, f"hostfile = {HOME}/hosts")
    assert verdict(job.wait()) == (0, None)
    assert {rank: node for rank, (node, _) in ranks_of(hosts).items()} == {0: 0, 1: 1, 2: 1, 3: 1, 4: 2, 5: 2}


def test_a_host_that_is_not_in_it_and_one_that_is_in_it_twice(make_hosts, listed):
    """They are refused at once; the launcher of a host that is in it once goes on waiting."""
    hosts = make_hosts(4)
    job = listed(hosts, f"nodes = n0, n2, {hosts.addresses[2]}", late=[1, 2, 3])
    job.launch(1)
    job.launch(2)
    ends = job.wait(1, 2)
    assert [end.rc for end in ends.values()] == [2, 2], ends
    assert f'{HOME}/job.ini:5: this host is not one of the nodes n0, n2, {hosts.addresses[2]}: its name is "n1"' in \
        ends[1].err and hosts.addresses[1] in ends[1].err
    assert f'{HOME}/job.ini:5: {hosts.addresses[2]} and n2 ({HOME}/job.ini:5) are both this host, "n2"' in ends[2].err
    until(lambda: hosts.supervisors(0), "node 0's supervisor")
    job.idle(0)
    job.signal(0, 15)
    assert job.wait(0)[0].rc == 143


def test_a_resolver_that_hangs(make_hosts, listed):
    """A name server that is there and says nothing: the end is not a mistake's, so that a service tries again."""
    hosts = make_hosts(2)
    dead = hosts.addresses[1]
    job = listed(hosts, "nodes = gpu1.example, gpu2.example", "--join-timeout=3", late=[0, 1])
    for host, script in ((0, f"echo nameserver {dead} >/tmp/resolv; mount --bind /tmp/resolv /etc/resolv.conf"),
                         (1, "iptables -A INPUT -p udp --dport 53 -j DROP")):
        if hosts.run(host, ["sh", "-ec", script]).returncode != 0:
            pytest.skip(f"this can't be done here: {script}")
    job.launch(0)
    end = job.wait(0)[0]
    assert end.rc == 1 and "but not all names could be looked up" in end.err, end


def test_nothing_starts_before_all_nodes_have_joined(make_hosts):
    """... or the time for that is over: no node is to begin alone, only because another boots late."""
    hosts = make_hosts(2)
    (hosts.home / "job.ini").write_text("[cluster]\nnodes = n[0-1]\n")
    result = hosts.run(0, hosts.launchd(f"--config={HOME}/job.ini", "--join-timeout=1", *native("dump")),
                       {"DUMP_DIR": f"{HOME}/out"})
    assert result.returncode == 1 and not hosts.place.dumps(), result
    assert "did not join within 1 s (--join-timeout); joined: n0" in result.stderr, result
