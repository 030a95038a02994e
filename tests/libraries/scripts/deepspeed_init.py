"""deepspeed.init_distributed alone, for a training loop of one's own."""
import os

import deepspeed
import torch
from deepspeed import comm

deepspeed.init_distributed(dist_backend="gloo")
rank, world = comm.get_rank(), comm.get_world_size()

ranks = torch.tensor([rank])
comm.all_reduce(ranks)

torch.manual_seed(0)
model = torch.nn.Linear(1, 1)
x = torch.tensor([[1.0], [1.0 + rank]])
losses = []
for _ in range(2):
    loss = torch.nn.functional.mse_loss(model(x), 3 * x)
    model.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        comm.all_reduce(parameter.grad)
        parameter.data -= 0.01 / world * parameter.grad
    losses.append(loss.item())

print(f"rank {rank} of {world}, local rank {comm.get_local_rank()} of "
      f"{os.environ['LOCAL_WORLD_SIZE']}: sum {ranks.item()}, losses {losses[0]:.4f} {losses[1]:.4f}, "
      f"weight {model.weight.item():.4f}")
comm.destroy_process_group()
