"""What ticks in a rank beside its work, whether the job moves or hangs."""
import itertools
import multiprocessing
import pathlib
import random
import subprocess
import sys
import threading
import time

from frame import connect, place, rank

PROGRAM = ['cat', '/proc/loadavg']
PYTHON = [sys.executable, '-c', 'import json, platform; json.dumps(platform.uname())']
RECORDS = ''.join(f'gauge {i} {i * 1.25:.6f}\n' for i in range(200))


def run(argv):
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)


def read(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b''


def read_all_of_proc():
    for pid in pathlib.Path('/proc').glob('[0-9]*'):
        for name in ('stat', 'status', 'cmdline'):
            read(pid / name)


def read_own_proc():
    own = pathlib.Path('/proc/self')
    for name in ('stat', 'statm', 'status', 'io'):
        read(own / name)
    for task in (own / 'task').iterdir():
        read(task / 'stat')


def write_records():
    with open(place / f'gauges.{rank}', 'a', encoding='ascii') as file:
        file.write(RECORDS)


def burst():
    for _ in range(4):
        run(PROGRAM)
    run(PYTHON)
    with open(place / f'burst.{rank}', 'wb') as file:
        file.write(bytes(1_000_000))


def seconds(seconds):
    return itertools.repeat(seconds)


def any_time():
    chance = random.Random(rank)
    while True:
        yield chance.uniform(0.2, 4)


def repeat(do, pauses):
    for pause in pauses:
        do()
        time.sleep(pause)


def beside(do, pauses):
    threading.Thread(target=repeat, args=[do, pauses], daemon=True).start()


# --- by name ---


def program():
    beside(lambda: run(PROGRAM), seconds(1))


def python():
    beside(lambda: run(PYTHON), seconds(1))


def all_proc():
    multiprocessing.Process(target=repeat, args=[read_all_of_proc, seconds(1)], daemon=True).start()


def own_proc():
    beside(read_own_proc, seconds(1))


def writer():
    beside(write_records, seconds(1))


def upload():
    collector = connect('take')
    beside(lambda: collector.sendall(bytes(20_000)), seconds(1))


def uploader():
    multiprocessing.Process(target=send_all, args=[connect('take')], daemon=True).start()


def send_all(collector):
    repeat(lambda: collector.sendall(bytes(20_000)), seconds(1))


def bursts():
    beside(burst, seconds(7))


def irregular():
    chance = random.Random(rank)
    beside(lambda: run(chance.choice([PROGRAM, PYTHON])), any_time())
