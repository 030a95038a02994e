"""--check-node: what is found on this node, by a fake NVML that has each fault once."""
import contextlib
import json
import os
import re
import signal
import time

import pytest

from hang_fs import STATFS, HangFS
from harness import BUILD, children_of, is_running, until
from needs import needs_mounts, needs_shm
from nvidia_kernel import on_bus
from own_mounts import OWN_MOUNTS

NVML = BUILD / 'tests' / 'workers'
OF_A_GPU = {'gpu_recovery', 'gpu_ecc', 'gpu_remap', 'nvlink', 'gpu_fabric', 'gpu_pcie', 'gpu_use'}
WAKE_S = 30  # a GPU gets it to wake up
SOON_S = 30  # far below what would hang, far above what it takes


def faked(faults='', gpus=4, library=NVML, **env):
    return {'LD_LIBRARY_PATH': str(library), 'FAKE_GPUS': str(gpus), 'FAKE_NVML': faults, **env}


class Found:
    def __init__(self, result):
        assert result.err == '', result
        self.rc, said = result.rc, json.loads(result.out)
        assert said['launchd_node_check'] == 1 and said['left_out'] == 0
        self.health = said['health']
        self.at = {(one['check'], one['subject']): (one['health'], one['text'])
                   for one in said['findings']}
        assert self.rc == (3 if any(how == 'bad' for how, _ in self.at.values()) else 0)
        assert (self.health == 'bad') == (self.rc == 3)

    def of(self, check, subject=''):
        return self.at[check, subject]

    def bad(self):
        """All but what this machine may lack."""
        return {key: text for key, (how, text) in self.at.items()
                if how == 'bad' and key[0] not in ('shm', 'memlock', 'disk', 'mount')}


@pytest.fixture
def check(launch):
    """check(*options, env=...) -> Found."""

    def run(*options, env=None, **how):
        return Found(launch(['--check-node', '--json', *options], env, **how))

    return run


# --- this machine ---

needs_bus = pytest.mark.skipif(not os.path.isdir('/sys/bus/pci/devices'), reason='no PCI bus here')
NO_NVML = {'LD_LIBRARY_PATH': '/nonexistent'}


@needs_mounts
@needs_bus
@pytest.mark.parametrize('env', [NO_NVML, faked(gpus=-1), faked(gpus=0), faked('nvmlInit=28')],
                         ids=['no library', 'no driver', 'no GPU', 'not found'])
def test_a_node_without_gpus_is_not_bad_for_that(check, env):
    """Nor good."""
    found = check(env=env, wrap=on_bus([]))
    if env is NO_NVML and ('gpu_driver', '') in found.at:
        pytest.skip('NVML is installed here')
    assert found.bad() == {}
    assert not [check for check, _ in found.at if check.startswith('gpu_')]
    assert {'infiniband', 'shm', 'memlock', 'disk', 'clock'} <= {check for check, _ in found.at}
    assert check('--check-gpus=0', env=env, wrap=on_bus([])).of('gpu_count') == ('good', 'none, which is right')


@needs_mounts
@needs_bus
@pytest.mark.parametrize('env, why', [
    (faked(gpus=-1), 'the driver is not loaded'), (faked('nvmlInit=28'), 'there is no GPU'),
    (faked(gpus=0), 'NVML shows no GPU')], ids=['no driver', 'not found', 'no GPU'])
def test_a_driver_that_does_not_work(check, env, why):
    found = check(env=env, wrap=on_bus(['nvidia', 'nvidia'], 2))
    assert found.bad() == {('gpu_driver', ''): f'{why}, but 2 of NVIDIA\'s GPUs have its driver, and their device files '
                           'are here'}
    assert found.of('gpu_count') == ('unknown', 'none here, and 2 on the PCI bus')


@needs_mounts
@needs_bus
@pytest.mark.parametrize('drivers, nodes', [(['nvidia'], 0), (['vfio-pci'], 1), (['-'], 0)],
                         ids=['container', 'virtual machine', 'no driver'])
def test_gpus_that_are_not_for_this_node(check, drivers, nodes):
    for env in (NO_NVML, faked(gpus=-1)):
        found = check(env=env, wrap=on_bus(drivers, nodes))
        assert found.bad() == {} and found.of('gpu_driver')[0] == 'unknown'
        assert found.of('gpu_count') == ('unknown', 'none here, and 1 on the PCI bus')


@needs_mounts
@needs_bus
def test_fewer_gpus_than_the_bus_has(check):
    wrap = on_bus(['nvidia'] * 4 + ['vfio-pci'], 4)
    found = check(env=faked(gpus=3), wrap=wrap)
    assert found.bad() == {} and found.of('gpu_count') == (
        'unknown', '3 GPUs: NVML does not show 1 more that is on the PCI bus')
    assert check('--check-gpus=3', env=faked(gpus=3), wrap=wrap).of('gpu_count') == ('good', '3 GPUs')
    assert check(env=faked(), wrap=wrap).of('gpu_count') == ('good', '4 GPUs')


@pytest.mark.parametrize('gpus', ['-1', '0'])
def test_gpus_that_have_to_be_there(check, gpus):
    assert check(env=faked(gpus=gpus)).bad() == {}
    found = check('--check-gpus=8', env=faked(gpus=gpus))
    assert found.bad() == {('gpu_count', ''): '0 GPUs: there have to be 8'}
    assert found.rc == 3


@needs_shm
def test_all_forms_say_the_same(launch):
    env = faked('ecc@1=2')
    text = launch(['--check-node'], env)
    assert text.rc == 3 and text.err == ''
    assert re.search(r'^bad +gpu_ecc +GPU 1 +2 uncorrectable errors since the driver was loaded$',
                     text.out, re.M)
    assert re.search(r'^good +gpu_ecc +3 GPUs +no uncorrectable errors$', text.out, re.M)
    assert text.out.splitlines()[0].startswith('bad ')
    assert text.out.splitlines()[-1].startswith('This node is bad: 1 bad, ')
    metrics = launch(['--check-node=prometheus'], env)
    assert metrics.rc == 3
    assert 'launchd_node_check{check="gpu_ecc",subject="GPU 1"} 0\n' in metrics.out
    assert 'launchd_node_check{check="gpu_ecc",subject="GPU 0"} 1\n' in metrics.out
    one, other = [json.loads(launch(how, env).out) for how in (['--check-node=json'], ['--check-node', '--json'])]
    for told in (one, other):  # how much of a disk is free is another number each time
        for finding in told['findings']:
            if finding['check'] in ('disk', 'shm'):
                finding.pop('text')
    assert one == other


def test_it_starts_nothing(launch, place):
    result = launch(['--check-node', '/nonexistent/script.py'], faked())
    assert 'This node is' in result.out and not place.dumps()


def test_wrong_settings_are_usage_errors(refused, place):
    refused(['--check-node=xml'], '--check-node', '"xml"', 'text|json|prometheus')
    refused(['--check-node', '--check-gpus=many'], '--check-gpus', '"many"')
    place.write('job.ini', '[check H100]\nnvlinks = 99\n')
    refused(['--check-node', '--config=job.ini'], 'job.ini:2', 'nvlinks', '99')


# --- one fault each ---

FAULTS = [
    ('recovery@2=1', 'gpu_recovery', 'the driver asks for a reset of this GPU'),
    ('recovery@2=2', 'gpu_recovery', 'the driver asks for a reboot of the node'),
    ('recovery@2=99', 'gpu_recovery', 'the driver asks for an action that is not known here'),
    ('ecc@2=1', 'gpu_ecc', '1 uncorrectable error since the driver was loaded'),
    ('pending@2=1', 'gpu_remap', 'rows of its memory wait to be remapped: it needs a reset'),
    ('failed@2=1 pending@2=1', 'gpu_remap',
     'a row of its memory could not be remapped: it has to be replaced'),
    ('nvmlDeviceGetRemappedRows@2=3 retired@2=1', 'gpu_remap',
     'pages wait to be retired: it needs a reset'),
    ('down@2=3,17', 'nvlink', '16 of 18 links are up; down: 3,17'),
    ('down@2=' + ','.join(map(str, range(18))), 'nvlink', '0 of 18 links are up; down: 0,1,2,'),
    ('fabric@2=1', 'gpu_fabric', 'it has not begun to join its fabric: does Fabric Manager run?'),
    ('fabric@2=2', 'gpu_fabric', 'it has not joined its fabric: does Fabric Manager run?'),
    ('status@2=999', 'gpu_fabric', 'it could not join its fabric: an error inside the driver'),
    ('health@2=0x1', 'gpu_fabric', 'its bandwidth is degraded'),
    ('health@2=0x2a', 'gpu_fabric', None),  # 2: explicitly not so
    ('health@2=0x1a', 'gpu_fabric', 'a route is unhealthy'),
    ('health@2=0x100', 'gpu_fabric', None),  # 1: it is configured right
    ('health@2=0x200', 'gpu_fabric', 'its fabric is not configured right: the system\'s GUID'),
    ('health@2=0x3aa', 'gpu_fabric', 'its fabric is not configured right: the serial number of its chassis'),
    ('health@2=0x400', 'gpu_fabric', 'its fabric is not configured right: it is in no partition'),
    ('health@2=0x500', 'gpu_fabric', 'its fabric is not configured right: too few NVLinks'),
    ('health@2=0x800', 'gpu_fabric', 'its fabric is not configured right: the GPU\'s state'),
    ('health@2=0x900', 'gpu_fabric', 'its fabric is not configured right'),
    ('width@2=8', 'gpu_pcie', 'x8 of x16'),
    ('used@2=3221225472', 'gpu_use', '3 GiB of its memory are held, by whom can\'t be seen'),
    ('nvmlDeviceGetTotalEccErrors@2=15', 'gpu_ecc',
     'nvmlDeviceGetTotalEccErrors: the GPU has fallen off the bus'),
    ('nvmlDeviceGetRemappedRows@2=16', 'gpu_remap',
     'nvmlDeviceGetRemappedRows: the GPU needs a reset'),
]


@pytest.mark.parametrize('fault, name, text', FAULTS, ids=[fault for fault, *_ in FAULTS])
def test_each_fault_is_found_and_nothing_else(check, fault, name, text):
    found = check(env=faked(fault))
    if text is None:
        assert found.bad() == {}
        return
    [(key, said)] = found.bad().items()
    assert key == (name, 'GPU 2') and said.startswith(text)
    for gpu in range(4):
        for other in OF_A_GPU - ({name} if gpu == 2 else set()):
            assert found.of(other, f'GPU {gpu}')[0] == 'good'


def test_a_process_that_is_there_already(check):
    found = check(env=faked(FAKE_GPU_USE=f'{os.getpid()}:1000000'))
    [(key, said)] = found.bad().items()
    assert key == ('gpu_use', 'GPU 0')
    assert re.fullmatch(fr'process {os.getpid()} \(\S+\) uses it already', said)


def test_one_of_another_pid_namespace_has_no_name(check):
    found = check(env=faked(FAKE_GPU_USE='4194000:1000000,4194001:5'))
    assert found.bad() == {('gpu_use', 'GPU 0'): 'process 4194000 and others use it already'}


def test_many_processes(check):
    use = ','.join(f'{pid}:5' for pid in range(4194000, 4194200))
    assert check(env=faked('numa=4', FAKE_GPU_USE=use)).bad() == {
        ('gpu_use', 'GPU 0'): 'process 4194000 and others use it already'}


@pytest.mark.parametrize('numa', ['numa@2=4', 'name@2=NVIDIA_GH200_480GB'])
def test_memory_of_a_gpu_that_is_a_numa_node(check, numa):
    """It is the operating system's; a process shows that it is held."""
    faults = f'{numa} used@2=21474836480'
    found = check(env=faked(faults))
    assert found.bad() == {} and found.of('gpu_use', 'GPU 2') == (
        'unknown', '20 GiB of its memory are in use, which may be the operating system\'s: the GPU is a NUMA node')
    faults = faults.replace('@2', '@0')
    assert check(env=faked(faults, FAKE_GPU_USE=f'{os.getpid()}:1000000')).bad().keys() == {('gpu_use', 'GPU 0')}


UNKNOWN = [
    ('nvmlDeviceGetFieldValues@2=3', 'gpu_recovery',
     'the driver does not tell: it has to be 570 or newer'),
    ('nvmlDeviceGetTotalEccErrors@2=3', 'gpu_ecc', 'ECC is off, or this GPU has none'),
    ('nvmlDeviceGetTotalEccErrors@2=999', 'gpu_ecc',
     'nvmlDeviceGetTotalEccErrors: an error inside the driver'),
    ('nvmlDeviceGetCurrPcieLinkWidth@2=3', 'gpu_pcie',
     'this GPU, or the virtual machine, does not tell'),
    ('width@2=8 busy@2=0', 'gpu_pcie',
     'x8 of x16, which an idle GPU may fall to: pcie-width sets the least'),
    ('nvmlDeviceGetNvLinkState@2=999', 'nvlink', 'nvmlDeviceGetNvLinkState: an error inside the driver'),
    ('divided@2=1 down@2=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17', 'nvlink',
     'MIG divides this GPU, which then has no use for links'),
    ('nvmlDeviceGetHandleByIndex@2=4', 'gpu_driver',
     'nvmlDeviceGetHandleByIndex: no permission'),
    ('crash@2=nvmlDeviceGetNvLinkState', 'gpu_driver',
     'what looks at it was killed by SIGABRT in nvmlDeviceGetNvLinkState'),
]


@pytest.mark.parametrize('fault, name, text', UNKNOWN, ids=[fault for fault, *_ in UNKNOWN])
def test_what_could_not_be_asked_is_unknown_and_said(check, fault, name, text):
    found = check(env=faked(fault))
    assert found.bad() == {} and found.of(name, 'GPU 2') == ('unknown', text)
    if name == 'gpu_driver':
        assert found.of('gpu_use', 'GPU 2') == (
            'unknown', 'it was not asked, as this GPU could not be looked at to the end')
    for gpu in (0, 1, 3):
        assert all(found.of(other, f'GPU {gpu}')[0] == 'good' for other in OF_A_GPU)


def test_a_gpu_that_is_lost(check):
    found = check(env=faked('nvmlDeviceGetHandleByIndex@2=15'))
    assert found.bad() == {('gpu_driver', 'GPU 2'):
                           'nvmlDeviceGetHandleByIndex: the GPU has fallen off the bus'}
    assert found.of('nvlink', 'GPU 2')[0] == 'unknown'


def test_a_driver_that_was_replaced_below_us(check):
    found = check(env=faked('nvmlInit=18'))
    assert found.bad() == {('gpu_driver', ''): 'nvmlInit: the driver that is loaded is not the one '
                           'that is installed: reboot'}
    assert found.of('gpu_count') == ('unknown', 'the driver did not tell')


def test_a_library_that_is_older_than_some_facts(check):
    """Of these alone nothing is known."""
    found = check(env=faked(library=NVML / 'old_driver'))
    assert found.bad() == {}
    assert found.of('gpu_fabric', 'GPU 0') == (
        'unknown', 'this driver has no nvmlDeviceGetGpuFabricInfoV')
    assert found.of('gpu_use', 'GPU 0')[0] == 'good'
    assert check(env=faked('used@1=9000000000', library=NVML / 'old_driver')).bad().keys() == {
        ('gpu_use', 'GPU 1')}


# --- what hangs ---

@pytest.mark.long
@pytest.mark.parametrize('how', ['hang', 'spin'])
def test_a_driver_that_hangs_is_unknown_after_its_limit(check, how):
    begin = time.monotonic()
    found = check('--check-gpus=4', env=faked(f'{how}=nvmlInit'))
    assert time.monotonic() - begin < WAKE_S + SOON_S
    health, text = found.of('gpu_driver')
    assert health == 'unknown' and text.startswith('no answer within 30 s (nvmlInit)')
    assert found.bad() == {}
    assert found.of('gpu_count') == ('unknown', 'the driver did not tell')
    assert found.of('shm', '/dev/shm')


def test_one_gpu_that_hangs_keeps_no_other_from_being_looked_at(check):
    found = check(env=faked('hang@2=nvmlDeviceGetRemappedRows width@3=4'))
    assert found.bad() == {('gpu_pcie', 'GPU 3'): 'x4 of x16'}
    assert found.of('gpu_driver', 'GPU 2') == (
        'unknown', 'no answer within 5 s (nvmlDeviceGetRemappedRows)')
    assert found.of('gpu_ecc', 'GPU 2')[0] == 'good'  # it was asked before
    for unasked in OF_A_GPU - {'gpu_ecc', 'gpu_recovery'}:
        assert found.of(unasked, 'GPU 2') == (
            'unknown', 'it was not asked, as this GPU could not be looked at to the end')
    assert all(found.of(name, 'GPU 1')[0] == 'good' for name in OF_A_GPU)
    assert found.of('gpu_model') == ('good', '4 x NVIDIA H100 80GB HBM3')


def test_an_nvml_that_does_not_end(check):
    found = check(env=faked('hang=nvmlShutdown'))
    assert found.bad() == {} and ('gpu_driver', 'GPU 0') not in found.at


@pytest.mark.long
def test_a_gpu_that_does_not_wake_up(check):
    """The others are looked at nevertheless."""
    found = check(env=faked('hang@2=nvmlDeviceGetHandleByIndex width@3=4'))
    assert found.bad() == {('gpu_pcie', 'GPU 3'): 'x4 of x16'}
    assert found.of('gpu_driver') == ('unknown', 'no answer within 30 s (nvmlDeviceGetHandleByIndex of GPU 2)')
    assert found.of('gpu_driver', 'GPU 2')[0] == 'unknown'


@pytest.mark.parametrize('how', ['--check-node', '--preflight'])
def test_gpus_that_sleep_are_woken_once(check, launch, place, how):
    """8 without nvidia-persistenced, one at a time in a second: all are awake before each is asked."""
    (place.path / 'sleep').mkdir()
    env = faked(gpus=8, FAKE_SLEEP=f'{place.path}/sleep')
    if how == '--check-node':
        found = check(env=env)
        assert found.bad() == {} and found.of('gpu_count') == ('good', '8 GPUs')
        assert all(found.of(name, f'GPU {gpu}')[0] == 'good' for name in OF_A_GPU for gpu in range(8))
    else:
        result = launch(['--preflight=quick', '--no_python', '--use_env', 'true'], env)
        assert result.rc == 0 and ': none is bad' in result.err and 'GPU ' not in result.err
    assert (place.path / 'sleep' / 'woken').read_text().split() == [*map(str, range(8))]


def test_slow_is_not_dead(check):
    found = check(env=faked('slow=nvmlInit slow@1=nvmlDeviceGetName'))
    assert found.bad() == {} and found.of('gpu_count') == ('good', '4 GPUs')


def test_whoever_ends_it_ends_all(start):
    job = start(['--check-node'], faked('hang=nvmlInit'))
    [child] = until(lambda: len(found := children_of(job.pid)) == 1 and found,
                    'the child that asks to be the last')
    job.signal(signal.SIGINT)
    assert job.end().rc == -signal.SIGINT
    until(lambda: not is_running(child), 'the child to end')
    job.place.orphans_expected = True


@pytest.fixture
def hang(place, nothing_left):
    with contextlib.closing(HangFS(place)) as mounted:
        yield mounted


@needs_mounts
@pytest.mark.parametrize('answers', [True, False])
def test_a_mount_that_does_not_answer(check, hang, answers):
    if not answers:
        hang.stop()
    found = check(wrap=hang.mount, pass_fds=[hang.fd])
    assert found.of('mount', str(hang.path)[:63]) == (
        ('good', 'it answers') if answers else ('bad', 'no answer within 5 s (statvfs)'))


@needs_mounts
def test_who_can_t_be_killed_is_left_and_named(check, hang, place):
    hang.hold(STATFS)
    found = check(wrap=hang.mount, pass_fds=[hang.fd])
    health, text = found.of('mount', str(hang.path)[:63])
    named = re.fullmatch(r'no answer within 5 s \(statvfs\); process (\d+) hangs in the kernel, can\'t be '
                         r'killed, and is left behind', text)
    assert health == 'bad' and is_running(int(named[1]))
    place.orphans_expected = True
    hang.close()
    until(lambda: not is_running(int(named[1])), 'it to end with its file server')


@needs_mounts
@pytest.mark.skipif('ASAN_OPTIONS' in os.environ, reason='sanitizers need /proc')
def test_mounts_that_can_t_be_listed(check):
    """Of them nothing is known, and that is said."""
    found = check(wrap=[*OWN_MOUNTS, 'bash', '-ec', 'mount -t tmpfs none /proc; exec "$@"', 'bash'])
    assert found.of('mount') == ('unknown', '/proc/self/mountinfo: No such file or directory')


# --- what is expected ---

def test_the_count(check, place):
    assert check('--check-gpus=4', env=faked()).bad() == {}
    assert check('--check-gpus=8', env=faked()).bad() == {
        ('gpu_count', ''): '4 GPUs: there have to be 8'}
    place.write('job.ini', '[check]\ngpus = 1\n')
    assert check('--config=job.ini', env=faked()).bad() == {
        ('gpu_count', ''): '4 GPUs: there have to be 1'}


def test_the_uuids(check, place):
    right = ','.join(f'GPU-0000000{gpu}' for gpu in range(4))
    place.write('job.ini', f'[check]\ngpu-uuids = {right}\n')
    assert check('--config=job.ini', env=faked()).of('gpu_uuid')[0] == 'good'
    found = check('--config=job.ini', env=faked('uuid@3=GPU-4711'))
    assert found.bad() == {('gpu_uuid', ''): 'GPU-00000003 is not here'}


def test_only_what_cuda_would_show_is_looked_at(check):
    """Another job's GPU is none of ours."""
    faults = 'ecc@1=3 width@2=4'
    found = check('--check-gpus=2', env=faked(faults, CUDA_VISIBLE_DEVICES='0,3'))
    assert found.bad() == {}
    assert found.of('gpu_count') == ('good', '2 GPUs, by CUDA_VISIBLE_DEVICES')
    assert {subject for check, subject in found.at if check == 'gpu_ecc'} == {'GPU 0', 'GPU 3'}
    found = check(env=faked(faults, CUDA_VISIBLE_DEVICES='GPU-00000001'))
    assert found.bad().keys() == {('gpu_ecc', 'GPU 1')}


@pytest.mark.parametrize('change, env, is_bad', [
    ('CUDA_VISIBLE_DEVICES=0', {}, False), ('CUDA_VISIBLE_DEVICES=1', {'CUDA_VISIBLE_DEVICES': '0'}, True)])
def test_what_the_user_shows_to_workers_is_looked_at(launch, change, env, is_bad):
    result = launch(['--preflight=quick', '--env', change, '--no_python', '--use_env', 'true'], faked('ecc@1=3', **env))
    assert (result.rc, ' is bad: GPU 1' in result.err) == ((122, True) if is_bad else (0, False))


@pytest.mark.parametrize('call', ['nvmlDeviceGetHandleByIndex', 'nvmlDeviceGetUUID'])
@pytest.mark.parametrize('list, is_bad', [
    ('0,3', False), ('0,2', True), ('GPU-00000000,GPU-00000003', False), ('GPU-00000000,GPU-00000002', True),
    ('MIG-aaaa', False), ('MIG-bbbb', True), ('', False)])
def test_a_gpu_that_is_lost_counts_where_the_job_uses_it(check, call, list, is_bad):
    """It tells no UUID any more: it is another job's where others are all that are named."""
    found = check(env=faked(f'{call}@2=15 mig@1=MIG-aaaa', CUDA_VISIBLE_DEVICES=list))
    assert found.bad() == ({('gpu_driver', 'GPU 2'): f'{call}: the GPU has fallen off the bus'} if is_bad else {})
    assert is_bad or ('gpu_driver', 'GPU 2') not in found.at


def test_more_gpus_than_there_is_room_for_what_they_tell(launch):
    """What is bad keeps its place, and no GPU is said not to have been asked."""
    result = launch(['--check-node'], faked('ecc@38=3', gpus=40))
    assert result.rc == 3 and 'GPU 38           3 uncorrectable errors' in result.out
    assert 'it was not asked' not in result.out and ' left out' in result.out.splitlines()[-1]


def test_a_gpu_that_is_not_here(check):
    found = check(env=faked(CUDA_VISIBLE_DEVICES='GPU-0000abcd'))
    assert found.of('gpu_model') == ('unknown', 'CUDA_VISIBLE_DEVICES=GPU-0000abcd names no GPU that NVML shows here')


def test_numbers_of_gpus_of_several_models(check):
    """CUDA numbers them by speed, NVML by the bus."""
    faults = 'ecc@0=3 name@0=NVIDIA_T4'
    found = check(env=faked(faults, CUDA_VISIBLE_DEVICES='0'))
    assert found.bad() == {}
    health, text = found.of('gpu_model')
    assert health == 'unknown' and 'CUDA_VISIBLE_DEVICES=0 does not show which' in text
    assert check(env=faked(faults, CUDA_VISIBLE_DEVICES=' 0')).bad() == {}
    for told in ({'CUDA_VISIBLE_DEVICES': 'GPU-00000000'},
                 {'CUDA_VISIBLE_DEVICES': '0', 'CUDA_DEVICE_ORDER': 'PCI_BUS_ID'}):
        assert check(env=faked(faults, **told)).bad().keys() == {('gpu_ecc', 'GPU 0')}


@pytest.mark.parametrize('order', [{}, {'CUDA_DEVICE_ORDER': 'PCI_BUS_ID'}])
def test_numbers_where_some_gpus_may_not_be_opened(check, order):
    """NVML counts them, and CUDA doesn't: its 0 is NVML's 2."""
    faults = 'nvmlDeviceGetHandleByIndex@0=4 nvmlDeviceGetHandleByIndex@1=4 ecc@2=3'
    found = check(env=faked(faults, CUDA_VISIBLE_DEVICES='0', **order))
    assert found.bad() == {} and 'does not show which' in found.of('gpu_model')[1]
    assert check(env=faked(faults, CUDA_VISIBLE_DEVICES='GPU-00000002', **order)).bad().keys() == {('gpu_ecc', 'GPU 2')}
    faults = 'nvmlDeviceGetHandleByIndex@2=4 nvmlDeviceGetHandleByIndex@3=4 ecc@1=3'
    found = check(env=faked(faults, CUDA_VISIBLE_DEVICES='0,1', **order))
    assert found.bad().keys() == {('gpu_ecc', 'GPU 1')} and ('gpu_driver', 'GPU 2') not in found.at


def test_limits_by_model(check, place):
    place.write('job.ini', '[check]\necc-errors = 1\n\n[check H100]\necc-errors = 3\n'
                'nvlinks = 16\npcie-width = 8\ngpu-memory = 4G\n\n[check H100 NVL]\nnvlinks = 18\n')
    faults = 'ecc=3 down=0,1 width=8 used=3221225472'
    assert check('--config=job.ini', env=faked(faults)).bad() == {}
    assert check('--config=job.ini', env=faked(faults + ' name@1=NVIDIA_H100_NVL')).bad() == {
        ('nvlink', 'GPU 1'): '16 of 18 links are up; down: 0,1'}
    found = check('--config=job.ini', env=faked('ecc@1=3 name=NVIDIA_A100_80GB_PCIe links=0'))
    assert found.bad() == {('gpu_ecc', 'GPU 1'): '3 uncorrectable errors since the driver was loaded'}


def test_the_width_of_an_idle_gpu(check, place):
    """Whoever says what it has to be means it."""
    place.write('job.ini', '[check]\npcie-width = 16\n')
    assert check('--config=job.ini', env=faked('width@2=8 busy=0')).bad() == {('gpu_pcie', 'GPU 2'): 'x8 of x16'}


def test_links_of_a_model_that_is_not_known(check):
    """All or none: a bridge is an option."""
    name = 'name=NVIDIA_A30 links=4 '
    assert check(env=faked(name)).of('nvlink', 'GPU 0') == ('good', '4 links are up')
    assert check(env=faked(name + 'down=0,1,2,3')).of('nvlink', 'GPU 0') == (
        'good', 'none here is in use')
    assert check(env=faked(name + 'down@0=2')).bad() == {
        ('nvlink', 'GPU 0'): '3 of 4 links are up; down: 2'}


def test_a_single_gpu_needs_neither_links_nor_fabric(check):
    """As clouds sell them."""
    down = 'down=' + ','.join(map(str, range(18)))
    found = check(env=faked(f'{down} fabric=2', gpus=1))
    assert found.bad() == {} and found.of('gpu_fabric', 'GPU 0')[0] == 'unknown'


def test_memory_and_disks(check, place):
    place.write('job.ini', '[check]\nshm = 1000000G\ndisk = 1000000G\n')
    found = check('--config=job.ini', '--log-dir=logs/deep')
    assert found.of('shm', '/dev/shm')[0] == 'bad' and '--shm-size' in found.of('shm', '/dev/shm')[1]
    assert {subject for (check, subject), (how, _) in found.at.items()
            if check == 'disk' and how == 'bad'} == {'logs/deep', str(place.tmp), '.'}
    assert found.rc == 3


# --- the kernel's log ---

needs_log = pytest.mark.skipif(not os.path.exists('/dev/kmsg'), reason='no /dev/kmsg here')


def with_log(log):
    return [*OWN_MOUNTS, 'bash', '-ec', 'mount --bind "$1" /dev/kmsg; shift; exec "$@"', 'bash', log]


@needs_mounts
@needs_log
def test_xids_of_the_kernels_log(check, place):
    """Its place is taken in a mount namespace."""
    log = place.write('kmsg', '4,1,1,-;NVRM: Xid (PCI:0000:1b:00): 31, pid=7, MMU Fault\n')
    wrap = with_log(log)
    found = check(env=faked(), wrap=wrap)
    assert found.of('gpu_xid') == (
        'good', 'none that is fatal in the kernel\'s log; 1 of applications, 0 others')
    place.write('kmsg', '4,1,1,-;NVRM: Xid (PCI:0000:cb:00): 79, pid=7, GPU has fallen off\n')
    assert check(env=faked(), wrap=wrap).bad() == {
        ('gpu_xid', 'PCI:0000:cb:00'): 'Xid 79 in the kernel\'s log'}


@needs_mounts
@needs_log
def test_xids_of_gpus_that_are_here(check, place):
    """By their places on the bus, those of the job's GPUs count, until the driver asks for nothing any more."""
    wrap = with_log(place.write('kmsg', '4,1,1,-;NVRM: Xid (PCI:0000:12:00): 119, pid=7, Timeout\n'))
    old = 'nvmlDeviceGetFieldValues=3'  # a driver before 570
    bad = {('gpu_xid', 'PCI:0000:12:00'): 'Xid 119 in the kernel\'s log'}
    assert check(env=faked(old), wrap=wrap).bad() == bad
    found = check(env=faked(), wrap=wrap)
    assert found.bad() == {} and found.of('gpu_xid', 'PCI:0000:12:00') == (
        'good', 'Xid 119 in the kernel\'s log, but its driver asks for no recovery')
    for list, is_bad in (('0,2', True), ('0,1', False), ('GPU-00000002', True), ('GPU-00000001', False),
                         ('MIG-aaaa', True), ('MIG-bbbb', False)):
        found = check(env=faked(old + ' mig@2=MIG-aaaa mig@3=MIG-bbbb', CUDA_VISIBLE_DEVICES=list), wrap=wrap)
        assert found.bad() == (bad if is_bad else {}), list
    assert check('--gpus=0,1', env=faked(old), wrap=wrap).bad() == {}
    assert check('--gpus=1-2', env=faked(old), wrap=wrap).bad() == bad


@needs_mounts
@needs_bus
@needs_log
@pytest.mark.parametrize('fault, env, is_bad', [
    ('crash=nvmlInit', {}, True), ('crash=nvmlInit', {'CUDA_VISIBLE_DEVICES': ''}, False), ('nvmlInit=4', {}, False)])
def test_an_xid_is_why_the_driver_does_not_answer(check, place, fault, env, is_bad):
    """As where it hangs, which takes longer. Who may not ask it has no GPU."""
    log = place.write('kmsg', '4,1,1,-;NVRM: Xid (PCI:0000:12:00): 119, pid=7, Timeout\n')
    found = check(env=faked(fault, **env), wrap=[*on_bus(['nvidia'] * 4, 4), *with_log(log)])
    assert found.of('gpu_driver')[0] == 'unknown'
    assert found.bad() == ({('gpu_xid', 'PCI:0000:12:00'): 'Xid 119 in the kernel\'s log'} if is_bad else {})


@needs_mounts
@needs_log
def test_xids_where_it_is_not_known_which_gpus_are_the_jobs(check, place):
    """CUDA's numbers among several models, MIG devices that NVML doesn't place: neither bad nor another job's."""
    wrap = with_log(place.write('kmsg', '4,1,1,-;NVRM: Xid (PCI:0000:12:00): 119, pid=7, Timeout\n'))
    old = 'nvmlDeviceGetFieldValues=3 '
    denied = 'nvmlDeviceGetHandleByIndex@0=4 nvmlDeviceGetHandleByIndex@1=4'
    unplaced = 'mig@2=MIG-aaaa nvmlDeviceGetHandleByUUID=15'
    for faults, list in (('name@0=NVIDIA_T4', '0'), (denied, '0'), (unplaced, 'MIG-aaaa')):
        found = check(env=faked(old + faults, CUDA_VISIBLE_DEVICES=list), wrap=wrap)
        assert found.bad() == {} and found.of('gpu_xid', 'PCI:0000:12:00') == (
            'unknown', 'Xid 119 in the kernel\'s log: whether the job uses this GPU isn\'t known')
        assert ('gpu_xid', '') not in found.at


def test_a_part_of_a_gpu(check):
    """The GPU's own faults are the part's, but others may use the rest."""
    env = faked('mig@0=MIG-aaaa ecc@0=1', CUDA_VISIBLE_DEVICES='MIG-aaaa', FAKE_GPU_USE=f'{os.getpid()}:1000000')
    found = check(env=env)
    assert found.bad().keys() == {('gpu_ecc', 'GPU 0')}
    assert found.of('gpu_use', 'GPU 0') == ('unknown', 'others may use the rest of it (MIG)')


# --- a command of the user's ---

def test_a_command_that_is_well(check):
    assert check('--check-command=sh -c "echo fine"').of('command', 'sh') == ('good', 'exit code 0')


def test_nhc(check, place):
    nhc = place.write('nhc', '#!/bin/sh\necho "ERROR:  nhc:  Health check failed:  check_fs_mount:  '
                      '/scratch is not mounted"\nexit 1\n', 0o755)
    assert check(f'--check-command={nhc} -v').of('command', 'nhc') == (
        'bad', 'exit code 1: check_fs_mount:  /scratch is not mounted')


def test_health_validation(check, place):
    verdict = {'overall_severity': 'CRITICAL', 'affected_components': [
        {'category': 'xid', 'check_ids': ['gpu_xid_79'], 'entities': ['GPU-8f6a'],
         'max_severity': 'CRITICAL'}], 'padding': 'x' * 200000}
    place.write('verdict.json', json.dumps(verdict))
    found = check('--check-command=sh -c "echo noise >&2; cat verdict.json; exit 1"')
    assert found.of('command', 'sh') == (
        'bad', 'its verdict is CRITICAL: xid gpu_xid_79 (GPU-8f6a)')


def test_a_command_that_does_not_end_is_killed_with_all_it_started(check):
    found = check('--check-command=sh -c "setsid sleep 1000 & sleep 1000"', '--check-timeout=1')
    assert found.of('command', 'sh') == ('unknown', 'it had not ended after 1 s, and was killed')


def test_what_a_command_leaves_behind_is_ended(check):
    """It holds the pipes open, too."""
    found = check('--check-command=sh -c "setsid sleep 1000 & exit 0"')
    assert found.of('command', 'sh') == ('good', 'exit code 0')


@pytest.mark.parametrize('how', ['KILL', 'STOP'])
def test_who_ends_what_a_command_started_is_not_only_its_parent(check, place, how):
    script = place.write('hostile', f'#!/bin/sh\nsetsid sleep 1000 & kill -{how} $PPID\nsleep 1000\n', 0o755)
    found = check(f'--check-command={script}', '--check-timeout=1')
    assert found.of('command', 'hostile') == ('unknown', {
        'KILL': 'what looks at it was killed by SIGKILL', 'STOP': 'no answer within 2 s'}[how])


def test_a_command_that_is_not_there(refused, place):
    refused(['--check-node', '--check-command=/nonexistent/nhc -v'], '--check-command',
            '/nonexistent/nhc', 'No such file')
    refused(['--check-node', '--check-command="nhc'], '--check-command', 'unmatched')
    place.write('job.ini', '[check]\ncommand = nhc-that-is-not-there\n')
    refused(['--check-node', '--config=job.ini'], 'job.ini:2', 'nhc-that-is-not-there')


# --- how long it takes ---

def test_a_good_node_is_looked_at_soon(check):
    """8 GPUs in much less than a second; the best of some counts, on a machine that does other things."""
    times = []
    for _ in range(3):
        begin = time.monotonic()
        assert check(env=faked(gpus=8)).bad() == {}
        times.append(time.monotonic() - begin)
    assert min(times) < 1
