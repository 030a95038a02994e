"""Several launchers on loopback: how nodes meet, and what keeps them from it."""
import os
import re
import signal
import socket
import time

import pytest

from together import (MEETS, C10d, Cluster, errors, exit_codes, has_unread, listens,
                      warnings)
from harness import LIMIT, native, stop, supervisor_of, until
from needs import LOCALHOST, dropping

KEY = 'a secret that is long enough'
HOST = socket.gethostname()


def said(job, text):
    until(lambda: text in job.said(), f'"{text}" to be said')


def two_of_three(start, place, *options):
    """Node ranks 0 and 1 of a job of three have met; the third one is missing."""
    cluster = Cluster(start, 3, native('dump'), begin=False)
    events = place.path / 'events'
    cluster.begin(0, [f'--events={events}', *options])
    cluster.begin(1, options)
    until(lambda: events.exists() and '"node_joined"' in events.read_text(), 'node 1 to join')
    return cluster


@pytest.mark.parametrize('host', ['127.0.0.1', '::1', LOCALHOST])
def test_unequal_numbers_of_workers_get_right_ranks(start, place, host):
    counts = [2, 1, 3]
    cluster = Cluster(start, 3, native('dump'), host=host,
                      each=lambda node: ([f'--nproc_per_node={counts[node]}'], {}))
    assert exit_codes(cluster.end()) == [0, 0, 0]
    dumps = place.dumps()
    assert sorted(dumps) == list(range(6))
    for rank, dump in dumps.items():
        env = dump['env']
        node = [0, 0, 1, 2, 2, 2][rank]
        assert (env['WORLD_SIZE'], env['GROUP_RANK'], env['LOCAL_WORLD_SIZE']) == \
            ('6', str(node), str(counts[node]))
        assert (env['MASTER_ADDR'], env['MASTER_PORT']) == (host, str(cluster.port))
        assert not [name for name in env if 'LAUNCHD_KEY' in name]


def test_ranks_in_a_role_count_the_nodes_that_have_it(start, place):
    """Each node's launcher has told the others its role when they met."""
    roles = ['trainer', 'server', 'trainer']
    cluster = Cluster(start, 3, native('dump'), each=lambda node: (
        [f'--role={roles[node]}', f'--nproc_per_node={node + 1}'], {}))
    assert exit_codes(cluster.end()) == [0, 0, 0]
    assert {rank: tuple(dump['env'][name] for name in ('ROLE_NAME', 'ROLE_RANK', 'ROLE_WORLD_SIZE'))
            for rank, dump in place.dumps().items()} == {
        0: ('trainer', '0', '4'), 1: ('server', '0', '2'), 2: ('server', '1', '2'),
        3: ('trainer', '1', '4'), 4: ('trainer', '2', '4'), 5: ('trainer', '3', '4')}


def refused_everywhere(results, *words):
    """All nodes say the same, and end with 2."""
    assert exit_codes(results) == [2] * len(results), results
    lines = {tuple(errors(result)) for result in results}
    assert len(lines) == 1, lines
    [line] = lines.pop()
    for word in words:
        assert word in line
    return line


def test_one_rank_twice_is_refused_on_all_nodes(start, place):
    cluster = two_of_three(start, place)
    first = cluster.jobs[1]
    cluster.jobs[2] = start([*cluster.options(1), *native('dump')], MEETS)
    results = cluster.end()
    refused_everywhere(results, 'two launchers have node rank 1', 'give each node a different --node_rank')
    assert first and not place.dumps()


def test_another_number_of_nodes_is_refused_on_all_nodes(start, place):
    cluster = two_of_three(start, place)
    cluster.begin(2, ['--nnodes=4'])
    refused_everywhere(cluster.end(), 'says that the job has 4 nodes', '(node 0) says 3',
                       'the same --nnodes')
    assert not place.dumps()


def test_what_only_one_node_finds_wrong_ends_all_before_any_worker(start, place):
    # which ranks there are is known when all have met
    cluster = Cluster(start, 3, native('dump'),
                      each=lambda node: (['--wrap=/bin/true', '--wrap-ranks=7',
                                          '--nproc_per_node=3'] if node == 1 else [], {}))
    results = cluster.end()
    assert exit_codes(results) == [2, 2, 2], results
    for node, result in enumerate(results):
        [line] = errors(result)
        assert 'rank 7' in line and ('node 1, ' in line) == (node != 1)
    assert not place.dumps()


def test_a_rank_that_only_all_nodes_together_have(start, place):
    """Rank 3 of 1 + 3 workers: node 0 alone would count two."""
    cluster = Cluster(start, 2, native('dump'),
                      each=lambda node: (['--wrap=/usr/bin/env WRAPPED=yes', '--wrap-ranks=3',
                                          f'--nproc_per_node={1 + 2 * node}'], {}))
    results = cluster.end()
    assert exit_codes(results) == [0, 0], results
    assert {rank: dump['env'].get('WRAPPED') for rank, dump in place.dumps().items()} == \
        {0: None, 1: None, 2: None, 3: 'yes'}


def test_a_node_that_is_started_again_joins_again(start, place):
    cluster = two_of_three(start, place)
    first = cluster.jobs[1]
    supervisor = supervisor_of(first.pid)
    os.kill(supervisor, signal.SIGKILL)
    first.kill()
    first.end()
    cluster.begin(1)
    cluster.begin(2)
    assert exit_codes(cluster.end()) == [0, 0, 0]
    assert sorted(place.dumps()) == [0, 1, 2]


def two_of_three_and_one_reset(start, place):
    """What the killed launcher of node 1 had not read makes its kernel send a reset, not the
    connection's end; node rank 0 waits for it to come back."""
    cluster = two_of_three(start, place, '--node-timeout=3')
    first = cluster.jobs[1]
    supervisor = supervisor_of(first.pid)
    stop(supervisor)
    until(lambda: has_unread(cluster.port + 1), 'something that it has not read')
    os.kill(supervisor, signal.SIGKILL)
    first.kill()
    first.end()
    return cluster


def test_a_node_whose_connection_was_reset_joins_again(start, place):
    """It isn't taken for a second launcher."""
    cluster = two_of_three_and_one_reset(start, place)
    cluster.begin(1)
    cluster.begin(2)
    assert exit_codes(cluster.end()) == [0, 0, 0]


def test_a_job_does_not_begin_with_a_node_whose_connection_was_reset(start, place):
    cluster = two_of_three_and_one_reset(start, place)
    cluster.begin(2)
    until(lambda: '"node_rank":2' in (place.path / 'events').read_text(), 'node 2 to join')
    cluster.begin(1)
    assert exit_codes(cluster.end()) == [0, 0, 0]


def test_node_0_decides_about_restarts_and_store_and_says_so(start, place):
    cluster = Cluster(start, 2, native('dump'), each=lambda node: (
        ['--max-restarts=3', '--store=agent'] if node else [], {}))
    results = cluster.end()
    assert exit_codes(results) == [0, 0]
    text = 'has --max-restarts 3 and --store agent, but node rank 0\'s values apply: 0, rank0'
    assert [text in line for line in warnings(results[0])] == [True] and text in results[1].err
    assert {dump['env']['TORCHELASTIC_MAX_RESTARTS'] for dump in place.dumps().values()} == {'0'}


def test_nodes_wait_for_node_0(start, place):
    cluster = Cluster(start, 2, native('dump'), begin=False)
    with socket.create_server(('127.0.0.1', cluster.port + 1)) as listener:
        listener.settimeout(LIMIT)
        cluster.begin(1)
        listener.accept()[0].close()  # it has dialled, and nobody took it in
    cluster.begin(0)
    assert exit_codes(cluster.end()) == [0, 0]


@pytest.mark.parametrize('host', [LOCALHOST, '127.0.0.1', '::1'])
def test_c10d_needs_no_ranks(start, place, host):
    cluster = C10d(start, 3, native('dump', '--nproc_per_node=2'), host=host)
    assert exit_codes(cluster.end()) == [0, 0, 0]
    dumps = place.dumps()
    assert sorted(dumps) == list(range(6))
    assert {int(dump['env']['GROUP_RANK']) for dump in dumps.values()} == {0, 1, 2}
    ports = {dump['env']['MASTER_PORT'] for dump in dumps.values()}
    assert len(ports) == 1 and str(cluster.port) not in ports


def test_c10d_with_ranks(start, place):
    cluster = C10d(start, 2, native('dump'),
                   each=lambda node: (['--node_rank', str(1 - node)], {'NODE': str(node)}))
    assert exit_codes(cluster.end()) == [0, 0]
    nodes = {rank: dump['env']['NODE'] for rank, dump in place.dumps().items()}
    assert nodes == {0: '1', 1: '0'}


def test_required_and_not_all_come(start, place):
    cluster = Cluster(start, 4, native('dump', '--control=required', '--join-timeout=3'),
                      begin=False)
    cluster.begin(0)
    cluster.begin(2)
    results = cluster.end()
    assert exit_codes(results) == [1, 1]
    for result in results:
        [line] = errors(result)
        assert f'nodes 1, 3 did not join within 3 s (--join-timeout); joined: {HOST}, ' in line
    assert not place.dumps()


def test_required_and_node_0_is_not_there(start, place):
    cluster = Cluster(start, 2, native('dump', '--control=required', '--join-timeout=2'),
                      begin=False)
    cluster.begin(1)
    [result] = cluster.end()
    assert result.rc == 1
    [line] = errors(result)
    assert "node rank 0's launcher" in line and f'127.0.0.1:{cluster.port + 1}' in line
    assert '--control required' in line and not place.dumps()


def test_auto_starts_without_those_who_do_not_come(start, place):
    cluster = Cluster(start, 3, native('dump', '--join-timeout=3'), begin=False)
    cluster.begin(0)
    cluster.begin(2)
    results = cluster.end()
    assert exit_codes(results) == [0, 0]
    assert any('node 1 did not join within 3 s' in line for line in warnings(results[0]))
    dumps = place.dumps()
    assert {rank: dump['env']['WORLD_SIZE'] for rank, dump in dumps.items()} == {0: '3', 2: '3'}


def test_auto_goes_on_without_node_0(start, place):
    cluster = Cluster(start, 2, native('dump', '--join-timeout=1500ms', '--max-restarts=3',
                                       '--store=agent'), begin=False)
    cluster.begin(1)
    [result] = cluster.end()
    assert result.rc == 0
    [line] = warnings(result)
    for words in ("was not reached within 1.5 s", "this node's workers start without",
                  'there are no restarts', 'rank 0 hosts the store'):
        assert words in line
    env = place.dumps()[1]['env']
    assert (env['WORLD_SIZE'], env['MASTER_PORT'], env['TORCHELASTIC_USE_AGENT_STORE'],
            env['TORCHELASTIC_MAX_RESTARTS']) == ('2', str(cluster.port), 'False', '0')


def test_c10d_can_not_go_on_without_the_others(start, place):
    cluster = C10d(start, 2, native('dump', '--join-timeout=2', '--node_rank=1'), begin=False)
    cluster.begin(1)
    [result] = cluster.end()
    assert result.rc == 1 and '--control-port' in errors(result)[0] and not place.dumps()


def test_off_is_as_before_the_channel(start, place):
    cluster = Cluster(start, 2, native('dump', '--control=off'), begin=False)
    cluster.begin(1)
    [result] = cluster.end()
    assert (result.rc, result.err) == (0, '')
    assert sorted(place.dumps()) == [1]


@pytest.mark.parametrize('options, name', [(['--max-restarts=1'], '--max-restarts'),
                                           (['--store=agent'], '--store')])
def test_off_and_what_needs_the_others(refused, options, name):
    refused(['--nnodes=2', '--node_rank=1', '--master_addr=127.0.0.1', '--control=off', *options,
             *native('dump')], '--control', name)


OFF = 'or --control off'
ANOTHER = 'give all nodes another --control-port'


@pytest.mark.parametrize('options, kind, advice', [
    ([], Cluster, f'the launchers meet there (master port + 1): {ANOTHER}, {OFF}'),
    (['--max-restarts=1'], Cluster, f'the launchers meet there (master port + 1): {ANOTHER}'),
    (['--control=required'], Cluster, f'the launchers meet there (master port + 1): {ANOTHER}'),
    (['--control-port={above}'], Cluster, f'the launchers meet there (--control-port): {ANOTHER}, '
     f'{OFF}'),
    (['--node_rank=0'], C10d, 'the launchers meet there (--rdzv-endpoint): give all nodes an '
     'endpoint with another port'),
])
def test_the_port_is_taken(start, place, options, kind, advice):
    """Who has it, and what to do: users don't know of that port."""
    cluster = kind(start, 2, native('dump'), begin=False)
    above = cluster.port + (kind == Cluster)
    with socket.create_server(('127.0.0.1', above)):
        cluster.begin(0, [option.format(above=above) for option in options])
        [result] = cluster.end()
    command = open('/proc/self/comm').read().strip()
    assert result.rc == 1
    assert errors(result) == [
        f"launchd: error: can't listen at 127.0.0.1:{above}: {command} (pid {os.getpid()}) listens "
        f'there; {advice}']
    assert place.dumps() == {}


def test_a_port_that_only_root_may_have(launch, place):
    """126 would say that a program can't be executed."""
    with open('/proc/sys/net/ipv4/ip_unprivileged_port_start') as file:
        if int(file.read()) <= 1022:
            pytest.skip('ports below 1024 are free for all here')
    result = launch(['--nnodes=2', '--node_rank=0', '--master_addr=127.0.0.1',
                     '--master_port=1021', *native('dump')], MEETS,
                    wrap=dropping('net_bind_service'))
    assert result.rc == 1, result
    assert errors(result) == ["launchd: error: can't listen at 127.0.0.1:1022: Permission denied"]


def test_the_port_is_another_launchers(start, place):
    """Node rank 0 given twice on one host, or two jobs."""
    cluster = Cluster(start, 2, native('dump'), begin=False)
    first = cluster.begin(0)
    until(lambda: listens(cluster.port + 1), 'the first launcher')
    second = cluster.begin(0).end()
    assert second.rc == 1
    [line] = errors(second)
    assert f': another launchd (pid {supervisor_of(first.pid)}) listens there; ' in line
    assert 'if it is of this job, give each node a different --node_rank; else give all nodes another' in line
    cluster.jobs = {0: first}
    cluster.begin(1)
    assert exit_codes(cluster.end()) == [0, 0]


@pytest.mark.long
def test_both_ends_say_who_is_missing(start, place):
    cluster = Cluster(start, 3, native('dump', '--control=required', '--join-timeout=12'),
                      begin=False)
    began = time.monotonic()
    cluster.begin(0)
    cluster.begin(1)
    lost = C10d(start, 2, native('dump', '--control=required', '--join-timeout=12'), begin=False)
    lost.options = lambda node: ['--nnodes=2', '--node_rank=1', '--master_addr=127.0.0.1',
                                 f'--master_port={lost.port}']
    lost.begin(1)
    unranked = C10d(start, 4, native('dump', '--control=required', '--join-timeout=12'),
                    begin=False)
    unranked.begin(0)
    unranked.begin(1)
    for job in cluster.jobs[0], cluster.jobs[1]:
        said(job, f': 1 of 3 nodes (--nnodes) is missing: node 2; joined: {HOST}, {HOST}\n')
    for job in unranked.jobs[0], unranked.jobs[1]:
        said(job, f': 2 of 4 nodes (--nnodes) are missing; joined: {HOST}, {HOST}\n')
    said(lost.jobs[1], "the job has 2 nodes (--nnodes), and "
         f"node rank 0's launcher can't be reached yet: 127.0.0.1:{lost.port + 1} ")
    assert time.monotonic() - began > 9
    assert exit_codes(cluster.end()) == [1, 1] and exit_codes(lost.end()) == [1]
    results = unranked.end()
    assert exit_codes(results) == [1, 1]
    for result in results:
        assert '2 of 4 nodes did not join within 12 s (--join-timeout); joined:' in \
            errors(result)[0]


@pytest.mark.long
def test_an_endpoint_that_no_node_has(start):
    """All dial it, as the one whose address it is would be node rank 0. Where ranks are given nobody guesses."""
    nobody, ranked = (C10d(start, 2, native('dump', '--control=required', '--join-timeout=12'), begin=False)
                      for _ in range(2))
    nobody.options = lambda node: ['--nnodes=2', '--rdzv-backend=c10d', '--rdzv-endpoint=203.0.113.9:29400']
    ranked.options = lambda node: ['--nnodes=2', '--node_rank=1', '--master_addr=203.0.113.9']
    for cluster in nobody, ranked:
        cluster.begin(1)
    for cluster in nobody, ranked:
        said(cluster.jobs[1], "node rank 0's launcher can't be reached yet: 203.0.113.9:")
    [without], [given] = nobody.end(), ranked.end()
    assert without.rc == given.rc == 1
    assert re.search(r'; still trying; no interface of this host has that address( \(it has .*\))?: if no node has '
                     r'it, give the one that should be node rank 0 --rdzv-conf is_host=1\n', without.err)
    assert '; still trying\n' in given.err


def keyed(place, node, keys):
    if keys[node] is None:
        return [], {}
    if node == 1:
        return [f"--key-file={place.write('key', keys[node], 0o600)}"], {}
    return [], {'LAUNCHD_KEY': keys[node]}


def test_the_same_key(start, place):
    cluster = Cluster(start, 3, native('dump', '--control=required'),
                      each=lambda node: keyed(place, node, [KEY] * 3))
    results = cluster.end()
    assert exit_codes(results) == [0, 0, 0]
    assert not any('authenticated' in result.err for result in results)
    for dump in place.dumps().values():
        assert not any(KEY in value or name == 'LAUNCHD_KEY'
                       for name, value in dump['env'].items())


def test_without_a_key_it_is_said_once(start, place):
    results = Cluster(start, 3, native('dump')).end()
    assert exit_codes(results) == [0, 0, 0]
    told = [len(re.findall('the control channel is not authenticated', result.err))
            for result in results]
    assert told == [1, 0, 0]


@pytest.mark.parametrize('keys', [[KEY, KEY + 'x'], [KEY, None], [None, KEY]])
def test_a_wrong_key_and_a_node_without(start, place, keys):
    cluster = Cluster(start, 2, native('dump', '--control=required', '--join-timeout=4'),
                      each=lambda node: keyed(place, node, keys))
    results = cluster.end()
    assert exit_codes(results) == [1, 1]
    assert 'key' in errors(results[1])[0]
    assert any('key' in line for line in warnings(results[0]))
    assert not place.dumps()


@pytest.mark.parametrize('keyed_nodes', [False, True])
def test_nobody_starts_without_the_others(start, place, keyed_nodes):
    """Who says nothing of --control wants no workers that train alone, or that a stranger at the port sets free."""
    def each(node):
        options, env = keyed(place, node, [KEY, KEY + 'x']) if keyed_nodes else ([], {})
        return options, {**env, 'LAUNCHD_CONTROL': ''}
    cluster = Cluster(start, 2 if keyed_nodes else 3, native('dump', '--join-timeout=3'), each=each, begin=False)
    cluster.begin(0)
    cluster.begin(1)
    results = cluster.end()
    assert exit_codes(results) == [1, 1]
    assert len(errors(results[1])) == 1
    assert '(--control required, the default; --control-port sets' in errors(results[1])[0]
    assert '--control auto' in errors(results[0])[0] and f'port {cluster.port + 1}' in errors(results[0])[0]
    assert not place.dumps()


def test_auto_goes_on_with_a_wrong_key(start, place):
    cluster = Cluster(start, 2, native('dump', '--join-timeout=4'),
                      each=lambda node: keyed(place, node, [KEY, KEY + 'x']))
    results = cluster.end()
    assert exit_codes(results) == [0, 0]
    assert any('key' in line for line in warnings(results[1]))
    assert {rank: dump['env']['WORLD_SIZE'] for rank, dump in place.dumps().items()} == \
        {0: '2', 1: '2'}


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize('node', [0, 1])
def test_a_request_while_nodes_meet_ends_all(start, place, node, number):
    cluster = two_of_three(start, place)
    cluster.jobs[node].signal(number)
    results = cluster.end()
    assert exit_codes(results) == [128 + number] * 2
    for result in results:
        assert signal.Signals(number).name in result.err
    assert not place.dumps()


def test_a_c10d_node_without_a_rank_yet_ends_all(start, place):
    # whichever becomes node rank 0 says that the other one's setting differs when it takes it in
    cluster = C10d(start, 3, native('dump'), begin=False,
                   each=lambda node: ([f'--max-restarts={node}'], {}))
    first, second = cluster.begin(0), cluster.begin(1)
    until(lambda: 'has --max-restarts' in first.said() + second.said(), 'one to join the other')
    second.signal(signal.SIGTERM)
    assert exit_codes(cluster.end()) == [143, 143]
