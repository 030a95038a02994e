"""Fixtures of the tests on several simulated hosts."""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cluster import HOME, mpirun_on, why_impossible  # noqa: E402
from harness import Fifo, Place  # noqa: E402
from job import JobHosts, MpirunJob, StaticJob, closed_after  # noqa: E402
from scene import Scene  # noqa: E402

IMPOSSIBLE = why_impossible()
SANITIZERS = JobHosts.sanitizers()


class Hosts(JobHosts):
    """`place` is the shared directory as the harness knows it."""

    def _start(self):
        super()._start()
        self.place = Place(self.home)

    def close(self):
        for fifo in self.place.fifos if hasattr(self, "place") else ():
            fifo.close()
        super().close()

    def fifo(self, name):
        """A FIFO for workers on all hosts, and the name by which they know it."""
        self.place.fifos.append(Fifo(self.home / name))
        return self.place.fifos[-1], f"{HOME}/{name}"

    def mpirun(self, launchd, *, n=None, options=None, env=None, export=None, before=()):
        """Starts one launchd per host by mpirun on n0.

        env: what mpirun finds in its environment, as from a batch system; of it only OMPI_* gets
        to the other hosts. export: what it is told to hand to all (-x). before: words before
        mpirun itself.
        """
        exported = {**SANITIZERS, "DUMP_DIR": f"{HOME}/out", **(export or {})}
        return self.popen(0, [
            *before, *mpirun_on(
                self.names, *(["--map-by", "ppr:1:node"] if options is None else options),
                count=n, exported=exported), *launchd],
            {**exported, **(env or {})})

    def run_mpi(self, launchd, **how):
        return self.finish(self.mpirun(launchd, **how))

    def hydra(self, launchd, export=None):
        """Starts one launchd per host by MPICH's mpiexec on n0, which hands everything over."""
        return self.popen(0, [
            "mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", "/run/rsh",
            "-hosts", ",".join(self.names), "-ppn", "1", "-n", len(self.names), *launchd],
            {**SANITIZERS, "DUMP_DIR": f"{HOME}/out", **(export or {})})

    def in_a_script(self, script, launchd, export=None, **options):
        """Runs a shell script on n0 in which "$@" is launchd; no mpirun is there."""
        return self.popen(0, ["sh", "-c", script, "sh", *launchd],
                          {**SANITIZERS, "DUMP_DIR": f"{HOME}/out", **(export or {})}, **options)

    def static(self, host, *options):
        """Starts launchd on one host without mpirun, as a user logged in there would."""
        return self.popen(host, self.launchd(*options),
                          {**SANITIZERS, "DUMP_DIR": f"{HOME}/out"})


@pytest.fixture
def make_hosts():
    """make_hosts(count, ...) -> Hosts, gone after the test; netem=True: on a network of netem.c."""
    if IMPOSSIBLE:
        pytest.skip(IMPOSSIBLE)
    made = []

    def make(count, netem=False, **options):
        if netem and not os.path.exists("/dev/net/tun"):
            pytest.skip("there is no /dev/net/tun here")
        made.append(Hosts(count, netem=netem, **options).__enter__())
        return made[-1]

    yield make
    for hosts in made:
        hosts.close()


@pytest.fixture
def hosts(make_hosts):
    return make_hosts(4)


@pytest.fixture
def scene():
    """scene(hosts, start, ...) -> Scene"""
    yield from closed_after(Scene)


@pytest.fixture
def static_job():
    """static_job(hosts, *options, ...) -> StaticJob"""
    yield from closed_after(StaticJob)


@pytest.fixture
def mpirun_job():
    """mpirun_job(hosts, *options, ...) -> MpirunJob"""
    yield from closed_after(MpirunJob)
