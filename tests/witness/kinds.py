"""What happens to a job of tests/witness: twelve ways to hang, and ten to be quiet for a while and go
on. What is right to say of each; and by a seed when it happens, to which rank, and for how long."""
import random
from dataclasses import dataclass, field

RANKS = 4
WITHIN_S = 10  # of the last sign of life a hang is to be suspected
WATCHED_S = 14  # a job that hangs is watched for so long; longer than that
SHORT_S, LONG_S = 12, 18  # a benign quiet lasts: longer than a hang takes to be suspected


@dataclass(frozen=True)
class Kind:
    """right: a class, and whether the rank in trouble is named; nothing: it is to be said nothing.
    needs: "net": the job is alone in a network namespace, "fuse": it has a file system of ours,
    "tools": programs. rank: the only one that it happens to."""
    name: str
    says: str
    right: tuple = ()
    needs: tuple = ()
    rank: int | None = None

    @property
    def hangs(self):
        return bool(self.right)

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

    def __post_init__(self):
        chance = random.Random(f'{self.kind.name} {self.seed}')
        rank = chance.randrange(RANKS)
        steps = chance.randrange(60, 140)
        quiet_s = chance.uniform(SHORT_S, LONG_S)
        prints = chance.choice([0, 20, 50])
        for name, value in (('rank', rank if self.kind.rank is None else self.kind.rank),
                            ('steps', steps), ('quiet_s', quiet_s), ('prints', prints)):
            object.__setattr__(self, name, value)

    def is_right(self, class_, ranks):
        return any(class_ == right and list(ranks) == ([self.rank] if named else [])
                   for right, named in self.kind.right)


ITS = (('outside', True),)

HANGS = (
    Kind('sleep', 'it sleeps for ever', ITS),
    Kind('lock', 'it waits for a lock that it has itself', ITS),
    Kind('spin', 'it waits in a loop of Python for a flag', (('spinning', True),)),
    Kind('dead_loader', 'its loader was killed, and it waits for what that would have sent', ITS),
    Kind('desync', 'it gathers where the others reduce',
         (('desync', True), ('desync', False), ('outside', True))),
    Kind('skipped', 'it skips a collective, and waits in the store for the others to come on', ITS,
         ('store',)),
    Kind('shape', 'it reduces a tensor of another size',
         (('desync', True), ('desync', False), ('outside', True))),
    Kind('stopped', 'it gets SIGSTOP', (('stopped', True),)),
    Kind('cut', 'its connections with the others lose all packets', (('all_wait', False),),
         ('net', 'iptables')),
    Kind('mount', 'the file system that it writes to does not answer', (('stopped', True),),
         ('fuse',)),
    Kind('pipe', 'it and its child write to each other, and neither reads', ITS),
    Kind('store_key', 'it waits for a key of the store that nobody sets', ITS, ('store',)),
)

BENIGN = (
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
)

KINDS = {kind.name: kind for kind in HANGS + BENIGN}
