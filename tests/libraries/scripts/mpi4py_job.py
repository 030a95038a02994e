"""mpi4py as the job's communication: for workers that MPI's own launcher knows, one by one."""
import os

from mpi4py import MPI

world = MPI.COMM_WORLD
local = world.Split_type(MPI.COMM_TYPE_SHARED)
assert world.rank == int(os.environ["RANK"]) and world.size == int(os.environ["WORLD_SIZE"])
assert local.rank == int(os.environ["LOCAL_RANK"]) and local.size == int(os.environ["LOCAL_WORLD_SIZE"])

weight, x, losses = 0.0, 1.0 + world.rank, []
for _ in range(2):
    losses.append((weight * x - 3 * x) ** 2)
    gradient = world.allreduce(2 * x * (weight * x - 3 * x)) / world.size
    weight -= 0.01 * gradient

print(f"rank {world.rank} of {world.size}, local rank {local.rank} of {local.size}: "
      f"sum {world.allreduce(world.rank)}, losses {losses[0]:.4f} {losses[1]:.4f}, weight {weight:.4f}")
