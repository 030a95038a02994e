"""Section 3: the master's address and port, and the free port that launchd keeps."""
import errno
import os
import signal
import socket
import subprocess

import pytest

from harness import native
from needs import why_no_mpirun
from together import C10d

NODES = ['--nnodes=2', '--node_rank=1']


# an mpirun that gives launchd all of its grace, about which nothing is said then
PATIENT = {'OMPI_MCA_odls_base_sigkill_timeout': '31'}


def ompi(rank, size, local_size=None, **more):
    env = {'OMPI_COMM_WORLD_RANK': str(rank), 'OMPI_COMM_WORLD_SIZE': str(size), **PATIENT, **more}
    if local_size is not None:
        env['OMPI_COMM_WORLD_LOCAL_SIZE'] = str(local_size)
    return env


def slurm(rank, size, **more):
    return {'SLURM_STEP_ID': '0', 'SLURM_PROCID': str(rank), 'SLURM_STEP_NUM_TASKS': str(size),
            'SLURM_STEP_NUM_NODES': str(size), **more}


FREE = ('<a free port>', 'one node: a free port')


# One row for each place; the order of the places, and what each of them may lack, is test_master.c's.
@pytest.mark.parametrize('options, env, addr, port', [
    ([*NODES, '--master_addr=h', '--master_port=7'], {'MASTER_ADDR': 'e', 'MASTER_PORT': '8'},
     ('h', '--master_addr'), ('7', '--master_port')),
    (['--master_port=0'], {}, ('127.0.0.1', 'one node'), ('<a free port>', '--master_port')),
    (NODES, {'PET_MASTER_ADDR': 'h', 'PET_MASTER_PORT': '7'}, ('h', 'PET_MASTER_ADDR'),
     ('7', 'PET_MASTER_PORT')),
    ([*NODES, '--rdzv-endpoint=[fe80::1]:7'], {}, ('fe80::1', '--rdzv-endpoint'),
     ('7', '--rdzv-endpoint')),
    ([*NODES, '--rdzv-backend=c10d', '--rdzv-endpoint=h'], {}, ('h', '--rdzv-endpoint'),
     ('<decided when nodes meet>', '--rdzv-endpoint')),
    # Azure ML's rules, of which tests/contract has more
    ([], ompi(0, 1, 1, AZ_BATCHAI_MPI_MASTER_NODE='10.0.0.4'),
     ('10.0.0.4', 'AZ_BATCHAI_MPI_MASTER_NODE'), ('54965', "Azure ML's rule for one node")),
    ([], ompi(1, 2, 1, AZ_BATCH_MASTER_NODE='10.1.2.3:6000'), ('10.1.2.3', 'AZ_BATCH_MASTER_NODE'),
     ('6105', "Azure ML's rule")),
    # Open MPI elsewhere
    ([], ompi(1, 2, 2, PMIX_NAMESPACE='7'), ('127.0.0.1', 'all launchers on one host'),
     ('<decided when nodes meet>', "mpirun's job id")),
    (NODES, {'MASTER_ADDR': 'e', 'MASTER_PORT': '9'}, ('e', 'MASTER_ADDR'), ('9', 'MASTER_PORT')),
    ([], {'MASTER_ADDR': socket.gethostname()}, (socket.gethostname(), 'MASTER_ADDR'), FREE),
    # Slurm's first host; srun --mpi=pmi2 says the same in PMI's names
    ([], slurm(1, 2, SLURM_STEP_NODELIST='gpu[03-04]', SLURM_JOB_NODELIST='a,b'),
     ('gpu03', 'SLURM_STEP_NODELIST'), ('29500', 'default')),
    ([], slurm(1, 2, SLURM_STEP_NODELIST='gpu[03-04]', PMI_RANK='1', PMI_SIZE='2'),
     ('gpu03', 'SLURM_STEP_NODELIST'), ('29500', 'default')),
    ([], {}, ('127.0.0.1', 'one node'), FREE),
])
def test_address_and_port(dry, options, env, addr, port):
    plan = dry(options, env)
    assert (plan.value('master_addr'), plan.source('master_addr')) == addr
    assert (plan.value('master_port'), plan.source('master_port')) == port


def test_the_rank_0_of_a_hydra_that_srun_carries_need_not_be_on_its_first_host(refused):
    refused(native('dump'), '2 nodes', '--master_addr',
            env=slurm(0, 3, SLURM_STEP_NODELIST='a,b', PMI_RANK='1', PMI_SIZE='2', MPI_LOCALRANKID='0'))


@pytest.mark.parametrize('option', ['--master_addr=h', '--master_port=8'])
def test_an_endpoint_goes_above_address_and_port_with_a_warning(launch, place, option):
    """As torchrun has it, which does so silently."""
    result = launch(native('dump', '--rdzv-endpoint=i:7', option))
    env = place.dumps()[0]['env']
    assert result.rc == 0 and (env['MASTER_ADDR'], env['MASTER_PORT']) == ('i', '7')
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith(f'launchd: warning: {option} is overridden by')


def test_a_foreign_master_addr_is_ignored_on_one_node_with_a_note(launch, place):
    result = launch(native('dump'), {'MASTER_ADDR': 'stale.example', 'MASTER_PORT': '9'})
    env = place.dumps()[0]['env']
    assert result.rc == 0 and env['MASTER_ADDR'] == '127.0.0.1' and env['MASTER_PORT'] != '9'
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith('launchd: note: MASTER_ADDR=stale.example')


def test_several_launchers_on_a_host_are_warned_of_in_one_line(launch, place):
    """By node rank 0, as all notes and warnings under mpirun."""
    result = launch(native('dump'), ompi(0, 4, 2, AZ_BATCH_MASTER_NODE='h:1'))
    assert result.rc == 0 and place.dumps()[0]['env']['MASTER_PORT'] == '6105'
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith('launchd: warning: ') and 'ppr:1:node' in result.err
    result = launch(native('dump', '--master_addr=h'), ompi(0, 4, 2))
    assert len(result.err.splitlines()) == 1 and 'ppr:1:node' in result.err
    argv = native('dump')
    assert launch(argv, ompi(3, 4, 2, AZ_BATCH_MASTER_NODE='h:1')).err == ''
    assert 'ppr:1:node' in launch(['--verbose', *argv],
                                  ompi(3, 4, 2, AZ_BATCH_MASTER_NODE='h:1')).err


def bind(family, address, port, reuse):
    """The socket, or the error."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
        sock.bind((address, port))
    except OSError as error:
        sock.close()
        return error
    return sock


ADDRESSES = [(socket.AF_INET, '127.0.0.1'), (socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')]


def test_a_free_port_stays_bound_while_workers_run(start, place):
    """Nobody can take it, but worker 0, which sets SO_REUSEADDR as PyTorch does, can listen."""
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(native('dump', '--nproc_per_node=2', '--quiet'),
                {'TELL': ready.path, 'GO': go.path})
    ready.expect('ready', 2)
    ports = {dump['env']['MASTER_PORT'] for dump in place.dumps().values()}
    assert len(ports) == 1
    port = int(ports.pop())
    for family, address in ADDRESSES:
        taken = bind(family, address, port, reuse=False)
        assert isinstance(taken, OSError) and taken.errno == errno.EADDRINUSE
        sock = bind(family, address, port, reuse=True)
        assert isinstance(sock, socket.socket), sock
        with sock:
            sock.listen()
            host = '::1' if family == socket.AF_INET6 else '127.0.0.1'
            with socket.create_connection((host, port), timeout=60) as client:
                accepted, _ = sock.accept()
                accepted.close()
                assert client.recv(1) == b''  # we end it last: no TIME_WAIT on our side
    with socket.socket() as client:  # launchd itself does not listen
        assert client.connect_ex(('127.0.0.1', port)) == errno.ECONNREFUSED
    go.go(2)
    assert job.end().rc == 0


def test_every_run_has_a_port_of_its_own(start, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    jobs, ports = [], []
    for run in range(3):
        out = place.path / f'run{run}'
        out.mkdir()
        jobs.append(start(native('dump'), {'TELL': ready.path, 'GO': go.path,
                                           'DUMP_DIR': str(out)}))
        ready.expect('ready', 1)
        place.out = out
        ports.append(place.dumps()[0]['env']['MASTER_PORT'])
    go.go(3)
    assert [job.end().rc for job in jobs] == [0, 0, 0]
    assert len(set(ports)) == 3


@pytest.mark.parametrize('pmix, options', [(True, ()), (False, ()), (False, ['--control=off'])],
                         ids=['PMIx', 'no PMIx', 'without a channel'])
def test_mpiruns_at_once_on_one_host(start, place, pmix, options):
    """Four jobs of two launchers each. Without PMIx these meet at a port of their job's."""
    if why := why_no_mpirun():
        pytest.skip(why)
    (place.path / 'libpmix.so.2').write_text('no library')
    root = ['--allow-run-as-root'] if os.geteuid() == 0 else []
    around = ['mpirun', *root, '--oversubscribe', '--bind-to', 'none', '-n', '2']
    if not pmix:
        around += ['env', f'LD_LIBRARY_PATH={place.path}']
    ready, go = place.fifo('ready'), place.fifo('go')
    jobs, ports = [], []
    for run in range(4):
        place.out = place.path / f'run{run}'
        place.out.mkdir()
        jobs.append(start(['--control=required', *options, *native('dump')],
                          {'TELL': ready.path, 'GO': go.path, 'DUMP_DIR': str(place.out)},
                          wrap=around))
        ready.expect('ready', 2)
        seen = {(dump['env']['MASTER_ADDR'], dump['env']['MASTER_PORT'], dump['env']['WORLD_SIZE'])
                for dump in place.dumps().values()}
        [(address, port, size)] = seen
        assert (address, size) == ('127.0.0.1', '2')
        ports.append(port)
    go.go(8)
    results = [job.end() for job in jobs]
    assert [result.rc for result in results] == [0] * 4, results
    assert len(set(ports)) == 4 and '54965' not in ports


def test_a_given_port_is_not_touched(start, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
        job = start(native('dump', f'--master_port={port}'), {'TELL': ready.path, 'GO': go.path})
        ready.expect('ready', 1)
        assert place.dumps()[0]['env']['MASTER_PORT'] == str(port)
    go.go()
    assert job.end().rc == 0


MPIRUN = {'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '1'}
CUT = 'mpirun sends SIGKILL 1 s after its SIGTERM, before the {} s of {} are over; to change that, ' \
      'set OMPI_MCA_odls_base_sigkill_timeout={} where mpirun is started (its SIGTERM then comes ' \
      '{} s later, too)'
DEFAULT = CUT.format(30, '--shutdown-timeout', 31, 31)


@pytest.mark.parametrize('options, env, said', [
    ([], {}, ''),
    (['--verbose'], {}, f'launchd: note: {DEFAULT}\n'),
    (['--shutdown-timeout=5'], {},
     f"launchd: warning: {CUT.format(5, '--shutdown-timeout', 6, 6)}\n"),
    (['--on-signal=TERM=forward:600'], {},
     f"launchd: warning: {CUT.format(600, '--on-signal', 601, 601)}\n"),
    (['--shutdown-timeout=1'], {}, ''), (['--shutdown-timeout=5'], PATIENT, ''),
    (['--shutdown-timeout=5', '--standalone'], {},
     f"launchd: warning: {CUT.format(5, '--shutdown-timeout', 6, 6)}\n"),
])
def test_a_grace_that_mpirun_cuts_is_said_to_who_asked_for_it(launch, options, env, said):
    result = launch([*options, *native('dump')], {**MPIRUN, **env})
    before, _, _ = result.err.partition('launchd: note: started rank 0')  # by --verbose
    before = ''.join(line for line in before.splitlines(keepends=True)
                     if ') is not available: ' not in line  # of an older kernel, a sandbox
                     and ' cgroup: ' not in line)  # what can't be divided here
    assert (result.rc, before) == (0, said)


def test_a_dry_run_says_what_mpirun_cuts(launch):
    assert f'  note: {DEFAULT}\n' in launch(['--dry-run', *native('dump')], MPIRUN).out


@pytest.mark.parametrize('by_mpirun, env, said', [
    (True, MPIRUN, 1),
    (False, MPIRUN, 0),  # somebody else's SIGTERM, which no SIGKILL follows
    (True, {**MPIRUN, **PATIENT}, 0),
    (True, {**MPIRUN, 'OMPI_COMM_WORLD_RANK': '1', 'OMPI_COMM_WORLD_SIZE': '2',
            'MASTER_ADDR': 'h'}, 0),  # node rank 0 says it
    (True, {}, 0),
])
def test_what_mpirun_cuts_is_said_when_its_sigterm_has_come(start, place, by_mpirun, env, said):
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(native('dump'), {'TELL': ready.path, 'GO': go.path, **env})
    ready.expect('ready', 1)
    assert job.said() == ''
    if by_mpirun:
        job.signal(signal.SIGTERM)
    else:
        subprocess.run(['sh', '-c', f'kill -TERM {job.pid}'], check=True)
    result = job.end()
    assert result.err.count(f'launchd: warning: {DEFAULT}\n') == said, result
    assert not said or result.err.index(DEFAULT) < result.err.index('launchd received SIGTERM'), result


def test_threads_are_said_once_a_job(launch, start):
    """By node rank 0."""
    said = 'launchd: note: OMP_NUM_THREADS is not set: launchd sets it to 1 for each worker\n'
    for node, expected in ((0, said), (1, '')):
        result = launch(['--nnodes=2', f'--node_rank={node}', '--master_addr=h',
                         *native('dump', '--nproc_per_node=2')])
        assert (result.rc, result.err) == (0, expected)
    cluster = C10d(start, 3, native('dump', '--nproc_per_node=2', '--join-timeout=60'),
                   {'OMP_NUM_THREADS': None})
    assert sorted(result.err.count(said) for result in cluster.end()) == [0, 0, 1]
    result = launch(native('dump', '--nproc_per_node=2'),
                    {**MPIRUN, 'OMPI_MCA_orte_bound_at_launch': '1'})
    assert (result.rc, result.err) == (0, said)  # nothing else needs anybody
