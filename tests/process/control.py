"""A client of the control socket, launchd-control(7), apart from the one that launchd brings."""
import itertools
import json
import os
import pathlib
import signal
import socket

from harness import BUILD, LIMIT, is_running, stop, supervisor_of, until
from needs import WHY_NO_MOUNTS
from own_mounts import OWN_MOUNTS


def socket_dir(place):
    """Of the launchers of a test."""
    return place.run / 'launchd'


def socket_of(job):
    return socket_dir(job.place) / f'{job.pid}.sock'


# A /tmp of which only two directories are left; the command begins in the first one. What is in the directory `users`
# of that one stands in /tmp, too.
HIDE_TMP = """cd /tmp; mount -t tmpfs none /tmp
for dir in "$1" "$2"; do
    case $dir in /tmp/*) mkdir -p "$dir"; mount --no-canonicalize --rbind "${dir#/tmp/}" "$dir" ;; esac
done
cd "$1"; shift 2
for dir in users/*; do
    [ ! -d "$dir" ] || { mkdir -p "/tmp/${dir#users/}"; mount --bind "$dir" "/tmp/${dir#users/}"; }
done
exec "$@"
"""


def launchctl(place):
    """Its words. Root's sees the jobs of all users, and whatever runs beside this test may have one in /tmp:
    there it sees this test's alone."""
    alone = [*OWN_MOUNTS, 'sh', '-ec', HIDE_TMP, 'sh', str(place.path), str(BUILD)]
    return [*([] if WHY_NO_MOUNTS else alone), str(BUILD / 'launchd'), 'ctl']


def kill_both(job):
    """Supervisor and guard, and neither can act on the other's end."""
    supervisor = supervisor_of(job.pid)
    stop(job.pid)
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not is_running(supervisor), 'the supervisor to end')
    job.kill()
    job.process.wait()


class Refused(Exception):
    """An error's code, and what it says."""


class Control:
    """A connection to a launcher; waits until its socket is there."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        until(pathlib.Path(path).exists, f'{path} to be there')
        until(lambda: self.socket.connect_ex(str(path)) == 0, 'it to listen')
        self.lines = self.socket.makefile('rb')
        self.numbers = itertools.count()

    def __enter__(self):
        return self

    def __exit__(self, *how):
        self.close()

    def close(self):
        self.lines.close()
        self.socket.close()

    def send(self, op, **members):
        number = next(self.numbers)
        self.socket.sendall(json.dumps({'v': 1, 'id': number, 'op': op, **members}).encode() + b'\n')
        return number

    def line(self):
        """The next line as an object; None: the end."""
        line = self.lines.readline()
        assert not line or line.endswith(b'\n')
        return json.loads(line) if line else None

    def ask(self, op, **members):
        number = self.send(op, **members)
        answer = self.line()
        assert answer['v'] == 1 and answer['id'] == number
        if not answer['ok']:
            raise Refused(answer['error']['code'], answer['error']['text'])
        return answer['result']
