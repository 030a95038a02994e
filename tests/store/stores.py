"""Stores to test with: ours alone (store_host), and torch's own; and interpreters that have torch."""
import contextlib
import dataclasses
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest
from harness import BUILD

SCRIPTS = pathlib.Path(__file__).resolve().parent / 'scripts'
HOST = BUILD / 'tests' / 'store' / 'store_host'


@dataclasses.dataclass
class Torch:
    """An interpreter, and what its clients speak if it is not what those of 2.2 and above do."""
    python: str
    old: str
    options: tuple = ()  # of its own server


def torches():
    """Debian's torch 1.13, and those of $LAUNCHD_TORCH21 and $LAUNCHD_TORCH215."""
    none = pytest.mark.skipif(not importlib.util.find_spec('torch'), reason='no torch here')
    found = [pytest.param(Torch(sys.executable, 'a'), id='torch-1.13', marks=none)]
    for name, torch, old, options in (('21', '2.1', 'c', ()), ('215', '2.15', 'none', ('libuv',))):
        python = os.environ.get(f'LAUNCHD_TORCH{name}')
        unset = pytest.mark.skipif(
            not python, reason=f'LAUNCHD_TORCH{name} names no Python with torch {torch}')
        found.append(pytest.param(Torch(python, old, options), id=f'torch-{torch}', marks=unset))
    return found


class Store:
    """A store_host: answers orders, gathers notes."""

    def __init__(self, old='none', addr='127.0.0.1', port=0, memory=256):
        self.process = subprocess.Popen([HOST, addr, str(port), old, str(memory)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.notes = []
        self.port = int(self.read('port').split()[1])

    def read(self, word):
        """The next line that begins with a word; notes on the way are kept."""
        for line in self.process.stdout:
            if line.startswith('note: '):
                self.notes.append(line[6:].strip())
            elif line.split()[0] == word:
                return line
        raise AssertionError(f'store_host ended: no {word}')

    def order(self, order, answer=None):
        print(order, file=self.process.stdin, flush=True)
        return self.read(answer or order)

    def number(self, order):
        return int(self.order(order).split()[1])

    def close(self):
        self.process.stdin.close()
        self.read('closed')
        self.process.stdout.close()
        assert self.process.wait(60) == 0, 'the store left something open'


@contextlib.contextmanager
def closing(store):
    try:
        yield store
        store.close()
    finally:
        if store.process.poll() is None:
            store.process.kill()
            store.process.wait()
        store.process.stdin.close()
        store.process.stdout.close()


class Server:
    """torch's own server, in a process of its own."""

    def __init__(self, torch):
        self.process = subprocess.Popen([torch.python, SCRIPTS / 'serve.py', *torch.options],
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0
