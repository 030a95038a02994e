"""A file system in memory that can hang: FUSE's protocol without a library, see fuse(4) and
linux/fuse.h. It is mounted in a mount namespace of the launcher's, so nothing has to be unmounted;
closing it sets free who hangs."""
import errno
import os
import select
import stat
import struct
import threading

import pytest
from harness import until
from needs import why_not
from own_mounts import OWN_MOUNTS

REQUEST = struct.Struct('=IIQQ16x')  # length, opcode, number, node
ANSWER = struct.Struct('=IiQ')
ATTRIBUTES = struct.Struct('=QQQ24x12xIIIIIII')
(LOOKUP, FORGET, GETATTR, SETATTR, MKNOD, MKDIR, UNLINK, RMDIR, RENAME, OPEN, READ, WRITE, STATFS, RELEASE,
 FSYNC, INIT, OPENDIR, READDIR, RELEASEDIR, CREATE, INTERRUPT, BATCH_FORGET, RENAME2) = (
     1, 2, 3, 4, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 20, 26, 27, 28, 29, 35, 36, 42, 45)
UNANSWERED = (FORGET, BATCH_FORGET, INTERRUPT)
SET_SIZE = 1 << 3  # what SETATTR may set


class Node:
    def __init__(self, number, mode):
        self.number, self.mode = number, mode
        self.data = bytearray()
        self.children = {}


class FuseMount:
    """mount: what a launcher is to be wrapped in, with pass_fds=[fd], to find a file system at path
    that whoever reads requests from fd answers."""

    def __init__(self, path):
        self.path = path
        self.path.mkdir()
        try:
            trial = self.open()
            why = why_not(*self.mount, 'true', pass_fds=[trial])
            os.close(trial)
        except OSError as error:
            why = str(error)
        if why:
            pytest.skip(f'no file system of FUSE can be mounted: {why}')
        self.fd = self.open()

    def open(self):
        fd = os.open('/dev/fuse', os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        options = f'fd={fd},rootmode=40000,user_id=0,group_id=0'
        self.mount = [*OWN_MOUNTS, 'bash', '-ec', 'mount -i -t fuse -o "$1" hang "$2"; '
                      f'exec {fd}<&-; shift 2; exec "$@"', 'bash', options, str(self.path)]
        return fd


class HangFS(FuseMount):
    """It can be in three states: it answers; `stop`: it does not read requests, as a file server that
    is stopped; `hold`: it reads writes, or what else it is told, and does not answer them, so that not
    even SIGKILL ends who waits."""

    def __init__(self, place, name='mounted'):
        super().__init__(place.path / name)
        self.nodes = {1: Node(1, stat.S_IFDIR | 0o755)}
        self.holding, self.held = (), []
        self.waking = self.waker = -1
        self.thread = None
        self.go_on()

    def go_on(self):
        self.waking, self.waker = os.pipe()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def stop(self):
        os.close(self.waker)
        self.thread.join()
        os.close(self.waking)
        self.thread = None

    def hold(self, *opcodes):
        self.holding = opcodes or (WRITE,)

    def hangs(self):
        """Whether somebody waits for an answer that does not come."""
        return self.held or (not self.thread and select.select([self.fd], [], [], 0)[0])

    def close(self):
        if self.thread:
            self.stop()
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def serve(self):
        poll = select.poll()
        poll.register(self.waking)
        poll.register(self.fd, select.POLLIN)
        while True:
            events = dict(poll.poll())
            if self.waking in events:
                return
            try:
                request = os.read(self.fd, 1 << 20)
            except BlockingIOError:
                continue
            except PermissionError:  # not mounted yet
                threading.Event().wait(0.005)
                continue
            except OSError:  # unmounted, or who asked is gone
                if events.get(self.fd, 0) & select.POLLERR:
                    return
                continue
            self.take(request)

    def take(self, request):
        _, opcode, number, node = REQUEST.unpack_from(request)
        if opcode in self.holding:
            self.held.append(number)
            return
        try:
            error, body = 0, self.answer(opcode, self.nodes.get(node), request[40:])
        except OSError as failed:
            error, body = failed.errno, b''
        if opcode not in UNANSWERED:
            try:
                os.write(self.fd, ANSWER.pack(16 + len(body), -error, number) + body)
            except FileNotFoundError:
                pass  # who asked is gone

    def answer(self, opcode, node, body):
        if opcode == INIT:
            return struct.pack('=IIIIHHI40x', 7, 31, 65536, 0, 12, 9, 65536)
        if opcode in (LOOKUP, UNLINK, RMDIR):
            return self.name(opcode, node, body.rstrip(b'\0'))
        if opcode in (MKNOD, MKDIR, CREATE):
            return self.make(opcode, node, body)
        if opcode in (RENAME, RENAME2):
            return self.rename(node, *struct.unpack_from('=Q', body),
                               body[8 if opcode == RENAME else 16:])
        if opcode == GETATTR:
            return struct.pack('=QII', 0, 0, 0) + attributes(node)
        if opcode == SETATTR:
            valid, size = struct.unpack_from('=I12xQ', body)
            if valid & SET_SIZE:
                node.data = node.data[:size].ljust(size, b'\0')
            return struct.pack('=QII', 0, 0, 0) + attributes(node)
        if opcode in (OPEN, OPENDIR):
            return struct.pack('=QII', node.number, 0, 0)
        if opcode == WRITE:
            at, size = struct.unpack_from('=8xQI', body)
            node.data = node.data[:at].ljust(at, b'\0') + body[40:40 + size] + node.data[at + size:]
            return struct.pack('=II', size, 0)
        if opcode == READ:
            at, size = struct.unpack_from('=8xQI', body)
            return bytes(node.data[at:at + size])
        if opcode == STATFS:
            return struct.pack('=QQQQQIII28x', 1 << 20, 1 << 20, 1 << 20, 999, 999, 4096, 255, 4096)
        if opcode in (READDIR, RELEASE, RELEASEDIR, FSYNC, *UNANSWERED):
            return b''
        raise OSError(errno.ENOSYS, 'not needed')  # FLUSH too: the kernel does not ask again

    def name(self, opcode, node, name):
        if name not in node.children:
            raise FileNotFoundError(errno.ENOENT, name)
        if opcode == LOOKUP:
            return entry(node.children[name])
        if opcode == RMDIR and node.children[name].children:
            raise OSError(errno.ENOTEMPTY, name)
        del node.children[name]
        return b''

    def make(self, opcode, node, body):
        mode = struct.unpack_from('=4xI' if opcode == CREATE else '=I', body)[0]
        name = body[8 if opcode == MKDIR else 16:].rstrip(b'\0')
        kind = {CREATE: stat.S_IFREG, MKDIR: stat.S_IFDIR, MKNOD: stat.S_IFMT(mode)}[opcode]
        made = Node(len(self.nodes) + 1, kind | mode & 0o7777)
        node.children[name] = self.nodes[made.number] = made
        return entry(made) + (struct.pack('=QII', made.number, 0, 0) if opcode == CREATE else b'')

    def rename(self, node, new_parent, names):
        old, new = names.split(b'\0')[:2]
        self.nodes[new_parent].children[new] = node.children.pop(old)
        return b''

    def file(self, name):
        """The content of the only file of that name, once there is one."""
        def find(node):
            for child, below in node.children.items():
                yield from [below] if child == name.encode() else find(below)
        [found] = until(lambda: list(find(self.nodes[1])), name)
        return bytes(found.data)


def attributes(node):
    size = len(node.data)
    return ATTRIBUTES.pack(node.number, size, (size + 511) // 512, node.mode, 1, 0, 0, 0, 4096, 0)


def entry(node):
    return struct.pack('=QQQQII', node.number, 0, 0, 0, 0, 0) + attributes(node)
