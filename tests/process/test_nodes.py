"""Issue 5: what the settings of several nodes, of the store and of restarts decide, as --dry-run
shows it."""
import pytest

from harness import native

NODES = ['--nnodes=2', '--node_rank=1']
MPI = {'OMPI_COMM_WORLD_RANK': '1', 'OMPI_COMM_WORLD_SIZE': '2',
       'OMPI_MCA_odls_base_sigkill_timeout': '31'}
PMIX = {'PMIX_NAMESPACE': 'x', 'PMIX_RANK': '1', 'PMIX_SERVER_URI41': 'x'}


# tests/unit/daemon/plan/test_control.c has the other ways, and the ports that can't be.
@pytest.mark.parametrize('options, env, control', [
    ([*NODES, '--master_addr=fd00::1', '--control-port=7'], {}, ('[fd00::1]:7', '--control-port')),
    ([*NODES, '--master_addr=h', '--control-port=7'], {'LAUNCHD_CONTROL': 'off'},
     ('none', 'LAUNCHD_CONTROL')),
    ([*NODES, '--rdzv-backend=c10d', '--rdzv-endpoint=h'], {}, ('h:29400', '--rdzv-endpoint')),
    (['--master_addr=h'], {**MPI, **PMIX}, ('by PMIx', 'PMIX_NAMESPACE')),
    (['--master_addr=h'], {'PMI_RANK': '1', 'PMI_SIZE': '2', **PMIX},
     ('h:29501', 'master port + 1')),
])
def test_where_launchers_meet(dry, options, env, control):
    plan = dry(options, env)
    assert (plan.value('control'), plan.source('control')) == control
    assert plan.warnings() == []


def test_one_node_has_nobody_to_meet(dry):
    for options in [], ['--standalone'], ['--control=required'], ['--local-addr=10.0.0.9']:
        assert 'control' not in dry(options).json['job']


def test_c10d_needs_no_node_rank(dry, refused):
    argv = ['--nnodes=2', '--rdzv-backend=c10d', '--rdzv-endpoint=h:7']
    plan = dry(argv)
    assert (plan.value('node_rank'), plan.source('node_rank')) == \
        ('<decided when nodes meet>', 'rendezvous')
    assert dry([*argv, '--node_rank=1']).value('node_rank') == '1'
    refused([*argv, '--control=off', *native('dump')], '--nnodes says 2', '--node_rank')


@pytest.fixture
def python(place):
    """An environment's Python that would leave a trace if it were started; call: with a torch, or with
    None, where it is a script that is asked for it."""
    asked = []

    def make(version):
        asked.append(version is None)
        place.write('env/bin/python3.11', '#!/bin/sh\necho started > "$HOME/started"\n', 0o755)
        if version:
            place.write('env/lib/python3.11/site-packages/torch/version.py',
                        f"__version__ = '{version}'\n")
            place.write('env/lib/python3.11/site-packages/torch/__init__.py', 'boom\n')
        return ['--python', f'{place.path}/env/bin/python3.11']

    yield make
    assert (place.path / 'started').exists() == any(asked)


# tests/unit/daemon/plan/test_store_host.c has every version.
@pytest.mark.parametrize('version, options, store, told', [
    ('2.15.0+cu132', [], 'agent', '2.15.0+cu132'),
    ('2.15.0+cu132', ['--store=rank0'], 'rank0', '2.15.0+cu132'),
    ('2.15.0+cu132', ['--max-restarts=2'], 'agent', '2.15.0+cu132'),
    ('1.12.1', [], 'rank0', '1.12.1'),
    (None, ['--store=agent'], 'agent', None),
])
def test_who_hosts_the_store(dry, python, version, options, store, told):
    plan = dry([*python(version), *options])
    assert plan.value('store') == store
    assert plan.json['job'].get('torch', {}).get('value') == told
    edits = plan.edits()
    assert ('NCCL_ASYNC_ERROR_HANDLING' in edits) == (version != '2.15.0+cu132')  # which warns of it
    assert edits['TORCHELASTIC_USE_AGENT_STORE']['value'] == str(store == 'agent')
    assert edits['TORCHELASTIC_MAX_RESTARTS']['value'] == ('2' if '--max-restarts=2' in options
                                                           else '0')


def test_a_torch_that_no_store_of_ours_serves(refused, python):
    refused([*python('1.12.1'), '--store=agent', '/bin/true'], '--store', 'torch 1.13 and later',
            '1.12.1', '--store rank0')


def test_a_program_of_its_own_has_no_torch_to_look_at(dry, python):
    plan = dry([*python('2.15.0'), '--no_python', '--use_env', '--max-restarts=2'])
    assert (plan.value('store'), plan.source('store')) == ('rank0', '--no_python')


def test_rules_of_restarts(dry, refused, place):
    place.write('job.ini', '[launchd]\nmax-restarts = 3\nrestart_on = 1, 64-77 , SIGSEGV\n')
    plan = dry(['--config=job.ini', '--restart-delay=5'])
    assert (plan.value('restarts'), plan.source('restarts')) == \
        ('3, the first after 5 s', 'job.ini:2')
    assert plan.setting('restart-on') == ('1, 64-77 , SIGSEGV', 'job.ini:3')
    assert dry(['--restart-on=1']).warnings() == ['--restart-on has no effect without '
                                                  '--max-restarts']
    refused(['--max-restarts=1', '--restart-delay=301', *native('dump')], '--restart-delay', '"301"', 'from 0 to 300')
