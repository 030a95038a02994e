"""TensorFlow's MultiWorkerMirroredStrategy: who is who stands in TF_CONFIG."""
import json
import os

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
task = strategy.cluster_resolver
world, rank = strategy.num_replicas_in_sync, task.task_id
assert world == len(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"])

with strategy.scope():
    weight = tf.Variable(0.0)


@tf.function
def step():
    def on_each():
        context = tf.distribute.get_replica_context()
        number = tf.cast(context.replica_id_in_sync_group, tf.float32)
        x = 1.0 + number
        with tf.GradientTape() as tape:
            loss = (weight * x - 3.0 * x) ** 2
        gradient = context.all_reduce("mean", tape.gradient(loss, weight))
        total = context.all_reduce("sum", number)
        return loss, gradient, total

    loss, gradient, total = strategy.run(on_each)
    strategy.extended.update(weight, lambda variable, value: variable.assign_sub(0.01 * value),
                             args=(gradient,))
    return loss, total


losses = []
for _ in range(2):
    loss, total = step()
    losses.append(float(loss))

print(f"rank {rank} of {world}, local rank {os.environ['LOCAL_RANK']} of "
      f"{os.environ['LOCAL_WORLD_SIZE']}: sum {float(total):.0f}, "
      f"losses {losses[0]:.4f} {losses[1]:.4f}, weight {weight.numpy():.4f}")
