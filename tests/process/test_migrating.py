"""Every command of config/docs/migrating.md: the old ones have options that their launchers know, and
each new one starts the same workers. Those that need several hosts are run by tests/hosts."""
import json
import os
import re
import shlex
import subprocess

import pytest

import migrating
from harness import BUILD
from together import FAST, exit_codes, free_ports

TORCH = os.environ.get('LAUNCHD_TORCH215', '')  # a Python that has torch 2.15
PAIRS = migrating.pairs()
LOCAL = migrating.new_commands(on_hosts=False)


def at(pair):
    return f'{pair.section} {pair}'


@pytest.fixture
def train(place):
    place.write('train.py', migrating.TRAIN)
    (place.path / 'dumps').mkdir()
    return lambda: {int(file.stem): json.loads(file.read_text())
                    for file in (place.path / 'dumps').glob('*.json')}


def azure(pair, node):
    """What Azure ML tells one of two nodes, on each of which it starts one process."""
    if pair.says('type') == 'pytorch':
        return {'AZUREML_NODE_COUNT': '2', 'NODE_RANK': f'{node}', 'RANK': f'{node}', 'WORLD_SIZE': '2',
                'LOCAL_RANK': '0', 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': '6105'}
    return {'AZUREML_RUN_ID': 'run', 'AZ_BATCH_MASTER_NODE': '127.0.0.1:6000',
            'OMPI_COMM_WORLD_RANK': f'{node}', 'OMPI_COMM_WORLD_SIZE': '2',
            'OMPI_COMM_WORLD_LOCAL_RANK': '0', 'OMPI_COMM_WORLD_LOCAL_SIZE': '1'}


def with_rank(argv, node):
    """With the node's own rank where the page has that of the first."""
    argv = [re.sub('^(--node[_-]rank=)0$', rf'\g<1>{node}', word) for word in argv]
    return [f'{node}' if re.fullmatch('--node[_-]rank', before) else word
            for before, word in zip(['', *argv], argv)]


def run(start, pair, command, program='launchd'):
    """A new command as on each of its nodes, all of which are this host."""
    port = f'{free_ports()}'
    on_loopback = re.sub(r'\bn0\b', '127.0.0.1', re.sub(r'\b29[45]00\b', port, command))
    (name, *argv), env = migrating.assigned(on_loopback)
    assert name == program, f'how is {command} run?'
    nodes = len(migrating.workers_of(pair))
    env = {'LAUNCHD_CONTROL': None, **env}
    if nodes > 1:
        env |= {'LAUNCHD_CONTROL': 'required', 'LAUNCHD_NODE_TIMEOUT': FAST[0].partition('=')[2]}
        if port not in on_loopback:
            env['LAUNCHD_MASTER_PORT'] = port
    jobs = []
    for node in range(nodes):
        own = azure(pair, node) if pair.section == 'Azure ML' else \
            {'NODE_RANK': f'{node}'} if 'NODE_RANK' in env else \
            {'RANK': f'{node}', 'WORLD_SIZE': f'{nodes}', 'MASTER_ADDR': '127.0.0.1',
             'MASTER_PORT': port} if '--env-ranks' in argv else {}
        jobs.append(start(with_rank(argv, node), {**env, **own}, name=name))
    return [job.end() for job in jobs]


@pytest.mark.parametrize('pair, command', LOCAL, ids=map(str, range(len(LOCAL))))
def test_a_new_command_starts_what_the_old_one_did(start, train, pair, command):
    results = run(start, pair, command)
    assert set(exit_codes(results)) == {migrating.EXIT_CODE}, results
    migrating.check_workers(pair, command, train())


TORCHRUNS = [pair for pair in PAIRS if pair.section == 'torchrun']


@pytest.mark.parametrize('pair', TORCHRUNS, ids=at)
def test_under_torchruns_name_no_command_changes(start, launch, place, train, pair):
    made = launch(['--install-torchrun', f'{place.path}'])
    assert made.rc == 0 and os.path.realpath(place.path / 'torchrun') == f'{BUILD}/launchd', made
    results = run(start, pair, pair.old[0], 'torchrun')
    assert set(exit_codes(results)) == {migrating.EXIT_CODE}, results
    migrating.check_workers(pair, pair.old[0], train())


@pytest.mark.parametrize('pair', PAIRS, ids=at)
def test_old_commands_are_their_launchers(pair):
    """Each with options that it has, and a script."""
    for command in pair.old:
        name, _, rest = migrating.parsed(command)
        assert 'train.py' in rest and name in migrating.OPTIONS


PARSE = """import json, sys
from torch.distributed import launch, run
parsers = {'torchrun': run.parse_args, 'torch.distributed.launch': launch.parse_args}
for line in sys.stdin:
    name, words = json.loads(line)
    print(json.dumps({key: str(value) for key, value in vars(parsers[name](words)).items()}))
"""


@pytest.mark.skipif(not TORCH, reason='LAUNCHD_TORCH215 names no Python that has torch 2.15')
def test_torchs_own_parsers_know_the_old_commands():
    """... and read in them what ours does."""
    commands = [command for pair in PAIRS for command in pair.old
                if pair.section in ('torchrun', 'torch.distributed.launch')]
    asked = [migrating.launcher_of(shlex.split(command)) for command in commands]
    told = subprocess.run([TORCH, '-c', PARSE], input='\n'.join(map(json.dumps, asked)),
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    for command, line in zip(commands, told.splitlines(), strict=True):
        _, options, script = migrating.parsed(command)
        expected = {**{key: str(value) for key, value in options.items()}, 'training_script': script[0],
                    'training_script_args': str(script[1:])}
        assert expected.items() <= json.loads(line).items(), command


@pytest.mark.skipif(not TORCH, reason='LAUNCHD_TORCH215 names no Python that has torch 2.15')
def test_torchrun_sets_what_the_page_promises(place, train):
    [pair] = [pair for pair in TORCHRUNS if '--standalone' in pair.old[0]]
    words = migrating.launcher_of(migrating.assigned(pair.old[0])[0])[1]
    ended = subprocess.run([TORCH, '-m', 'torch.distributed.run', *words], cwd=place.path, check=False,
                           env=place.environment({}), capture_output=True, text=True)
    assert ended.returncode == 1, ended  # whatever the worker's was
    workers = train()
    given = set(place.environment({})) | {'PWD', 'SHLVL', '_', 'LC_CTYPE', 'TORCHELASTIC_SIGNALS_TO_HANDLE'}
    assert workers[0]['env'].keys() - given == migrating.TORCHRUN_SETS


def options_of(launch):
    """launchd's own, in all spellings."""
    names = set(re.findall(r'(?<!\S)(--?\w[\w-]*)', '\n'.join(
        re.findall(r'^  (-\w, --[\w-]+|--[\w-]+)', launch(['--help']).out.replace(',', ' ,'), re.M))))
    return {other for name in names for other in (
        name, f'--{name[2:].replace("-", "_")}' if name[:2] == '--' else name,
        name.replace('_', '-'))}


CODE = [code for _, text in migrating.prose() for code in re.findall(r'`([^`]+)`', text.replace('\n', ' '))]


def flags(code):
    return re.findall(r'(?<!\S)--?[a-z][\w-]*', code)


def test_prose_names_options_that_somebody_has(launch):
    theirs = {name for launcher in migrating.OPTIONS for name in migrating.names_of(launcher)}
    named = {flag for code in CODE for flag in flags(code)}
    assert {'--include', '--bind', '-t', '-x'} <= named
    # what the script gets
    assert named - options_of(launch) - theirs - {'--local_rank', '--local-rank'} == set()


def test_prose_gives_options_values_that_they_take(dry, launch, place):
    ours = options_of(launch)
    codes = [code for code in CODE if ' ' in code and code[0] == '-' and set(flags(code)) <= ours]
    assert '--signal-scope tree' in codes
    for code in codes:
        words = shlex.split(re.sub(r'\bN\b', '2', code.replace('DIR', f'{place.path}/logs')))
        dry(words)


def test_every_section_has_commands():
    """... and each command is run here or on several hosts."""
    sections = [title for title, _ in migrating.prose()][1:]
    assert {pair.section for pair in PAIRS} == set(sections)
    assert len(LOCAL) + len(migrating.new_commands(on_hosts=True)) == sum(len(pair.new) for pair in PAIRS)
