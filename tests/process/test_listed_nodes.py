"""[cluster]: one file for all nodes, in which each finds itself. This machine has one name and loopback addresses;
several nodes are in tests/hosts."""
import os
import socket

import pytest

from harness import native

HERE = os.uname().nodename


def place_of(plan):
    return [(plan.value(name), plan.source(name)) for name in ('nnodes', 'node_rank', 'master_addr')]


def test_by_its_name(dry, place):
    place.write('job.ini', f'[cluster]\nnodes = n0, {HERE.upper()} gpu[01-16]\n')
    assert place_of(dry(['--config=job.ini'])) == [
        ('18', 'job.ini:2'), ('1', f'job.ini:2: {HERE.upper()}'), ('n0', 'job.ini:2')]


def test_over_several_lines(dry, place):
    """As many as one likes: of each line alone at most 190 bytes are read."""
    names = [f'gpu{n:03}.a-cluster-with-a-long-name' for n in range(20)]
    place.write('job.ini', '\n'.join(['[cluster]', 'nodes =', *(f'  {name},' for name in names), '  ; and this one',
                                      f'  {HERE}', '[launchd]', 'nproc_per_node = 2']))
    plan = dry(['--config=job.ini'])
    assert place_of(plan) == [('21', 'job.ini:2'), ('20', f'job.ini:2: {HERE}'), (names[0], 'job.ini:2')]
    assert plan.value('nproc_per_node') == '2'


def test_the_flag_and_the_variable_are_the_same(dry):
    nodes = f'{HERE},10.99.0.9'
    for options, env, where in (([f'--cluster-nodes={nodes}'], {}, '--cluster-nodes'),
                                ([], {'LAUNCHD_CLUSTER_NODES': nodes}, 'LAUNCHD_CLUSTER_NODES')):
        assert place_of(dry(options, env)) == [('2', where), ('0', f'{where}: {HERE}'), (HERE, where)]


def test_a_host_file_with_slots(dry, place):
    place.write('hosts', f'# both\n10.99.0.9 slots=2\n{HERE} slots=3 # here\n')
    plan = dry(['--cluster-hostfile=hosts'])
    assert place_of(plan) == [('2', 'hosts'), ('1', f'hosts:3: {HERE}'), ('10.99.0.9', 'hosts:2')]
    assert [(plan.value(name), plan.source(name)) for name in ('nproc_per_node', 'world_size')] == [
        ('3', 'hosts:3: slots'), ('5', 'nproc_per_node of every node')]
    assert [worker['rank'] for worker in plan.workers] == [2, 3, 4]
    plan = dry(['--cluster-hostfile=hosts', '--nproc_per_node=1'])
    assert (plan.value('nproc_per_node'), plan.source('nproc_per_node')) == ('1', '--nproc_per_node')


@pytest.mark.parametrize('host', [HERE, '127.0.0.1', '::1', 'localhost'])
def test_a_job_of_one_node_runs(launch, place, host):
    place.write('job.ini', f'[cluster]\nnodes = {host}\n')
    result = launch(['--config=job.ini', '--nproc_per_node=2', *native('dump')], {'OMP_NUM_THREADS': '1'})
    assert (result.rc, result.err) == (0, '')
    assert {dump['env']['WORLD_SIZE'] for dump in place.dumps().values()} == {'2'}


@pytest.mark.parametrize('text, words', [
    ('nodes = 10.99.0.8, 10.99.0.9', ['job.ini:2: this host is not one of the nodes 10.99.0.8, 10.99.0.9',
                                      f'"{HERE}"', '--node_rank']),
    ('nodes = n0, n1, n0', ['job.ini:2: nodes: n0 is listed twice']),
    pytest.param(f'nodes = {HERE}, {HERE}.example', [f'job.ini:2: {HERE}.example and {HERE}', 'are both this host'],
                 marks=pytest.mark.skipif('.' in HERE, reason='the host name has a domain')),
    ('nodes =', ['job.ini:2: nodes is empty', 'as in n0,gpu[01-16]']),
    ('nodes = n0\nhostfile = hosts', ['job.ini:2: nodes and job.ini:3: hostfile both list the nodes']),
    ('node = n0', ['"node" is not a setting of [cluster], did you mean nodes?']),
])
def test_what_is_refused(refused, place, text, words):
    place.write('job.ini', f'[cluster]\n{text}\n')
    refused(['--config=job.ini', *native('dump')], *words)


def test_a_name_that_is_looked_up(dry, place):
    """The list has it by a name that only the resolver knows: loopback is everyone's own."""
    place.write('job.ini', '[cluster]\nnodes = ip6-localhost\n')
    try:
        socket.getaddrinfo('ip6-localhost', None)
    except OSError:
        pytest.skip('/etc/hosts has no ip6-localhost here')
    assert place_of(dry(['--config=job.ini']))[:2] == [('1', 'job.ini:2'), ('0', 'job.ini:2: ip6-localhost')]


def test_standalone_sets_it_aside_and_says_so(launch):
    result = launch(['--standalone', '--cluster-nodes=n0,n1', *native('dump')], {'OMP_NUM_THREADS': '1'})
    assert (result.rc, result.err) == (0, 'launchd: warning: --cluster-nodes is overridden by --standalone\n')
