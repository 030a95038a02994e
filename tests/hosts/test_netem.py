"""The network of simulated hosts does what it is told, and nothing else."""
import random
import select
import socket
import statistics
import time

import pytest
from harness import let_pass
from netem import NetemError

PORT = 7000
SO_RCVBUFFORCE = 33
WAIT_S = 20  # for what takes milliseconds


class Udp:
    """A UDP socket on each host, as this process holds them."""

    def __init__(self, hosts, family=socket.AF_INET):
        self.addresses = hosts.ipv4[0] if family == socket.AF_INET else hosts.ipv6[0]
        self.sent = 0
        self.sockets = [hosts.socket(i, family, socket.SOCK_DGRAM)
                        for i in range(len(hosts.names))]
        for one, address in zip(self.sockets, self.addresses):
            one.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
            one.bind((address, PORT))

    def send(self, sender, receiver, number):
        self.sockets[sender].sendto(b"%d" % number, (self.addresses[receiver], PORT))
        self.sent += 1
        if self.sent % 100 == 0:
            # a burst longer than a socket's buffer is no test of the network, and UDP acknowledges nothing
            let_pass(0.001, "netem reads them")

    def burst(self, sender, receiver, count):
        """Sends numbered packets; those that arrive, in their order."""
        for number in range(count):
            self.send(sender, receiver, number)
        return self.take(receiver)

    def take(self, receiver, quiet_s=0.5):
        found, one = [], self.sockets[receiver]
        while select.select([one], [], [], quiet_s)[0]:
            found.append(int(one.recv(2000)))
        return found

    def silent(self, receiver):
        return not self.take(receiver, 0.2)

    def close(self):
        for one in self.sockets:
            one.close()


def connected(hosts, family, addresses, server=None):
    """A TCP connection from host 0 to host 1, the client last; server: who listens, else a new one
    comes first."""
    made = [] if server else [hosts.socket(1, family, socket.SOCK_STREAM)]
    for server in made:
        server.bind((addresses[1], PORT))
        server.listen()
    client = hosts.socket(0, family, socket.SOCK_STREAM)
    client.settimeout(WAIT_S)
    client.connect((addresses[1], PORT))
    peer, _ = server.accept()
    peer.settimeout(WAIT_S)
    return *made, peer, client


def is_silent(peer):
    return not select.select([peer], [], [], 0.5)[0]


@pytest.fixture
def network(make_hosts):
    """network(count, ...) -> (hosts, Udp)"""
    made = []

    def make(count, family=socket.AF_INET, **options):
        hosts = make_hosts(count, netem=True, **options)
        made.append(Udp(hosts, family))
        return hosts, made[-1]

    yield make
    for udp in made:
        udp.close()


@pytest.mark.parametrize("family, ipv6", [(socket.AF_INET, False), (socket.AF_INET6, "only")])
def test_nothing_is_lost_unless_asked_for(network, family, ipv6):
    hosts, udp = network(64, family, ipv6=ipv6)
    for number in range(50):
        for sender in range(64):
            udp.send(sender, (sender + 7) % 64, number)
    for receiver in range(64):
        assert udp.take(receiver, 0.5 if receiver == 0 else 0.05) == list(range(50)), receiver
    assert all(one == {"out": (one["out"][0], 0, 0), "in": (one["in"][0], 0, 0)}
               for one in hosts.netem.stats())


@pytest.mark.parametrize("direction", ["out", "in"])
def test_loss_is_as_asked_and_drawn_from_the_seed(network, direction):
    count, loss = 5000, 0.2
    received = {}
    for run, seed in enumerate((1, 1, 2)):
        hosts, udp = network(2, seed=seed)
        hosts.netem.set(0 if direction == "out" else 1, direction, loss=loss)
        received[run] = udp.burst(0, 1, count)
        lost = count - len(received[run])
        sigma = (count * loss * (1 - loss)) ** 0.5
        assert abs(lost - count * loss) < 5 * sigma, lost
        assert udp.burst(1, 0, 500) == list(range(500)), "the other way loses as well"
    assert received[0] == received[1]
    assert received[0] != received[2]


def test_losses_of_both_directions_add_up(network):
    hosts, udp = network(2)
    hosts.netem.set(loss=0.2)
    got = len(udp.burst(0, 1, 5000))
    assert abs(got - 5000 * 0.64) < 5 * (5000 * 0.64 * 0.36) ** 0.5


def delays_ms(udp, sender, receiver, count):
    found = []
    for number in range(count):
        begun = time.monotonic()
        udp.send(sender, receiver, number)
        assert select.select([udp.sockets[receiver]], [], [], WAIT_S)[0]
        found.append((time.monotonic() - begun) * 1000)
        assert int(udp.sockets[receiver].recv(64)) == number
    return found


def test_delay_is_of_one_direction_and_adds_up(network):
    hosts, udp = network(3)
    assert statistics.median(delays_ms(udp, 0, 1, 20)) < 10
    hosts.netem.set(0, "out", delay=40)
    hosts.netem.set(1, "in", delay=20)
    for sender, receiver, wanted in ((0, 1, 60), (0, 2, 40), (2, 1, 20), (1, 0, 0)):
        measured = delays_ms(udp, sender, receiver, 10)
        assert min(measured) >= wanted
        assert statistics.median(measured) < wanted + 10, (sender, receiver)


def test_jitter_keeps_the_order_unless_told_otherwise(network):
    hosts, udp = network(2)
    hosts.netem.set(0, "out", delay=5, jitter=20)
    assert udp.burst(0, 1, 1000) == list(range(1000))
    hosts.netem.set(0, "out", reorder=1)
    mixed = udp.burst(0, 1, 1000)
    assert mixed != list(range(1000))
    assert sorted(mixed) == list(range(1000))


def test_a_rate_is_of_one_direction_and_what_finds_no_room_is_lost(network):
    """1000 packets of 1028 bytes at 10 Mbit/s: some 60 within the queue's 50 ms, and as many more as
    leave it while they are sent."""
    hosts, udp = network(3)
    hosts.netem.set(1, "in", rate=10)
    begun = time.monotonic()
    for number in range(1000):
        udp.sockets[0].sendto(b"%-1000d" % number, (udp.addresses[1], PORT))
    sending_s = time.monotonic() - begun
    received = [int(word) for word in udp.take(1)]
    assert 50 < len(received) < 70 + 1300 * sending_s
    assert received == sorted(received)
    assert udp.burst(1, 0, 100) == udp.burst(0, 2, 100) == list(range(100))
    stats = hosts.netem.stats()
    assert stats[1]["in"][1] == 1000 - len(received)
    hosts.netem.heal()
    assert udp.burst(0, 1, 100) == list(range(100))


def test_one_way_cut(network):
    hosts, udp = network(3)
    hosts.cut(1, "in")
    udp.send(0, 1, 1)
    assert udp.silent(1)
    assert udp.burst(1, 0, 10) == list(range(10))
    hosts.heal(1)
    assert udp.burst(0, 1, 10) == list(range(10))
    hosts.cut(1, "out")
    udp.send(1, 0, 1)
    assert udp.silent(0)
    assert udp.burst(2, 1, 10) == list(range(10))


def test_what_is_under_way_to_a_host_that_is_cut_is_lost(network):
    hosts, udp = network(2)
    hosts.netem.set(delay=100)
    udp.send(0, 1, 1)
    hosts.cut(1)
    hosts.heal(1)
    assert udp.take(1) == [1]
    udp.send(0, 1, 2)
    hosts.cut(1)
    assert udp.silent(1)
    hosts.heal(1)
    assert udp.silent(1)


def test_a_pair_is_cut_and_others_are_not(network):
    hosts, udp = network(3)
    hosts.netem.cut_pair(0, 1)
    udp.send(0, 1, 1)
    assert udp.silent(1)
    assert udp.burst(1, 0, 5) == udp.burst(0, 2, 5) == udp.burst(2, 1, 5) == list(range(5))
    hosts.netem.heal()
    assert udp.burst(0, 1, 5) == list(range(5))


@pytest.mark.parametrize("family, ipv6", [(socket.AF_INET, False), (socket.AF_INET6, True)])
def test_a_firewall_drops_udp_in_one_direction_and_no_tcp(network, family, ipv6):
    hosts, udp = network(3, family, ipv6=ipv6)
    hosts.netem.set(1, "in", no_udp=1)
    udp.send(0, 1, 1)
    assert udp.silent(1)
    assert udp.burst(1, 0, 5) == udp.burst(0, 2, 5) == list(range(5))
    for one in connected(hosts, family, udp.addresses):
        one.close()
    hosts.netem.heal()
    assert udp.burst(0, 1, 5) == list(range(5))


def test_a_wall_drops_tcp_and_no_udp(network):
    hosts, udp = network(2)
    server, peer, client = connected(hosts, socket.AF_INET, hosts.addresses)
    hosts.netem.set(1, "in", no_tcp=1)
    client.send(b"x")
    assert udp.burst(0, 1, 5) == list(range(5))
    assert is_silent(peer)
    hosts.netem.heal()
    assert peer.recv(1) == b"x"  # sent again by its kernel
    for one in (server, peer, client):
        one.close()


def test_a_wall_drops_what_is_large(network):
    hosts, _ = network(2)
    server, peer, client = connected(hosts, socket.AF_INET, hosts.addresses)
    hosts.netem.set(0, "out", max_size=299)
    client.send(b"x" * 200)
    assert len(peer.recv(1000)) == 200
    client.send(b"x" * 300)
    assert is_silent(peer)
    hosts.netem.heal()
    assert len(peer.recv(1000)) == 300
    for one in (server, peer, client):
        one.close()


@pytest.mark.parametrize("family, ipv6", [(socket.AF_INET, False), (socket.AF_INET6, True)])
def test_a_wall_resets_tcp(network, family, ipv6):
    hosts, udp = network(2, family, ipv6=ipv6)
    server, peer, client = connected(hosts, family, udp.addresses)
    hosts.netem.set(reset=1)
    client.send(b"x")
    for one in (peer, client):
        with pytest.raises(ConnectionResetError):
            one.recv(1)
    hosts.netem.heal()
    for one in (*connected(hosts, family, udp.addresses, server), server, peer, client):
        one.close()


def test_a_wall_forgets_an_idle_connection_and_takes_a_new_one(network):
    hosts, udp = network(2)
    server, peer, client = connected(hosts, socket.AF_INET, hosts.addresses)
    hosts.netem.set(1, forget=2000)
    let_pass(2.5, "the wall forgets")
    client.send(b"x")
    assert is_silent(peer)
    again = connected(hosts, socket.AF_INET, hosts.addresses, server)
    for _ in range(6):  # never idle for as long
        again[1].send(b"y")
        assert again[0].recv(1) == b"y"
        let_pass(0.5, "less than the wall remembers")
    assert is_silent(peer)
    assert udp.burst(0, 1, 5) == list(range(5))
    for one in (server, peer, client, *again):
        one.close()


def test_tcp_gets_everything_through(network):
    hosts, _ = network(2)
    hosts.netem.set(loss=0.02, delay=1)
    data = random.Random(1).randbytes(2_000_000)
    server, peer, client = connected(hosts, socket.AF_INET, hosts.addresses)
    client.setblocking(False)
    got, sent, end = bytearray(), 0, time.monotonic() + 60
    while len(got) < len(data) and time.monotonic() < end:
        readable, writable, _ = select.select([peer], [client] if sent < len(data) else [], [], 1)
        if writable:
            sent += client.send(data[sent:sent + 65536])
        if readable:
            got += peer.recv(1 << 20)
    for one in (server, client, peer):
        one.close()
    assert bytes(got) == data


def test_a_wrong_word_is_said(network):
    hosts, _ = network(2)
    for wrong in ({"loss": 2}, {"delay": -1}, {"speed": 1}):
        with pytest.raises(NetemError):
            hosts.netem.set(0, **wrong)
    with pytest.raises(NetemError):
        hosts.netem.set(2, cut=1)
