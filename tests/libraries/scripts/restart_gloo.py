"""Collectives of gloo; rank 2 dies in the first attempt, at the place that the argument names."""
import datetime
import os
import sys

import torch
import torch.distributed as dist

rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
attempt = int(os.environ['TORCHELASTIC_RESTART_COUNT'])


def at(place):
    if attempt == 0 and rank == 2 and sys.argv[1] == place:
        os._exit(5)


at('start')
dist.init_process_group('gloo', timeout=datetime.timedelta(seconds=120))
at('group')
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
assert total.item() == world * (world + 1) / 2
some = list(range(world - 1))
part = dist.new_group(some)
if rank in some:
    count = torch.ones(1)
    dist.all_reduce(count, group=part)
    assert count.item() == len(some)
dist.monitored_barrier(timeout=datetime.timedelta(seconds=120))
at('barrier')
found = [None] * world
dist.all_gather_object(found, (rank, attempt))
assert found == [(r, attempt) for r in range(world)], found
dist.destroy_process_group()
sys.stdout.write(f'rank {rank} attempt {attempt}\n')
