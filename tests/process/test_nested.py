"""A launcher inside a worker, as a sweep or an evaluation starts one: it has a job of its own. What
the environment says of ranks and addresses is the outer worker's. The originals read none of it."""
import json

import pytest

from harness import BUILD, native

OMPI = {'OMPI_COMM_WORLD_RANK': '1', 'OMPI_COMM_WORLD_SIZE': '2',
        'OMPI_COMM_WORLD_LOCAL_SIZE': '1', 'AZ_BATCH_MASTER_NODE': '10.0.0.4:6000',
        'PMIX_RANK': '1'}
INNER = [str(BUILD / 'launchd'), '--dry-run=json', '--nproc_per_node=2', *native('dump')]


def inner_plan(launch, options, env):
    result = launch([*options, '--no_python', '--use_env', *INNER],
                    {'LAUNCHD_CONTROL': 'off', **env})
    assert result.rc == 0, result
    plan = json.loads(result.out)
    assert not [note for note in plan['notes'] if note['level'] == 'warning'], plan['notes']
    return {name: row['value'] for name, row in plan['job'].items()}


@pytest.mark.parametrize('options, env', [
    ([], {}),
    (['--nnodes=2', '--node_rank=1', '--master_addr=10.0.0.4'], {}),
    ([], OMPI),
    (['--mpi-env=scrub'], OMPI),
    ([], {'NODE_RANK': '0', 'AZUREML_NODE_COUNT': '1'}),
    (['--nproc_per_node=1', '--nnodes=2', '--node_rank=0', '--master_addr=h', '--only-rank=0'],
     {'AZUREML_NODE_COUNT': '2', 'WORLD_SIZE': '2', 'RANK': '0'}),
])
def test_a_launcher_in_a_worker_starts_a_job_of_its_own(launch, options, env):
    job = inner_plan(launch, options, env)
    assert (job['nnodes'], job['node_rank'], job['world_size']) == ('1', '0', '2')
    assert (job['master_addr'], job['master_port']) == ('127.0.0.1', '<a free port>')


@pytest.mark.parametrize('wire_up, rank, size', [
    ({'OMPI_COMM_WORLD_RANK': '2', 'OMPI_COMM_WORLD_SIZE': '3', 'PMIX_RANK': '2'}, '2', '3'),
    ({'PMI_RANK': '2', 'PMI_SIZE': '3', 'PMI_FD': '9'}, '2', '3'),
    ({'SLURM_STEP_ID': '1', 'SLURM_PROCID': '2', 'SLURM_STEP_NUM_TASKS': '3'}, '2', '3'),
])
def test_an_mpirun_inside_a_worker_counts(dry, wire_up, rank, size):
    """Its wire-up shows it: workers have none."""
    outer = {'TORCHELASTIC_RUN_ID': 'none', 'LOCAL_RANK': '0', 'NODE_RANK': '0', 'RANK': '0',
             'MASTER_ADDR': '10.0.0.4', 'MASTER_PORT': '6105'}
    plan = dry(['--master_addr=h'], {**outer, **wire_up})
    assert (plan.value('node_rank'), plan.value('nnodes')) == (rank, size)
