"""deepspeed.initialize with ZeRO 1, on CPUs."""
import os

import deepspeed
import torch
from deepspeed import comm

torch.manual_seed(0)
net = torch.nn.Linear(1, 1)
engine, _, _, _ = deepspeed.initialize(
    model=net, model_parameters=net.parameters(), dist_init_required=True, config={
        "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
    }, optimizer=torch.optim.SGD(net.parameters(), lr=0.01))
rank, world = engine.global_rank, engine.world_size

ranks = torch.tensor([rank])
comm.all_reduce(ranks)

x = torch.tensor([[1.0], [1.0 + rank]])
losses = []
for _ in range(2):
    loss = torch.nn.functional.mse_loss(engine(x), 3 * x)
    engine.backward(loss)
    engine.step()
    losses.append(loss.item())

print(f"rank {rank} of {world}, local rank {engine.local_rank} of "
      f"{os.environ['LOCAL_WORLD_SIZE']}: sum {ranks.item()}, losses {losses[0]:.4f} {losses[1]:.4f}, "
      f"weight {engine.module.weight.item():.4f}")
comm.destroy_process_group()
