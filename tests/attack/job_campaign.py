"""A random campaign on jobs of several hosts: workers, launchers, links and whole hosts fail.

    python3 -m tests.attack.job_campaign --seed 1 --rounds 200
    python3 -m tests.attack.job_campaign --seed 1 --round 17     # one round again, and what it was

A round is a job on 4 to 8 hosts, drawn from seed and number alone. However it goes, all launchers
must end in bounded time, nothing may be left on any host, and the launchers of all hosts that were
not touched must agree: one exit code, one culprit or one lost node, which has to be one of those
that something was done to. Needs root.
"""
import argparse
import contextlib
import dataclasses
import os
import pathlib
import random
import signal
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'process'), str(HERE.parent / 'hosts')]
from cluster import why_impossible  # noqa: E402
from harness import until  # noqa: E402
from job import JobHosts, StaticJob  # noqa: E402

NODE_TIMEOUT_S = 3
SHUTDOWN_S = 0.5
SLACK_S = 15.0  # for a machine that does other things
SHORT_S = 1.0  # a sleep that nobody is to notice
LATER_MS = 1000.0  # a cause so much later than the first one is no cause any more
# what is done, and how often compared with the others
DEEDS = {'exit': 6, 'signal': 3, 'worker killed': 2, 'term': 1, 'launcher killed': 2, 'guard killed': 1,
         'supervisor killed': 1, 'power off': 2, 'freeze': 2, 'short freeze': 2, 'cut': 2,
         'cut in': 1, 'cut out': 1, 'short cut': 2, 'pair cut': 1}
# after them the host's launcher is no witness: it is gone, or can't be heard
LOSING = {'launcher killed', 'guard killed', 'supervisor killed', 'power off', 'freeze', 'cut',
          'cut in', 'cut out'}
FAILING = {'exit', 'signal', 'worker killed'}


@dataclasses.dataclass
class Event:
    at_ms: float
    deed: str
    node: int
    rank: int
    value: int


@dataclasses.dataclass
class Round:
    nodes: int
    nproc: int
    restarts: int
    on_term: list
    child: bool
    loss: float
    delay: float
    clocks: list
    events: list


def draw_event(dice, nodes, nproc):
    deed = dice.choices(list(DEEDS), weights=list(DEEDS.values()))[0]
    node = dice.randrange(nodes)
    return Event(dice.choice((0.0, dice.random() * 20, dice.random() * 2000)), deed, node,
                 node * nproc + dice.randrange(nproc),
                 dice.randrange(1, 120) if deed == 'exit' else int(dice.choice(
                     (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT))))


def draw(seed, number):
    """The round of that number, whatever was drawn before."""
    dice = random.Random(f'{seed}:{number}')
    nodes, nproc = dice.randrange(4, 9), dice.choice((1, 1, 2))
    events = [draw_event(dice, nodes, nproc) for _ in range(dice.choice((1, 1, 1, 2, 2, 3)))]
    bad = dice.random() < 0.25
    return Round(
        nodes=nodes, nproc=nproc, restarts=dice.choice((0, 0, 0, 1, 2)),
        on_term=[dice.choice(('', '', 'ignore', f'exit:{dice.randrange(1, 120)}'))
                 for _ in range(nodes * nproc)],
        # what has left its worker's session outlives both of launchd's processes: a known limit
        child=dice.random() < 0.3 and all(event.deed != 'launcher killed' for event in events),
        loss=dice.choice((0.05, 0.1)) if bad else 0.0,
        delay=dice.choice((5, 50)) if bad else 0.0,
        clocks=[dice.randrange(1_000_000) for _ in range(nodes)],
        events=sorted(events, key=lambda event: event.at_ms))


class Battle:
    """A round as it happens."""

    def __init__(self, hosts, plan):
        self.hosts, self.plan = hosts, plan
        self.touched, self.killed, self.late = set(), set(), []
        env = {'ACT': 'obey'} | {f'ON_TERM_{rank}': on for rank, on in enumerate(plan.on_term)}
        if plan.child:
            env['CHILD'] = '1'
        self.job = StaticJob(
            hosts, f'--node-timeout={NODE_TIMEOUT_S}', f'--shutdown-timeout={SHUTDOWN_S}',
            '--leftover-grace=0.2', '--join-timeout=60', '--control=required',
            f'--max-restarts={plan.restarts}', nodes=plan.nodes, nproc=plan.nproc, env=env)

    def launcher_pid(self, node, supervisor):
        for pid, line in self.hosts.processes(node):
            if line.startswith('rank-supervisor') == supervisor and \
                    pid in self.hosts.launchers(node):
                return pid
        return None

    def kill(self, pid, number=signal.SIGKILL):
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def worker_pid(self, rank):
        """As we know it; the stage has it as the hosts do."""
        found = self.job.stage.part(rank).pid
        for pid, _ in self.hosts.processes(self.job.node_of(rank)):
            with contextlib.suppress(OSError, IndexError):
                text = pathlib.Path(f'/proc/{pid}/status').read_text()
                if text.partition('NSpid:')[2].split('\n')[0].split()[-1] == str(found):
                    return pid
        return None

    def do(self, event):
        hosts, node = self.hosts, event.node
        if event.deed in LOSING:
            self.touched.add(node)
        if event.deed in ('exit', 'signal'):
            self.job.stage.order(event.rank, f'{event.deed}:{event.value}@0')
        elif event.deed == 'worker killed':
            self.kill(self.worker_pid(event.rank), event.value)
        elif event.deed == 'term':
            self.kill(self.launcher_pid(node, False), signal.SIGTERM)
        elif event.deed == 'launcher killed':
            hosts.kill_launchers(node)
        elif event.deed in ('guard killed', 'supervisor killed'):
            self.kill(self.launcher_pid(node, event.deed.startswith('super')))
        elif event.deed == 'power off':
            hosts.power_off(node)
            self.killed.add(node)
        elif event.deed == 'freeze':
            hosts.freeze(node)
        elif event.deed == 'short freeze':
            hosts.freeze(node)
            self.late.append((time.monotonic() + SHORT_S, lambda: hosts.thaw(node)))
        elif event.deed == 'short cut':
            hosts.cut(node)
            self.late.append((time.monotonic() + SHORT_S, lambda: hosts.heal(node)))
        elif event.deed == 'pair cut':
            # two nodes that are not the hub need not hear each other
            other = (node + 1) % self.plan.nodes or 1
            hosts.netem.cut_pair(node, other)
            self.touched |= {other} if node == 0 else set()
        else:
            hosts.cut(node, {'cut': 'both', 'cut in': 'in', 'cut out': 'out'}[event.deed])

    def undo_due(self):
        now = time.monotonic()
        for at, undo in [one for one in self.late if one[0] <= now]:
            undo()
            self.late.remove((at, undo))

    def fight(self):
        """Returns the launchers' ends, of those that can be heard first."""
        self.job.start()
        if self.plan.loss or self.plan.delay:
            self.hosts.netem.set(direction='out', loss=self.plan.loss, delay=self.plan.delay)
        begun = time.monotonic()
        for event in self.plan.events:
            while (left := begun + event.at_ms / 1000 - time.monotonic()) > 0:
                time.sleep(min(left, 0.01))
                self.undo_due()
            self.do(event)
        while self.late:
            time.sleep(0.01)
            self.undo_due()
        self.others = [node for node in range(self.plan.nodes) if node not in self.touched]
        self.end_what_goes_on()
        ends = self.job.wait(*self.others, limit=self.limit()) if self.others else {}
        for node in self.touched - self.killed:
            self.hosts.thaw(node)
        self.hosts.netem.heal()
        return {**ends, **self.job.wait(limit=self.limit())}

    def limit(self):
        return 2 * NODE_TIMEOUT_S + 2 * SHUTDOWN_S + SLACK_S

    def end_what_goes_on(self):
        """Where nothing that was done ends the job, or it has been restarted, somebody else does."""
        time.sleep(NODE_TIMEOUT_S + 1.5 if self.touched else 0.5)
        for node in self.others:
            if node not in self.job.ended():
                self.job.signal(node, signal.SIGTERM)
                return

    def judge(self, ends):
        plan = self.plan
        for node in range(plan.nodes):
            if node not in self.killed:
                until(lambda: not self.hosts.processes(node),
                      lambda: f'n{node} to be empty: {self.hosts.processes(node)}', SLACK_S)
        heard = {node: ends[node] for node in self.others}
        assert 0 not in {end.rc for end in heard.values()}, f'a failed job ended with 0: {heard}'
        verdicts = {(end.rc, tuple(end.culprits()), tuple(end.lost())) for end in heard.values()}
        # a hub that goes while it spreads a verdict may leave some with another one
        if not (0 in self.touched and len(plan.events) > 1):
            assert len(verdicts) <= 1, f'different verdicts: {verdicts}\n{heard}'
        failing = {event.rank for event in plan.events if event.deed in FAILING}
        for _, culprits, lost in verdicts:
            assert set(culprits) <= failing, f'{culprits} had no reason to fail: {heard}'
            assert set(lost) <= self.touched, f'nothing was done to {lost}: {heard}'
        if not self.touched:
            self.judge_failure(verdicts, heard)

    def judge_failure(self, verdicts, heard):
        """With nothing but failures of workers, the first of them is the culprit."""
        plan = self.plan
        ends = [event for event in plan.events if event.deed in FAILING or event.deed == 'term']
        if not ends or plan.restarts or plan.loss:
            return
        first = ends[0]
        allowed = [event for event in ends if event.at_ms <= first.at_ms + LATER_MS]
        if all(event.deed in FAILING for event in allowed):
            named = {culprit for _, culprits, _ in verdicts for culprit in culprits}
            assert named and named <= {event.rank for event in allowed}, f'{named}: {heard}'


def run_round(plan):
    """Raises what went wrong. Seconds until all had ended."""
    begun = time.monotonic()
    with JobHosts(plan.nodes, netem=True, clocks=plan.clocks) as hosts:
        battle = Battle(hosts, plan)
        try:
            battle.judge(battle.fight())
        finally:
            battle.job.close()
    return time.monotonic() - begun


def explain(seed, number, plan):
    command = f'python3 -m tests.attack.job_campaign --seed {seed} --round {number}'
    return f'round {number} of seed {seed} has failed; again: {command}\n{plan}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=20)
    parser.add_argument('--round', type=int)
    parser.add_argument('--keep-going', action='store_true', help='not only to the first failure')
    options = parser.parse_args()
    if reason := why_impossible():
        sys.exit(f'job_campaign: {reason}')
    numbers = range(options.rounds) if options.round is None else [options.round]
    begun, failed, deeds, worst = time.monotonic(), 0, 0, 0.0
    for number in numbers:
        plan = draw(options.seed, number)
        if options.round is not None:
            print(plan, flush=True)
        try:
            worst = max(worst, run_round(plan))
            deeds += len(plan.events)
        except BaseException as error:  # pytest's outcomes are no Exception
            print(explain(options.seed, number, plan), traceback.format_exc(), sep='\n', flush=True)
            failed += 1
            if isinstance(error, KeyboardInterrupt) or not options.keep_going:
                break
    print(f'{"FAILED" if failed else "ok"}: seed {options.seed}, {deeds} failures in '
          f'{len(numbers)} rounds, worst round {worst:.1f} s, {time.monotonic() - begun:.0f} s')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
