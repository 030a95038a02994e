"""One rank: a process group of gloo over the store that the environment names, and collectives.
Prints what it found. With an argument it stops for good before its second barrier."""
import datetime
import json
import os
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group('gloo', timeout=datetime.timedelta(seconds=120))
rank, world = dist.get_rank(), dist.get_world_size()
found = {'rank': rank}

total = torch.tensor([float(rank + 1)])
dist.all_reduce(total)
found['sum'] = total.item()
if len(sys.argv) > 1:
    print('here', flush=True)
    if rank == 0:
        time.sleep(600)
    dist.barrier()
dist.barrier()
dist.monitored_barrier(timeout=datetime.timedelta(seconds=60))
objects = [None] * world
dist.all_gather_object(objects, {'rank': rank, 'text': 'x' * 1000 * (rank + 1)})
found['objects'] = [len(o['text']) for o in objects]
even = dist.new_group(list(range(0, world, 2)))
if rank % 2 == 0:
    part = torch.tensor([1.0])
    dist.all_reduce(part, group=even)
    found['part'] = part.item()
words = ['from 0'] if rank == 0 else [None]
dist.broadcast_object_list(words)
found['words'] = words[0]
dist.barrier()
if torch.__version__.startswith('2.1.'):
    # destroying a group of gloo holds the GIL and joins a thread that may want it, to free a tensor
    print(json.dumps(found), flush=True)
    os._exit(0)
dist.destroy_process_group()
print(json.dumps(found), flush=True)
