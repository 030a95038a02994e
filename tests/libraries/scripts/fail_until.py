"""Meets by gloo, sums ranks, and fails on another rank in each attempt until the last one."""
import os
import sys

import torch
import torch.distributed as dist

attempt, last = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(sys.argv[1])
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
total = torch.tensor([float(rank)])
dist.all_reduce(total)
assert total.item() == world * (world - 1) / 2, total
dist.barrier()
if attempt < last and rank == (attempt * 3 + 1) % world:
    os._exit(7)
dist.barrier()
sys.stdout.write(f"rank {rank} of {world} done in attempt {attempt}\n")  # in one write, or others mix
dist.destroy_process_group()
