"""A DataLoader with two worker processes, and a DistributedSampler that deals the data out."""
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    x = torch.arange(1.0, 2 * world + 1).reshape(-1, 1)
    data = TensorDataset(x, 3 * x, torch.arange(2 * world) // 2)
    loader = DataLoader(data, batch_size=1, num_workers=2,
                        sampler=DistributedSampler(data, shuffle=False))

    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    losses, seen = [], torch.zeros(1, dtype=torch.int64)
    for _ in range(2):
        total = 0.0
        for batch, target, number in loader:
            loss = torch.nn.functional.mse_loss(model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            seen += number
        losses.append(total)

    dist.all_reduce(seen)  # twice over the data, where each rank's number stands twice
    print(f"rank {rank} of {world}, local rank {os.environ['LOCAL_RANK']} of "
          f"{os.environ['LOCAL_WORLD_SIZE']}: sum {seen.item() // 4}, "
          f"losses {losses[0]:.4f} {losses[1]:.4f}, weight {model.module.weight.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
