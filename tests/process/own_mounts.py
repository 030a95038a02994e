"""own_mounts.py COMMAND...: the command in a mount namespace of its own, whatever the root is.

unshare(1) makes the mounts private by way of the root, and fails where that is no mount point: in a
plain chroot. There the way is through setns(2), which leaves the chroot for the namespace's root,
and back into it, after it has become a mount point: unshare(1) and nsenter(1) work below this one.
"""
import ctypes
import errno
import os
import sys

OWN_MOUNTS = [sys.executable, '-I', '-S', os.path.abspath(__file__)]
CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 1 << 18


def call(name, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f'{name}: {os.strerror(number)}')


def make_private():
    call('mount', None, b'/', None, MS_REC | MS_PRIVATE, None)


def leave_and_return():
    """Our root, no mount point, becomes one."""
    place = os.getcwd()
    root = os.open('/', os.O_PATH | os.O_DIRECTORY)
    with open('/proc/self/ns/mnt', 'rb') as own:
        call('setns', own.fileno(), CLONE_NEWNS)
    make_private()
    os.fchdir(root)
    os.close(root)
    call('mount', b'.', b'.', None, MS_BIND | MS_REC, None)
    os.chdir(os.getcwd())  # what is mounted there
    os.chroot('.')
    os.chdir(place)


def main(argv):
    try:
        call('unshare', CLONE_NEWNS)
        try:
            make_private()
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            leave_and_return()
    except OSError as error:
        sys.exit(f'no mount namespace can be made: {error.strerror or error}')
    os.execvp(argv[0], argv)


if __name__ == '__main__':
    main(sys.argv[1:])
