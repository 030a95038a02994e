"""--wrap: a command before some ranks' own, split as a shell splits it; --only-rank: one rank is
started; --report: its file is looked at before anything starts."""
import subprocess

import pytest

from harness import native
from test_not_startable import NO_OVERRIDE

# Nothing here is expanded by a shell either.
COMMANDS = [
    'plain words', "-ex 'set pagination off'", r'a\ b "c \" d" \\', '"" \'\' x',
    "it\\'s 'it'\\''s'", r'"\$HOME \a \`"', 'a"b"\'c\'d', 'tab\there', 'a#b {d,e}=f',
    'two\\\nlines "in\\\nside" \'kept\\\nx\'', 'caf\u00e9 "na\u00efve"',
]


@pytest.mark.parametrize('command', COMMANDS)
def test_words_are_those_of_a_shell(dry, command):
    shell = subprocess.run(['sh', '-c', f"printf '%s\\0' {command}"], capture_output=True,
                           text=True, check=True).stdout.split('\0')[:-1]
    words = dry(['--wrap', f'env {command}', '--use_env']).workers[0]['command']
    assert words[:-3] == ['env', *shell]


def recorder(place, name='bin/record'):
    """A wrapper that notes down its command and becomes it."""
    place.write(name, '#!/bin/sh\necho "$@" > "$HOME/record.$RANK"\nshift\nexec "$@"\n', 0o755)
    return {'PATH': f'{place.path}/bin:/usr/bin:/bin'}


def test_the_wrapper_runs_before_the_ranks_it_is_for(launch, place):
    env = recorder(place)
    argv = native('dump', '--nproc_per_node=4', "--wrap=record 'a b'", '--wrap-ranks=1,3',
                  '--quiet')
    assert launch([*argv, 'x'], env).rc == 0
    dumps = place.dumps()
    assert sorted(dumps) == [0, 1, 2, 3]
    assert [dumps[rank]['argv'] for rank in range(4)] == [[argv[-1], 'x']] * 4
    assert sorted(path.name for path in place.path.glob('record.*')) == ['record.1', 'record.3']
    assert (place.path / 'record.1').read_text() == f'a b {argv[-1]} x\n'


def test_a_wrapped_program_is_the_one_that_was_found(launch, place):
    """A wrapper that changes PATH still starts the program that PATH showed to launchd."""
    program = native('dump')[-1]
    (place.path / 'bin').mkdir()
    (place.path / 'bin/tool').symlink_to(program)
    env = {'PATH': f'{place.path}/bin:/usr/bin:/bin'}
    result = launch(['--no_python', '--use_env', '--wrap=/usr/bin/env PATH=/nowhere', 'tool'], env)
    assert result.rc == 0 and place.dumps()[0]['env']['PATH'] == '/nowhere'


def test_only_one_rank_is_started(launch, place):
    """With the numbers of the whole job, and nothing on the nodes that do not have it."""
    argv = native('dump', '--nnodes=2', '--nproc_per_node=4', '--only-rank=6', '--quiet')
    env = {'MASTER_ADDR': 'h'}
    assert launch([argv[0], '--node_rank=1', *argv[1:]], env).rc == 0
    dumps = place.dumps()
    assert list(dumps) == [6]
    names = ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE', 'NODE_RANK')
    assert [dumps[6]['env'][name] for name in names] == ['6', '2', '8', '4', '1']
    result = launch([argv[0], '--node_rank=0', *argv[1:]], env)
    assert (result.rc, result.err) == (0, '') and place.dumps() == {}


def test_the_only_rank_can_be_wrapped(launch, place):
    env = recorder(place)
    assert launch(native('dump', '--nproc_per_node=4', '--only-rank=2', '--wrap=record x',
                         '--quiet'), env).rc == 0
    assert list(place.dumps()) == [2]
    assert [path.name for path in place.path.glob('record.*')] == ['record.2']


def test_the_only_rank_reads_the_launchers_input(launch, place):
    """Under mpirun, too: whoever debugs one rank types to it."""
    place.write('words', 'typed\n')
    env = {'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '1'}
    argv = ['--nproc_per_node=2', '--quiet', '--no_python', '--use_env', '/bin/cat']
    with open(place.path / 'words') as words:
        assert launch(['--only-rank=1', *argv], env, stdin=words).out == 'typed\n'
    with open(place.path / 'words') as words:
        assert launch(argv, env, stdin=words).out == ''


def test_the_exit_code_is_the_wrappers(launch):
    result = launch(['--wrap', "sh -c 'exit 7'", *native('dump')])
    assert result.rc == 7


@pytest.mark.parametrize('command, rc, words', [
    ('absent -x', 127, ['--wrap: absent: no such file']),
    ('./directory', 126, ['--wrap: ./directory:', 'directory']),
    ('  ', 2, ['--wrap: it contains no command']),
])
def test_refused_before_the_first_start(refused, place, command, rc, words):
    (place.path / 'directory').mkdir()
    refused([f'--wrap={command}', '--nproc_per_node=2', *native('dump')], *words, rc=rc)


def test_a_wrapper_for_other_nodes_may_be_absent_here(dry, refused):
    env = {'MASTER_ADDR': 'h'}
    options = ['--nnodes=2', '--node_rank=1', '--wrap=absent']
    plan = dry([*options, '--wrap-ranks=0'], env)
    assert plan.workers[0]['command'][-3:-1] == ['-u', '/bin/true']
    refused([*options, '--wrap-ranks=1', *native('dump')], 'absent', env=env, rc=127)


@pytest.mark.parametrize('options, words', [
    (['--wrap=env', '--wrap-ranks=0,2'], ['--wrap-ranks', 'no rank 2', '0 to 1']),
    (['--wrap=env', '--wrap-ranks=1-0'], ['--wrap-ranks', '"1-0"', '0,4-7']),
    (['--report=gone/r.json'], ['--report', 'gone/r.json', 'No such file or directory']),
])
def test_what_can_not_be_meant(refused, options, words):
    refused([*options, '--nproc_per_node=2', *native('dump')], *words)


def test_a_report_that_may_not_be_written(refused, place):
    (place.path / 'locked').mkdir(mode=0o500)
    place.write('old.json', '', 0o400)
    refused(['--report=locked/r.json', *native('dump')], '--report', 'locked can\'t be written to',
            wrap=NO_OVERRIDE)
    refused(['--report=old.json', *native('dump')], '--report', 'old.json can\'t be written to',
            wrap=NO_OVERRIDE)


def test_one_name_for_all_nodes_is_node_rank_0s(dry):
    env = {'MASTER_ADDR': 'h'}
    assert dry(['--nnodes=2', '--report=r.json', '--node_rank=0'], env).value('report') == 'r.json'
    assert 'report' not in dry(['--nnodes=2', '--report=r.json', '--node_rank=1'], env).json['job']


def test_a_report_is_found_wrong_by_its_name_on_this_node(dry, place, refused):
    (place.path / '1').mkdir()
    env = {'MASTER_ADDR': 'h'}
    options = ['--nnodes=2', '--report=%n/r.json']
    assert dry([*options, '--node_rank=1'], env).value('report') == '1/r.json'
    refused([*options, '--node_rank=0', *native('dump')], '--report', '0/r.json', env=env)
