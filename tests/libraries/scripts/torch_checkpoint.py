"""Distributed checkpoints, written while the training goes on (dcp.async_save), and read again."""
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()

ranks = torch.tensor([rank])
dist.all_reduce(ranks)

saving_group = dist.new_group(backend="gloo")  # it saves in a thread: the training needs its own
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.tensor([[1.0], [1.0 + rank]])
losses = []
for step in range(2):
    loss = torch.nn.functional.mse_loss(model(x), 3 * x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step:
        saving.result()  # one at a time
    saving = dcp.async_save({"model": model.state_dict()}, checkpoint_id=f"checkpoint/{step}",
                            process_group=saving_group)
saving.result()
trained = model.module.weight.item()

state = {"model": {name: torch.zeros_like(value) for name, value in model.state_dict().items()}}
dcp.load(state, checkpoint_id="checkpoint/1")
assert state["model"]["module.weight"].item() == trained
print(f"rank {rank} of {world}, local rank {os.environ['LOCAL_RANK']} of "
      f"{os.environ['LOCAL_WORLD_SIZE']}: sum {ranks.item()}, losses {losses[0]:.4f} {losses[1]:.4f}, "
      f"weight {trained:.4f}")
dist.destroy_process_group()
