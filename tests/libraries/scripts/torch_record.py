"""@record, which hands an exception's traceback to the launcher's report: rank 3 fails after two steps."""
import os

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    ranks = torch.tensor([rank])
    dist.all_reduce(ranks)

    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.tensor([[1.0], [1.0 + rank]])
    losses = []
    for _ in range(2):
        loss = torch.nn.functional.mse_loss(model(x), 3 * x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    print(f"rank {rank} of {world}, local rank {os.environ['LOCAL_RANK']} of "
          f"{os.environ['LOCAL_WORLD_SIZE']}: sum {ranks.item()}, losses {losses[0]:.4f} {losses[1]:.4f}, "
          f"weight {model.module.weight.item():.4f}", flush=True)
    dist.barrier()  # all have said it
    if rank == 3:
        raise ValueError("the loss of rank 3 is NaN")
    dist.barrier()  # where the others wait until they are ended


main()
