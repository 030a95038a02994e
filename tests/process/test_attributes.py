"""--rlimit, --nice, --oom-score-adj: read back from the worker's /proc, and refused before any start."""
import os
import resource
from pathlib import Path

import pytest

from harness import native, supervisor_of
from needs import dropping, needs_mounts
from own_mounts import OWN_MOUNTS

HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
UNPRIVILEGED = dropping('sys_resource', 'sys_nice')


def limits_of(pid):
    """{'Max open files': (soft, hard)} as /proc says it."""
    rows = Path(f'/proc/{pid}/limits').read_text().splitlines()[1:]
    return {row[:26].strip(): tuple(row[26:].split()[:2]) for row in rows}


def nice_of(pid):
    return int(Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[16])


def oom_score_adj_of(pid):
    return int(Path(f'/proc/{pid}/oom_score_adj').read_text())


@pytest.fixture
def running(start, place):
    """running(options) -> (pids of the workers, launcher); they end after the test."""
    jobs = []

    def run(*options, workers=2, **how):
        tell, go = place.fifo(f'tell{len(jobs)}'), place.fifo(f'go{len(jobs)}')
        job = start(native('dump', f'--nproc_per_node={workers}', *options),
                    {'TELL': tell.path, 'GO': go.path}, **how)
        jobs.append((job, go, workers))
        return list(tell.expect('ready', workers).values()), job

    yield run
    for job, go, workers in jobs:
        go.go(workers)
        assert job.end().rc == 0


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, HARD))


def test_limits_of_every_worker_and_of_none_of_ours(running):
    pids, job = running('--rlimit=nofile=100:200,CORE=0,RLIMIT_MEMLOCK=64K,stack=8M:unlimited,cpu=7200',
                        before=few_files)
    hard_stack = resource.getrlimit(resource.RLIMIT_STACK)[1]
    assert hard_stack == resource.RLIM_INFINITY, 'the test expects no hard limit on the stack'
    for pid in pids:
        limits = limits_of(pid)
        assert limits['Max open files'] == ('100', '200')
        assert limits['Max core file size'] == ('0', '0')
        assert limits['Max locked memory'] == ('65536', '65536')
        assert limits['Max stack size'] == (str(8 << 20), 'unlimited')
        assert limits['Max cpu time'] == ('7200', '7200')
    for pid in (job.pid, supervisor_of(job.pid)):
        limits = limits_of(pid)
        assert limits['Max open files'] == (str(HARD), str(HARD))
        assert limits['Max cpu time'] == ('unlimited', 'unlimited')


def test_the_launchers_own_limit_of_files_is_not_the_workers(running):
    """launchd raises its own; a worker without --rlimit nofile has what launchd was started with."""
    [pid], _ = running('--rlimit=core=0', workers=1, before=few_files)
    assert limits_of(pid)['Max open files'] == ('64', str(HARD))
    [pid], _ = running(f'--rlimit=nofile={HARD}', workers=1, before=few_files)
    assert limits_of(pid)['Max open files'] == (str(HARD), str(HARD))


def test_nice_and_the_oom_score(running):
    own = nice_of('self'), oom_score_adj_of('self')
    pids, job = running(f'--nice={min(own[0] + 7, 19)}', '--oom-score-adj=345')
    for pid in pids:
        assert (nice_of(pid), oom_score_adj_of(pid)) == (min(own[0] + 7, 19), 345)
    for pid in (job.pid, supervisor_of(job.pid)):
        assert (nice_of(pid), oom_score_adj_of(pid)) == own


def test_a_restarted_worker_has_them_too(launch, place):
    script = place.write('worker.sh', '#!/bin/sh\necho files $(ulimit -n) nice $(nice)\n'
                                      'exit $((1 - TORCHELASTIC_RESTART_COUNT))\n', 0o755)
    result = launch(['--max-restarts=1', '--rlimit=nofile=77', '--nice=19', '--no_python', '--use_env',
                     script])
    assert (result.rc, result.out) == (0, 'files 77 nice 19\n' * 2)


@pytest.mark.parametrize('text, words', [
    ('nofil=5', ['"nofil"', 'did you mean nofile?']), ('', ['empty', 'nofile=65536'])])
def test_what_is_no_list_of_limits(refused, text, words):
    refused(native('dump', f'--rlimit={text}'), '--rlimit', *words)


def test_a_limit_above_the_hard_one(refused):
    resources = [(resource.RLIMIT_NOFILE, 'nofile'), (resource.RLIMIT_MEMLOCK, 'memlock')]

    def before():
        for number, _ in resources:
            resource.setrlimit(number, (100, 100))

    for _, name in resources:
        refused(native('dump', f'--rlimit={name}=unlimited'), f'--rlimit: {name}=unlimited',
                'hard limit of 100', before=before, wrap=UNPRIVILEGED)
    refused(native('dump', '--rlimit=nofile=100:101'), 'nofile=100:101', before=before, wrap=UNPRIVILEGED)


def test_a_nice_value_below_ours(refused):
    own = os.nice(0)
    refused(native('dump', f'--nice={own - 1}'), f'--nice: {own - 1}', f'nice value of {own}', 'CAP_SYS_NICE',
            wrap=UNPRIVILEGED, before=lambda: resource.setrlimit(resource.RLIMIT_NICE, (0, 0)))


def test_an_oom_score_below_ours(refused):
    """The kernel's least one for a process is what a privileged one had last set."""
    refused(native('dump', '--oom-score-adj=-1000'), '--oom-score-adj: -1000', 'CAP_SYS_RESOURCE',
            wrap=UNPRIVILEGED)


@needs_mounts
@pytest.mark.skipif('ASAN_OPTIONS' in os.environ, reason='sanitizers need /proc')
def test_an_oom_score_without_proc(refused):
    wrap = [*OWN_MOUNTS, 'sh', '-c', 'mount -t tmpfs none /proc && exec "$@"', 'sh']
    refused(native('dump', '--oom-score-adj=5'), '--oom-score-adj', '/proc/self/oom_score_adj', wrap=wrap)


def test_all_that_is_wrong_is_listed_of_a_file(launch, place):
    place.write('job.ini', '[launchd]\nscript = /bin/true\nno_python = 1\nuse_env = 1\n'
                           'rlimit = memlock=unlimited\noom_score_adj = -1000\n')
    result = launch(['--check', 'job.ini'], wrap=UNPRIVILEGED,
                    before=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (5, 5)))
    assert result.rc == 2
    assert 'job.ini:5: rlimit: memlock=unlimited is above the hard limit of 5' in result.err + result.out
    assert 'job.ini:6: oom-score-adj: -1000 is below' in result.err + result.out


def test_dry_run_shows_them(dry, launch):
    plan = dry(['--rlimit=nofile=100:200,core=unlimited,memlock=4K', '--nice=19', '--oom-score-adj=1000'])
    assert plan.value('rlimits') == 'nofile=100:200,core=unlimited,memlock=4096'
    assert plan.source('rlimits') == '--rlimit'
    assert (plan.value('nice'), plan.value('oom_score_adj')) == ('19', '1000')
    text = launch(['--dry-run', '--rlimit=core=0', *native('dump')]).out
    assert '  rlimits          core=0                    (--rlimit)\n' in text
    assert 'oom_score_adj' not in text
