"""A thousand deaths, drawn from a seed; ten thousand by hand, as campaign.py says."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SEED = os.environ.get('CAMPAIGN_SEED', '1')
DEATHS = os.environ.get('CAMPAIGN_DEATHS', '1000')


@pytest.mark.long
def test_campaign(measured):
    result = subprocess.run([sys.executable, HERE / 'campaign.py', '--seed', SEED, '--deaths', DEATHS],
                            capture_output=True, text=True, cwd=HERE)
    assert result.returncode == 0, result.stdout + result.stderr
    measured('campaign', result.stdout.strip().splitlines()[-1])
