"""What happens to a job of tests/witness: ways to hang, and to be quiet for a while and go on, some of them
beside a monitor that ticks. What is right to say of each; and by a seed when it happens, to which rank, and
for how long."""
import random
from dataclasses import dataclass, field

RANKS = 4
WITHIN_S = 10  # of the last sign of life a hang is to be suspected
WATCHED_S = 14  # a job that hangs is watched for so long; longer than that
SHORT_S, LONG_S = 12, 18  # a benign quiet lasts: longer than a hang takes to be suspected
HABIT_S = (15, 20)  # for which one beside a monitor, or with a loader that always works, has moved
SLOW, FAST = (10_000, 30_000), (100_000, 1_000_000)  # bytes a second


@dataclass(frozen=True)
class Kind:
    """right: a class, and whether the rank in trouble is named; nothing: it is to be said nothing.
    needs: "net": the job is alone in a network namespace, "fuse": it has a file system of ours,
    "tools": programs. rank: the only one that it happens to. beside: a function of monitors.py; everywhere:
    in each rank, late: from when it happens. rates: of what it receives or sends. habit: it is one that has to
    be known before."""
    name: str
    says: str
    right: tuple = ()
    needs: tuple = ()
    rank: int | None = None
    beside: str = ''
    everywhere: bool = False
    late: bool = False
    rates: tuple = ()
    habit: bool = False

    @property
    def hangs(self):
        return bool(self.right)

    @property
    def does(self):
        """The name of its function, in hangs.py or quiets.py."""
        return self.name.partition('+')[0].removesuffix('_slow')

    def choice(self, seed):
        return Choice(self, seed)


@dataclass(frozen=True)
class Choice:
    kind: Kind
    seed: int
    rank: int = field(init=False)
    steps: int = field(init=False)  # before it
    quiet_s: float = field(init=False)
    prints: int = field(init=False)  # every so many steps rank 0 writes a line; 0: never
    rate: int = field(init=False)
    pause_s: float = field(init=False)  # between what a loader does
    habit_s: float = field(init=False)  # before it, at the least

    def __post_init__(self):
        chance = random.Random(f'{self.kind.name} {self.seed}')
        rank = chance.randrange(RANKS)
        steps = chance.randrange(60, 140)
        quiet_s = chance.uniform(SHORT_S, LONG_S)
        prints = chance.choice([0, 20, 50])
        learns = self.kind.habit or (self.kind.beside and not self.kind.late)
        for name, value in (('rank', rank if self.kind.rank is None else self.kind.rank),
                            ('steps', steps), ('quiet_s', quiet_s), ('prints', prints),
                            ('rate', chance.choice(self.kind.rates or (0,))),
                            ('pause_s', chance.choice([0, 0.05, 0.2])),
                            ('habit_s', chance.uniform(*HABIT_S) if learns else 0)):
            object.__setattr__(self, name, value)

    def is_right(self, class_, ranks):
        return any(class_ == right and list(ranks) == ([self.rank] if named else [])
                   for right, named in self.kind.right)


ITS = (('outside', True),)
SPINS = (('spinning', True), ('outside', True))  # the latter where it gets little CPU time
STOPPED = (('stopped', True),)
OUT_OF_STEP = (('desync', True), ('desync', False), ('outside', True))
NOBODYS = (('all_wait', False), ('desync', False))

# says; whether each rank has it: those that take more CPU time only the one that it happens to
MONITORS = {
    'program': ('a thread runs a small program each second', True),
    'python': ('a thread runs a Python program each second', False),
    'all_proc': ('a child reads all of /proc each second', False),
    'own_proc': ('a thread reads its own /proc each second', True),
    'writer': ('a thread writes to a file each second', True),
    'upload': ('a thread sends 20 KB each second', True),
    'uploader': ('a child sends 20 KB each second', True),
    'bursts': ('a thread runs programs and writes 1 MB each 7 s', False),
    'irregular': ('a thread runs programs now and then', False),
}

ALONE = (
    Kind('sleep', 'it sleeps for ever', ITS),
    Kind('lock', 'it waits for a lock that it has itself', ITS),
    Kind('spin', 'it waits in a loop of Python for a flag', SPINS),
    Kind('dead_loader', 'its loader was killed, and it waits for what that would have sent', ITS),
    Kind('desync', 'it gathers where the others reduce', OUT_OF_STEP),
    Kind('skipped', 'it skips a collective, and waits in the store for the others to come on', ITS,
         ('store',)),
    Kind('shape', 'it reduces a tensor of another size', OUT_OF_STEP),
    Kind('stopped', 'it gets SIGSTOP', STOPPED),
    Kind('cut', 'its connections with the others lose all packets', (('all_wait', False),),
         ('net', 'iptables')),
    Kind('mount', 'the file system that it writes to does not answer', STOPPED, ('fuse',)),
    Kind('pipe', 'it and its child write to each other, and neither reads', ITS),
    Kind('store_key', 'it waits for a key of the store that nobody sets', ITS, ('store',)),
    Kind('empty_pipe', 'it reads a pipe that nobody writes to', ITS),
    Kind('silent', 'it waits for a server that never answers', ITS),
    Kind('left', 'its script has ended, one of its threads has not', ITS),
    Kind('all_wait', 'each rank receives from the next one', NOBODYS),
    Kind('endless_child', 'it waits for a child that does not end', ITS),
    Kind('loader_stopped', 'a worker of its DataLoader is stopped', STOPPED),
    Kind('loader_locked', 'a worker of its DataLoader waits for a lock', ITS),
    Kind('prefetch', 'it waits for a lock, while its DataLoader loads what it still may', ITS),
)

QUIET = (
    Kind('checkpoint', 'rank 0 writes a checkpoint, the others wait', rank=0),
    Kind('compile', 'it runs a compiler, the others wait', needs=('gcc',)),
    Kind('evaluation', 'rank 0 evaluates the model, the others wait', rank=0),
    Kind('back_off', 'it sleeps, and tries again'),
    Kind('first_step', 'its first step takes long'),
    Kind('gc', 'it collects garbage in a large heap'),
    Kind('stall', 'its file server answers now and then', needs=('fuse',)),
    Kind('logging', 'rank 0 writes records to a file', rank=0),
    Kind('loading', 'its loader reads and decodes for long'),
    Kind('paused', 'the user presses Ctrl-Z, and goes on later'),
    Kind('sleep_20', 'it sleeps for 20 s'),
    *(Kind(f'download_{who}{slow}', f'{says} receives {"10 to 30 KB" if slow else "0.1 to 1 MB"} a second',
           rates=SLOW if slow else FAST)
      for who, says in (('rank', 'it'), ('thread', 'a thread that it waits for'),
                        ('child', 'a child that it waits for'))
      for slow in ('', '_slow')),
    Kind('upload_child', 'a child that it waits for sends 0.1 to 1 MB a second', rates=FAST),
    Kind('read_rank', 'it reads a file bit by bit'),
    Kind('read_thread', 'a thread that it waits for reads a file'),
    Kind('read_child', 'a child that it waits for reads a file'),
    Kind('checkpoint_thread', 'a thread that it waits for writes a checkpoint'),
    Kind('checkpoint_child', 'a child that it waits for writes a checkpoint'),
    Kind('data_loader', 'the workers of its DataLoader decode for long'),
    Kind('busy_loader', 'its loader decodes all the time, and it waits for that', habit=True),
    Kind('steady_loader', 'its loader reads 0.6 MB a second all the time, and it waits for that', habit=True),
    Kind('pin', 'a thread hands it what a loader sends'),
    Kind('pool', 'its pool of processes tokenizes'),
    Kind('validation', 'it validates, and its loader is slower than that'),
    Kind('tokens', 'it counts words'),
    Kind('shuffle', 'it permutes a large tensor'),
    Kind('copy', 'it copies a file again and again'),
    Kind('compile_pool', 'its threads run compilers', needs=('gcc',)),
    Kind('evaluator', 'it runs a program that computes'),
    Kind('pipeline', 'it runs a pipeline of programs'),
)


def beside(kinds, pairs):
    """"lock+program": the same, and a monitor ticks; "lock+program+late": from when it happens."""
    by_name = {kind.name: kind for kind in kinds}
    for pair in pairs.split():
        name, monitor, *late = pair.split('+')
        kind, (says, everywhere) = by_name[name], MONITORS[monitor]
        yield Kind(pair, f'{kind.says}; {says}{", from then on" if late else ""}', kind.right, kind.needs,
                   kind.rank, monitor, everywhere, bool(late), kind.rates, kind.habit)


HANGS = (*ALONE, *beside(ALONE, '''
    lock+program lock+python lock+all_proc lock+own_proc lock+writer lock+upload lock+bursts lock+irregular
    lock+program+late spin+program spin+own_proc spin+writer sleep+own_proc pipe+own_proc silent+writer
    silent+upload silent+uploader loader_stopped+program loader_locked+own_proc endless_child+own_proc
    dead_loader+all_proc stopped+all_proc desync+program store_key+python all_wait+own_proc left+program'''))

BENIGN = (*QUIET, *beside(QUIET, '''
    download_child+program download_thread+own_proc data_loader+irregular evaluation+python
    checkpoint_child+all_proc pipeline+irregular compile+program read_thread+writer pin+own_proc
    logging+bursts tokens+own_proc'''))

KINDS = {kind.name: kind for kind in HANGS + BENIGN}
