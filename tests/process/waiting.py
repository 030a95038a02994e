"""waiting.py - how all tests wait: for a condition, for an event that the kernel reports, or, if there is
neither, for a time span; and helpers for processes that may have exited. Needs no pytest."""
import contextlib
import os
import pathlib
import select
import signal
import time

# Far above what anything here takes, for slow machines and sanitizers.
LIMIT = 60.0


def until(condition, what, limit=LIMIT, error=AssertionError):
    """Waits until condition() is true and returns its value. Where the kernel reports an event, wait for that
    instead. what: words, or a function that makes them when they are needed."""
    end = time.monotonic() + limit
    while True:
        asked = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > end:
            raise error(f'waited {limit:.0f} s for {what() if callable(what) else what}')
        # a slow condition, such as one that runs systemctl, takes at most a tenth of a CPU, unless it needs 20 ms
        time.sleep(min(max(0.005, 9 * (now - asked)), 0.2))


def let_pass(seconds, why):
    """Sleeps for a span that is itself tested or measured. Use until() if there is a condition. why: what
    happens, or must not happen, meanwhile."""
    assert why
    time.sleep(max(0.0, seconds))


def settled(measure, span=0.1, limit=LIMIT):
    """Waits until a measure stays the same for a span; returns it. None: it can't be measured yet."""
    seen = [measure()]

    def same():
        let_pass(span, 'whether it stays as it is')
        seen.append(measure())
        return seen[-1] == seen[-2] and seen[-1] is not None

    until(same, lambda: f'{seen[-1]} to settle', limit)
    return seen[-1]


def until_group(group, line, limit=LIMIT):
    """Waits until a control group's cgroup.events has this line; the kernel reports each change of it."""
    end = time.monotonic() + limit
    poll = select.poll()
    with open(pathlib.Path(group) / 'cgroup.events', 'rb', buffering=0) as events:
        poll.register(events, select.POLLPRI)
        while line not in os.pread(events.fileno(), 4096, 0).decode().splitlines():
            left = end - time.monotonic()
            assert left > 0 and poll.poll(left * 1000), f'waited {limit:.0f} s for {group} to be "{line}"'


# --- processes that may have ended


def signal_if_there(pid, number, send=os.kill):
    """Sends a signal; returns whether the process still existed. send: os.killpg for a group."""
    try:
        send(pid, number)
        return True
    except ProcessLookupError:
        return False


def read_if_there(path):
    """A file below /proc, or a control group's; '': its process has ended, perhaps while it was being read."""
    try:
        return pathlib.Path(path).read_text(errors='replace')
    except (FileNotFoundError, ProcessLookupError):
        return ''


def pidfd_if_there(pid):
    """Returns a pidfd, or None if the process was reaped."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def running_after(pids, limit):
    """Waits until these processes have exited, for at most `limit`; returns those that still run."""
    end = time.monotonic() + limit
    poll = select.poll()
    with contextlib.ExitStack() as opened:
        pid_of = {}
        for pid in pids:
            fd = pidfd_if_there(pid)
            if fd is not None:
                opened.callback(os.close, fd)
                pid_of[fd] = pid
                poll.register(fd, select.POLLIN)
        while pid_of:
            found = poll.poll(max(0, (end - time.monotonic()) * 1000))
            if not found:
                break
            for fd, _ in found:
                poll.unregister(fd)
                del pid_of[fd]
        return list(pid_of.values())


def stop(pid):
    """Stops a process, and returns when it does not run any more."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: read_if_there(f'/proc/{pid}/stat').rpartition(') ')[2][:1] in ('T', 't', 'Z', ''),
          f'process {pid} to stop')
