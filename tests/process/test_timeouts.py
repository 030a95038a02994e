"""A collective that times out makes its victims raise: the culprit is the rank that didn't come, and nobody
where that isn't known. Real jobs of torch and gloo; NCCL's watchdog by its words."""
import importlib.util
import json
import re
import signal
import sys

import pytest

from harness import until
from test_events import of
from together import Cluster, errors, exit_codes

LONG = 240.0  # importing torch takes long on a machine that is busy

needs_torch = pytest.mark.skipif(not importlib.util.find_spec('torch'), reason='needs torch')
torch_group = pytest.mark.xdist_group('torch')

HEAD = '''
import datetime, os, pathlib, sys, time
import torch, torch.distributed as dist
rank = int(os.environ['RANK'])
def seconds(n):
    return datetime.timedelta(seconds=n)
def hang():
    time.sleep(600)
'''

BARRIER = HEAD + '''
dist.init_process_group('gloo', timeout=seconds(int(os.environ.get('TIMEOUT', 4))))
print('joined', flush=True)
dist.barrier()
if rank == 1:
    hang()
dist.barrier()
'''

MONITORED = HEAD + '''
dist.init_process_group('gloo', timeout=seconds(100))
absent = [int(one) for one in os.environ['ABSENT'].split(',')]
dist.barrier()
if rank in absent:
    print('loads its data', flush=True)
    hang()
dist.monitored_barrier(timeout=seconds(3), wait_all_ranks=len(absent) > 1)
'''

SUBGROUP = HEAD + '''
dist.init_process_group('gloo', timeout=seconds(100))
evens = dist.new_group([0, 2])
dist.barrier()
if rank != 0:
    hang()
dist.monitored_barrier(evens, timeout=seconds(3))
'''

INIT = HEAD + '''
if rank == int(os.environ['ABSENT']):
    hang()
dist.init_process_group('gloo', timeout=seconds(4))
'''


def begin(start, place, script, options=(), env=None, n=3):
    return start([f'--nproc_per_node={n}', '--use_env', '--python', sys.executable, *options,
                  place.write('train.py', script)], {'OMP_NUM_THREADS': '1', **(env or {})})


def cause(result):
    """The root cause, without 'after 3.14 s'."""
    [line] = re.findall(r'^launchd: error: root cause: (.*?)(?: after [0-9.]+ s)?$', result.err, re.M)
    return re.sub(r', pid \d+', '', line)


def is_rank(text, rank):
    return text.startswith(f'rank {rank} (local rank {rank}')


@needs_torch
@torch_group
def test_monitored_barrier_names_the_rank_that_did_not_come(start, place):
    result = begin(start, place, MONITORED, env={'ABSENT': '1'}).end(LONG)
    assert is_rank(cause(result), 1) and cause(result).endswith(' timed out waiting for it'), result.err
    assert result.rc == 1
    assert 'launchd: error: last line:\n    loads its data\n' in result.err
    assert re.search(r'^launchd: note: rank [02] .*: timed out waiting for another rank, and failed', result.err, re.M)


@needs_torch
@torch_group
def test_monitored_barrier_names_several(start, place):
    result = begin(start, place, MONITORED, env={'ABSENT': '1,3'}, n=4).end(LONG)
    assert is_rank(cause(result), 1) and cause(result).endswith(' timed out waiting for ranks 1, 3'), result.err
    assert result.rc == 1


@needs_torch
@torch_group
def test_monitored_barrier_of_a_group_has_other_numbers(start, place):
    """Its rank 1 is the job's rank 2."""
    result = begin(start, place, SUBGROUP).end(LONG)
    assert 'Rank 1 failed to pass monitoredBarrier' in result.err
    assert cause(result) == 'timed out waiting for another rank (rank 0 waited)', result.err


@needs_torch
@torch_group
def test_of_a_barrier_nobody_is_blamed(start, place):
    result = begin(start, place, BARRIER).end(LONG)
    assert re.fullmatch(r'timed out waiting for another rank \(ranks? [02](, 2)? waited\)', cause(result)), result.err
    assert result.rc == 1


@needs_torch
@torch_group
def test_of_a_barrier_the_rank_that_on_hang_saw_elsewhere(start, place):
    job = begin(start, place, BARRIER, ['--on-hang=report'], {'TIMEOUT': '30'})
    result = job.end(LONG)
    assert 'rank 1 is outside what all others wait in' in result.err
    assert is_rank(cause(result), 1) and cause(result).endswith(' timed out waiting for it'), result.err


@needs_torch
@torch_group
@pytest.mark.parametrize('store', ['agent', 'rank0'])
@pytest.mark.parametrize('absent', [0, 1])
def test_init_process_group_waits_for_the_one_that_never_joined(start, place, store, absent):
    result = begin(start, place, INIT, ['--store', store], {'ABSENT': str(absent)}).end(LONG)
    assert is_rank(cause(result), absent) and cause(result).endswith(' timed out waiting for it'), result.err
    assert result.rc == 1


@needs_torch
@torch_group
@pytest.mark.parametrize('store', ['agent', 'rank0'])
def test_a_hang_before_init_process_group_is_named(start, place, store):
    job = begin(start, place, INIT.replace('seconds(4)', 'seconds(600)'),
                ['--store', store, '--on-hang=report'], {'ABSENT': '1'})
    until(lambda: 'the job may hang' in job.said(), 'the suspicion', LONG)
    assert re.search(r'the job may hang, .* s: rank 1 is outside what all others wait in', job.said()), job.said()
    job.signal(signal.SIGTERM)
    job.end(LONG)


# --- by their words, in any language ---

WATCHDOG = '''cat >&2 <<END
[rank0]:[E1121 22:36:22.7 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds before \
timing out.
[rank0]:[E1121 22:36:22.8 ProcessGroupNCCL.cpp:681] [Rank 0] To avoid data inconsistency, we are taking the entire \
process down.
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 0 PG GUID 0(default_pg) Rank 0] Process group watchdog thread terminated with exception: [Rank 0] \
Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE) ran for 600012 milliseconds \
before timing out.LAGGING
END
kill -ABRT $$
'''
LAGGING = '''
	 - To our best knowledge, ranks [1] are the lagging ranks that caused this timeout. They \
never joined any collectives'''
KEY = '''cat >&2 <<END
Traceback (most recent call last):
  File "train.py", line 5, in <module>
    dist.init_process_group("gloo")
torch.distributed.DistStoreError: wait timeout after 5000ms, keys: /default_pg/0//cpu//0/3
END
exit 1
'''


def told_by(place, words, rank=0, others='exec sleep 600'):
    return ['--no_python', '--use_env', 'sh', place.write('job.sh', f'''
[ $RANK = {rank} ] || {others}
{words}''')]


def test_the_watchdog_names_nobody_and_neither_does_anything(launch, place):
    """Not the report, nor its JSON, the events, the metrics, the error file."""
    report, events, metrics, told = (place.path / name for name in ('report', 'events', 'metrics', 'told'))
    result = launch(['--nproc_per_node=2', '--max-restarts=1', f'--report={report}', f'--events={events}',
                     f'--metrics-file={metrics}', *told_by(place, WATCHDOG.replace('LAGGING', ''))],
                    {'TORCHELASTIC_ERROR_FILE': str(told)})
    assert result.rc == 134
    assert 'root cause: timed out waiting for another rank (rank 0 waited) after' in result.err
    assert 'root cause: rank' not in result.err and 'restart 1 of at most 1' in result.err
    assert 'first victim: rank 0' in result.err and 'exclude' not in result.err
    of_report = json.loads(report.read_text())
    assert of_report['cause']['kind'] == 'collective_timeout' and of_report['culprit'] is None
    assert of_report['same_place'] is None and of_report['job']['exit_code'] == 134
    assert [(one['cause'], one['culprit']) for one in of_report['restarts']] == 2 * [('collective_timeout', None)]
    assert of_report['workers'][0]['blames'] == 'wait'
    happened = [json.loads(line) for line in events.read_text().splitlines()]
    assert [one['exclude'] for one in of(happened, 'restart')] == [None]
    assert [(one['cause'], one['culprit_rank']) for one in of(happened, 'verdict')] == [('collective_timeout', None)]
    assert re.search(r'^launchd_attempt_ends_total\{.*cause="collective_timeout"\} 2$', metrics.read_text(), re.M)
    said = json.loads(told.read_text())['message']
    assert said['errorCode'] == -6
    assert said['message'].startswith('root cause: timed out waiting for another rank')


def test_the_watchdog_that_looked_for_the_desync_names_the_laggard(launch, place):
    result = launch(['--nproc_per_node=2', *told_by(place, WATCHDOG.replace('LAGGING', LAGGING))])
    assert is_rank(cause(result), 1), result.err
    assert result.rc == 134


def test_a_rank_that_had_ended_did_not_come(launch, place):
    words = 'sleep 1\n' + WATCHDOG.replace('LAGGING', '')
    result = launch(['--nproc_per_node=2', *told_by(place, words, others='exit 0')])
    assert is_rank(cause(result), 1), result.err
    assert cause(result).endswith('it had ended with exit code 0, and rank 0 timed out waiting for it')
    assert result.rc == 134


def test_a_time_out_that_the_program_wraps_is_no_failure_of_its_own(launch, place):
    words = KEY.replace('\nEND', """

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 7, in <module>
    raise KeyError("x")
KeyError: 'x'
END""")
    result = launch(['--nproc_per_node=4', *told_by(place, words)])
    assert is_rank(cause(result), 3), result.err
    assert result.rc == 1


def test_a_victim_names_a_rank_of_another_node(start, place):
    """Every node says the same."""
    results = Cluster(start, 2, ['--nproc_per_node=2', *told_by(place, KEY)]).end()
    assert exit_codes(results) == [1, 1]
    for result in results:
        assert re.search(r'root cause: rank 3 \(local rank 1.*\) on \S+ \(node 1\): rank 0 timed out waiting for it',
                         errors(result)[0]), result.err


def test_what_is_printed_is_in_the_log_alone(launch, place):
    """--log-dir without the console."""
    result = launch(['--nproc_per_node=4', f'--log-dir={place.path}/logs', '--redirects=3', *told_by(place, KEY)])
    assert is_rank(cause(result), 3), result.err
