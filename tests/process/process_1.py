"""process_1.py - what process 1 of a container owes to the others."""
import os
import signal

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def hand_over():
    """Returns in a process that is not process 1: in us, or where we are it (docker run without
    --init) in a child, while we reap what is left to us. Our exit code is then that child's, and
    with us the kernel ends all that is left."""
    if os.getpid() != 1:
        return
    # they stay blocked here: one that comes just before a wait would not be acted on until its end
    heard = {*PASSED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    while True:
        number = signal.sigwait(heard)
        if number == signal.SIGCHLD:
            reap(child)
        else:
            os.kill(child, number)


def reap(child):
    """All that have ended; ends with the child."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
