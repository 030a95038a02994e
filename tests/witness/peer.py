"""Somebody outside the job whom its ranks talk to over TCP: what a connection says first, in a line, is how
many bytes a second it is to be sent; 0: it is never answered; "take": what it sends is read."""
import contextlib
import socket
import threading
import time

TICK_S = 0.1


class Peer:
    def __init__(self):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=[connection], daemon=True).start()

    @staticmethod
    def serve(connection):
        with contextlib.suppress(OSError), connection:
            word = connection.makefile('rb').readline().decode().strip()
            if word not in ('take', '0'):
                while True:
                    connection.sendall(bytes(int(int(word) * TICK_S)))
                    time.sleep(TICK_S)
            while connection.recv(65536):
                pass

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
