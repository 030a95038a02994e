"""What users and programs read when a job has ended: the whole program's report."""
import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from harness import native, until, is_running

LONG = '--shutdown-timeout=60'
RECORD = {'message': {'message': 'ValueError: the teapot is empty', 'extraInfo': {
    'py_callstack': 'Traceback (most recent call last):\n  File "train.py", line 3, in pour\n'
                    'ValueError: the teapot is empty\n', 'timestamp': '1700000000'}}}


@pytest.fixture
def reported(launch, start, place):
    """reported(argv, env, ...): a finished job's result, and the JSON of --report."""

    def run(argv, env=None, **how):
        path = place.tmp / 'report.json'
        result = launch([f'--report={path}', *argv], env or {}, **how)
        assert [p.name for p in place.tmp.iterdir()] == ['report.json']  # nothing half-written
        return result, json.loads(path.read_text())

    return run


def test_a_failure_as_json(reported):
    result, report = reported(['--nproc_per_node=3', LONG, *native('ending'), '--lr', '1'],
                              {'END_1': 'exit:7', 'END_0': 'never', 'END_2': 'never'})
    assert result.rc == report['job']['exit_code'] == 7
    assert report['schema'] == 1 and report['job']['host'] == socket.gethostname()
    assert report['job']['command'] == [native('ending')[-1], '--lr', '1']
    assert (report['cause']['kind'], report['culprit']['rank']) == ('failure', 1)
    assert [w['rank'] for w in report['workers']] == [0, 1, 2]
    asked = [(w['ended_by_launchd'], w['asked_signal']) for w in report['workers']]
    assert asked[1] == (False, None)
    assert all(signal_name in ('SIGTERM', None) for _, signal_name in asked)


def test_success_as_json(reported):
    result, report = reported(['--nproc_per_node=2', *native('ending')], {'END': 'exit:0'})
    assert result.rc == 0 and (report['cause']['kind'], report['culprit']) == ('none', None)
    assert [w['exit_code'] for w in report['workers']] == [0, 0]
    assert (report['survivor_count'], report['left']) == (0, 0)


def test_who_sent_the_signal(start, place):
    ready, path = place.fifo('ready'), place.tmp / 'report.json'
    job = start([f'--report={path}', LONG, *native('ending')], {'TELL': ready.path})
    ready.expect('ready', 1)
    job.signal(signal.SIGTERM)
    result, report = job.end(), json.loads(path.read_text())
    comm = open('/proc/self/comm', encoding='utf8').read().strip()
    assert result.rc == 143 and re.search(
        rf'root cause: launchd received SIGTERM.* from pid {os.getpid()} \({re.escape(comm)}',
        result.err), result
    assert report['cause']['signal'] == 'SIGTERM'
    assert report['cause']['sender'] == {'pid': os.getpid(), 'uid': os.getuid(), 'command': comm,
                                         'kernel': False}
    path.unlink()


def test_the_culprits_own_words(reported, place):
    """Its error file, as torch's @record writes it, in the report and in the JSON."""
    place.write('job.sh.json', json.dumps(RECORD))
    script = place.write('job.sh', 'cp "$0.json" "$TORCHELASTIC_ERROR_FILE"; exit 1\n')
    result, report = reported(['--no_python', '--use_env', 'sh', script])
    assert result.rc == 1 and result.err.count('ValueError: the teapot is empty') == 1
    assert 'File "train.py", line 3, in pour' in result.err
    assert report['culprit']['error_file']['message'] == 'ValueError: the teapot is empty'


ONLY_PYTHON = ['"a shard named \\udce9\\ud800"', 'float("nan")', 'float("-inf")', '10 ** 200']


@pytest.mark.parametrize('value', ONLY_PYTHON)
def test_a_culprit_whose_error_file_only_python_can_read(reported, place, value):
    """The first that dies is a victim: the culprit is known by its own words alone."""
    script = place.write('train.py', f"""import json, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
culprit = os.environ["RANK"] == "0"
said = "ValueError: the teapot is empty" if culprit else "RuntimeError: [pair.cc:1] Connection closed by peer"
more = {{"timestamp": "1700000000", "py_callstack": "Traceback: " + said}}
if culprit:
    more = {{"value": {value}, **more}}
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as f:
    json.dump({{"message": {{"message": said, "extraInfo": more}}}}, f)
if culprit:
    open("written", "w").close()
    while os.path.exists("written"):
        time.sleep(0.01)
    sys.exit(7)
while not os.path.exists("written"):
    time.sleep(0.01)
os.remove("written")
os._exit(1)
""")
    result, report = reported(['--nproc_per_node=2', '--python', sys.executable, '--use_env', script])
    assert result.rc == 7 and report['culprit']['rank'] == 0, result
    assert report['culprit']['error_file']['message'] == 'ValueError: the teapot is empty'


CHAINED = """import sys, traceback

def load():
    raise FileNotFoundError("no shard")

def step():
    try:
        load()
    except OSError as e:
        raise ValueError("the teapot is empty") from e

def recorded():  # as torch's @record has it: the frames before it are not in the error file
    try:
        step()
    except ValueError:
        import json, os
        with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as f:
            json.dump({"message": {"message": "ValueError: the teapot is empty", "extraInfo": {
                "py_callstack": traceback.format_exc(), "timestamp": "1700000000"}}}, f)
        raise

print("step 9", flush=True)
recorded()
"""


@pytest.mark.parametrize('tail', [100, 12, 5, 0])
def test_a_traceback_can_be_copied_and_is_there_once(launch, place, tail):
    """From the error file, or from what the worker wrote last, if all of it is there: without launchd's
    words before its lines."""
    script = place.write('train.py', CHAINED)
    argv = ['--use_env', f'--tail-lines={tail}', '--redirects=3', '--log-dir=logs', script]
    stderr = subprocess.run([sys.executable, '-u', script], capture_output=True, text=True,
                            env={**os.environ, 'TORCHELASTIC_ERROR_FILE': os.devnull}).stderr
    report = launch(['--python', sys.executable, *argv]).err.partition('error: exception: ')[2]
    shown = ''.join(line[4:] + '\n' for line in report.splitlines()[1:]
                    if not line.startswith('launchd: ') and 'step 9' not in line)

    def without_module(text):  # its frame is not in the error file
        return re.sub(r'  File .*, in <module>\n    recorded\(\)\n', '', text)

    wanted = without_module(stderr)
    if tail == 0:  # its last line has been said
        wanted = wanted[:wanted.rindex('ValueError: ')]
    assert without_module(shown) == wanted, report


@pytest.mark.parametrize('tail', [100, 5])
def test_a_traceback_on_the_same_console_is_not_said_again(launch, place, tail):
    script = place.write('train.py', CHAINED)
    err = launch(['--python', sys.executable, '--use_env', f'--tail-lines={tail}', script]).err
    assert err.count('raise ValueError(') == 1 and err.count('raise FileNotFoundError(') == 1, err
    assert '\nlaunchd: error: its last lines are above\n' in err


def test_but_where_something_was_printed_in_between(start, place):
    """Another rank writes a line behind it, before the one that failed ends."""
    go = place.fifo('go')
    script = place.write('train.py', f'''import atexit, os, sys, time
def later():
    with open({go.path!r}) as f:
        f.read(1)
if os.environ["RANK"] == "0":
    atexit.register(later)
    raise ValueError("the teapot is empty")
while "teapot" not in open("err").read():
    time.sleep(0.01)
print("of rank 1", file=sys.stderr, flush=True)
while "of rank 1" not in open("err").read():
    time.sleep(0.01)
with open({go.path!r}, "w") as f:
    f.write("x")
time.sleep(600)
''')
    with open(place.path / 'err', 'w') as f:
        job = start(['--nproc_per_node=2', '--python', sys.executable, '--use_env', script], err=f)
        job.end()
    err = (place.path / 'err').read_text()
    assert 'its last lines are above' not in err and err.count('raise ValueError(') == 2, err


def test_no_line_of_a_worker_is_taken_for_one_of_launchd(launch, place):
    script = place.write('job.sh', 'echo "launchd: error: root cause: rank 7"; exit 1\n')
    result = launch(['--no_python', '--use_env', '-r=3', '--log-dir=logs', 'sh', script])
    assert '\n    launchd: error: root cause: rank 7\n' in result.err
    assert len(re.findall('^launchd: error: root cause: ', result.err, re.M)) == 1


def test_three_victims_share_a_line(start, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(['--nproc_per_node=5', '--quiet', LONG, *native('ending')],
                {'TELL': ready.path, 'GO': go.path, 'END_3': 'exit:7'})
    ready.expect('ready', 5)
    go.go()
    result = job.end()
    assert result.rc == 7
    note, = re.findall('^launchd: note: (.*)$', result.err, re.M)
    assert re.fullmatch(r"ranks 0-2, 4: ended by launchd's SIGTERM within \d+\.\d\d s", note)


REFUSES = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr")
{}
parser.parse_args()
"""


@pytest.mark.parametrize('more, told', [
    ('', 'the script refused --local_rank, which launchd passes to it: give --use_env (the script '
     'then reads LOCAL_RANK)'),
    ('parser.add_argument("--local-rank")',
     'the script takes --local-rank, not --local_rank: give --local_rank_arg=--local-rank')])
def test_a_script_that_refuses_the_local_rank(reported, place, more, told):
    script = place.write('train.py', REFUSES.format(more))
    argv = ['--python', sys.executable, '--nproc_per_node=2', script, '--lr', '1']
    result, report = reported(argv)
    assert result.rc == 2 and f'\nlaunchd: error: hint: {told}\n' in result.err, result
    assert report['culprit']['hint'] == told
    result, report = reported(['--log-format=json', *argv])
    said = [json.loads(line) for line in result.err.splitlines() if line.startswith('{')]
    assert ('error', f'hint: {told}') in [(line['level'], line['text']) for line in said], said
    assert 'hint' not in reported(['--local_rank_arg=--lr', *argv])[0].err  # not refused
    assert reported(['--use_env', *argv])[0].rc == 0


def test_a_note_when_some_are_done_and_the_rest_is_not(start, place):
    ready, noted = place.fifo('ready'), place.tmp / 'err'
    with open(noted, 'wb') as err:
        job = start(['--nproc_per_node=3', '--unfinished-note=0.2', LONG, *native('ending')],
                    {'TELL': ready.path, 'END_1': 'exit:0'}, err=err)
    pids = ready.expect('ready', 3)
    until(lambda: 'still run' in noted.read_text(), 'the note')
    assert re.search(rf'note: rank 1 ended with exit code 0, 0\.\d+ s ago; rank 0 \(pid {pids[0]}\),'
                     rf' rank 2 \(pid {pids[2]}\) are still running\n', noted.read_text())
    assert is_running(pids[0])
    job.signal(signal.SIGTERM)
    assert job.end().rc == 143
    assert noted.read_text().count('still run') == 1
    noted.unlink()


def test_no_note_where_none_is_wanted(start, place):
    ready = place.fifo('ready')
    job = start(['--nproc_per_node=2', '--unfinished-note=0', '--max-runtime=1', LONG,
                 *native('ending')], {'TELL': ready.path, 'END_1': 'exit:0'})
    ready.expect('ready', 2)
    result = job.end()
    assert result.rc == 124 and 'still run' not in result.err


def test_a_report_that_cant_be_written_is_said_and_changes_nothing(start, place):
    ready, go = place.fifo('ready'), place.fifo('go')
    directory = place.tmp / 'gone'
    directory.mkdir()
    job = start([f'--report={directory}/r.json', *native('ending')],
                {'TELL': ready.path, 'GO': go.path, 'END': 'exit:5'})
    ready.expect('ready', 1)
    directory.rmdir()
    go.go()
    result = job.end()
    assert result.rc == 5 and re.search(r'warning: .*gone/r\.json', result.err), result
