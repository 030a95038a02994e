"""Workers' output by torchrun and by launchd, side by side: the same tree of files with the same
content, and the same lines on the same console. See test_peers.py for LAUNCHD_TORCHRUN."""
import os
import re

import pytest
from harness import children_of, end_children
from launchers import Running, command, skip_if_absent
from together import free_ports

# Both launchers' own lines are on stderr, too.
SCRIPT = '''#!/bin/sh
for fd in 1 2; do
    for word in one loss=1 a,b three; do echo "WORKER $RANK of $fd: $word" >&$fd; done
done
printf "WORKER $RANK: no end"
[ "$TORCHELASTIC_RESTART_COUNT" != "$FAILS" ]
'''
ROWS = {
    'tee': ['-t', '3'],
    'redirects': ['-r', '1'],
    'by rank': ['-r', '0:1,1:2'],
    'both': ['-r', '0:3', '-t', '1:3,2:1'],
    'some ranks': ['-t', '3', '--local-ranks-filter', '1'],
    'some ranks and no file': ['-r', '0:1', '--local-ranks-filter', '0,1'],
    'duplicates': ['-t', '0:3,1:3', '--duplicate-stdout-filters', 'loss,a,,b',
                   '--duplicate-stderr-filters', 'three'],
    'duplicates of some ranks': ['-t', '3', '--duplicate-stdout-filters', 'loss',
                                 '--local-ranks-filter', '1'],
    'template': ['-t', '3', '--role', 'trainer', '--log-line-prefix-template',
                 '[${role_name} ${rank}/${local_rank} $$ ${unknown}] '],
    'run id': ['-t', '1', '--rdzv-id', 'myrun'],
}
# not with --local-ranks-filter, which torchrun then does not obey
DEV_NULL = {'tee': ['-t', '3'], 'redirects': ['-r', '3']}


def ran(name, place, options, env=None, count=3):
    """(exit code, the workers' lines on both consoles)"""
    script = place.path / 'script'
    script.write_text(SCRIPT)
    script.chmod(0o755)
    job = Running(command(name, count, [script], options), place, env or {}, None)
    consoles = []
    try:
        code = job.end()
        for file in job.files:
            file.seek(0)
            consoles.append(sorted(line for line in file.read().decode().splitlines()
                                   if 'WORKER' in line and not line.startswith('launchd: ')))
    finally:
        job.process.kill()
        job.process.wait()
        job.close()
    return code, consoles


def tree(path):
    """What lies in a log directory, by path; the random part of its run's name is no part of it."""
    [run] = path.iterdir()
    assert re.fullmatch(r'.*_[a-z0-9_]{8}', run.name)
    found = {f'{run.name[:-8]}/{below.relative_to(run)}':
             below.read_bytes() if below.is_file() else None for below in run.rglob('*')}
    for name, content in found.items():
        if '/filtered_' in name:  # several workers' lines
            found[name] = sorted(content.splitlines())
    return found


@pytest.fixture
def both(place, nothing_left):
    """both(options, ...) -> what came of it with torchrun, with launchd"""
    skip_if_absent('torchrun')
    before = children_of(os.getpid())

    def run(options, env=None, dev_null=False, count=3):
        results = []
        # without a port torchrun makes up a run's id
        options = ['--master-port', str(free_ports()), *options]
        for name in ('torchrun', 'launchd'):
            path = '/dev/null' if dev_null else place.path / f'logs of {name}'
            if name == 'launchd':
                place.orphans_expected = False
            results.append(ran(name, place, [f'--log-dir={path}', *options], env, count))
            if not dev_null:
                results[-1] += (tree(path),)
        return results

    yield run
    if place.orphans_expected:  # only if launchd had no turn
        end_children(before)


@pytest.mark.parametrize('row', ROWS)
def test_the_same_tree_and_the_same_lines(both, row):
    """But for one thing: a last line without its newline gets one here, on the console."""
    torchrun, launchd = both(ROWS[row])
    assert with_ends(torchrun) == with_ends(launchd)
    assert torchrun[0] == 0 and len(torchrun[2]) > 3


def with_ends(result):
    """torchrun's console goes on in the same line after an end without a newline."""
    code, consoles, *files = result
    return (code, [sorted(filter(None, re.sub(r'no end', 'no end\n', '\n'.join(lines)).split('\n')))
                   for lines in consoles], *files)


@pytest.mark.parametrize('row', DEV_NULL)
def test_the_same_lines_without_files(both, row):
    torchrun, launchd = both(DEV_NULL[row], dev_null=True)
    assert with_ends(torchrun) == with_ends(launchd)
    assert torchrun[1][0]


def test_the_same_tree_of_attempts(both):
    torchrun, launchd = both(['-t', '3', '--max-restarts', '1'], {'FAILS': '0'}, count=1)
    assert with_ends(torchrun) == with_ends(launchd)
    assert {'attempt_0', 'attempt_1'} <= {name.split('/')[1] for name in torchrun[2]}
