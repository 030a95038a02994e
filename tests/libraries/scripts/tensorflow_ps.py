"""TensorFlow's ParameterServerStrategy: who is chief, ps or worker stands in TF_CONFIG.

The chief hands out the steps, workers take them, and the weights are on the parameter server. The
latter two serve for as long as the chief lives: it tells them its result, and then they end."""
import json
import os
import socket

import tensorflow as tf

task = json.loads(os.environ["TF_CONFIG"])["task"]
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
cluster = resolver.cluster_spec()
rank, world = int(os.environ["RANK"]), sum(map(cluster.num_tasks, cluster.jobs))
meeting = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])


def train():
    """Two steps; losses, weight, and a sum in which every task has had a part."""
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weight = tf.Variable(0.0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = (weight * x - 3.0 * x) ** 2
        weight.assign_sub(0.01 * tape.gradient(loss, weight))
        return loss

    losses = []
    for _ in range(2):
        losses.append(coordinator.schedule(step, args=(tf.constant(2.0),)))
        coordinator.join()

    total = tf.constant(0.0)
    for number, device in enumerate(f"/job:{job}/task:{n}" for job in ("chief", "ps", "worker")
                                    for n in range(cluster.num_tasks(job))):
        with tf.device(device):
            total = total + float(number)
    return (f"sum {total.numpy():.0f}, losses {losses[0].fetch():.4f} {losses[1].fetch():.4f}, "
            f"weight {weight.numpy():.4f}")


def wait_for_chief():
    while True:
        try:
            with socket.create_connection(meeting) as chief:
                return chief.makefile().readline()
        except ConnectionRefusedError:
            pass  # it doesn't listen yet


if task["type"] == "chief":
    with socket.create_server(meeting) as server:
        found = train()
        for _ in range(world - 1):
            with server.accept()[0] as other:
                other.sendall(f"{found}\n".encode())
else:
    serving = tf.distribute.Server(cluster, job_name=task["type"], task_index=task["index"])
    found = wait_for_chief().strip()
print(f"rank {rank} of {world}, local rank {os.environ['LOCAL_RANK']} of "
      f"{os.environ['LOCAL_WORLD_SIZE']}: {found}", flush=True)
if task["type"] != "chief":
    os._exit(0)  # its server serves on: TensorFlow has no way to stop it
