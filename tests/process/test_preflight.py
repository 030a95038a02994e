"""--preflight: all nodes are checked at once before the workers start, with one verdict."""
import json
import os
import pathlib
import signal
import socket

import pytest

from control import Control, socket_of
from harness import (BUILD, LIMIT, children_of, is_running, native, signal_if_there, status_of, stop,
                     supervisor_of, until)
from needs import needs_shm
from test_events import kinds, of, only, read
from together import Cluster, errors, warnings

pytestmark = needs_shm
HOST = socket.gethostname()
NVML = str(BUILD / 'tests' / 'workers')
GOOD = {'LD_LIBRARY_PATH': NVML, 'FAKE_GPUS': '8'}
BAD = 'GPU 2: 4 uncorrectable'
CHECKED = 'launchd: note: checked '


def gpus(said):
    return {**GOOD, 'FAKE_NVML': said}


def job(start, nodes, *options, faults=None, worker='ending', env=None, each=None):
    """A job whose nodes have GPUs; faults: what their NVML says, by node."""
    faults = faults or {}
    return Cluster(
        start, nodes, ['--preflight=quick', *options, *native(worker, '--nproc_per_node=2')],
        {'END': 'exit:0', **GOOD, **(env or {})},
        each or (lambda node: ([], gpus(faults[node]) if node in faults else {})))


def checked(result):
    """What it says of the check in its one line."""
    lines = [line for line in result.err.splitlines() if ': checked ' in line]
    assert len(lines) <= 1
    return lines[0] if lines else ''


def rcs(results):
    return [result.rc for result in results]


def below(pid):
    """A process and all below it; those that end meanwhile may be missing."""
    try:
        children = children_of(pid)
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [pid, *(further for child in children for further in below(child))]


def checkers_of(supervisor):
    """The process of a launcher that checks its node, and those below it."""
    found = [pid for pid in children_of(supervisor) if status_of(pid).get('Name') == 'node-check']
    return [further for pid in found for further in below(pid)]


def script(place, name, text):
    return place.write(name, f'#!/bin/sh\n{text}\n', 0o755)


@pytest.mark.quick
def test_good_nodes(start, place):
    results = job(start, 3, f'--events={place.path}/events.%n', worker='dump').end()
    assert rcs(results) == [0, 0, 0]
    assert checked(results[0]).startswith(CHECKED + '3 nodes (quick) in ')
    assert not any(map(checked, results[1:])) and not any(map(warnings, results))
    assert sorted(place.dumps()) == list(range(6))
    for node in range(3):
        events = read(place.path / f'events.{node}')
        assert only(events, 'check_started')['phases'] == 'quick'
        names = kinds(events)
        assert names.index('attempt_started') < names.index('check_started') < \
            names.index('worker_started')
        assert only(events, 'verdict')['cause'] == 'none'
        assert len(of(events, 'check_ended')) == (node == 0)
    ended = only(read(place.path / 'events.0'), 'check_ended')
    assert (ended['nodes'], ended['bad'], ended['exclude']) == (3, 0, None)


@pytest.mark.quick
def test_a_bad_node_is_named_everywhere_and_no_worker_starts(start, place):
    results = job(start, 3, f'--report={place.path}/report', f'--events={place.path}/events.%n',
                  '--max-restarts=2', faults={1: 'ecc@2=4'}, worker='dump').end()
    assert rcs(results) == [122, 122, 122]
    for result in results:
        [line, *_] = errors(result)
        assert f'root cause: node 1 ({HOST}) is bad: {BAD}' in line
        assert line.endswith(f'; exclude: {HOST}')
    assert [f'node 1 ({HOST}) is bad: {BAD}' in line for line in warnings(results[0])] == [True]
    assert not warnings(results[1]) and not warnings(results[2])
    assert not place.dumps()
    report = json.loads((place.path / 'report').read_text())
    assert (report['cause']['kind'], report['cause']['node'], report['cause']['exclude']) == \
        ('bad_node', 1, [HOST])
    assert report['cause']['detail'].startswith(BAD)
    assert (report['job']['exit_code'], report['job']['attempt']) == (122, 0)
    assert {worker['how'] for worker in report['workers']} == {'not_started'}
    for node in range(3):
        events = read(place.path / f'events.{node}')
        verdict = only(events, 'verdict')
        assert (verdict['exit_code'], verdict['cause'], verdict['exclude']) == \
            (122, 'bad_node', [HOST])
        assert not of(events, 'worker_started') and not of(events, 'restart')


def test_two_bad_nodes_are_both_named(start):
    results = job(start, 4, faults={1: 'ecc@2=4', 3: 'failed@5=1'}).end()
    assert rcs(results) == [122] * 4
    named = [line for line in warnings(results[0]) if ' is bad: ' in line]
    assert [f'node {node} (' in line for node, line in zip((1, 3), named)] == [True, True]
    assert len(named) == 2 and 'GPU 5: ' in named[1]
    assert ': 2 bad' in checked(results[0])
    assert 'root cause: node 1 (' in errors(results[2])[0]


def test_node_rank_0_itself_is_bad(start):
    results = job(start, 2, faults={0: 'ecc@2=4'}).end()
    assert rcs(results) == [122, 122]
    assert all(f'root cause: node 0 ({HOST}) is bad: ' in errors(result)[0] for result in results)


def test_report_goes_on(start, place):
    results = job(start, 3, '--on-bad-node=report', f'--events={place.path}/events.%n',
                  faults={1: 'ecc@2=4'}, worker='dump').end()
    assert rcs(results) == [0, 0, 0]
    assert [BAD in line for line in warnings(results[0])] == [True]
    assert sorted(place.dumps()) == list(range(6))
    ended = only(read(place.path / 'events.0'), 'check_ended')
    assert (ended['bad'], ended['exclude']) == (1, [HOST])


def test_the_odd_one_of_three_is_bad(start):
    results = job(start, 3, faults={2: 'version=550.90.07'}).end()
    assert rcs(results) == [122] * 3
    assert 'driver_version: 550.90.07, but 2 of 3 nodes have 580.65.06' in errors(results[0])[0]


def test_of_two_that_differ_nobody_knows_who_is_right(start):
    results = job(start, 2, faults={1: 'version=550.90.07'}).end()
    assert rcs(results) == [0, 0]
    assert '2 nodes: driver_version: the nodes differ' in checked(results[0])


def test_one_node(launch, place):
    argv = ['--preflight=quick', *native('dump')]
    good = launch(argv, GOOD)
    assert good.rc == 0 and CHECKED + '1 node (quick) in ' in good.err
    assert sorted(place.dumps()) == [0]
    bad = launch(argv, gpus('ecc@2=4'))
    assert bad.rc == 122 and not place.dumps()
    assert f'root cause: node 0 ({HOST}) is bad: {BAD}' in errors(bad)[0]


def test_without_a_channel_each_node_is_checked_alone(start):
    cluster = job(start, 2, '--control=off', faults={1: 'ecc@2=4'})
    good, bad = cluster.end()
    assert (good.rc, bad.rc) == (0, 122)
    assert 'each node is checked alone' in checked(good)
    assert f'root cause: node 1 ({HOST}) is bad: ' in errors(bad)[0]


def test_before_a_restart_too(start, place):
    """A node that has become bad ends the job, and no restart follows that."""
    count = script(place, 'count', 'echo x >> "$HOME/checked.$NODE"; test ! -e "$HOME/broken.$NODE"')
    place.write('broken.1', '')
    results = job(
        start, 2, '--max-restarts=3', f'--check-command={count}', '--check-when=restart',
        f'--events={place.path}/events.%n', env={'END_3': 'exit:7'},
        each=lambda node: ([], {'NODE': str(node)})).end()
    assert rcs(results) == [122, 122]
    assert f'node 1 ({HOST}) is bad: ' in errors(results[0])[0]
    for node in range(2):
        assert (place.path / f'checked.{node}').read_text() == 'x\n'
        events = read(place.path / f'events.{node}')
        assert [event['attempt'] for event in of(events, 'check_started')] == [0, 1]
        assert {event['attempt'] for event in of(events, 'worker_started')} == {0}


@pytest.mark.parametrize('says, bad', [
    ('echo noise; echo \'{"overall_severity": "CRITICAL"}\'; exit 0', 'its verdict is CRITICAL'),
    ('echo "nhc: Health check failed: no /scratch"; exit 1', 'exit code 1: no /scratch'),
    ('yes | head -c 3000000; echo no >&2; exit 4', 'exit code 4: no')])
def test_what_a_command_says(start, place, says, bad):
    """On both of its streams, in a job too, whose libraries have a say in each fork."""
    results = job(start, 2, f'--check-command={script(place, "own", says)}').end()
    assert rcs(results) == [122, 122]
    assert f'is bad: own: {bad}' in errors(results[1])[0]


@pytest.mark.long
def test_a_slow_driver_and_then_a_gpu_that_hangs(start):
    """Each has its own time, and what hangs is unknown, not late. What nobody could ask is told once."""
    slow = ' '.join(f'slow={name}' for name in (
        'nvmlInit', 'nvmlDeviceGetCount', 'nvmlSystemGetDriverVersion', 'nvmlDeviceGetName'))
    results = job(start, 2, faults={1: f'{slow} hang@2=nvmlDeviceGetRemappedRows'}).end()
    assert rcs(results) == [0, 0]
    assert 'none is bad; unknown: ' in checked(results[0])
    assert 'GPU 2: no answer within 5 s (nvmlDeviceGetRemappedRows)' in checked(results[0])
    assert checked(results[0]).count('it was not asked') == 1


def test_good_before_a_restart_too(start, place):
    results = job(start, 2, '--max-restarts=1', f'--events={place.path}/events.%n',
                  env={'END_3': 'exit:7'}).end()
    assert rcs(results) == [7, 7]
    events = read(place.path / 'events.0')
    assert [event['attempt'] for event in of(events, 'check_ended')] == [0, 1]
    assert {event['attempt'] for event in of(events, 'worker_started')} == {0, 1}


@pytest.fixture
def holding(start, place):
    """holding(node) -> Cluster whose node of that number is being checked; the others wait."""
    begun = place.fifo('begun')
    hold = script(place, 'hold', f'test "$NODE" = "$HELD" || exit 0\n'
                  f'echo "$NODE $$ begun" > {begun.path}\nexec sleep 1000')

    def begin(node, *options):
        cluster = job(start, 3, f'--check-command={hold}', '--check-timeout=1000', *options,
                      worker='dump', each=lambda each: ([], {'NODE': str(each), 'HELD': str(node)}))
        begun.expect('begun', 1)
        return cluster

    return begin


@pytest.mark.parametrize('held, asked', [(1, 1), (1, 0), (0, 2)])
def test_sigterm_ends_the_check_at_once(holding, place, held, asked):
    cluster = holding(held)
    cluster.jobs[asked].signal(signal.SIGTERM)
    assert rcs(cluster.end()) == [143] * 3
    assert not place.dumps()


@pytest.mark.parametrize('killed', [0, 2])
def test_a_node_that_dies_during_the_check_is_lost(holding, place, killed):
    cluster = holding(1)
    supervisor = supervisor_of(cluster.jobs[killed].pid)
    stop(cluster.jobs[killed].pid)
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not is_running(supervisor), 'the supervisor to end')
    cluster.jobs.pop(killed).kill()
    results = cluster.end()
    assert set(rcs(results)) == {125}
    assert not place.dumps()


def test_status_says_checking(holding):
    cluster = holding(1)
    with Control(socket_of(cluster.jobs[1])) as control:
        status = control.ask('status')
        assert status['state'] == 'checking'
        assert {worker['state'] for worker in status['workers']} == {'planned'}
    cluster.jobs[0].signal(signal.SIGTERM)
    assert rcs(cluster.end()) == [143] * 3


def test_a_restart_that_is_asked_for_ends_the_check(holding, place):
    """All begin again, and are checked again."""
    cluster = holding(1, '--check-when=start,restart')
    with Control(socket_of(cluster.jobs[0])) as control:
        control.ask('restart')
    place.fifos[0].expect('begun', 1)
    cluster.jobs[0].signal(signal.SIGTERM)
    assert rcs(cluster.end()) == [143] * 3
    assert not place.dumps()


@pytest.mark.parametrize('node', [0, 2])
def test_a_child_that_dies_is_unknown(holding, place, node):
    """Its launcher knows at once, and so does the job: nobody waits the 1,000 s. Those below it end with it."""
    cluster = holding(node)
    checkers = checkers_of(supervisor_of(cluster.jobs[node].pid))
    os.kill(checkers[0], signal.SIGKILL)
    results = cluster.end()
    assert rcs(results) == [0, 0, 0]
    assert 'this node could not be checked: its process was killed by SIGKILL' in results[node].err
    assert f'node {node} ({HOST}): quick: its process was killed by SIGKILL' in checked(results[0])
    assert sorted(place.dumps()) == list(range(6))
    until(lambda: not any(map(is_running, checkers)), 'what was checking to end')


@pytest.mark.long
def test_a_child_that_hangs_is_unknown_and_holds_nobody(start, place):
    """Stopped as a driver would stop it; its node's workers start when node rank 0 says so."""
    begun = place.fifo('begun')
    hold = script(place, 'hold', f'test "$NODE" = 1 || exit 0\n'
                  f'echo "$NODE $$ begun" > {begun.path}\nexec sleep 1000')
    cluster = job(start, 3, f'--check-command={hold}', '--check-timeout=1', worker='dump',
                  each=lambda node: ([], {'NODE': str(node)}))
    begun.expect('begun', 1)
    checkers = checkers_of(supervisor_of(cluster.jobs[1].pid))
    for pid in checkers:
        signal_if_there(pid, signal.SIGSTOP)
    results = cluster.end()
    assert rcs(results) == [0, 0, 0]
    assert f'node 1 ({HOST}): quick: the check did not finish within 39 s' in checked(results[0])
    assert checked(results[0]) in warnings(results[0])
    assert sorted(place.dumps()) == list(range(6))
    assert not any(map(is_running, checkers))


def test_the_check_opens_no_port(holding):
    """What the nodes tell each other goes over their launchers' connections."""
    def listening(pid):
        fds = pathlib.Path(f'/proc/{pid}/fd').iterdir()
        inodes = {os.readlink(fd)[8:-1] for fd in fds if os.readlink(fd).startswith('socket:[')}
        rows = [row.split() for name in ('tcp', 'tcp6')
                for row in pathlib.Path(f'/proc/{pid}/net/{name}').read_text().splitlines()[1:]]
        return {row[1].split(':')[1] for row in rows if row[3] == '0A' and row[9] in inodes}

    cluster = holding(1)
    supervisors = [supervisor_of(cluster.jobs[node].pid) for node in range(3)]
    # of node rank 0 the launchers' and the master port
    assert [len(listening(pid)) <= 2 * (node == 0) for node, pid in enumerate(supervisors)] == [True] * 3
    assert not any(listening(pid) for pid in checkers_of(supervisors[1]))
    cluster.jobs[0].signal(signal.SIGTERM)
    assert rcs(cluster.end()) == [143] * 3


def test_without_preflight_nothing_is_forked_and_no_port_opened(start, place):
    def inodes(pid):
        links = (os.readlink(path) for path in pathlib.Path(f'/proc/{pid}/fd').iterdir())
        return {link[8:-1] for link in links if link.startswith('socket:[')}

    def listening(pid):
        rows = [row.split() for name in ('tcp', 'tcp6')
                for row in pathlib.Path(f'/proc/{pid}/net/{name}').read_text().splitlines()[1:]]
        return len({row[9] for row in rows if row[3] == '0A'} & inodes(pid))

    ready, go = place.fifo('ready'), place.fifo('go')
    open_ports = {}
    for option in '--preflight=none', '--preflight=quick':
        cluster = Cluster(start, 2, [option, *native('ending')],
                          {'TELL': ready.path, 'GO': go.path, 'END': 'exit:0', **GOOD})
        workers = ready.expect('ready', 2)
        supervisor = supervisor_of(cluster.jobs[0].pid)
        assert children_of(supervisor) == {workers[0]}
        open_ports[option] = listening(supervisor)
        go.go(2)
        results = cluster.end()
        assert rcs(results) == [0, 0]
        assert bool(checked(results[0])) == (option != '--preflight=none')
    # the store of the check is closed by the time when workers run
    assert len(set(open_ports.values())) == 1


def test_dry_run_and_a_command_that_is_not_there(dry, refused):
    plan = dry(['--preflight=quick', '--max-restarts=1'])
    assert plan.value('node_check') == 'quick; before a restart: quick, gate; a bad node ends the job'
    assert plan.source('node_check') == '--preflight'
    plan = dry(['--preflight=quick', '--on-bad-node=report'])
    assert plan.value('node_check') == 'quick; a bad node is reported'
    assert 'node_check' not in dry([]).json['job']
    refused(['--preflight=quick', '--check-command=not-there-x', *native('dump')],
            '--check-command', 'not-there-x')
    refused(['--preflight=deep', *native('dump')], '--preflight', '"deep"', 'quick')


@pytest.mark.parametrize('other', ['--on-bad-node=report', '--preflight=none'])
def test_node_rank_0_decides(start, other):
    """As of restarts: its settings are the job's."""
    cluster = Cluster(start, 2, native('ending'), {'END': 'exit:0', **GOOD},
                      lambda node: (['--preflight=quick'], {}) if node == 0 else
                      ([other], gpus('ecc@2=4')))
    results = cluster.end(LIMIT)
    assert rcs(results) == [122, 122]
