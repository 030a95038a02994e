"""What other launchers do on one node, and launchd does not: each defect is shown with the launcher
that has it, where that is installed, and is gone here.

torchrun is that of LAUNCHD_TORCHRUN (python3 -m venv X; X/bin/pip install torch==2.15.0 numpy).
Debian's torch 1.13 can't stand in for it: under Python 3.11 its torchrun and its
torch.distributed.launch crash before they start a worker.
"""
import os
import re
import signal
import time

import pytest
from harness import worker
from launchers import MPIRUN, skip_if_absent

shown_by = pytest.mark.shown_by


def ages(seconds):
    return f'{seconds:.1f} s' if seconds >= 1 else f'{seconds * 1e3:.0f} ms'


def live_on(count, alive, gone='all are ended'):
    """What has become of the workers."""
    return f'{len(alive)} of {count} live on' if alive else gone


@shown_by('torchrun')
def test_start(peer, saw, place):
    ready = place.fifo('ready')
    job = peer.start(8, [worker('ending')], {'TELL': ready.path})
    pids = ready.expect('ready', 8)
    took, megabytes = time.monotonic() - job.began, job.memory_mb(pids.values())
    saw('8 workers are started: time, memory', f'{ages(took)}, {megabytes:.0f} MB', megabytes > 100)


@shown_by('torchrun', 'mpirun')
def test_children_of_a_failed_worker(peer, saw, place):
    """Data loaders, shells, loggers. One of them is in a session of its own."""
    ready, go = place.fifo('ready'), place.fifo('go')
    helper = worker('ignore_signals')
    script = place.write('job.sh', f'#!/bin/sh\nRANK=8 {helper} &\nRANK=9 setsid {helper} &\n'
                         f'exec {worker("ending")}\n', 0o755)
    job = peer.start(1, [script], {'TELL': ready.path, 'GO': go.path, 'END': 'exit:7'},
                     {'launchd': ['--leftover-grace=0.5', '--shutdown-timeout=0.5']})
    pids = ready.expect('ready', 3)
    go.go()
    job.end()
    alive = peer.survivors([pids[8], pids[9]])
    saw('a worker fails, its child and a `setsid` child ignore SIGTERM', live_on(2, alive), alive)


@shown_by('torchrun', 'mpirun')
def test_the_launcher_is_killed(peer, saw, place):
    ready = place.fifo('ready')
    helper = worker('ignore_signals')
    script = place.write('job.sh', f'#!/bin/sh\n[ $RANK = 1 ] && RANK=9 setsid {helper} &\n'
                         f'exec {helper}\n', 0o755)
    job = peer.start(2, [script], {'TELL': ready.path})
    pids = ready.expect('ready', 3)
    begin = time.monotonic()
    job.signal(signal.SIGKILL)
    job.end()
    alive = peer.survivors(pids.values())
    saw('the launcher is killed (SIGKILL, OOM): 2 workers and a `setsid` child',
        live_on(3, alive, f'all are dead after {ages(time.monotonic() - begin)}'), alive)


@shown_by('torchrun')
def test_mpirun_above_it_is_killed(peer, saw, place):
    if peer.name == 'mpirun':
        pytest.skip('mpirun itself is killed above')
    skip_if_absent('mpirun')
    ready = place.fifo('ready')
    job = peer.start(2, [worker('ignore_signals')], {'TELL': ready.path}, under=[*MPIRUN, '1'])
    pids = ready.expect('ready', 2)
    peer.settle()
    begin = time.monotonic()
    job.signal(signal.SIGKILL)
    job.end()
    alive = peer.survivors(pids.values())
    saw('it runs under mpirun, and mpirun is killed',
        live_on(2, alive, f'all are dead after {ages(time.monotonic() - begin)}'), alive)


@shown_by('torchrun')
def test_usr1(peer, saw, place):
    """Slurm's warning before the end, --signal=USR1."""
    ready = place.fifo('ready')
    job = peer.start(2, [worker('report_signals')], {'TELL': ready.path})
    pids = ready.expect('ready', 2)
    peer.settle()
    job.signal(signal.SIGUSR1)
    if job.wait(peer.patience) is None:
        ready.expect('SIGUSR1', 2)
        saw('it gets SIGUSR1 (a batch system\'s warning)', 'workers get it, the job lives', False)
        return
    alive = peer.survivors(pids.values())
    saw('it gets SIGUSR1 (a batch system\'s warning)',
        f'it dies with {job.end()}, {live_on(2, alive)}', True)


@shown_by('torchrun')
def test_usr1_for_the_workers(peer, saw, place):
    """torchrun passes a signal on if told so, but then the job ends."""
    ready = place.fifo('ready')
    job = peer.start(2, [worker('report_signals')], {'TELL': ready.path}, {
        'torchrun': ['--signals-to-handle=SIGTERM,SIGUSR1', '--shutdown-timeout=2'],
        'launchd': ['--on-signal=USR1=forward', '--shutdown-timeout=2']})
    ready.expect('ready', 2)
    peer.settle()
    begin = time.monotonic()
    job.signal(signal.SIGUSR1)
    ready.expect('SIGUSR1', 2)
    code = job.wait(peer.patience)
    text = 'the job lives' if code is None else \
        f'killed after {ages(time.monotonic() - begin)}, exit code {code}'
    saw('SIGUSR1 is to reach the workers, by an option where it needs one', text, code is not None)


@shown_by('torchrun', 'mpirun')
def test_three_times_ctrl_c(peer, saw, place):
    ready = place.fifo('ready')
    job = peer.start(2, [worker('ignore_signals')], {'TELL': ready.path})
    pids = ready.expect('ready', 2)
    peer.settle()
    for _ in range(3):
        if job.wait(0) is None:
            job.signal(signal.SIGINT)
            job.wait(0.7)
    job.end()
    alive = peer.survivors(pids.values())
    saw('Ctrl-C three times, workers ignore it', live_on(2, alive), alive)


@shown_by('torchrun', 'mpirun')
def test_nohup(peer, saw, place):
    ready = place.fifo('ready')
    job = peer.start(2, [worker('ending')], {'TELL': ready.path},
                     before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    ready.expect('ready', 2)
    peer.settle()
    job.signal(signal.SIGHUP)
    code = job.wait(peer.patience)
    saw('`nohup`, and the terminal hangs up (SIGHUP)',
        'the job lives' if code is None else f'the job dies, exit code {code}', code is not None)


@shown_by('torchrun', 'mpirun')
def test_how_long_an_end_takes(peer, saw, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    job = peer.start(2, [worker('ending')], {'TELL': ready.path, 'GO_1': go.path, 'END_1': 'exit:4'})
    ready.expect('ready', 2)
    peer.settle()
    begin = time.monotonic()
    go.go()
    job.end()
    took = time.monotonic() - begin
    saw('a worker fails, the other obeys SIGTERM', f'ends after {ages(took)}', took > 0.5)


@shown_by('torchrun')
def test_shutdown_timeout(peer, saw, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    script = place.write('job.sh', f'#!/bin/sh\n[ $RANK = 1 ] && exec {worker("ending")}\n'
                         f'exec {worker("ignore_signals")}\n', 0o755)
    job = peer.start(2, [script], {'TELL': ready.path, 'GO': go.path, 'END_1': 'exit:4'}, {
        'torchrun': ['--shutdown-timeout=2'], 'launchd': ['--shutdown-timeout=2'],
        'mpirun': ['--mca', 'odls_base_sigkill_timeout', '2']})
    ready.expect('ready', 2)
    begin = time.monotonic()
    go.go()
    job.end()
    took = time.monotonic() - begin
    saw('a worker fails, another ignores SIGTERM, grace of 2 s', f'ends after {ages(took)}',
        took > 20)


@shown_by('torchrun', 'mpirun')
def test_a_checkpoint_after_sigterm(peer, saw, place):
    """The worker takes 3 s for it, and needs its data loader, which is in its process group."""
    ready = place.fifo('ready')
    script = place.write('job.sh', '''#!/bin/sh
sleep 600 & loader=$!
save() {
    sleep 3
    grep -q "^State:.[SR]" /proc/$loader/status && found=saved || found=alone
    echo "$RANK $$ $found" >"$TELL"
    kill $loader
    exit 0
}
trap save TERM
echo "$RANK $$ ready" >"$TELL"
wait
''', 0o755)
    job = peer.start(1, [script], {'TELL': ready.path})
    ready.expect('ready', 1)
    peer.settle()
    job.signal(signal.SIGTERM)
    job.end()
    try:
        told = os.read(ready.fd, 4096).decode()
    except BlockingIOError:
        told = ''
    text = 'written' if 'saved' in told else \
        'its data loader is killed under it' if 'alone' in told else 'killed before it is written'
    saw('SIGTERM, and a worker writes a checkpoint for 3 s (defaults)', text, text != 'written')


@shown_by('torchrun')
def test_exit_code(peer, saw):
    ends = {'exit 42': '42', 'SIGSEGV': '139'}
    codes = [str(peer.start(1, [worker('ending')], {'END': end}).end())
             for end in ('exit:42', f'signal:{int(signal.SIGSEGV)}')]
    saw(f'a worker ends with {" or ".join(ends)}', f'exit code {" or ".join(codes)}',
        codes != list(ends.values()))


@shown_by('torchrun')
def test_the_culprit(peer, saw, place):
    """Rank 3 dies, the others see it (a closed pipe) and die 20 ms later. On a machine without a free
    CPU mpirun may take another one for it now and then."""
    named = []
    for i in range(3):
        ready, go = place.fifo(f'ready{i}'), place.fifo(f'go{i}')
        ring = place.path / f'ring{i}'
        os.mkfifo(ring)
        script = place.write('job.sh', f'''#!/bin/sh
if [ $RANK = 3 ]; then
    exec {worker("ending")} 7>{ring}
fi
exec 7<{ring}
echo "$RANK $$ ready" >"$TELL"
cat <&7
sleep 0.02
exit 1
''', 0o755)
        job = peer.start(4, [script], {'TELL': ready.path, 'GO': go.path, 'END_3': 'exit:7'})
        ready.expect('ready', 4)
        go.go()
        job.end()
        named += named_rank(peer.name, job.err())
    assert named
    wrong = [rank for rank in named if rank != 3]
    saw('rank 3 dies, ranks 0 to 2 die of it 20 ms later',
        f'names rank {wrong[0]} in {len(wrong)} of 3 runs' if wrong else 'names rank 3',
        wrong if peer.name == 'launchd' else len(wrong) > len(named) / 2)


def named_rank(launcher, said):
    """The rank that the report calls the first, in a list. mpirun says in two texts what failed; the
    second one has the rank, and now and then mpirun ends before it."""
    pattern = {'torchrun': r'Root Cause.*?rank +: (\d+) ', 'launchd': r'\brank (\d+) ',
               'mpirun': r'Process name: \[\[\d+,1\],(\d+)\]'}[launcher]
    found = re.search(pattern, said, re.DOTALL)
    cut_off = launcher == 'mpirun' and 'Per user-direction, the job has been aborted' in said
    assert found or cut_off, f'no rank in:\n{said}'
    return [int(found.group(1))] if found else []


@shown_by('torchrun')
def test_directories(peer, saw, place):
    code = peer.start(2, [worker('ending')], {'END': 'exit:0'}).end()
    assert code == 0
    left = sorted(re.sub(r'_.*', '_…', path.name) for path in place.tmp.iterdir())
    saw('a job ends well: what is left in `/tmp`', ', '.join(f'`{name}`' for name in left) or
        'nothing', left)
