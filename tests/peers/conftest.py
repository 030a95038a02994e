"""Fixtures of the tests side by side, and the table that they make.

$LAUNCHD_PEERS_TABLE names a file: what the tests saw is written there as a Markdown table.
"""
import os
import signal
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import LIMIT, children_of, end_children  # noqa: E402
from launchers import Peer, skip_if_absent, versions  # noqa: E402

COLUMNS = ('torchrun', 'mpirun', 'launchd')


@pytest.fixture(params=COLUMNS)
def peer(request, place, nothing_left):
    """Each launcher in turn. What a peer left is ended here; what launchd left fails the test, by
    nothing_left."""
    skip_if_absent(request.param)
    before = children_of(os.getpid())
    has_defect = request.param in request.node.get_closest_marker('shown_by').args
    found = Peer(request.param, place, patience=LIMIT / 2 if has_defect else 4)
    yield found
    if request.param == 'launchd':
        for job in found.jobs:
            if job.wait(0) is None:
                job.signal(signal.SIGTERM)
                job.end()
    else:
        end_children(before)
    for job in found.jobs:
        job.process.wait()
        job.close()


@pytest.fixture
def saw(request, peer, record_property):
    """saw(row, text, defect): what happened under this launcher. launchd must not have the defect;
    the launchers named by @pytest.mark.shown_by must, or our table is out of date."""

    def record(row, text, defect):
        shown_by = request.node.get_closest_marker('shown_by').args
        record_property('peers', (request.function.__code__.co_firstlineno, row, peer.name, text))
        assert bool(defect) == (peer.name in shown_by), f'{peer.name}: {row}: {text}'

    return record


def pytest_configure(config):
    config.addinivalue_line('markers', 'shown_by(*names): the launchers that have the defect')


def pytest_terminal_summary(terminalreporter):
    path = os.environ.get('LAUNCHD_PEERS_TABLE')
    if not path:
        return
    rows = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, 'user_properties', ()):
                if name == 'peers' and report.when == 'call':
                    line, row, column, text = value
                    rows.setdefault((line, row), {})[column] = text
    lines = [f'| what happens when … | {" | ".join(COLUMNS)} |', '|---|---|---|---|']
    lines += [f'| {row} | {" | ".join(cells.get(column, "–") for column in COLUMNS)} |'
              for (_, row), cells in sorted(rows.items())]
    lines += ['', f'{time.strftime("%Y-%m-%d")}: {versions()}.']
    Path(path).write_text('\n'.join(lines) + '\n')
