"""Many who connect to a port of this host and say nothing."""
import contextlib
import resource
import select
import socket
import threading


class Crowd:
    """Holds `count` connections, from `hosts` addresses of loopback in turn; one that is closed is
    opened again by the next."""

    def __init__(self, port, count, hosts):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.limit = soft, hard
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count + 256), hard), hard))
        self.port, self.count, self.hosts = port, count, hosts
        self.dialed = 0
        self.open = {}
        self.poll = select.epoll()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _dial(self):
        self.dialed += 1
        one = socket.socket()
        one.setblocking(False)
        one.bind((f'127.0.{1 + self.dialed % self.hosts // 200}.{1 + self.dialed % 200}', 0))
        with contextlib.suppress(BlockingIOError):
            one.connect(('127.0.0.1', self.port))
        self.open[one.fileno()] = one
        self.poll.register(one, select.EPOLLRDHUP)

    def _run(self):
        while not self.over.is_set():
            for fd, _ in self.poll.poll(0):
                self.open.pop(fd).close()
            while len(self.open) < self.count:
                self._dial()
            self.over.wait(0.02)  # how often they come again, unless it is over

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        for one in self.open.values():
            one.close()
        self.poll.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, self.limit)
