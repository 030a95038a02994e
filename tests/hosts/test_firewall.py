"""Firewalls between the nodes that let TCP pass and UDP not."""
import re

import pytest
from harness import let_pass
from job import LOST_CODE

TIMEOUT_S = 3
SLACK_S = 10  # beyond the time-out, on a machine that does other things
BEAT_S = TIMEOUT_S / 12

# host, direction, and whether it is there from the start
WALLS = {"everywhere": (None, "both", True), "to node 0": (0, "in", True),
         "from node 0": (0, "out", True), "everywhere, later": (None, "both", False)}


@pytest.mark.parametrize("wall, ipv6", [
    *((wall, False) for wall in WALLS), ("everywhere", "only")])
def test_without_udp_beats_go_by_tcp(make_hosts, static_job, wall, ipv6):
    """No alarm for much longer than the time-out, and a frozen node is noticed as ever: by silence,
    as its kernel keeps the connection."""
    host, direction, early = WALLS[wall]
    hosts = make_hosts(3, netem=True, ipv6=ipv6)
    if early:
        hosts.netem.set(host, direction, no_udp=1)
    job = static_job(hosts, f"--node-timeout={TIMEOUT_S}")
    job.start()
    if not early:
        let_pass(TIMEOUT_S, "it works without the wall for as long as this")
        hosts.netem.set(host, direction, no_udp=1)
    let_pass(3 * TIMEOUT_S, "no alarm")
    assert not job.ended(), job.described()
    assert sum(cut for one in hosts.netem.stats() for *_, cut in one.values()) > 3 * 12
    hosts.freeze(2)
    ends = job.wait(0, 1, limit=TIMEOUT_S + SLACK_S)
    assert {(end.rc, *end.lost()) for end in ends.values()} == {(LOST_CODE, 2)}, ends
    [silent] = re.findall(r"nothing was heard from it for (\d+\.\d) s", ends[0].err)[:1]
    assert TIMEOUT_S <= float(silent) < TIMEOUT_S + BEAT_S + SLACK_S / 2
    hosts.thaw(2)
    assert job.wait(2)[2].rc != 0
    job.nothing_left()
