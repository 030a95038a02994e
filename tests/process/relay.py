"""A relay between a launcher and node rank 0's, which changes words on their way: so each seems to
the other to be of another build."""
import contextlib
import select
import socket
import threading

from harness import LIMIT, until
from together import listens


class Words:
    """Bytes that become others of the same length."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def change(self, text):
        return text.replace(self.old, self.new), text.count(self.old)


class Lost:
    """Frames of these types become such as no launcher knows, and each passes over; on a connection
    without a key."""
    HEADER, NOTHING = 8, 0xfa

    def __init__(self, *types):
        self.types = types
        self.rest = b''

    def change(self, text):
        text, whole, count = self.rest + text, bytearray(), 0
        while len(text) >= self.HEADER and \
                len(text) >= (size := self.HEADER + int.from_bytes(text[:4], 'little')):
            frame, text = bytearray(text[:size]), text[size:]
            if frame[4] in self.types:
                frame[4] = self.NOTHING
                count += 1
            whole += frame
        self.rest = text
        return bytes(whole), count


class Relay:
    """Listens for one launcher at `port`. up and down: what changes the words of the launcher, and
    those that it hears: Lost, or (old, new) bytes of one length; `changed` counts both. UDP does not come through. Begins
    when node rank 0 listens: it dials once, where a launcher would try again."""

    def __init__(self, hub_port, up=None, down=None):
        until(lambda: listens(hub_port), "node rank 0's launcher listens")
        self.hub = ('127.0.0.1', hub_port)
        self.words = [Words(*how) if isinstance(how, tuple) else how for how in (up, down)]
        self.changed = 0
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.over, self.end = socket.socketpair()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        if self.over in select.select([self.listener, self.over], [], [])[0]:
            return
        with self.listener.accept()[0] as launcher, \
                socket.create_connection(self.hub, LIMIT) as hub:
            self._carry(launcher, hub)

    def _carry(self, launcher, hub):
        to = {launcher: (hub, self.words[0]), hub: (launcher, self.words[1])}
        while to:
            ready = select.select([*to, self.over], [], [])[0]
            if self.over in ready:
                return
            for one in ready:
                self._pass(one, *to[one]) or to.pop(one)

    def _pass(self, sender, receiver, words):
        """False: that was all. Each frame is written by one call, so that no word is cut."""
        with contextlib.suppress(ConnectionError):
            text = sender.recv(65536)
            over = not text
            if text and words:
                text, count = words.change(text)
                self.changed += count
            receiver.sendall(text)
            if not over:
                return True
        with contextlib.suppress(OSError):
            receiver.shutdown(socket.SHUT_WR)
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end.close()
        self.thread.join()
        self.over.close()
        self.listener.close()
