"""A job of a few ranks on one GPU, or on none (GPU_RUN_FAKE): steps=N hang=STEP fail=STEP gib=N hostid=0

NCCL refuses two ranks of one host on one GPU, so each says that it is a host of its own.
"""
import faulthandler
import os
import signal
import socket
import sys
import time

faulthandler.register(signal.SIGUSR1, all_threads=True)
rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
given = dict(word.split('=', 1) for word in sys.argv[1:] if '=' in word)
fake = os.environ.get('GPU_RUN_FAKE')


def number(name, otherwise):
    return int(given.get(name, otherwise))


def make_fake():
    port = 20000 + os.getppid() % 10000
    if rank == 0:
        server = socket.create_server(('127.0.0.1', port))
        peers = [server.accept()[0] for _ in range(size - 1)]
    else:
        peers = None
        for _ in range(200):
            try:
                peers = [socket.create_connection(('127.0.0.1', port))]
                break
            except OSError:
                time.sleep(0.1)

    def hear(peer):
        """A victim dies after its culprit, never in the same moment."""
        if not peer.recv(1):
            time.sleep(0.5)
            os._exit(9)

    def all_reduce():
        for one in peers if rank == 0 else ():
            hear(one)
        for one in peers:
            one.send(b'x')
        for one in peers if rank else ():
            hear(one)
        return float(size)

    return all_reduce, lambda: time.sleep(0.3), lambda: None


def make_real():
    import torch
    import torch.distributed as dist
    if number('hostid', 1):
        os.environ['NCCL_HOSTID'] = f'host{rank}'
    torch.cuda.set_device(0)
    held = torch.empty(number('gib', 1) << 30, dtype=torch.uint8, device='cuda')
    matrix = torch.randn(8192, 8192, device='cuda', dtype=torch.bfloat16)
    dist.init_process_group('nccl')
    if rank == 0:
        print('torch', torch.__version__, 'nccl', '.'.join(map(str, torch.cuda.nccl.version())),
              torch.cuda.get_device_name(0))

    def all_reduce():
        ones = torch.ones(1 << 20, device='cuda')
        dist.all_reduce(ones)
        return ones[-1].item()

    def work():
        for _ in range(60):
            matrix @ matrix
        torch.cuda.synchronize()

    def end():
        dist.destroy_process_group()
        held.zero_()

    return all_reduce, work, end


all_reduce, work, end = make_fake() if fake else make_real()
for step in range(number('steps', 20)):
    work()
    if step == number('hang', -1) and rank == size - 1:
        print('rank', rank, 'is stuck before its collective of step', step, flush=True)
        while True:
            time.sleep(3600)
    if step == number('fail', -1) and rank == size - 1:
        print('rank', rank, 'fails in step', step, flush=True)
        os._exit(3)
    total = all_reduce()
    if total != size:
        sys.exit(f'wrong sum {total}')
    if rank == 0:
        print('step', step, flush=True)
if rank == 0:
    print('sum ok')
end()
