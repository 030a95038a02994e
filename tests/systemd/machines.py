"""machines.py - machines with systemd as process 1, simulated: an overlay of this system's root, booted
by systemd-nspawn on each host of a cluster (tests/hosts/cluster.py). Needs root.

Each has its own files, of which nothing is kept, but one directory, /run/home, that all share, and the
host's network: their names are in /etc/hosts. They see a cgroup2 hierarchy without controllers where
the real ones are used by version 1. With the cluster all of it goes, mounts and control groups, too.
"""
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "hosts"))
from cluster import HOME, LIMIT_S, WAITING, Cluster, ClusterError, why_impossible  # noqa: E402
from waiting import read_if_there, until  # noqa: E402

NSPAWN = "systemd-nspawn"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# On a host; arguments: its name, where to install from. A reboot is an exit with 133 (systemd-nspawn(1),
# --keep-unit), and then it is booted again, with the files that it has now.
MACHINE = f"""set -e
umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir /tmp/machine
cd /tmp/machine
mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
cp -a "$2/." root
systemd-sysusers --root=root
cp /etc/hosts root/etc/hosts
: >root/etc/machine-id
echo "$1" >root/etc/hostname
rm -rf root/var/log/journal
mkdir root/var/log/journal
rc=133
while [ $rc = 133 ]; do
    rc=0
    {NSPAWN} --register=no --keep-unit --hostname="$1" --bind={HOME} --console=passive --boot --directory=root \\
        </dev/null || rc=$?
done
exit $rc
"""


def why_no_machines():
    """Why this machine or user can't have them; None: it can."""
    if not shutil.which(NSPAWN):
        return f"{NSPAWN} is not installed"
    if not Path("/lib/systemd/systemd").exists():
        return "systemd is not installed"
    if not os.path.ismount("/sys/fs/cgroup"):
        return "a machine needs control groups, and none are mounted here"
    return why_impossible()


@functools.cache
def trial():
    """(why no machine boots here, or '', why not all of its units start, or ''), as found by booting one on which
    nothing of launchd is installed."""
    with tempfile.TemporaryDirectory() as nothing:
        os.chmod(nothing, 0o755)  # of the machine's root, too
        try:
            with Machines(1, nothing) as one:
                failed = "" if one.state(0) == "running" else \
                    one.on(0, "systemctl", "--failed", "--plain", "--no-legend").stdout
        except (ClusterError, OSError) as error:
            return f"{NSPAWN} boots no systemd here: {' '.join(str(error).split()[-60:])}", ""
    return "", failed and f"a machine here has units that fail without launchd, too: {' '.join(failed.split())}"


class Machines(Cluster):
    """Machines n0, n1, ..., booted. installed: a directory tree that goes over the root of each."""

    def __init__(self, count, installed, **options):
        super().__init__(count, [installed], **options)
        self._installed = installed
        self._booted = []

    def __enter__(self):
        super().__enter__()
        try:
            self._booted = [self.boot(i) for i in range(len(self.names))]
            for i in range(len(self.names)):
                self.wait_booted(i)
        except BaseException:
            self.close()
            raise
        return self

    def boot(self, host):
        """Turns it on; what it says on its console goes to a file in the shared directory."""
        with open(self.home / f"{self.names[host]}.console", "ab") as console:
            return self.popen(host, ["sh", "-c", MACHINE, "sh", self.names[host], self._installed],
                              {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
                              stdout=console, stderr=console)

    def wait_booted(self, host, how=("running", "degraded")):
        """Until its boot is over; says how: "running" where every unit has started."""
        def booted():
            if self._booted[host].poll() is not None:
                raise ClusterError(f"{self.names[host]} does not boot: {self.console(host)}")
            state = self.state(host)
            return state if state in how else None

        return self.until(host, booted, f"{self.names[host]} to boot")

    def console(self, host):
        """The end of what it has said there."""
        return (self.home / f"{self.names[host]}.console").read_text(errors="replace")[-4000:]

    def state(self, host):
        """As systemctl(1), is-system-running, has it; "off": it is not booted."""
        try:
            return self.on(host, "systemctl", "is-system-running").stdout.strip()
        except ClusterError:
            return "off"

    def until(self, host, condition, what):
        """Waits until it is true, and returns it; `what`, a text or a function that makes it."""
        return until(condition, lambda: f"{what if isinstance(what, str) else what()}\n{self.console(host)}",
                     LIMIT_S, ClusterError)

    def reboot(self, host):
        """Until it is up again, though not with all its units."""
        before = self.init_of(host)
        self.on(host, "systemctl", "reboot")
        self.until(host, lambda: self.is_up(host) and self.init_of(host) != before,
                   f"{self.names[host]} to boot again")

    def is_up(self, host):
        """Its systemd answers, though not all units may have started."""
        return self.state(host) in ("starting", "running", "degraded")

    def init_of(self, host):
        """The pid, as it is here, of its process 1."""
        for pid, line in self.processes(host):
            if not line.startswith(NSPAWN):
                continue
            for child in read_if_there(f"/proc/{pid}/task/{pid}/children").split():
                _, found, inside = read_if_there(f"/proc/{child}/status").partition("\nNSpid:")
                if found and inside.split("\n")[0].split()[-1] == "1":
                    return int(child)
        raise ClusterError(f"{self.names[host]} is not booted")

    def _within(self, host):
        # A machine that goes down stops all its processes before it kills them. Of env, as no command may be one of
        # the shell's own, as kill is.
        return ["nsenter", "--target", str(self.init_of(host)), "--all", "--no-fork", "--",
                "env", "-i", f"PATH={PATH}", "LC_ALL=C.UTF-8", "HOME=/root", *WAITING, "env"]

    def on(self, host, *argv, **options):
        """Runs a command on a machine, as root, to its end; a CompletedProcess."""
        return subprocess.run([*self._within(host), *map(str, argv)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=LIMIT_S, **options)

    def start(self, host, *argv):
        """Starts a command on a machine; the caller waits for it."""
        return subprocess.Popen([*self._within(host), *map(str, argv)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def must(self, host, *argv):
        """The output of a command on a machine that has to succeed."""
        done = self.on(host, *argv)
        assert done.returncode == 0, done
        return done.stdout

    def journal(self, host, *options):
        """What journalctl prints, once journald has read all that was sent to it."""
        self.must(host, "journalctl", "--sync")
        return self.must(host, "journalctl", "--no-pager", "--output=cat", *options)

    def file(self, host, path):
        """A machine's file, as a path here."""
        return Path(f"/proc/{self.init_of(host)}/root{path}")

    def show(self, unit, *names, host=0):
        """Properties of a unit, as text; {}: systemd does not answer yet."""
        said = self.on(host, "systemctl", "show", unit, *(f"--property={name}" for name in names))
        return dict(line.split("=", 1) for line in said.stdout.splitlines())

    def until_unit(self, unit, host=0, **wanted):
        """Waits until a unit has these properties, as in ActiveState="active"."""
        return self.until(host, lambda: self.show(unit, *wanted, host=host) == wanted,
                          lambda: f"{unit}: {wanted}, not {self.show(unit, *wanted, host=host)}\n" +
                          self.on(host, "journalctl", "--no-pager", "--unit", unit).stdout[-4000:])
