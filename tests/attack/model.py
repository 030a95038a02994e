"""What must come of a round of the campaign: exit status and culprit, from what has happened and
when. Pure.

The order of two things is only known within a tolerance: each is a time that somebody else has
read off a clock, and launchd may get to know of both at once. What lies within the tolerance of
the first cause is allowed beside it.
"""
import dataclasses
import signal

MS = 1_000_000
WORKERS_TOLERANCE = 5 * MS  # of two ends of workers, by their own clocks
TOLERANCE = 100 * MS  # of anything else, on a loaded machine


@dataclasses.dataclass(frozen=True)
class Cause:
    """Something that may have ended the job: exit status is launchd's, should it be the first."""
    at_ns: int
    status: int
    rank: int | None = None  # of the worker that failed
    own: bool = False  # by the worker itself, so that its clock is the judge
    sure: bool = True  # False: it may have come too late to count, or have had no effect
    kills: bool = False  # one of launchd's two processes: counts whenever it comes


@dataclasses.dataclass(frozen=True)
class Expected:
    statuses: set
    ranks: set  # that may be named as the culprit; None: nobody


def tolerance(one, other, exact):
    return WORKERS_TOLERANCE if one.own and other.own and exact else TOLERANCE


def expect(causes, exact):
    """What may come of these causes. exact: the workers' clocks are as good as they can be."""
    sure = [cause for cause in causes if cause.sure]
    if not sure:
        found = [*causes]
    else:
        first = min(sure, key=lambda cause: cause.at_ns)
        found = [cause for cause in causes if cause.kills or
                 cause.at_ns <= first.at_ns + tolerance(first, cause, exact)]
    # A killed guard or supervisor that was alive ends what went before, unless that was over.
    return Expected({cause.status for cause in found} | (set() if sure else {0}),
                    {cause.rank for cause in found} | (set() if sure else {None}))


def worker_cause(act, rank, died_ns):
    """The cause that a worker's own end is, or None: it ended with 0."""
    how, _, value = act.partition('@')[0].partition(':')
    if how == 'exit':
        return Cause(died_ns, int(value), rank, own=True) if int(value) else None
    return Cause(died_ns, 128 + int(value), rank, own=True)


def signalled_cause(number, rank, at_ns, on_term, ignores):
    """What a signal from outside to a worker may have come to. None: nothing."""
    if number == signal.SIGSTOP:
        return None
    if number == signal.SIGTERM and on_term == 'ignore':
        return None
    status = 128 + number
    if number == signal.SIGTERM and on_term:
        status = int(on_term.partition(':')[2])
    # one that ignores everything lives on, unless it is SIGKILL, or TERM with a handler
    ignored = ignores and number != signal.SIGKILL and not (number == signal.SIGTERM and on_term)
    return None if ignored else Cause(at_ns, status, rank, sure=False)
