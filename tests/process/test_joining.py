"""Who has not joined the store that launchd hosts: said after 30 s, and in the report."""
import json
import re
import socket
import sys

import pytest

from together import Cluster
from harness import until

# a client of torch 2.2 or later, as far as its first words
WORKER = '''
import os, socket
rank = os.environ['RANK']
def tell(text):
    with open(os.environ['TELL'], 'w') as to:
        to.write(f'{rank} {os.getpid()} {text}\\n')
def wait(name):
    if name in os.environ:
        with open(os.environ[name], 'rb', buffering=0) as go:
            go.read(1)
if rank == os.environ['LATE']:
    tell('late')
    wait('JOIN')
store = socket.create_connection((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])))
store.sendall(bytes([0, 0xce, 0xf7, 0x85, 0x3c, 13, 1, 2, 3, 4]))
assert len(store.recv(4, socket.MSG_WAITALL)) == 4
tell('joined')
wait('GO')
# the kernel closes the connection: an interpreter that winds up would do it before the process is exiting
os._exit(int(os.environ['CODE']) if rank == '0' else 0)
'''
WRAPPER = '''sh -c '"$@"; exit $?' sh'''
FIRST_LOOK_S = 30
pytestmark = pytest.mark.long


class Joining(Cluster):
    """Two ranks on the first node, one on the second; rank `late` joins when told to."""

    def __init__(self, start, place, late, wrapped, code=0):
        self.late = late
        self.fifos = {name: place.fifo(name.lower()) for name in ('TELL', 'JOIN', 'GO')}
        self.report = place.path / 'report.json'
        env = {name: fifo.path for name, fifo in self.fifos.items()}
        super().__init__(start, 2, [place.write('worker.py', WORKER)],
                         {**env, 'LATE': str(late), 'CODE': str(code)},
                         lambda node: ([f'--nproc_per_node={2 - node}', '--store=agent',
                                        '--python', sys.executable, '--use_env',
                                        '--max-restarts=0', f'--report={self.report}{node}',
                                        *(['--wrap', WRAPPER] if node == wrapped else [])], {}))

    def are_there(self, count=3):
        return sorted(self.fifos['TELL'].line()[::2] for _ in range(count))

    def is_said(self):
        """The one line about the late rank, by its node's number."""
        wanted = re.compile(rf'waiting for (.*) to join the store, (\d+) s after the start')
        until(lambda: wanted.search(self.jobs[0].said()), 'the missing rank to be named',
              FIRST_LOOK_S + 60)
        [(who, after)] = wanted.findall(self.jobs[0].said())
        assert FIRST_LOOK_S <= int(after) < FIRST_LOOK_S + 30
        assert 'waiting for' not in self.jobs[1].said()
        return who

    def not_in_store(self):
        return json.loads(self.report.with_name(self.report.name + '0').read_text())['not_in_store']


@pytest.mark.parametrize('late, node, wrapped', [(1, 0, 1), (2, 1, 0)])
def test_a_late_rank_is_named_and_can_still_come(start, place, late, node, wrapped):
    """Those of the other node are connected by a wrapper's child."""
    cluster = Joining(start, place, late, wrapped)
    assert cluster.are_there() == [(r, 'late' if r == late else 'joined') for r in range(3)]
    assert cluster.is_said() == f'rank {late} (node {node}, {socket.gethostname()})'
    cluster.fifos['JOIN'].go()
    assert cluster.fifos['TELL'].line()[::2] == (late, 'joined')
    cluster.fifos['GO'].go(3)
    results = cluster.end()
    assert [result.rc for result in results] == [0, 0]
    assert 'had not joined' not in results[0].err
    assert cluster.not_in_store() == []


def test_who_is_missing_when_the_job_fails_is_in_its_report(start, place):
    cluster = Joining(start, place, 2, None, code=3)
    cluster.are_there()
    cluster.is_said()
    cluster.fifos['GO'].go(2)
    results = cluster.end()
    assert [result.rc for result in results] == [3, 3]
    assert re.search(r'^launchd: note: rank 2 .* had not joined the store$', results[0].err, re.M)
    assert cluster.not_in_store() == [2]
