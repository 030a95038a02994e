"""What all that happens in a job of job.py has: who it is, where it leaves files, and who serves it."""
import os
import pathlib
import socket
import sys
import time

from kinds import KINDS

kind, seed, place = KINDS[sys.argv[1]], int(sys.argv[2]), pathlib.Path(sys.argv[3])
choice = kind.choice(seed)
rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
mine = rank == choice.rank


def leave(name, text=''):
    part = place / f'.{name}.{rank}'
    part.write_text(text)
    part.rename(place / name)


def begin():
    leave('onset', str(time.monotonic()))


def quiet():
    """Yields until the quiet is over."""
    end = begin_quiet()
    while time.monotonic() < end:
        yield
    leave('over')


def begin_quiet():
    begin()
    return time.monotonic() + choice.quiet_s


def connect(word):
    """With the trial's server, see peer.py."""
    connection = socket.create_connection(('127.0.0.1', int(os.environ['PEER_PORT'])))
    connection.sendall(f'{word}\n'.encode())
    return connection
