"""Issue 6: launchd's own words: --log-format json and LOGLEVEL."""
import json
import re

import pytest

from harness import native, until
from together import Cluster

JSON = '--log-format=json'


def lines(text):
    """All of it: each line an object with the same members."""
    assert text == '' or text.endswith('\n')
    said = [json.loads(line) for line in text.splitlines()]
    for line in said:
        assert list(line) == ['v', 'time', 'level', 'node', 'text']
        assert line['v'] == 1 and line['level'] in ('note', 'warning', 'error')
        assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z', line['time'])
        assert not line['text'].startswith('launchd: ') and '\n' not in line['text']
    return said


def test_a_whole_failure_is_json(start, place):
    ready, go = place.fifo('ready'), place.fifo('go')

    def run(*options):
        job = start([*options, '--verbose', '--shutdown-timeout=600',
                     *native('ending', '--nproc_per_node=3')],
                    {'TELL': ready.path, 'GO_1': go.path, 'END_1': 'raise'})
        ready.expect('ready', 3)
        until(lambda: 'started rank 2 (' in job.said(), 'the notes about their start')
        go.go()
        return job.end().err

    said = lines(run(JSON))
    plain = run().splitlines()
    assert {line['node'] for line in said} <= {0, None}
    assert said[-1]['node'] == 0

    def shape(level, text):  # pids, times and who else ended differ from run to run
        return level, re.sub(r'\d[\d.:+-]*', '#', text)

    wanted = [shape(*re.fullmatch(r'launchd: (\w+): (.*)', line).groups()) for line in plain]
    assert sorted(shape(line['level'], line['text']) for line in said) == sorted(wanted)
    texts = [line['text'] for line in said]
    assert any(text.startswith('root cause: rank 1 (') for text in texts)
    assert 'exception: ValueError: the teapot is empty' in texts
    assert any(text.startswith('started rank 2 (') for text in texts)


def test_workers_write_as_they_like(launch, place):
    script = place.write('x.sh', '#!/bin/sh\necho "not json" >&2\nexit 3\n', 0o755)
    err = launch([JSON, '--no_python', '--use_env', script]).err
    assert 'not json\n' in err
    assert lines(err.replace('not json\n', ''))


def test_what_goes_well_says_nothing(launch):
    result = launch([JSON, *native('ending')], {'END': 'exit:0'})
    assert (result.rc, result.err) == (0, '')


def test_a_refusal_is_json_once_settings_are_read(launch):
    result = launch([JSON, 'nowhere.py'])
    assert result.rc in (2, 127)
    [line] = lines(result.err)
    assert line['level'] == 'error' and 'nowhere.py' in line['text']
    result = launch([JSON, '--no_python', 'x'])
    assert result.rc == 2 and '--use_env' in lines(result.err)[-1]['text']


def test_before_that_it_is_text(launch):
    result = launch([JSON, '--nproc_per_node=many', 'x'])
    assert result.rc == 2 and result.err.startswith('launchd: error: --nproc_per_node')


def test_the_variable_does_it_too(launch):
    result = launch(native('ending', '--verbose'), {'END': 'exit:0', 'LAUNCHD_LOG_FORMAT': 'json'})
    assert lines(result.err)[-1]['text'] == 'all workers exited with code 0'


def test_restarts_are_json(launch):
    said = lines(launch([JSON, '--max-restarts=1', *native('ending')], {'END': 'exit:4'}).err)
    assert any('restart 1 of at most 1' in line['text'] for line in said)


def test_each_node_says_its_rank(start):
    cluster = Cluster(start, 2, [JSON, '--shutdown-timeout=600', *native('ending')],
                      {'END_1': 'exit:5'})
    for node, result in enumerate(cluster.end()):
        assert result.rc == 5
        said = lines(result.err)
        assert {line['node'] for line in said} == {node}
        assert any('root cause: rank 1' in line['text'] for line in said)


NOTE = 'note: all workers exited'
WARNING = 'warning: '


@pytest.mark.parametrize('level, note, warning', [
    (None, False, True), ('INFO', False, True), ('20', False, True),
    ('DEBUG', True, True), ('10', True, True), ('debug', True, True),
    ('WARNING', False, True), ('WARN', False, True),
    ('ERROR', False, False), ('CRITICAL', False, False), ('FATAL', False, False),
    ('40', False, False),
])
def test_loglevel(launch, level, note, warning):
    env = {'END': 'exit:0', 'LOGLEVEL': level, 'LAUNCHD_NPROC_PER_MODE': '2'}
    err = launch(native('ending'), env).err
    assert (NOTE in err, WARNING in err) == (note, warning), err


@pytest.mark.parametrize('level, said', [('INFO', True), ('WARNING', False), ('ERROR', False)])
def test_loglevel_of_notes(launch, level, said):
    """OMP_NUM_THREADS=1 is worth a note to who did not ask for it."""
    err = launch(native('ending', '--nproc_per_node=2'), {'END': 'exit:0', 'LOGLEVEL': level}).err
    assert ('note: ' in err) == said, err


@pytest.mark.parametrize('level', ['ERROR', 'WARNING', 'CRITICAL'])
def test_errors_are_always_said(launch, level):
    result = launch(native('ending'), {'END': 'exit:3', 'LOGLEVEL': level})
    assert result.rc == 3 and 'root cause: rank 0 (' in result.err


def test_what_is_given_is_above_loglevel(launch):
    env = {'END': 'exit:0', 'LOGLEVEL': 'ERROR'}
    assert NOTE in launch(native('ending', '--verbose'), env).err
    assert NOTE in launch(native('ending'), {**env, 'LAUNCHD_VERBOSE': '1'}).err
    env['LOGLEVEL'] = 'DEBUG'
    assert launch(native('ending', '--quiet'), env).err == ''
    assert launch(native('ending'), {**env, 'LAUNCHD_QUIET': '1'}).err == ''


def test_an_unknown_level_is_warned_about(launch):
    result = launch(native('ending'), {'END': 'exit:0', 'LOGLEVEL': 'chatty'})
    assert result.rc == 0
    assert re.fullmatch(r'launchd: warning: LOGLEVEL=chatty has no effect: .*\n', result.err)


def test_dry_run_names_it(dry):
    assert dry(env={'LOGLEVEL': 'DEBUG'}).setting('verbose') == ('1', 'LOGLEVEL')
