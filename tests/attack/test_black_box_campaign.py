"""Faults drawn from a seed, in jobs of one and four nodes: each leaves a bundle that names what was wrong, where,
and of what kind. CAMPAIGN_FAULTS=500 is what the guides' numbers come from; CI takes a few."""
import collections
import json
import os
import random
import shutil
import signal

import pytest

from harness import BUILD, stop, supervisor_of
from test_cgroup import small  # noqa: F401
from together import Cluster

SEED = int(os.environ.get('CAMPAIGN_SEED', '1'))
FAULTS = int(os.environ.get('CAMPAIGN_FAULTS', '24'))
ENOUGH = 0.95
PART_MAX = 20 << 20
WORKERS = BUILD / 'tests' / 'workers'
WEDGED = {'LD_LIBRARY_PATH': str(WORKERS), 'FAKE_GPUS': '2', 'FAKE_NVML': 'hang=nvmlInit'}

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
READY = 'echo "$RANK $$ ready" >"$TELL"'
# How the others take it: they wait; or die of it a moment later, as those who lose a peer do; or hold on.
OTHERS = {
    'wait': f'{READY}; exec sleep 600',
    'victim': f'{READY}; while ! [ -e "$DEAD" ]; do sleep 0.01; done; sleep 0.0$DELAY; '
              'echo "RuntimeError: Connection closed by peer" >&2; exit 1',
    'stubborn': f'trap "" TERM; {READY}; while :; do sleep 0.05; done',
}


# What a launcher, the kernel or somebody else does, and what kind of failure that is. The process that is not
# startable is so on every node.
WAYS = {'timeout': 'timeout', 'hang': 'hang', 'lost': 'node_lost', 'frozen': 'node_lost', 'oom': 'oom',
        'unstartable': 'not_startable'}
OF_A_NODE = ('lost', 'frozen')


def script(end, others):
    return f'if [ "$RANK" = "$FAULTY" ]; then {READY}; read -r x <"$GO"; : >"$DEAD"; {end}; fi; {others}'


class Round:
    """One job with one fault."""

    def __init__(self, place, number, draw, memory):
        self.path = place.path / f'round-{number}'
        self.path.mkdir()
        self.memory = memory
        self.nnodes = draw.choice([1, 4])
        self.nproc = draw.choice([1, 2, 4]) if self.nnodes == 1 else draw.choice([1, 2])
        self.world = self.nnodes * self.nproc
        self.rank = draw.randrange(self.world)
        here = ['oom'] if self.nnodes == 1 and memory else []
        self.way = draw.choice([*ENDS, 'timeout', 'hang', 'unstartable', *here,
                                *(OF_A_NODE if self.nnodes > 1 else [])])
        self.node = draw.randrange(1, 4) if self.way in OF_A_NODE else self.rank // self.nproc
        self.others = draw.choice([*OTHERS] if self.way in ENDS else
                                  ['wait'] if self.way == 'hang' else ['wait', 'stubborn'])
        self.hold = draw.choice([[], [], ['--blackbox-hold=2']])
        self.shared = draw.choice([True, False])
        self.logs = draw.choice([True, False])
        self.delay = draw.randrange(10)
        self.wedged = draw.randrange(5) == 0

    def __repr__(self):
        return (f'{self.way} of rank {self.rank} of {self.world} on node {self.node} of {self.nnodes}, others '
                f'{self.others}, {self.hold}, shared {self.shared}, logs {self.logs}, wedged {self.wedged}')

    def box(self, node):
        where = self.path / ('box' if self.shared else f'box{node}')
        return where / 'blackbox' if self.logs else where

    def options(self, node):
        option = 'log-dir' if self.logs else 'blackbox'
        return [f'--{option}={self.path / ("box" if self.shared else f"box{node}")}'], {}

    def argv(self):
        more = {'timeout': ['--max-runtime=2'], 'hang': ['--on-hang=stop', '--on-hang-after=10'],
                'frozen': ['--node-timeout=3']}
        command = ['sh', '-c', script(ENDS.get(self.way, ('exec sleep 600',))[0], OTHERS[self.others])]
        if self.way == 'unstartable':
            (self.path / 'train').write_text('\x7fELF of no machine')
            (self.path / 'train').chmod(0o755)
            command = [str(self.path / 'train')]
        elif self.way == 'oom':
            command = [str(WORKERS / 'glutton')]
        return [f'--nproc_per_node={self.nproc}', '--shutdown-timeout=1', *self.hold, *more.get(self.way, []),
                '--no_python', '--use_env', *command]

    def run(self, start, ready, go):
        how = {'before': self.memory.enter} if self.way == 'oom' else {}
        env = {'TELL': ready.path, 'GO': go.path, 'DEAD': str(self.path / 'dead'), 'DELAY': str(self.delay),
               'FAULTY': str(self.rank) if self.way in ENDS else 'none', 'TAKER': str(self.rank),
               **(WEDGED if self.wedged else {})}
        job = Cluster(start, self.nnodes, self.argv(), env, each=self.options, begin=False)
        for node in range(self.nnodes):
            job.begin(node, **how)
        if self.way != 'unstartable':
            self.go_wrong(job, ready.expect('ready', self.world), go)
        job.end()

    def go_wrong(self, job, pids, go):
        if self.way == 'lost':
            os.kill(supervisor_of(job.jobs[self.node].pid), signal.SIGKILL)
        elif self.way == 'frozen':
            supervisor = supervisor_of(job.jobs[self.node].pid)
            stop(supervisor)
            for node in set(job.jobs) - {self.node}:
                job.jobs.pop(node).end()
            os.kill(supervisor, signal.SIGCONT)
        elif self.way == 'hang':
            stop(pids[self.rank])
        elif self.way in ENDS or self.way == 'oom':
            go.go()
            if self.way in ENDS:
                os.write(go.fd, b'\n')

    def what_is_wrong(self):
        """None, or how the bundle fails to tell the truth."""
        [failure] = [path for path in self.box(0).iterdir()]
        index = json.loads((failure / 'index.json').read_text())
        for node in range(self.nnodes):
            part = self.box(node) / failure.name / f'node-{node}'
            if self.way in OF_A_NODE and node == self.node:
                continue
            if self.way == 'unstartable' and index['nodes'][node]['text'] == 'its workers were not started':
                continue
            if json.loads((part / 'bundle.json').read_text())['node'] != node:
                return f'the part of node {node} is of another'
            size = sum(path.stat().st_size for path in part.rglob('*') if path.is_file())
            if size > PART_MAX:
                return f'the part of node {node} has {size} bytes'
        kind = ENDS[self.way][1] if self.way in ENDS else WAYS[self.way]
        if index['kind'] != kind:
            return f'the kind is {index["kind"]}'
        return self.who_is_wrong(index)

    def who_is_wrong(self, index):
        first = index['first']
        if self.way in OF_A_NODE:
            lost = [node['node'] for node in index['nodes'] if node['lost']]
            return None if lost == [self.node] else f'nodes {lost} are lost'
        if self.way == 'timeout':
            return None if first is None else 'a worker is blamed'
        if self.way == 'hang':
            return None if f'rank {self.rank} is stopped' in index['why'] else f'the story is "{index["why"]}"'
        if self.way == 'unstartable':  # all of them
            return None if first and first['rank'] // self.nproc == first['node'] else f'{first} is blamed'
        told = (first['rank'], first['node']) if first else None
        return None if told == (self.rank, self.node) else f'{told} is blamed'


@pytest.fixture
def memory(request):
    """A cgroup with little memory; None where none can be made."""
    try:
        return request.getfixturevalue('small')
    except pytest.skip.Exception:
        return None


@pytest.mark.long
def test_each_fault_leaves_its_truth(start, place, memory, measured):
    draw = random.Random(SEED)
    ready, go = place.fifo('ready'), place.fifo('go')
    wrong, ways = [], collections.Counter()
    for number in range(FAULTS):
        one = Round(place, number, draw, memory)
        one.run(start, ready, go)
        try:
            why = one.what_is_wrong()
        except (OSError, ValueError) as error:
            why = f'no bundle: {error!r}'
        if why:
            wrong.append(f'{number}: {one}: {why}')
            print(wrong[-1], flush=True)
        ways[one.way] += 1
        shutil.rmtree(one.path)
        start.jobs.clear()
    measured('faults whose bundle is right', f'{FAULTS - len(wrong)} of {FAULTS} (seed {SEED})')
    measured('faults', ', '.join(f'{way} {count}' for way, count in sorted(ways.items())))
    assert len(wrong) <= FAULTS * (1 - ENOUGH), '\n'.join(wrong)
