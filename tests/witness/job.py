"""A job of gloo in which something happens: job.py KIND SEED DIR, see kinds.py.

It computes and reduces; after some steps one rank comes to what is to happen. When that begins, the
file `onset` in DIR has the time, in seconds of the monotonic clock; where the trial is to do it, it
waits for the file `ready`. A quiet that has ended leaves `over`; some steps later the job ends."""
import datetime
import gc
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist

from kinds import KINDS

BUCKET = 8_000_000  # numbers
REST = 40  # steps behind a quiet
HOURS = datetime.timedelta(hours=2)
BY_TRIAL = ('cut', 'mount', 'stall', 'paused')  # the trial says when these begin

kind, seed, place = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
choice = KINDS[kind].choice(seed)
rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
mine = rank == choice.rank
weights = torch.rand(400, 400)


def leave(name, text=''):
    part = place / f'.{name}.{rank}'
    part.write_text(text)
    part.rename(place / name)


def begin():
    leave('onset', str(time.monotonic()))


def quiet():
    """Yields until the quiet is over."""
    begin()
    end = time.monotonic() + choice.quiet_s
    while time.monotonic() < end:
        yield
    leave('over')


def step(number):
    torch.mm(weights, weights)
    time.sleep(0.01)  # a step takes a while
    dist.all_reduce(torch.ones(1000))
    if rank == 0 and choice.prints and number % choice.prints == 0:
        print(f'step {number}', flush=True)


# --- hangs ---


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
    """gloo cuts both into the same pieces, so that it doesn't notice; others in its place: see main()."""
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


# --- quiets ---


def checkpoint():
    state = {f'layer {i}': torch.rand(1000, 1000) for i in range(20)}
    for _ in quiet():
        torch.save(state, place / 'checkpoint')
        with open(place / 'checkpoint', 'rb') as file:
            os.fsync(file.fileno())


def compile():
    source = '\n'.join(f'double f{i}(double *a, int n) {{ double s = {i}; for (int k = 0; k < n; k++) '
                       f'for (int j = 0; j < k; j++) s += a[k] * a[j + {i}]; return s; }}'
                       for i in range(400))
    for _ in quiet():
        subprocess.run(['gcc', '-O3', '-x', 'c', '-c', '-', '-o', place / 'compiled.o'], check=True,
                       input=source.encode())


def evaluation():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(32 * 28 * 28, 10))
    images = torch.rand(256, 3, 32, 32)
    with torch.no_grad():
        for _ in quiet():
            for batch in images.split(32):
                model(batch).argmax(dim=1)


def back_off():
    begin()
    time.sleep(choice.quiet_s)
    leave('over')


def first_step():
    index = {}
    for number, _ in enumerate(quiet()):
        index[f'sample {number}'] = torch.rand(100).sum().item()


def collect():
    heap = [{'at': i, 'next': [i]} for i in range(800_000)]
    for _ in quiet():
        gc.collect()
    assert heap


def logging():
    with open(place / 'records', 'w', encoding='ascii') as file:
        for number, _ in enumerate(quiet()):
            for name in range(50):
                file.write(f'step {number} layer {name} norm {number / (name + 1):.6f}\n')
            file.flush()
            time.sleep(0.3)  # a log line now and then


def load(queue, seconds):
    end = time.monotonic() + seconds
    sums = []
    while time.monotonic() < end:
        with open('/dev/zero', 'rb') as file:
            sums.append(sum(file.read(100_000)))
    queue.put(sums)


def loading():
    queue = multiprocessing.Queue()
    loader = multiprocessing.Process(target=load, args=[queue, choice.quiet_s], daemon=True)
    begin()
    loader.start()
    queue.get()
    loader.join()
    leave('over')


def paused():
    leave('ready')


WAYS = {'first_step': first_step, 'gc': collect, 'stall': mount, 'cut': paused}


def main():
    before = 0 if kind == 'first_step' else choice.steps
    dist.init_process_group('gloo', timeout=HOURS)
    (place / f'new.{rank}').write_text(str(os.getpid()))
    (place / f'new.{rank}').rename(place / f'pid.{rank}')
    for number in range(before):
        step(number)
    if mine:
        (WAYS.get(kind) or globals()[kind])()
    elif kind == 'shape':
        dist.all_reduce(torch.ones(BUCKET))
    number = before
    while True:
        step(number)
        number += 1
        # all go on for as long as one of them says
        over = torch.tensor(float(rank == 0 and (place / 'over').exists()))
        dist.all_reduce(over)
        if over:
            break
    for more in range(REST):
        step(number + more)


main()
sys.stdout.flush()
os._exit(0)  # threads of gloo abort now and then where the interpreter ends under them
