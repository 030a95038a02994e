"""DistributedDataParallel: two steps that all ranks take together, each with a batch of its own."""
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()

ranks = torch.tensor([rank])
dist.all_reduce(ranks)

torch.manual_seed(rank)  # DDP hands rank 0's weights to all
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
      f"weight {model.module.weight.item():.4f}")
dist.destroy_process_group()
