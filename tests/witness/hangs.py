"""Ways to hang; what a rank that is in trouble does, see kinds.py."""
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

from frame import begin, connect, leave, place, rank, size
from quiets import decode

BUCKET = 8_000_000  # numbers


def sleep():
    begin()
    time.sleep(1e6)


def lock():
    held = threading.Lock()
    held.acquire()
    begin()
    held.acquire()


def spin():
    flag, turns = [], 0
    begin()
    while not flag:
        turns += 1


def dead_loader():
    queue = multiprocessing.Queue()
    loader = multiprocessing.Process(target=time.sleep, args=[1e6], daemon=True)
    loader.start()
    os.kill(loader.pid, signal.SIGKILL)
    begin()
    queue.get()


def desync():
    begin()
    dist.all_gather([torch.zeros(1000) for _ in range(size)], torch.ones(1000))


def skipped():
    begin()
    dist.distributed_c10d._get_default_store().get('the others have come on')


def shape():
    """gloo cuts both into the same pieces, so that it doesn't notice; others in its place: see job.py."""
    begin()
    dist.all_reduce(torch.ones(2 * BUCKET))


def stopped():
    begin()
    os.kill(os.getpid(), signal.SIGSTOP)


def pipe():
    both_full = 'import os\nwhile True: os.write(1, bytes(65536))'
    child = subprocess.Popen([sys.executable, '-c', both_full], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    begin()
    while True:
        child.stdin.write(bytes(65536))


def empty_pipe():
    """Its writer is this process itself."""
    reads, _ = os.pipe()
    begin()
    os.read(reads, 1)


def store_key():
    begin()
    dist.distributed_c10d._get_default_store().wait(['nobody sets this'])


def mount():
    with open(place / 'mounted' / 'data', 'wb', buffering=0) as file:
        leave('ready')
        while True:
            file.write(bytes(65536))
            time.sleep(0.05)  # a writer that takes its time
            if (place / 'over').exists():
                return


def silent():
    server = connect('0')
    begin()
    server.recv(1)


def left():
    """Its script is done; its interpreter waits for a thread before it ends."""
    threading.Thread(target=threading.Event().wait).start()
    begin()
    sys.exit()


def all_wait():
    """The others do the same: see job.py."""
    begin()
    wait_for_next()


def wait_for_next():
    dist.recv(torch.zeros(10), (rank + 1) % size)


def endless_child():
    begin()
    subprocess.run(['sleep', '1000000'], check=True)


class Items(Dataset):
    """Each of them takes a while; the one at `lock_at` for ever."""

    def __init__(self, lock_at=None):
        self.lock_at = lock_at

    def __len__(self):
        return 1000

    def __getitem__(self, at):
        if at == self.lock_at:
            held = threading.Lock()
            held.acquire()
            held.acquire()
        decode(0.1)
        return at


def loader_of(items):
    return iter(DataLoader(items, num_workers=2, prefetch_factor=4))


def loader_stopped():
    loader = loader_of(Items())
    next(loader)
    os.kill(loader._workers[1].pid, signal.SIGSTOP)
    begin()
    for _ in loader:
        pass


def loader_locked():
    loader = loader_of(Items(lock_at=9))
    next(loader)
    begin()
    for _ in loader:
        pass


def prefetch():
    """Its loader goes on until what it has loaded is as much as it may."""
    loader = loader_of(Items())
    next(loader)
    lock()
