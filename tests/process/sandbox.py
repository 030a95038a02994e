"""What a sandbox or an old kernel takes away from a process: to be called between fork and exec."""
import ctypes
import errno
import struct

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
UNAME26 = 0x0020000  # personality(2): the kernel says that it is a 2.6
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # of linux/filter.h
ALLOW, FAIL = 0x7fff0000, 0x00050000
# the same on every machine, as all that are newer than Linux 5.0
NUMBERS = {'pidfd_send_signal': 424, 'pidfd_open': 434, 'clone3': 435, 'close_range': 436}
libc = ctypes.CDLL(None, use_errno=True)


def without(*calls, error=errno.EPERM):
    """These system calls fail from now on, in this process and all below it."""
    code = [(LOAD_NUMBER, 0, 0, 0)]
    for call in calls:
        code += [(JUMP_IF_EQUAL, 0, 1, NUMBERS[call]), (RETURN, 0, 0, FAIL | error)]
    code.append((RETURN, 0, 0, ALLOW))
    text = ctypes.create_string_buffer(b''.join(struct.pack('=HBBI', *line) for line in code))
    program = ctypes.create_string_buffer(struct.pack('@HP', len(code), ctypes.addressof(text)))
    for args in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, FILTER, program, 0, 0)):
        if libc.prctl(*args) < 0:
            raise OSError(ctypes.get_errno(), 'prctl')


def claim_to_be_old():
    """The kernel's release is a 2.6.x for this process and all below it."""
    if libc.personality(UNAME26) < 0:
        raise OSError(ctypes.get_errno(), 'personality')
