"""Real PyTorch in the workers: the store, the process group, @record, and ports."""
import importlib.util
import json
import pathlib
import re
import signal
import sys

import pytest
from harness import TESTS

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"
PYTHON = ["--python", sys.executable]
needs_torch = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no torch here")


@pytest.fixture
def summed(launch, place):
    """summed(options, arguments, name=...): two ranks sum up; what each of them found."""

    def run(options, arguments=(), **how):
        result = launch([*PYTHON, "--nproc_per_node", "2", *options,
                         str(SCRIPTS / "sum_ranks.py"), *arguments], **how)
        assert result.rc == 0, result
        found = [json.loads((place.out / f"{rank}.json").read_text()) for rank in range(2)]
        assert [(f["sum"], f["world"], f["elastic"]) for f in found] == [(1, 2, True)] * 2
        assert found[0]["port"] == found[1]["port"]
        return found

    return run


@needs_torch
@pytest.mark.quick
def test_ddp_trains_on_a_free_port(launch):
    """launchd keeps that port bound; PyTorch's store listens on it all the same."""
    result = launch([*PYTHON, "--nproc_per_node", "2", "--use_env",
                     str(TESTS.parent / "examples" / "train_ddp.py"), "--steps", "100"])
    assert result.rc == 0, result
    ports = re.findall(r"^rank \d of 2: .* master 127\.0\.0\.1:(\d+)$", result.out, re.M)
    losses = [float(loss) for loss in re.findall(r"^step +\d+  loss (\S+)$", result.out, re.M)]
    assert len(ports) == 2 and len(set(ports)) == 1
    assert len(losses) == 3 and losses[2] < losses[0] / 10


@needs_torch
def test_classic_mode_hands_the_local_rank_over_as_an_argument(summed):
    found = summed([], ["--lr", "1"])
    assert [f["arguments"] for f in found] == \
        [["--local_rank=0", "--lr", "1"], ["--local_rank=1", "--lr", "1"]]


@needs_torch
@pytest.mark.quick
def test_a_symlink_named_torchrun_is_torchrun(summed):
    found = summed(["--standalone"], ["--device", "${local_rank}"], name="torchrun")
    assert [f["arguments"] for f in found] == [["--device", "0"], ["--device", "1"]]


@needs_torch
def test_record_writes_the_error_file(launch, place):
    keep = '"$@"; rc=$?; cp "$TORCHELASTIC_ERROR_FILE" "$DUMP_DIR/error.json"; exit $rc'
    result = launch(["--no_python", "--use_env", "sh", "-c", keep, "sh", sys.executable,
                     str(SCRIPTS / "fail_recorded.py")])
    assert result.rc == 1, result
    error = json.loads((place.out / "error.json").read_text())
    assert error["message"]["message"] == "ValueError: the teapot is empty"


@needs_torch
def test_the_report_has_a_recorded_traceback_once(launch, place):
    """As Python writes it, with @record's frames, and without launchd's words before its lines."""
    result = launch([*PYTHON, "--nproc_per_node", "2", "--use_env", "-r", "3", "--log_dir", str(place.out),
                     str(SCRIPTS / "fail_recorded.py")])
    report = result.err[result.err.index("launchd: error: root cause: "):]
    assert result.rc == 1, result
    assert report.count("    Traceback (most recent call last):\n") == 1, report
    assert re.search(r'last \d+ lines:\n    Traceback .*\n      File .*/fail_recorded.py", line \d+, '
                     r'in <module>\n        main\(\)\n(?:     .*\n)+'
                     r'    ValueError: the teapot is empty\nlaunchd: ', report), report


@needs_torch
def test_a_recorded_traceback_on_the_console_is_not_repeated(launch):
    result = launch([*PYTHON, "--use_env", str(SCRIPTS / "fail_recorded.py")])
    assert result.rc == 1, result
    said, report = result.err.split("launchd: error: root cause: ")
    assert said.endswith("\nValueError: the teapot is empty\n"), result
    assert "launchd: error: its last lines are above\n" in report and "Traceback" not in report, report


@needs_torch
@pytest.mark.parametrize('where', ['start', 'group', 'barrier'])
def test_a_gloo_job_is_restarted_over_the_agents_store(start, where):
    job = start([*PYTHON, '--nproc_per_node', '3', '--use_env', '--max-restarts', '3',
                 '--store', 'agent', str(SCRIPTS / 'restart_gloo.py'), where],
                {'OMP_NUM_THREADS': '1'})
    result = job.end(240)
    assert result.rc == 0, result
    assert sorted(re.findall(r'rank (\d) attempt (\d)', result.out)) == \
        [(str(rank), '1') for rank in range(3)]
    assert 'restart 1 of at most 3' in result.err


def test_twenty_jobs_at_once_have_a_port_each(start, place):
    told, go = place.fifo("tell"), place.fifo("go")
    jobs = [start([*PYTHON, "--nproc_per_node", "2", "--use_env", str(SCRIPTS / "meet.py")],
                  {"TELL": told.path, "GO": go.path}) for _ in range(20)]
    ports = {told.line()[2] for _ in jobs}  # all of them listen now
    assert len(ports) == 20
    go.go(20)
    assert [job.end().rc for job in jobs] == [0] * 20


@needs_torch
def test_data_loaders_live_until_the_checkpoint_is_written(start, place):
    ready = place.fifo("ready")
    job = start([*PYTHON, "--nproc_per_node", "2", "--use_env",
                 str(SCRIPTS / "checkpoint_on_term.py")], {"TELL": ready.path})
    ready.expect("ready", 2)
    job.signal(signal.SIGTERM)
    result = job.end()
    assert result.rc == 143, result
    for rank in range(2):
        saved = (place.out / f"checkpoint_{rank}").read_text()
        assert float(saved) == sum(range(64))
