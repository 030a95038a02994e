"""TORCHELASTIC_ERROR_FILE in launchd's own environment: whoever started it reads the failure there."""
import json
import signal

import pytest

from harness import BUILD, native
from needs import needs_mounts
from own_mounts import OWN_MOUNTS
from together import Cluster

NAME = 'TORCHELASTIC_ERROR_FILE'
RECORD = {'message': {'message': 'ValueError: the teapot is empty', 'extraInfo': {
    'py_callstack': 'Traceback\n  pour\n', 'timestamp': '1700000000'}}}


@pytest.fixture
def told(place):
    """told(): what is in the file, and nothing beside it."""
    folder = place.tmp / 'told'
    folder.mkdir()

    def read():
        assert [p.name for p in folder.iterdir()] == ['reply.json']
        return json.loads((folder / 'reply.json').read_text())['message']

    read.path = str(folder / 'reply.json')
    read.folder = folder
    return read


def recording(place, code=1):
    place.write('job.sh.json', json.dumps(RECORD))
    return place.write('job.sh', f'cp "$0.json" "${NAME}"; exit {code}\n')


def test_a_workers_own_words_and_its_code(launch, place, told):
    script = recording(place, 7)
    result = launch(['--no_python', '--use_env', 'sh', script], {NAME: told.path})
    assert result.rc == 7
    assert told() == {**RECORD['message'], 'errorCode': 7}


def test_the_old_one_is_replaced(launch, place, told):
    (told.folder / 'reply.json').write_text('not JSON')
    launch(['--no_python', '--use_env', 'sh', recording(place)], {NAME: told.path})
    assert told()['errorCode'] == 1


@needs_mounts
def test_a_mounted_file_is_written_into(launch, place):
    """Kubernetes mounts a file at /dev/termination-log, which nothing can be renamed to."""
    mounted, beneath = place.write('mounted', ''), place.write('beneath', 'longer than a record ' * 100)
    bind = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    result = launch(['--no_python', '--use_env', 'sh', recording(place, 7)], {NAME: str(mounted)},
                    wrap=[*OWN_MOUNTS, 'sh', '-c', bind, 'sh', str(beneath), str(mounted)])
    assert result.rc == 7, result
    with open(beneath) as f:
        assert json.load(f)['message'] == {**RECORD['message'], 'errorCode': 7}


def test_a_failure_without_words(launch, told):
    result = launch(['--nproc_per_node=2', *native('ending')],
                    {NAME: told.path, 'END_1': 'signal:11', 'END_0': 'never'})
    assert result.rc == 139
    said = told()
    assert said['errorCode'] == -signal.SIGSEGV
    assert said['message'].startswith('root cause: rank 1 ') and 'SIGSEGV' in said['message']
    assert said['extraInfo']['py_callstack'].startswith(said['message'])
    assert int(said['extraInfo']['timestamp']) > 1700000000


def test_the_last_lines_stand_in_for_a_traceback(launch, place, told):
    script = place.write('job.sh', 'echo my last words >&2; exit 3\n')
    launch(['--no_python', '--use_env', 'sh', script], {NAME: told.path})
    assert told()['extraInfo']['py_callstack'].endswith('\nmy last words')


def test_a_stop_is_told(start, place, told):
    ready = place.fifo('ready')
    job = start([*native('ending')], {'TELL': ready.path, NAME: told.path})
    ready.expect('ready', 1)
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143
    assert told()['errorCode'] == 143 and 'SIGTERM' in told()['message']


def test_a_start_that_comes_to_nothing(launch, told):
    assert launch(['--nnodes=2', '--node_rank=2', *native('ending')], {NAME: told.path}).rc == 2
    assert told()['errorCode'] == 2 and '--nnodes' in told()['message']


def test_success_and_a_dry_run_leave_nothing(launch, told):
    assert launch([*native('ending')], {NAME: told.path, 'END': 'exit:0'}).rc == 0
    assert launch(['--dry-run', '--node_rank=2', *native('ending')], {NAME: told.path}).rc == 2
    assert not list(told.folder.iterdir())


def test_where_it_cannot_be_written_the_code_stays(launch, place):
    path = place.tmp / 'absent' / 'reply.json'
    result = launch([*native('ending')], {NAME: str(path), 'END': 'exit:5'})
    assert result.rc == 5
    assert f"launchd: warning: {NAME}: {path} can't be written: No such file" in result.err


def test_a_restart_that_goes_well_leaves_nothing(launch, place, told):
    script = place.write('job.sh', 'test $TORCHELASTIC_RESTART_COUNT = 1\n')
    result = launch(['--max-restarts=1', '--no_python', '--use_env', 'sh', script], {NAME: told.path})
    assert result.rc == 0 and not list(told.folder.iterdir())


def test_a_launcher_in_a_worker_passes_the_cause_on(launch, place):
    """As with torchrun in torchrun: the outer report shows the innermost failure."""
    inner = [str(BUILD / 'launchd'), '--no_python', '--use_env', 'sh', recording(place, 7)]
    result = launch(['--no_python', '--use_env', *inner], {'LAUNCHD_CONTROL': 'off'})
    assert result.rc == 7
    outer = result.err[result.err.rindex('root cause: '):]
    assert 'exception: ValueError: the teapot is empty' in outer


def test_every_node_that_has_a_file_writes_it(start, place, told):
    """Node rank 0 has all that the culprit says, the culprit's own node, too; the others the verdict."""
    script = place.write('job.sh', f'test $RANK = 1 || exec sleep 1000\ncp "$0.json" "${NAME}"; exit 7\n')
    place.write('job.sh.json', json.dumps(RECORD))
    paths = [told.folder / f'{node}.json' for node in range(3)]
    job = Cluster(start, 3, ['--no_python', '--use_env', 'sh', script],
                  each=lambda node: ([], {NAME: str(paths[node])}))
    assert {result.rc for result in job.end()} == {7}
    said = [json.loads(path.read_text())['message'] for path in paths]
    assert said[0] == said[1] == {**RECORD['message'], 'errorCode': 7}
    assert said[2]['message'].startswith('root cause: rank 1 ') and said[2]['errorCode'] == 7


def test_the_dry_run_names_the_file(dry):
    plan = dry([], {NAME: '/tmp/reply.json'})
    assert plan.value('error_file') == '/tmp/reply.json'
    assert plan.source('error_file') == NAME
