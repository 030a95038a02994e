"""tests/bench/run, run_store and run_output work: their tables have every row, and a number in each.
Nothing is judged here: how long something takes on a machine that runs other tests as well says
little."""
import os
import pathlib
import re
import subprocess

from harness import BUILD

RUN = pathlib.Path(__file__).resolve().parent / "run"


def test_the_table(tmp_path):
    done = subprocess.run([RUN, "--quick", "--build", BUILD], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=300,
                          env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    table, caption = done.stdout.split("\n\n")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert rows[0] == ["measured", "launchd", "target", "torchrun", "mpirun"]
    assert [len(row) for row in rows] == [5] * 12
    for cells in rows[2:]:
        assert re.match(r"[+-]?\d+(\.\d+)?( |$)", cells[1]), cells
        assert cells[3] == ("" if "--blackbox" in cells[0] or "hang-look" in cells[0] else "not installed")
    assert re.search(r"^\d{4}-\d\d-\d\d: .*Linux", caption, re.M)
    assert list(tmp_path.iterdir()) == [], "it left files"


def test_the_table_of_the_store(tmp_path):
    done = subprocess.run([RUN.with_name("run_store"), "--quick", "--build", BUILD],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in done.stdout.split("\n\n")[0].splitlines()]
    assert rows[0] == ["measured", "launchd", "torch", "launchd : torch"]
    assert [len(row) for row in rows] == [4] * (2 + 3 * 3 * 3 + 1)
    for cells in rows[2:]:
        assert re.match(r"[\d,.]+( |$)", cells[1]), cells
        assert cells[2] == "not installed"
    assert re.search(r"^\d{4}-\d\d-\d\d: no torch, Linux", done.stdout, re.M)


def test_a_load_has_an_answer_however_busy_the_machine_is():
    """Milliseconds that are over before the first answer came: no row without a number."""
    tools = pathlib.Path(BUILD) / "tests"
    with subprocess.Popen([tools / "store" / "store_host", "127.0.0.1", "0", "none", "1024"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        port = server.stdout.readline().split()[-1]
        done = subprocess.run([tools / "bench" / "store_load", port, "8", "0", "large"],
                              capture_output=True, text=True, timeout=300)
        server.stdin.close()
    assert done.returncode == 0, done.stderr
    assert all(int(number) > 0 for number in done.stdout.split())


def test_the_tables_of_the_output(tmp_path):
    done = subprocess.run([RUN.with_name("run_output"), "--quick", "--megabytes", "1", "--build",
                           BUILD, "--directory", tmp_path], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=300)
    assert done.returncode == 0, done.stderr
    *tables, caption = done.stdout.strip().split("\n\n")
    tables = [[[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
               for line in table.splitlines()] for table in tables]
    assert [len(rows) - 2 for rows in tables] == [27, 9, 18, 18, 5]
    for beside in tables[:4]:
        assert [len(row) for row in beside] == [7] * len(beside)
        for cells in beside[2:]:
            assert re.fullmatch(r"\d+\.\d\d GB/s", cells[1]), cells
            assert re.fullmatch(r"\d+\.\d\d \(\d+\.\d\d\)", cells[4]), cells
    for cells in tables[0][2:] + tables[3][2:]:
        assert re.fullmatch(r"\d+\.\d\d ×", cells[3]), cells
    assert [cells[2] for cells in tables[1][2:]] == ["not installed"] * 9  # no --torchrun
    for cells in tables[4][2:]:
        assert re.match(r"\d+(\.\d+)?( |$)", cells[1]), cells
    assert re.search(r"^Medians of 1 runs", caption)
    assert re.search(r"^\d{4}-\d\d-\d\d: .*Linux", done.stdout, re.M)
    assert list(tmp_path.iterdir()) == [], "it left files"
