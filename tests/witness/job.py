"""A job of gloo in which something happens: job.py KIND SEED DIR, see kinds.py.

It computes and reduces; after some steps one rank comes to what is to happen. When that begins, the
file `onset` in DIR has the time, in seconds of the monotonic clock; where the trial is to do it, it
waits for the file `ready`. A quiet that has ended leaves `over`; some steps later the job ends."""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

import hangs
import monitors
import quiets
from frame import choice, kind, mine, place, rank
from quiets import Background, decode, read_big

REST = 40  # steps behind a quiet
HOURS = datetime.timedelta(hours=2)
WAYS = {'gc': quiets.collect, 'stall': hangs.mount, 'cut': quiets.paused}
# those of loaders that work from the beginning, and the pause between what they do
BACKGROUND = {'busy_loader': (lambda: decode(0.1), 0), 'steady_loader': (read_big, 0.1)}

weights = torch.rand(400, 400)
parameters, gradients = torch.zeros(4_000_000), torch.ones(4_000_000)  # a small model's


def step(number):
    torch.mm(weights, weights)
    parameters.add_(gradients, alpha=-0.01)
    time.sleep(0.02)  # a step takes a while
    dist.all_reduce(torch.ones(1000))
    if rank == 0 and choice.prints and number % choice.prints == 0:
        print(f'step {number}', flush=True)


def steps_until(is_over, number):
    """All go on for as long as rank 0 does not say. Returns the number of the next step."""
    while True:
        step(number)
        number += 1
        over = torch.tensor(float(rank == 0 and is_over()))
        dist.all_reduce(over)
        if over:
            return number


def is_over():
    return (place / 'over').exists()


def way_of(kind):
    if kind.does in BACKGROUND:
        return Background(*BACKGROUND[kind.does]).use
    if kind.does in WAYS:
        return WAYS[kind.does]
    return getattr(hangs if kind.hangs else quiets, kind.does)


def others():
    if kind.does == 'shape':
        dist.all_reduce(torch.ones(hangs.BUCKET))
    elif kind.does == 'all_wait':
        hangs.wait_for_next()


def steps_before():
    if kind.does == 'first_step':
        return 0
    end = time.monotonic() + choice.habit_s
    for number in range(choice.steps):
        step(number)
    return steps_until(lambda: time.monotonic() >= end, choice.steps) if choice.habit_s else choice.steps


def main():
    monitor = getattr(monitors, kind.beside) if kind.beside else None
    ticks = monitor and (mine or kind.everywhere)
    way = way_of(kind) if mine else others
    if ticks and not kind.late:
        monitor()
    dist.init_process_group('gloo', timeout=HOURS)
    (place / f'new.{rank}').write_text(str(os.getpid()))
    (place / f'new.{rank}').rename(place / f'pid.{rank}')
    before = steps_before()
    if ticks and kind.late:
        monitor()
    way()
    number = steps_until(is_over, before)
    for more in range(REST):
        step(number + more)


main()
sys.stdout.flush()
os._exit(0)  # threads of gloo abort now and then where the interpreter ends under them
