"""JAX: every process has one CPU device; gradients are averaged by psum over all of them.

Where its variables are set (launchd --jax-env), initialize() needs no arguments."""
import os

import jax
import jax.numpy as jnp
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_collectives_implementation", "gloo")
if "JAX_COORDINATOR_ADDRESS" in os.environ:
    jax.distributed.initialize()
else:  # where PyTorch's store would listen
    jax.distributed.initialize(
        f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
        num_processes=int(os.environ["WORLD_SIZE"]), process_id=int(os.environ["RANK"]))
rank, world = jax.process_index(), jax.process_count()
assert jax.device_count() == world and jax.local_device_count() == 1

mesh = Mesh(jax.devices(), ["workers"])
apart, alike = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (["workers"], []))
of_each = jax.make_array_from_process_local_data(apart, jnp.array([1.0 + rank]))


@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(PartitionSpec(), PartitionSpec("workers")),
               out_specs=(PartitionSpec(), PartitionSpec("workers"), PartitionSpec()))
def step(weight, x):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((w * x - 3 * x) ** 2))(
        jax.lax.pcast(weight, "workers", to="varying"))
    gradient = jax.lax.psum(gradient, "workers") / world
    return weight - 0.01 * gradient, loss[None], jax.lax.psum(x[0] - 1, "workers")


weight, losses = jax.device_put(jnp.array(0.0), alike), []
for _ in range(2):
    weight, loss, total = step(weight, of_each)
    losses.append(float(loss.addressable_shards[0].data[0]))
weight, total = (float(one.addressable_shards[0].data) for one in (weight, total))

multihost_utils.sync_global_devices("trained")
print(f"rank {rank} of {world}, local rank {os.environ['LOCAL_RANK']} of "
      f"{os.environ['LOCAL_WORLD_SIZE']}: sum {total:.0f}, losses {losses[0]:.4f} {losses[1]:.4f}, "
      f"weight {weight:.4f}")
jax.distributed.shutdown()
