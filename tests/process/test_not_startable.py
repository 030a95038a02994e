"""Section 5: 127 / 126 for a script that can't be found or executed, before the first start where
possible, and 2 for usage (test_command_line.py has those)."""
import os
import re
import resource
import shutil
import subprocess
import sys

import pytest

from harness import BUILD, LIMIT, native
from needs import dropping
from sandbox import WALL, fails_with, install

# root may read everything, unless it lacks these
NO_OVERRIDE = dropping('dac_override', 'dac_read_search')
NATIVE = ['--nproc_per_node=2', '--no_python', '--use_env']


def error(result):
    lines = [line for line in result.err.splitlines() if line.startswith('launchd: error: ')]
    assert len(lines) >= 1, result
    return lines[0]


@pytest.mark.parametrize('content, rc, words', [
    ('#!./first\n', 127, 'interpreter'),
    ('no program at all\n', 126, 'Exec format error'),
])
def test_found_by_execve_only(launch, place, content, rc, words):
    place.write('first', '#!/nowhere/interpreter\n', 0o755)
    place.write('program', content, 0o755)
    result = launch([*NATIVE, './program'])
    assert result.rc == rc
    assert './program' in error(result) and words in error(result)
    assert 'rank 0 (local rank 0) ' in result.err and 'could not be started' in result.err
    assert 'rank 1 (local rank 1): not started' in result.err


def test_a_program_that_is_being_written(launch, place):
    """As by a copy that has not ended yet."""
    shutil.copy('/bin/true', place.path / 'program')
    with open(place.path / 'program', 'r+b'):
        result = launch([*NATIVE, './program'])
    assert result.rc == 126 and 'could not be started' in result.err
    assert './program: execve: Text file busy: it is open for writing' in error(result)


def test_interpreters_in_a_circle(launch, place):
    place.write('a', f'#!{place.path}/b\n', 0o755)
    place.write('b', f'#!{place.path}/a\n', 0o755)
    result = launch([*NATIVE, './a'])
    assert result.rc == 126 and 'could not be started' in result.err
    assert './a: execve: ' in error(result) and 'form a loop' in error(result)


def test_links_in_a_circle(launch, place):
    (place.path / 'a').symlink_to('b')
    (place.path / 'b').symlink_to('a')
    result = launch([*NATIVE, './a'])
    assert result.rc == 126 and './a: Too many levels' in error(result)


def test_a_module_that_is_absent_is_pythons_own_error(launch):
    result = launch(['-m', 'no_such_module_anywhere'])
    assert result.rc == 1 and 'No module named no_such_module_anywhere' in result.err


def test_a_directory_with_a_main_runs(launch, place):
    place.write('app/__main__.py', 'print("ran")')
    assert launch(['app']).out == 'ran\n'


def test_a_script_that_may_not_be_read(launch, place):
    place.write('script.py', '', 0o000)
    result = launch(['script.py'], wrap=NO_OVERRIDE)
    assert result.rc == 126 and 'script.py: Permission denied' in error(result)


def test_a_program_is_searched_on_path(launch, place):
    (place.path / 'bin').mkdir()
    (place.path / 'bin/dump').symlink_to(native('dump')[-1])
    place.write('first/dump', 'not executable')
    path = f'{place.path}/first:{place.path}/bin'
    assert launch([*NATIVE, 'dump', 'a'], {'PATH': path}).rc == 0
    assert place.dumps()[1]['argv'] == ['dump', 'a']


def test_too_few_descriptors(launch, place):
    """The launcher's own failure is 1, not a code that a worker or a script could be meant by; and
    it is said before the first start."""
    shell = 'ulimit -n 64; exec "$@"'
    launchd = [str(BUILD / 'launchd'), *native('dump', '--nproc_per_node=100')]
    result = launch(['--no_python', '--use_env', '--quiet', '/bin/sh', '-c', shell, 'sh', *launchd])
    assert result.rc == 1 and not place.dumps()
    assert re.search(r'100 workers need.*\b64\b', result.err)


@pytest.mark.parametrize('most', [4, 6, 7, 8, 10, 16, 40])
def test_hardly_any_descriptors(refused, most):
    """libuv aborts where it gets none for its loop."""
    refused(native('dump'), '1 worker needs', f'limit is {most} ', 'ulimit -Hn', rc=1,
            before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))


INHERIT = """
import os, resource, sys
most, free = 200, int(sys.argv[1])
for fd in range(3, most - free):
    os.dup2(0, fd)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize('options', [
    [], ['--progress=notify'], ['--log-dir=logs', '--tee=3'], ['--events=events', '--report=report']],
                         ids=['plain', 'progress', 'files', 'events'])
def test_descriptors_that_are_inherited(place, options):
    """They leave it more and more of its own, until the job runs: each time before it is said why not."""
    ends = []
    for free in range(2, 60):
        done = subprocess.run([sys.executable, '-c', INHERIT, str(free), BUILD / 'launchd', *options, '--quiet',
                               *native('dump', '--nproc_per_node=2')], env=place.environment({'EXIT_0': '3'}),
                              cwd=place.path, capture_output=True, text=True, timeout=LIMIT, check=False,
                              stdin=subprocess.DEVNULL)
        assert done.returncode in (1, 3) and 'error: ' in done.stderr, (free, done)
        assert 'please report' not in done.stderr
        assert not list((place.run / 'launchd').glob('*')) and not (place.run / 'launchd').exists(), free
        ends.append(done.returncode)
    assert ends[0] == 1 and ends[-1] == 3


@pytest.mark.parametrize('kilobytes', [64, 128, 255])
def test_hardly_any_stack(refused, kilobytes):
    refused(native('dump', '--report=report.json'), f' {kilobytes} KB ', 'ulimit -s', rc=1,
            before=lambda: limit_stack(kilobytes))


def limit_stack(kilobytes):
    resource.setrlimit(resource.RLIMIT_STACK, (kilobytes << 10, kilobytes << 10))


def test_as_much_stack_as_it_asks_for(launch, place):
    """A failed job with log files, a report and a notable last output takes the most."""
    result = launch(native('dump', '--nproc_per_node=4', '--log-dir=logs', '-t', '3',
                           '--report=report.json'),
                    {'EXIT_2': '3'}, before=lambda: limit_stack(256))
    assert result.rc == 3 and 'rank 2 ' in result.err.partition('root cause: ')[2]
    assert (place.path / 'report.json').exists()


def test_a_kernel_that_is_too_old(refused):
    """Before Linux 4.7 waitid does not know __WALL."""
    refused(native('dump', '--max-restarts=20'), f'Linux {os.uname().release}', 'Linux 4.18', rc=1,
            before=lambda: install(fails_with('waitid', 3, WALL)))
