"""What real launchers and platforms leave in a process's environment (environments/*.env; "\\n" in a
value is a newline), and what launchd makes of it: who this is, of how many, and where rank 0 is; or an
error before anything starts. Nobody trains alone by a guess."""
import os
import pathlib

import pytest

from harness import native

HERE = pathlib.Path(__file__).parent / 'environments'
FLAGS = ['--nnodes=2', '--node_rank=1', '--master_addr=10.0.0.4']
ALONE = {'nnodes': '1', 'node_rank': '0', 'master_addr': '127.0.0.1'}


def of(rank, size, addr=None, port=None, **more):
    found = {'node_rank': str(rank), 'nnodes': str(size), 'master_addr': addr, 'master_port': port, **more}
    return {name: value for name, value in found.items() if value is not None}


def read(name):
    lines = (HERE / f'{name}.env').read_text().splitlines()
    pairs = [line.split('=', 1) for line in lines if not line.startswith('#')]
    return {name: value.replace('\\n', '\n') for name, value in pairs}


# what comes of each: of --dry-run some values, or the words of the error; and words of a note
FILES = {
    'aml_batchai_localhost': ['AZ_BATCHAI_MPI_MASTER_NODE=localhost', '--master_addr'],
    'aml_empty': of(1, 2, '10.0.0.4', '6105'),
    'aml_mpi_noport': of(1, 2, '10.0.0.4', '6105'),
    'aml_mpi_only_batchai': of(1, 2, '10.0.0.4', '6105'),
    'aml_mpi_port': of(1, 2, '10.0.0.4', '6105'),
    'aml_nodist': {**ALONE, 'note': 'AZUREML_NODE_COUNT says 2, but nothing says which node this is'},
    'aml_pt': of(1, 2, '10.0.0.4', '6105'),
    'aml_single': of(0, 1),
    'aml_v6': of(1, 2, 'fd00::2', '6105'),
    'enroot_port_65535': of(1, 2, 'n0', '65535', control='n0:65534'),
    'flux': ['FLUX_TASK_RANK', '--master_addr'],
    'k8s_svc_launchdcontrol': {**ALONE, 'note': 'LAUNCHD_CONTROL_PORT=tcp://10.96.0.13:29501 is ignored'},
    'k8s_svc_master': {**ALONE, 'note': 'MASTER_PORT=tcp://10.96.0.12:23456 is ignored'},
    'lws': of(1, 2, 'vllm-0.vllm.default'),
    'mv2_0': ['MV2_COMM_WORLD_SIZE', '--master_addr'],
    'omp_empty': ALONE,
    'pmix_only': ['PMIX_RANK says 1', '--nnodes', '--standalone'],
    'pytorchjob_dupWS': of(0, 2, 'pt-master-0', '23456', nproc_per_node='8'),
    'pytorchjob_elastic': ['PET_NNODES'],
    'pytorchjob_master': of(0, 2, 'pytorch-simple-master-0', '23456'),
    'sagemaker': of(1, 2, 'algo-1'),
    'sbatch_without_srun': {**ALONE, 'note': 'the Slurm job has 2 nodes, but this is a job of one node'},
    'skypilot': of(1, 2, '10.0.0.4'),
    'slurm_arbitrary_task0': ['SLURM_DISTRIBUTION=arbitrary', '--mpi=pmix', '--master_addr'],
    'slurm_one_task_a_step': of(0, 1),
    'trainer_v2': of(1, 2, 'job-node-0-0.job', '29400', nproc_per_node='8'),
}
STEP = {'SLURM_JOB_ID': '17', 'SLURM_STEP_ID': '0', 'SLURM_TASK_PID': '31875'}
MPI = {'OMPI_COMM_WORLD_RANK': '1', 'OMPI_COMM_WORLD_SIZE': '2', 'OMPI_COMM_WORLD_LOCAL_RANK': '0',
       'OMPI_COMM_WORLD_LOCAL_SIZE': '1'}
TASK = {**STEP, 'SLURM_PROCID': '1', 'SLURM_STEP_NUM_TASKS': '2', 'SLURM_NODEID': '1',
        'SLURM_STEP_NUM_NODES': '2', 'SLURM_STEP_NODELIST': 'n[3-4]'}
PODS = {'RANK': '1', 'WORLD_SIZE': '2', 'MASTER_ADDR': 'pt-master-0', 'MASTER_PORT': '23456'}
OTHERS = {
    'jsrun, which sets Open MPI\'s, too': (
        {**MPI, 'JSM_NAMESPACE_RANK': '2', 'JSM_NAMESPACE_SIZE': '3', 'LSB_JOBID': '4'}, ['jsrun', '--master_addr']),
    'mpirun_rsh of older versions': (
        {'PMI_ID': '1', 'MPIRUN_NPROCS': '2', 'MPIRUN_RANK': '1', 'MASTER_ADDR': 'h'}, of(1, 2, 'h')),
    'PALS': ({'PALS_RANKID': '1', 'PMI_SIZE': '2', 'PMI_RANK': '1', 'PALS_APID': '7', 'MASTER_ADDR': 'h'},
             of(1, 2, 'h', started_by='mpiexec of PALS')),
    'ALPS': ({'ALPS_APP_PE': '1', 'ALPS_APP_ID': '7'}, ['ALPS_APP_PE says 1', '--nnodes', '--standalone']),
    'blaunch counts from 1': ({'LSF_PM_TASKID': '2', 'LSB_JOBID': '4'}, ['LSF_PM_TASKID says 2', '--nnodes']),
    'a step of one task in a container of SkyPilot': (
        {**STEP, 'SLURM_PROCID': '0', 'SLURM_STEP_NUM_TASKS': '1', **read('skypilot')}, of(1, 2, '10.0.0.4')),
    'an mpirun of one task on each node': (
        {**MPI, 'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '1', 'NNODES': '2', 'NODE_RANK': '1',
         'MASTER_ADDR': 'h'}, of(1, 2, 'h')),
    'one task, in a worker that has its own job\'s numbers': (
        {**STEP, 'SLURM_PROCID': '0', 'SLURM_STEP_NUM_TASKS': '1', 'TORCHELASTIC_RUN_ID': 'x', 'LOCAL_RANK': '0',
         'RANK': '8', 'WORLD_SIZE': '16', 'NODE_RANK': '1', 'NNODES': '2', 'MASTER_ADDR': 'h'}, of(0, 1)),
    'one task, beside half of an answer': (
        {**STEP, 'SLURM_PROCID': '0', 'SLURM_STEP_NUM_TASKS': '1', 'NNODES': '4'}, of(0, 1)),
    'PMIx of the step that a batch script was submitted in': (
        {'SLURM_JOB_ID': '18', 'PMIX_RANK': '0', 'PMIX_NAMESPACE': 'slurm.pmix.17.0'}, ALONE),
    'PMI in an allocation': (
        {'SLURM_JOB_ID': '5', 'PMI_RANK': '1', 'PMI_SIZE': '2', 'MASTER_ADDR': 'h'}, of(1, 2, 'h')),
    'Azure ML beside an Indexed Job': (
        {'AZUREML_NODE_COUNT': '2', 'JOB_COMPLETION_INDEX': '1', 'MASTER_ADDR': 'h'}, of(1, 2, 'h')),
    'pbsdsh': ({'PBS_JOBID': '12.server', 'PBS_NODENUM': '1'}, ['PBS_NODENUM says 1', '--nnodes']),
    'HTCondor': ({'_CONDOR_PROCNO': '1', '_CONDOR_NPROCS': '2'}, ['_CONDOR_NPROCS', '--master_addr']),
    'HTCondor, one process': ({'_CONDOR_PROCNO': '0', '_CONDOR_NPROCS': '1'}, ALONE),
    'flux with PMI and an address': (
        {'FLUX_TASK_RANK': '1', 'FLUX_JOB_SIZE': '2', 'PMI_RANK': '1', 'PMI_SIZE': '2', 'MASTER_ADDR': 'h'},
        of(1, 2, 'h', started_by='flux run')),
    'srun --mpi=pmi2': ({**TASK, 'PMI_RANK': '1', 'PMI_SIZE': '2', 'PMI_JOBID': '17.0'},
                        of(1, 2, 'n3', started_by='srun')),
    'mpiexec in an allocation': (
        {**TASK, 'PMI_RANK': '1', 'PMI_SIZE': '2', 'MPI_LOCALRANKID': '0', 'MPI_LOCALNRANKS': '1', 'MASTER_ADDR': 'h'},
        of(1, 2, 'h', started_by='mpiexec')),
    'mpirun in an allocation': ({**TASK, **MPI, 'SLURM_STEP_NUM_TASKS': '9', 'MASTER_ADDR': 'h'},
                                of(1, 2, 'h', started_by='mpirun')),
    'tasks in another order than nodes': (
        {**TASK, 'SLURM_NODEID': '0'}, ['SLURM_NODEID is not SLURM_PROCID', '--mpi=pmix']),
    'salloc': ({'SLURM_JOB_ID': '17', 'SLURM_JOB_NUM_NODES': '2'}, {**ALONE, 'note': 'the Slurm job has 2 nodes'}),
    'an interactive step': (
        {**STEP, 'SLURM_STEP_ID': '4294967290', 'SLURM_PROCID': '0', 'SLURM_STEP_NUM_TASKS': '1', 'SLURM_NTASKS': '2',
         'SLURM_NNODES': '2'}, {**ALONE, 'note': 'the Slurm job has 2 nodes'}),
    'LSF': ({'LSB_JOBID': '4', 'LSB_MCPU_HOSTS': 'h1 4 h2 4'}, {**ALONE, 'note': 'the LSF job has 2 nodes'}),
    'Torque': ({'PBS_JOBID': '12.server', 'PBS_NUM_NODES': '2', 'PBS_NODENUM': '0', 'PBS_TASKNUM': '1'},
               {**ALONE, 'note': 'the PBS job has 2 nodes'}),
    'Grid Engine': ({'PE_HOSTFILE': '/x', 'NHOSTS': '2'}, {**ALONE, 'note': 'the Grid Engine job has 2 nodes'}),
    'an Indexed Job without a size': ({'JOB_COMPLETION_INDEX': '1'}, ALONE),
    'an Indexed Job': ({'JOB_COMPLETION_INDEX': '1', 'NNODES': '2', 'MASTER_ADDR': 'h'}, of(1, 2, 'h')),
    'a PyTorchJob of older operators': (PODS, ['RANK=1 and WORLD_SIZE=2', '--env-ranks node', '--nnodes 1']),
    'SageMaker, a host that is none': (
        {'SM_HOSTS': '["a","b"]', 'SM_CURRENT_HOST': 'c'}, ['SM_CURRENT_HOST: "c"', 'SM_HOSTS']),
    'SkyPilot, one node': ({'SKYPILOT_NODE_RANK': '0', 'SKYPILOT_NUM_NODES': '1', 'SKYPILOT_NODE_IPS': '10.0.0.4'},
                           ALONE),
    'below given flags': (
        {'LWS_WORKER_INDEX': '0', 'LWS_GROUP_SIZE': '3', 'LWS_LEADER_ADDRESS': 'x', 'NNODES': '2', 'NODE_RANK': '1'},
        of(1, 2, 'x')),
}


def hold(dry, refused, env, expected, *options):
    if isinstance(expected, list):
        refused([*options, *native('dump')], *expected, env=env)
        return
    plan = dry(['--use_env', '--no_python', *options], env)
    for name, value in expected.items():
        if name == 'note':
            assert any(value in note['text'] for note in plan.notes), plan.notes
        else:
            assert plan.value(name) == value, name


def test_every_file_is_expected():
    assert {path.stem for path in HERE.glob('*.env')} == set(FILES)


@pytest.mark.parametrize('name', FILES)
def test_environments_of_launchers(dry, refused, name):
    hold(dry, refused, read(name), FILES[name])


@pytest.mark.parametrize('name', OTHERS)
def test_others(dry, refused, name):
    env, expected = OTHERS[name]
    hold(dry, refused, env, expected)


@pytest.mark.parametrize('alone', ['--standalone', '--nnodes=1'])
@pytest.mark.parametrize('name', ['flux', 'mv2_0', 'pmix_only', 'lws', 'skypilot', 'aml_mpi_port',
                                  'slurm_arbitrary_task0'])
def test_the_ways_to_say_alone(dry, refused, name, alone):
    hold(dry, refused, read(name), {'nnodes': '1', 'node_rank': '0'}, alone)


def test_a_size_of_one_says_nothing(dry, refused):
    """Each node's task is a step, or an mpirun, of its own."""
    for env in (read('slurm_one_task_a_step'), {**MPI, 'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '1'}):
        hold(dry, refused, env, of(1, 2, '10.0.0.4'), *FLAGS)


def test_jobs_that_share_nodes_have_ports_of_their_own(dry):
    """Below the kernel's own range; a requeued job has another one than the launchers that it may have left behind."""
    flux = {'FLUX_TASK_RANK': '1', 'FLUX_JOB_SIZE': '2', 'FLUX_JOB_ID': 'f23', 'MASTER_ADDR': 'h'}
    jobs = [{**TASK, **more} for more in ({}, {'SLURM_STEP_ID': '1'}, {'SLURM_JOB_ID': '18'},
                                          {'SLURM_RESTART_COUNT': '1'})]
    ports = [int(dry(['--use_env', '--no_python'], env).value('master_port')) for env in [*jobs, flux]]
    assert len(set(ports)) == len(ports)
    assert all(16384 <= port < 32767 for port in ports)
    assert dry(['--use_env', '--no_python', *FLAGS[:1]], {**TASK, 'MASTER_PORT': '7', 'MASTER_ADDR': 'h'}
               ).value('master_port') == '7'
    assert dry(['--use_env', '--no_python', *FLAGS], {}).value('master_port') == '29500'


def test_gpus_that_only_the_platform_tells(dry, refused):
    hold(dry, refused, read('sagemaker'), {'nproc_per_node': '8'}, '--nproc_per_node=gpu')
    hidden = {**read('sagemaker'), 'CUDA_VISIBLE_DEVICES': ''}
    hold(dry, refused, hidden, {'nproc_per_node': str(os.cpu_count())}, '--nproc_per_node=auto')


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason='one CPU here')
def test_few_cpus(launch):
    """srun gives each task one, since Slurm 22.05 whatever sbatch says."""
    one = ['taskset', '-c', str(min(os.sched_getaffinity(0)))]
    for nproc, wrap, words in (('8', one, 'for 8 workers: srun --cpus-per-task'), ('1', one, ''), ('8', [], '')):
        said = launch(['--dry-run', f'--nproc_per_node={nproc}', *native('dump')], {**TASK, 'SLURM_PROCID': '0',
                      'SLURM_NODEID': '0'}, wrap=wrap).out
        assert words in said and ('CPUs, for' in said) == bool(words)


def test_local_ranks_in_another_order_are_said_by_one_launcher(launch):
    """Open MPI 5's default. Otherwise rank 0 speaks for all, which is not among those that are wrong."""
    for rank, local, words in ((0, 0, ''), (1, 2, '--map-by ppr:4:node'), (2, 1, ''), (3, 3, '')):
        env = {**MPI, 'OMPI_COMM_WORLD_RANK': f'{rank}', 'OMPI_COMM_WORLD_SIZE': '4',
               'OMPI_COMM_WORLD_LOCAL_RANK': f'{local}', 'OMPI_COMM_WORLD_LOCAL_SIZE': '4'}
        said = launch(['--per-process', '--use_env', '--no_python', '/bin/true'], env)
        assert said.rc == 0
        assert words in said.err and ('local rank 2 of 4' in said.err) == bool(words)


@pytest.mark.parametrize('devices, options, warned', [
    ('0', [], True), ('0,1', [], False), ('0', ['--virtual-local-rank', '--share-gpus'], False)])
def test_one_gpu_for_each_task(dry, devices, options, warned):
    env = {**MPI, 'OMPI_COMM_WORLD_LOCAL_RANK': '1', 'OMPI_COMM_WORLD_LOCAL_SIZE': '2',
           'CUDA_VISIBLE_DEVICES': devices}
    notes = dry(['--per-process', '--use_env', '--no_python', *options], env).notes
    assert any('shows one GPU, but LOCAL_RANK is 1' in note['text'] for note in notes) == warned


def test_torchruns_barrier_is_accepted(dry):
    notes = dry(['--use_env', '--no_python'], {'TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT': '5'}).notes
    assert [note['level'] for note in notes if 'EXIT_BARRIER_TIMEOUT has no effect' in note['text']] == ['note']


@pytest.mark.parametrize('conf, rank', [
    ('is_host=1', '0'), ('is_host=true', '0'), ('is_host=0', '<decided when nodes meet>')])
def test_is_host_makes_node_rank_0(dry, conf, rank):
    """Torchrun's own way for an endpoint whose address is none of a node's, as that of a service."""
    plan = dry(['--nnodes=2', '--rdzv-backend=c10d', '--rdzv-endpoint=svc:29400', f'--rdzv-conf={conf}', '--use_env',
                '--no_python'])
    assert plan.value('node_rank') == rank and not any('is_host' in note['text'] for note in plan.notes)


def test_hosts_of_openpbs(dry, refused, place):
    """It has no number of nodes, but a file with a line for each process."""
    hosts = place.write('hosts', 'n0\nn0\nn1\nn1\n')
    hold(dry, refused, {'PBS_JOBID': '12.s', 'PBS_NODEFILE': hosts}, {'note': 'the PBS job has 2 nodes'})
    os.mkfifo(place.path / 'fifo')
    hold(dry, refused, {'PBS_JOBID': '12.s', 'PBS_NODEFILE': f'{place.path}/fifo'}, ALONE)


def test_env_ranks_of_an_only_task(dry):
    one = {**MPI, 'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '1', 'MASTER_ADDR': 'h'}
    plan = dry(['--use_env', '--no_python', '--env-ranks=node'], {**one, 'RANK': '1', 'WORLD_SIZE': '4'})
    assert (plan.value('node_rank'), plan.value('nnodes')) == ('1', '4')
    assert not any('are not read' in note['text'] for note in plan.notes)


def test_flags_tell_jobs_apart_where_they_gave_the_ranks(dry):
    """Torque's first task is marked by nothing: no port may follow from the others' job."""
    for env in ({'PBS_JOBID': '12.s', 'PBS_NODENUM': '1', 'PBS_TASKNUM': '3'},
                {'LSF_PM_TASKID': '2', 'LSB_JOBID': '4'}):
        assert dry(['--use_env', '--no_python', *FLAGS], env).value('master_port') == '29500'


def test_no_file_is_taken_for_a_server_of_pmi(launch, place):
    path = place.write('file', '')
    with open(path, 'r+', encoding='utf-8') as file:
        launch([*FLAGS, '--join-timeout=1', *native('dump')], {'PMI_FD': '9', 'PMI_RANK': '1', 'PMI_SIZE': '2'},
               wrap=['sh', '-c', f'exec 9<>{path}; exec "$@"', 'sh'])
        assert file.read() == ''


@pytest.mark.parametrize('env, expected', [
    ({'NNODES': '2', 'NODE_RANK': '1', 'MASTER_ADDR': 'h'}, ALONE),
    (PODS, ALONE),
    (read('trainer_v2'), of(1, 2, 'job-node-0-0.job')),
    (MPI, ['OMPI_COMM_WORLD_SIZE says 2', '--nnodes', '--standalone']),
    (TASK, ['SLURM_STEP_NUM_TASKS says 2', '--nnodes', '--standalone']),
    ({**MPI, 'OMPI_COMM_WORLD_SIZE': '1', 'OMPI_COMM_WORLD_RANK': '0'}, ALONE),
], ids=['bare names', 'pods', 'PET_*', 'mpirun', 'srun', 'one task'])
def test_by_the_name_torchrun(dry, refused, env, expected):
    """Only PET_* and flags count, so that an exported variable doesn't make a debug run wait."""
    if isinstance(expected, list):
        refused(['--no-python', native('dump')[-1]], *expected, env=env, name='torchrun')
        return
    plan = dry(['--no-python'], env, name='torchrun')
    assert {name: plan.value(name) for name in expected} == expected
