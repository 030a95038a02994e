"""Faults drawn from a seed, in jobs of one and four nodes: each leaves a bundle that names what was wrong, where,
and of what kind. CAMPAIGN_FAULTS=500 is what the guides' numbers come from; CI takes a few."""
import json
import os
import random
import shutil
import signal

import pytest

from harness import supervisor_of
from together import Cluster

SEED = int(os.environ.get('CAMPAIGN_SEED', '1'))
FAULTS = int(os.environ.get('CAMPAIGN_FAULTS', '24'))
ENOUGH = 0.95
PART_MAX = 20 << 20

# What a rank does at its end, and what kind of failure that is.
ENDS = {
    'exit': ('exit 7', 'exit'),
    'exception': ('echo "Traceback (most recent call last):" >&2; echo "  File x" >&2; '
                  'echo "ValueError: the teapot is empty" >&2; exit 1', 'exception'),
    'noise': ('seq 1 20000; exit 3', 'exit'),
    'SEGV': ('kill -SEGV $$', 'signal'),
    'ABRT': ('kill -ABRT $$', 'signal'),
    'BUS': ('kill -BUS $$', 'signal'),
    'KILL': ('kill -KILL $$', 'signal'),
    'TERM': ('trap - TERM; kill -TERM $$', 'signal'),
}
# How the others take it: they wait; or die of it a moment later, as those who lose a peer do; or hold on.
OTHERS = {
    'wait': 'exec sleep 600',
    'victim': 'while ! [ -e "$DEAD" ]; do sleep 0.01; done; sleep 0.0$DELAY; '
              'echo "RuntimeError: Connection closed by peer" >&2; exit 1',
    'stubborn': 'trap "" TERM; while :; do sleep 0.05; done',
}


def script(end, others):
    return (f'if [ "$RANK" = "$FAULTY" ]; then echo "$RANK $$ ready" >"$TELL"; read -r x <"$GO"; '
            f': >"$DEAD"; {end}; fi; echo "$RANK $$ ready" >"$TELL"; {others}')


class Round:
    """One job with one fault."""

    def __init__(self, place, number, draw):
        self.path = place.path / f'round-{number}'
        self.path.mkdir()
        self.nnodes = draw.choice([1, 4])
        self.nproc = draw.choice([1, 2, 4]) if self.nnodes == 1 else draw.choice([1, 2])
        self.world = self.nnodes * self.nproc
        self.rank = draw.randrange(self.world)
        ways = [*ENDS, *ENDS, 'timeout', *(['lost'] if self.nnodes > 1 else [])]
        self.way = draw.choice(ways)
        self.node = draw.randrange(1, 4) if self.way == 'lost' else self.rank // self.nproc
        self.others = draw.choice([*OTHERS] if self.way in ENDS else ['wait', 'stubborn'])
        self.hold = draw.choice([[], [], ['--blackbox-hold=2']])
        self.shared = draw.choice([True, False])
        self.logs = draw.choice([True, False])
        self.delay = draw.randrange(10)

    def __repr__(self):
        return (f'{self.way} of rank {self.rank} of {self.world} on node {self.node} of {self.nnodes}, others '
                f'{self.others}, {self.hold}, shared {self.shared}, logs {self.logs}')

    def box(self, node):
        where = self.path / ('box' if self.shared else f'box{node}')
        return where / 'blackbox' if self.logs else where

    def options(self, node):
        option = 'log-dir' if self.logs else 'blackbox'
        return [f'--{option}={self.path / ("box" if self.shared else f"box{node}")}'], {}

    def run(self, start, ready, go):
        end, kind = ENDS.get(self.way, ('exec sleep 600', {'lost': 'node_lost'}.get(self.way, self.way)))
        limit = ['--max-runtime=2'] if self.way == 'timeout' else []
        body = script(end, OTHERS[self.others])
        argv = [f'--nproc_per_node={self.nproc}', '--shutdown-timeout=1', *self.hold, *limit, '--no_python',
                '--use_env', 'sh', '-c', body]
        env = {'TELL': ready.path, 'GO': go.path, 'DEAD': str(self.path / 'dead'), 'DELAY': str(self.delay),
               'FAULTY': str(self.rank) if self.way in ENDS else 'none'}
        job = Cluster(start, self.nnodes, argv, env, each=self.options)
        ready.expect('ready', self.world)
        if self.way == 'lost':
            os.kill(supervisor_of(job.jobs[self.node].pid), signal.SIGKILL)
        elif self.way in ENDS:
            go.go()
            os.write(go.fd, b'\n')
        job.end()
        return kind

    def what_is_wrong(self, kind):
        """None, or how the bundle fails to tell the truth."""
        [failure] = [path for path in self.box(0).iterdir()]
        index = json.loads((failure / 'index.json').read_text())
        for node in range(self.nnodes):
            part = self.box(node) / failure.name / f'node-{node}'
            if self.way == 'lost' and node == self.node:
                continue
            if json.loads((part / 'bundle.json').read_text())['node'] != node:
                return f'the part of node {node} is of another'
            size = sum(path.stat().st_size for path in part.rglob('*') if path.is_file())
            if size > PART_MAX:
                return f'the part of node {node} has {size} bytes'
        if index['kind'] != kind:
            return f'the kind is {index["kind"]}'
        if self.way == 'lost':
            lost = [node['node'] for node in index['nodes'] if node['lost']]
            return None if lost == [self.node] else f'nodes {lost} are lost'
        if self.way == 'timeout':
            return None if index['first'] is None else 'a worker is blamed'
        first = index['first']
        told = (first['rank'], first['node']) if first else None
        return None if told == (self.rank, self.node) else f'{told} is blamed'


@pytest.mark.long
def test_each_fault_leaves_its_truth(start, place, measured):
    draw = random.Random(SEED)
    ready, go = place.fifo('ready'), place.fifo('go')
    wrong = []
    for number in range(FAULTS):
        one = Round(place, number, draw)
        kind = one.run(start, ready, go)
        try:
            why = one.what_is_wrong(kind)
        except (OSError, ValueError) as error:
            why = f'no bundle: {error!r}'
        if why:
            wrong.append(f'{number}: {one}: {why}')
        shutil.rmtree(one.path)
        start.jobs.clear()
    measured('faults whose bundle is right', f'{FAULTS - len(wrong)} of {FAULTS} (seed {SEED})')
    assert len(wrong) <= FAULTS * (1 - ENOUGH), '\n'.join(wrong)
