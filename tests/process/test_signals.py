"""Signals: who gets them, and what becomes of the job. Workers and their relatives tell each that
they get (tests/workers/family.c). Terminals: test_terminal.py."""
import os
import signal
import time

import pytest

from family import LONG, Family, best_of_three, calm, is_stopped, pending
from harness import LIMIT, let_pass, status_of, stop, supervisor_of, until

ENDING = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]
# not taken: they say that the process itself has gone wrong, can't be caught, or are ours
LEFT_ALONE = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGSEGV, signal.SIGBUS,
              signal.SIGFPE, signal.SIGILL, signal.SIGPIPE, signal.SIGTTIN, signal.SIGTTOU}
ALL_OTHERS = sorted(signal.valid_signals() - LEFT_ALONE - set(ENDING) -
                    {signal.SIGTSTP, signal.SIGCONT})
STAY = 'worker child session orphan daemon bare'


def name_of(number):
    return signal.Signals(number).name if number < signal.SIGRTMIN else str(number)


@pytest.fixture
def family(start, place):
    return lambda *args, **how: Family(start, place, *args, **how)


def end_at_once(f, expected, *numbers):
    """By signals that come one after the other: equal ones that wait together would be one."""
    for number in numbers or (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        f.job.signal(number)
        calm(f.job.pid)
    assert f.job.end().rc == expected
    f.all_gone()


# who gets it


@pytest.mark.parametrize('number', ENDING, ids=name_of)
def test_one_that_ends_the_job_goes_as_itself_to_the_workers_own_processes(family, number):
    """Not to data loaders, whose death would end a checkpoint in the making."""
    f = family([LONG], kin='child session', stay=STAY, count=2)
    f.job.signal(number)
    f.told(number, (0, 'worker'), (1, 'worker'))
    f.forward(signal.SIGUSR1)
    f.fence(*f.of('child', 'session'))
    end_at_once(f, 128 + number, number, number)


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGUSR1, signal.SIGWINCH], ids=name_of)
@pytest.mark.parametrize('scope, whom, spared', [
    ('worker', ['worker'], ['child', 'session']),
    ('group', ['worker', 'child'], ['session']),
    ('tree', ['worker', 'child', 'session'], []),
])
def test_the_signal_scope(family, number, scope, whom, spared):
    f = family([LONG, f'--signal-scope={scope}'], kin='child session', stay=STAY, count=2)
    f.job.signal(number)
    f.told(number, *f.of(*whom))
    f.forward(signal.SIGUSR2, *f.of(*whom))
    f.fence(*f.of(*spared))
    rest = [signal.SIGINT, signal.SIGQUIT]  # a fourth would come to a launcher that reports
    end_at_once(f, 143, *([] if number == signal.SIGTERM else [signal.SIGTERM]), *rest)


def test_the_tree_of_a_worker_is_not_its_neighbours(family):
    """A daemon has left its worker's tree; when it is asked is leftovers' matter."""
    f = family([LONG, '--signal-scope=tree'], kin='orphan daemon', stay=STAY)
    f.forward(signal.SIGUSR1)
    f.fence((0, 'orphan'), (0, 'daemon'))
    end_at_once(f, 143)


def test_all_others_are_forwarded_and_the_job_lives(family):
    f = family([LONG], kin='child', count=2)
    for number in ALL_OTHERS:
        f.forward(number)
    assert len(ALL_OTHERS) > 40  # with the real-time signals
    f.fence((0, 'child'), (1, 'child'))
    f.job.signal(signal.SIGTERM)
    f.told(signal.SIGTERM, *f.workers())
    assert f.job.end().rc == 143


def test_each_is_forwarded_while_the_job_ends(family):
    """A worker that writes a checkpoint in its grace may still be talked to."""
    f = family([LONG], stay='worker')
    f.job.signal(signal.SIGTERM)
    f.told(signal.SIGTERM, (0, 'worker'))
    f.forward(signal.SIGUSR1)
    f.forward(signal.SIGRTMIN + 3)
    end_at_once(f, 143, signal.SIGINT, signal.SIGQUIT)


# graces


@pytest.mark.parametrize('cause, code', [('failure', 4), ('signal', 143), ('runtime', 124)])
def test_one_grace_for_all(family, place, cause, code):
    """Workers that stay, whatever ends the job; at its end all are gone, and what they have started
    with them. A grace each would take twice as long."""
    grace, runtime = 2.2, 2 if cause == 'runtime' else 0  # before which all are ready

    def measure():
        go = place.fifo(f'go{len(place.fifos)}')
        options = [f'--shutdown-timeout={grace}', '--leftover-grace=600']
        f = family(options + [f'--max-runtime={runtime}'] * (runtime > 0), 'child session', STAY,
                   env={'GO_3': go.path, 'CODE': '4', 'KIN_3': ' '}, count=4)
        begin = f.began if runtime else time.monotonic()
        if cause == 'failure':
            go.go()
        elif cause == 'signal':
            f.job.signal(signal.SIGTERM)
        assert f.job.end().rc == code
        took = time.monotonic() - begin
        f.all_gone()
        return took

    best_of_three(measure, least=grace + runtime, most=2 * grace + runtime)


def test_a_grace_of_nothing(family):
    f = family(['--shutdown-timeout=0'], 'child session', STAY)
    f.job.signal(signal.SIGTERM)
    assert f.job.end().rc == 143
    f.all_gone()


@pytest.mark.parametrize('grace, rest', [(8, 2), (600, 5)])
def test_a_second_signal_leaves_a_quarter_and_five_seconds_at_most(family, grace, rest):
    f = family([f'--shutdown-timeout={grace}'], 'session', STAY)
    f.job.signal(signal.SIGTERM)
    f.told(signal.SIGTERM, (0, 'worker'))
    begin = time.monotonic()
    f.job.signal(signal.SIGINT)
    f.told(signal.SIGINT, (0, 'worker'))
    assert f.job.end().rc == 143  # the first
    assert rest <= time.monotonic() - begin < rest + LIMIT / 2
    f.all_gone()


def test_a_second_signal_never_lengthens_the_grace(family):
    """A quarter of its own grace would be 5 s."""

    def measure():
        f = family(['--on-signal=TERM=forward:0.5,INT=forward:600'], stay=STAY)
        begin = time.monotonic()
        f.job.signal(signal.SIGTERM)
        f.told(signal.SIGTERM, (0, 'worker'))
        f.job.signal(signal.SIGINT)
        assert f.job.end().rc == 143
        return time.monotonic() - begin

    best_of_three(measure, least=0.5, most=4.5)


def test_a_third_signal_ends_the_grace(family):
    """Everyone's: also of those that have left the worker's group, session and environment."""
    f = family([LONG, '--leftover-grace=600'], 'child session orphan daemon bare', STAY, count=2)
    for number in (signal.SIGTERM, signal.SIGTERM):
        f.job.signal(number)
        f.told(number, *f.workers())
    f.job.signal(signal.SIGTERM)
    assert f.job.end().rc == 143
    f.all_gone()


def test_a_failure_is_not_a_signal(family, place):
    """The first signal after it is the first, and the cause stays."""
    go = place.fifo('go')
    f = family([LONG], stay=STAY, count=2, env={'GO_1': go.path, 'CODE_1': '6'})
    go.go()
    f.told(signal.SIGTERM, (0, 'worker'))
    f.job.signal(signal.SIGINT)
    f.told(signal.SIGINT, (0, 'worker'))
    f.forward(signal.SIGUSR1, (0, 'worker'))
    f.job.signal(signal.SIGINT)
    f.told(signal.SIGINT, (0, 'worker'))
    f.forward(signal.SIGUSR1, (0, 'worker'))
    end_at_once(f, 6, signal.SIGINT)


# two ways


@pytest.mark.parametrize('guard_first', [True, False])
def test_one_that_comes_to_both_of_our_processes_counts_once(family, guard_first):
    """As from a batch system or systemd, which signal every process of a job."""
    f = family([LONG], stay='worker', count=2)
    both = [f.job.pid, supervisor_of(f.job.pid)]
    for _ in range(2):
        for pid in both if guard_first else reversed(both):
            os.kill(pid, signal.SIGTERM)
        f.told(signal.SIGTERM, *f.workers())
        calm(f.job.pid)
        f.forward(signal.SIGUSR1)  # before it comes no second TERM
    f.job.signal(signal.SIGTERM)  # the third
    assert f.job.end().rc == 143


def test_one_that_comes_to_the_supervisor_alone_ends_the_job(family):
    f = family([LONG])
    os.kill(supervisor_of(f.job.pid), signal.SIGTERM)
    f.told(signal.SIGTERM, (0, 'worker'))
    assert f.job.end().rc == 143


def test_one_that_does_not_end_the_job_is_the_guards_to_forward(family):
    f = family([LONG])
    os.kill(supervisor_of(f.job.pid), signal.SIGUSR1)
    f.forward(signal.SIGUSR2)  # no USR1 before it
    f.job.signal(signal.SIGTERM)
    assert f.job.end().rc == 143


def test_a_stopped_supervisor_wakes_to_end_the_job(family):
    f = family([LONG])
    supervisor = supervisor_of(f.job.pid)
    stop(supervisor)
    f.job.signal(signal.SIGTERM)
    f.told(signal.SIGTERM, (0, 'worker'))
    assert f.job.end().rc == 143


def test_a_flood_before_it_does_not_lose_the_one_that_ends_the_job(family):
    """The pipe to a stopped supervisor is full."""
    f = family([LONG, '--on-signal=WINCH=ignore'])
    supervisor = supervisor_of(f.job.pid)
    stop(supervisor)
    for _ in range(6000):  # 4096 are enough
        f.job.signal(signal.SIGWINCH)
        while pending(f.job.pid):
            pass
    f.job.signal(signal.SIGTERM)
    f.told(signal.SIGTERM, (0, 'worker'))
    assert f.job.end().rc == 143


# our own processes, stopped by a worker

STOPS = '''#!/bin/sh
guard=$(sed -n "s/^PPid:.//p" /proc/$PPID/status)
supervisor=$PPID
[ "$RANK" = 0 ] || exec sleep 1000
{}
'''


@pytest.mark.long
def test_a_supervisor_that_a_worker_stops_goes_on(launch, place):
    """After ten seconds, as nobody else does that: a terminal or a batch system stops the guard."""
    script = place.write('job.sh', STOPS.format('kill -STOP $supervisor; exit 3'), 0o755)
    result = launch(['--no_python', '--use_env', '--nproc_per_node=2', script])
    assert result.rc == 3 and 'root cause: rank 0 ' in result.err
    [warning] = [line for line in result.err.splitlines() if 'warning' in line]
    assert 'SIGSTOP stopped launchd' in warning and f'pid {result.pid}' in warning


@pytest.mark.parametrize('code', [0, 3])
def test_a_guard_that_a_worker_stops_ends_after_the_report(launch, place, code):
    then = f'[ {code} = 0 ] || sleep 0.2\nkill -STOP $guard; exit {code}'
    script = place.write('job.sh', STOPS.format(then), 0o755)
    result = launch(['--no_python', '--use_env', f'--nproc_per_node={1 + (code > 0)}', script])
    assert result.rc == code and ('root cause: rank 0 ' in result.err) == (code > 0)


def test_a_supervisor_that_is_stopped_without_end_is_ended(start, place):
    """It can't work, and neither can the job."""
    ready = place.fifo('ready')
    script = place.write('job.sh', STOPS.format(
        f'echo "0 $$ ready" >{ready.path}; while kill -STOP $supervisor; do :; done'), 0o755)
    job = start(['--no_python', '--use_env', '--nproc_per_node=2', LONG, script])
    ready.expect('ready', 1)
    supervisor = supervisor_of(job.pid)
    until(lambda: is_stopped(supervisor), 'the supervisor to stop')
    place.orphans_expected = True
    job.signal(signal.SIGTERM)
    result = job.end()
    assert result.rc in (137, 143), result
    assert result.rc == 143 or 'was killed because it was stopped again and again' in result.err


# CONT


def test_cont_wakes_and_never_ends_anything(family):
    f = family([LONG], 'child', count=2, env={'MUTE': ''})
    for pid in f.pids.values():
        stop(pid)
    for _ in range(4):
        f.job.signal(signal.SIGCONT)
        f.told(signal.SIGCONT, *f.pids)
    f.forward(signal.SIGUSR1)
    f.job.signal(signal.SIGTERM)
    f.told(signal.SIGTERM, *f.workers())
    assert f.job.end().rc == 143


def test_cont_wakes_the_launcher_itself(family):
    f = family([LONG])
    ours = f.job.pid, supervisor_of(f.job.pid)
    for pid in ours:
        stop(pid)
    f.job.signal(signal.SIGCONT)
    until(lambda: not any(map(is_stopped, ours)), 'launchd to wake')
    f.forward(signal.SIGUSR1)
    f.job.signal(signal.SIGTERM)
    assert f.job.end().rc == 143


# ignored on entry


@pytest.mark.parametrize('name', ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGPIPE'])
def test_what_was_ignored_on_entry_stays_ignored(family, name):
    """In both of our processes and in the workers; it is neither forwarded nor does it end us."""
    number = getattr(signal, name)
    f = family([LONG], 'bare', before=lambda: signal.signal(number, signal.SIG_IGN))
    processes = [f.job.pid, supervisor_of(f.job.pid), *f.pids.values()]
    for pid in processes:
        assert int(status_of(pid)['SigIgn'], 16) >> (number - 1) & 1
    for _ in range(3):
        f.job.signal(number)
    f.forward(signal.SIGWINCH)
    f.fence(*f.pids)
    f.job.signal(signal.SIGTERM)
    f.told(signal.SIGTERM, (0, 'worker'))
    f.told(signal.SIGTERM, (0, 'bare'))
    assert f.job.end().rc == 143


def test_nohup(family):
    f = family([LONG], wrap=['nohup'])
    f.job.signal(signal.SIGHUP)
    f.forward(signal.SIGUSR1)
    f.job.signal(signal.SIGINT)
    f.told(signal.SIGINT, (0, 'worker'))
    assert f.job.end().rc == 130


def test_what_on_signal_names_is_taken_though_it_was_ignored_on_entry(family):
    f = family([LONG, '--on-signal=HUP=forward:600'],
               before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    f.job.signal(signal.SIGHUP)
    f.told(signal.SIGHUP, (0, 'worker'))
    assert f.job.end().rc == 129


# --on-signal, --signals-to-handle

ACTIONS = '--on-signal=USR1=forward,HUP=ignore,TERM=forward:2,INT=stop,USR2=stop:1'


def test_actions_by_which_the_job_lives(family):
    f = family([LONG, ACTIONS], stay='worker', count=2)
    for _ in range(3):
        f.job.signal(signal.SIGHUP)
        f.forward(signal.SIGUSR1)
    f.forward(signal.SIGWINCH)
    end_at_once(f, 143)


@pytest.mark.parametrize('number, as_what, least, most', [
    (signal.SIGTERM, signal.SIGTERM, 2, LIMIT / 2),
    (signal.SIGINT, signal.SIGTERM, 4, LIMIT / 2),  # --shutdown-timeout
    (signal.SIGUSR2, signal.SIGTERM, 1, LIMIT / 2),
    (signal.SIGQUIT, signal.SIGQUIT, 4, LIMIT / 2),  # not named: as ever
], ids=['forward:2', 'stop', 'stop:1', 'default'])
def test_actions_that_end_the_job(family, number, as_what, least, most):
    f = family(['--shutdown-timeout=4', ACTIONS], stay='worker', count=2)
    begin = time.monotonic()
    f.job.signal(number)
    f.told(as_what, *f.workers())
    assert f.job.end().rc == 128 + number
    assert least <= time.monotonic() - begin < most


def test_the_shortest_grace_counts(family):
    """TERM's ten minutes, then a signal that has a second."""
    f = family(['--on-signal=TERM=forward:600,USR1=stop:4'], stay='worker')
    f.job.signal(signal.SIGTERM)
    f.told(signal.SIGTERM, (0, 'worker'))
    begin = time.monotonic()
    f.job.signal(signal.SIGUSR1)  # the second: a quarter
    f.told(signal.SIGTERM, (0, 'worker'))
    assert f.job.end().rc == 143
    assert 1 <= time.monotonic() - begin < LIMIT / 2


def test_a_job_that_term_does_not_end(family):
    f = family([LONG, '--on-signal=TERM=ignore'])
    for _ in range(3):
        f.job.signal(signal.SIGTERM)
        f.forward(signal.SIGUSR1)
    f.job.signal(signal.SIGINT)
    f.told(signal.SIGINT, (0, 'worker'))
    assert f.job.end().rc == 130


def test_signals_to_handle_end_the_job(family):
    """As torchrun's: the four do so in any case."""
    f = family([LONG, '--signals-to-handle=SIGUSR1'], stay='worker', count=2)
    f.job.signal(signal.SIGUSR1)
    f.told(signal.SIGUSR1, *f.workers())
    f.forward(signal.SIGUSR2)
    end_at_once(f, 128 + signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)


# --max-runtime


def test_max_runtime(family):
    """SIGTERM, and 124 whatever the workers make of it."""
    f = family([LONG, '--max-runtime=1.5'], count=2)
    f.told(signal.SIGTERM, *f.workers())
    assert f.job.end().rc == 124
    assert 1.5 <= time.monotonic() - f.began < LIMIT


def test_a_job_that_ends_before_max_runtime(family, place):
    go = place.fifo('go')
    f = family(['--max-runtime=600'], env={'GO': go.path})
    go.go()
    assert f.job.end().rc == 0


def test_max_runtime_says_nothing_to_workers_that_were_asked_before(family):
    """A second SIGTERM makes many a program give its checkpoint up."""
    f = family([LONG, '--max-runtime=2'], stay='worker')
    f.job.signal(signal.SIGINT)
    f.told(signal.SIGINT, (0, 'worker'))
    let_pass(f.began + 2.5 - time.monotonic(), '--max-runtime is over')
    f.fence((0, 'worker'))
    end_at_once(f, 130, signal.SIGINT, signal.SIGINT)
