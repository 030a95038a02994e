"""Ways to be quiet for a while and go on: what a rank does, see kinds.py. Most of them do it until the time
has come; what one that waits for a child or a thread waits in is part of it."""
import gc
import multiprocessing
import os
import queue
import random
import shutil
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.utils.data import DataLoader, Dataset

from frame import begin, begin_quiet, choice, connect, leave, place, quiet

PART = 256 << 10  # bytes, of a file that is read or written
PARTS = 32


def until(end, do, pause=0.0):
    while time.monotonic() < end:
        do()
        time.sleep(pause)


def decode(seconds):
    """With the CPU, and memory of its own."""
    until(time.monotonic() + seconds, lambda: zlib.decompress(zlib.compress(os.urandom(100_000))))


def in_child(do, *args):
    """Waits for it, or for what it puts in a queue."""
    answer = multiprocessing.Queue()

    def go():
        do(*args)
        answer.put(torch.ones(10).tolist())

    child = multiprocessing.Process(target=go, daemon=True)
    child.start()
    if choice.seed % 2:
        answer.get()
    child.join()


def in_thread(do, *args):
    thread = threading.Thread(target=do, args=args)
    thread.start()
    thread.join()


def here(do, *args):
    do(*args)


def doing(way, do):
    """A quiet in which it is done that way until the time has come."""
    def go():
        way(do, begin_quiet())
        leave('over')

    return go


# --- the rank itself ---


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


def images_and_model():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(32 * 28 * 28, 10))
    return torch.rand(256, 3, 32, 32), model


def evaluation():
    images, model = images_and_model()
    with torch.no_grad():
        for _ in quiet():
            for batch in images.split(32):
                model(batch).argmax(dim=1)


def back_off():
    begin()
    time.sleep(choice.quiet_s)
    leave('over')


def sleep_20():
    begin()
    time.sleep(20)
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


def tokens():
    words = [f'word{i % 50_000}' for i in range(500_000)]
    for number, _ in enumerate(quiet()):
        ids = {}
        for word in words[number % 10 * 50_000:][:50_000]:
            ids[word] = ids.get(word, 0) + 1


def shuffle():
    samples = torch.rand(200_000, 50)
    for _ in quiet():
        samples = samples[torch.randperm(len(samples))]


def copy():
    write_file(place / 'data set')
    for _ in quiet():
        shutil.copy(place / 'data set', place / 'copy')
        time.sleep(0.2)


# --- files, networks ---


def write_file(path):
    path.write_bytes(random.Random(1).randbytes(PART) * PARTS)


def read_files(end):
    """As of a disk that is not fast."""
    path = place / 'data set'
    write_file(path)
    with open(path, 'rb', buffering=0) as file:
        until(end, lambda: file.read(PART) or file.seek(0), pause=0.1)


def save(end):
    state = {f'layer {i}': torch.rand(500, 500) for i in range(20)}

    def once():
        torch.save(state, place / 'saved')
        with open(place / 'saved', 'rb') as file:
            os.fsync(file.fileno())

    until(end, once)


def receive(end):
    server = connect(choice.rate)
    until(end, lambda: server.recv(65536))


def send(end):
    server = connect('take')
    until(end, lambda: server.sendall(bytes(int(choice.rate / 10))), pause=0.1)


# --- loaders ---


def load(results, seconds):
    end = time.monotonic() + seconds
    sums = []
    while time.monotonic() < end:
        with open('/dev/zero', 'rb') as file:
            sums.append(sum(file.read(100_000)))
    results.put(sums)


def loading():
    results = multiprocessing.Queue()
    loader = multiprocessing.Process(target=load, args=[results, choice.quiet_s], daemon=True)
    begin()
    loader.start()
    results.get()
    loader.join()
    leave('over')


class Long(Dataset):
    """Its first item comes when the time has come."""

    def __init__(self, end):
        self.end = end

    def __len__(self):
        return 4

    def __getitem__(self, at):
        until(self.end, lambda: decode(0.1), pause=choice.pause_s)
        return torch.ones(10) * at


def data_loader():
    for _ in DataLoader(Long(begin_quiet()), num_workers=2):
        pass
    leave('over')


class Short(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, at):
        time.sleep(0.3)  # a disk
        decode(0.05)
        return torch.rand(8, 3, 32, 32)


def validation():
    """The model waits for its loader more than that for the model."""
    model = images_and_model()[1]
    batches = iter(DataLoader(Short(), num_workers=1))
    with torch.no_grad():
        for _ in quiet():
            model(next(batches)[0]).argmax(dim=1)


class Background:
    """A loader that works all the time, and has something for the rank when it is due."""

    def __init__(self, work, pause):
        self.due, self.results = multiprocessing.Value('d', 0.0), multiprocessing.Queue()
        self.loader = multiprocessing.Process(target=self.go, args=[work, pause], daemon=True)
        self.loader.start()

    def go(self, work, pause):
        while True:
            work()
            time.sleep(pause)
            if 0 < self.due.value < time.monotonic():
                self.due.value = 0
                self.results.put(1)

    def use(self):
        self.due.value = begin_quiet()
        self.results.get()
        leave('over')


def read_big():
    with open('/dev/zero', 'rb', buffering=0) as file:
        file.read(64 << 10)


def collate(samples, batches):
    """As a thread that pins memory does: from a loader to the rank."""
    while True:
        batches.put(torch.tensor(samples.get()).clone())


def fill(samples):
    while True:
        decode(0.1)
        samples.put(list(range(20_000)))


def pin():
    samples, batches = multiprocessing.Queue(2), queue.Queue()
    loader = multiprocessing.Process(target=fill, args=[samples], daemon=True)
    end = begin_quiet()
    loader.start()
    threading.Thread(target=collate, args=[samples, batches], daemon=True).start()
    while time.monotonic() < end:
        batches.get()
    leave('over')
    loader.kill()


def count_words(part):
    end, text = part
    words = []
    until(end, lambda: words.append(len(set(text.split()))))
    return words[:1]


def pool():
    """Others tokenize, and it waits for all of that."""
    end = begin_quiet()
    text = ' '.join(f'word{i % 999}' for i in range(50_000))
    with multiprocessing.Pool(2) as workers:
        workers.map(count_words, [(end, text)] * 2)
    leave('over')


# --- programs ---


def compile_pool():
    """Many small units, by two threads, for whom it waits."""
    source = '\n'.join(f'int f{i}(int *a) {{ return a[{i}] * {i}; }}' for i in range(50))

    def one(end, name):
        until(end, lambda: subprocess.run(
            ['gcc', '-O2', '-x', 'c', '-c', '-', '-o', place / name], check=True,
            input=source.encode()))

    end = begin_quiet()
    with ThreadPoolExecutor(2) as threads:
        for future in [threads.submit(one, end, f'unit{i}.o') for i in range(2)]:
            future.result()
    leave('over')


def evaluator():
    program = ('import sys, time\nend = time.monotonic() + float(sys.argv[1])\n'
               'while time.monotonic() < end: sorted(str(i) for i in range(20_000))\n')
    begin()
    subprocess.run([sys.executable, '-c', program, str(choice.quiet_s)], check=True)
    leave('over')


def pipeline():
    script = ('end=$(($(date +%s) + $1)); while [ $(date +%s) -lt $end ]; do '
              'head -c 2000000 /dev/urandom | gzip | wc -c; sleep 0.3; done')
    begin()
    subprocess.run(['sh', '-c', script, 'sh', str(int(choice.quiet_s))], check=True,
                   stdout=subprocess.DEVNULL)
    leave('over')


def paused():
    leave('ready')


download_rank = doing(here, receive)
download_thread = doing(in_thread, receive)
download_child = doing(in_child, receive)
upload_child = doing(in_child, send)
read_rank = doing(here, read_files)
read_thread = doing(in_thread, read_files)
read_child = doing(in_child, read_files)
checkpoint_thread = doing(in_thread, save)
checkpoint_child = doing(in_child, save)
