"""Launchers of one job that meet on this host, each as a node of its own."""
import itertools
import os
import random
import socket

from harness import LIMIT

MEETS = {'LAUNCHD_CONTROL': 'auto'}  # else the harness keeps launchers from one another
FAST = ['--node-timeout=20']  # far above what a loaded machine holds a launcher up

round_trip = itertools.count(random.randrange(500))  # other runs of the tests have their own


def free_ports(host='127.0.0.1'):
    """A port that is free with the one above it, where launchers meet. It stays so until they
    listen: the kernel takes none of these for connections, and each of pytest's workers has a
    thousand of its own, which it goes round, so that no test has the same one twice."""
    first = 10000 + 1000 * (int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:]) % 22)
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    for _ in range(100):
        port = first + 2 * (next(round_trip) % 500)
        with socket.socket(family) as one, socket.socket(family) as other:
            try:
                one.bind((host, port))
                other.bind((host, port + 1))
                return port
            except OSError:
                continue
    raise AssertionError('no two free ports')


class Cluster:
    """nnodes launchers; each(rank) gives more options and variables of one of them."""

    def __init__(self, start, nnodes, argv, env=None, each=None, host='127.0.0.1', begin=True):
        self.start = start
        self.nnodes = nnodes
        self.argv = argv
        self.env = env or {}
        self.each = each or (lambda node: ([], {}))
        self.host = host
        self.port = free_ports(host)
        self.jobs = {}
        for node in range(nnodes) if begin else ():
            self.begin(node)

    def options(self, node):
        return ['--nnodes', str(self.nnodes), '--node_rank', str(node), '--master_addr', self.host,
                '--master_port', str(self.port)]

    def begin(self, node, options=(), **how):
        """Starts a node's launcher; a second one under the same number takes its place here."""
        more, env = self.each(node)
        self.jobs[node] = self.start(
            [*self.options(node), *FAST, *more, *options, *self.argv],
            {**MEETS, 'OMP_NUM_THREADS': '1', **self.env, **env}, **how)
        return self.jobs[node]

    def end(self, limit=LIMIT):
        """The results of all, by node rank."""
        return [self.jobs[node].end(limit) for node in sorted(self.jobs)]


class C10d(Cluster):
    """Nodes that are not told their ranks."""

    def options(self, node):
        return ['--nnodes', str(self.nnodes), '--rdzv-backend', 'c10d', '--rdzv-endpoint',
                f'{self.host}:{self.port}']


def errors(result):
    return [line for line in result.err.splitlines() if line.startswith('launchd: error: ')]


def warnings(result):
    return [line for line in result.err.splitlines() if line.startswith('launchd: warning: ')]


def exit_codes(results):
    return [result.rc for result in results]


def tcp_sockets(host='127.0.0.1'):
    """The rows of the kernel's tables, split into words: see proc_net_tcp.rst in its documentation."""
    family = '6' if ':' in host else ''
    for name in {f'/proc/net/tcp{family}', '/proc/net/tcp6'}:
        with open(name) as table:
            yield from (line.split() for line in table)


def listens(port, host='127.0.0.1'):
    """Whether somebody listens there, without a connection that would be seen."""
    return any(words[3] == '0A' and words[1].endswith(f':{port:04X}')
               for words in tcp_sockets(host))


def has_unread(port):
    """Whether who dialled this port has something to read."""
    return any(words[2].endswith(f':{port:04X}') and not words[4].endswith(':00000000')
               for words in tcp_sockets())
