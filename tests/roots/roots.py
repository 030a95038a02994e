#!/usr/bin/python3
"""roots.py - fresh systems of other releases, in which packages are built, installed and tried.

    tests/roots/roots.py [--network] [--packages "NAME..."] RELEASE COMMAND...
        as in: tests/roots/roots.py --packages openmpi-bin ubuntu-20.04 mpirun --version

Where it is called is /mnt for the command.

A release's smallest system is made once by mmdebstrap, and what apt adds to it once for each list
of packages; both are kept in $LAUNCHD_ROOTS or build-test/roots, and shared by all that use them.
What a Root changes lies in an overlay over these, which goes with it. Each command runs in mount,
PID, network, UTS and IPC namespaces of its own that end with it: no process and no mount outlives a
command, files outlive it until the Root is closed. With network it is in ours, as apt needs it.

Exit code: the command's, or 77 where such a system can't be made here; one line says why.
"""
import argparse
import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "process")]
from machine import SOURCE, CantBeMade, call, make_devices, remove, why_not  # noqa: E402
from own_mounts import OWN_MOUNTS  # noqa: E402
from process_1 import hand_over  # noqa: E402

CANT = 77
LIMIT_S = 900  # to install a compiler and its friends over a slow line
# which keys their archives sign with is known by the name of the distribution
RELEASES = {"debian-11": "bullseye", "debian-12": "bookworm", "debian-13": "trixie",
            "ubuntu-20.04": "focal", "ubuntu-22.04": "jammy", "ubuntu-24.04": "noble"}
KEYRING = "usr/share/keyrings/ubuntu-archive-keyring.gpg"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "TERM": "dumb",
               "DEBIAN_FRONTEND": "noninteractive"}
HOSTS = "127.0.0.1 localhost node\n::1 localhost\n"


def cache():
    return Path(os.environ.get("LAUNCHD_ROOTS") or SOURCE / "build-test" / "roots").resolve()


def why_impossible():
    """Why no root can be made on this machine; "": they can."""
    if os.geteuid() != 0:
        return "needs root"
    return why_not("chroot", "ip", "mmdebstrap")


@contextlib.contextmanager
def made_once(path):
    """Where to make a directory that appears whole or not at all; None if it is there already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{path}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            yield None
            return
        part = path.with_name(path.name + ".part")
        remove(part)
        yield part
        part.rename(path)


def keys():
    """The file with those that Ubuntu's archive signs with; Debian has it from its 13th release on."""
    here = Path("/", KEYRING)
    return here if here.exists() else layer_of("debian-13", ["ubuntu-keyring"]) / KEYRING


def base_of(release):
    """The directory with a release's smallest system."""
    base = cache() / release
    with made_once(base) as part:
        if part:
            options = []
            if release.startswith("ubuntu"):
                options = ["--components=main,universe", f"--keyring={keys()}"]
            call("mmdebstrap", "--mode=root", "--variant=minbase", "--include=apt", "--quiet", *options,
                 "--dpkgopt=force-unsafe-io", RELEASES[release], part, timeout=LIMIT_S)
            (part / "etc/hosts").write_text(HOSTS)
            (part / "etc/resolv.conf").write_text("")
    return base


def layer_of(release, packages):
    """The directory with what apt adds to it for these packages, and what these recommend is not."""
    name = " ".join(sorted(packages))
    layer = cache() / f"{release}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    base = base_of(release)
    with made_once(layer) as part:
        if part:
            with Root(release) as root:
                root.apt("install", "--no-install-recommends", *packages)
                root.run(["apt-get", "clean"])
                root.upper.rename(part)
                root.upper.mkdir()
            Path(f"{layer}.packages").write_text(name + "\n")
    assert base.exists()
    return layer


class Root:
    """A system of that release, with these packages. Raises CantBeMade, with the reason.

    upper: the directory with what commands have changed in it."""

    def __init__(self, release, packages=()):
        why = why_impossible()
        if why:
            raise CantBeMade(why)
        lower = [layer_of(release, packages)] if packages else []
        self.lower = [*lower, base_of(release)]
        for old in cache().glob("root-*"):
            self._remove_if_left(old)
        self._place = Path(tempfile.mkdtemp(prefix="root-", dir=cache()))
        self._lock = open(self._place / "lock", "w", encoding="utf-8")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.upper = self._place / "upper"
        for name in ("upper", "work", "root"):
            (self._place / name).mkdir()

    @staticmethod
    def _remove_if_left(place):
        """What a process left that was killed."""
        with contextlib.suppress(FileNotFoundError, BlockingIOError), \
                open(place / "lock", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(place)

    def close(self):
        remove(self._place)
        self._lock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def popen(self, argv, *, network=False, shared=None, env=None, cwd="/", **options):
        """Starts a command in here, one at a time. shared: {directory of ours: its name in here}."""
        binds = [word for pair in (shared or {}).items() for word in ("--bind", *pair)]
        own = [] if network else ["--net"]
        settings = [f"{name}={value}" for name, value in {**ENVIRONMENT, **(env or {})}.items()]
        lock = self._lock.fileno()
        return subprocess.Popen(list(map(str, [
            *OWN_MOUNTS, "setpriv", "--pdeathsig", "KILL",
            "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "--ipc", *own,
            sys.executable, __file__, "--inside", self._place, lock, *self.lower, *binds, "--",
            "env", "-i", "-C", cwd, *settings, *argv])), pass_fds=[lock], **options)

    def run(self, argv, *, limit_s=LIMIT_S, **how):
        """Runs a command to its end: a CompletedProcess."""
        with self.popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True, **how) as process:
            try:
                out, err = process.communicate(timeout=limit_s)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def apt(self, *words, **how):
        """What apt-get does with today's lists; its output."""
        for argv in (["update", "-qq"], ["-y", "-qq", *words]):
            done = self.run(["apt-get", *argv], network=True, **how)
            if done.returncode:
                raise CantBeMade(f"apt-get {argv[0]}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def files(self):
        """What is there, but for caches and logs."""
        listed = self.run(["find", "/", "-xdev", "(", "-path", "/var/cache", "-o", "-path",
                           "/var/log", "-o", "-path", "/var/lib/apt", "-o", "-path", "/tmp", ")",
                           "-prune", "-o", "-print"])
        assert listed.returncode == 0, listed
        return set(listed.stdout.splitlines())


def inside(argv):
    """As process 1 of its PID namespace. Does not return."""
    options, command = argv[:argv.index("--")], argv[argv.index("--") + 1:]
    first = options.index("--bind") if "--bind" in options else len(options)
    place, lock, lower, binds = Path(options[0]), int(options[1]), options[2:first], options[first:]
    root = place / "root"
    try:
        call("mount", "-t", "overlay", "-o", f"lowerdir={':'.join(lower)},"
             f"upperdir={place}/upper,workdir={place}/work", "none", root)
        call("mount", "-t", "proc", "none", root / "proc")
        call("mount", "-t", "sysfs", "-o", "ro", "none", root / "sys")
        make_devices(root / "dev")
        call("mount", "--bind", "/etc/resolv.conf", root / "etc/resolv.conf")
        for source, target in zip(binds[1::3], binds[2::3]):
            point = root / target.lstrip("/")
            point.mkdir(parents=True, exist_ok=True)
            call("mount", "--bind", source, point)
        call("hostname", "node")
        call("ip", "link", "set", "lo", "up")
    except (CantBeMade, OSError) as error:
        print(f"roots: no such system can be made here: {error}", file=sys.stderr, flush=True)
        os._exit(CANT)
    os.set_inheritable(lock, False)  # process 1 keeps it, and who removes what was left waits for it
    hand_over()
    os.chroot(root)
    os.chdir("/")
    os.execvpe(command[0], command, ENVIRONMENT)


def main():
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2:])
    summary, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", action="store_true", help="ours, not one of its own")
    parser.add_argument("--packages", default="", help="what is installed there, besides")
    parser.add_argument("release", choices=RELEASES)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    try:
        with Root(args.release, args.packages.split()) as root:
            return root.popen(args.command or ["bash"], network=args.network,
                              shared={Path.cwd(): "/mnt"}).wait()
    except (CantBeMade, subprocess.TimeoutExpired) as error:
        print(f"roots: no {args.release} can be made here: {error}", file=sys.stderr)
        return CANT


if __name__ == "__main__":
    sys.exit(main())
