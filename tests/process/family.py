"""The test's side of the worker `family`: who is there, and what each of them was told."""
import os
import signal
import time

from harness import children_of, is_running, native, signal_if_there, status_of, until

FENCE = signal.SIGRTMIN + 9  # above all that launchd is sent: read after whatever waits with it
LONG = '--shutdown-timeout=600'  # so that nothing but what is tested ends a worker


class Family:
    """A job of `family` workers. pids: of each of them, by (rank, name)."""

    def __init__(self, start, place, options=(), kin='', stay='', env=None, count=1, **how):
        self.fifo = place.fifo(f'told{len(place.fifos)}')
        self.began = time.monotonic()
        self.job = start(native('family', f'--nproc_per_node={count}', *options),
                         {'TELL': self.fifo.path, 'KIN': kin, 'STAY': stay,
                          'MUTE': str(int(signal.SIGCONT)), **(env or {})}, **how)
        self.pids = self.ready(count, kin, env)

    def ready(self, count, kin, env):
        wanted = sum(1 + len((env or {}).get(f'KIN_{rank}', kin).split())
                     for rank in range(count))
        pids = {}
        for _ in range(wanted):
            rank, pid, text = self.fifo.line()
            name, _, what = text.partition(' ')
            assert what == 'ready', text
            pids[rank, name] = pid
        assert len(pids) == wanted, pids
        return pids

    def of(self, *names):
        return {key: pid for key, pid in self.pids.items() if key[1] in names}

    def told(self, number, *whom):
        """The next that is told is this signal, by each of these (rank, name), in any order."""
        self.told_all([(*key, number) for key in whom])

    def told_all(self, wanted):
        found = []
        for _ in wanted:
            rank, _, text = self.fifo.line()
            name, _, number = text.partition(' ')
            found.append((rank, name, int(number)))
        wanted = sorted((rank, name, int(number)) for rank, name, number in wanted)
        assert sorted(found) == wanted, f'{sorted(found)}, not {wanted}'

    def fence(self, *whom):
        """These have got no signal that was not told: each is sent one, and tells that next."""
        for key in whom:
            os.kill(self.pids[key], FENCE)
            self.told(FENCE, key)

    def workers(self):
        return sorted(self.of('worker'))

    def forward(self, number, *whom):
        """A signal that must reach these (the workers), and the job lives. What launchd did before
        it is done then."""
        self.job.signal(number)
        self.told(number, *(whom or self.workers()))

    def end_when_calm(self, guard):
        """Kills all, once launchd has read every signal. Otherwise a CONT sent after the ending signal may reach an
        exiting supervisor. It would undo LeakSanitizer's STOP, and both would hang."""
        calm(guard)
        for pid in self.pids.values():
            signal_if_there(pid, signal.SIGKILL)

    def gone(self, *whom):
        until(lambda: not any(is_running(self.pids[key]) for key in whom), f'{whom} to end')

    def all_gone(self):
        """Now, not soon: what launchd has ended is gone when it ends."""
        alive = {key: pid for key, pid in self.pids.items() if is_running(pid)}
        assert not alive, f'still there: {alive}'


def is_stopped(pid):
    return status_of(pid).get('State', '?')[0] == 'T'


def pending(pid, but=()):
    """Whether signals, but for these, wait to be read by this process. Nobody reads a dead one's."""
    status = status_of(pid) if is_running(pid) else {}
    waiting = int(status.get('SigPnd', '0'), 16) | int(status.get('ShdPnd', '0'), 16)
    return bool(waiting & ~sum(1 << (number - 1) for number in but))


def calm(guard):
    """Both processes of a launcher have read every signal that they got, or have ended."""
    try:
        supervisors = children_of(guard)
    except FileNotFoundError:
        return
    # a CONT of the guard's wakes the supervisor, and is never read
    until(lambda: not pending(guard) and
          not any(pending(pid, but=[signal.SIGCONT]) for pid in supervisors),
          'signals to be read')


def best_of_three(measure, least, most):
    """A time that load can only make longer: never below least, and once below most."""
    for _ in range(3):
        took = measure()
        assert took >= least, f'{took:.3f} s, not {least} s at least'
        if took < most:
            return
    raise AssertionError(f'{took:.3f} s, not below {most} s')
