"""The launchers of a job meet by PMIx, with no address given: real mpirun over several hosts."""
import importlib.util
import re

import pytest
from cluster import HOME
from harness import TESTS, native

TRAIN = [TESTS.parent / "examples" / "train_ddp.py", "--steps", "20", "--every", "10"]
no_torch = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no torch here")
WARNED = "this one won't be told"  # where a node starts its workers without the others


def dumps_of(hosts, *options, **how):
    """What the workers of a job find, by rank; the job ends well."""
    result = hosts.run_mpi(hosts.launchd("--nproc_per_node", "2", *options, *native("dump")), **how)
    assert result.returncode == 0, result
    return hosts.place.dumps(), result


def masters(dumps):
    """The addresses and ports that the workers were given."""
    return {(d["env"]["MASTER_ADDR"], d["env"]["MASTER_PORT"]) for d in dumps.values()}


def the_master(dumps):
    [(address, port)] = masters(dumps)
    return address, int(port)


def link(hosts, nodes, interface, network, first=1):
    """A second network that these hosts share; their addresses in it."""
    switch = f"sw{interface}"
    addresses = []
    script = """set -e
nsenter --target 1 --net -- sh -c 'ip link add $0 type bridge 2>/dev/null && ip link set $0 up' \
    "$1" || true
ip link add "$2" type veth peer name "$3" netns 1
ip address add "$4" dev "$2" nodad
ip link set "$2" up
nsenter --target 1 --net -- ip link set "$3" master "$1" up
"""
    for i, node in enumerate(nodes):
        address = network.format(first + i)
        addresses.append(address.partition("/")[0])
        result = hosts.run(node, ["sh", "-c", script, "sh", switch, interface,
                                  f"{interface}{node}", address])
        assert result.returncode == 0, result
    return addresses


def on_all(hosts, script):
    for node in range(len(hosts.names)):
        result = hosts.run(node, ["sh", "-c", script, "sh", str(node)])
        assert result.returncode == 0, result


@pytest.mark.quick
@pytest.mark.parametrize("count", [4, 16])
def test_nothing_has_to_be_said(make_hosts, count):
    hosts = make_hosts(count)
    dumps, result = dumps_of(hosts)
    assert sorted(dumps) == list(range(2 * count))
    address, port = the_master(dumps)
    assert address == hosts.addresses[0]
    assert 1024 < port < 65536
    for rank, dump in dumps.items():
        expected = {"RANK": rank, "LOCAL_RANK": rank % 2, "WORLD_SIZE": 2 * count,
                    "NODE_RANK": rank // 2, "TORCHELASTIC_RESTART_COUNT": 0}
        assert {name: dump["env"].get(name) for name in expected} == \
            {name: str(value) for name, value in expected.items()}
    assert "warning" not in result.stderr, result.stderr


@no_torch
@pytest.mark.parametrize("options", [(), ("--max-restarts=1",)], ids=["rank 0's store", "ours"])
def test_ddp_needs_no_address(make_hosts, options):
    hosts = make_hosts(2)
    result = hosts.run_mpi(
        hosts.launchd("--nproc_per_node", "2", "--use_env", *options, *TRAIN))
    assert result.returncode == 0, result
    ports = {re.search(rf"^rank {rank} of 4: local rank {rank % 2}, node rank {rank // 2}, "
                       rf"host n{rank // 2}, pid \d+, master {hosts.addresses[0]}:(\d+)$",
                       result.stdout, re.M).group(1) for rank in range(4)}
    assert len(ports) == 1
    losses = [float(x) for x in re.findall(r"^step +\d+  loss (\S+)$", result.stdout, re.M)]
    assert len(losses) == 3 and losses[2] < losses[0]


def test_unequal_numbers_of_workers(hosts):
    """Each node says how many it has; ranks follow from that."""
    result = hosts.run_mpi([
        "sh", "-c", 'exec "$0" --nproc_per_node $((PMIX_RANK + 1)) "$@"', *hosts.launchd(),
        *native("dump")])
    assert result.returncode == 0, result
    dumps = hosts.place.dumps()
    assert {rank: (dump["env"]["NODE_RANK"], dump["env"]["LOCAL_RANK"], dump["env"]["WORLD_SIZE"],
                   dump["env"]["LOCAL_WORLD_SIZE"]) for rank, dump in dumps.items()} == {
        rank: (str(node), str(local), "10", str(node + 1)) for rank, (node, local) in enumerate(
            (node, local) for node in range(4) for local in range(node + 1))}
    assert len(masters(dumps)) == 1


@pytest.mark.parametrize("own", [None, "10.77.0.1"])
def test_azures_address_stays_the_workers(hosts, own):
    """AZ_BATCH_MASTER_NODE is what worker 0 listens at; the launchers meet by PMIx, so nothing need
    listen there, nor at the port above."""
    dumps, result = dumps_of(hosts, export={"AZ_BATCH_MASTER_NODE": f"{own or '10.99.9.9'}:6000"})
    assert sorted(dumps) == list(range(8))
    assert masters(dumps) == {(own or "10.99.9.9", "6105")}
    assert "warning" not in result.stderr


def join_first(hosts, nodes):
    """These share a second network, and node 0's first interface is the one in it."""
    script = """set -e
nsenter --target 1 --net -- sh -c 'ip link add second type bridge && ip link set second up &&
    ip link set n0.0 master second'
ip address flush dev eth0
ip address add 10.88.0.1/24 dev eth0
ip link add first type veth peer name n0first netns 1
ip address add 10.77.0.1/24 dev first
ip link set first up
nsenter --target 1 --net -- ip link set n0first master switch0 up
"""
    result = hosts.run(0, ["sh", "-c", script])
    assert result.returncode == 0, result
    for node in nodes:
        script = f"""set -e
ip link add second type veth peer name s{node} netns 1
ip address add 10.88.0.{node + 1}/24 dev second
ip link set second up
nsenter --target 1 --net -- ip link set s{node} master second up
"""
        result = hosts.run(node, ["sh", "-c", script])
        assert result.returncode == 0, result


@pytest.mark.parametrize("sharing", [[1], [1, 2]], ids=["one other", "most others"])
def test_a_second_network_of_some_hosts(hosts, sharing):
    """... which comes first on node 0: workers get the address that all reach."""
    join_first(hosts, sharing)
    dumps, _ = dumps_of(hosts)
    assert the_master(dumps)[0] == hosts.addresses[0]


def test_bridges_of_containers(hosts):
    """docker0 has the same address on all hosts: who dials it reaches himself."""
    on_all(hosts, "ip link add docker0 type bridge && ip address add 172.17.0.1/16 dev docker0 && "
           "ip link set docker0 up")
    dumps, _ = dumps_of(hosts)
    assert the_master(dumps)[0] == hosts.addresses[0]


def test_bridges_that_do_not_look_like_any(hosts):
    """The same address on all hosts, on an interface with a name like any other: whoever dials it
    finds no launcher, and goes on."""
    on_all(hosts, "ip link add aaa0 type bridge && ip address add 172.17.0.1/16 dev aaa0 && "
           "ip link set aaa0 up")
    dumps, _ = dumps_of(hosts)
    assert the_master(dumps)[0] == hosts.addresses[0]


@pytest.mark.parametrize("how", ["--interface=fast0", "--local-addr=10.88.0.1"])
def test_the_user_names_the_network(hosts, how):
    """--local-addr is a node's own, so it can't be the same on all."""
    addresses = link(hosts, range(4), "fast0", "10.88.0.{}/24")
    options = how if how.startswith("--interface") else "--local-addr=10.88.0.$((PMIX_RANK + 1))"
    result = hosts.run_mpi(["sh", "-c", f'exec "$0" {options} "$@"', *hosts.launchd(),
                            "--nproc_per_node", "2", *native("dump")])
    assert result.returncode == 0, result
    assert the_master(hosts.place.dumps())[0] == addresses[0]


def test_the_user_names_a_network_without_ipv4(hosts):
    addresses = link(hosts, range(4), "six0", "fd00:88::{}/64")
    dumps, _ = dumps_of(hosts, "--interface=six0")
    assert the_master(dumps)[0] == addresses[0]


@no_torch
def test_ddp_over_ipv6(make_hosts):
    """... with what mpirun itself does not need taken away: workers have no other address."""
    hosts = make_hosts(2)
    addresses = link(hosts, range(2), "six0", "fd00:88::{}/64")
    result = hosts.run_mpi(
        hosts.launchd("--nproc_per_node", "1", "--use_env", "--interface=six0", *TRAIN),
        export={"GLOO_SOCKET_IFNAME": "six0"})
    assert result.returncode == 0, result
    assert f"master {addresses[0]}:" in result.stdout


def test_static_nodes_without_ipv4(make_hosts):
    hosts = make_hosts(3)
    addresses = link(hosts, range(3), "six0", "fd00:88::{}/64")
    on_all(hosts, "ip link del eth0")
    jobs = [hosts.static(node, "--nnodes=3", f"--node_rank={node}", "--master_port=29511",
                         f"--master_addr={addresses[0]}", *native("dump")) for node in range(3)]
    results = [hosts.finish(job) for job in jobs]
    assert [r.returncode for r in results] == [0, 0, 0], results
    assert masters(hosts.place.dumps()) == {(addresses[0], "29511")}
    assert not [r for r in results if "warning" in r.stderr], results


# --- what is missing ---

def fake_library(hosts):
    (hosts.home / "fake").mkdir()
    (hosts.home / "fake/libpmix.so.2").write_text("no")
    return ("env", f"LD_LIBRARY_PATH={HOME}/fake")


def test_no_pmix_and_no_address(hosts):
    """One sentence that says what to do, and no worker."""
    result = hosts.run_mpi([*fake_library(hosts), *hosts.launchd(*native("dump"))])
    assert result.returncode != 0
    assert re.search(r"launchd: error: the launchers of this job can't meet by PMIx: libpmix: "
                     r".*Debian's package is libpmix2; .*give --master_addr to all nodes", result.stderr), \
        result
    assert not hosts.place.dumps()


@pytest.mark.parametrize("export", [{"MASTER_ADDR": "10.77.0.1"},
                                    {"AZ_BATCH_MASTER_NODE": "10.77.0.1:6000"}], ids=str)
def test_no_pmix_but_an_address(hosts, export):
    """They meet there, and stop together."""
    result = hosts.run_mpi(
        [*fake_library(hosts), *hosts.launchd("--nproc_per_node=2", *native("dump"))],
        export={**export, "EXIT_5": "7"})
    assert result.returncode == 7, result
    assert "root cause: rank 5" in result.stderr
    assert WARNED not in result.stderr


def absent(rank, launchd):
    """One node never starts its launcher."""
    return ["sh", "-c", f'[ "$PMIX_RANK" != {rank} ] || exec sleep 6; exec "$@"', "sh", *launchd]


@pytest.mark.parametrize("rank", [0, 2])
def test_one_node_never_starts_launchd(hosts, rank):
    result = hosts.run_mpi(absent(rank, hosts.launchd("--join-timeout=2", *native("dump"))))
    assert result.returncode != 0, result
    assert re.search(r"launchd: error: not all launchers of this job reached PMIx_Fence within 2 s"
                     r": give --master_addr to all nodes", result.stderr), result
    assert not hosts.place.dumps()


def test_one_node_never_starts_launchd_but_there_is_an_address(hosts):
    """Workers start as the originals' would."""
    result = hosts.run_mpi(absent(2, hosts.launchd("--control=auto", "--join-timeout=2", *native("dump"))),
                           export={"MASTER_ADDR": hosts.addresses[0]})
    assert result.returncode == 0, result
    assert sorted(hosts.place.dumps()) == [0, 1, 3]
    assert result.stderr.count(WARNED) == 2, result.stderr
    assert result.stderr.count("; the job starts anyway, but won't notice if") == 1


def test_control_required(hosts):
    result = hosts.run_mpi(absent(2, hosts.launchd("--join-timeout=2", "--control=required",
                                                   *native("dump"))),
                           export={"MASTER_ADDR": hosts.addresses[0]})
    assert result.returncode != 0, result
    assert "reached PMIx_Fence within 2 s (--control required)" in result.stderr, result
    assert not hosts.place.dumps()


def test_one_node_meets_by_pmix_but_never_connects(make_hosts):
    """Node 0 waits for it from then on, as long as it is told to; that node itself would wait longer."""
    hosts = make_hosts(3, networks=2)
    nowhere = hosts.run(2, ["ip", "route", "add", "blackhole", f"{hosts.ipv4[1][0]}/32"])
    assert nowhere.returncode == 0, nowhere
    launchd = hosts.launchd("--control=required", "--interface=eth1", "--node-timeout=4")
    script = '[ "$PMIX_RANK" = 2 ] && limit=60 || limit=3; ' \
        'exec "$0" --join-timeout=$limit "$@"'
    result = hosts.run_mpi(["sh", "-c", script, *launchd, *native("dump")])
    assert result.returncode == 1, result
    text = "node 2 did not join within 3 s (--join-timeout); joined: n0, n1"
    assert text in result.stderr and "was not reached within" not in result.stderr, result
    assert not hosts.place.dumps()


def test_control_off(hosts):
    """As without launchd: each node for itself, and no address by itself."""
    result = hosts.run_mpi(hosts.launchd("--control=off", *native("dump")))
    assert result.returncode == 2, result
    assert re.search(r"launchd: error: .*4 nodes.*--master_addr.*MASTER_ADDR", result.stderr)
    assert not hosts.place.dumps()


# --- what gets to workers ---

@pytest.mark.parametrize("options", [(), ("--max-restarts=1",)], ids=["rank 0's store", "ours"])
def test_workers_inherit_nothing_of_the_meeting(hosts, options):
    """No connection, no key, no store."""
    dumps, _ = dumps_of(hosts, *options)
    assert len(dumps) == 8
    for dump in dumps.values():
        assert dump["fds"].keys() == {"0", "1", "2"}
        assert not [name for name in dump["env"] if name.startswith(("PMIX_", "LAUNCHD_KEY"))]


def test_workers_of_a_second_attempt_inherit_nothing(hosts):
    """All are there before one fails, so that all write what they find."""
    told, tell = hosts.fifo("tell")
    go, wait = hosts.fifo("go")
    job = hosts.mpirun(
        hosts.launchd("--nproc_per_node", "2", "--max-restarts=1", *native("dump")),
        export={"EXIT_1": "1", "TELL": tell, "GO": wait})
    told.expect("ready", 8)
    go.go()  # one of rank 1 or of others, which end with 0
    go.go(7)
    told.expect("ready", 8)
    dumps = hosts.place.dumps()
    go.go(8)
    assert hosts.finish(job).returncode == 1
    assert {dump["env"]["TORCHELASTIC_RESTART_COUNT"] for dump in dumps.values()} == {"1"}
    assert {tuple(sorted(dump["fds"])) for dump in dumps.values()} == {("0", "1", "2")}


# --- --local-addr is this node's own ---

@pytest.mark.parametrize("given, says", [
    ("foo.invalid", r"the name \"foo\.invalid\" can't be resolved \(.+\); this node's addresses are: "),
    ("10.99.9.9", r"\"10\.99\.9\.9\" is not an address of this node; it has: "),
    ("n0", r"\"n0\" \(10\.77\.0\.1\) is not an address of this node; it has: "),
])
@pytest.mark.parametrize("setting", ["--local-addr", "PET_LOCAL_ADDR"])
def test_not_this_nodes_address(make_hosts, given, says, setting):
    hosts = make_hosts(2)
    before = ["--local-addr", given] if setting.startswith("--") else []
    argv = hosts.launchd(*before, "--nnodes=2", "--node_rank=1", "--master_addr=10.77.0.1",
                         *native("dump"))
    env = {} if before else {setting: given}
    result = hosts.run(1, argv, env)
    assert result.returncode == 2, result
    assert re.fullmatch(rf"launchd: error: {setting}: {says}eth0 \(10\.77\.0\.2\)\n",
                        result.stderr), result
    assert not hosts.place.dumps()


@pytest.mark.parametrize("given", ["foo.invalid", "10.99.9.9"])
def test_not_this_nodes_address_by_pmix(make_hosts, given):
    hosts = make_hosts(2)
    result = hosts.run_mpi(hosts.launchd("--local-addr", given, *native("dump")))
    assert result.returncode == 2, result
    assert "launchd: error: --local-addr: " in result.stderr
    assert "0 bytes" not in result.stderr, result
    assert not hosts.place.dumps()


def test_a_name_of_this_node(make_hosts):
    """The workers are told the name, as torchrun does; the launchers meet at what it means."""
    hosts = make_hosts(2)
    addresses = link(hosts, range(2), "fast0", "10.88.0.{}/24")
    names = "".join(f"{address} n{node}-fast\n" for node, address in enumerate(addresses))
    result = hosts.run(0, ["sh", "-c", f"printf '%s' '{names}' >>/etc/hosts"])
    assert result.returncode == 0, result
    for options, master in ([], "n0-fast"), (["--max-restarts=1", "--store=agent"], addresses[0]):
        dumps = hosts.run_mpi(["sh", "-c", 'exec "$0" --local-addr=n$PMIX_RANK-fast "$@"',
                               *hosts.launchd(), *options, *native("dump")])
        assert dumps.returncode == 0, dumps
        assert the_master(hosts.place.dumps())[0] == master
