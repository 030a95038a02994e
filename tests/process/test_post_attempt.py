"""--post-attempt: a command on every node when an attempt has ended there, before the next one."""
import os
import signal

import pytest

from harness import children_of, is_running, native, status_of, stop, supervisor_of, until
from together import Cluster, errors, exit_codes, warnings

NAMES = ('GROUP_RANK', 'LAUNCHD_ATTEMPT', 'LAUNCHD_OUTCOME', 'LAUNCHD_CAUSE', 'LAUNCHD_CULPRIT_RANK',
         'LAUNCHD_CULPRIT_NODE')
# In a worker: both nodes have begun this attempt. A node that has not when it fails elsewhere has nothing to end.
BOTH = 'until [ "$(grep -c "starts $N" "${0%/*}/story")" = 2 ]; do sleep 0.02; done; '


class Story:
    """What workers and the command write into one file, in the order in which it happens: a worker
    "starts ATTEMPT", the command "RANK ATTEMPT OUTCOME CAUSE CULPRIT ITS-NODE"."""

    def __init__(self, start, place):
        self.start = start
        self.place = place
        self.path = place.path / 'story'
        self.path.touch()

    def options(self, worker, command, *more):
        job = self.place.write('job.sh', '#!/bin/sh\nN=$TORCHELASTIC_RESTART_COUNT\n'
                               f'echo "starts $N" >> {self.path}\n{worker}\n', 0o755)
        says = ' '.join(f'${{{name}-none}}' for name in NAMES)
        post = self.place.write('post.sh', f'#!/bin/sh\necho "{says}" >> {self.path}\n{command}\n', 0o755)
        return [f'--post-attempt={post}', *more, '--no_python', '--use_env', job]

    def begin(self, *how):
        return self.start(['--nproc_per_node=1', *self.options(*how)])

    def run(self, *how):
        return self.begin(*how).end()

    def lines(self):
        return self.path.read_text().splitlines()

    def await_command(self):
        until(lambda: [line for line in self.lines() if not line.startswith('starts')], 'the command')


@pytest.fixture
def story(start, place):
    return Story(start, place)


@pytest.mark.quick
def test_after_each_attempt(story):
    result = story.run('[ $N = 1 ] || exit 3', 'echo "$LAUNCHD_CAUSE_TEXT"  >> ${0%/*}/story', '--max-restarts=1')
    assert result.rc == 0
    said = story.lines()
    why = said.pop(2)
    assert why.startswith('rank 0 (local rank 0, pid ') and why.endswith('): exit code 3')
    assert said == ['starts 0', '0 0 failure failure 0 0', 'starts 1', '0 1 success none none none', '']
    assert warnings(result)[0].endswith('restart 1 of at most 1 starts now')


def test_its_failure_is_a_warning(story, place):
    result = story.run('exit 3', 'echo ignored; echo " no space left" >&2; exit 5')
    assert result.rc == 3
    assert warnings(result) == [f'launchd: warning: --post-attempt {place.path}/post.sh failed after attempt 0: '
                                'it exited with code 5; it printed: no space left']


def test_a_command_that_is_not_there(refused):
    refused(['--post-attempt=/nowhere/at-all -x', *native('dump')],
            '--post-attempt: /nowhere/at-all: no such file', rc=127)
    refused(["--post-attempt='", *native('dump')], '--post-attempt', 'is not a command')


def test_the_plan(dry):
    plan = dry(['--post-attempt=true --all', '--post-attempt-timeout=90'])
    assert plan.value('post_attempt').endswith('/true, for 90 s at most')
    assert plan.source('post_attempt') == '--post-attempt'


@pytest.mark.parametrize('logs', ['logs', '/'.join(['a' * 200] * 3)])
def test_where_the_evidence_is(story, place, logs):
    """However long its path is: one that is cut names nothing."""
    result = story.run('exit 3', 'echo "$LAUNCHD_BUNDLE" >> ${0%/*}/story; ls "$LAUNCHD_BUNDLE" >> ${0%/*}/story',
                       f'--log-dir={place.path}/{logs}')
    assert result.rc == 3
    said = story.lines()
    assert said[2].startswith(f'{place.path}/{logs}/blackbox/failure-') and said[2].endswith('/node-0')
    assert 'bundle.json' in said[3:]


def test_what_another_command_was_told_is_not_passed_on(story, start):
    job = start(['--nproc_per_node=1', *story.options('exit 0', 'exit 0')],
                {'LAUNCHD_CULPRIT_RANK': '7', 'LAUNCHD_CULPRIT_NODE': '7', 'LAUNCHD_BUNDLE': 'x'})
    assert job.end().rc == 0
    assert story.lines()[1] == '0 0 success none none none'


@pytest.mark.quick
def test_its_time_is_limited_also_for_what_it_has_started(story, place):
    """The harness sees that nothing is left."""
    result = story.run('exit 3', 'setsid sleep 990 & sleep 991', '--post-attempt-timeout=1')
    assert result.rc == 3
    assert warnings(result) == [f'launchd: warning: --post-attempt {place.path}/post.sh failed after attempt 0: '
                                'it did not finish within 1 s']


def test_what_it_leaves_behind_is_ended(story):
    result = story.run('exit 0', 'setsid sleep 992 & exit 0')
    assert (result.rc, warnings(result)) == (0, [])


def test_a_first_signal_lets_it_end_and_a_second_one_does_not(story, place):
    events = place.path / 'events'
    job = story.begin('exit 3', 'exec sleep 993', '--max-restarts=1', '--post-attempt-timeout=900',
                      f'--events={events}')
    story.await_command()
    child = process_of(job)
    job.signal(signal.SIGTERM)
    until(lambda: '"signal_received"' in events.read_text(), 'the first signal')
    assert is_running(child)
    job.signal(signal.SIGTERM)
    result = job.end()
    assert result.rc == 3 and 'the job was asked to end' in errors(result)[-1]
    assert 'starts 1' not in story.lines()
    assert not [line for line in warnings(result) if 'post-attempt' in line]


def process_of(job):
    supervisor = supervisor_of(job.pid)

    def found():
        return [pid for pid in children_of(supervisor) if status_of(pid).get('Name') == 'post-attempt']

    return until(found, 'the process of --post-attempt')[0]


def test_its_process_is_killed(story, place):
    job = story.begin('[ $N = 1 ] || exit 3', '[ $LAUNCHD_ATTEMPT = 1 ] || exec sleep 994', '--max-restarts=1')
    story.await_command()
    os.kill(process_of(job), signal.SIGKILL)
    result = job.end()
    assert result.rc == 0
    assert warnings(result)[0] == (f'launchd: warning: --post-attempt {place.path}/post.sh failed after attempt 0: '
                                   'its process was killed by SIGKILL in it')


def test_it_has_ended_on_all_nodes_before_the_next_attempt(start, story):
    """Node 0's takes its time."""
    cluster = Cluster(start, 2, story.options(
        BOTH + '[ $N = 1 ] && exit 0; [ $GROUP_RANK = 1 ] && exit 7; exec sleep 995',
        '[ $GROUP_RANK = 1 ] || sleep 0.5; echo "done $GROUP_RANK" >> ${0%/*}/story',
        '--nproc_per_node=1', '--max-restarts=1'))
    results = cluster.end()
    assert exit_codes(results) == [0, 0]
    said = story.lines()
    next_one = said.index('starts 1')
    assert sorted(said[:next_one]) == sorted(
        ['starts 0', 'starts 0', '0 0 failure failure 1 1', '1 0 failure failure 1 1', 'done 0', 'done 1'])


@pytest.mark.long
@pytest.mark.parametrize('node', [0, 1])
def test_on_one_node_alone(start, story, node):
    """The other one knows how long that may take: it isn't lost."""
    options = story.options(BOTH + '[ $N = 1 ] && exit 0; [ $GROUP_RANK = 1 ] && exit 7; exec sleep 998',
                            '[ $LAUNCHD_ATTEMPT = 1 ] || sleep 26', '--nproc_per_node=1', '--max-restarts=1',
                            '--shutdown-timeout=1', '--node-timeout=1', '--restart-gate-timeout=0',
                            '--restart-delay=0')
    cluster = Cluster(start, 2, options[1:], each=lambda each: (options[:1] if each == node else [], {}))
    results = cluster.end(90)
    assert exit_codes(results) == [0, 0]
    assert not any(f'{gone} lost' in result.err for result in results for gone in ('considered', 'was'))


def test_a_node_that_is_lost_meanwhile(start, story):
    cluster = Cluster(start, 2, story.options(
        BOTH + '[ $GROUP_RANK = 0 ] && exit 7; exec sleep 996', '[ $GROUP_RANK = 0 ] || exec sleep 997',
        '--nproc_per_node=1', '--max-restarts=1'))
    until(lambda: [line for line in story.lines() if line.startswith('1 0 ')], 'the command on node 1')
    node = cluster.jobs.pop(1)
    supervisor = supervisor_of(node.pid)
    stop(node.pid)
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not is_running(supervisor), 'the supervisor to end')
    node.kill()
    [result] = cluster.end()
    assert result.rc == 7
    assert 'starts 1' not in story.lines()
    assert 'no restart: node 1 was lost' in errors(result)[-1]
