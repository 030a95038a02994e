"""What --blackbox keeps of a failure, when, and what it never does: hold up an end, or change it."""
import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess

import pytest

from harness import BUILD, children_of, native, status_of, supervisor_of, until
from needs import needs_mounts
from own_mounts import OWN_MOUNTS
from hang_fs import CREATE, MKDIR, HangFS
from together import Cluster, errors, exit_codes, warnings

MIB = 1 << 20


def kept(path):
    """The failures that are kept, the oldest first."""
    return sorted(path.iterdir()) if path.exists() else []


def index_of(failure):
    return json.loads((failure / 'index.json').read_text())


def part_of(failure, node=0):
    return json.loads((failure / f'node-{node}' / 'bundle.json').read_text())


def story(launch, path):
    told = launch(['--explain', str(path)])
    assert (told.rc, told.err) == (0, '')
    return told.out


@pytest.fixture
def fail(start, place):
    """fail(end, ...) -> Result of a job in which rank 1 of three ends so; `rest`: how the others do."""

    def run(end, *options, rest='never', box=True, before=lambda job: None, workers=3, **how):
        ready, go = place.fifo('ready'), place.fifo('go')
        env = {'TELL': ready.path, 'GO': go.path, 'END': rest, 'END_1': end}
        job = start([f'--nproc_per_node={workers}', *([f'--blackbox={place.path}/box'] if box else ()),
                     *options, *native('ending')], env, **how)
        ready.expect('ready', workers)
        before(job)
        go.go(workers)
        return job.end()

    return run


@pytest.mark.parametrize('end, code, kind, text', [
    ('exit:7', 7, 'exit', 'exit code 7'),
    ('raise', 1, 'exception', 'exit code 1'),
    (f'signal:{signal.SIGSEGV}', 139, 'signal', 'killed by SIGSEGV'),
    (f'signal:{signal.SIGKILL}', 137, 'signal', 'killed by SIGKILL'),
    (f'signal:{signal.SIGTERM}', 143, 'signal', 'killed by SIGTERM'),
])
def test_a_worker_that_fails(fail, launch, place, end, code, kind, text):
    result = fail(end, '--report=report.json', '--events=events.jsonl')
    assert result.rc == code
    [failure] = kept(place.path / 'box')
    index, part = index_of(failure), part_of(failure)
    assert (index['kind'], index['first']['rank'], index['first']['node']) == (kind, 1, 0)
    assert index['first']['text'] == text
    assert index['counts'] == {'well': 0, 'first': 1, 'failed': 0, 'ended': 2, 'runs': 0, 'unstarted': 0}
    assert [worker['fate'] for worker in part['workers']] == ['ended', 'first', 'ended']
    looks = [worker['look'] for worker in part['workers']]
    assert looks[1] is None and {looks[0]['state'], looks[2]['state']} <= {'R', 'S'}
    assert errors(result)[-1] == f'launchd: error: evidence: launchd --explain {failure}'
    assert json.loads((place.path / 'report.json').read_text())['job']['blackbox'] == str(failure)
    events = [json.loads(line) for line in (place.path / 'events.jsonl').read_text().splitlines()]
    [told] = [event for event in events if event['event'] == 'blackbox']
    assert (told['attempt'], told['path'], told['error']) == (0, f'{failure}/node-0', None)
    ours = [json.loads(line)['event'] for line in
            (failure / 'node-0' / 'events.jsonl').read_text().splitlines()]
    assert ours.count('worker_started') == ours.count('worker_ended') == 3
    text = story(launch, failure)
    assert f'rank 1 on node 0 ({os.uname().nodename}): {index["first"]["text"]}' in text
    assert '2 workers: launchd ended them because of the failure' in text
    assert story(launch, failure / 'index.json') == text
    assert (failure / 'node-0' / 'story.txt').read_text() == story(launch, failure / 'node-0')
    assert sum(path.stat().st_size for path in failure.rglob('*') if path.is_file()) < 20 * MIB


def test_the_exception_is_told(fail, place):
    assert fail('raise').rc == 1
    [failure] = kept(place.path / 'box')
    assert index_of(failure)['first']['error'] == 'ValueError: the teapot is empty'


def test_all_fail_at_once(fail, place):
    """Nobody is left whom launchd could end, and before whose end it could look."""
    assert fail('exit:7', rest='exit:7').rc == 7
    [failure] = kept(place.path / 'box')
    assert sum(index_of(failure)['counts'][fate] for fate in ('first', 'failed', 'ended')) == 3


def test_a_time_limit(launch, place):
    result = launch([f'--blackbox={place.path}/box', '--max-runtime=1', *native('ending')], {})
    assert result.rc == 124
    [failure] = kept(place.path / 'box')
    index = index_of(failure)
    assert (index['cause'], index['kind'], index['first']) == ('max_runtime', 'timeout', None)
    assert part_of(failure)['workers'][0]['look']['state'] in 'RS'
    assert 'The time limit was over' in story(launch, failure)


def test_one_that_cannot_be_started(launch, place):
    """Whose file looks as if it could be: else nothing is started, and nothing is kept."""
    script = place.write('train', 'no program', 0o755)
    result = launch([f'--blackbox={place.path}/box', '--nproc_per_node=2', '--no_python', '--use_env', script], {})
    assert result.rc == 126
    [failure] = kept(place.path / 'box')
    index = index_of(failure)
    assert (index['kind'], index['first']['rank']) == ('not_startable', 0)
    assert index['first']['text'] == 'could not be started: Exec format error'
    told = story(launch, failure)
    assert '    rank 1: not started\n' in told and 'Rank 0 could not be started' in told


def test_what_goes_well_leaves_nothing(fail, place):
    result = fail('exit:0', rest='exit:0')
    assert (result.rc, kept(place.path / 'box')) == (0, [])
    assert not (place.path / 'box').exists()


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_what_a_user_ends_leaves_nothing(start, place, number):
    ready = place.fifo('ready')
    job = start([f'--blackbox={place.path}/box', '--blackbox-hold=60', *native('ending')],
                {'TELL': ready.path})
    ready.expect('ready', 1)
    job.signal(number)
    assert job.end().rc == 128 + number
    assert not (place.path / 'box').exists()


def test_beside_the_logs(launch, place):
    """It is on where there are log files, and has the last lines of each."""
    script = place.write('train.sh', '#!/bin/sh\nseq 1 1000; seq 2001 2005 >&2; exit 3\n', 0o755)
    result = launch(['--log-dir=logs', '--no_python', '--use_env', script], {})
    assert result.rc == 3
    [failure] = kept(place.path / 'logs' / 'blackbox')
    part = failure / 'node-0'
    assert (part / 'rank-0.stdout.txt').read_text().split() == [str(n) for n in range(801, 1001)]
    assert (part / 'rank-0.stderr.txt').read_text().split() == [str(n) for n in range(2001, 2006)]
    assert index_of(failure)['kind'] == 'exit'


def test_not_beside_the_logs(fail, place):
    assert fail('exit:7', '--log-dir=logs', '--blackbox=none', box=False).rc == 7
    assert not (place.path / 'logs' / 'blackbox').exists()


def test_an_option_that_means_nothing(dry):
    plan = dry(['--blackbox-hold=5', '--blackbox-keep=3'])
    assert plan.warnings() == ['--blackbox-hold has no effect without --blackbox',
                               '--blackbox-keep has no effect without --blackbox']
    assert dry(['--blackbox=box']).value('blackbox') == 'box'
    assert dry(['--log-dir=logs']).value('blackbox') == 'logs/blackbox'


def test_where_nothing_can_be_kept(fail, place):
    """The job ends as it would, and says why there is nothing."""
    place.write('box', 'a file')
    result = fail('exit:7')
    assert result.rc == 7
    [warning] = warnings(result)
    assert f'{place.path}/box' in warning and 'Not a directory' in warning
    assert 'evidence' not in result.err and '--explain' not in result.err


@needs_mounts
@pytest.mark.parametrize('mount, why, options', [
    ('nr_inodes=3', 'No space left on device', []),
    ('nr_inodes=4', 'No space left on device', []),
    ('nr_inodes=4', 'No space left on device', ['--max-restarts=1']),
    ('nr_inodes=5', 'No space left on device', []),
    ('size=4k', 'No space left on device', ['--blackbox-keep=1']),
    ('ro', 'Read-only file system', [])])
def test_a_disk_that_takes_nothing(fail, place, mount, why, options):
    """What couldn't be written is no evidence: the directory is named, and why nothing is in it."""
    (place.path / 'box').mkdir()
    (place.path / 'box' / 'full').mkdir()
    wrap = [*OWN_MOUNTS, 'bash', '-ec',
            'mount -t tmpfs -o "$1" none "$2"; shift 2; exec "$@"', 'bash', mount, f'{place.path}/box/full']
    result = fail('exit:7', f'--blackbox={place.path}/box/full', f'--events={place.path}/events', *options, box=False,
                  wrap=wrap)
    assert result.rc == 7
    assert 'evidence' not in result.err and '--explain' not in result.err
    said = [line for line in warnings(result) if f'{place.path}/box/full/failure-' in line and why in line]
    events = [json.loads(line) for line in (place.path / 'events').read_text().splitlines()]
    told = [(event['path'], why in event['error']) for event in events if event['event'] == 'blackbox']
    assert told == len(said) * [(None, True)] and len(said) == 1 + len(options) * ('--max-restarts=1' in options)


@needs_mounts
def test_what_cannot_be_written_costs_no_older_failure(fail, place):
    (place.path / 'box').mkdir()
    old = 'failure-20200101T000000.000Z-attempt-0'
    wrap = [*OWN_MOUNTS, 'bash', '-c',
            'mount -t tmpfs -o nr_inodes=8 none box; mkdir -p box/$0/node-0; touch box/$0/.launchd-blackbox '
            'box/$0/node-0/bundle.json; "$@"; rc=$?; ls box >listing; exit $rc', old]
    result = fail('exit:7', '--blackbox-keep=1', wrap=wrap)
    assert (result.rc, 'evidence' in result.err) == (7, False)
    assert old in (place.path / 'listing').read_text().split(), result.err


@pytest.fixture
def hang(place, nothing_left):
    with contextlib.closing(HangFS(place)) as mounted:
        yield mounted


@needs_mounts
@pytest.mark.parametrize('how', ['stop', 'hold'])
def test_a_directory_that_hangs(fail, place, hang, how):
    """Neither the child that asks nor the one that writes comes back: that costs the bundle. `hold`: not
    even SIGKILL ends them."""
    result = fail('exit:7', f'--blackbox={hang.path}/box', box=False, wrap=hang.mount, pass_fds=[hang.fd],
                  before=lambda job: hang.stop() if how == 'stop' else hang.hold(MKDIR))
    assert result.rc == 7
    assert any('did not finish within 2 s' in line for line in warnings(result))
    place.orphans_expected = how == 'hold'  # they end when the file system lets them go
    hang.close()


@needs_mounts
def test_nobody_ends_later_for_it(start, place, hang):
    """Without --blackbox-hold SIGTERM does not wait for a directory that hangs: all workers have ended of
    it while the child that asks is not through yet."""
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(['--nproc_per_node=3', f'--blackbox={hang.path}/box', '--events=events.jsonl',
                 *native('ending')],
                {'TELL': ready.path, 'GO': go.path, 'END_1': 'exit:7'}, wrap=hang.mount, pass_fds=[hang.fd])
    ready.expect('ready', 3)
    hang.stop()
    go.go()

    def told():
        text = (place.path / 'events.jsonl').read_text()
        return text.count('"event":"worker_ended"') == 3 and text

    assert '"event":"blackbox"' not in until(told, 'the end of all workers')
    hang.go_on()
    assert job.end().rc == 7


def test_the_job_ends_between_two_attempts(start, place):
    """What ends it then is not what has failed: the bundle's story stays."""
    script = place.write('train.sh', '#!/bin/sh\nexit 3\n', 0o755)
    job = start([f'--blackbox={place.path}/box', '--max-restarts=1', '--restart-delay=300', '--no_python', '--use_env',
                 '--events=events.jsonl', script], {})
    log = place.path / 'events.jsonl'
    until(lambda: log.exists() and '"event":"restart"' in log.read_text(), 'the pause')
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143
    [failure] = kept(place.path / 'box')
    index = index_of(failure)
    assert (index['cause'], index['kind'], index['first']['text']) == ('failure', 'exit', 'exit code 3')


class SlowIndex(HangFS):
    """Holds the first index.json until it is told to let it go."""
    request = None

    def take(self, request):
        if b'index.json' in request and struct.unpack_from('=4xI', request)[0] == CREATE and not self.request:
            self.request = request
        else:
            super().take(request)

    def directories(self):
        boxes = self.nodes[1].children.values()
        return {name: failure for box in boxes for name, failure in box.children.items()}


@needs_mounts
def test_two_indices_at_once(start, place, nothing_left):
    """The second attempt has failed while the index of the first is still written: it has its own."""
    with contextlib.closing(SlowIndex(place)) as slow:
        job = start([f'--blackbox={slow.path}/box', '--max-restarts=1', '--events=events.jsonl', '--no_python',
                     '--use_env', place.write('train.sh', '#!/bin/sh\nexit 3\n', 0o755)], {}, wrap=slow.mount, pass_fds=[slow.fd])
        until(lambda: slow.request, 'the first index')
        until(lambda: '"event":"verdict"' in (place.path / 'events.jsonl').read_text(), "the second attempt's end")
        HangFS.take(slow, slow.request)
        result = job.end()
        assert result.rc == 3
        [second] = [failure for name, failure in slow.directories().items() if b'attempt-1' in name]
        assert b'index.json' in second.children, result.err


def test_held_until_all_is_seen(fail, place):
    """They get SIGTERM as soon as everything has been asked of all of them, and not before."""
    result = fail('exit:7', '--blackbox-hold=1h')
    assert result.rc == 7
    [failure] = kept(place.path / 'box')
    part = part_of(failure)
    assert part['held'] is True
    assert {finding['subject'] for finding in part['findings'] if finding['source'] == 'threads' and
            finding['health'] == 'good'} == {'rank 0', 'rank 2'}
    assert part['workers'][0]['look']['later_ms'] >= 0
    assert 'whose workers ran until all was seen' in (failure / 'node-0' / 'story.txt').read_text()


@needs_mounts
def test_the_child_that_asks_is_killed(start, place, hang):
    """What it was to find is missing, and that is said; nobody is held any longer."""
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(['--nproc_per_node=2', f'--blackbox={hang.path}/box', '--blackbox-hold=1h',
                 '--events=events.jsonl', *native('ending')],
                {'TELL': ready.path, 'GO': go.path, 'END_1': 'exit:7'}, wrap=hang.mount,
                pass_fds=[hang.fd])
    ready.expect('ready', 2)
    supervisor = supervisor_of(job.pid)
    hang.stop()
    go.go()
    until(hang.hangs, 'the directory to be asked for')
    [asking] = until(lambda: [pid for pid in children_of(supervisor) if status_of(pid).get('Name') == 'black-box'],
                     'the child that asks')
    os.kill(asking, signal.SIGKILL)
    until(lambda: '"event":"stop"' in (place.path / 'events.jsonl').read_text(), 'SIGTERM')
    hang.go_on()
    assert job.end().rc == 7
    events = [json.loads(line) for line in (place.path / 'events.jsonl').read_text().splitlines()]
    [told] = [event for event in events if event['event'] == 'blackbox']
    assert told['error'] is None or 'did not finish within 2 s' in told['error']


def test_the_newest_are_kept(fail, place):
    for _ in range(3):
        assert fail('exit:7', '--blackbox-keep=2').rc == 7
        last = kept(place.path / 'box')[-1]
        for fifo in ('ready', 'go'):
            os.unlink(place.path / fifo)
    assert len(kept(place.path / 'box')) == 2 and kept(place.path / 'box')[-1] == last


def test_each_attempt_has_its_own(fail, launch, place):
    result = fail('exit:7', '--max-restarts=0')
    assert result.rc == 7
    script = place.write('train.sh', '#!/bin/sh\nexit 3\n', 0o755)
    result = launch([f'--blackbox={place.path}/more', '--max-restarts=2', '--no_python', '--use_env',
                     script], {})
    assert result.rc == 3
    failures = kept(place.path / 'more')
    assert [index_of(failure)['attempt'] for failure in failures] == [0, 1, 2]
    for failure in failures:
        assert f'evidence: launchd --explain {failure}\n' in result.err


@pytest.mark.parametrize('shared', [True, False], ids=['one directory', 'a directory each'])
def test_several_nodes(start, launch, place, shared):
    """All nodes have the same name for it, and node rank 0 knows where each part is."""
    ready, go = place.fifo('ready'), place.fifo('go')
    job = Cluster(start, 2, ['--nproc_per_node=2', *native('ending')],
                  {'TELL': ready.path, 'GO': go.path, 'END_2': f'signal:{signal.SIGSEGV}'},
                  each=lambda node: ([f'--blackbox={place.path}/box{"" if shared else node}'], {}))
    ready.expect('ready', 4)
    go.go()
    results = job.end()
    assert exit_codes(results) == [139, 139]
    [first], [second] = kept(place.path / ('box' if shared else 'box0')), \
        kept(place.path / ('box' if shared else 'box1'))
    assert first.name == second.name
    index = index_of(first)
    assert (index['kind'], index['first']['rank'], index['first']['node']) == ('signal', 2, 1)
    assert [node['path'] for node in index['nodes']] == [f'{first}/node-0', f'{second}/node-1']
    assert [part_of(failure, node)['node'] for node, failure in enumerate((first, second))] == [0, 1]
    assert part_of(second, 1)['first']['rank'] == 2
    text = story(launch, first)
    assert 'rank 2 on node 1' in text
    assert text.index('What each node saw') < text.index('  node 0 (') < text.index('  node 1 (')


@pytest.mark.parametrize('name, text, words', [
    ('bundle.json', '', 'it is not JSON, or was cut off'),
    ('bundle.json', '{"launchd_blackbox":1', 'it is not JSON, or was cut off'),
    ('bundle.json', '{}', 'it was not written by --blackbox'),
    ('index.json', '{"launchd_blackbox_index":1,"nodes":7}', '"nodes" is not a list'),
    ('index.json', '{"launchd_blackbox_index":99}', 'a newer launchd has written it'),
    ('bundle.json', '\0', 'there is a NUL byte in it'),
    ('bundle.json', ' ' * (5 * MIB), 'larger than 4 MiB'),
])
def test_bundles_that_are_none(refused, place, name, text, words):
    path = place.write(f'box/{name}', text)
    refused(['--explain', path], path, words)
    refused(['--explain', str(place.path / 'box')], path, words)


@pytest.mark.parametrize('name, tells', [('node-0/bundle.json', 'rank 1 on node 0'), ('index.json', 'rank 1: exit code 7')])
def test_one_file_that_is_cut_off(fail, launch, place, name, tells):
    """The others tell their story, and what is wrong with that one stands behind it."""
    assert fail('exit:7').rc == 7
    [failure] = kept(place.path / 'box')
    (failure / name).write_text('{"launchd_blackbox')
    told = story(launch, failure)
    assert tells in told
    assert told.endswith(f"\nWhat can't be read\n  {failure}/{name}: it is not JSON, or was cut off\n")


def test_paths_that_are_none(refused, place):
    refused(['--explain', '/nowhere'], '--explain: /nowhere: No such file')
    refused(['--explain', str(place.path)], str(place.path), 'there is neither index.json nor')
    os.mkfifo(place.path / 'fifo')
    refused(['--explain', str(place.path / 'fifo')], 'it is not a regular file')
    refused(['--explain'], '--explain: ., the working directory, as neither --blackbox nor --log-dir is given: '
            'there is neither index.json nor', 'name one, or the directory of --blackbox: --explain DIR')
    refused(['--explain', '--log-dir=logs'], '--explain: logs, of --log-dir: No such file')
    refused(['--explain='], '--explain', 'empty')
    (place.path / 'failure-20261126T112233.123Z-attempt-0' / 'node-0').mkdir(parents=True)
    refused(['--explain'], 'there is neither index.json nor')


def test_the_newest_failure(fail, launch, place):
    """Of a directory with several: of --blackbox, of --log-dir, or the working one; and it says which. One of which
    nothing was written doesn't count."""
    assert fail('exit:7', '--max-restarts=1').rc == 7
    older, newer = kept(place.path / 'box')
    (place.path / 'box' / newer.name.replace('failure-2', 'failure-9')).mkdir()
    text = story(launch, newer)
    for directory in (place.path / 'box', place.path):
        assert story(launch, directory) == f'{newer} (the newest of 2 failures below {directory})\n\n{text}'
    for options, path, why in (
            ([], './box', '., the working directory, as neither --blackbox nor --log-dir is given'),
            (['--log-dir=.'], './box', '., of --log-dir'),
            (['--blackbox=box'], 'box', 'box, of --blackbox')):
        told = launch(['--explain', *options])
        first, rest = told.out.split('\n', 1)
        assert (told.rc, told.err) == (0, '')
        assert first == f'{path}/{newer.name} (the newest of 2 failures below {why})'
        assert rest.startswith(f'\n{newer.name}\n')
    shutil.rmtree(newer)
    assert story(launch, place.path).startswith(f'{older} (the only failure below {place.path})\n\n')


def test_the_newest_is_what_was_written_last(launch, place):
    """Not what was started last: a job of weeks may fail after one of a minute."""
    for second, name in enumerate(['20261126T112233.123Z-attempt-1', '20261126T112233.123Z-attempt-0-look-1',
                                   '20251126T112233.123Z-attempt-0']):
        path = place.write(f'logs/blackbox/failure-{name}/node-0/bundle.json', '{"launchd_blackbox":1}')
        os.utime(path, (10**9 + second, 10**9 + second))
    assert story(launch, place.path).startswith(
        f'{place.path}/logs/blackbox/failure-{name} (the newest of 3 failures below {place.path})\n')


def test_it_needs_no_job(place):
    """No settings of a job, and no environment, are in its way."""
    path = place.write('bundle.json', '{"launchd_blackbox":1}')
    told = subprocess.run([BUILD / 'launchd', '--explain', path, '--nnodes', 'odd'], capture_output=True,
                          text=True, check=False)
    assert told.returncode == 2
    told = subprocess.run([BUILD / 'launchd', '--explain', path], capture_output=True, text=True,
                          env={'PET_NNODES': 'odd'}, check=False)
    assert (told.returncode, told.stderr) == (0, '')
