"""A few of the kinds of trial.py as real jobs of gloo; all of them are in traces.xz, which the unit
tests play to the detector of hangs."""
import importlib.util
import pathlib
import sys

import pytest

from harness import BUILD

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import trial  # noqa: E402
from kinds import KINDS  # noqa: E402

pytestmark = pytest.mark.skipif(not importlib.util.find_spec('torch'), reason='no torch here')


@pytest.mark.long
@pytest.mark.parametrize('name', [
    'lock', 'store_key', 'lock+program', 'download_child',
    *(pytest.param(name, marks=pytest.mark.heavy) for name in (
        'spin', 'evaluation', 'silent+writer', 'data_loader', 'pin+own_proc'))])
def test_kind(name):
    """The rank and what it does: at once on a machine that is idle, so without trial.py's limit."""
    outcome = trial.try_once(KINDS[name].choice(1), BUILD, within_s=60)
    assert outcome.right, outcome.said
    assert not outcome.acted
