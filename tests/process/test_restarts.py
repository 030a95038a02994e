"""Whether another attempt follows a failure, and why not: the console, the events and the report."""
import json
import signal
import socket

import pytest

from harness import until
from test_events import of, read
from together import Cluster, errors, exit_codes, warnings

HOST = socket.gethostname()


class Script:
    """A shell script as the worker; N is the number of the attempt."""

    def __init__(self, start, place):
        self.start = start
        self.place = place

    def argv(self, text, *options):
        path = self.place.write('job.sh', '#!/bin/sh\nN=$TORCHELASTIC_RESTART_COUNT\n' + text, 0o755)
        return [f'--report={self.place.path}/report', '--no_python', '--use_env', *options,
                str(path)]

    def run(self, text, *options):
        return self.begin(text, *options).end()

    def begin(self, text, *options):
        return self.start(self.argv(text, '--nproc_per_node=1', self.events_option(), *options))

    def events_option(self):
        return f'--events={self.place.path}/events'

    def report(self):
        return json.loads((self.place.path / 'report').read_text())

    def events(self, kind):
        return of(read(self.place.path / 'events'), kind)

    def assert_decided(self, *reasons, of_events=True):
        """So after each attempt; no restart follows the last one."""
        past = self.report()['restarts']
        assert [one['reason'] for one in past] == list(reasons)
        assert [one['decision'] for one in past] == ['restart'] * (len(reasons) - 1) + ['no']
        if of_events:
            assert [one['reason'] for one in self.events('restart')] == list(reasons[:-1])
            assert self.events('verdict')[0]['restart'] == {'decision': 'no', 'reason': reasons[-1]}


@pytest.fixture
def script(start, place):
    return Script(start, place)


@pytest.mark.quick
def test_attempts_without_a_new_step(script):
    """The second one comes further than the first, and then none does: the third starts again at
    a checkpoint before that."""
    result = script.run('echo "step $((N > 0 ? 12 : 7))"; exit 3', '--max-restarts=9',
                        '--no-progress-restarts=2', '--progress=step ([0-9]+)')
    assert result.rc == 123
    why = '2 attempts in a row ended without a new step (the best is 12): --no-progress-restarts'
    assert errors(result)[-1] == f'launchd: error: restarts: 3 of at most 9; no restart: {why}'
    script.assert_decided(*(f'restart {n} of at most 9' for n in (1, 2, 3)), why)
    assert [one['step'] for one in script.report()['restarts']] == [7, 12, 12, 12]
    assert script.events('verdict')[0]['exit_code'] == 123


def test_no_step_ever(script):
    result = script.run('exit 3', '--max-restarts=9', '--no-progress-restarts=1',
                        '--progress=step ([0-9]+)')
    assert result.rc == 123
    script.assert_decided(
        '1 attempt in a row ended without a new step (there never was one): --no-progress-restarts')


def test_the_limit_comes_before_too_little_progress(script):
    """What a user has asked for less than that stays as it was, its exit code, too."""
    result = script.run('exit 3', '--max-restarts=1', '--no-progress-restarts=3',
                        '--progress=step ([0-9]+)')
    assert result.rc == 3
    script.assert_decided('restart 1 of at most 1', 'the limit is reached')


def test_steps_of_nothing(refused):
    refused(['--max-restarts=9', '--no-progress-restarts=2', '/bin/true'],
            '--no-progress-restarts needs --progress')


TRACEBACK = """cat >&2 <<'END'
Traceback (most recent call last):
  File "train.py", line {line}, in step
ValueError: teapot
END
exit 1
"""


@pytest.mark.quick
def test_the_same_exception_from_the_same_line(script):
    result = script.run(TRACEBACK.format(line=42), '--max-restarts=9', '--no-restart-on=7,repeat')
    assert result.rc == 1
    why = 'ValueError at train.py:42 in step, as in attempt 0, and repeat is in --no-restart-on'
    assert errors(result)[-1] == f'launchd: error: restarts: 1 of at most 9; no restart: {why}'
    script.assert_decided('restart 1 of at most 9', why)
    assert script.report()['restarts'][0]['culprit']['exception'] == \
        'ValueError at train.py:42 in step'


def test_exceptions_from_two_lines_in_turn(script):
    result = script.run(f'if [ $((N % 2)) = 0 ]; then\n{TRACEBACK.format(line=1)}fi\n'
                        + TRACEBACK.format(line=2), '--max-restarts=3', '--no-restart-on=repeat')
    assert result.rc == 1
    script.assert_decided(*(f'restart {n} of at most 3' for n in (1, 2, 3)), 'the limit is reached')


def test_a_window_that_is_full(script):
    result = script.run('exit 3', '--max-restarts=2', '--restart-window=24h')
    assert result.rc == 3
    script.assert_decided(*(f'restart {n} of at most 2 within 24 h 00 min' for n in (1, 2)),
                          'the limit is reached: 2 within 24 h 00 min')


def test_a_window_forgets(script):
    """Each attempt lasts longer than the window."""
    result = script.run('sleep 0.3; [ $N = 3 ]', '--max-restarts=1', '--restart-window=0.2')
    assert result.rc == 0
    assert [one['reason'] for one in script.events('restart')] == \
        ['restart 1 of at most 1 within 0.20 s'] * 3


def test_asked_to_end_between_two_attempts(script):
    job = script.begin('exit 3', '--max-restarts=1', '--restart-delay=300')
    until(lambda: 'starts in' in job.said(1), 'the pause')
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143
    script.assert_decided('the job was asked to end', of_events=False)


def test_the_node_that_fails_again(start, script):
    """Each time otherwise, so that it isn't the program's own doing. Nothing speaks of hardware, and nobody
    could give another host."""
    cluster = Cluster(start, 2, script.argv('[ $GROUP_RANK = 1 ] && exit $((N + 3)); exec sleep 99',
                                            '--nproc_per_node=1', '--max-restarts=1'),
                      each=lambda node: ([] if node else [script.events_option()], {}))
    results = cluster.end()
    assert exit_codes(results) == [4, 4]
    place = f'node 1 ({HOST}) was the first to fail in 2 of 2 attempts, local rank 0 each time'
    assert f'launchd: error: same place: {place}' in errors(results[0])
    assert not [line for line in warnings(results[0]) if 'same place' in line]
    report = script.report()
    assert (report['same_place'], report['cause']['exclude']) == (place, None)
    assert script.events('verdict')[0]['exclude'] is None


BROKEN = 'echo "RuntimeError: CUDA error: uncorrectable ECC error encountered" >&2; exit $((N + 3))'


@pytest.mark.parametrize('words, env, excluded', [
    (BROKEN, {'KUBERNETES_SERVICE_HOST': '10.0.0.1'}, True),
    (BROKEN, {}, False),
    ('echo "ValueError: $N" >&2; exit 3', {'KUBERNETES_SERVICE_HOST': '10.0.0.1'}, False),
])
def test_a_host_is_excluded_by_its_hardware_where_there_may_be_another(start, script, words, env, excluded):
    cluster = Cluster(start, 2, script.argv(f'[ $GROUP_RANK = 0 ] && exec sleep 99; {words}', '--nproc_per_node=1',
                                            '--max-restarts=1'), env,
                      each=lambda node: ([] if node else [script.events_option()], {}))
    results = cluster.end()
    assert 'same place: node 1' in results[0].err
    assert (f'exclude: {HOST}' in results[0].err) == excluded, results[0].err
    assert script.report()['cause']['exclude'] == ([HOST] if excluded else None)
