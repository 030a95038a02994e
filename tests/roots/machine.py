"""machine.py - what it takes to make one machine out of another: for tests/elsewhere and tests/roots."""
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "process"))
from own_mounts import OWN_MOUNTS  # noqa: E402

SOURCE = Path(__file__).resolve().parent.parent.parent
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


class CantBeMade(Exception):
    """Such a machine, here: why."""


def call(*argv, **how):
    """A command that must succeed; its output."""
    done = subprocess.run(list(map(str, argv)), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, **how)
    if done.returncode:
        raise CantBeMade(f"{' '.join(map(str, argv[:2]))}: {done.stderr.strip()}")
    return done.stdout


def copy_checkout(to):
    """What it would have without git and builds."""
    shutil.copytree(SOURCE, to, symlinks=True, ignore=lambda path, names: [
        name for name in names if Path(path) == SOURCE and name.startswith((".git", "build"))
        and name != ".gitignore"] + [name for name in names if name == "__pycache__"])


def why_not(*tools):
    """Why there can't be an overlay in namespaces of its own here, with these tools; "": there can."""
    for tool in ("unshare", "mount", *tools):
        if not shutil.which(tool):
            return f"needs {tool}"
    if "overlay" not in Path("/proc/filesystems").read_text():
        subprocess.run(["modprobe", "overlay"], capture_output=True, check=False)
        if "overlay" not in Path("/proc/filesystems").read_text():
            return "needs a kernel with overlayfs"
    trial = subprocess.run([*OWN_MOUNTS, "unshare", "--pid", "--fork", "--mount-proc", "true"],
                           capture_output=True, text=True, check=False)
    return trial.stderr.strip()


def mounts_below(path):
    """Mount points, the last first."""
    points = [line.split(" ")[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in reversed(points) if Path(point).is_relative_to(path)]


def remove(path):
    """Never through a mount: half of this system may be mounted below."""
    below = mounts_below(path)
    if below:
        sys.exit(f"{below[0]} is still mounted: {path} is not removed")
    if path.exists():
        shutil.rmtree(path)


def make_devices(dev):
    """What a container has in /dev, and 64 MB of /dev/shm."""
    call("mount", "-t", "tmpfs", "-o", "mode=755,size=64k", "none", dev)
    for name in DEVICES:
        (dev / name).touch()
        call("mount", "--bind", f"/dev/{name}", dev / name)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"),
                         ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2"),
                         ("ptmx", "pts/ptmx")):
        (dev / name).symlink_to(target)
    for name, kind_of, options in (("pts", "devpts", "newinstance,ptmxmode=0666,mode=620"),
                                   ("shm", "tmpfs", "mode=1777,size=64m")):
        (dev / name).mkdir()
        call("mount", "-t", kind_of, "-o", options, "none", dev / name)
