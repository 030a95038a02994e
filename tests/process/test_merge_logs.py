"""--merge-logs: every node's lines on node rank 0's console."""
import os
import re
import signal
import socket

import pytest
from harness import BUILD, LIMIT, status_of, supervisor_of, until, worker
from together import Cluster, exit_codes, warnings
from written import all_streams, assert_console, assert_same, lines_of, logged, stream_of

PREFIX = f'[{socket.gethostname()}:{{}}]:'
MERGE = ['--merge-logs']
FILES = [*MERGE, '--log-dir=logs']  # else what node rank 0 is too slow for is left out


def as_bytes(text):
    return text.encode(errors='surrogateescape')


def sh(script, *options):
    return [*options, '--no_python', '--use_env', 'sh', '-c', script]


# A worker that writes, and ends when it is told: after that its lines have a second.
HELD = sh(f'{worker("writer")}; read -r w <$END_IT')


def only(rank, script, others, *options):
    """A rank that does something else than the others."""
    return sh(f'if [ $RANK = {rank} ]; then {script}; else {others}; fi', *options)


class Merging(Cluster):
    """streams: what {'out': ..., 'err': ...} node rank 0's launcher is given."""

    def __init__(self, start, nnodes, argv, env=None, each=None, **streams):
        def start_node(options, env):
            node = int(options[options.index('--node_rank') + 1])
            return start(options, env, **(streams if node == 0 else {}))

        super().__init__(start_node, nnodes, argv, env, each)


class Held(Merging):
    """HELD workers, on each node so many."""

    def __init__(self, start, place, nnodes, nproc, options, env, **streams):
        self.hold, self.count = place.fifo('end'), nnodes * nproc
        self.wanted = {fd: all_streams(place, env, self.count, fd, PREFIX) for fd in (1, 2)}
        super().__init__(start, nnodes, [*options, f'--nproc_per_node={nproc}', *HELD],
                         {**env, 'END_IT': self.hold.path}, **streams)

    def has_come(self, sizes, together=False):
        """All lines of stdout and stderr, but for last ones that have not ended yet."""
        most = [sum(len(line) + 1 for stream in self.wanted[fd] for line in stream[:-1])
                for fd in (1, 2)]
        most = [sum(most)] if together else most
        until(lambda: all(size >= least for size, least in zip(sizes(), most)), 'all lines')

    def end_held(self):
        os.write(self.hold.fd, b'\n' * self.count)
        results = self.end()
        assert exit_codes(results) == [0] * self.nnodes
        for result in results[1:]:
            assert not warnings(result), result
        assert_quiet(results[1:])
        return results

    def end_by_files(self):
        files = self.jobs[0].files
        self.has_come(lambda: [os.fstat(file.fileno()).st_size for file in files])
        result = self.end_held()[0]
        for fd, text in ((1, result.out), (2, result.err)):
            assert_console(as_bytes(text), self.wanted[fd])


def assert_quiet(results):
    """What nodes have on their own consoles is launchd's."""
    for result in results:
        assert result.out == '' and logged(as_bytes(result.err)) == [], result


@pytest.mark.parametrize('nnodes', [2, 3])
@pytest.mark.parametrize('options, kinds', [(MERGE, 'sssebux'), (FILES, 'ssssebuxl')])
def test_every_line_is_on_node_rank_0s_console(start, place, nnodes, options, kinds):
    """Whole, with host and rank, on the side it was written to and in its stream's order."""
    env = {'SEED': '11', 'KINDS': kinds, 'LINES': '150'}
    Held(start, place, nnodes, 2, options, env).end_by_files()


def test_lines_of_megabytes(start, place):
    Held(start, place, 3, 1, FILES,
         {'SEED': '12', 'KINDS': 'sssm', 'LINES': '12'}).end_by_files()


def test_both_streams_on_one_console(start, place, consoles):
    """`launchd 2>&1`"""
    console = consoles()
    env = {'SEED': '13', 'KINDS': 'sssbl', 'LINES': '60'}
    cluster = Held(start, place, 2, 1, FILES, env, out=console.given, err=console.given)
    console.begin()
    cluster.has_come(lambda: [sum(map(len, console.chunks))], together=True)
    cluster.end_held()
    assert_console(console.all(), cluster.wanted[1] + cluster.wanted[2])


def test_a_prefix_of_ones_own_and_a_key(start, place):
    key = place.write('key', 'a' * 64, 0o600)
    results = Merging(start, 2, sh(
        'echo out; echo err >&2', *MERGE, f'--key-file={key}',
        '--log-line-prefix-template=${node_rank}/${stream} ')).end()
    assert sorted(results[0].out.splitlines()) == ['0/stdout out', '1/stdout out']
    assert sorted(results[0].err.splitlines()) == ['0/stderr err', '1/stderr err']
    assert_quiet(results[1:])


def test_lines_come_while_workers_run(start, place):
    go = place.fifo('go')
    cluster = Merging(start, 2, only(1, 'echo now; read -r w <$GO; printf "the end"', ':', *MERGE),
                      {'GO': go.path})
    now = f'{PREFIX.format(1)}now\n'
    until(lambda: cluster.jobs[0].said(0) == now, 'the line')
    os.write(go.fd, b'\n')
    results = cluster.end()
    assert results[0].out == f'{now}{PREFIX.format(1)}the end\n'
    assert_quiet(results[1:])


def test_the_next_attempt_too(start):
    results = Merging(start, 2, sh(
        'echo $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 1 ]', *MERGE,
        '--max_restarts=1', '--log-line-prefix-template=${rank} ')).end()
    assert exit_codes(results) == [0, 0]
    assert {'0 0', '1 0', '0 1', '1 1'} >= set(results[0].out.splitlines()) >= {'0 1', '1 1'}
    assert_quiet(results[1:])


def test_the_report_comes_behind_all_lines(start):
    results = Merging(start, 2, only(
        1, 'i=0; while [ $i -lt 500 ]; do echo "word $i" >&2; i=$((i+1)); done; exit 7',
        'exec sleep 1000', *MERGE, '--shutdown-timeout=5')).end()
    assert exit_codes(results) == [7, 7]
    words = [as_bytes(f'{PREFIX.format(1)}word {i}') for i in range(500)]
    lines = [line for line in lines_of(as_bytes(results[0].err))
             if not line.startswith(b'launchd: note: ')]
    assert lines[:500] == words and logged(as_bytes(results[0].err)) == words
    assert any(b'word 499' in line for line in lines[500:])
    assert_quiet(results[1:])


def test_a_node_that_was_not_asked(start):
    """Its lines stay, and it says so; so do those of all where node rank 0 was not."""
    for asked in (0, 1):
        results = Merging(start, 2, sh('echo $RANK'),
                          each=lambda node, asked=asked: (MERGE if node == asked else [], {})).end()
        assert [result.out for result in results] == \
            [f'{PREFIX.format(node) if node == asked else ""}{node}\n' for node in range(2)]
        assert '--merge-logs' in results[1].err and 'is printed here' in results[1].err


LOUD = {'SEED': '14', 'KINDS': 'sssssssl', 'LINES': '300'}


def stopped(start, place, console, options, env, each=None):
    """Node rank 1's worker has written all to a console that nobody reads. Both end when they are
    told."""
    tell, go = place.fifo('tell'), place.fifo('go')
    script = f'[ $RANK = 0 ] || {worker("writer")}; read -r w <$END_IT'
    cluster = Merging(start, 2, sh(script, *options),
                      {**env, 'TELL': tell.path, 'END_IT': go.path}, each, out=console.given)
    tell.expect('ready', 1)
    tell.expect('written', 1)
    return cluster, lambda: os.write(go.fd, b'\n\n')


def test_a_stopped_console_holds_nobody_up_that_has_a_file(start, place, consoles):
    """When it is read again, all of it comes, in order."""
    console, wanted = consoles(), all_streams(place, LOUD, 2, 1, PREFIX)[1]
    cluster, go = stopped(start, place, console, FILES, LOUD)
    console.begin()
    most = sum(len(line) + 1 for line in wanted[:-1])  # the last one may not have ended
    until(lambda: sum(map(len, console.chunks)) >= most, 'all')
    go()
    results = cluster.end()
    assert exit_codes(results) == [0, 0]
    assert_console(console.all(), [wanted])
    assert_quiet(results[1:])
    files = [path.read_bytes() for path in place.path.glob('logs/*/attempt_0/0/stdout.log')]
    assert_same(max(files, key=len), stream_of(place.environment(LOUD), 1, 1), 'file')


def test_without_a_file_lines_are_dropped_and_counted(start, place, consoles):
    """Whole ones. Nobody who writes waits for another node."""
    console, env = consoles(), {**LOUD, 'KINDS': 's', 'LINES': '200000'}
    wanted = all_streams(place, env, 2, 1, PREFIX)[1]
    cluster, go = stopped(start, place, console, MERGE, env)
    console.begin()
    go()
    results = cluster.end()
    assert exit_codes(results) == [0, 0]
    got = lines_of(console.all() + as_bytes(results[1].out))
    said = re.findall(r'^launchd: .* dropped (\d+) lines of stdout', results[1].err, re.M)
    assert len(wanted) - len(got) == sum(map(int, said)) > 0
    known = iter(wanted)
    assert all(line in known for line in got), 'torn, or out of order'
    assert 'dropped' not in results[0].err


def test_a_stopped_console_delays_no_other_nodes_end(start, place, consoles):
    """What node rank 0 does not take within a second is shown where it was written."""
    console, wanted = consoles(), all_streams(place, LOUD, 2, 1, PREFIX)[1]
    cluster, go = stopped(start, place, console, FILES, LOUD)
    go()
    other = cluster.jobs[1].end()
    assert other.rc == 0
    console.begin()
    assert cluster.jobs[0].end().rc == 0
    text, rest = console.all(), as_bytes(other.out)
    if text + rest != b'\n'.join([*wanted, b'']):  # a line that both have part of was ended here
        assert text.endswith(b'\n')
        text = text[:-1]
    assert_same(text + rest, b'\n'.join([*wanted, b'']), 'consoles')
    assert rest


def test_a_closed_console_disturbs_nobody(start, place, consoles):
    console = consoles()
    tell, go = place.fifo('tell'), place.fifo('go')
    env = {**LOUD, 'TELL': tell.path, 'GO': go.path}
    cluster = Held(start, place, 2, 1, FILES, env, out=console.given)
    tell.expect('ready', 2)
    console.close()
    go.go(2)
    tell.expect('written', 2)
    err = cluster.jobs[0].files[1]
    cluster.wanted[1] = []
    cluster.has_come(lambda: [0, os.fstat(err.fileno()).st_size])
    assert_console(as_bytes(cluster.end_held()[0].err), cluster.wanted[2])


def test_a_node_is_lost_in_the_middle_of_a_line(start, place):
    """Its line ends there, and what others say is on lines of their own."""
    script = place.write('long.py', 'import os, signal\n'
                         'for i in range(300):\n'
                         '    os.write(1, b"x" * 65536)\n'
                         'signal.pause()\n')
    begun = place.fifo('begun').path
    cluster = Merging(start, 2, only(
        1, f'read -r go <{begun}; exec python3 {script}',
        f'trap "echo after; exit" TERM; echo before; echo >{begun}; sleep 1000 & wait',
        *FILES, '--shutdown-timeout=5'))
    until(lambda: 'xxx' in cluster.jobs[0].said(0), 'the line to begin')
    os.kill(supervisor_of(cluster.jobs[1].pid), signal.SIGKILL)
    cluster.jobs[1].end()
    result = cluster.jobs[0].end()
    assert result.rc != 0
    lines = result.out.splitlines()
    assert [re.sub('x+', 'x', line) for line in lines if 'x' in line] == [PREFIX.format(1) + 'x']
    assert [line for line in lines if 'x' not in line] == \
        [PREFIX.format(0) + word for word in ('before', 'after')], result.err


def test_node_rank_0_is_lost(start, place, consoles):
    """What it has not taken appears on the node's own console."""
    console = consoles()
    cluster, _ = stopped(start, place, console, FILES, LOUD)
    hub = cluster.jobs[0]
    os.kill(supervisor_of(hub.pid), signal.SIGKILL)
    hub.end()
    other = cluster.jobs[1].end()
    wanted = b'\n'.join([*all_streams(place, LOUD, 2, 1, PREFIX)[1], b''])
    assert other.out and wanted.endswith(as_bytes(other.out))


def test_memory_is_bounded(start, place, consoles):
    """At node rank 0, whose console is slow, and at the others."""
    console, peaks = consoles(), {}
    line = 'x' * 92
    script = f'yes {line} | head -n 500000'
    cluster = Merging(start, 3, sh(script, *MERGE), out=console.given)
    console.begin(slow=True)
    pids = {node: supervisor_of(job.pid) for node, job in cluster.jobs.items()}

    def over():
        for node, pid in pids.items():
            if 'VmHWM' in (status := status_of(pid)):
                peaks[node] = int(status['VmHWM'].split()[0])
        return all(job.process.poll() is not None for job in cluster.jobs.values())

    until(over, 'the job to end', 5 * LIMIT)
    assert exit_codes(cluster.end()) == [0] * 3
    assert {text for text in logged(console.all())} == \
        {as_bytes(PREFIX.format(rank) + line) for rank in range(3)}
    # sanitizers take more
    if not re.search(b'__[at]san_init', (BUILD / 'launchd').read_bytes()):
        assert max(peaks.values()) < 16 << 10, peaks
