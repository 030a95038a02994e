"""16 nodes, four minutes, 20 % loss and 200 ms delay: no false alarm. By hand: LAUNCHD_SOAK_S=240."""
import os
import time

import pytest
from harness import let_pass

SOAK_S = float(os.environ.get("LAUNCHD_SOAK_S", "0"))


@pytest.mark.skipif(not SOAK_S, reason="takes minutes: set LAUNCHD_SOAK_S")
@pytest.mark.parametrize("options", [[], ["--node-timeout=3"]], ids=str)
def test_no_false_alarm(make_hosts, static_job, record_property, options):
    """Set where packets leave, so that every way from host to host has it once."""
    hosts = make_hosts(16, netem=True)
    job = static_job(hosts, *options, ACT="obey")
    job.start()
    hosts.netem.set(direction="out", loss=0.2, delay=200)
    end = time.monotonic() + SOAK_S
    while time.monotonic() < end:
        let_pass(1, "no alarm")
        assert not job.ended(), job.described()
    record_property("packets", hosts.netem.stats()[0])
    job.end_well(120)
    job.nothing_left()
