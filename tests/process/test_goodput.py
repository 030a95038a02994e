"""What became of the job's time: summed over its attempts, said at the end, in the report, the last event and the
metrics."""
import itertools
import json
import os
import re
import signal

import pytest

from harness import let_pass, native, until
from together import Cluster, exit_codes


class Ending:
    """A job whose workers end as they are told to; all that is told of it."""

    def __init__(self, start, place, *options, end='exit:7', count=2, env=None):
        self.ready, self.go, self.path = place.fifo('ready'), place.fifo('go'), place.path
        self.count = count
        self.job = start([f'--nproc_per_node={count}', f'--report={place.path}/report.json',
                          f'--events={place.path}/events', f'--metrics-file={place.path}/metrics', *options,
                          *native('ending')],
                         {'TELL': self.ready.path, 'GO': self.go.path, 'END': end, **(env or {})})
        self.ready.expect('ready', count)

    def fail(self):
        """One of them does, and the others are stopped; another attempt starts."""
        self.go.go()
        self.ready.expect('ready', self.count)

    def end(self):
        result = self.job.end()
        self.report = json.loads((self.path / 'report.json').read_text())
        self.last = json.loads((self.path / 'events').read_text().splitlines()[-1])
        self.metrics = (self.path / 'metrics').read_text()
        goodput = self.report['goodput']
        assert self.last['event'] == 'job_ended' and self.last['goodput'] == goodput
        ratio = float(re.search(r'^launchd_goodput_ratio\{.*\} (\S+)$', self.metrics, re.M)[1])
        assert abs(ratio * 100 - goodput['percent']) < 0.051
        parts = [goodput[f'{name}_seconds'] for name in ('running', 'startup', 'ending')]
        parts += [loss['seconds'] for loss in goodput['lost']]
        assert abs(sum(parts) - goodput['seconds']) < 0.001 * len(parts)
        return result, goodput


@pytest.fixture
def ending(start, place):
    return lambda *options, **how: Ending(start, place, *options, **how)


def test_a_job_that_goes_well_is_silent(ending):
    job = ending(end='exit:0')
    job.go.go(2)
    result, goodput = job.end()
    assert result.rc == 0 and 'goodput' not in result.err
    assert goodput['attempts'] == 1 and goodput['lost'] == [] and not goodput['steps_known']


def test_it_is_told_to_who_wants_to_know(ending):
    job = ending('--verbose', end='exit:0')
    job.go.go(2)
    result, goodput = job.end()
    assert re.search(rf'launchd: .*goodput {goodput["percent"]} % of ', result.err)


def test_restarts(ending):
    """Once, at the end; the time between two attempts is lost."""
    job = ending('--max-restarts=2', '--restart-delay=1')
    job.fail()
    job.fail()
    job.go.go()
    result, goodput = job.end()
    assert result.rc == 7 and result.err.count('goodput') == 1
    [line] = [line for line in result.err.splitlines() if 'goodput' in line]
    assert line.startswith(f'launchd: note: goodput {goodput["percent"]} % of ')
    assert ' to 3 failures; work that was done again is not known without --progress' in line
    [loss] = goodput['lost']
    assert goodput['attempts'] == 3
    assert (loss['cause'], loss['attempts'], loss['work_seconds']) == ('failure', 3, 0)
    assert 3 <= loss['seconds'] < goodput['seconds']  # a second, then two
    assert re.search(r'^launchd_goodput_lost_seconds_total\{.*cause="failure"\} [3-9]', job.metrics, re.M)


def test_time_since_the_last_step_is_lost(ending, place):
    steps = place.path / 'steps'
    job = ending('--max-restarts=1', f'--progress={steps}')
    numbers = itertools.count(5)

    def is_seen():
        """What is there before the first look is no step of this attempt's."""
        steps.write_text(f'step {next(numbers)}\n')
        let_pass(1, 'launchd looks each second')
        return '"event":"step"' in (place.path / 'events').read_text()

    until(is_seen, 'a step to be seen')
    let_pass(5, 'work that is lost')
    job.fail()
    job.job.signal(signal.SIGTERM)
    result, goodput = job.end()
    assert result.rc == 143
    losses = {loss['cause']: loss for loss in goodput['lost']}
    assert set(losses) == {'failure', 'signal'} and goodput['steps_known']
    assert 2 <= losses['failure']['work_seconds'] <= losses['failure']['seconds']
    assert losses['signal']['work_seconds'] == 0
    assert 'without --progress' not in result.err


def test_a_stop_between_two_attempts(ending, place):
    job = ending('--max-restarts=1', '--restart-delay=300')
    job.go.go()
    until(lambda: '"restart"' in (place.path / 'events').read_text(), 'the attempt to end')
    let_pass(1, 'time that is lost')
    job.job.signal(signal.SIGTERM)
    result, goodput = job.end()
    assert result.rc == 143 and goodput['attempts'] == 1
    [loss] = goodput['lost']
    assert loss['cause'] == 'failure' and loss['seconds'] >= 1


def test_node_rank_0_knows_it_and_the_others_do_not(start, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    cluster = Cluster(start, 2, ['--max-restarts=1', f'--report={place.path}/report%n', *native('ending')],
                      {'TELL': ready.path, 'GO_1': go.path, 'END_1': 'exit:7', 'END': 'never'})
    ready.expect('ready', 2)
    go.go()
    pids = ready.expect('ready', 2)
    os.kill(pids[0], signal.SIGKILL)
    results = cluster.end()
    assert exit_codes(results) == [137, 137]
    mine, other = (json.loads((place.path / f'report{node}').read_text())['goodput'] for node in range(2))
    assert mine['attempts'] == 2 and mine['lost'][0]['attempts'] == 2 and other is None
    assert 'goodput' in results[0].err and 'goodput' not in results[1].err
