"""Hosts and their names: c10d without node ranks, and what a name means on the host that has it."""
import os

import pytest
from harness import until
from job import Launcher, closed_after

PORT = 29400
# Tells its name and place; rank 0 of the first attempt fails when told to.
TELLS = """echo "$RANK $$ $(uname -n):$GROUP_RANK:$TORCHELASTIC_RESTART_COUNT:$MASTER_ADDR" >"$TELL"
read -r word <"$GO"
[ "$RANK-$TORCHELASTIC_RESTART_COUNT" != "$BAD-0" ]
"""


class Named:
    """Launchers on hosts of these names, each with one worker that tells what it finds."""

    def __init__(self, hosts, names, nodes=None):
        self.hosts, self.names = hosts, names
        self.nodes = nodes or len(names)
        self.launchers = {}
        self.told, self.tell = hosts.fifo("tell")
        self.go, self.wait = hosts.fifo("go")
        for host, name in enumerate(names):
            assert hosts.run(host, ["hostname", name]).returncode == 0

    def launch(self, host, *options, bad=""):
        """bad: the rank that fails in the first attempt."""
        argv = self.hosts.launchd(f"--nnodes={self.nodes}", *options, "--no_python", "--use_env",
                                  "sh", "-c", TELLS)
        env = {**self.hosts.sanitizers(), "TELL": self.tell, "GO": self.wait, "BAD": bad,
               "OMP_NUM_THREADS": "1"}
        self.launchers[host] = Launcher(self.hosts, host, argv, env)

    def attempt(self):
        """({name: node rank}, the attempts' numbers, the addresses) that all workers tell."""
        words = [self.told.line()[2].split(":", 3) for _ in range(self.nodes)]
        ranks = {name: int(rank) for name, rank, _, _ in words}
        assert len(ranks) == self.nodes, words
        return ranks, {int(count) for _, _, count, _ in words}, {addr for *_, addr in words}

    def proceed(self):
        os.write(self.go.fd, b"\n" * self.nodes)

    def connected(self, host, port):
        """How many nodes have a connection to this one."""
        table = self.hosts.run(host, ["cat", "/proc/net/tcp", "/proc/net/tcp6"]).stdout
        rows = [row.split() for row in table.splitlines()]
        return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)

    def end(self):
        for launcher in self.launchers.values():
            launcher.process.wait(60)
        return [launcher.end() for _, launcher in sorted(self.launchers.items())]

    def close(self):
        for launcher in self.launchers.values():
            if launcher.process.poll() is None:
                self.hosts.kill_all()
        for launcher in self.launchers.values():
            launcher.process.wait(60)
            launcher.close()


@pytest.fixture
def named():
    yield from closed_after(Named)


@pytest.mark.parametrize("first", [True, False], ids=["the owner first", "the owner last"])
def test_c10d_ranks_by_the_owner_and_the_natural_order_of_names(make_hosts, named, first):
    """The endpoint is the last name's in any order, and the nodes come in none: each has connected,
    where it can, before the next one starts. A restart changes nothing."""
    hosts = make_hosts(5)
    job = named(hosts, ["gpu9", "gpu10", "zebra", "gpu-1", "gpu2"])
    endpoint = f"--rdzv-endpoint={hosts.addresses[2]}:{PORT}"
    others = [1, 4, 0, 3]
    for host in [2, *others] if first else [*others, 2]:
        job.launch(host, "--rdzv-backend=c10d", endpoint, "--max-restarts=1", bad="3")
        if first and host != 2 and host != others[-1]:
            until(lambda: job.connected(2, PORT) == len(job.launchers) - 1, "its connection")
    expected = {"zebra": 0, "gpu-1": 1, "gpu2": 2, "gpu9": 3, "gpu10": 4}
    for attempt in range(2):
        assert job.attempt()[:2] == (expected, {attempt})
        job.proceed()
    assert [end.rc for end in job.end()] == [0] * 5


def loopback_by_name(hosts, host):
    """As Debian's installer writes it: a host's own name is none of the addresses that others
    reach."""
    script = """set -e
sed "s/^[^ ]* $(uname -n)$/127.0.1.1 $(uname -n)/" /etc/hosts >/tmp/hosts
mount --bind /tmp/hosts /etc/hosts
getent hosts "$(uname -n)"
"""
    result = hosts.run(host, ["sh", "-c", script])
    assert result.stdout.split()[:1] == ["127.0.1.1"], result


@pytest.mark.parametrize("store", ["rank0", "agent"])
@pytest.mark.parametrize("how", ["master_addr", "c10d"])
def test_a_name_that_is_127_0_1_1_on_its_own_host(make_hosts, named, how, store):
    """All meet there, and the others' workers are not sent to themselves: they get the name, which each
    host takes for what it means there, and a store of ours listens at both."""
    hosts = make_hosts(3)
    for host in range(3):
        loopback_by_name(hosts, host)
    job = named(hosts, hosts.names)
    for host, rank in ((0, 1), (1, 0), (2, 2)):
        job.launch(host, f"--store={store}", "--control=required", "--join-timeout=30", *(
            [f"--node_rank={rank}", "--master_addr=n1"] if how == "master_addr" else
            ["--rdzv-backend=c10d", f"--rdzv-endpoint=n1:{PORT}"]))
    ranks, _, addresses = job.attempt()
    assert ranks == {"n1": 0, "n0": 1, "n2": 2}
    assert addresses == {"n1"}
    job.proceed()
    assert [end.rc for end in job.end()] == [0] * 3


def test_a_host_without_127_0_0_1(make_hosts):
    hosts = make_hosts(1)
    tells = hosts.launchd("--no_python", "--use_env", "sh", "-c", 'echo "$MASTER_ADDR"')

    def run(*command):
        return hosts.run(0, command, env=hosts.sanitizers())

    assert run("ip", "addr", "del", "127.0.0.1/8", "dev", "lo").returncode == 0
    result = run(*tells)
    assert (result.returncode, result.stdout) == (0, "::1\n"), result
    result = run(*tells[:1], "--master_addr=127.0.0.1", *tells[1:])
    assert result.returncode == 2, result
    assert "the master address, 127.0.0.1 (--master_addr), is no address of this host: ::1 is" in result.stderr
    assert run("ip", "link", "set", "lo", "down").returncode == 0
    result = run(*tells)
    assert (result.returncode, result.stdout) == (0, "127.0.0.1\n"), result
    assert "this host has no loopback address (ip link set lo up)" in result.stderr
