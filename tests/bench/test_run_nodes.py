"""tests/bench/run_nodes works: its table has every row, and a number in each. It judges nothing
here."""
import os
import pathlib
import re
import subprocess
import sys

import pytest
from harness import BUILD

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "hosts"))
from cluster import why_impossible  # noqa: E402


@pytest.mark.skipif(bool(why_impossible()), reason=why_impossible() or "")
def test_the_table(tmp_path):
    done = subprocess.run([HERE / "run_nodes", "--quick", "--build", BUILD], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=300,
                          env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    table, caption = done.stdout.split("\n\n")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert rows[0] == ["measured", "launchd", "target", "torchrun, static", "torchrun, c10d"]
    assert [len(row) for row in rows] == [5] * 14
    for cells in rows[2:]:
        assert re.match(r"\d+(\.\d+)? ", cells[1]), cells
    assert re.search(r"\d{4}-\d\d-\d\d: Linux", caption)
    assert list(tmp_path.iterdir()) == [], "it left files"
