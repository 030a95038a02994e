"""FSDP2 (fully_shard) on CPUs: each rank has a quarter of the weights."""
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()

ranks = torch.tensor([rank])
dist.all_reduce(ranks)

torch.manual_seed(0)
model = torch.nn.Linear(8, 8)
fully_shard(model, mesh=init_device_mesh("cpu", (world,)))
assert model.weight.to_local().shape == (8 // world, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.eye(8) + rank
losses = []
for _ in range(2):
    loss = torch.nn.functional.mse_loss(model(x), 3 * x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

whole = model.weight.full_tensor()
print(f"rank {rank} of {world}, local rank {os.environ['LOCAL_RANK']} of "
      f"{os.environ['LOCAL_WORLD_SIZE']}: sum {ranks.item()}, losses {losses[0]:.4f} {losses[1]:.4f}, "
      f"weight {whole.sum().item():.4f}")
dist.destroy_process_group()
