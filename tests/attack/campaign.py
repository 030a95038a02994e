"""A random campaign: who dies, how, when, what hangs on it, and what else comes from outside.

    python3 -m tests.attack.campaign --seed 1 --deaths 10000
    python3 -m tests.attack.campaign --seed 1 --round 17     # one round again, and what it was

A round is a job, drawn from seed and number alone. After it nothing of it may be left, launchd's
exit status and the culprit of its report must be what model.py allows, and nothing may have taken
longer than the graces allow. Counted as deaths are those that were drawn and took place: a worker's
end by itself, and a signal that ends a worker, the guard or the supervisor and found it alive. What
launchd ends is not counted, nor are signals that ask launchd to end.
"""
import argparse
import ctypes
import dataclasses
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from arena import GONE_LIMIT, NOBODY, Attack, Handle, Page, Place, children_of, until  # noqa: E402
from harness import let_pass, sandbox  # noqa: E402
from model import Cause, Expected, expect, signalled_cause, worker_cause  # noqa: E402

BIRTHS = ('child', 'session', 'orphan', 'daemon', 'sibling', 'vfork', 'thread', 'namespace', 'me')
DEEDS = ('ignore', 'block', 'threads', 'rename', 'nodump', 'nodeathsig', 'subreaper', 'pipes',
         'stop', 'tracer', 'nobody')
FORKING = ('bomb', 'sessions', 'chain')
MINE = {'ignore', 'rename', 'nodump', 'nodeathsig', 'subreaper', 'pipes', 'tracer'}
DEADLY = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGUSR2,
          signal.SIGTERM, signal.SIGRTMIN)
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
HARMLESS = (signal.SIGWINCH, signal.SIGURG, signal.SIGCONT)
SLACK_S = 20.0  # for a machine that does other things


@dataclasses.dataclass
class Event:
    at_ms: float
    who: str  # 'guard', 'supervisor', 'worker'
    number: int
    rank: int = 0


@dataclasses.dataclass
class Round:
    workers: int
    acts: list
    on_term: list
    helpers: list
    events: list
    shutdown: float
    leftover: float
    max_runtime: float | None
    user: int | None
    bystander: bool


def draw_helper(dice):
    birth = dice.choice(BIRTHS)
    deeds = dice.sample(DEEDS, dice.choice((0, 1, 1, 2, 3)))
    if birth == 'me':
        deeds = [deed for deed in deeds if deed in MINE]
    elif dice.random() < 0.08:
        deeds = [*(deed for deed in deeds if deed != 'stop'), dice.choice(FORKING)]
    return '+'.join([birth, *deeds])


def draw_act(dice):
    at = dice.choice((0, 0, dice.randrange(5000), dice.randrange(30000)))
    return dice.choice((
        'never', 'never', 'never', f'exit:0@{at}', f'exit:0@{at}',
        f'exit:{dice.randrange(1, 256)}@{at}', f'exit:{dice.randrange(1, 256)}@{at}',
        f'signal:{int(dice.choice(DEADLY))}@{at}'))


def draw_event(dice, workers):
    who = dice.choice(('guard', 'guard', 'guard', 'supervisor', 'worker', 'worker'))
    number = {
        'guard': dice.choice((*ENDING, *HARMLESS, signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV,
                              signal.SIGSTOP)),
        'supervisor': dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGBUS, signal.SIGSTOP)),
        'worker': dice.choice((*DEADLY, signal.SIGKILL, signal.SIGSTOP)),
    }[who]
    return Event(dice.choice((0.0, dice.random() * 5, dice.random() * 40)), who, int(number),
                 dice.randrange(workers))


def draw_events(dice, workers):
    """In their order. Not both of launchd's processes are killed: that it can't survive, without a
    cgroup, is a documented limit."""
    events = [draw_event(dice, workers) for _ in range(dice.choice((0, 1, 1, 1, 2)))]
    killed = {event.who for event in events if event.who != 'worker' and
              event.number not in (*ENDING, *HARMLESS, signal.SIGSTOP)}
    if len(killed) == 2:
        events.pop()
    return sorted(events, key=lambda event: event.at_ms)


def draw(seed, number):
    """The round of that number, whatever was drawn before."""
    dice = random.Random(f'{seed}:{number}')
    workers = dice.choice((1, 2, 2, 3, 4, 6, 8))
    return Round(
        workers=workers,
        acts=[draw_act(dice) for _ in range(workers)],
        on_term=[dice.choice(('', '', 'ignore', f'exit:{dice.randrange(1, 256)}'))
                 for _ in range(workers)],
        helpers=[','.join(draw_helper(dice) for _ in range(dice.choice((0, 0, 1, 2))))
                 for _ in range(workers)],
        events=draw_events(dice, workers),
        shutdown=dice.choice((0, 0.05, 0.2)),
        leftover=dice.choice((0, 0.05, 0.1)),
        max_runtime=0.1 if dice.random() < 0.05 else None,
        user=NOBODY if os.geteuid() == 0 and dice.random() < 0.2 else None,
        bystander=dice.random() < 0.3)


class Battle:
    """A round as it happens."""

    def __init__(self, place, plan):
        self.plan, self.place = plan, place
        self.page = Page(place.path / 'page')
        self.report = place.path / 'report.json'
        env = {'PAGE': self.page.path}
        for rank in range(plan.workers):
            env[f'ACT_{rank}'] = plan.acts[rank]
            env[f'ON_TERM_{rank}'] = plan.on_term[rank]
            env[f'HELPERS_{rank}'] = plan.helpers[rank]
        options = ['--quiet', f'--report={self.report}', f'--shutdown-timeout={plan.shutdown}',
                   f'--leftover-grace={plan.leftover}']
        if plan.max_runtime:
            options.append(f'--max-runtime={plan.max_runtime}')
        self.begun_ns = time.monotonic_ns()
        self.attack = Attack(place, '', workers=plan.workers, options=options, env=env,
                             user=plan.user, program='act', bystander=plan.bystander)
        self.handles = {}
        self.causes, self.deaths, self.events = [], 0, 0

    def close(self):
        for handle in self.handles.values():
            handle.close()
        left = self.attack.close()
        self.page.close()
        return left

    def meet(self):
        """Waits for the workers; False: the job was over before, by --max-runtime."""
        guard = self.handles['guard'] = Handle(self.attack.guard)
        until(lambda: self.page.ready() == self.plan.workers or guard.ended(), 'the workers')
        if guard.ended():
            return False
        try:
            self.handles['supervisor'] = Handle(self.attack.supervisor())
            for rank in range(self.plan.workers):
                self.handles[rank] = Handle(self.page.pid(rank))
        except (AssertionError, ProcessLookupError):
            assert guard.ended(5)
            return False
        return True

    def send(self, event):
        """Does what the event says, and notes what it may have caused."""
        plan, now = self.plan, time.monotonic_ns()
        handle = self.handles[event.rank if event.who == 'worker' else event.who]
        if handle.ended() or not handle.send(event.number):
            return
        if event.number == signal.SIGSTOP and event.who != 'worker':
            let_pass(0.01, 'the other one may notice that it is stopped')
            handle.send(signal.SIGCONT)
            return
        if event.number in HARMLESS or event.number == signal.SIGSTOP:
            return
        if event.who == 'worker':
            me = plan.helpers[event.rank].split(',')
            ignores = any(each.startswith('me+') and 'ignore' in each for each in me)
            cause = signalled_cause(event.number, event.rank, now, plan.on_term[event.rank],
                                    ignores)
            self.deaths += cause is not None
            self.causes += [cause] if cause else []
        elif event.number in ENDING:
            self.events += 1
            self.causes.append(Cause(now, 128 + event.number))
            # at their last words the two no longer take signals: the kernel ends them
            for status in (-event.number, 128 + event.number):
                self.causes.append(Cause(now, status, sure=False, kills=True))
        else:
            self.deaths += 1
            status = -event.number if event.who == 'guard' else 128 + event.number
            if event.who == 'guard':
                self.place.orphans_expected = True
            self.causes.append(Cause(now, status, kills=True))

    def fight(self):
        guard = self.handles['guard']
        start_ns = self.page.start(0.002)
        for event in self.plan.events:
            let_pass(event.at_ms / 1000 - (time.monotonic_ns() - start_ns) / 1e9, 'the next event is due')
            self.send(event)
        # whoever is left has no end of its own
        if not guard.ended(0.05):
            self.send(Event(0, 'guard', signal.SIGTERM))
        limit = self.plan.shutdown + self.plan.leftover + SLACK_S
        assert guard.ended(limit), f'no end after {limit} s: {self.attack.job.said()}'

    def judge(self):
        plan = self.plan
        if self.attack.job.process.wait() < 0:
            self.attack.wait_gone()
        deaths = self.page.deaths(plan.workers)  # also of those that died after their guard
        self.deaths += len(deaths)
        for rank, died_ns in deaths.items():
            cause = worker_cause(plan.acts[rank], rank, died_ns)
            self.causes += [cause] if cause else []
        if all(rank in deaths and plan.acts[rank].startswith('exit:0@')
               for rank in range(plan.workers)):
            self.causes.append(Cause(max(deaths.values()), 0))  # then all was well
        if plan.max_runtime:
            self.causes.append(Cause(self.begun_ns + int(plan.max_runtime * 1e9), 124, sure=False))
        # so that an end of all who had it is seen, also where --max-runtime was first
        os.close(os.open(self.attack.witness.path, os.O_WRONLY))
        assert self.attack.witness.is_gone(), \
            f'outlived launchd: {self.attack.witness.described()}'
        if 'supervisor' in self.handles:
            assert self.handles['supervisor'].ended(GONE_LIMIT), 'the supervisor is left'
        assert self.attack.end_bystander(), 'a bystander was ended'
        result = self.attack.job.end()
        expected = expect(self.causes, exact=plan.user is None and os.geteuid() == 0)
        report = json.loads(self.report.read_text()) if self.report.exists() else None
        if report and report['cause']['unsure']:
            expected = self.any_of(tied(report), expected)
        assert result.rc in expected.statuses, \
            f'status {result.rc}, expected {expected}\n{result.err}'
        if report:
            culprit = report['culprit']
            named = culprit['rank'] if culprit else None
            assert named in expected.ranks, f'named {named}, expected {expected}\n{result.err}'
        assert not list(self.place.tmp.glob('launchd_*')), 'a run directory is left'

    def any_of(self, ranks, expected):
        """Whom launchd can't tell apart: one of them is expected."""
        assert ranks & expected.ranks, f'{ranks} are in doubt, expected {expected}'
        doubted = {cause.status for cause in self.causes if cause.rank in ranks}
        return Expected(expected.statuses | doubted, ranks)


def tied(report):
    """Without pidfds: the workers that a report says to have died as one, the culprit among them."""
    assert sandbox.LEVEL in sandbox.BLIND, 'the order on one node is known'
    ended = {worker['rank']: worker['ended_seconds'] for worker in report['workers']}
    return {rank for rank in ended if ended[rank] == ended[report['culprit']['rank']]}


def reap_all():
    """Orphans come to us. What is alive after the witness's word was no job's process."""
    while children_of(os.getpid()):
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            raise AssertionError(f'left: {children_of(os.getpid())}')


def run_round(plan):
    """(deaths, other events). Raises what went wrong."""
    path = pathlib.Path(tempfile.mkdtemp(prefix='launchd-campaign-'))
    try:
        battle = Battle(Place(path), plan)
        try:
            if battle.meet():
                battle.fight()
            battle.judge()
        finally:
            left = battle.close()
        assert not left, f'left behind: {left}'
        reap_all()
        return battle.deaths, battle.events
    finally:
        shutil.rmtree(path)


class Sum:
    """What the fighters have together."""

    def __init__(self):
        self.next, self.deaths, self.events, self.failed = (
            multiprocessing.Value('q', 0) for _ in range(4))

    def take(self):
        with self.next.get_lock():
            self.next.value += 1
            return self.next.value - 1

    def add(self, deaths, events):
        for value, more in ((self.deaths, deaths), (self.events, events)):
            with value.get_lock():
                value.value += more


def explain(seed, number, plan):
    command = f'python3 -m tests.attack.campaign --seed {seed} --round {number}'
    return f'round {number} of seed {seed} has failed; again: {command}\n{plan}'


def fighter(seed, goal, total):
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    while total.deaths.value < goal and not total.failed.value:
        number = total.take()
        plan = draw(seed, number)
        try:
            total.add(*run_round(plan))
        except BaseException:  # pytest's outcomes are no Exception
            total.failed.value = 1
            print(explain(seed, number, plan), traceback.format_exc(), sep='\n', flush=True)
            os._exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--deaths', type=int, default=1000)
    parser.add_argument('--round', type=int)
    parser.add_argument('--jobs', type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    if options.round is not None:
        plan = draw(options.seed, options.round)
        print(plan, flush=True)
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        print('deaths and other events:', run_round(plan))
        return 0
    total, begun = Sum(), time.monotonic()
    fighters = [multiprocessing.Process(target=fighter, args=(options.seed, options.deaths, total))
                for _ in range(options.jobs)]
    for each in fighters:
        each.start()
    for each in fighters:
        each.join()
    failed = total.failed.value or any(each.exitcode for each in fighters)
    print(f'{"FAILED" if failed else "ok"}: seed {options.seed}, {total.deaths.value} deaths and '
          f'{total.events.value} ending signals in {total.next.value} rounds, '
          f'{time.monotonic() - begun:.0f} s')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
