"""torch.distributed.rpc: rank 0 has the weights, and all ranks send it their gradients."""
import os

import torch
from torch.distributed import rpc

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
weight = torch.tensor([0.0])  # rank 0's is the one that counts
told = []  # by whom rank 0 was called


def tell(number):
    told.append(number)


def step(gradient):
    weight.sub_(0.01 * gradient)


def read():
    return weight.clone(), sum(told)


def everybody():
    """Waits for all: rpc has a barrier of its own, which it also uses at its end."""
    rpc.api._all_gather(None)


rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world)
rpc.rpc_sync("worker0", tell, args=(rank,))
x, losses = torch.tensor([1.0, 1.0 + rank]), []
for _ in range(2):
    everybody()
    mine, _ = rpc.rpc_sync("worker0", read)
    mine.requires_grad_()
    loss = torch.nn.functional.mse_loss(mine * x, 3 * x)
    loss.backward()
    everybody()
    rpc.rpc_sync("worker0", step, args=(mine.grad / world,))
    losses.append(loss.item())

everybody()
trained, total = rpc.rpc_sync("worker0", read)
print(f"rank {rank} of {world}, local rank {os.environ['LOCAL_RANK']} of "
      f"{os.environ['LOCAL_WORLD_SIZE']}: sum {total}, losses {losses[0]:.4f} {losses[1]:.4f}, "
      f"weight {trained.item():.4f}")
rpc.shutdown()
