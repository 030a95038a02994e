"""Placement: workers' CPUs and memory as the kernel has them, and machines that --dry-run plans for."""
import errno
import os
import pathlib

import pytest

from harness import TESTS, native, supervisor_of
from needs import WHY_NO_MEMORY_POLICY, mark, needs_memory_policy, needs_numa
from sandbox import without
from test_cgroup import own_cgroup
from together import warnings

CPUS = sorted(os.sched_getaffinity(0))
TWO_CPUS = mark('' if len(CPUS) >= 2 else 'needs two CPUs')
TWO = ['--nproc_per_node=2']


def ranges(text):
    return [n for part in text.split(',') if part
            for n in range(int(part.split('-')[0]), int(part.split('-')[-1]) + 1)]


def on(machine):
    """A machine of tests/topologies, or one that is made up."""
    path = TESTS / 'topologies' / f'{machine}.xml'
    return {'HWLOC_XMLFILE': str(path)} if path.exists() else {'HWLOC_SYNTHETIC': machine}


def variable(dump, name):
    """NAME=VALUE of a worker's environment; None: not set."""
    return dict(entry.split('=', 1) for entry in dump['environ']).get(name)


def cpus_of(place):
    return {rank: ranges(dump['cpu_list']) for rank, dump in place.dumps().items()}


# --- real workers ---

def test_nobody_is_bound_unless_it_is_asked(launch, place):
    launch(native('dump', *TWO))
    assert cpus_of(place) == {0: CPUS, 1: CPUS}
    assert {dump['memory'] for dump in place.dumps().values()} <= {'default', ''}


@TWO_CPUS
def test_workers_have_cores_of_their_own(launch, place):
    launch(native('dump', *TWO, '--bind=core'))
    [one, other] = cpus_of(place).values()
    assert not set(one) & set(other) and sorted(one + other) == CPUS


@TWO_CPUS
def test_a_mask_is_not_left(launch, place):
    launch(native('dump', *TWO, '--bind=core'), wrap=['taskset', '-c', str(CPUS[1])])
    assert cpus_of(place) == {0: CPUS[1:2], 1: CPUS[1:2]}


@TWO_CPUS
def test_lists(launch, place, refused):
    launch(native('dump', *TWO, f'--bind={CPUS[1]}:{CPUS[0]}-{CPUS[0]}'))
    assert cpus_of(place) == {0: CPUS[1:2], 1: CPUS[:1]}
    for dump in place.path.glob('*.json'):
        dump.unlink()
    refused(native('dump', *TWO, f'--bind={CPUS[1]}:{CPUS[0]}'), f'--bind: CPU {CPUS[0]} is none',
            wrap=['taskset', '-c', str(CPUS[1])])


@TWO_CPUS
def test_mpiruns_mask_is_widened_first(launch, place):
    launch(native('dump', *TWO, '--bind=core'),
           {'OMPI_MCA_orte_bound_at_launch': '1', 'OMPI_COMM_WORLD_RANK': '0',
            'OMPI_COMM_WORLD_SIZE': '1', 'OMPI_MCA_odls_base_sigkill_timeout': '31'},
           wrap=['taskset', '-c', str(CPUS[0])])
    [one, other] = cpus_of(place).values()
    assert not set(one) & set(other)


@needs_memory_policy
@pytest.mark.parametrize('options, policy', [
    (['--bind=numa'], 'prefer:'), (['--bind=numa', '--membind=bind'], 'bind:'),
    (['--bind=numa', '--membind=interleave'], 'interleave:'), (['--membind=local'], 'local'),
    (['--bind=numa', '--membind=none'], 'default'), (['--numa-binding=node'], 'prefer:')])
def test_memory(launch, place, options, policy):
    launch(native('dump', *TWO, *options))
    assert all(dump['memory'].startswith(policy) for dump in place.dumps().values())
    assert len(place.dumps()) == 2


@needs_memory_policy
def test_memory_of_a_list(launch, place):
    launch(native('dump', *TWO, '--membind=0'))
    assert [dump['memory'] for dump in place.dumps().values()] == ['bind:0'] * 2


@TWO_CPUS
def test_each_attempt_has_its_place(start, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(native('dump', *TWO, '--bind=core', '--max-restarts=1'),
                {'TELL': ready.path, 'GO': go.path, 'EXIT': '1'})
    for _ in range(2):
        ready.expect('ready', 2)
        go.go()  # one fails, and the other is stopped
    assert job.end().rc == 1
    assert all(variable(dump, 'TORCHELASTIC_RESTART_COUNT') == '1' for dump in place.dumps().values())
    [one, other] = cpus_of(place).values()
    assert not set(one) & set(other)


@needs_numa
@pytest.mark.parametrize('error', [errno.EPERM, errno.ENOSYS])
def test_a_sandbox_without_memory_policies(launch, place, error):
    """Said once, and CPUs alone."""
    result = launch(native('dump', *TWO, '--bind=core', '--omp-threads=1'),
                    before=lambda: without('set_mempolicy', error=error))
    [warning] = warnings(result)
    assert result.rc == 0 and f'set_mempolicy is refused here ({os.strerror(error)}; ' in warning
    if len(CPUS) >= 2:
        [one, other] = cpus_of(place).values()
        assert not set(one) & set(other)
    assert {dump['memory'] for dump in place.dumps().values()} == {'default'}


def test_a_sandbox_without_masks(launch, place):
    """What is asked for can't be had: nothing runs elsewhere."""
    result = launch(native('dump', *TWO, '--bind=core', '--membind=none'),
                    before=lambda: without('sched_setaffinity'))
    assert result.rc == 1 and f'sched_setaffinity: {os.strerror(errno.EPERM)}: a sandbox' in result.err
    assert not place.dumps()


@TWO_CPUS
def test_threads(launch, place):
    def threads(*options, env=None):
        launch(native('dump', *options), env or {})
        return {variable(dump, 'OMP_NUM_THREADS') for dump in place.dumps().values()}

    all_of_them = len(usable_cores())
    assert threads('--omp-threads=auto') == {str(all_of_them)}
    assert threads(*TWO, '--omp-threads=auto') == {str(max(1, all_of_them // 2))}
    assert threads(*TWO, '--omp-threads=7') == {'7'}
    assert threads(*TWO, '--omp-threads=auto', env={'OMP_NUM_THREADS': '3'}) == {'3'}
    assert threads(*TWO, '--omp-threads=auto', '--env=OMP_NUM_THREADS=5') == {'5'}
    assert threads(*TWO) == {'1'}


def usable_cores():
    """The first usable thread of each core."""
    def siblings(cpu):
        with open(f'/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list',
                  encoding='ascii') as file:
            return [n for n in ranges(file.read().strip()) if n in CPUS]
    return [cpu for cpu in CPUS if cpu == siblings(cpu)[0]]


@pytest.fixture
def three_halves():
    """A cgroup with the time of 1.5 CPUs: a path to write one's pid to."""
    old = own_cgroup('cpu')
    top = old or own_cgroup('')
    limits = {'cpu.cfs_period_us': '100000', 'cpu.cfs_quota_us': '150000'} if old else \
        {'cpu.max': '150000 100000'}
    path = top and top / f'launchd-test-quota-{os.getpid()}'
    try:
        if not path:
            pytest.skip('no cgroup tells CPU time apart here')
        path.mkdir()
        for name, text in limits.items():
            (path / name).write_text(text)
        yield path / 'cgroup.procs'
    except OSError as error:
        pytest.skip(f'no cgroup with a limit of CPU time can be made here: {error}')
    finally:
        if path and path.exists():
            path.rmdir()


def test_a_quota(launch, place, dry, three_halves):
    def enter():
        three_halves.write_text('0')

    launch(native('dump', '--omp-threads=auto'), before=enter)
    assert variable(place.dumps()[0], 'OMP_NUM_THREADS') == '1'
    assert dry(['--bind=core'], before=enter).value('cpu_quota') == '1.5'
    result = launch(native('dump', '--nproc_per_node=3', '--cpus-per-worker=1'), before=enter)
    assert result.rc == 2 and '--cpus-per-worker: 3 workers with 1 core each: ' in result.err


def libraries_of(pid):
    with open(f'/proc/{pid}/maps', encoding='ascii') as maps:
        return maps.read()


@pytest.mark.parametrize('options', [[], ['--bind=core']])
def test_hwloc_is_loaded_for_placement_and_not_kept(start, place, options):
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(native('dump', *options), {'TELL': ready.path, 'GO': go.path})
    ready.expect('ready', 1)
    for pid in (job.pid, supervisor_of(job.pid)):
        assert 'hwloc' not in libraries_of(pid)
    go.go()
    assert job.end().rc == 0


def test_no_hwloc(launch, place, dry, refused):
    """Nobody needs it, but who asks for a placement."""
    place.write('no/libhwloc.so.15', 'this is no library\n')
    env = {'LD_LIBRARY_PATH': str(place.path / 'no')}
    assert not dry(TWO, env).warnings()
    if 'linked in' not in launch(['--self-check']).out.partition('\nhwloc ')[2].partition('\n')[0]:
        refused(native('dump', '--bind=core'), '--bind: hwloc: ', 'libhwloc.so.15: file too short',
                env=env, rc=1)


def test_nothing_runs_by_another_machine(refused):
    refused(native('dump', '--bind=numa'), "--bind: workers can't be placed by a machine that isn't this one",
            'pack:2 core:2 pu:1', '--dry-run', env=on('pack:2 core:2 pu:1'))


def test_a_machine_that_can_not_be_read_is_said(launch):
    """hwloc reads this one then, and says nothing."""
    def shown(env):
        return launch(['--dry-run', *native('dump', '--bind=numa')], env).out

    assert ", not HWLOC_XMLFILE=/nowhere, which it can't read)" in shown({'HWLOC_XMLFILE': '/nowhere'})
    assert ", not HWLOC_SYNTHETIC=nonsense, which it can't read)" in shown({'HWLOC_SYNTHETIC': 'nonsense'})
    assert "can't read" not in shown({})


@pytest.fixture
def cpuset():
    """A cpuset with two CPUs: its path."""
    top = own_cgroup('cpuset') or own_cgroup('')
    path = top and top / f'launchd-test-cpuset-{os.getpid()}'
    try:
        if not path:
            pytest.skip('no cgroup has cpusets here')
        path.mkdir()
        (path / 'cpuset.mems').write_text('0')
        (path / 'cpuset.cpus').write_text(f'{CPUS[0]},{CPUS[1]}')
        yield path
    except OSError as error:
        pytest.skip(f'no cpuset can be made here: {error}')
    finally:
        if path and path.exists():
            path.rmdir()


@TWO_CPUS
def test_cpus_that_are_gone_are_said(start, place, cpuset):
    """Between two attempts a CPU goes: its worker doesn't run elsewhere."""
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(native('dump', *TWO, '--bind=core', '--max-restarts=1'),
                {'TELL': ready.path, 'GO': go.path, 'EXIT': '1'},
                before=lambda: (cpuset / 'cgroup.procs').write_text('0'))
    ready.expect('ready', 2)
    (cpuset / 'cpuset.cpus').write_text(str(CPUS[1]))
    go.go()
    ended = job.end()
    assert ended.rc == 1 and 'sched_setaffinity: Invalid argument: its CPUs have gone offline' in ended.err


# --- machines ---

# the machine, options, and each worker's CPUs and memory
PLANS = [
    ('turin-4gpu', ['--nproc_per_node=4', '--bind=auto'],
     ['16-31,144-159', '32-47,160-175', '96-111,224-239', '112-127,240-255'], 'prefer'),
    ('turin-4gpu', ['--nproc_per_node=4', '--numa-binding=core-complex'],
     ['16-23,144-151', '32-39,160-167', '96-103,224-231', '112-119,240-247'], 'prefer'),
    ('turin-4gpu', ['--nproc_per_node=4', '--numa-binding=socket'],
     ['0-63,128-191'] * 2 + ['64-127,192-255'] * 2, 'local'),
    ('turin-4gpu', ['--nproc_per_node=4', '--bind=gpu', '--cpus-per-worker=2'],
     ['16-17,144-145', '32-33,160-161', '96-97,224-225', '112-113,240-241'], 'prefer'),
    ('dgx2', ['--nproc_per_node=16', '--bind=gpu'], ['0-1'] * 8 + ['24-25'] * 8, 'prefer'),
    ('dgx2', ['--nproc_per_node=16', '--numa-binding=exclusive'],
     ['0'] * 4 + ['1'] * 4 + ['24'] * 4 + ['25'] * 4, 'prefer'),
    ('power9-gpu-memory', ['--nproc_per_node=2', '--bind=auto', '--membind=bind'],
     ['0-15', '88-103'], 'bind'),
    ('pack:1 core:4 pu:2', ['--nproc_per_node=3', '--bind=auto'], ['0-3', '4-5', '6-7'], 'prefer'),
    ('pack:2 numa:4 l3:2 core:8 pu:2', ['--nproc_per_node=8', '--bind=auto'],
     [f'{32 * i}-{32 * i + 31}' for i in range(8)], 'prefer'),
]


@pytest.mark.parametrize('machine, options, cpus, memory', PLANS)
def test_a_plan_for_a_machine(dry, machine, options, cpus, memory):
    plan = dry(options, on(machine))
    places = [worker['place'] for worker in plan.workers]
    assert [where['cpus'] for where in places] == cpus
    assert {where['memory'] for where in places} == {None if WHY_NO_MEMORY_POLICY else memory}
    assert all(where['why'] for where in places)


def test_gpus_that_are_hidden_do_not_count(dry):
    plan = dry(['--nproc_per_node=2', '--numa-binding=exclusive'],
               {**on('turin-4gpu'), 'CUDA_VISIBLE_DEVICES': '3,2'})
    assert [worker['place']['cpus'] for worker in plan.workers] == ['112-127,240-255', '96-111,224-239']


@needs_memory_policy
def test_a_memory_of_gpus_is_never_chosen(dry):
    plan = dry(['--nproc_per_node=2', '--bind=numa', '--membind=interleave'], on('power9-gpu-memory'))
    assert [worker['place']['memory_nodes'] for worker in plan.workers] == ['0', '8']


@needs_memory_policy
def test_the_plan_says_why(dry, launch):
    result = launch(native('dump', '--nproc_per_node=4', '--bind=auto', '--dry-run'), on('turin-4gpu'))
    assert '    cpus      16-31,144-159 (16 cores): NUMA node 1, near GPU 0 (0000:06:00.0)\n' \
        '    memory    prefer 1\n' in result.out
    assert '  machine          2 sockets, 8 NUMA nodes, 128 cores, 4 GPUs  (hwloc 2.' in result.out
    assert 'place' not in dry(TWO).workers[0]


def test_numbers_that_no_cpu_has(refused):
    refused(native('dump', '--bind=99999'), '--bind: "99999" is not one of ', 'numbers up to 16383')


def test_more_cores_than_there_are(refused):
    refused(native('dump', *TWO, '--cpus-per-worker=3'),
            '--cpus-per-worker: 2 workers with 3 cores each', 'has 4 ', 'at most 2 each',
            env=on('pack:1 core:4 pu:2'))
