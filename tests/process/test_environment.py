"""Section 4: the environment of a worker. openmpi_environment.txt is what mpirun of Open MPI 4.1.4
gives a process on a node that is not its own (names as recorded, hosts and numbers made up)."""
import json
import pathlib
import socket
import stat

import pytest

from harness import BUILD, native

RECORDING = pathlib.Path(__file__).parent / 'openmpi_environment.txt'
RECORDED = dict(line.split('=', 1) for line in RECORDING.read_text().splitlines())
REWRITTEN = {f'OMPI_COMM_WORLD_{name}' for name in
             ('RANK', 'SIZE', 'LOCAL_RANK', 'LOCAL_SIZE', 'NODE_RANK')}
# The user's own words to Open MPI and to the network stays.
TUNING = {'OMPI_MCA_btl_tcp_if_include', 'OMPI_MCA_oob_tcp_if_include', 'HFI_NO_BACKTRACE',
          'IPATH_NO_BACKTRACE'}
MASTER = {'MASTER_ADDR': 'head', 'MASTER_PORT': '1234'}


def test_the_recording_is_whole():
    families = [sum(name.startswith(prefix) for name in RECORDED)
                for prefix in ('OMPI_', 'OMPI_MCA_', 'PMIX_')]
    assert families == [40, 28, 18]


def ours(dump, place):
    """The worker's environment without what every process of this test has."""
    return {name: value for name, value in dump['env'].items()
            if name not in place.environment({'LAUNCHD_CONTROL': ''})}


@pytest.mark.parametrize('node', [0, 2])
def test_every_variable_and_its_formula(launch, place, node):
    argv = ['--nnodes=3', f'--node_rank={node}', '--master_addr=h', '--master_port=7',
            '--role=r', '--rdzv-id=id', '--nproc_per_node=2', *native('dump')]
    assert launch(argv).rc == 0
    dumps = place.dumps()
    assert set(dumps) == {2 * node, 2 * node + 1}
    for local in range(2):
        env = ours(dumps[2 * node + local], place)
        env.pop('TORCHELASTIC_ERROR_FILE')
        assert env == {
            'RANK': str(2 * node + local), 'LOCAL_RANK': str(local), 'WORLD_SIZE': '6',
            'LOCAL_WORLD_SIZE': '2', 'NODE_RANK': str(node), 'GROUP_RANK': str(node),
            'GROUP_WORLD_SIZE': '3', 'ROLE_NAME': 'r', 'ROLE_RANK': str(2 * node + local),
            'ROLE_WORLD_SIZE': '6', 'MASTER_ADDR': 'h', 'MASTER_PORT': '7',
            'TORCHELASTIC_RUN_ID': 'id', 'TORCHELASTIC_RESTART_COUNT': '0',
            'TORCHELASTIC_MAX_RESTARTS': '0', 'TORCHELASTIC_USE_AGENT_STORE': 'False',
            'TORCH_NCCL_ASYNC_ERROR_HANDLING': '1', 'NCCL_ASYNC_ERROR_HANDLING': '1',
            'OMP_NUM_THREADS': '1'}


def test_inherited_values_of_the_same_names_are_replaced(launch, place):
    stale = {name: 'stale' for name in (
        'RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE', 'GROUP_RANK', 'ROLE_RANK',
        'TORCHELASTIC_RUN_ID', 'TORCHELASTIC_USE_AGENT_STORE', 'TORCHELASTIC_ERROR_FILE')}
    assert launch(native('dump'), stale).rc == 0
    assert 'stale' not in place.dumps()[0]['env'].values()


def test_error_files(start, place):
    """A file of each worker's own, in a directory of the run that only its user may enter."""
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(native('dump', '--nproc_per_node=2'), {'TELL': ready.path, 'GO': go.path})
    ready.expect('ready', 2)
    runs = list(place.tmp.iterdir())
    assert len(runs) == 1 and stat.S_IMODE(runs[0].stat().st_mode) == 0o700
    files = [pathlib.Path(place.dumps()[rank]['env']['TORCHELASTIC_ERROR_FILE'])
             for rank in range(2)]
    assert files[0] != files[1]
    for rank, file in enumerate(files):
        assert runs[0] in file.parents and 'attempt_0' in str(file) and not file.exists()
        file.write_text('{"message": "what @record writes"}')
    go.go(2)
    assert job.end().rc == 0
    assert list(place.tmp.iterdir()) == []


@pytest.mark.parametrize('end, rc', [('exit:3', 3), ('signal:9', 137)])
def test_the_runs_directory_is_removed_after_a_failure_too(launch, place, end, rc):
    assert launch(native('ending', '--nproc_per_node=2'), {'END_1': end}).rc == rc
    assert list(place.tmp.iterdir()) == []


def test_without_tmpdir_it_is_in_tmp(launch, place):
    assert launch(native('dump'), {'TMPDIR': None}).rc == 0
    # a batch system's that is gone, as Python's tempfile has it
    assert launch(native('dump'), {'TMPDIR': '/nowhere'}).rc == 0
    assert place.dumps()[0]['env']['TORCHELASTIC_ERROR_FILE'].startswith('/tmp/launchd_')
    # a worker may change its directory
    assert launch(native('dump'), {'TMPDIR': 'tmp'}).rc == 0
    assert place.dumps()[0]['env']['TORCHELASTIC_ERROR_FILE'].startswith(f'{place.tmp}/launchd_')
    file = pathlib.Path(place.dumps()[0]['env']['TORCHELASTIC_ERROR_FILE'])
    assert file.parts[:2] == ('/', 'tmp') and not file.parent.exists()


@pytest.mark.parametrize('given, expected', [
    ({}, ('1', '1')), ({'NCCL_ASYNC_ERROR_HANDLING': '0'}, ('0', '0')),
])
def test_nccl_error_handling_is_set_if_unset(launch, place, given, expected):
    assert launch(native('dump'), given).rc == 0
    env = place.dumps()[0]['env']
    assert (env['TORCH_NCCL_ASYNC_ERROR_HANDLING'], env['NCCL_ASYNC_ERROR_HANDLING']) == expected


@pytest.mark.parametrize('nproc, given, expected, said', [
    (2, None, '1', True), (1, None, None, False), (2, '7', '7', False), (1, '7', '7', False)])
def test_omp_num_threads(launch, place, nproc, given, expected, said):
    result = launch(native('dump', f'--nproc_per_node={nproc}'), {'OMP_NUM_THREADS': given})
    assert [dump['env'].get('OMP_NUM_THREADS') for dump in place.dumps().values()] == \
        [expected] * nproc
    assert ('OMP_NUM_THREADS' in result.err) == said
    assert len(result.err.splitlines()) == int(said)


def mpi(place, launch, *options):
    result = launch([*options, '--nproc_per_node=2', *native('dump')],
                    {**RECORDED, **MASTER, 'OMP_NUM_THREADS': '1'})
    assert result.rc == 0
    return result, [place.dumps()[rank]['env'] for rank in (4, 5)]


def test_wire_up_is_removed_and_identity_rewritten(launch, place):
    _, envs = mpi(place, launch)
    for local, env in enumerate(envs):
        assert {name for name in RECORDED if name in env} == REWRITTEN | TUNING
        assert env['OMPI_VERSION'] == '4'  # else JAX asks mpi4py
        assert {name: env[name] for name in REWRITTEN} == {
            'OMPI_COMM_WORLD_RANK': str(4 + local), 'OMPI_COMM_WORLD_SIZE': '8',
            'OMPI_COMM_WORLD_LOCAL_RANK': str(local), 'OMPI_COMM_WORLD_LOCAL_SIZE': '2',
            'OMPI_COMM_WORLD_NODE_RANK': str(local)}
        assert all(env[name] == RECORDED[name] for name in TUNING)


def test_keep_leaves_all_and_warns_where_several_would_share_it(launch, place, dry):
    for env in mpi(place, launch, '--mpi-env=keep')[1]:
        assert {name: env[name] for name in RECORDED} == RECORDED
    env = {**RECORDED, **MASTER, 'OMPI_COMM_WORLD_RANK': '0'}
    warnings = dry(['--mpi-env=keep', '--nproc_per_node=2'], env).warnings()
    assert len(warnings) == 1 and warnings[0].startswith('--mpi-env: ')
    assert dry(['--mpi-env=keep'], env).warnings() == []


@pytest.mark.parametrize('policy, kept', [('keep', True), ('rewrite', False)])
def test_who_keeps_the_identity_has_pmis_descriptor_too(launch, place, policy, kept):
    """Hydra's processes speak with it over an inherited socket, whose number is in the environment."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        result = launch([f'--mpi-env={policy}', '--nproc_per_node=1', *native('dump')], {
            'PMI_RANK': '0', 'PMI_SIZE': '1', 'PMI_FD': str(theirs.fileno())},
            pass_fds=[theirs.fileno(), ours.fileno()])
        assert result.rc == 0, result
        dump = place.dumps()[0]
        assert set(dump['fds']) == {'0', '1', '2', *([str(theirs.fileno())] if kept else [])}
        assert dump['env'].get('PMI_FD') == (str(theirs.fileno()) if kept else None)


@pytest.mark.parametrize('fd', ['3', '4', '5', '77', '-1', 'x'])
def test_a_name_of_a_descriptor_that_is_not_open_does_no_harm(launch, place, fd):
    """Low numbers are those that launchd itself has later."""
    result = launch(['--mpi-env=keep', *native('dump')],
                    {'PMI_RANK': '0', 'PMI_SIZE': '1', 'PMI_FD': fd})
    assert result.rc == 0, result
    assert set(place.dumps()[0]['fds']) == {'0', '1', '2'}


def test_a_restart_of_who_keeps_the_identity_is_warned_of(dry):
    env = {'PMI_RANK': '0', 'PMI_SIZE': '1'}
    [warning] = dry(['--mpi-env=keep', '--max-restarts=1'], env).warnings()
    assert warning.startswith('--max-restarts: ') and 'MPI_Init' in warning
    assert dry(['--max-restarts=1'], env).warnings() == []


def test_only_names_that_were_set_are_rewritten(launch, place):
    assert launch(native('dump'), {'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '1'}
                  ).rc == 0
    assert {name for name in place.dumps()[0]['env'] if name.startswith('OMPI')} == \
        {'OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE'}


STEP = {'SLURM_JOB_ID': '7', 'SLURM_STEP_ID': '0', 'SLURM_STEPID': '0', 'SLURM_STEP_NUM_TASKS': '1',
        'SLURM_STEP_NUM_NODES': '1', 'SLURM_PROCID': '0', 'SLURM_LOCALID': '0', 'SLURM_NODEID': '0',
        'SLURM_NTASKS': '1', 'SLURM_STEP_NODELIST': 'n4', 'SLURM_TASK_PID': '99',
        'SLURM_JOB_NODELIST': 'n[4-5]', 'SLURM_TASKS_PER_NODE': '1(x2)'}


def test_workers_as_tasks_of_slurm(launch, place):
    assert launch(['--mpi-env=rewrite-slurm', '--nproc_per_node=3', *native('dump')], STEP).rc == 0
    dumps = place.dumps()
    assert len(dumps) == 3
    for rank, dump in dumps.items():
        assert {name: value for name, value in dump['env'].items() if name.startswith('SLURM_')} == {
            'SLURM_JOB_ID': '7', 'SLURM_JOB_NODELIST': 'n[4-5]', 'SLURM_PROCID': str(rank),
            'SLURM_LOCALID': str(rank), 'SLURM_NODEID': '0', 'SLURM_NTASKS': '3', 'SLURM_NPROCS': '3',
            'SLURM_NTASKS_PER_NODE': '3', 'SLURM_STEP_NUM_TASKS': '3', 'SLURM_STEP_NUM_NODES': '1',
            'SLURM_TASKS_PER_NODE': '3', 'SLURM_STEP_TASKS_PER_NODE': '3',
            'SLURM_STEP_NODELIST': 'n4'}


def test_by_default_slurms_task_is_the_launchers_alone(launch, place):
    assert launch(['--nproc_per_node=3', *native('dump')], STEP).rc == 0
    for dump in place.dumps().values():
        assert {name for name in dump['env'] if name.startswith('SLURM_')} == {
            'SLURM_JOB_ID', 'SLURM_JOB_NODELIST', 'SLURM_TASKS_PER_NODE'}


def test_outside_of_slurm_rewrite_slurm_says_that_it_is_rewrite(launch, place):
    result = launch(['--mpi-env=rewrite-slurm', *native('dump')])
    assert 'launchd: note: --mpi-env: this is no Slurm job' in result.err
    assert not [name for name in place.dumps()[0]['env'] if name.startswith('SLURM_')]


@pytest.mark.parametrize('policy, env', [('rewrite-slurm', STEP), ('rewrite-pmi', {})])
def test_a_launcher_in_a_worker_is_no_task(launch, policy, env):
    """It would take the worker's rank for its node's."""
    inner = [str(BUILD / 'launchd'), '--dry-run=json', *native('dump')]
    result = launch([f'--mpi-env={policy}', '--no_python', '--use_env', *inner],
                    {**env, 'LAUNCHD_CONTROL': 'off'})
    job = json.loads(result.out)['job']
    assert (job['nnodes']['value'], job['started_by']['value']) == ('1', 'a user or script')


def test_workers_with_the_ranks_of_pmi(launch, place):
    """Their own, for scripts that read them; what accelerate finds in PMI_SIZE is the world's size."""
    node = {'PMI_RANK': '0', 'PMI_SIZE': '1', 'MPI_LOCALRANKID': '0', 'MPI_LOCALNRANKS': '1', 'PMI_FD': '99'}
    assert launch(['--mpi-env=rewrite-pmi', '--nproc_per_node=3', *native('dump')], node).rc == 0
    dumps = place.dumps()
    assert sorted(dumps) == [0, 1, 2]
    for rank, dump in dumps.items():
        assert {name: value for name, value in dump['env'].items() if name.startswith(('PMI_', 'MPI_', 'CCL_'))} == {
            'PMI_RANK': str(rank), 'PMI_SIZE': '3', 'MPI_LOCALRANKID': str(rank), 'MPI_LOCALNRANKS': '3',
            'CCL_ATL_TRANSPORT': 'ofi'}


def azure_nccl_backend(env):
    """What the Azure ML helper's set_environment_variables_for_nccl_backend() does in a worker."""
    env = dict(env)
    env['RANK'] = env['OMPI_COMM_WORLD_RANK']
    env['WORLD_SIZE'] = env['OMPI_COMM_WORLD_SIZE']
    if int(env['OMPI_COMM_WORLD_LOCAL_SIZE']) == int(env['WORLD_SIZE']):
        env['MASTER_ADDR'] = env['AZ_BATCHAI_MPI_MASTER_NODE']
        env['MASTER_PORT'] = '54965'
    else:
        env['MASTER_ADDR'] = env['AZ_BATCH_MASTER_NODE'].split(':')[0]
        env.setdefault('MASTER_PORT', '6105')
    return env


@pytest.mark.parametrize('nodes', [1, 4])
def test_azures_helper_goes_on_working_in_the_workers(launch, place, nodes):
    given = {**RECORDED, 'OMPI_COMM_WORLD_SIZE': str(nodes), 'OMPI_COMM_WORLD_RANK': '0',
             'AZ_BATCH_MASTER_NODE': '10.1.2.3:6000', 'AZ_BATCHAI_MPI_MASTER_NODE': '10.1.2.3'}
    assert launch(native('dump', '--nproc_per_node=2'), given).rc == 0
    for rank, dump in place.dumps().items():
        env = dump['env']
        names = ('RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')
        helped = azure_nccl_backend(env)
        assert [helped[name] for name in names] == [env[name] for name in names]
        assert [env[name] for name in names[:3]] == [str(rank), str(2 * nodes), '10.1.2.3']
        assert env['OMPI_COMM_WORLD_LOCAL_RANK'] == env['LOCAL_RANK'] == str(rank)


IDENTITY = {name: '1' for name in (
    'PMI_RANK PMI_SIZE PMI_FD PMI_ID PMI2_X PMIX_RANK PRTE_LAUNCHED ORTE_X HYDRA_X HYDI_X '
    'MPI_LOCALRANKID MPI_LOCALNRANKS MV2_COMM_WORLD_RANK MV2_COMM_WORLD_SIZE MPIRUN_NPROCS '
    'PALS_LOCAL_RANKID FLUX_TASK_RANK FLUX_TASK_LOCAL_ID FLUX_JOB_SIZE JSM_X ALPS_APP_PE LSF_PM_TASKID '
    'I_MPI_PIN_MAPPING '
    'SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_NTASKS SLURM_NPROCS SLURM_STEP_ID '
    'SLURM_STEP_NUM_TASKS SLURM_STEP_NODELIST SLURM_STEPID SLURM_TASK_PID SLURM_GTIDS '
    'OMPI_ARGV OMPI_MCA_rmaps_x OMPI_MCA_plm OMPI_MCA_plm_x OMPI_MCA_routed '
    'OMPI_MCA_shmem_RUNTIME_x OMPI_MCA_mpi_oversubscribe').split()}
USERS = {name: 'user' for name in (
    'OMPI_MCA_btl OMPI_MCA_pml OMPI_MCA_coll_x OMPI_MCA_shmem UCX_TLS I_MPI_FABRICS FI_PROVIDER '
    'NCCL_DEBUG NCCL_SOCKET_IFNAME SLURM_JOB_ID SLURM_JOB_NODELIST SLURM_CPUS_ON_NODE '
    'CUDA_VISIBLE_DEVICES PMI SLURM_PROCIDX OMPI_MCA_esx AZUREML_RUN_ID').split()}


@pytest.mark.parametrize('mode', ['rewrite', 'scrub', 'keep'])
def test_pmi_and_slurm_identity_goes_and_user_tuning_stays(launch, place, mode):
    env = {**IDENTITY, **USERS, 'MV2_COMM_WORLD_RANK': '0'}
    assert launch([f'--mpi-env={mode}', *native('dump')], env).rc == 0
    got = place.dumps()[0]['env']
    kept = set(IDENTITY) if mode == 'keep' else set()
    assert {name for name in IDENTITY if name in got} == kept
    assert {name: got[name] for name in USERS} == USERS


def test_every_removal_and_rewriting_has_its_reason(dry):
    edits = dry(['--nproc_per_node=2'], {**RECORDED, **IDENTITY, **MASTER, 'PMI_RANK': '0'}
                ).edits().values()
    changed = {edit['name']: edit for edit in edits if edit['change'] in ('removed', 'rewritten')}
    assert set(changed) >= (set(RECORDED) - TUNING) | set(IDENTITY)
    assert all(len(edit['why']) > 5 for edit in changed.values())
    assert all((edit['value'] is None) == (edit['change'] == 'removed') for edit in edits)


def test_env_and_unset_env(launch, place):
    options = ['--env', 'A=1', '--env=A=2', '--env', 'EMPTY=', '--env', 'EQUALS=a=b c',
               '--unset-env', 'GONE', '--unset-env=ALSO, TOO', '--unset-env=NEVER_SET',
               '--env', 'B=1', '--unset-env=B', '--env', 'PMIX_RANK=mine']
    assert launch([*options, *native('dump', '--nproc_per_node=2')],
                  {'GONE': '1', 'ALSO': '1', 'TOO': '1', 'STAYS': '1', 'PMIX_RANK': '0'}).rc == 0
    for dump in place.dumps().values():
        env = dump['env']
        assert (env['A'], env['EMPTY'], env['EQUALS'], env['STAYS']) == ('2', '', 'a=b c', '1')
        assert not {'GONE', 'ALSO', 'TOO', 'NEVER_SET', 'B'} & set(env)
        assert env['PMIX_RANK'] == 'mine'


def test_unset_omp_num_threads_is_the_users_word(launch, place):
    result = launch(native('dump', '--nproc_per_node=2', '--unset-env=OMP_NUM_THREADS'))
    assert 'OMP_NUM_THREADS' not in place.dumps()[0]['env'] and result.err == ''


def test_nccl_socket_ifname_is_set_on_request_only(launch, place):
    place.write('job.ini', '[launchd]\nnccl_socket_ifname = ^docker0,lo\n')
    rows = [([], {}, None), ([], {'NCCL_SOCKET_IFNAME': 'ib0'}, 'ib0'),
            (['--nccl_socket_ifname', '^docker0,lo'], {}, '^docker0,lo'),
            (['--nccl-socket-ifname=eth0'], {'NCCL_SOCKET_IFNAME': 'ib0'}, 'eth0'),
            (['--config=job.ini'], {}, '^docker0,lo'),
            ([], {'LAUNCHD_NCCL_SOCKET_IFNAME': 'eth1'}, 'eth1')]
    for options, env, expected in rows:
        assert launch([*options, *native('dump')], env).rc == 0
        assert place.dumps()[0]['env'].get('NCCL_SOCKET_IFNAME') == expected


def test_the_two_nccl_names_agree_also_where_the_user_sets_one_by_flag(launch, place):
    assert launch(native('dump', '--env=NCCL_ASYNC_ERROR_HANDLING=0')).rc == 0
    env = place.dumps()[0]['env']
    assert env['NCCL_ASYNC_ERROR_HANDLING'] == env['TORCH_NCCL_ASYNC_ERROR_HANDLING'] == '0'


@pytest.mark.parametrize('policy', ['rewrite', 'scrub', 'keep'])
def test_the_key_of_the_launchers_is_kept_from_workers_and_never_shown(launch, place, policy):
    key = {'LAUNCHD_KEY': 'c0ffee'}
    assert launch(['--mpi-env', policy, *native('dump')], env=key).rc == 0
    assert 'LAUNCHD_KEY' not in place.dumps()[0]['env']
    for how in 'text', 'json':
        shown = launch(['--mpi-env', policy, f'--dry-run={how}', *native('dump')], env=key)
        assert shown.rc == 0 and 'LAUNCHD_KEY' in shown.out
        assert 'c0ffee' not in shown.out + shown.err
        assert 'LAUNCHD_KEY' not in shown.err


def test_the_key_of_the_launchers_is_not_given_to_workers(refused):
    refused(['--env', 'LAUNCHD_KEY=c0ffee', *native('dump')], '--env', 'LAUNCHD_KEY', 'never')
