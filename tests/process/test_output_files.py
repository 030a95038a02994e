"""Log files: where they lie, what goes to them, what becomes of them when they grow or are moved
away."""
import json
import os
import re
import signal

import pytest
from harness import status_of, until
from written import Logs

BOTH = 'echo "out $LOCAL_RANK"; echo "err $LOCAL_RANK" >&2'


def sh(script, *options):
    return [*options, '--no_python', '--use_env', 'sh', '-c', script]


@pytest.fixture
def logs(place):
    return Logs(place)


def said(result):
    """What is on the consoles, without launchd's own words."""
    return [sorted(line for line in text.splitlines() if not line.startswith('launchd: '))
            for text in (result.out, result.err)]


def test_torchruns_tree(launch, logs):
    result = launch(sh(BOTH, logs.option, '-r3', '--nproc_per_node=2', '--rdzv-id=myrun'))
    assert result.rc == 0 and said(result) == [[], []]
    assert re.fullmatch(r'myrun_.{8}', logs.run.name)
    assert logs.names() == [f'attempt_0/{rank}/{name}' for rank in range(2)
                            for name in ('stderr.log', 'stdout.log')]
    for rank in range(2):
        assert logs.read(rank) == f'out {rank}\n'
        assert logs.read(rank, 'stderr.log') == f'err {rank}\n'


def test_each_run_has_a_directory_of_its_own(launch, logs):
    for _ in range(2):
        assert launch(sh(BOTH, logs.option, '-r3')).rc == 0
    runs = list(logs.path.iterdir())
    assert len({path.name for path in runs}) == 2
    for run in runs:
        assert run.name.startswith('none_')
        assert (run / 'attempt_0' / '0' / 'stdout.log').read_text() == 'out 0\n'


def test_a_log_dir_is_made_with_all_above_it(launch, place):
    logs = Logs(place, 'a/b/c')
    assert launch(sh(BOTH, logs.option, '-r1')).rc == 0
    assert logs.read(0) == 'out 0\n'


def test_a_relative_log_dir(launch, place):
    assert launch(sh(BOTH, '--log-dir=logs', '-r1')).rc == 0
    assert Logs(place).read(0) == 'out 0\n'


REDIRECTED = [
    ('1', [0, 1, 2], [[], ['err 0', 'err 1', 'err 2']]),
    ('0', [], [['out 0', 'out 1', 'out 2'], ['err 0', 'err 1', 'err 2']]),
    ('0:1,1:2', [0, 1], [['out 1', 'out 2'], ['err 0', 'err 2']]),
    ('2:3,0:3', [0, 2], [['out 1'], ['err 1']]),
]


@pytest.mark.parametrize('spec, ranks, consoles', REDIRECTED)
def test_redirected_streams_are_in_files_only(launch, logs, spec, ranks, consoles):
    result = launch(sh(BOTH, logs.option, f'--redirects={spec}', '--nproc_per_node=3'))
    assert result.rc == 0 and said(result) == consoles
    for rank in ranks:
        for name, word, console in (('stdout.log', 'out', 0), ('stderr.log', 'err', 1)):
            in_file = logs.file(rank, name).exists() and logs.read(rank, name)
            on_console = f'{word} {rank}' in consoles[console]
            assert bool(in_file) != on_console
            assert not in_file or in_file == f'{word} {rank}\n'


@pytest.mark.parametrize('spec, out, err', [
    ('3', range(12), range(12)), ('0-9:1,10:3,11:2', range(11), (10, 11)),
])
def test_teed_streams_are_in_files_and_on_the_console(launch, logs, spec, out, err):
    """Ranks of any number of digits, and ranges. What is not teed passes, without a prefix."""
    result = launch(sh(BOTH, logs.option, '-t', spec, '--nproc_per_node=12'),
                    {'OMP_NUM_THREADS': '1'})
    assert result.rc == 0
    consoles = [[f'[default{i}]:{word} {i}' if i in teed else f'{word} {i}' for i in range(12)]
                for word, teed in (('out', out), ('err', err))]
    assert said(result) == [sorted(console) for console in consoles]
    for name, word, teed in (('stdout.log', 'out', out), ('stderr.log', 'err', err)):
        assert [i for i in range(12) if logs.file(i, name).exists()] == list(teed)
        assert all(logs.read(i, name) == f'{word} {i}\n' for i in teed)


def test_redirects_and_tee_together(launch, logs):
    result = launch(sh(BOTH, logs.option, '-r', '0:3,1:1', '-t', '1:3', '--nproc_per_node=3'))
    assert said(result) == [['[default1]:out 1', 'out 2'], ['[default1]:err 1', 'err 2']]
    assert logs.read(0, 'stderr.log') == 'err 0\n' and logs.read(1, 'stderr.log') == 'err 1\n'


def test_a_log_dir_alone_means_files_and_console(launch, logs):
    result = launch(sh(BOTH, logs.option, '--nproc_per_node=2'))
    assert said(result) == [['out 0', 'out 1'], ['err 0', 'err 1']]
    assert logs.read(1) == 'out 1\n' and logs.read(1, 'stderr.log') == 'err 1\n'


def test_dev_null_means_no_files(launch, place):
    """As with torchrun: what would be redirected is on the console."""
    result = launch(sh(BOTH, '--log-dir=/dev/null', '-r3'))
    assert result.rc == 0 and said(result) == [['out 0'], ['err 0']]
    assert not list(place.tmp.iterdir())


def test_without_a_log_dir_logs_are_kept_and_that_is_said(launch, place):
    result = launch(sh(BOTH, '-r3'))
    [made] = place.tmp.iterdir()
    assert made.name.startswith('launchd_logs_') and result.rc == 0
    assert re.search(rf'^launchd: note: .*{re.escape(str(made))}', result.err, re.M)
    [run] = made.iterdir()
    assert (run / 'attempt_0' / '0' / 'stderr.log').read_text() == 'err 0\n'
    made.rename(place.path / 'seen')  # the fixture's search for what a run leaves


def test_a_worker_that_only_writes_a_file_has_the_file_itself(launch, logs):
    """Nobody stands between."""
    assert launch(sh('readlink /proc/self/fd/1', logs.option, '-r1')).rc == 0
    assert logs.read(0) == f'{logs.file(0)}\n'


def test_two_who_write_to_the_same_file_do_not_write_over_one_another(launch, logs):
    """As `worker >> file` would; the worker's own child has it, too."""
    script = 'for i in 1 2 3; do echo a; sh -c "echo b"; done; : > /dev/stdout; echo c'
    assert launch(sh(script, logs.option, '-r1')).rc == 0
    assert logs.read(0) == 'c\n'  # cut off by the worker itself, and no hole before


def test_error_files_lie_in_the_tree(launch, logs):
    record = {'message': {'message': 'ValueError: no tea', 'extraInfo': {
        'py_callstack': 'Traceback ...', 'timestamp': '1700000000'}}}
    script = f"echo '{json.dumps(record)}' >$TORCHELASTIC_ERROR_FILE; exit 3"
    result = launch(sh(script, logs.option))
    assert result.rc == 3 and 'ValueError: no tea' in result.err
    assert json.loads(logs.read(0, 'error.json'))['message']['message'] == 'ValueError: no tea'


def test_each_attempt_has_its_own(launch, logs):
    script = 'echo "attempt $TORCHELASTIC_RESTART_COUNT"; exit $((1 - TORCHELASTIC_RESTART_COUNT))'
    result = launch(sh(script, logs.option, '-t1', '--max-restarts=1'))
    assert result.rc == 0
    assert [logs.read(0, attempt=i) for i in range(2)] == ['attempt 0\n', 'attempt 1\n']
    assert said(result)[0] == ['[default0]:attempt 0', '[default0]:attempt 1']


def test_duplicated_lines(launch, logs):
    """Of tee'd and shown streams only, with their prefixes; a doubled comma is one of the text."""
    script = ('for word in loss=1 nothing a,b; do echo "$word of $LOCAL_RANK"; '
              'echo "$word of $LOCAL_RANK" >&2; done')
    result = launch(sh(script, logs.option, '-t', '0:3,1:3', '--nproc_per_node=3',
                       '--local-ranks-filter=0,2', '--duplicate-stdout-filters=loss,,=,a,,b',
                       '--duplicate-stderr-filters=loss='))
    assert result.rc == 0
    directory = logs.run / 'attempt_0'
    assert (directory / 'filtered_stdout.log').read_text() == '[default0]:a,b of 0\n'
    assert (directory / 'filtered_stderr.log').read_text() == '[default0]:loss=1 of 0\n'


STAMP = r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z'


def test_timestamps_in_files(launch, logs):
    """Each line has one, and the rest of it is as it was; the console's has none."""
    script = r'printf "one\n\ntwo\r50%%\r100%%\n\377\000x\nno end"'
    result = launch(sh(script, logs.option, '-t1', '--log-timestamps'))
    lines = logs.file(0).read_bytes().split(b'\n')
    assert [re.sub(STAMP.encode() + b' ', b'', line, count=1) for line in lines] == \
        [b'one', b'', b'two\r50%\r100%', b'\xff\0x', b'no end']
    assert all(re.match(STAMP.encode() + b' ', line) for line in lines)
    assert 'Z' not in result.out


def test_files_are_rotated_between_lines(launch, logs):
    """Each is below the limit, unless one line is above it; the oldest go."""
    script = 'i=100; while [ $i -lt 200 ]; do echo "line $i of many"; i=$((i + 1)); done'
    assert launch(sh(script, logs.option, '-r1', '--log-max-size=160', '--log-keep=3')).rc == 0
    directory = logs.file(0).parent
    names = sorted(path.name for path in directory.iterdir())
    assert names == ['stderr.log'][:'stderr.log' in names] + \
        ['stdout.log', 'stdout.log.1', 'stdout.log.2', 'stdout.log.3']
    texts = [(directory / name).read_text() for name in reversed(names) if 'stdout' in name]
    assert all(0 < len(text) <= 160 and text.endswith('\n') for text in texts)
    together = ''.join(texts).splitlines()
    assert together == [f'line {i} of many' for i in range(200 - len(together), 200)]
    assert len(together) > 20


def test_a_line_longer_than_the_limit_is_not_cut(launch, logs):
    script = 'echo one; head -c 100000 /dev/zero | tr "\\0" x; echo; echo two'
    assert launch(sh(script, logs.option, '-t1', '--log-max-size=1K')).rc == 0
    directory = logs.file(0).parent
    texts = [path.read_text() for path in sorted(directory.glob('stdout.log*'), reverse=True)]
    assert ''.join(texts) == 'one\n' + 'x' * 100000 + '\ntwo\n'
    assert all(text.endswith('\n') for text in texts)


@pytest.mark.parametrize('how', [['-t1'], ['-r1', '--log-timestamps']])
def test_files_that_were_moved_away_are_opened_anew(start, place, logs, how):
    """As logrotate does. What was written before stays in the file that was moved."""
    ready, go = place.fifo('ready'), place.fifo('go')
    script = (f'echo before; echo 0 $$ ready >{ready.path}; read -r word <{go.path}; echo after; '
              f'echo 0 $$ told >{ready.path}; read -r word <{go.path}')
    job = start(sh(script, logs.option, *how, '--on-signal=USR2=reopen'))
    ready.expect('ready', 1)
    path = logs.file(0)
    until(lambda: 'before\n' in path.read_text(), 'the first line')
    path.rename(path.with_name('moved'))
    job.signal(signal.SIGUSR2)
    until(path.exists, 'a new file')
    os.write(go.fd, b'\n')
    ready.expect('told', 1)
    until(lambda: 'after\n' in path.read_text(), 'the second line')
    os.write(go.fd, b'\n')
    assert job.end().rc == 0
    assert 'after' not in logs.read(0, 'moved') and 'before' not in path.read_text()


def test_reopen_is_no_signal_for_the_workers(start, place, logs):
    """They would die of it, as sh does."""
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(sh(f'echo 0 $$ ready >{ready.path}; read -r word <{go.path}', logs.option,
                   '-t3', '--on-signal=USR2=reopen'))
    [pid] = ready.expect('ready', 1).values()
    path = logs.file(0)
    path.unlink()
    job.signal(signal.SIGUSR2)
    until(path.exists, 'a new file')
    assert status_of(pid)['State'][0] in 'SR'
    os.write(go.fd, b'\n')
    assert job.end().rc == 0
