"""Limits of each worker by cgroups of version 2, and certainty about whom the OOM killer has killed.

Where the kernel's controllers are not in version 2, as on machines that have them in version 1, only
what is said of that is tested; tests/kernels/run 6.12 makes a machine that has them.
"""
import os
import re
import signal
import subprocess

import pytest

from harness import native
from test_cgroup import (cgroup_of, delegated, end_by, kill_guard, kill_supervisor,  # noqa: F401
                         let_end, plain, supervisor_of, terminate)

NEEDED = {'memory', 'cpu', 'pids'}
LIMITS = {'--cgroup-memory=64M': 'memory', '--cgroup-cpus=1.5': 'cpu', '--cgroup-pids=50': 'pids'}


def controllers(cgroup):
    return set((cgroup.path / 'cgroup.controllers').read_text().split())


@pytest.fixture
def divisible(delegated):  # noqa: F811
    """With the controllers, which systemd hands over, too."""
    missing = NEEDED - controllers(delegated)
    if missing:
        pytest.skip(f'controllers that are not in cgroups of version 2: {", ".join(sorted(missing))}')
    for name in ('cgroup.subtree_control', 'cgroup.threads'):
        os.chown(delegated.path / name, delegated.user, delegated.user)
    return delegated


def refusal(launch, options, cgroup=None, env=None):
    result = launch(native('ending', *options), env or {}, before=cgroup.enter if cgroup else None)
    assert result.rc == 2, result
    [line] = [line for line in result.err.splitlines() if ': error: ' in line]
    return line


@pytest.mark.parametrize('option', LIMITS)
def test_a_limit_needs_a_delegated_cgroup(launch, place, plain, option):  # noqa: F811
    """It is never left out in silence."""
    line = refusal(launch, [option], plain)
    assert line.startswith(f'launchd: error: {option.partition("=")[0]} needs')
    assert str(plain.path) in line and 'Delegate=yes' in line
    assert not plain.cgroups()


def test_a_limit_needs_its_controller(launch, place, delegated):  # noqa: F811
    missing = NEEDED - controllers(delegated)
    if not missing:
        pytest.skip('all controllers are here')
    option, name = next((option, name) for option, name in LIMITS.items() if name in missing)
    path = place.write('job.ini', f'[cgroup]\n{option.removeprefix("--cgroup-").replace("=", " = ")}\n')
    line = refusal(launch, [f'--config={path}'], delegated)
    assert f'job.ini:2: {delegated.path} lacks' in line and f'({name})' in line
    assert not delegated.cgroups()


def test_all_that_is_wrong_is_found_before_a_worker_starts(launch, place, delegated):  # noqa: F811
    if not NEEDED - controllers(delegated):
        pytest.skip('all controllers are here')
    launched = place.path / 'started'
    result = launch(['--no_python', '--use_env', '--cgroup-pids=9', '--cgroup-memory=1G', '/bin/touch', str(launched)],
                    before=delegated.enter)
    assert result.rc == 2 and not launched.exists()


def read(cgroup, name):
    return (cgroup / name).read_text().strip()


def start_limited(start, place, cgroup, *options, count=2, env=None):
    job = start(native('ending', f'--nproc_per_node={count}', '--shutdown-timeout=600', *options),
                {'TELL': place.ready.path, 'GO': place.go.path, 'END': 'never', 'END_1': 'exit:7', **(env or {})},
                before=cgroup.enter)
    return job, place.ready.expect('ready', count)


@pytest.mark.parametrize('how', [terminate, kill_guard, kill_supervisor, let_end])
def test_limits_are_set_as_told(start, place, divisible, how):
    job, workers = start_limited(start, place, divisible, *LIMITS)
    leaf = divisible.path / f'launchd-{job.pid}'
    for rank, pid in workers.items():
        cgroup = leaf / 'attempt-0' / f'rank-{rank}'
        assert cgroup_of(pid, 3) == f'{leaf.name}/attempt-0/rank-{rank}'
        assert (read(cgroup, 'memory.max'), read(cgroup, 'memory.oom.group')) == (str(64 << 20), '1')
        assert not (cgroup / 'memory.swap.max').exists() or read(cgroup, 'memory.swap.max') == '0'
        assert (read(cgroup, 'cpu.max'), read(cgroup, 'pids.max')) == ('150000 100000', '50')
    assert cgroup_of(job.pid) == f'{leaf.name}-guard'
    assert cgroup_of(supervisor_of(job), 2) == f'{leaf.name}/supervisor'
    assert read(leaf / 'supervisor', 'memory.max') == 'max'
    end_by(how, job, place, divisible)
    assert read(divisible.path, 'cgroup.subtree_control') == ''


def test_only_what_is_needed_is_enabled(start, place, divisible):
    """And memory, whose events tell of the OOM killer."""
    job, _ = start_limited(start, place, divisible, '--cgroup-pids=50')
    leaf = divisible.path / f'launchd-{job.pid}'
    for cgroup in (divisible.path, leaf, leaf / 'attempt-0'):
        assert read(cgroup, 'cgroup.subtree_control') == 'memory pids'
    assert read(leaf / 'attempt-0' / 'rank-1', 'memory.max') == 'max'
    end_by(terminate, job, place, divisible)


def test_a_restart_has_the_limits_too(start, place, divisible):
    script = place.write('job.sh', f'''#!/bin/sh
[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3
exec {native('ending')[-1]}''', 0o755)
    job = start(['--no_python', '--use_env', '--max-restarts=1', '--cgroup-memory=64M', script],
                {'TELL': place.ready.path}, before=divisible.enter)
    place.ready.expect('ready', 1)
    leaf = divisible.path / f'launchd-{job.pid}'
    assert read(leaf / 'attempt-1' / 'rank-0', 'memory.max') == str(64 << 20)
    assert not (leaf / 'attempt-0').exists()
    end_by(terminate, job, place, divisible)


def run_out(start, place, cgroup, *options, env=None):
    job = start(native('glutton', '--nproc_per_node=3', *options),
                {'TELL': place.ready.path, 'GO': place.go.path, 'TAKER': '1', **(env or {})}, before=cgroup.enter)
    place.ready.expect('ready', 3)
    place.go.go()
    result = job.end()
    assert result.rc == 137, result
    assert cgroup.is_clean(), cgroup.what_is_left()
    [line] = [line for line in result.err.splitlines() if 'OOM killer' in line and 'rank 1' in line]
    assert 'likely' not in result.err
    return line


def test_whom_his_own_limit_has_ended_is_named(start, place, divisible):
    line = run_out(start, place, divisible, '--cgroup-memory=64M')
    assert 'at its memory limit, 64 MiB (--cgroup-memory)' in line


def test_whom_the_limit_above_has_ended_is_named(start, place, divisible):
    (divisible.path / 'memory.max').write_text(str(96 << 20))
    (divisible.path / 'memory.swap.max').write_text('0')
    line = run_out(start, place, divisible)
    assert 'at the memory limit of launchd\'s own cgroup or one above, 96 MiB' in line


def test_a_limit_of_pids_holds(launch, place, divisible):
    script = place.write('job.sh', '''#!/bin/bash
for i in $(seq 20); do sleep 1000 & done
exit 0''', 0o755)
    result = launch(['--no_python', '--use_env', '--cgroup-pids=8', '--leftover-grace=0.1', script],
                    before=divisible.enter)
    assert 'fork' in result.err and 'Resource temporarily unavailable' in result.err, result
    assert divisible.is_clean()


def test_a_limit_of_cpus_holds(launch, place, divisible):
    """A tenth of a CPU: half a second of work takes several."""
    script = place.write('job.sh', '''#!/bin/bash
cat $(dirname /sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/x)/cpu.max
end=$(($(date +%s%N) + 2000000000))
while [ $(date +%s%N) -lt $end ]; do :; done
cat /sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/cpu.stat''', 0o755)
    result = launch(['--no_python', '--use_env', '--cgroup-cpus=0.1', script], before=divisible.enter)
    assert result.rc == 0, result
    assert '10000 100000' in result.out
    assert int(re.search(r'nr_throttled (\d+)', result.out)[1]) > 0


def test_where_others_are_in_the_cgroup_a_limit_is_refused_with_their_names(launch, place, divisible):
    other = subprocess.Popen(['sleep', '1000'], preexec_fn=divisible.enter)
    try:
        line = refusal(launch, ['--cgroup-cpus=1'], divisible)
        assert f'such as pid {other.pid} (sleep)' in line and 'systemd-run' in line
        assert not divisible.cgroups()
    finally:
        other.kill()
        other.wait()


def test_where_others_are_in_the_cgroup_a_job_without_limits_runs(start, place, divisible):
    other = subprocess.Popen(['sleep', '1000'], preexec_fn=divisible.enter)
    try:
        job, _ = start_limited(start, place, divisible)
        assert read(divisible.path, 'cgroup.subtree_control') == ''
        assert cgroup_of(job.pid) == divisible.path.name
        job.signal(signal.SIGTERM)
        assert job.end().rc == 143
        assert not divisible.cgroups()
    finally:
        other.kill()
        other.wait()
