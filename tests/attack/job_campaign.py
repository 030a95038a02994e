"""A random campaign on jobs of several hosts: workers, launchers, links and whole hosts fail.

    python3 -m tests.attack.job_campaign --seed 1 --rounds 200
    python3 -m tests.attack.job_campaign --seed 1 --round 17     # one round again, and what it was

A round is a job on 3 to 8 hosts, by mpirun or static, drawn from seed and number alone: what fails
first, and often something else 0 to 3 s later. However it goes,

- no launcher crashes, and each ends within its documented times and SLACK_S;
- nothing is left on any host;
- the launchers of hosts that were not touched have one exit code, of something that was done, and
  name as the culprit nobody who had no reason to fail;
- a guard whose supervisor was killed tells all others where it can, and ends with their exit code;
- where a worker failed first, and the next failure came later than everybody could hear of
  it, all of them name that worker and have its exit code, whatever became of the hub then;
- each writes its report file, with that exit code in it.

Needs root. $LAUNCHD_BUILD_DIR says which build, which may be one with sanitizers.
"""
import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import signal
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'process'), str(HERE.parent / 'hosts')]
from cluster import HOME, why_impossible  # noqa: E402
from harness import let_pass, signal_if_there, until  # noqa: E402
from job import End, JobHosts, MpirunJob, StaticJob, now_ns  # noqa: E402

NODE_TIMEOUT_S = 3
SLACK_S = 20.0  # for a machine that does other things
SHORT_S = 1.0  # a sleep that nobody is to notice
HEARD_MS = 1000.0  # so long after a failure everybody knows of it
MPIRUN_KILLS_S = 30  # later than any round lasts
LOST_CODE, KILLED_CODE, HANGUP_CODE = 125, 137, 129
# what is done, and how often compared with the others
DEEDS = {'exit': 6, 'raise': 4, 'signal': 3, 'worker killed': 2, 'term': 1, 'launcher killed': 2,
         'guard killed': 2, 'supervisor killed': 2, 'power off': 2, 'freeze': 2, 'short freeze': 1,
         'cut': 2, 'cut in': 1, 'cut out': 1, 'short cut': 1, 'pair cut': 1,
         'no tcp': 2, 'no tcp in': 1, 'no tcp out': 1, 'large': 2, 'large in': 1, 'large out': 1,
         'forget': 2, 'no udp': 1, 'reset': 2}
# after them the host's launcher is no witness: it is gone, or can't be heard
LOSING = {'launcher killed', 'guard killed', 'supervisor killed', 'power off', 'freeze', 'cut',
          'cut in', 'cut out'}
KILLING = {'launcher killed', 'guard killed', 'supervisor killed'}
FAILING = {'exit', 'raise', 'signal', 'worker killed'}
# what firewalls and bad paths do; nothing is lost as long as beats by UDP pass
WALLS = {'no tcp': {'no_tcp': 1}, 'large': {'max_size': 299}, 'forget': {'forget': 1000},
         'no udp': {'no_udp': 1}, 'reset': {'reset': 1}}
# both of launchd's processes write there; mpirun itself does not tell the launchers apart
AROUND = ('sh', '-c', 'trap : TERM INT HUP; "$@" 2>"$0.$OMPI_COMM_WORLD_RANK.err"; '
          'echo $? >"$0.$OMPI_COMM_WORLD_RANK.new"; '
          'mv "$0.$OMPI_COMM_WORLD_RANK.new" "$0.$OMPI_COMM_WORLD_RANK.rc"', f'{HOME}/said')


@dataclasses.dataclass
class Event:
    at_ms: float
    deed: str
    node: int
    rank: int
    value: int

    def wall(self):
        """(what, direction) of a wall; None: it is none."""
        for name, what in WALLS.items():
            if self.deed == name or self.deed.startswith(f'{name} '):
                return what, self.deed[len(name) + 1:] or 'both'
        return None

    def code(self):
        """Of the worker that it ends."""
        return self.value if self.deed in ('exit', 'raise') else 128 + self.value


@dataclasses.dataclass
class Round:
    mpirun: bool
    nodes: int
    nproc: int
    restarts: int
    shutdown: float
    on_term: list
    child: bool
    loss: float
    delay: float
    clocks: list
    events: list

    def touched_by(self, event):
        """The nodes whose launchers are no witnesses after it."""
        if event.deed in LOSING:
            return {event.node}
        if event.deed == 'pair cut' and event.node == 0:
            return {self.pair_of(event)}
        if event.wall() and self.walled_in():
            return set(range(self.nodes)) if event.node == 0 else {event.node}
        return set()

    def walled_in(self):
        """Whether walls may leave no way between two nodes."""
        walls = [event.deed for event in self.events if event.wall()]
        return 'no udp' in walls and len(walls) > 1

    def pair_of(self, event):
        """Two nodes that are not the hub need not hear each other."""
        return (event.node + 1) % self.nodes or 1


def draw_event(dice, at_ms, nodes, nproc):
    deed = dice.choices(list(DEEDS), weights=list(DEEDS.values()))[0]
    node = dice.choice((0, *range(nodes)))
    return Event(at_ms, deed, node, node * nproc + dice.randrange(nproc),
                 dice.randrange(1, 120) if deed in ('exit', 'raise') else int(dice.choice(
                     (signal.SIGKILL, signal.SIGBUS, signal.SIGUSR2))))


def draw(seed, number):
    """The round of that number, whatever was drawn before."""
    dice = random.Random(f'{seed}:{number}')
    nodes, nproc = dice.choice((3, 3, 4, 5, 6, 8)), dice.choice((1, 1, 2))
    events, at_ms = [], dice.choice((0.0, dice.random() * 20, dice.random() * 1500))
    for _ in range(dice.choice((1, 2, 2, 2, 3))):
        events.append(draw_event(dice, at_ms, nodes, nproc))
        at_ms += dice.choice((0.0, dice.random() * 20, *(dice.random() * 3000 for _ in range(3))))
    bad, stubborn = dice.random() < 0.2, dice.random() < 0.4
    return Round(
        mpirun=dice.random() < 0.3,
        nodes=nodes, nproc=nproc, restarts=dice.choice((0, 0, 0, 0, 1, 2)),
        shutdown=dice.choice((0.5, 2, 4)),
        on_term=['ignore' if stubborn else
                 dice.choice(('', '', 'ignore', f'exit:{dice.randrange(1, 120)}'))
                 for _ in range(nodes * nproc)],
        # what has left its worker's session outlives both of launchd's processes: a known limit
        child=dice.random() < 0.3 and all(event.deed != 'launcher killed' for event in events),
        loss=dice.choice((0.05, 0.1)) if bad else 0.0,
        delay=dice.choice((5, 50)) if bad else 0.0,
        clocks=[dice.randrange(1_000_000) for _ in range(nodes)],
        events=events)


class Launched:
    """The launchers of a static job."""

    def __init__(self, hosts, plan, options, env):
        self.hosts = hosts
        self.job = StaticJob(hosts, *options, nodes=plan.nodes, nproc=plan.nproc, env=env)

    def ended(self):
        return self.job.ended()

    def wait(self, nodes, limit):
        return self.job.wait(*nodes, limit=limit) if nodes else {}


class LaunchedByMpirun(Launched):
    """Those of a job by mpirun, which itself may hang when one of its nodes does."""

    def __init__(self, hosts, plan, options, env):
        self.hosts, self.nodes = hosts, plan.nodes
        self.job = MpirunJob(hosts, *options, nodes=plan.nodes, nproc=plan.nproc, env=env,
                             kill_timeout=MPIRUN_KILLS_S, around=AROUND)

    def said(self, node, what):
        return self.hosts.home / f'said.{node}.{what}'

    def ended(self):
        return [node for node in range(self.nodes) if self.said(node, 'rc').exists()]

    def wait(self, nodes, limit):
        until(lambda: set(nodes) <= set(self.ended()),
              lambda: f'the end of nodes {set(nodes) - set(self.ended())} of {self.described()}',
              limit)
        return {node: End(int(self.said(node, 'rc').read_text()), '',
                          self.said(node, 'err').read_text(errors='replace'), now_ns())
                for node in nodes}

    def described(self):
        said = [f'n{node} said:\n{self.said(node, "err").read_text(errors="replace")}'
                for node in range(self.nodes) if self.said(node, 'err').exists()]
        return '\n'.join([self.job.described(), *said])


class Battle:
    """A round as it happens."""

    def __init__(self, hosts, plan):
        self.hosts, self.plan = hosts, plan
        self.touched, self.killed, self.late = set(), set(), []
        env = {'ACT': 'obey'} | {f'ON_TERM_{rank}': on for rank, on in enumerate(plan.on_term)}
        if plan.child:
            env['CHILD'] = '1'
        options = [f'--node-timeout={NODE_TIMEOUT_S}', f'--shutdown-timeout={plan.shutdown}',
                   '--leftover-grace=0.2', '--join-timeout=60', '--control=required',
                   f'--max-restarts={plan.restarts}', f'--report={HOME}/report.%n']
        self.launched = (LaunchedByMpirun if plan.mpirun else Launched)(hosts, plan, options, env)
        self.job = self.launched.job

    def launcher_pid(self, node, supervisor):
        for pid, line in self.hosts.processes(node):
            if line.startswith('rank-supervisor') == supervisor and \
                    pid in self.hosts.launchers(node):
                return pid
        return None

    def kill(self, pid, number=signal.SIGKILL):
        if pid:
            signal_if_there(pid, number)

    def worker_pid(self, rank):
        """As we know it; the board has it as the hosts do."""
        found = self.job.board.part(rank).pid
        for pid, _ in self.hosts.processes(self.job.node_of(rank)):
            with contextlib.suppress(OSError, IndexError):
                text = pathlib.Path(f'/proc/{pid}/status').read_text()
                if text.partition('NSpid:')[2].split('\n')[0].split()[-1] == str(found):
                    return pid
        return None

    def do(self, event):
        hosts, node = self.hosts, event.node
        self.touched |= self.plan.touched_by(event)
        if event.deed in ('exit', 'raise', 'signal'):
            self.job.board.order(event.rank, f'{event.deed}:{event.value}@0')
        elif event.deed == 'worker killed':
            self.kill(self.worker_pid(event.rank), event.value)
        elif event.deed == 'term':
            self.kill(self.launcher_pid(node, False), signal.SIGTERM)
        elif event.deed == 'launcher killed':
            self.killed.add(node)
            hosts.kill_launchers(node)
        elif event.deed in ('guard killed', 'supervisor killed'):
            self.killed.add(node)
            self.kill(self.launcher_pid(node, event.deed.startswith('super')))
        elif event.deed == 'power off':
            self.killed.add(node)
            hosts.power_off(node)
        elif event.deed == 'freeze':
            hosts.freeze(node)
        elif event.deed == 'short freeze':
            hosts.freeze(node)
            self.late.append((time.monotonic() + SHORT_S, lambda: hosts.thaw(node)))
        elif event.deed == 'short cut':
            hosts.cut(node)
            self.late.append((time.monotonic() + SHORT_S, lambda: hosts.heal(node)))
        elif event.deed == 'pair cut':
            hosts.netem.cut_pair(node, self.plan.pair_of(event))
        elif event.wall():
            what, direction = event.wall()
            hosts.netem.set(node, direction, **what)
        else:
            hosts.cut(node, {'cut': 'both', 'cut in': 'in', 'cut out': 'out'}[event.deed])

    def await_time(self, at):
        """Until then all is undone that is due."""
        for due, undo in sorted((one for one in self.late if one[0] <= at), key=lambda one: one[0]):
            let_pass(due - time.monotonic(), 'it is for a while')
            undo()
            self.late.remove((due, undo))
        let_pass(at - time.monotonic(), 'the next event is due')

    def fight(self):
        """Returns the launchers' ends, of those that can be heard first."""
        self.job.start()
        if self.plan.loss or self.plan.delay:
            self.hosts.netem.set(direction='out', loss=self.plan.loss, delay=self.plan.delay)
        begun = time.monotonic()
        for event in self.plan.events:
            self.await_time(begun + event.at_ms / 1000)
            self.do(event)
            event.at_ms = (time.monotonic() - begun) * 1000
        self.await_time(max([0.0, *(due for due, _ in self.late)]))
        alone = [event.node for event in self.plan.events if event.deed == 'supervisor killed']
        self.others = [node for node in range(self.plan.nodes) if node not in self.touched]
        self.end_what_goes_on()
        ends = self.launched.wait(self.others, self.limit())
        if alone and len(self.plan.events) == 1 and not self.plan.mpirun:
            self.guards = self.launched.wait(alone, self.limit())
        for node in self.touched:  # also where only one of launchd's processes was killed since
            self.hosts.thaw(node)
        self.hosts.netem.heal()
        witnesses = [node for node in self.touched if node not in self.killed]
        if not self.others:
            self.end_the_rest(witnesses)
        return {**ends, **self.launched.wait(witnesses, self.limit())}

    def limit(self):
        return 2 * NODE_TIMEOUT_S + 2 * self.plan.shutdown + SLACK_S

    def noticed_s(self):
        """How long a loss may go unnoticed. Where one direction is cut, the end that hears nothing tells
        the other by UDP: where that may be lost, the other one has to find out."""
        told = not self.plan.loss and all(event.deed != 'no udp' for event in self.plan.events)
        return (1 if told else 1.5) * NODE_TIMEOUT_S + 1.5

    def end_what_goes_on(self):
        """Where nothing that was done ends the job, or it has been restarted, somebody else does."""
        let_pass(self.noticed_s() if self.touched else 0.5, 'a job that goes on says nothing')
        for node in range(self.plan.nodes):
            if node not in self.touched | self.killed and node not in self.launched.ended():
                self.termed = True
                self.kill(self.launcher_pid(node, False), signal.SIGTERM)
                return

    def end_the_rest(self, nodes):
        """Walls that nobody had anything to say through are no end."""
        let_pass(self.noticed_s(), 'they may end by themselves, and need not')
        for node in set(nodes) - set(self.launched.ended()):
            self.termed = True
            self.kill(self.launcher_pid(node, False), signal.SIGTERM)

    termed = False
    guards: dict = {}  # the ends of those whose supervisors were killed, and nothing else was done

    def judge(self, ends):
        plan = self.plan
        for node in set(range(plan.nodes)) - self.unseen():
            until(lambda: not self.left(node), lambda: f'n{node} to be empty: {self.left(node)}',
                  SLACK_S)
        for node, end in ends.items():
            assert 'Sanitizer' not in end.err and 'runtime error' not in end.err, (node, end)
            assert end.rc in self.codes(node), f'{end.rc} is of {self.codes(node)}: {node} {ends}'
            self.judge_report(node, end)
        heard = {node: ends[node] for node in self.others}
        verdicts = {(end.rc, tuple(end.culprits())) for end in heard.values()}
        # a hub that goes while it spreads a verdict may leave some with another one
        if not (0 in self.touched and len(plan.events) > 1):
            assert len(verdicts) <= 1, f'different verdicts: {verdicts}\n{heard}'
        for end in self.guards.values():
            assert {end.rc} == {other.rc for other in heard.values()}, f'{self.guards}\n{heard}'
        failing = {event.rank for event in plan.events if event.deed in FAILING}
        for end in ends.values():
            assert set(end.culprits()) <= failing, f'{end.culprits()} had no reason to fail: {ends}'
        for end in heard.values():
            assert set(end.lost()) <= self.touched, f'nothing was done to {end.lost()}: {heard}'
        if sure := self.sure():
            for node, end in heard.items():
                assert (end.rc, end.culprits()) == (sure.code(), [sure.rank]), \
                    f'node {node} does not name rank {sure.rank}: {ends}'

    def unseen(self):
        """Those that were powered off are empty anyway."""
        return {event.node for event in self.plan.events if event.deed == 'power off'}

    def left(self, node):
        """What is not mpirun's own on a node; it may hang for minutes when a node does."""
        words = [line.split() for _, line in self.hosts.processes(node)]
        if not self.plan.mpirun:
            return words
        return [one for one in words if one[0] in (str(self.job.worker[-1]), 'rank-supervisor') or
                os.path.basename(one[0]) == 'launchd']

    def codes(self, node):
        """The exit codes that this node's launcher may have after what was done."""
        plan = self.plan
        found = {event.code() for event in plan.events if event.deed in FAILING}
        if self.termed or any(event.deed == 'term' for event in plan.events):
            found.add(128 + signal.SIGTERM)
        if self.touched and not self.all_are_told():
            found.add(LOST_CODE)
        if any(event.deed in KILLING for event in plan.events):
            found.add(KILLED_CODE)
        if plan.mpirun and self.touched:
            found |= {128 + signal.SIGTERM, HANGUP_CODE}  # mpirun or its daemon has gone
        return found

    def all_are_told(self):
        """Whether the guard of a killed supervisor reaches all others, which then have its code."""
        deeds = [event.deed for event in self.plan.events]
        return deeds.count('supervisor killed') == 1 and not self.plan.loss and \
            set(deeds) <= FAILING | {'supervisor killed', 'term'}

    def judge_report(self, node, end):
        path = self.hosts.home / f'report.{node}'
        if node in self.touched and not path.exists():
            return
        assert path.exists(), f'node {node} has no report: {end}'
        report = json.loads(path.read_text())
        assert report['job']['exit_code'] == end.rc, f'{report["job"]} of node {node}: {end}'
        named = [report['culprit']['rank']] if report['culprit'] else []
        assert named == end.culprits(), f'{named} in the report of node {node}: {end}'

    def sure(self):
        """The failure that all must name; None: it is not as clear as that."""
        plan = self.plan
        ending = [event for event in plan.events
                  if event.deed in FAILING | LOSING | {'term', 'pair cut'}]
        if not ending or ending[0].deed not in FAILING or plan.restarts or plan.loss:
            return None
        first = ending[0]
        # a short absence, or a wall, may hold the news up, but no longer than the time-out
        late = any(event.wall() or event.deed.startswith('short') for event in plan.events)
        known_ms = first.at_ms + HEARD_MS + (1000 * (NODE_TIMEOUT_S + SHORT_S) if late else 0)
        if late and plan.walled_in() or any(event.at_ms < known_ms for event in ending[1:]):
            return None
        return first


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


def try_round(seed, number):
    """(seconds, events, None) or (0, events, what went wrong)"""
    plan = draw(seed, number)
    events = len(plan.events)
    try:
        return run_round(plan), events, None
    except BaseException as error:  # pytest's outcomes are no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        command = f'python3 -m tests.attack.job_campaign --seed {seed} --round {number}'
        return 0.0, events, (f'round {number} of seed {seed} has failed; again: {command}\n{plan}\n'
                             f'{traceback.format_exc()}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--rounds', type=int, default=20)
    parser.add_argument('--round', type=int)
    parser.add_argument('--jobs', type=int, default=1, help='rounds at a time')
    parser.add_argument('--keep-going', action='store_true', help='not only to the first failure')
    options = parser.parse_args()
    if reason := why_impossible():
        sys.exit(f'job_campaign: {reason}')
    numbers = range(options.first, options.first + options.rounds)
    if options.round is not None:
        numbers = [options.round]
        print(draw(options.seed, options.round), flush=True)
    begun, run, failed, events, worst = time.monotonic(), 0, 0, 0, 0.0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        rounds = [pool.submit(try_round, options.seed, number) for number in numbers]
        for one in concurrent.futures.as_completed(rounds):
            took, more, wrong = one.result()
            run, worst, events = run + 1, max(worst, took), events + more
            if wrong:
                failed += 1
                print(wrong, flush=True)
                if not options.keep_going:
                    pool.shutdown(cancel_futures=True)
                    break
    print(f'{"FAILED" if failed else "ok"}: seed {options.seed}, {events} faults in {run} rounds, '
          f'{failed} failed, worst round {worst:.1f} s, {time.monotonic() - begun:.0f} s')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
