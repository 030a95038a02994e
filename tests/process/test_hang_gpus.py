"""--on-hang and GPUs: workers that are alike in /proc are told apart by what their GPUs draw and run. NVML is a fake."""
import json

import pytest

from harness import BUILD, children_of, is_running, status_of, supervisor_of, until

# Nobody has a connection to anybody, and all wait in the same way.
WORKER = '''
import os, pathlib, select, sys
place = pathlib.Path(sys.argv[1])
end = os.open(place / 'end', os.O_RDONLY)
while not select.select([end], [], [], 0.5)[0]:
    if os.environ['RANK'] == '0' and not (place / 'quiet').exists():
        print('step', flush=True)
        with open(place / 'steps', 'a') as steps:
            steps.write('.')
'''
WORKS, WAITS, BETWEEN = 310000, 110000, 240000


class Job:
    def __init__(self, start, place, *options, faults='', nproc='gpu', env=None):
        self.place = place
        self.over = place.fifo('end')
        for gpu in range(2):
            self.gpu(gpu, WORKS, 100)
        power = ' '.join(f'{name}@{gpu}={place.path}/{name}.{gpu}' for name in ('power', 'busy') for gpu in range(2))
        self.launcher = start(
            [f'--events={place.path}/events', f'--nproc_per_node={nproc}', *options, '--use_env',
             place.write('job.py', WORKER), str(place.path)],
            {'LD_LIBRARY_PATH': str(BUILD / 'tests' / 'workers'), 'FAKE_GPUS': '2', 'FAKE_NVML': f'{power} {faults}',
             **(env or {})})
        until((place.path / 'steps').exists, 'workers')

    def gpu(self, number, milliwatts, busy):
        for name, value in (('power', milliwatts), ('busy', busy)):
            self.set(name, number, value)

    def set(self, name, number, value):
        file = self.place.path / f'{name}.{number}'
        file.with_suffix('.new').write_text(str(value))
        file.with_suffix('.new').rename(file)

    def children(self):
        return children_of(supervisor_of(self.launcher.pid))

    def asks(self):
        return [pid for pid in self.children() if status_of(pid).get('Name') == 'hang-gpus']

    def events(self, kind):
        try:
            whole, _, _ = (self.place.path / 'events').read_text().rpartition('\n')
        except FileNotFoundError:
            return []
        return [event for event in map(json.loads, whole.splitlines()) if event['event'] == kind]

    def await_hang(self, state):
        return until(lambda: [e for e in self.events('hang') if e['state'] == state], f'the state {state}')[-1]

    def be_quiet(self):
        (self.place.path / 'quiet').touch()

    def end(self):
        self.over.go()
        return self.launcher.end()


@pytest.fixture
def job(start, place):
    def begin(*how, **more):
        return Job(start, place, *how, **more)

    return begin


def learned(job):
    """Steps go on for as long as it takes to know what is usual for a GPU, twice over."""
    until(lambda: len((job.place.path / 'steps').read_text()) >= 40, 'steps', 100)


def test_a_rank_whose_gpu_has_nothing_to_do_is_named(job):
    one = job('--on-hang=report')
    learned(one)
    one.gpu(0, WAITS, 100)
    one.gpu(1, WAITS, 0)
    one.be_quiet()
    hang = one.await_hang('suspect')
    assert (hang['class'], hang['ranks']) == ('outside', [1])
    assert 'no kernel runs on its GPU, while those of the others wait' in hang['text']
    one.gpu(0, WORKS, 100)
    one.gpu(1, WORKS, 100)
    one.await_hang('cleared')  # though no line comes
    assert one.end().rc == 0


def test_gpus_that_all_wait(job):
    one = job('--on-hang=report')
    learned(one)
    for gpu in range(2):
        one.gpu(gpu, WAITS, 100)
    one.be_quiet()
    hang = one.await_hang('suspect')
    assert (hang['class'], hang['ranks']) == ('all_wait', [])
    assert 'all GPUs do far less than they did' in hang['text']
    assert one.end().rc == 0


def test_tensor_units_tell_where_power_does_not(job, place):
    """A GPU draws nearly what it did, as its memory is hot or its clock high."""
    for gpu in range(2):
        place.write(f'tensor.{gpu}', '35')
    one = job('--on-hang=report', faults=' '.join(f'tensor@{gpu}={place.path}/tensor.{gpu}' for gpu in range(2)))
    learned(one)
    for gpu in range(2):
        one.set('tensor', gpu, 0)
        one.gpu(gpu, BETWEEN, 100)
    one.be_quiet()
    hang = one.await_hang('suspect')
    assert (hang['class'], hang['ranks']) == ('all_wait', [])
    assert 'all GPUs do far less than they did' in hang['text']
    assert one.end().rc == 0


def test_gpus_of_which_too_little_is_known(job):
    """What is usual was never seen: that is said once, and nothing follows from their power."""
    one = job('--on-hang=report')
    one.be_quiet()
    until(lambda: 'of hangs only those are noticed' in one.launcher.said(1), 'the note')
    result = one.end()
    assert result.rc == 0
    assert result.err.count('of hangs only those are noticed') == 1
    assert not one.events('hang')


@pytest.mark.parametrize('fault, first', [('name@1=NVIDIA_T4', 0), ('nvmlDeviceGetHandleByIndex@1=4', 2)])
def test_numbers_that_are_not_nvmls(job, place, fault, first):
    """CUDA numbers GPUs by speed, and counts none that may not be opened: whose worker's is idle isn't known."""
    for gpu in 2, 3:
        place.write(f'power.{gpu}', str(WORKS))
        place.write(f'busy.{gpu}', '100')
        fault += f' power@{gpu}={place.path}/power.{gpu} busy@{gpu}={place.path}/busy.{gpu}'
    one = job('--on-hang=report', faults=fault,
              env={'FAKE_GPUS': '4', 'CUDA_VISIBLE_DEVICES': f'{first},{first + 1}'})
    learned(one)
    one.gpu(first, WAITS, 100)
    one.gpu(first + 1, WAITS, 0)
    one.be_quiet()
    until(lambda: 'of hangs only those are noticed' in one.launcher.said(1), 'the note')
    assert one.end().rc == 0 and not one.events('hang')


def test_an_nvml_that_hangs_costs_its_child_only(job):
    one = job('--on-hang=report', faults='hang=nvmlDeviceGetPowerUsage')
    [asks] = until(one.asks, 'who asks NVML')
    one.be_quiet()
    until(lambda: 'of hangs only those are noticed' in one.launcher.said(1), 'the note')
    result = one.end()
    assert result.rc == 0
    assert not is_running(asks)
    assert not one.events('hang')


@pytest.mark.parametrize('options, nproc, env', [
    ([], 'gpu', {}),
    (['--on-hang=report'], '2', {'FAKE_GPUS': '0'}),
    (['--on-hang=report'], '2', {'FAKE_GPUS': '-1'}),
], ids=['nobody asks', 'no GPU', 'no driver'])
def test_nobody_asks_nvml(job, options, nproc, env):
    one = job(*options, nproc=nproc, env=env)
    until(lambda: len(one.children()) == 2, 'the workers alone')
    assert one.end().rc == 0
