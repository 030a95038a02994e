"""Who hosts the store, where it listens if launchd does, and a master port that somebody has."""
import os
import socket

import pytest
from harness import native, until
from needs import needs_localhost
from together import Cluster, errors, free_ports, warnings

ASIDE = '203.0.113.7'  # of nobody: RFC 5737

# What torch's clients say; rank 0 leaves its pid in the store and ends at once.
MEETS = '''
import os, socket, struct, sys
def key(k): return struct.pack('<Q', len(k)) + k
host = sys.argv[1] if len(sys.argv) > 1 else os.environ['MASTER_ADDR']
store = socket.create_connection((host, int(os.environ['MASTER_PORT'])))
store.sendall(b'\\0' + struct.pack('<I', 0x3c85f7ce))
if os.environ['RANK'] == '0':
    store.sendall(b'\\1' + key(b'pid') + key(b'%d' % os.getpid()) + b'\\x0d' + struct.pack('<I', 7))
    sys.exit(store.recv(4) != struct.pack('<I', 7))
store.sendall(b'\\6' + struct.pack('<Q', 1) + key(b'pid'))
store.recv(1)
store.sendall(b'\\3' + key(b'pid'))
pid = int(store.recv(64)[8:])
while os.path.exists(f'/proc/{pid}'):
    os.sched_yield()
store.sendall(b'\\4' + key(b'n') + struct.pack('<q', 5))
print('after rank 0:', struct.unpack('<q', store.recv(8))[0])
'''


def environments(place):
    return [dump['env'] for _, dump in sorted(place.dumps().items())]


@pytest.fixture
def torch(place):
    """A Python with a torch, as far as its files say."""
    place.write('site/torch/version.py', "__version__ = '2.9.1'\n")
    return {'PYTHONPATH': str(place.path / 'site'), 'LAUNCHD_CONTROL': 'auto'}


def test_rank_0_may_end_first(launch, place, torch):
    result = launch(['--nproc_per_node=3', '--use_env', place.write('meets.py', MEETS)], torch)
    assert result.rc == 0, result
    assert set(result.out.splitlines()) == {'after rank 0: 5', 'after rank 0: 10'}


@needs_localhost
def test_rank_0_may_end_first_on_two_nodes(start, place, torch):
    cluster = Cluster(start, 2, ['--use_env', place.write('meets.py', MEETS)], torch, host='localhost')
    results = cluster.end()
    assert [result.rc for result in results] == [0, 0], results
    assert results[1].out == 'after rank 0: 5\n'


@pytest.mark.parametrize('options, told', [
    ([], '127.0.0.1'), pytest.param(['--master_addr=localhost'], 'localhost', marks=needs_localhost),
    pytest.param(['--local-addr=localhost'], 'localhost', marks=needs_localhost),
    ([f'--master_addr={ASIDE}'], ASIDE), ([f'--master_addr={ASIDE}', '--local-addr=127.0.0.1'], ASIDE),
])
@pytest.mark.parametrize('store', [[], ['--store=agent']], ids=['default', 'agent'])
def test_the_address_stays_as_it_was_given(launch, place, torch, options, told, store):
    """A store of ours listens where the address leads to: workers come by 127.0.0.1 here."""
    script = place.write('meets.py', f'import os\nassert os.environ["MASTER_ADDR"] == {told!r}\n{MEETS}')
    result = launch([*options, *store, '--nproc_per_node=2', '--use_env', script, '127.0.0.1'], torch)
    assert (result.rc, result.out) == (0, 'after rank 0: 5\n'), result


@needs_localhost
@pytest.mark.parametrize('store', ['agent', 'rank0'])
def test_nodes_are_told_the_name(start, place, store):
    cluster = Cluster(start, 2, native('dump'), host='localhost',
                      each=lambda node: ([f'--store={store}'], {}))
    assert [result.rc for result in cluster.end()] == [0, 0]
    for env in environments(place):
        assert env['MASTER_ADDR'] == 'localhost'
        assert env['MASTER_PORT'] == str(cluster.port)
        assert env['TORCHELASTIC_USE_AGENT_STORE'] == str(store == 'agent')


def holder(port):
    """A socket that listens there, as this process does."""
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind(('127.0.0.1', port))
    taken.listen()
    return taken


@pytest.mark.parametrize('store, python', [('agent', False), ('rank0', True), ('rank0', False)])
def test_a_port_that_is_taken_is_not_changed_for_another(start, place, torch, store, python):
    """Whoever needs it says so on all nodes; a program without torch may do without."""
    argv = ['--use_env', place.write('t.py', 'print("ran")')] if python else native('dump')
    cluster = Cluster(start, 2, argv, torch, begin=False, each=lambda node: ([f'--store={store}'], {}))
    with holder(cluster.port):
        for node in range(2):
            cluster.begin(node)
        results = cluster.end()
    who = 'the store' if store == 'agent' else 'worker 0'
    where = f'at 127.0.0.1:{cluster.port}' if store == 'agent' else f'on port {cluster.port}'
    text = f"{who} can't listen {where}: "
    if store == 'rank0' and not python:
        assert [result.rc for result in results] == [0, 0], results
        assert {env['MASTER_PORT'] for env in environments(place)} == {str(cluster.port)}
        [line] = [line for line in warnings(results[0]) if 'listen' in line]
        assert text in line
        return
    assert [result.rc for result in results] == [1, 1], results
    for result in results:
        [line] = errors(result)
        assert f'{text}python3 (pid {os.getpid()}) listens there' in line and '--master_port' in line
    assert not place.dumps() and not any(result.out for result in results)


def test_a_port_that_a_connection_has(launch, place, torch):
    """Ports above 32767 are given to outgoing connections, too."""
    with socket.socket() as server:
        server.bind(('127.0.0.1', 0))
        server.listen()
        with socket.create_connection(server.getsockname()) as client:
            port = client.getsockname()[1]
            result = launch([f'--master_port={port}', '--store=rank0', '--use_env',
                             place.write('t.py', 'print("ran")')], torch)
    [line] = errors(result)
    assert (result.rc, result.out) == (1, '')
    assert f'port {port}: python3 (pid {os.getpid()}) has a connection from there' in line


FAILS_ONCE = '''
import os, sys
with open(os.environ['TELL'], 'w') as tell:
    tell.write(f'0 {os.getpid()} attempt {os.environ["TORCHELASTIC_RESTART_COUNT"]}\\n')
if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':
    open(os.environ['GO'], 'rb', 0).read(1)
    sys.exit(3)
'''


@pytest.mark.parametrize('patience, rc', [('600', 0), ('0.3', 3)], ids=['long enough', 'too short'])
def test_a_restart_waits_for_its_port(start, place, torch, patience, rc):
    tell, go = place.fifo('tell'), place.fifo('go')
    port = free_ports()
    job = start(['--store=rank0', '--max-restarts=1', f'--restart-gate-timeout={patience}',
                 '--restart-delay=0', f'--master_port={port}', '--use_env',
                 place.write('t.py', FAILS_ONCE)], {**torch, 'TELL': tell.path, 'GO': go.path})
    tell.expect('attempt 0', 1)
    with holder(port):
        go.go()
        if rc:
            result = job.end()
        else:
            until(lambda: 'for the master port' in job.said(), 'a note on the port')
    if not rc:
        tell.expect('attempt 1', 1)
        result = job.end()
    assert result.rc == rc, result
    text = f"worker 0 can't listen on port {port}: "
    assert sum(text in line for line in warnings(result)) == bool(rc)
    assert ('; no restart: the master port is in use' in result.err) == bool(rc)


LISTENS = '''
import os, socket
with socket.socket() as own:
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    own.bind((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])))
    own.listen()
'''


@pytest.mark.parametrize('options, says, hint', [
    ([], '', True), (['--store=rank0'], '', False), (['--jax-env'], '', False),
    (['--control=off'], '', False), ([], '# as jax.distributed does\n', False)])
def test_a_script_that_has_the_port_itself(launch, place, torch, options, says, hint):
    result = launch([*options, '--use_env', place.write('t.py', says + LISTENS)], torch)
    assert result.rc == hint, result
    assert ('hint: if the script listens on MASTER_PORT itself, give --store rank0' in result.err) == hint


@pytest.mark.parametrize('says, store', [("echo \"__version__ = '2.9.1'\"", 'agent'), ('exit 0', 'rank0')])
def test_a_shim_is_asked_once(dry, place, says, store):
    shim = place.write('shims/python3', f'#!/bin/sh\necho asked >> "$HOME/asked"\n{says}\n', 0o755)
    assert dry(['--python', shim]).value('store') == store
    assert (place.path / 'asked').read_text() == 'asked\n'
