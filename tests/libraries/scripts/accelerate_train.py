"""Accelerate: the Accelerator wraps model, optimizer and data, and knows who it is."""
import os

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
rank, world = accelerator.process_index, accelerator.num_processes

torch.manual_seed(0)
model = torch.nn.Linear(1, 1)
x = torch.arange(1.0, 2 * world + 1).reshape(-1, 1)
model, optimizer, loader = accelerator.prepare(
    model, torch.optim.SGD(model.parameters(), lr=0.01),
    DataLoader(TensorDataset(x, 3 * x), batch_size=2))
losses = []
for _ in range(2):
    for batch, target in loader:
        loss = torch.nn.functional.mse_loss(model(batch), target)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        losses.append(loss.item())

total = accelerator.reduce(torch.tensor([rank]), reduction="sum")
weight = accelerator.unwrap_model(model).weight.item()
print(f"rank {rank} of {world}, local rank {accelerator.local_process_index} of "
      f"{os.environ['LOCAL_WORLD_SIZE']}: sum {total.item()}, losses {losses[0]:.4f} {losses[1]:.4f}, "
      f"weight {weight:.4f}")
accelerator.end_training()
