"""Many runs of random workers that write, block and die, each judged byte for byte.

$LAUNCHD_OUTPUT_RUNS: how many, 60 by default; 1000 take minutes. A run follows from its seed, which
is in what fails; $LAUNCHD_OUTPUT_SEED: that one alone.
"""
import contextlib
import os
import random
import shutil

import pytest
from harness import native
from written import Logs, Reader, assert_console, assert_same, counted, shown, stream_of

RUNS = int(os.environ.get('LAUNCHD_OUTPUT_RUNS', '60'))
SEED = os.environ.get('LAUNCHD_OUTPUT_SEED')
PARTS = 12  # which may run at once
NAMES = {1: 'stdout.log', 2: 'stderr.log'}
# which lines, and how many of them at most
LINES = [('ssebux', 400), ('sssssssl', 60), ('eb', 300), ('x', 400), ('u', 300), ('sssm', 12)]
ENDS = ['exit:0'] * 4 + ['exit:3', 'cut:0', 'cut:4', 'kill', 'helper:0', 'helper:6']
WAYS = ['none', 'log-dir', 'redirects', 'tee', 'each']


class Run:
    """What is asked for in one run, and what has to come of it."""

    def __init__(self, seed):
        chance = random.Random(seed)
        self.seed = seed
        self.count = chance.choice([1, 2, 2, 3, 4, 8])
        self.kinds, most = chance.choice(LINES)
        self.lines = chance.randint(0, most)
        self.ends = [chance.choice(ENDS) for _ in range(self.count)]
        self.redirects, self.tee = [0] * self.count, [0] * self.count
        self.all = False
        self.options = self.choose_way(chance)
        self.prefix = chance.choice([None, None, '<${rank}> '])
        if self.prefix:
            self.options.append(f'--log-line-prefix-template={self.prefix}')
        self.readers = {1: chance.choice(['file', 'fast', 'slow']),
                        2: chance.choice(['file', 'file', 'fast', 'slow'])}
        # without a file nobody could know how much a worker wrote that somebody else ended
        self.killed = chance.random() < 0.5 and all(
            self.file(rank, fd) for rank in range(self.count) for fd in NAMES)

    def choose_way(self, chance):
        way = chance.choice(WAYS)
        if way == 'none':
            return []
        self.all = way == 'log-dir'
        for given in (self.redirects, self.tee):
            if way == 'each':
                given[:] = [chance.randint(0, 3) for _ in range(self.count)]
        if way in ('redirects', 'tee'):
            vars(self)[way] = [chance.randint(1, 3)] * self.count
        options = ['--log-dir=logs']
        for flag, given in (('-r', self.redirects), ('-t', self.tee)):
            if any(given):
                same = len(set(given)) == 1 and chance.random() < 0.5
                options += [flag, str(given[0]) if same else ','.join(
                    f'{rank}:{bits}' for rank, bits in enumerate(given))]
        self.all = self.all or not any(self.redirects + self.tee)
        return options

    def file(self, rank, fd):
        return bool((self.redirects[rank] | self.tee[rank]) & fd) or \
            (self.all and bool(self.options))

    def console(self, rank, fd):
        return bool(self.tee[rank] & fd) or not self.redirects[rank] & fd

    def prefix_of(self, rank, fd):
        if self.prefix:
            return f'<{rank}> '.encode()
        return f'[default{rank}]:'.encode() if self.tee[rank] & fd else b''

    def environment(self, counts):
        return {'SEED': str(self.seed), 'KINDS': self.kinds, 'LINES': str(self.lines),
                'OMP_NUM_THREADS': '1', 'COUNTS': str(counts),
                'ON_TERM': 'default' if self.killed else 'ignore',
                **{f'END_{rank}': end for rank, end in enumerate(self.ends)}}

    def codes(self):
        """What the exit code may be: any failure may have been the first."""
        found = {137 if end == 'kill' else int(end.split(':')[1]) for end in self.ends}
        return found - {0} or {0}

    def __str__(self):
        return f'seed {self.seed}: {vars(self)}'


def run_one(run, start, place, stack):
    counts = place.path / 'counts'
    counts.mkdir()
    env = run.environment(counts)
    readers = {fd: stack.enter_context(contextlib.closing(Reader()))
               for fd, how in run.readers.items() if how != 'file'}
    given = {name: readers[fd].given for name, fd in (('out', 1), ('err', 2)) if fd in readers}
    job = start(['--shutdown-timeout=600', '--leftover-grace=0', '--tail-lines=0',
                 f'--nproc_per_node={run.count}', *run.options, *native('writer')], env, **given)
    for fd, reader in readers.items():
        reader.begin(slow=run.readers[fd] == 'slow')
    result = job.end()
    judge(run, place, place.environment(env), counts, result, {
        fd: readers[fd].all() if fd in readers else text.encode(errors='surrogateescape')
        for fd, text in ((1, result.out), (2, result.err))})


def judge(run, place, env, counts, result, consoles):
    assert result.rc in run.codes()
    for fd, name in NAMES.items():
        streams = []
        for rank in range(run.count):
            whole = stream_of(env, rank, fd)
            (written, at_most), what = counted(counts, rank)[fd], f'{name} of {rank}'
            if run.file(rank, fd):
                text = Logs(place).file(rank, name).read_bytes()
                assert written <= len(text) <= at_most, f'{what}: {written} {len(text)} {at_most}'
            else:
                assert written == at_most, f'{what}: the worker was ended while it wrote'
                text = whole[:written]
            assert_same(text, whole[:len(text)], what)
            if run.console(rank, fd):
                streams.append(shown(text, run.prefix_of(rank, fd)))
        assert_console(consoles[fd], streams, f'console {fd}')


@pytest.mark.parametrize('part', [0] if SEED else range(PARTS))
def test_every_byte_and_line(start, place, part):
    """The last of them to fail is left to be looked at by its seed."""
    for seed in [int(SEED)] if SEED else range(part, RUNS, PARTS):
        run = Run(seed)
        try:
            with contextlib.ExitStack() as stack:
                run_one(run, start, place, stack)
        except (AssertionError, pytest.fail.Exception) as failed:
            raise AssertionError(f'{run}: {str(failed)[:2000]}') from None
        for name in ('logs', 'counts'):
            shutil.rmtree(place.path / name, ignore_errors=True)
