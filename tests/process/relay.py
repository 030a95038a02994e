"""A relay between a launcher and node rank 0's, which changes words on their way: so each seems to
the other to be of another build."""
import contextlib
import select
import socket
import threading

from harness import LIMIT, until
from together import listens


class Relay:
    """Listens for one launcher at `port`. up and down: (old, new) bytes of one length, of what the
    launcher says and of what it hears; `changed` counts both. UDP does not come through. Begins
    when node rank 0 listens: it dials once, where a launcher would try again."""

    def __init__(self, hub_port, up=None, down=None):
        until(lambda: listens(hub_port), "node rank 0's launcher listens")
        self.hub = ('127.0.0.1', hub_port)
        self.words = up, down
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
            if text and words:
                self.changed += text.count(words[0])
                text = text.replace(*words)
            if text:
                receiver.sendall(text)
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
