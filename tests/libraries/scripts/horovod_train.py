"""Horovod with PyTorch: the optimizer averages gradients over all processes that MPI knows."""
import horovod.torch as hvd
import torch

hvd.init()
rank, world = hvd.rank(), hvd.size()

torch.manual_seed(rank)
model = torch.nn.Linear(1, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01),
                                     named_parameters=model.named_parameters())
x = torch.tensor([[1.0], [1.0 + rank]])
losses = []
for _ in range(2):
    loss = torch.nn.functional.mse_loss(model(x), 3 * x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

total = hvd.allreduce(torch.tensor([rank]), op=hvd.Sum)
print(f"rank {rank} of {world}, local rank {hvd.local_rank()} of {hvd.local_size()}: "
      f"sum {total.item()}, losses {losses[0]:.4f} {losses[1]:.4f}, "
      f"weight {model.weight.item():.4f}")
hvd.shutdown()
