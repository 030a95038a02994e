"""What workers' lines look like on launchd's own stdout and stderr."""
import json
import os
import pty
import re
import signal
import socket

import pytest
from harness import native, until
from written import (Logs, all_streams, assert_console, assert_same, blocked, counted,
                     lines_of, logged, stream_of)
from together import errors

WRITER = native('writer')
STREAMS = {1: 'stdout', 2: 'stderr'}


def sh(script, *options):
    return [*options, '--no_python', '--use_env', 'sh', '-c', script]


def as_bytes(text):
    return text.encode(errors='surrogateescape')


def said(result):
    return [[line.decode() for line in logged(as_bytes(text))] for text in (result.out, result.err)]


@pytest.mark.parametrize('options, prefix', [([], ''), (['-t3', '--log-dir=logs'], '[default{}]:')])
def test_lines_of_eight_workers_are_whole(launch, place, options, prefix):
    """They write them in pieces, down to single bytes; with bars, and bytes that are no text. Each
    stream is on its own side and in its order."""
    env = {'SEED': '6', 'KINDS': 'sssebux', 'LINES': '300', 'OMP_NUM_THREADS': '1'}
    result = launch(['--nproc_per_node=8', *options, *WRITER], env)
    assert result.rc == 0
    for fd, text in ((1, result.out), (2, result.err)):
        assert_console(as_bytes(text), all_streams(place, env, 8, fd, prefix), STREAMS[fd])


def test_a_line_in_pieces_waits_for_its_end(start, place):
    """Meanwhile other workers' lines go out."""
    fifos = {name: place.fifo(name) for name in ('READY', 'GO_0', 'GO_1')}
    script = ('if [ $RANK = 0 ]; then printf AAAA; echo "0 $$ begun" >$READY; read -r w <$GO_0; '
              'echo BBBB; else read -r w <$GO_1; echo whole; fi')
    job = start(sh(script, '--nproc_per_node=2'),
                {'OMP_NUM_THREADS': '1', **{name: fifo.path for name, fifo in fifos.items()}})
    fifos['READY'].expect('begun', 1)
    os.write(fifos['GO_1'].fd, b'\n')
    until(lambda: job.said(0), 'the whole line')
    assert job.said(0) == 'whole\n'
    os.write(fifos['GO_0'].fd, b'\n')
    assert job.end().out == 'whole\nAAAABBBB\n'


@pytest.mark.parametrize('options', [[], ['-t3', '--log-dir=logs', '--log-line-prefix-template=-']])
def test_an_end_without_newline_gets_one(launch, options):
    """So that the next one's line is its own; the last of all stays as it was."""
    result = launch(sh('printf "end of $RANK"; printf "err of $RANK" >&2', '--nproc_per_node=3',
                       *options), {'OMP_NUM_THREADS': '1'})
    dash = '-' if options else ''
    assert [sorted(lines) for lines in said(result)] == \
        [[f'{dash}{word} of {i}' for i in range(3)] for word in ('end', 'err')]
    assert not result.out.endswith('\n') and not result.err.endswith('\n')


def test_a_prefix_of_all_macros(launch, place):
    """Also for what is not teed, as it is asked for; and as string.Template has it."""
    template = ('${role_name}|$local_rank|${rank}|$hostname|${node_rank}|$stream|$$|${unknown}|'
                '$unknown|$|')
    result = launch(sh('echo out; echo err >&2', '-t1', '--log-dir=logs', '--role=trainer',
                       f'--log-line-prefix-template={template}'))
    begin, end = f'trainer|0|0|{socket.gethostname()}|0|', '|$|${unknown}|$unknown|$|'
    assert said(result) == [[f'{begin}stdout{end}out'], [f'{begin}stderr{end}err']]


@pytest.mark.parametrize('variable', ['TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE',
                                      'PET_LOG_LINE_PREFIX_TEMPLATE'])
def test_a_prefix_from_the_environment(launch, variable):
    result = launch(sh('echo out', '-t1', '--log-dir=logs'), {variable: '<${local_rank}> '})
    assert said(result)[0] == ['<0> out']


def test_the_time_in_a_prefix(launch):
    result = launch(sh('echo out', '--log-line-prefix-template=${time} '))
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z out\n', result.out)


@pytest.mark.parametrize('written, seen', [
    (r'10%%\r50%%\r100%%\n', '100%'), (r'10%%\r50%%', '50%'), (r'\r10%%\r50%%\r\n', '50%'),
    (r'dos\r\nline\r\n', 'dos\nline'), (r'a\r\n\r\nb\n', 'a\n\nb'),
])
def test_a_bar_shows_its_last_state(launch, place, written, seen):
    """And is raw in its file."""
    result = launch(sh(f"printf '{written}'", '--log-dir=logs'))
    assert result.out.removesuffix('\n') == seen
    assert Logs(place).file(0).read_bytes().decode() == \
        written.replace('%%', '%').replace(r'\r', '\r').replace(r'\n', '\n')


@pytest.mark.parametrize('options', [[], ['-t3', '--log-dir=logs']])
def test_a_bar_that_goes_on_is_shown(start, place, options):
    """What it shows now, once; as tqdm writes it."""
    ready, go = place.fifo('ready'), place.fifo('go')
    script = ("printf '\\r  1%%'; printf '\\r  2%%'; echo '0 0 begun' >$READY; read -r w <$GO; "
              "printf '\\r  3%%'; read -r w <$GO; printf '\\r100%%\\n'")
    job = start(sh(script, *options), {'READY': ready.path, 'GO': go.path})
    ready.expect('begun', 1)
    until(lambda: '2%' in job.said(0), 'the first state')
    os.write(go.fd, b'\n')
    until(lambda: '3%' in job.said(0), 'the second state')
    os.write(go.fd, b'\n')
    out = re.sub(r'\[default0\]:', '', job.end().out)
    assert out.removeprefix('  1%\n') == '  2%\n  3%\n100%\n'


def test_a_bar_without_end(launch, place):
    """10 MB of states: none of them is a line."""
    script = place.write('bar.py', 'import os\n'
                         'for i in range(1000):\n'
                         '    os.write(1, b"".join(b"\\r%050d" % j for j in range(200)))\n'
                         'os.write(1, b"\\rdone\\nnext\\n")\n')
    result = launch(['--no_python', '--use_env', 'python3', script])
    assert result.out == 'done\nnext\n'


@pytest.mark.parametrize('options', [[], ['--log-dir=logs']])
def test_lines_of_megabytes(launch, place, options):
    """Of several workers at once, with short ones between."""
    env = {'SEED': '3', 'KINDS': 'ssslm', 'LINES': '12', 'OMP_NUM_THREADS': '1'}
    result = launch(['--nproc_per_node=4', *options, *WRITER], env)
    assert result.rc == 0
    for fd, text in ((1, result.out), (2, result.err)):
        assert_console(as_bytes(text), all_streams(place, env, 4, fd), STREAMS[fd])


def test_a_letter_in_pieces(start, place):
    """Each byte is read alone."""
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(sh('for byte in 342 202 254 12; do printf "\\\\$byte"; echo "0 $$ byte" >$READY; '
                   'read -r w <$GO; done', '-t1', '--log-dir=logs'),
                {'READY': ready.path, 'GO': go.path})
    for _ in range(4):
        ready.expect('byte', 1)
        os.write(go.fd, b'\n')
    assert job.end().out == '[default0]:€\n'


def test_only_some_ranks_are_shown(launch, place):
    """All are in the files that were asked for, and what is not shown is read all the same."""
    env = {'SEED': '4', 'KINDS': 'ssl', 'LINES': '20', 'OMP_NUM_THREADS': '1'}
    result = launch(['--nproc_per_node=3', '--local-ranks-filter=0,2', '-t1', '--log-dir=logs',
                     *WRITER], env)
    assert result.rc == 0
    out, err = (all_streams(place, env, 3, fd, prefix) for fd, prefix in
                ((1, '[default{}]:'), (2, '')))
    assert_console(as_bytes(result.out), [out[0], out[2]])
    assert_console(as_bytes(result.err), [err[0], err[2]])
    assert_same(Logs(place).file(1).read_bytes(), stream_of(place.environment(env), 1, 1), 'file')


@pytest.mark.parametrize('options', [[], ['--log-dir=logs', '-t3']])
@pytest.mark.parametrize('closed', ['out', 'out err'])
def test_a_closed_console(start, place, consoles, options, closed):
    """The files go on, and the job ends as its workers do. One without a file gets SIGPIPE, as if
    it had the console itself."""
    ready, go = place.fifo('ready'), place.fifo('go')
    env = {'SEED': '5', 'KINDS': 'ssl', 'LINES': '40', 'END': 'exit:7', 'TELL': ready.path,
           'GO': go.path}
    opened = {name: consoles() for name in closed.split()}
    job = start([*options, *WRITER], env,
                **{name: console.given for name, console in opened.items()})
    ready.expect('ready', 1)
    for console in opened.values():
        console.close()
    go.go()
    result = job.end()
    assert result.rc == (7 if options else 128 + signal.SIGPIPE)
    for fd, name in STREAMS.items() if options else ():
        assert_same(Logs(place).file(0, f'{name}.log').read_bytes(),
                    stream_of(place.environment(env), 0, fd), name)
    if closed == 'out' and options:
        assert_console(as_bytes(result.err), all_streams(place, env, 1, 2, '[default{}]:'))


LOST = "root cause: launchd's output lost its reader (the program or terminal that it goes to has ended), and a worker "
PRINTS = """
import os, sys, time
print('ready', flush=True)
os.read(os.open(sys.argv[1], os.O_RDONLY), 1)
while True:
    print('lost', flush=True)
    time.sleep(0.01)
"""


@pytest.mark.parametrize('closed', ['out', 'out err'])
@pytest.mark.parametrize('options, workers', [([], 1), ([], 3), (['--progress=^step ([0-9]+)'], 2),
                                              (['--max-restarts=3'], 2), (['-t', '2', '--log-dir=logs'], 2)])
@pytest.mark.parametrize('by', ['python', 'signal'])
def test_a_closed_console_is_no_workers_failure(start, place, consoles, options, workers, closed, by):
    """Whoever wrote there is a victim, whose exit code the job has; another attempt would die of it, too."""
    go = place.fifo('go')
    if by == 'python':
        command = ['--use_env', place.write('prints.py', PRINTS), go.path]
    else:
        command = sh(f'echo ready; head -c1 <{go.path} >/dev/null; while :; do echo lost; done')
    opened = {name: consoles() for name in closed.split()}
    job = start([f'--nproc_per_node={workers}', f'--report={place.path}/report', *options, *command], {},
                **{name: console.given for name, console in opened.items()})
    until(lambda: opened['out'].waiting() >= workers * len('ready\n'), 'all to be ready')
    for console in opened.values():
        console.close()
    go.go(workers)
    result = job.end()
    assert result.rc == (1 if by == 'python' else 128 + signal.SIGPIPE)
    report = json.loads((place.path / 'report').read_text())
    assert (report['cause']['kind'], report['culprit'], report['job']['exit_code']) == ('hang_up', None, result.rc), json.dumps(report)
    assert len(report['restarts']) <= 1 and all(one['cause'] == 'hang_up' for one in report['restarts'])
    if closed == 'out':
        said = errors(result)
        assert LOST in said[0] and any('first victim: rank ' in line for line in said)
        assert ("no restart: launchd's output has no reader any more" in result.err) == ('--max-restarts=3' in options)


@pytest.mark.parametrize('err', [False, True])
def test_a_terminal_that_is_gone_is_no_workers_failure(start, place, consoles, err):
    """Python's own words for that are lost where stderr was the same terminal."""
    go, (master, slave) = place.fifo('go'), pty.openpty()
    terminal = consoles(master)
    script = place.write('prints.py', PRINTS)
    job = start([f'--report={place.path}/report', '--use_env', script, go.path], {}, out=slave,
                **({'err': slave} if err else {}))
    os.close(slave)
    until(lambda: terminal.waiting() > 0, 'the worker to be ready')
    terminal.close()
    go.go()
    result = job.end()
    report = json.loads((place.path / 'report').read_text())
    assert (result.rc, report['cause']['kind'], report['workers'][0]['blames']) == (1, 'hang_up', 'output'), report
    assert err or LOST in errors(result)[0]


@pytest.mark.parametrize('script, text', [
    ('kill -PIPE $$', 'killed by SIGPIPE'),
    ("trap '' PIPE; (sleep 0.2; echo lost || echo BrokenPipeError: '[Errno 32]' Broken pipe >&2) | :; exit 1",
     'exit code 1')])
def test_a_pipe_of_its_own_is_a_workers_failure(start, consoles, script, text):
    console = consoles()
    job = start(sh(script), out=console.given)
    console.begin()
    result = job.end()
    assert f': {text} after ' in errors(result)[0] and 'root cause: rank 0 ' in errors(result)[0]


RAISES = """echo 'Traceback (most recent call last):
  File "a.py", line 1
ValueError: teapot' >&2; exit 1"""


@pytest.mark.parametrize('script, text', [('exit 3', 'exit code 3'), ('kill -SEGV $$', 'killed by SIGSEGV'),
                                          (RAISES, 'exit code 1')])
def test_a_failure_of_its_own_stays_one_without_a_reader(start, place, consoles, script, text):
    go, console = place.fifo('go'), consoles()
    job = start(sh(f'echo ready; head -c1 <{go.path} >/dev/null; {script}'), {}, out=console.given)
    until(lambda: console.waiting() > 0, 'the worker to be ready')
    console.close()
    go.go()
    result = job.end()
    assert f': {text} after ' in errors(result)[0] and 'root cause: rank 0 ' in errors(result)[0]


LOUD = {'SEED': '8', 'KINDS': 'ssssssssl', 'LINES': '100', 'OMP_NUM_THREADS': '1'}


def test_a_stopped_console_holds_nobody_up_that_has_a_file(start, place, consoles):
    """When it is read again, all of it comes, in order."""
    ready, console = place.fifo('ready'), consoles()
    job = start(['--nproc_per_node=4', '-t3', '--log-dir=logs', *WRITER],
                {**LOUD, 'TELL': ready.path}, out=console.given)
    for _ in range(8):
        ready.line()  # ready and written, of all
    console.begin()
    assert job.end().rc == 0
    assert_console(console.all(), all_streams(place, LOUD, 4, 1, '[default{}]:'))
    for rank in range(4):
        assert_same(Logs(place).file(rank).read_bytes(),
                    stream_of(place.environment(LOUD), rank, 1), f'file of {rank}')


def test_a_stopped_console_blocks_a_worker_without_a_file(start, place, consoles):
    """No line is lost, and no memory is filled meanwhile."""
    console, counts = consoles(), place.out / 'counts'
    counts.mkdir()
    env = {**LOUD, 'LINES': '1000', 'OMP_NUM_THREADS': '1'}
    job = start(['--nproc_per_node=2', *WRITER], {**env, 'COUNTS': str(counts)}, out=console.given)
    until(lambda: all(blocked(counts, rank, 1) for rank in range(2)), 'both to be blocked')
    assert sum(counted(counts, rank)[1][0] for rank in range(2)) < 2 << 20
    console.begin()
    assert job.end().rc == 0
    assert_console(console.all(), all_streams(place, env, 2, 1))


def test_lines_can_be_dropped_instead(start, place, consoles):
    """Whole ones, and their number is said; those of a console that is read are not."""
    ready, console = place.fifo('ready'), consoles()
    env = {**LOUD, 'KINDS': 's', 'LINES': '20000'}
    job = start(['--nproc_per_node=2', '--console-overflow=drop', *WRITER],
                {**env, 'TELL': ready.path}, out=console.given)
    for _ in range(4):
        ready.line()  # ready and written, of both
    console.begin()
    result = job.end()
    assert result.rc == 0
    wanted = all_streams(place, env, 2, 1)
    got = lines_of(console.all())
    dropped = sum(len(stream) for stream in wanted) - len(got)
    said = re.findall(r'^launchd: .* dropped (\d+) lines of stdout', result.err, re.M)
    assert dropped == sum(map(int, said)) > 0
    for stream in wanted:
        known = iter(stream)
        mine = set(stream)
        assert all(line in known for line in got if line in mine), 'torn, or out of order'
    assert set(got) <= set().union(*wanted)
    assert_console(as_bytes(result.err), all_streams(place, env, 2, 2))


@pytest.mark.parametrize('both', [False, True])
@pytest.mark.parametrize('options', [[], ['--log-dir=logs', '-t3'], ['--console-overflow=drop']])
def test_a_stopped_console_delays_no_end(start, consoles, options, both):
    """A signal ends the job although nobody reads what its workers said, nor the report."""
    console = consoles()
    job = start(sh('yes | head -c 3000000; exec sleep 1000', '--shutdown-timeout=5', *options),
                out=console.given, **({'err': console.given} if both else {}))
    until(lambda: console.waiting() > 60000, 'the console to be full')
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143


class OnTerminal:
    """launchd with a pty as all of its streams; what it shows."""

    def __init__(self, start, consoles, argv, env=None):
        master, slave = pty.openpty()
        reader = consoles(master)
        job = start(argv, env, stdin=slave, out=slave, err=slave)
        os.close(slave)
        reader.begin()
        self.rc = job.end().rc
        self.text = reader.all().decode()


ASK = ('for fd in 1 2; do it=none; if [ -t $fd ]; then it=one; fi; '
       'echo "$fd is $it" >>"$SEEN"; done')
MPI = {'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '1', 'OMPI_COMM_WORLD_LOCAL_RANK': '0',
       'OMPI_COMM_WORLD_LOCAL_SIZE': '1', 'OMPI_COMM_WORLD_NODE_RANK': '0'}


@pytest.mark.parametrize('options, env, out, err', [
    ([], {}, 'one', 'one'),
    (['-r2', '--log-dir=logs'], {}, 'one', 'none'),
    (['--log-line-prefix-template=x'], {}, 'none', 'none'),
    (['--log-dir=logs'], {}, 'none', 'none'),
    ([], MPI, 'none', 'none'),
], ids=['plain', 'stderr to a file', 'a prefix', 'with files', 'under mpirun'])
def test_a_terminal_is_the_workers_too(start, place, consoles, options, env, out, err):
    """Unless somebody stands between, or has to."""
    seen = OnTerminal(start, consoles, sh(f'{ASK}; echo hello', *options), {
        **env, 'SEEN': str(place.out / 'seen')})
    assert seen.rc == 0
    assert (place.out / 'seen').read_text() == f'1 is {out}\n2 is {err}\n'
    assert 'hello\r\n' in seen.text
