#!/usr/bin/python3
"""Tries the witness of hangs on real jobs of gloo: every kind of kinds.py, several jobs of each, under
the real launchd; prints a table and exits with 1 below the bars.

    trial.py [--jobs N] [--of-each N] [--seed N] [--at-once N] [--keep DIR] [--build DIR] [--act S] [KIND...]
    trial.py --again DIR [--build DIR]    what has been kept there, by the detector of today

A hang is judged right where the first that is said of it, within 10 s of the last sign of life, has
the right class and names the right ranks; of a quiet that ends nothing is to be said. --jobs: so many in
all, kinds in turn. --act: with --on-hang=stop --on-hang-after S in place of --on-hang=report. --keep has
the traces of --hang-trace, KIND-SEED.trace, with what is known of each in its first line. What a
job needs and the machine lacks is said, and not tried. Root's, for namespaces; needs torch."""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'process')]
import waiting  # noqa: E402
from hang_fs import HangFS  # noqa: E402
from kinds import KINDS, WATCHED_S, WITHIN_S  # noqa: E402
from peer import Peer  # noqa: E402

PYTHON = '/usr/bin/python3'  # Debian's, which has torch
ALONE = ['unshare', '-n', 'sh', '-c', 'ip link set lo up; exec "$@"', 'sh']
LIMIT_S = 180  # a job that does not come on is no trial
ENDED = 121  # as it hangs
RIGHT_OF_HANGS, FALSE_OF_QUIETS = 0.96, 0.05
STALLED_S = 3  # at a time: with the looks around it still less than what makes a hang
BY_TRIAL = ('cut', 'mount', 'stall', 'paused')  # it is the trial that does these
NEWS = re.compile(r't=(\d+) (suspect|certain|cleared)(?: (\w+) ([\d,]+|-))?')


class NoTrial(Exception):
    """It did not come to what was to be tried."""


@dataclass
class Outcome:
    kind: object
    seed: int
    right: bool
    said: str
    after_s: float | None = None  # of the last sign of life
    acted: bool = False
    names_wrong: bool = False  # a rank


class Place:
    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix='witness-'))

    def read(self, name):
        try:
            return (self.path / name).read_text()
        except FileNotFoundError:
            return ''

    def leave(self, name, text=''):
        (self.path / f'.{name}').write_text(text)
        (self.path / f'.{name}').rename(self.path / name)


def now_ms():
    return int(time.monotonic() * 1000)


def until(condition, job):
    def comes():
        if job.poll() is not None:
            raise NoTrial(f'the job ended with {job.returncode}')
        return condition()

    waiting.until(comes, 'what is to be tried', LIMIT_S, NoTrial)


def inodes_of(pid):
    found = set()
    for fd in pathlib.Path(f'/proc/{pid}/fd').iterdir():
        with contextlib.suppress(FileNotFoundError):
            link = os.readlink(fd)
            if link.startswith('socket:['):
                found.add(link[8:-1])
    return found


def ports_of(pid):
    """Own ports of its connections with other workers, which are all but those with the store."""
    own = inodes_of(pid)
    environ = pathlib.Path(f'/proc/{pid}/environ').read_text().split('\0')
    store = next(int(word[12:]) for word in environ if word.startswith('MASTER_PORT='))
    for row in pathlib.Path(f'/proc/{pid}/net/tcp').read_text().splitlines()[1:]:
        words = row.split()
        local, remote = (int(words[i].split(':')[1], 16) for i in (1, 2))
        if words[3] == '01' and words[9] in own and store not in (local, remote):
            yield local


def cut_off(pid):
    """Nothing that it sends or is sent over these arrives."""
    rules = ''.join(f'-A INPUT -p tcp --{end} {port} -j DROP\n' for port in ports_of(pid)
                    for end in ('sport', 'dport'))
    subprocess.run(['nsenter', '-t', str(pid), '-n', 'iptables-restore'], check=True,
                   input=f'*filter\n{rules}COMMIT\n', text=True)


class Job:
    def __init__(self, choice, build, act_s=None):
        self.choice, self.kind, self.place, self.peer = choice, choice.kind, Place(), Peer()
        on_hang = ['--on-hang=stop', f'--on-hang-after={act_s}'] if act_s else ['--on-hang=report']
        self.fs = HangFS(self.place) if 'fuse' in self.kind.needs else None
        argv = [*(ALONE if 'net' in self.kind.needs else ()), *(self.fs.mount if self.fs else ()),
                str(build / 'launchd'), '--nproc_per_node=4', '--use_env', f'--python={PYTHON}', '--store=agent',
                *on_hang, f'--hang-trace={self.place.path}/trace',
                f'--events={self.place.path}/events', str(HERE / 'job.py'), self.kind.name,
                str(choice.seed), str(self.place.path)]
        with open(self.place.path / 'said', 'wb') as said:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
                pass_fds=[self.fs.fd] if self.fs else [],
                env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'OMP_NUM_THREADS': '1',
                     'GLOO_SOCKET_IFNAME': 'lo', 'HOME': str(self.place.path),
                     'PEER_PORT': str(self.peer.port), 'LAUNCHD_CONTROL': 'off', 'PYTHONDONTWRITEBYTECODE': '1',
                     'TMPDIR': str(self.place.path)})

    def rest(self, seconds):
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self.process.wait(seconds) != ENDED:
                raise NoTrial(f'the job ended with {self.process.returncode}')

    def begin(self):
        self.place.leave('onset', str(time.monotonic()))

    # what a trial does itself

    def cut(self):
        cut_off(int(self.place.read(f'pid.{self.choice.rank}')))
        self.begin()

    def mount(self):
        self.fs.stop()
        self.begin()

    def stall(self):
        self.begin()
        end = time.monotonic() + self.choice.quiet_s
        while time.monotonic() < end:
            self.fs.stop()
            self.rest(STALLED_S)
            self.fs.go_on()
            self.rest(0.3)
        self.place.leave('over')

    def paused(self):
        self.begin()
        self.process.send_signal(signal.SIGTSTP)
        self.rest(self.choice.quiet_s)
        self.process.send_signal(signal.SIGCONT)
        self.place.leave('over')

    def run(self):
        trial_does = getattr(self, self.kind.does, None) if self.kind.does in BY_TRIAL else None
        if trial_does:
            until(lambda: self.place.read('ready') or (self.place.path / 'ready').exists(),
                  self.process)
            self.rest(self.choice.quiet_s / 10)
            trial_does()
        until(lambda: self.place.read('onset'), self.process)
        if self.kind.hangs:
            self.rest(WATCHED_S)
        elif self.process.wait(LIMIT_S) not in (0, ENDED):
            raise NoTrial(f'the job ended with {self.process.returncode}')

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
        if self.fs:
            self.fs.close()
        self.peer.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.place.path, ignore_errors=True)


def judge(choice, trace, onset_ms, within_s):
    """What was said first behind the onset; before that nothing is to be said."""
    moved = onset_ms
    for line in trace.splitlines():
        if re.match(r't=\d+ moved', line):
            moved = max(moved, int(line.split()[0][2:]))
        match = NEWS.match(line)
        if not match:
            continue
        at, news, class_, ranks = int(match[1]), match[2], match[3], match[4]
        if news != 'suspect':
            continue
        ranks = [int(rank) for rank in ranks.split(',')] if ranks != '-' else []
        after = (at - moved) / 1000
        said = f'{class_} {ranks}'
        good = choice.is_right(class_, ranks) and at >= onset_ms and after <= within_s
        wrong = choice.kind.hangs and ranks not in ([], [choice.rank])
        return Outcome(choice.kind, choice.seed, good, said, after, names_wrong=wrong)
    return Outcome(choice.kind, choice.seed, not choice.kind.hangs, 'nothing')


def keep(directory, job, trace, onset_ms):
    choice = job.choice
    over_ms = 0
    if not choice.kind.hangs:
        if not (job.place.path / 'over').exists():  # it was ended
            return
        over = (job.place.path / 'over').stat().st_mtime
        over_ms = int((time.monotonic() - time.time() + over) * 1000)
    right = ','.join(f'{class_}:{named:d}' for class_, named in choice.kind.right) or '-'
    first = (f'# kind={choice.kind.name} seed={choice.seed} rank={choice.rank} onset={onset_ms} '
             f'over={over_ms} right={right}')
    (directory / f'{choice.kind.name}-{choice.seed}.trace').write_text(f'{first}\n{trace}')


def try_once(choice, build, kept=None, within_s=WITHIN_S, act_s=None):
    """One job; two more where it does not come to what is tried."""
    for left in (2, 1, 0):
        job = Job(choice, build, act_s)
        try:
            job.run()
            onset_ms = int(float(job.place.read('onset')) * 1000)
            trace = job.place.read('trace')
            if kept:
                keep(kept, job, trace, onset_ms)
            outcome = judge(choice, trace, onset_ms, within_s)
            outcome.acted = bool(re.search(r'^t=\d+ certain', trace, re.M))
            return outcome
        except NoTrial as why:
            said = job.place.read('said')[-2000:]
            print(f'{choice.kind.name} {choice.seed}: no trial: {why}\n{said}', flush=True)
            if not left:
                return Outcome(choice.kind, choice.seed, False, f'no trial: {why}')
        finally:
            job.end()


def replayed(trace, build):
    """What would be said of it today, among what moved, in the order of time."""
    said = subprocess.run([build / 'tests/unit/daemon/witness/witness_trace', 'replay'], input=trace,
                          text=True, capture_output=True, check=True).stdout
    lines = re.findall(r'^t=\d+ moved$', trace, re.M) + said.splitlines()
    return '\n'.join(sorted(lines, key=lambda line: int(line[2:line.index(' ')])))


def judge_again(directory, build):
    for path in sorted(directory.glob('*.trace')):
        trace = path.read_text()
        head = dict(word.split('=') for word in trace[2:trace.index('\n')].split())
        choice = KINDS[head['kind']].choice(int(head['seed']))
        said = replayed(trace, build)
        outcome = judge(choice, said, int(head['onset']), WITHIN_S)
        outcome.acted = ' certain ' in said
        yield outcome


def lacks(kind):
    """What it needs that is not there; None: nothing."""
    if 'fuse' in kind.needs and not os.path.exists('/dev/fuse'):
        return '/dev/fuse'
    return next((tool for tool in ('iptables', 'gcc') if tool in kind.needs and not shutil.which(
        tool, path='/usr/sbin:/usr/bin:/sbin:/bin')), None)


def table(outcomes):
    rows = []
    for kind in KINDS.values():
        of = [outcome for outcome in outcomes if outcome.kind == kind]
        if not of:
            continue
        times = [outcome.after_s for outcome in of if outcome.after_s is not None]
        late = f'{max(times):.1f} s' if times else ''
        said = Counter(outcome.said for outcome in of if not outcome.right)
        rows.append(f'{kind.name:25} {"hangs" if kind.hangs else "quiet":6}'
                    f'{sum(outcome.right for outcome in of):3}/{len(of)}  {late:8}'
                    f'{"; ".join(f"{n} x {what}" for what, n in said.items())}')
    return rows


def sums(outcomes):
    """The lines of the sum, and whether it holds the bars."""
    hangs = [outcome for outcome in outcomes if outcome.kind.hangs]
    quiets = [outcome for outcome in outcomes if not outcome.kind.hangs]
    right = sum(outcome.right for outcome in hangs)
    false = sum(not outcome.right for outcome in quiets)
    acted = sum(outcome.acted and not (outcome.kind.hangs and outcome.right) for outcome in outcomes)
    wrong = sum(outcome.names_wrong for outcome in hangs)
    good = (right >= RIGHT_OF_HANGS * len(hangs) and false <= FALSE_OF_QUIETS * len(quiets) and
            not acted and not wrong)
    return [f'hangs: {right} of {len(hangs)} suspected right, within {WITHIN_S} s',
            f'quiets: {false} of {len(quiets)} suspected',
            f'false actions: {acted}; a wrong rank: {wrong}'], good


def main():
    parse = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument('--jobs', type=int)
    parse.add_argument('--of-each', type=int, default=5)
    parse.add_argument('--act', type=int)
    parse.add_argument('--seed', type=int, default=0)
    parse.add_argument('--at-once', type=int, default=1)
    parse.add_argument('--keep', type=pathlib.Path)
    parse.add_argument('--again', type=pathlib.Path)
    parse.add_argument('--build', type=pathlib.Path, default=HERE.parent.parent / 'build')
    parse.add_argument('kinds', nargs='*', metavar='KIND', choices=[*KINDS, []])
    said = parse.parse_args()
    if said.again:
        finish(list(judge_again(said.again, said.build)))
    if said.keep:
        said.keep.mkdir(parents=True, exist_ok=True)
    kinds = [KINDS[name] for name in said.kinds or KINDS]
    for kind in [kind for kind in kinds if lacks(kind)]:
        print(f'{kind.name}: not tried, as {lacks(kind)} is missing')
        kinds.remove(kind)
    each = -(-said.jobs // len(kinds)) if said.jobs else said.of_each
    choices = [kind.choice(seed) for seed in range(said.seed, said.seed + each) for kind in kinds]
    outcomes = []
    with ThreadPoolExecutor(said.at_once) as pool:
        for outcome in pool.map(lambda choice: try_once(
                choice, said.build.resolve(), said.keep, act_s=said.act), choices[:said.jobs]):
            after = '' if outcome.after_s is None else f' after {outcome.after_s:.1f} s'
            print(f'{outcome.kind.name} {outcome.seed}: {"right" if outcome.right else "WRONG"}: '
                  f'{outcome.said}{after}{", acted" if outcome.acted else ""}', flush=True)
            outcomes.append(outcome)
    finish(outcomes)


def finish(outcomes):
    lines, good = sums(outcomes)
    print('', *table(outcomes), '', *lines, sep='\n')
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
