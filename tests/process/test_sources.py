"""Section 3: where each value comes from, its precedence and source, and the INI files."""
import re

import pytest

from harness import BUILD, native
from needs import needs_mounts, needs_open_build, needs_root
from own_mounts import OWN_MOUNTS

SYSTEM = '/etc/launchd/launchd.conf'


def with_system_file(place, text):
    """A command that runs its arguments where /etc holds nothing but our launchd.conf. The mount
    ends with the process that made it."""
    place.write('etc/launchd/launchd.conf', text)
    return [*OWN_MOUNTS, 'sh', '-ec', 'mount --bind "$1" /etc; shift; exec "$@"', 'sh',
            str(place.path / 'etc')]


@needs_mounts
def test_the_order_of_the_places(dry, place):
    """Each place, without those above it, gives the value and is named as its source."""
    wrap = with_system_file(place, '[launchd]\nshutdown-timeout = 6\n')
    place.write('job.ini', '; job\n[launchd]\nshutdown-timeout = 2\n')
    options = ['--shutdown-timeout=1', '--config=job.ini']
    env = {'LAUNCHD_SHUTDOWN_TIMEOUT': '3', 'PET_SHUTDOWN_TIMEOUT': '4',
           'TORCH_ELASTIC_SHUTDOWN_TIMEOUT': '5'}
    seen = []
    for step in range(7):
        plan = dry(['--verbose', *options[step:]], dict(list(env.items())[max(step - 2, 0):]),
                   wrap=wrap if step < 6 else ())
        seen.append(plan.setting('shutdown-timeout'))
    assert seen == [('1', '--shutdown-timeout'), ('2', 'job.ini:3'),
                    ('3', 'LAUNCHD_SHUTDOWN_TIMEOUT'), ('4', 'PET_SHUTDOWN_TIMEOUT'),
                    ('5', 'TORCH_ELASTIC_SHUTDOWN_TIMEOUT'), ('6', f'{SYSTEM}:2'),
                    ('30', 'default')]


@needs_mounts
def test_each_value_has_its_own_precedence(dry, place):
    wrap = with_system_file(place, '[launchd]\nrole = system\nrdzv-id = system\nstdin = null\n'
                            'mpi-env = keep\nlocal_rank_arg = --system\n')
    place.write('job.ini', '[launchd]\nrole = file\nrdzv-id = file\n')
    plan = dry(['--verbose', '--role', 'flag', '--config', 'job.ini'],
               {'LAUNCHD_ROLE': 'ours', 'LAUNCHD_STDIN': 'inherit', 'PET_ROLE': 'pet',
                'PET_RDZV_ID': 'pet', 'LAUNCHD_MPI_ENV': 'scrub'}, wrap=wrap)
    assert [plan.setting(name) for name in
            ('role', 'rdzv-id', 'stdin', 'mpi-env', 'local_rank_arg', 'shutdown-timeout')] == [
        ('flag', '--role'), ('file', 'job.ini:3'), ('inherit', 'LAUNCHD_STDIN'),
        ('scrub', 'LAUNCHD_MPI_ENV'), ('--system', f'{SYSTEM}:6'), ('30', 'default')]


@needs_mounts
def test_the_nodes_launcher_stands_between_pet_and_the_system_file(dry, place):
    wrap = with_system_file(place, '[launchd]\nnnodes = 5\nnode_rank = 4\nmaster_addr = system\n'
                            'master_port = 99\n')
    rows = []
    for env in ({'PET_NNODES': '3', 'NNODES': '4', 'NODE_RANK': '1', 'MASTER_ADDR': 'env'},
                {'NNODES': '4', 'NODE_RANK': '1', 'MASTER_ADDR': 'env', 'MASTER_PORT': '7'}, {}):
        plan = dry([], env, wrap=wrap)
        rows.append([(plan.value(name), plan.source(name).rpartition('/')[2])
                     for name in ('nnodes', 'node_rank', 'master_addr', 'master_port')])
    system = 'launchd.conf'
    assert rows == [
        [('3', 'PET_NNODES'), ('1', 'NODE_RANK'), ('env', 'MASTER_ADDR'), ('99', f'{system}:5')],
        [('4', 'NNODES'), ('1', 'NODE_RANK'), ('env', 'MASTER_ADDR'), ('7', 'MASTER_PORT')],
        [('5', f'{system}:2'), ('4', f'{system}:3'), ('system', f'{system}:4'),
         ('99', f'{system}:5')]]


@needs_mounts
def test_the_system_file_is_no_job(refused, place):
    """... so that launchd@launchd is none, whatever is in it."""
    wrap = with_system_file(place, '[launchd]\nscript = /bin/true\n')
    for options, env in ([f'--config={SYSTEM}'], {}), ([], {'LAUNCHD_CONFIG': SYSTEM}):
        where = '--config' if options else 'LAUNCHD_CONFIG'
        refused(options, f'{where}: {SYSTEM} has the defaults of all jobs', 'no job can have the name launchd',
                env=env, wrap=wrap)


@needs_mounts
def test_an_error_in_the_system_file_is_named(refused, place):
    wrap = with_system_file(place, '[launchd]\n\nnprocs_per_node = 2\n')
    refused(native('dump'), f'{SYSTEM}:3: ', 'nprocs_per_node', 'did you mean nproc_per_node?',
            wrap=wrap)


@needs_mounts
@needs_root
@needs_open_build
def test_whoever_may_not_look_into_its_directory_runs_without_it(launch, place):
    """As packages make it, for root and the service's user. A file that can be seen is to be read."""
    wrap = with_system_file(place, '[launchd]\nnnodes = x\n')
    wrap += ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
    command = ['--no_python', '--use_env', '/bin/true']
    (place.path / 'etc/launchd').chmod(0o750)
    assert (launch(command, wrap=wrap).rc, launch(command, wrap=wrap[:-4]).rc) == (0, 2)
    (place.path / 'etc/launchd').chmod(0o755)
    (place.path / 'etc/launchd/launchd.conf').chmod(0o640)
    result = launch(command, wrap=wrap)
    assert (result.rc, result.err) == (2, f"launchd: error: {SYSTEM}: can't be read: Permission denied\n")


def test_variables_are_read_as_the_command_line_is(refused, dry):
    for name in ('LAUNCHD_NPROC_PER_NODE', 'PET_NPROC_PER_NODE'):
        assert dry([], {name: '2'}).setting('nproc_per_node') == ('2', name)
        refused(native('dump'), name, '"two"', 'whole number', env={name: 'two'})


@pytest.mark.parametrize('text, number', [('yes', '1'), ('off', '0')])
def test_flags_in_variables_and_files(dry, place, text, number):
    place.write('job.ini', f'[launchd]\nuse_env = {text}\n')
    script = place.write('train.py', '')
    for plan in (dry(['--config=job.ini'], command=[script]),
                 dry([], {'LAUNCHD_USE_ENV': text}, command=[script])):
        has_argument = '--local_rank=0' in plan.workers[0]['command']
        assert has_argument == (number == '0')


def test_an_empty_variable_is_not_set(dry):
    plan = dry(['--verbose'], {'PET_NNODES': '', 'LAUNCHD_ROLE': '', 'MASTER_ADDR': '', 'NODE_RANK': '',
                               'OMP_NUM_THREADS': ''})
    assert plan.value('nnodes') == '1' and plan.setting('role') == ('default', 'default')
    assert plan.source('master_addr') == 'one node'


def test_the_file_can_be_named_by_a_variable(dry, place):
    place.write('job.ini', '[launchd]\nrole = file\n')
    plan = dry([], {'LAUNCHD_CONFIG': 'job.ini'})
    assert plan.setting('role') == ('file', 'job.ini:2')
    assert plan.setting('config') == ('job.ini', 'LAUNCHD_CONFIG')


def test_every_setting_has_its_key(dry, launch, place):
    """The example that is made from the table names all keys; each is read back at its default."""
    example = (BUILD / 'config/docs/launchd.conf.example').read_text()
    flags = set(re.findall(r'^  (?:-\w, )?--([\w-]+)', launch(['--help']).out.partition(
        'Limited or without effect')[0], re.M))
    lines, flag_of, defaults, section = [], {}, {}, ''
    for title, key, default in re.findall(r'^(?:\[(\w+)\]|;([\w-]+) = (.*))$', example, re.M):
        section = title or section
        lines.append(f'[{title}]' if title else f'{key} = {default}')
        if key and section != 'env':
            own = f'{section}-{key}' in flags or section == 'check'
            flag_of[len(lines)] = flag = f'{section}-{key}' if own else key
            defaults[flag] = default
    acts = {'config', 'check', 'dry-run', 'print-completion', 'install-torchrun', 'explain', 'self-check',
            'mpirun-hosts', 'mpirun-hostfile', 'per-process', 'version', 'help', 'env', 'check-node',
            'json'}
    no_flag = {'script', 'args', *(f'check-{key}' for key in (
        'gpu-uuids', 'nvlinks', 'pcie-width', 'ecc-errors', 'gpu-memory', 'ib-ports', 'ib-rate', 'shm',
        'memlock', 'disk', 'clock', 'least-memory', 'least-compute', 'least-node', 'least-nics',
        'least-pairs', 'least-job'))}
    assert set(defaults) - no_flag == flags - acts
    given = {'nnodes': '1', 'node_rank': '0', 'master_addr': 'localhost', 'master_port': '0',
             'local-addr': 'localhost', 'python': '/bin/true', 'unset-env': 'X',
             'nccl_socket_ifname': 'lo', 'only-rank': '0', 'wrap': '/bin/true', 'wrap-ranks': '0',
             'on-signal': 'USR1=ignore', 'report': 'report.json', 'control-port': '29501',
             'key-file': 'key', 'interface': 'lo', 'store': 'rank0', 'restart-on': '1-9',
             'no-restart-on': 'SIGKILL', 'post-attempt': '/bin/true', 'log-dir': 'logs', 'events': 'fd:1', 'script': '/bin/true',
             'metrics-file': 'metrics.prom', 'metrics-listen': '127.0.0.1:9400',
             'ctl-socket': 'none', 'job-name': 'train', 'cluster-nodes': 'localhost', 'check-gpus': '8',
             'check-gpu-uuids': 'GPU-1,GPU-2', 'check-command': '/bin/true', 'check-nvlinks': '18',
             **{f'check-least-{what}': '18.5' for what in ('memory', 'compute', 'node', 'nics', 'pairs', 'job')},
             'check-pcie-width': '16', 'check-ib-ports': '8', 'check-ib-rate': '400', 'check-shm': '1G',
             'check-memlock': '1G', 'numa-binding': 'node', 'membind': 'local', 'omp-threads': '2', 'rlimit': 'core=0', 'nice': '19',
             'oom-score-adj': '1000', 'blackbox': 'box', 'stack-signal': 'USR2', 'preempt-watch': '/bin/true'}
    # beside a list of nodes, without --tf-config, beside --numa-binding and without --on-hang they are refused
    for other in [at for at, flag in flag_of.items()
                  if flag in ('cluster-hostfile', 'tf-roles', 'cpus-per-worker', 'hang-trace')]:
        lines[other - 1] = ''
        del flag_of[other]
    for at, flag in flag_of.items():
        lines[at - 1] += '' if defaults[flag] else given.get(flag, '')
    place.write('job.ini', '\n'.join(lines))
    plan = dry(['--config=job.ini'], command=[])
    for at, flag in flag_of.items():
        if flag != 'unset-env':
            assert plan.setting(flag)[1] == f'job.ini:{at}'
    edits = plan.edits()
    assert (edits['NAME']['value'], edits['X']['change']) == ('value', 'removed')


# tests/unit/config/test_ini.c has all that a file may hold, and test_mistakes.py the whole sentences.
@pytest.mark.parametrize('text, line, words', [
    ('[launchd]\n\nnode_timeout = 0.5\n', 3, ['node-timeout', '"0.5"', 'from 1 to 86400 seconds']),
    ('[launchd]\nbind = 0-3:\n', 2, ['bind', '"0-3:"', 'none|core|l3|numa|socket|gpu|auto', '0-3,8:4-7']),
    ('[launchd]\nrole = ' + 'x' * 190 + '\n', 2, ['197 bytes', '190']),
])
def test_errors_name_file_line_and_what_is_right(refused, place, text, line, words):
    place.write('job.ini', text)
    refused(['--config', 'job.ini', *native('dump')], f'job.ini:{line}: ', *words)


def test_env_section(launch, place):
    place.write('job.ini', '[env]\nA = a b\nPATH = /bin\nOMP_NUM_THREADS = 3\n')
    assert launch(['--config=job.ini', '--nproc_per_node=2', *native('dump')]).err == ''
    env = place.dumps()[1]['env']
    assert (env['A'], env['PATH'], env['OMP_NUM_THREADS']) == ('a b', '/bin', '3')


def test_env_of_the_command_line_wins_over_the_files(dry, place):
    place.write('job.ini', '[env]\nA = file\nB = file\n')
    edits = dry(['--config=job.ini', '--env', 'A=flag', '--unset-env', 'B'], {'B': 'x'}).edits()
    assert (edits['A']['value'], edits['A']['why']) == ('flag', '--env')
    assert edits['B']['change'] == 'removed'


def test_python_exec_is_below_the_flag(dry, place):
    for name in ('a', 'b'):
        place.write(name, '#!/bin/sh\n', 0o755)
    script = place.write('train.py', '')
    env = {'PYTHON_EXEC': './a'}
    plan = dry([], env, command=[script])
    assert (plan.value('program'), plan.source('program')) == ('./a', 'PYTHON_EXEC')
    plan = dry(['--python=./b'], env, command=[script])
    assert (plan.value('program'), plan.source('program')) == ('./b', '--python')


def test_a_file_names_the_script_and_its_arguments(dry, place):
    script = place.write('train.py', '')
    place.write('job.ini', '[launchd]\nuse_env = 1\nscript = train.py\n'
                           'args = --name "a b"\nargs = c\\ d\n')
    place.write('lines.ini', '[launchd]\nscript = train.py\nargs = x,\n  --name="a b"\n  c\\ d ; the last\n')
    plan = dry(['--config=lines.ini', '--use_env'], command=[])
    assert plan.workers[0]['command'][-4:] == ['train.py', 'x,', '--name=a b', 'c d']
    plan = dry(['--config=job.ini'], command=[])
    assert plan.workers[0]['command'][-4:] == ['train.py', '--name', 'a b', 'c d']
    assert plan.setting('script') == ('train.py', 'job.ini:3')
    assert plan.setting('args') == ("--name 'a b' 'c d'", 'job.ini:4-5')
    plan = dry(['--config=job.ini'], command=[script, 'other'])
    assert plan.workers[0]['command'][-2:] == [str(script), 'other']
    assert not {'script', 'args'} & set(plan.json['settings'])
