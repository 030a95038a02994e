"""launchd --mpirun-hosts: this process becomes Open MPI's mpirun, which starts one launchd on each node.
Here mpirun is a script that tells what it was given; tests/hosts has the real one."""
import json
import os
import resource
import shlex
import signal

import pytest

from harness import BUILD

FAKE = """#!/usr/bin/python3
import json, os, resource, sys
json.dump({'argv': sys.argv, 'env': dict(os.environ), 'pid': os.getpid(), 'cwd': os.getcwd(),
           'nofile': resource.getrlimit(resource.RLIMIT_NOFILE),
           'fds': sorted(os.listdir('/proc/self/fd'))}, open(os.environ['TOLD'], 'w'))
sys.exit(int(os.environ.get('CODE', '0')))
"""
AS_ROOT = ['--allow-run-as-root'] if os.geteuid() == 0 else []
MAP = ['--map-by', 'ppr:1:node', '--bind-to', 'none']


@pytest.fixture
def mpirun(place, launch):
    """mpirun(argv, env=...) -> what it was given, with the Result in it; its path is mpirun.path."""
    told = place.path / 'told.json'

    def run(argv, env=None, **how):
        result = launch(argv, {'PATH': f'{place.path}/bin:/usr/bin:/bin', 'TOLD': str(told),
                               'LAUNCHD_CONTROL': None, **(env or {})}, **how)
        given = json.loads(told.read_text()) if told.exists() else {}
        told.unlink(missing_ok=True)
        return {**given, 'result': result}

    run.path = place.write('bin/mpirun', FAKE, 0o755)
    return run


def exported(argv):
    return [argv[i + 1] for i, word in enumerate(argv) if word == '-x']


def without_exports(argv):
    return [word for i, word in enumerate(argv) if '-x' not in (word, argv[i - 1])]


def test_this_process_becomes_mpirun(mpirun, place):
    """Its arguments are ours, in order; its exit code is ours; the script isn't looked for here."""
    place.write('job.ini', '[launchd]\nrole = trainer\n')
    given = mpirun(['--mpirun-hosts', 'n0,n1', '--nproc-per-node=2', '--config', 'job.ini', '-t3', '--',
                    '-train.py', '--', '--lr', 'a b', '', '--mpirun-hosts', '*'], {'CODE': '7'})
    assert (given['result'].rc, given['result'].out, given['result'].err) == (7, '', '')
    assert given['pid'] == given['result'].pid
    assert without_exports(given['argv']) == [
        mpirun.path, *AS_ROOT, *MAP, '-n', '2', '--host', 'n0:1,n1:1', str(BUILD / 'launchd'),
        '--nproc-per-node=2', '--config', 'job.ini', '-t3', '--', '-train.py', '--', '--lr', 'a b', '',
        '--mpirun-hosts', '*']
    assert given['cwd'] == str(place.path)


def test_variables_go_by_their_names(mpirun):
    """... and mpirun finds their values, and all others, where they were."""
    secret = {'LAUNCHD_KEY': 'the key', 'WANDB_API_KEY': 'api key', 'NCCL_DEBUG': 'INFO', 'PET_ROLE': 'r',
              'HOSTNAME': 'here', 'SSH_AUTH_SOCK': '/s', 'NODE_RANK': '1', 'OMPI_MCA_btl': 'tcp',
              'BASH_FUNC_module%%': '() { :; }'}
    given = mpirun(['--mpirun-hosts=n0', 'train.py'], secret)
    names = exported(given['argv'])
    assert names == sorted(names)
    assert set(names) & secret.keys() == {'LAUNCHD_KEY', 'WANDB_API_KEY', 'NCCL_DEBUG', 'PET_ROLE'}
    assert 'PATH' in names and 'HOME' not in names
    assert given['env'].items() >= secret.items()
    assert not {'the key', 'api key', 'INFO'} & set(given['argv'])


def test_what_the_launcher_changed_of_itself_is_undone(mpirun):
    given = mpirun(['--mpirun-hosts=n0', 'train.py'],
                   before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200)))
    assert given['nofile'] == [100, 200]
    assert given['fds'] == ['0', '1', '2', '3']  # the last one lists them


SIGNALS = '#!/bin/sh\nexec /usr/bin/grep SigIgn /proc/self/status\n'


@pytest.mark.parametrize('ignored', [[], [signal.SIGPIPE, signal.SIGUSR1]])
def test_signals_are_ignored_as_before(mpirun, place, ignored):
    place.write('bin/mpirun', SIGNALS, 0o755)
    given = mpirun(['--mpirun-hosts=n0', 'train.py'],
                   before=lambda: [signal.signal(number, signal.SIG_IGN) for number in ignored])
    assert int(given['result'].out.split()[1], 16) == sum(1 << number - 1 for number in ignored)


@pytest.mark.parametrize('name, text', [
    ('Open MPI', '# the cluster\nn0 slots=8 max_slots=8\n\nn1 slots=8  # spare\n'),
    ('DeepSpeed', 'n0 slots=8\nn1 slots=8\n'), ('horovodrun', 'n0:8\nn1 slots=8\n')])
def test_a_file_of(mpirun, place, name, text):
    del name
    place.write('hosts', text)
    argv = mpirun(['--mpirun-hostfile', 'hosts', 'train.py'])['argv']
    assert argv[argv.index('--host'):][:2] == ['--host', 'n0:1,n1:1']
    assert argv[-2:] == ['--nproc_per_node=8', 'train.py']


def test_azure_mls_file(mpirun, place, refused):
    hosts = place.write('azure', 'n0 slots=1\nn1 slots=1\n')
    argv = ['--mpirun-hostfile=azureml', '--nproc_per_node=8', 'train.py']
    given = mpirun(argv, {'AZUREML_MPI_HOSTFILE': hosts})['argv']
    assert 'n0:1,n1:1' in given and '--nproc_per_node=1' not in given
    assert 'AZUREML_MPI_HOSTFILE' in refused(argv, 'is not set', './azureml')
    refused(argv, 'AZUREML_MPI_HOSTFILE: /nosuch: No such file', env={'AZUREML_MPI_HOSTFILE': '/nosuch'})


def test_what_a_file_has_for_nobody(mpirun, place):
    """... is read over, as mpirun does, which doesn't say so."""
    place.write('hosts', 'n0 slots=2\nn1 n2 slots=2\n')
    given = mpirun(['--mpirun-hostfile', 'hosts', 'train.py'])
    assert 'n0:1,n1:1' in given['argv']
    [line] = given['result'].err.splitlines()
    assert line.startswith('launchd: warning: hosts:2: "n2" is ignored'), line


@pytest.mark.parametrize('name', ['torchrun', 'launchd'])
def test_the_nodes_run_what_was_called(mpirun, place, name):
    """A link by its own name, as torchrun's defaults come with it; found on PATH, or from here."""
    called = place.path / 'bin' / name
    called.symlink_to(BUILD / 'launchd')
    for how in ('PATH', 'relative'):
        place.write('start', f'#!/bin/sh\nexec {name if how == "PATH" else "./bin/" + name} "$@"\n', 0o755)
        given = mpirun(['--mpirun-hosts=n0', 'train.py'], program=place.path / 'start')
        assert given['argv'][-2:] == [str(called), 'train.py'], given


def test_dry_run_is_the_command(mpirun, place):
    """Quoted for a shell, which then runs the same."""
    argv = ['--mpirun-hosts', 'n0:2,n1:1', 'train.py', "it's", '$HOME', '']
    real = mpirun(argv)
    dry = mpirun(['--dry-run', *argv])
    assert 'argv' not in dry and (dry['result'].rc, dry['result'].err) == (0, '')
    shown = dry['result'].out.splitlines()[-1]
    assert shlex.split(shown) == real['argv']
    as_json = json.loads(mpirun(['--dry-run=json', *argv])['result'].out)
    assert as_json['command'] == real['argv']


@pytest.mark.parametrize('argv, env, words', [
    (['--mpirun-hosts=n0'], {'OMPI_COMM_WORLD_RANK': '0'}, ['--mpirun-hosts', 'mpirun has started']),
    (['--mpirun-hosts=n0', '--mpirun-hostfile=f'], {}, ['both list the nodes']),
    (['--mpirun-hosts=n0', '--per-process'], {}, ['--per-process', 'a launcher for each worker']),
    (['--mpirun-hosts=n0'], {'LAUNCHD_NODE_RANK': '0'}, ['LAUNCHD_NODE_RANK']),
    (['--mpirun-hosts=n0,n1,n0'], {}, ['n0 is listed twice']),
    (['--mpirun-hostfile=twice'], {}, ['twice:3: n0 is listed twice, first at twice:1: slots=N']),
    (['--mpirun-hostfile=none'], {}, ['none: No such file']),
])
def test_refused(refused, place, argv, env, words):
    place.write('bin/mpirun', FAKE, 0o755)
    place.write('twice', 'n0\nn1\nn0 slots=2\n')
    refused([*argv, 'train.py'], *words, env={'PATH': f'{place.path}/bin', 'TOLD': '/dev/null', **env})


def test_neither_a_variable_nor_a_key(launch, place):
    """They say what to do, so no file and no environment may: a worker's launchd would run mpirun."""
    plan = launch(['--dry-run=json', '/bin/true'], {'LAUNCHD_MPIRUN_HOSTS': 'n0'})
    assert plan.rc == 0 and 'mpirun' not in json.loads(plan.out)['settings']
    place.write('job.ini', '[launchd]\nmpirun-hosts = n0\n')
    assert launch(['--config', 'job.ini', '/bin/true']).rc == 2


def test_no_script(refused, place):
    place.write('bin/mpirun', FAKE, 0o755)
    refused(['--mpirun-hosts=n0'], 'no training script', env={'PATH': f'{place.path}/bin'})


def test_without_a_usable_mpirun(refused, place):
    argv, env = ['--mpirun-hosts=n0', 'train.py'], {'PATH': f'{place.path}/bin'}
    refused(argv, 'no mpirun on PATH', 'openmpi', env=env, rc=127)
    place.write('bin/mpirun', FAKE)
    refused(argv, 'mpirun', 'Permission denied', env=env, rc=126)
    (place.path / 'bin' / 'mpirun').unlink()
    place.write('bin/mpiexec.hydra', FAKE, 0o755)
    (place.path / 'bin' / 'mpirun').symlink_to('mpiexec.hydra')
    refused(argv, "is MPICH's", f'{place.path}/bin/mpirun', env=env, rc=126)
    (place.path / 'bin' / 'mpirun').unlink()
    place.write('bin/mpirun', '#!/nosuch/shell\n', 0o755)
    refused(argv, 'bin/mpirun', "can't be executed", env=env, rc=127)


def test_check(mpirun, place):
    place.write('job.ini', '[launchd]\nscript = on-the-nodes.py\nstdin = null\n')
    right = mpirun(['--check', 'job.ini', '--mpirun-hosts=n0'])
    assert 'argv' not in right
    assert (right['result'].rc, right['result'].out) == (0, 'job.ini: no errors\n'), right
    wrong = mpirun(['--check', 'job.ini', '--mpirun-hosts=n0', '--node_rank=0'])['result']
    assert (wrong.rc, wrong.out) == (2, 'job.ini: 1 error\n') and '--node_rank' in wrong.err
