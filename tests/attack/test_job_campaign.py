"""Some rounds of the campaign on several hosts, drawn from a seed; more by hand, as job_campaign.py
says."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / 'hosts'))
from cluster import why_impossible  # noqa: E402

SEED = os.environ.get('CAMPAIGN_SEED', '1')
ROUNDS = os.environ.get('CAMPAIGN_ROUNDS', '20')
IMPOSSIBLE = why_impossible() or (
    None if os.path.exists('/dev/net/tun') else 'there is no /dev/net/tun here')


@pytest.mark.skipif(bool(IMPOSSIBLE), reason=IMPOSSIBLE or '')
@pytest.mark.long
def test_job_campaign(measured):
    result = subprocess.run(
        [sys.executable, HERE / 'job_campaign.py', '--seed', SEED, '--rounds', ROUNDS, '--jobs', '2'],
        capture_output=True, text=True, cwd=HERE)
    assert result.returncode == 0, result.stdout + result.stderr
    measured('campaign on several hosts', result.stdout.strip().splitlines()[-1])
