"""Real torch as the store's client: every method as with torch's own server, and process groups."""
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess

import pytest
from harness import let_pass, settled, until
from stores import SCRIPTS, torches

LIMIT = 300
with_each_torch = pytest.mark.parametrize('torch', torches())


def methods(torch, port):
    done = subprocess.run([torch.python, SCRIPTS / 'methods.py', str(port)], text=True,
                          capture_output=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def where_they_differ(our, their):
    """In a few words: a value may have 100,000 characters."""
    ours, theirs = json.dumps(our), json.dumps(their)
    at = len(os.path.commonprefix([ours, theirs]))
    return (f'{ours[:30]}... differs at character {at}:\n'
            f'ours:   {ours[max(0, at - 20):at + 40]} ({len(ours)} characters in all)\n'
            f'theirs: {theirs[max(0, at - 20):at + 40]} ({len(theirs)} characters in all)')


@with_each_torch
def test_every_method_is_as_with_torchs_own_server(torch, host, serve):
    theirs = methods(torch, serve(torch).port)
    store = host(torch.old)
    ours = methods(torch, store.port)
    assert len(ours) > 50
    for our, their in zip(ours, theirs):
        if our != their:
            pytest.fail(where_they_differ(our, their))
    assert len(ours) == len(theirs)
    assert store.order('clients') and len(store.notes) == 1
    assert store.notes[0].endswith('its ADD adds to a value that is not a number')


def start_group(torch, port, world, attempt=0, *arguments, addr='127.0.0.1'):
    """`world` ranks as launchd starts them with a store of its own."""
    ranks = []
    for rank in range(world):
        env = {**os.environ, 'MASTER_ADDR': addr, 'MASTER_PORT': str(port),
               'RANK': str(rank), 'WORLD_SIZE': str(world), 'LOCAL_RANK': str(rank),
               'TORCHELASTIC_USE_AGENT_STORE': 'True', 'TORCHELASTIC_RUN_ID': 'none',
               'TORCHELASTIC_RESTART_COUNT': str(attempt), 'OMP_NUM_THREADS': '1',
               'PYTHONFAULTHANDLER': '1'}
        ranks.append(subprocess.Popen([torch.python, SCRIPTS / 'group.py', *arguments], env=env,
                                      text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    return ranks


def stacks(ranks):
    """Where those are that have not ended, who end with it."""
    said = ''
    for rank, process in enumerate(ranks):
        if process.poll() is None:
            process.send_signal(signal.SIGABRT)
            said += f'rank {rank} hangs: {process.communicate()[1]}\n'
    return said


def end_group(ranks, world):
    found = []
    for process in ranks:
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            pytest.fail(stacks(ranks))
        assert process.returncode == 0, err
        found.append(json.loads(out.splitlines()[-1]))
    total = world * (world + 1) / 2
    for rank, one in enumerate(found):
        assert one['rank'] == rank and one['sum'] == total and one['words'] == 'from 0'
        assert one['objects'] == [1000 * (r + 1) for r in range(world)]
        assert one.get('part', 0) == (0 if rank % 2 else (world + 1) // 2)


@with_each_torch
@pytest.mark.quick
@pytest.mark.parametrize('world', [1, 4])
def test_a_process_group(torch, world, host):
    store = host(torch.old)
    end_group(start_group(torch, store.port, world), world)
    assert store.number('clients') >= world
    assert store.notes == []


def have_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(('::1', 0))
    except OSError:
        return False
    return True


@with_each_torch
@pytest.mark.skipif(not have_ipv6(), reason='no IPv6 here')
def test_a_process_group_by_ipv6(torch, host):
    store = host(torch.old, '::1')
    end_group(start_group(torch, store.port, 2, addr='::1'), 2)
    assert store.notes == []


@with_each_torch
def test_the_next_attempt_after_a_death(torch, host):
    """The ranks of the first attempt are killed while they wait; those of the second know nothing."""
    store = host(torch.old)
    ranks = start_group(torch, store.port, 2, 0, 'stop')
    for process in ranks:
        assert process.stdout.readline() == 'here\n'
    for process in ranks:
        process.kill()
        process.communicate()
    before = store.number('memory')
    store.order('next')
    assert store.number('clients') == 0
    assert store.number('memory') < before
    for attempt in (1, 2):
        end_group(start_group(torch, store.port, 2, attempt), 2)
        store.order('next')
    assert store.notes == []


def test_a_client_that_is_older_than_the_store_was_told(host):
    [old] = [p for p in torches() if p.values[0].old == 'a']
    if old.marks[0].args[0]:
        pytest.skip('no torch here')
    store = host('none')
    talk = ('import sys, torch.distributed as d; '
            's = d.TCPStore("127.0.0.1", int(sys.argv[1]), is_master=False, '
            'wait_for_workers=False); s.set("k", "v"); s.get("k")')
    done = subprocess.run([old.values[0].python, '-c', talk, str(store.port)], text=True,
                          capture_output=True, timeout=LIMIT)
    assert done.returncode == 1 and 'RuntimeError' in done.stderr
    store.order('clients')
    assert 'does not begin as clients of torch 2.2 and later do' in store.notes[0]


def test_it_sleeps_while_nobody_asks(host):
    """Not one wake-up, with clients that wait."""
    store = host('none')
    hello, wait = b'\0\xce\xf7\x85\x3c', b'\6' + struct.pack('<QQ', 1, 3) + b'key'
    waiting = [socket.create_connection(('127.0.0.1', store.port)) for _ in range(10)]
    for client in waiting:
        client.sendall(hello + wait)

    def switches():
        status = pathlib.Path(f'/proc/{store.process.pid}/status').read_text()
        return int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', status, re.M)[1])

    until(lambda: store.number('clients') == 10, 'the clients to wait')
    before = settled(switches, 0.2)
    let_pass(1, 'nothing wakes up')
    assert switches() == before
    for client in waiting:
        client.close()
