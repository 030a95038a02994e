"""The job's key stays with the launchers: what workers of the same user find of it."""
import os
import re
import sys

import pytest

from together import Cluster, exit_codes
from harness import native, supervisor_of
from needs import needs_ptrace

KEY = 'a secret that is long enough'
MAPPING_MAX = 64 << 20  # of a sanitizer's there are larger ones

# Tells what it may read of its parent and of that one's.
LOOKS = '''
import os
def parent_of(pid):
    with open(f'/proc/{pid}/stat') as stat:
        return stat.read().rpartition(')')[2].split()[1]
supervisor = os.getppid()
for pid in supervisor, parent_of(supervisor):
    for name in 'environ', 'mem':
        try:
            open(f'/proc/{pid}/{name}', 'rb').close()
            told = 'open'
        except PermissionError:
            told = 'kept'
        with open(os.environ['TELL'], 'w') as tell:
            tell.write(f'{os.environ["RANK"]} {pid} {name} {told}\\n')
'''


def writable_memory(pid):
    """What a core dump would hold."""
    with open(f'/proc/{pid}/maps') as maps, open(f'/proc/{pid}/mem', 'rb', buffering=0) as memory:
        for first, last in re.findall(r'^([0-9a-f]+)-([0-9a-f]+) rw', maps.read(), re.M):
            start, size = int(first, 16), int(last, 16) - int(first, 16)
            if size <= MAPPING_MAX:
                memory.seek(start)
                yield memory.read(size)


@needs_ptrace
@pytest.mark.parametrize('nodes', [1, 2])
def test_the_launchers_forget_what_was_in_their_environment(start, place, nodes):
    tell, go = place.fifo('tell'), place.fifo('go')
    cluster = Cluster(start, nodes, native('ending'),
                      {'LAUNCHD_KEY': KEY, 'TELL': tell.path, 'GO': go.path, 'END': 'exit:0'})
    tell.expect('ready', nodes)
    for job in cluster.jobs.values():
        for pid in job.pid, supervisor_of(job.pid):
            with open(f'/proc/{pid}/environ', 'rb') as environ:
                left = environ.read()
            assert b'LAUNCHD_KEY=\0' in left and KEY.encode() not in left
            if 'ASAN_OPTIONS' not in os.environ:  # a sanitizer has a copy of the environment
                assert not any(KEY.encode() in part for part in writable_memory(pid))
    go.go(nodes)
    assert exit_codes(cluster.end()) == [0] * nodes


@pytest.mark.parametrize('key, expected', [(KEY, 'kept'), ('', 'open')])
def test_workers_read_nothing_of_launchers_that_have_a_key(start, place, key, expected):
    """But root's with its capabilities: here they have none, as any user's."""
    tell = place.fifo('tell')
    wrap = ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] if os.geteuid() == 0 else []
    cluster = Cluster(lambda *how: start(*how, wrap=wrap), 2,
                      ['--use_env', '--python', sys.executable, place.write('looks.py', LOOKS)],
                      {'LAUNCHD_KEY': key, 'TELL': tell.path})
    told = [tell.line()[2] for _ in range(8)]
    assert sorted(told) == sorted([f'{name} {expected}' for name in ('environ', 'mem')] * 4)
    assert exit_codes(cluster.end()) == [0, 0]
