"""Section 3: node rank and number of nodes, by the launcher that the environment shows."""
import pytest

from harness import native
from together import Cluster


def ompi(rank=None, size=None, **more):
    env = {'OMPI_COMM_WORLD_RANK': rank, 'OMPI_COMM_WORLD_SIZE': size, 'MASTER_ADDR': 'head',
           **more}
    return {name: str(value) for name, value in env.items() if value is not None}


def hydra(rank=None, size=None, **more):
    env = {'PMI_RANK': rank, 'PMI_SIZE': size, 'MASTER_ADDR': 'head', **more}
    return {name: str(value) for name, value in env.items() if value is not None}


def slurm(rank=None, size=None, step='0', **more):
    env = {'SLURM_JOB_ID': '7', 'SLURM_STEP_ID': step, 'SLURM_PROCID': rank,
           'SLURM_STEP_NUM_TASKS': size, 'SLURM_STEP_NUM_NODES': size, 'MASTER_ADDR': 'head',
           **more}
    return {name: str(value) for name, value in env.items() if value is not None}


def place_of(plan):
    return (plan.value('nnodes'), plan.source('nnodes'), plan.value('node_rank'),
            plan.source('node_rank'))


M = ['--master_addr', 'head']


# One row for each source; every half of one, and what goes above what, is tests/unit's (test_identity.c).
@pytest.mark.parametrize('options, env, expected', [
    (['--nnodes=4', '--node_rank=3', *M], {}, ('4', '--nnodes', '3', '--node_rank')),
    (M, {'PET_NNODES': '2', 'PET_NODE_RANK': '1'}, ('2', 'PET_NNODES', '1', 'PET_NODE_RANK')),
    # Open MPI, never its NODE_RANK, and before the others
    ([], {**slurm(0, 2), **hydra(1, 3), **ompi(2, 4, OMPI_COMM_WORLD_NODE_RANK=1), 'NODE_RANK': '1',
          'NNODES': '2'}, ('4', 'OMPI_COMM_WORLD_SIZE', '2', 'OMPI_COMM_WORLD_RANK')),
    # Hydra of MPICH and Intel MPI
    ([], {**slurm(0, 2), **hydra(1, 3), 'MPI_LOCALRANKID': '0'}, ('3', 'PMI_SIZE', '1', 'PMI_RANK')),
    # a step of Slurm; a batch script is none
    ([], slurm(1, 3), ('3', 'SLURM_STEP_NUM_TASKS', '1', 'SLURM_PROCID')),
    ([], slurm(0, 4, step='4294967291'), ('1', 'one node', '0', 'one node')),
    ([], {'NNODES': '3', 'NODE_RANK': '2', 'MASTER_ADDR': 'head'},
     ('3', 'NNODES', '2', 'NODE_RANK')),
    # a pod of an Indexed Job of Kubernetes
    (['--nnodes=4', *M], {'JOB_COMPLETION_INDEX': '3'},
     ('4', '--nnodes', '3', 'JOB_COMPLETION_INDEX')),
    ([], {}, ('1', 'one node', '0', 'one node')),
    (['--standalone'], ompi(3, 8), ('1', '--standalone', '0', '--standalone')),
])
def test_nodes_and_rank(dry, options, env, expected):
    assert place_of(dry(options, env)) == expected


@pytest.mark.parametrize('options, env, words', [
    # contradictions
    (['--nnodes=4'], slurm(1, 8), ['--nnodes says 4', 'SLURM_STEP_NUM_TASKS says 8']),
    ([], ompi(1, 8, PET_NNODES=4), ['PET_NNODES says 4', 'OMPI_COMM_WORLD_SIZE says 8']),
    # a rank not below the size
    ([], slurm(2, 2), ['2 (SLURM_PROCID)', '2 (SLURM_STEP_NUM_TASKS)']),
    # no number
    ([], hydra(1, ' 2'), ['PMI_SIZE', '" 2"']),
    # a rank without a size, and a size without a rank
    ([], slurm(1), ['SLURM_PROCID says 1', '--nnodes']),
    ([], ompi(None, 2), ['OMPI_COMM_WORLD_SIZE says 2', '--node_rank', 'OMPI_COMM_WORLD_RANK']),
])
def test_errors_show_what_was_found_and_where(refused, options, env, words):
    refused([*options, *native('dump')], *words, env=env)


def test_nnodes_alone_is_node_0_with_a_warning(dry):
    """As torchrun and classic launch have it; node 0's command line often leaves the rank out."""
    plan = dry(['--nnodes=2', *M])
    assert (plan.value('node_rank'), plan.source('node_rank')) == ('0', 'default')
    assert len(plan.warnings()) == 1 and '--node_rank' in plan.warnings()[0]


@pytest.mark.parametrize('env, name', [
    (ompi(0, 2), 'mpirun'), (hydra(0, 2), 'mpiexec'), (slurm(0, 2), 'srun'),
    ({}, 'a user or script'), (slurm(0, 4, step='batch'), 'a user or script')])
def test_who_started_it_is_said(dry, env, name):
    assert dry([], env).value('started_by') == name


def test_ranks_of_the_workers(dry):
    plan = dry(['--nproc_per_node=3'], ompi(2, 4))
    assert [worker['rank'] for worker in plan.workers] == [6, 7, 8]
    assert (plan.value('world_size'), plan.value('first_rank')) == ('12', '6')


def test_several_tasks_of_a_step_on_a_node_are_warned_of(dry):
    plan = dry([], slurm(1, 4, SLURM_STEP_NUM_NODES=2))
    assert len(plan.warnings()) == 1 and '--ntasks-per-node=1' in plan.warnings()[0]


@pytest.mark.parametrize('options, env, warned', [
    ([], {'SLURM_JOB_NUM_NODES': '2'}, True),
    ([], {'SLURM_JOB_NUM_NODES': '1'}, False),
    (['--standalone'], {'SLURM_JOB_NUM_NODES': '2'}, False),
    (['--nnodes=1'], {'SLURM_JOB_NUM_NODES': '2'}, False),
    (M, slurm(0, 2, SLURM_JOB_NUM_NODES='2', SLURM_STEP_NUM_NODES='2'), False)])
def test_a_batch_script_of_several_nodes_is_told_of_srun(dry, options, env, warned):
    batch = {'SLURM_PROCID': '0', 'SLURM_JOB_ID': '7', **env}
    warnings = dry(options, batch).warnings()
    assert len(warnings) == warned
    assert not warned or 'srun' in warnings[0]


K8S = {'RANK': '0', 'WORLD_SIZE': '2', 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': '23456'}
AZURE = {**K8S, 'NODE_RANK': '0', 'LOCAL_RANK': '0', 'AZUREML_NODE_COUNT': '2'}


@pytest.mark.parametrize('options, env, warnings', [
    (['--nnodes=2', '--node_rank=0'], K8S, []),
    (['--nnodes=1'], K8S, []), (['--standalone'], K8S, []),
    ([], {**K8S, 'PET_NNODES': '2', 'PET_NODE_RANK': '0'}, []),
    ([], {**K8S, 'NNODES': '1'}, []),
    ([], {**K8S, 'WORLD_SIZE': '1'}, []), ([], {**K8S, 'WORLD_SIZE': 'x'}, []),
    ([], {**K8S, 'RANK': ''}, []),
    # a worker's: of torchrun or of launchd, and of DeepSpeed or classic launch
    ([], {**K8S, 'LOCAL_RANK': '0', 'TORCHELASTIC_RUN_ID': 'none'}, []),
    ([], {**K8S, 'LOCAL_RANK': '0'}, []),
    ([], {**K8S, **ompi(0, 1)}, []),
    ([], AZURE, []),
    ([], {**AZURE, 'WORLD_SIZE': '16'},
     ["Azure ML started 16 processes on 2 nodes, and each starts all of a node's workers: set "
      'process_count_per_instance to 1']),
    ([], {**AZURE, 'WORLD_SIZE': '8', 'AZUREML_NODE_COUNT': '1'},
     ["Azure ML started 8 processes on 1 node, and each starts all of a node's workers: set "
      'process_count_per_instance to 1']),
    (['--standalone'], {**AZURE, 'WORLD_SIZE': '16'}, []),
])
def test_ranks_of_others(dry, options, env, warnings):
    plan = dry(options, env)
    assert plan.warnings() == warnings


@pytest.mark.parametrize('env', [K8S, {**K8S, 'NODE_RANK': '0'}])
def test_one_of_several_processes_is_not_alone(refused, env):
    refused(native('dump'), 'RANK=0 and WORLD_SIZE=2 are set', '--env-ranks node', '--nnodes 1', env=env)


class Azure(Cluster):
    """What "type: pytorch" sets; the command line says nothing of nodes."""

    def options(self, node):
        return []


def test_azure_mls_own_variables_make_one_job(start, place):
    cluster = Azure(start, 2, native('dump'), begin=False)
    cluster.each = lambda node: ([], {
        'RANK': str(node), 'WORLD_SIZE': '2', 'LOCAL_RANK': '0', 'NODE_RANK': str(node),
        'AZUREML_NODE_COUNT': '2', 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(cluster.port)})
    for node in range(2):
        cluster.begin(node)
    results = cluster.end()
    assert [(result.rc, 'warning' in result.err) for result in results] == [(0, False)] * 2, results
    assert {rank: dump['env']['WORLD_SIZE'] for rank, dump in place.dumps().items()} == \
        {0: '2', 1: '2'}


POD = {'RANK': '2', 'WORLD_SIZE': '3', 'MASTER_ADDR': 'head', 'MASTER_PORT': '23456'}


def test_ranks_of_the_environment_are_the_nodes_where_that_is_said(dry):
    plan = dry(['--env-ranks=node', '--nproc_per_node=4'], POD)
    assert place_of(plan) == ('3', 'WORLD_SIZE', '2', 'RANK')
    assert (plan.value('master_addr'), plan.value('master_port')) == ('head', '23456')
    assert (plan.edits()['RANK']['value'], plan.edits()['WORLD_SIZE']['value']) == ('8', '12')
    assert plan.warnings() == []
    assert place_of(dry([], {**POD, 'LAUNCHD_ENV_RANKS': 'node'}))[1] == 'WORLD_SIZE'


def test_mpi_knows_better_than_ranks_of_the_environment(dry):
    plan = dry(['--env-ranks=node'], {**POD, **ompi(1, 2)})
    assert place_of(plan) == ('2', 'OMPI_COMM_WORLD_SIZE', '1', 'OMPI_COMM_WORLD_RANK')
    assert [w for w in plan.warnings() if w.startswith('--env-ranks: RANK and WORLD_SIZE are not read, '
                                                        'because mpirun started this launcher')]


def test_a_missing_rank_of_the_environment_is_an_error(refused):
    refused(['--env-ranks=node', *native('dump')], '--env-ranks', 'RANK is not set',
            env={'WORLD_SIZE': '3'})


def test_launchers_that_have_ranks_as_a_pod_has_meet(start, place):
    nodes = Cluster(start, 2, ['--env-ranks=node', '--nproc_per_node=2', *native('dump')], begin=False)
    nodes.options = lambda node: []
    for node in range(2):
        nodes.env = {'RANK': str(node), 'WORLD_SIZE': '2', 'MASTER_ADDR': '127.0.0.1',
                     'MASTER_PORT': str(nodes.port)}
        nodes.begin(node)
    assert [result.rc for result in nodes.end()] == [0, 0]
    assert {rank: dump['env']['NODE_RANK'] for rank, dump in place.dumps().items()} == {
        0: '0', 1: '0', 2: '1', 3: '1'}
