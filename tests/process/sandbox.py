"""What a sandbox or an old kernel takes away from a process: to be called between fork and exec."""
import ctypes
import errno
import os
import struct

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, JUMP_IF_ANY, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # linux/filter.h
NUMBER, ARGS = 0, 16  # of struct seccomp_data, linux/seccomp.h
ALLOW, FAIL = 0x7fff0000, 0x00050000
CLONE_PIDFD, CLOSE_RANGE_CLOEXEC, WALL = 0x1000, 4, 0x40000000
MACHINE = {'x86_64': {'clone': 56, 'sched_setaffinity': 203, 'set_mempolicy': 238, 'waitid': 247,
                      'rseq': 334},
           'aarch64': {'clone': 220, 'sched_setaffinity': 122, 'set_mempolicy': 237, 'waitid': 95,
                       'rseq': 293}}[os.uname().machine]
# the same on every machine, as all that are newer than Linux 5.0
NUMBERS = {**MACHINE, 'pidfd_send_signal': 424, 'pidfd_open': 434, 'clone3': 435, 'close_range': 436,
           'pidfd_getfd': 438, 'futex_waitv': 449}
libc = ctypes.CDLL(None, use_errno=True)


def fails(call, error=errno.EPERM):
    return [(JUMP_IF_EQUAL, 0, 1, NUMBERS[call]), (RETURN, 0, 0, FAIL | error)]


def fails_from(call, error):
    """All calls from this one on, in the order of their numbers, which is that of their age."""
    return [(JUMP_IF_AT_LEAST, 0, 1, NUMBERS[call]), (RETURN, 0, 0, FAIL | error)]


def fails_with(call, arg, flags, error=errno.EINVAL):
    """Where an argument has one of these flags."""
    return [(JUMP_IF_EQUAL, 0, 4, NUMBERS[call]), (LOAD, 0, 0, ARGS + 8 * arg),
            (JUMP_IF_ANY, 0, 1, flags), (RETURN, 0, 0, FAIL | error), (LOAD, 0, 0, NUMBER)]


# What the kernels and sandboxes below them have not. A kernel before 5.2 takes no notice of
# CLONE_PIDFD, which no filter can do. No C library that is run by Docker 19.03 calls clone3, whose
# EPERM would be the end of every thread; ours here does, and is told ENOSYS.
LEVELS = {
    '4.18': [*fails_from('pidfd_send_signal', errno.ENOSYS), *fails_with('clone', 0, CLONE_PIDFD)],
    # glibc's clone3 and ours look the same to a filter: it has neither, so none goes into a cgroup
    '5.4': fails_from('clone3', errno.ENOSYS),
    '5.10': [*fails_with('close_range', 2, CLOSE_RANGE_CLOEXEC), *fails_from('pidfd_getfd', errno.ENOSYS)],
    '5.15': fails_from('futex_waitv', errno.ENOSYS),
    'docker-19.03': [*fails('clone3', errno.ENOSYS), *fails('rseq'),
                     *fails_from('pidfd_send_signal', errno.EPERM)],
    # until its release of May 2026
    'gvisor': [*fails('pidfd_send_signal', errno.ENOSYS), *fails('pidfd_open', errno.ENOSYS),
               *fails('pidfd_getfd', errno.ENOSYS), *fails_with('clone', 0, CLONE_PIDFD),
               *fails('rseq', errno.ENOSYS)],
}
# of these, the ones without pidfds, or with none but a worker's
BLIND = ('4.18', 'gvisor')
LEVEL = os.environ.get('LAUNCHD_KERNEL')  # of every launcher that the tests start; unset: this kernel


def install(*rules):
    """They are obeyed from now on, in this process and all below it."""
    code = [(LOAD, 0, 0, NUMBER), *(line for rule in rules for line in rule), (RETURN, 0, 0, ALLOW)]
    text = ctypes.create_string_buffer(b''.join(struct.pack('=HBBI', *line) for line in code))
    program = ctypes.create_string_buffer(struct.pack('@HP', len(code), ctypes.addressof(text)))
    if libc.prctl(PR_SET_SECCOMP, FILTER, program, 0, 0) == 0:
        return
    # not root: no program of theirs may become another user then
    for args in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, FILTER, program, 0, 0)):
        if libc.prctl(*args) < 0:
            raise OSError(ctypes.get_errno(), 'prctl')


def without(*calls, error=errno.EPERM):
    """These system calls fail."""
    install(*(fails(call, error) for call in calls))


def enter(level):
    """As on that kernel, or in that sandbox; None: as it is here."""
    if level:
        install(LEVELS[level])
