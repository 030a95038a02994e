#!/usr/bin/env python3
"""A small but real data-parallel training job: PyTorch DDP, gloo backend, synthetic data.

    launchd --nproc_per_node 2 --use_env examples/train_ddp.py --steps 300

Every rank says once where it stands; rank 0 prints the loss as it falls. With --checkpoint it saves
its state every --every steps and at SIGTERM, and the next run goes on from there. --fail-rank lets
a rank die in the middle, to see what the launcher makes of it.
"""
import argparse
import os
import signal
import socket

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FEATURES = 16
BATCH = 64


def parse_arguments():
    parser = argparse.ArgumentParser(description="A small PyTorch DDP training job on the CPU.")
    parser.add_argument("--steps", type=int, default=300, help="training steps (default 300)")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate (default 0.05)")
    parser.add_argument("--every", type=int, default=50,
                        help="print the loss, and save a checkpoint, every N steps")
    parser.add_argument("--data", metavar="FILE",
                        help="inputs and targets by torch.save (default: made up)")
    parser.add_argument("--checkpoint", metavar="FILE",
                        help="resume from this file if it is there, and save to it")
    parser.add_argument("--fail-rank", type=int, default=-1, help="the rank that dies")
    parser.add_argument("--fail-step", type=int, default=0, help="the step in which it dies")
    parser.add_argument("--fail-code", type=int, default=7, help="its exit code (default 7)")
    parser.add_argument("--fail-attempts", type=int, default=1 << 30,
                        help="it dies in the first N attempts only (default: in all)")
    # the launcher adds this argument unless it is told --use_env; LOCAL_RANK says the same
    parser.add_argument("--local_rank", "--local-rank", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def say(text):
    """One write per line: lines of several ranks must not mix."""
    os.write(1, (text + "\n").encode())


def say_coordinates():
    env = os.environ
    say(f"rank {env['RANK']} of {env['WORLD_SIZE']}: local rank {env['LOCAL_RANK']}, "
        f"node rank {env['NODE_RANK']}, host {socket.gethostname()}, pid {os.getpid()}, "
        f"master {env['MASTER_ADDR']}:{env['MASTER_PORT']}")


def make_batch(generator, teacher):
    """Inputs at random; targets by a function that the model has to find."""
    x = torch.randn(BATCH, FEATURES, generator=generator)
    return x, torch.tanh(x @ teacher)


def pick_batch(generator, data):
    x, y = data
    rows = torch.randint(len(x), (BATCH,), generator=generator)
    return x[rows], y[rows]


def save(path, model, optimizer, step):
    """By rank 0. A job that is killed meanwhile leaves the file as it was."""
    if path and dist.get_rank() == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "step": step}, path + ".part")
        os.replace(path + ".part", path)


def resume(path, model, optimizer):
    """The step to begin with. All ranks read the same file."""
    if not path or not os.path.exists(path):
        return 0
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def train(args):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)  # the same teacher and the same first weights everywhere
    teacher = torch.randn(FEATURES, 1) / FEATURES ** 0.5
    model = DistributedDataParallel(nn.Sequential(
        nn.Linear(FEATURES, 64), nn.Tanh(), nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    first = resume(args.checkpoint, model, optimizer)
    if first:
        say(f"rank {rank}: resumes with step {first}")
    generator = torch.Generator().manual_seed(100 + rank + first * world)  # each has its own data
    data = torch.load(args.data) if args.data else None
    stop = torch.zeros(1)
    attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    dies = rank == args.fail_rank and attempt < args.fail_attempts

    if args.checkpoint:
        signal.signal(signal.SIGTERM, lambda *_: stop.fill_(1))

    for step in range(first, args.steps + 1):
        if dies and step == args.fail_step:
            say(f"rank {rank}: dies in step {step} with exit code {args.fail_code}")
            os._exit(args.fail_code)  # as a crash would: no clean-up, no goodbye to the others
        asked = stop.clone()  # all ranks leave in the same step, whoever heard of SIGTERM first
        if args.checkpoint:
            dist.all_reduce(asked, dist.ReduceOp.MAX)
        if asked:
            save(args.checkpoint, model, optimizer, step)
            say(f"rank {rank}: stopped before step {step}")
            return
        x, y = pick_batch(generator, data) if data else make_batch(generator, teacher)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.every == 0 or step == args.steps:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0:
                say(f"step {step:4d}  loss {mean.item() / world:.5f}")
            save(args.checkpoint, model, optimizer, step + 1)


def main():
    args = parse_arguments()
    say_coordinates()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    train(args)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
