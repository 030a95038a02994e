"""Section 3: --dry-run prints, without starting anything, each value with its source, each
worker's full command and its environment's changes; golden files hold the two formats
(pytest --update-golden writes them anew)."""
import json
import os
import re

import pytest

from harness import BUILD, TESTS, native

GOLDEN = TESTS / 'golden'
MPI = {'OMPI_COMM_WORLD_RANK': '1', 'OMPI_COMM_WORLD_SIZE': '2', 'OMPI_COMM_WORLD_LOCAL_RANK': '0',
       'OMPI_COMM_WORLD_LOCAL_SIZE': '1', 'OMPI_COMM_WORLD_NODE_RANK': '0'}
CASES = {
    'one_node': (['--nproc_per_node', '2', 'train.py', '--lr', '1e-4', 'a b', "it's"], {}),
    'azure_ml': (['--nproc_per_node=2', '--use_env', 'train.py'],
                 {**MPI, 'AZ_BATCH_MASTER_NODE': '10.1.2.3:6000', 'OMPI_MCA_orte_hnp_uri': 'x',
                  'PMIX_RANK': '1', 'OMPI_MCA_btl': 'tcp,self', 'OMP_NUM_THREADS': '4'}),
    'static_nodes': (['--nnodes', '2', '--node_rank', '1', '--master_addr', 'head',
                      '--master_port', '1234', '-m', 'package.train', '--', '--x'], {}),
    'config_file': (['--config', 'job.ini', '--role', 'by-flag', '--env', 'B=2', '--unset-env',
                     'GONE', 'train.py'],
                    {'LAUNCHD_SHUTDOWN_TIMEOUT': '2.5', 'PET_RDZV_ID': 'by-pet', 'GONE': 'x',
                     'NODE_RANK': '0'}),
    'slurm_step': (['--no_python', '--use_env', '--mpi-env=scrub', './program', '--x'],
                   {'SLURM_STEP_ID': '0', 'SLURM_PROCID': '1', 'SLURM_STEP_NUM_TASKS': '2',
                    'SLURM_STEP_NUM_NODES': '2', 'SLURM_STEP_NODELIST': 'gpu[03-04]',
                    'SLURM_JOB_ID': '7'}),
    'debugger': (['--nproc_per_node=4', '--only-rank=6', '--wrap', "gdb -ex 'set pagination off' "
                  '--args', '--wrap-ranks=0,4-7', '--on-signal=INT=forward,USR1=stop:5,HUP=ignore',
                  '--signals-to-handle=SIGTERM,SIGALRM', '--shutdown-timeout=60',
                  '--report=report.%n.json', 'train.py'],
                 {**MPI, 'MASTER_ADDR': 'head', 'OMPI_MCA_odls_base_sigkill_timeout': '10',
                  'OMP_NUM_THREADS': '4'}),
    'logs': (['--nproc_per_node=3', '--log-dir=logs', '--rdzv-id=r', '-r', '0:1,2:3', '-t', '1:1',
              '--log-line-prefix-template=[${time} ${rank}] ', '--log-max-size=64M',
              '--duplicate-stdout-filters=loss', '--local-ranks-filter=0-1',
              '--on-signal=USR1=reopen', '--events=events.%n.jsonl',
              '--metrics-file=%n.prom', '--metrics-listen=[::1]:9400',
              '--journal=messages', '--ready-when=joined', 'train.py'],
             {'OMP_NUM_THREADS': '4'}),
    'per_process': (['--per-process', '--use_env', 'train.py'],
                    {**MPI, 'OMPI_COMM_WORLD_LOCAL_RANK': '1', 'OMPI_COMM_WORLD_LOCAL_SIZE': '2',
                     'PMIX_NAMESPACE': '4', 'PMIX_RANK': '1', 'PMIX_SERVER_URI4': 'x'}),
    'listed_nodes': (['--config', 'listed.ini', '--node_rank=1', 'train.py'], {}),
    'head_node': (['--mpirun-hostfile=slots', '--shutdown-timeout=2.5', '--config', 'job.ini', '-t3',
                   'train.py', '--name', "it's"], {'LAUNCHD_KEY': 'a secret', 'NCCL_DEBUG': 'INFO'}),
    'libraries': (['--nproc_per_node=2', '--tf-config', '--tf-roles=ps=1,worker=1', '--jax-env',
                   'train.py'],
                  {'OMP_NUM_THREADS': '4', 'TF_CONFIG': 'x', 'JAX_LOCAL_DEVICE_IDS': '0,1'}),
    'torchrun': (['--standalone', '--nproc-per-node=2', '--monitor-interval=1', 'train.py',
                  '--rank=$local_rank'], {}),
}


@pytest.fixture
def desk(place):
    """Files that the cases name. Each would leave a trace if it were started; a script in Python's place
    is asked for its torch, and has none."""
    traced = '#!/bin/sh\n[ "$1" = -c ] || echo started > "$HOME/started"\n'
    place.write('bin/python3', traced, 0o755)
    place.write('program', traced, 0o755)
    place.write('bin/gdb', traced, 0o755)
    place.write('train.py', 'open("started", "w")\n')
    place.write('job.ini', '[launchd]\nrole = by-file\nlocal_rank_arg = --local-rank\n'
                '[env]\nA = 1\nB = 1\n')
    place.write('listed.ini', '[launchd]\nuse_env = yes\n[cluster]\nhostfile = hosts\n')
    place.write('bin/mpirun', traced, 0o755)
    place.write('slots', 'n0 slots=2\nn1:2\nn2:3\n')
    place.write('hosts', '# all nodes\nn0 slots=2\ngpu[01-02].cluster slots=3 max_slots=4\n')
    return place


def normal(text, place):
    """The parts of this machine, and of this run, by names."""
    text = text.replace(str(place.path), '<dir>').replace(str(BUILD), '<build>')
    # of mpirun's command: root's, and a sanitizer's
    text = re.sub(r' --allow-run-as-root| -x [A-Z]+SAN_OPTIONS', '', text)
    text = re.sub(r'"--allow-run-as-root",|"-x","[A-Z]+SAN_OPTIONS",', '', text)
    text = re.sub(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', '<uuid>', text)
    return re.sub(r'\b\d+ CPUs are there', '<n> CPUs are there', text)


@pytest.fixture
def shown(launch, desk):
    """shown(case, how, ...) -> what --dry-run prints of a case, without this machine's parts."""

    def run(case, how, *options):
        argv, env = CASES[case]
        name = 'torchrun' if case == 'torchrun' else 'launchd'
        result = launch([f'--dry-run={how}', *options, *argv],
                        {**env, 'PATH': str(desk.path / 'bin')}, name=name)
        assert (result.rc, result.err) == (0, '')
        return normal(result.out, desk)

    return run


@pytest.mark.parametrize('how', ['text', 'json'])
@pytest.mark.parametrize('case', CASES)
def test_golden(case, how, shown, desk, request):
    printed = shown(case, how)
    if how == 'json':
        json.loads(printed)
    golden = GOLDEN / f'{case}.{"txt" if how == "text" else "json"}'
    if request.config.getoption('--update-golden'):
        golden.write_text(printed)
    assert printed == golden.read_text()
    assert not (desk.path / 'started').exists()
    assert list(desk.tmp.iterdir()) == []


def divided(printed, how):
    """The rows of the settings, (flag, source, row), and the output without them."""
    if how == 'json':
        plan = json.loads(printed)
        rows = plan.pop('settings').items()
        return [(flag, row['source'], row) for flag, row in rows], plan
    before, title, rest = printed.partition('\nSettings\n')
    rows, end, after = rest.partition('\n\n')
    assert title and end
    return [(row.split()[0], row.rpartition('  (')[2][:-1], row) for row in rows.splitlines()], \
        before + end + after


@pytest.mark.parametrize('how', ['text', 'json'])
@pytest.mark.parametrize('case', [case for case in CASES if case != 'head_node'])
def test_defaults_are_listed_with_verbose_only(case, how, shown):
    """So that a new setting with a default changes no golden file."""
    rows, rest = divided(shown(case, how), how)
    all_rows, all_rest = divided(shown(case, how, '--verbose'), how)
    defaults = [row for row in all_rows if row[1] == 'default']
    assert len(defaults) > 50
    assert [row[:2] for row in all_rows if row[0] == 'verbose'] == [('verbose', '--verbose')]
    assert rows == [row for row in all_rows if row not in defaults and row[0] != 'verbose']
    assert rest == all_rest


def test_a_head_node_lists_no_settings(shown):
    """Each node has its own. --verbose reaches them by their command."""
    for how in ('text', 'json'):
        plain, verbose = shown('head_node', how), shown('head_node', how, '--verbose')
        assert verbose != plain == re.sub(r' --verbose|"--verbose",', '', verbose)


def test_a_terminal_is_the_workers_own(launch, desk):
    """Each of the two streams by itself; never where mpirun or srun has started us."""
    for env, way in (({}, 'inherit'), ({'SLURM_STEP_ID': '0', 'SLURM_PROCID': '0',
                                        'SLURM_STEP_NUM_TASKS': '1'}, 'pipe')):
        master, slave = os.openpty()
        result = launch(['--dry-run=json', '/bin/true'], env, err=slave)
        worker = json.loads(result.out)['workers'][0]
        os.close(slave)
        os.close(master)
        assert result.rc == 0
        assert worker['stderr'] == {'way': way, 'file': None, 'console': True, 'journal': False,
                                    'prefix': None, 'filtered': False}
        assert worker['stdout']['way'] == 'pipe'


def test_events_to_a_descriptor(launch, refused, desk):
    read, write = os.pipe()
    try:
        result = launch([f'--events=fd:{write}', '--dry-run=json', '/bin/true'], pass_fds=[write])
        assert json.loads(result.out)['job']['events'] == {'value': f'fd:{write}',
                                                           'source': '--events'}
        refused([f'--events=fd:{read}', '/bin/true'], f'descriptor {read}', 'reading only',
                pass_fds=[read])
        refused([f'--events=fd:{write}', '/bin/true'], f'descriptor {write} is not open')
    finally:
        os.close(read)
        os.close(write)


def test_text_is_the_default(launch, desk):
    bare = launch(['--dry-run', 'train.py'])
    text = launch(['--dry-run=text', 'train.py'])
    assert bare.rc == 0 and bare.out == text.out


def test_dry_run_is_no_word_in_front_of_the_script(launch, desk):
    """--dry-run takes its value by '=' only, so that `--dry-run json` runs a script json."""
    result = launch(['--dry-run', 'json'])
    assert result.rc == 127 and 'json' in result.err


def test_other_formats_are_refused(refused, desk):
    refused(['--dry-run=yaml', 'train.py'], '--dry-run', 'yaml', 'text|json')


def test_errors_are_those_of_a_real_run(refused, desk):
    refused(['--dry-run', '--node_rank', '2', '--nnodes', '2', 'train.py'], '--node_rank', '2')
    refused(['--dry-run', 'absent.py'], 'absent.py', rc=127)


def test_a_node_without_the_only_rank_shows_no_worker(launch, dry, desk):
    env = {**MPI, 'MASTER_ADDR': 'head'}
    plan = dry(['--only-rank=0'], env)
    assert plan.workers == [] and plan.value('started_ranks') == 'none'
    assert plan.said() == ['--only-rank: rank 0 is on node 0: this is node 1, so nothing is '
                           'started here']
    text = launch(['--dry-run', '--only-rank=0', 'train.py'], env)
    assert text.rc == 0 and 'Environment of every worker' not in text.out


def test_the_environment_shown_is_the_one_workers_get(launch, dry, place):
    """The edits of --dry-run, applied to the launcher's environment, are a real worker's."""
    env = {**MPI, 'MASTER_ADDR': 'head', 'MASTER_PORT': '2', 'PMIX_RANK': '1', 'GONE': 'x',
           'LAUNCHD_CONTROL': 'off'}
    options = ['--nproc_per_node', '2', '--env', 'A=1', '--unset-env', 'GONE']
    plan = dry(options, env)
    assert launch(native('dump', *options), env).rc == 0
    for rank, dump in place.dumps().items():
        expected = place.environment(env)
        for edit in plan.workers[rank - 2]['environment']:
            if edit['value'] is None:
                expected.pop(edit['name'])
            else:
                expected[edit['name']] = edit['value']
        error_file = dump['env'].pop('TORCHELASTIC_ERROR_FILE')
        shown = expected.pop('TORCHELASTIC_ERROR_FILE')
        assert shown.partition('/')[2] == os.path.relpath(error_file, place.tmp).partition('/')[2]
        assert dump['env'] == expected


STATIC = ['--nnodes=2', '--node_rank=1', '--master_addr=127.0.0.1', '--dry-run']


def test_a_key_is_checked_and_not_shown(launch, place):
    path = place.write('job.key', 'a secret that is long enough\n', 0o600)
    shown = launch([*STATIC, '--control=auto', f'--key-file={path}', *native('dump')])
    assert shown.rc == 0 and re.search(rf'^  key +{path} +\(--key-file\)$', shown.out, re.M), shown
    from_env = launch([*STATIC, '--control=auto', *native('dump')],
                      {'LAUNCHD_KEY': 'a secret that is long enough'})
    assert re.search(r'^  key +LAUNCHD_KEY +\(environment\)$', from_env.out, re.M), from_env
    assert 'a secret' not in shown.out + from_env.out


def test_a_key_that_others_may_read(refused, place):
    path = place.write('job.key', 'a secret that is long enough\n', 0o644)
    refused([*STATIC, '--control=auto', f'--key-file={path}', *native('dump')], '--key-file',
            'others may read or write it')
    refused([*STATIC, '--control=auto', '--key-file=gone', *native('dump')], 'gone',
            'No such file or directory')
