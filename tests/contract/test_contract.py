"""The launch contract: 150 recorded runs of Azure ML's launch.py (aml_launch_cases.json), each run
again by launchd.

A case has the launcher's variables `env` and its arguments `argv`. `expect.workers` counts the
recorded workers; `expect.argv` and `expect.env` are those of local rank 0: its arguments behind the
script and the watched variables (null: not set). In all recordings the other workers differ in
RANK, LOCAL_RANK and --local_rank alone (`recorded_workers`), and every other given variable reached
each worker unchanged; launchd rewrites or removes those of the scrub table, which all begin with
OMPI_. Where the original refused the job (0 workers), no worker may start; where a worker failed, the
original raised `expect.error`, and launchd exits with that worker's own exit code, possibly before
the others have started their work.
"""
import json
import pathlib

import pytest

CASES = json.loads((pathlib.Path(__file__).parent / 'aml_launch_cases.json').read_text())
# A worker that writes down what it got, whole or not at all, as a peer's failure may end it early.
# EXIT_<rank> is its exit code.
DUMP = '''import json, os, sys
rank = os.environ["RANK"]
path = os.path.join(os.environ["DUMP_DIR"], rank + ".json")
with open(path + ".part", "w") as f:
    json.dump({"argv": sys.argv[1:], "environ": [f"{k}={v}" for k, v in os.environ.items()]}, f)
os.rename(path + ".part", path)
sys.exit(int(os.environ.get("EXIT_" + rank, 0)))
'''


def recorded_workers(expect):
    """What each worker got: {rank: (argv, env)}."""
    workers = {}
    for local in range(expect['workers']):
        argv, rank = list(expect['argv']), int(expect['env']['RANK']) + local
        if argv[:1] == ['--local_rank=0']:
            argv[0] = f'--local_rank={local}'
        workers[rank] = argv, {**expect['env'], 'RANK': str(rank), 'LOCAL_RANK': str(local)}
    return workers


def check_worker(case, expected, got):
    argv, env = expected
    assert got['argv'] == argv
    assert {name: got['env'].get(name) for name in env} == env
    for name, value in case['env'].items():
        if not name.startswith('OMPI_') and name not in env:
            assert got['env'].get(name) == value, name


def test_there_are_150_cases():
    assert [case['id'] for case in CASES] == list(range(150))


@pytest.mark.parametrize('case', CASES, ids=lambda case: str(case['id']))
def test_case(case, launch, place, reserve_port):
    place.write('dump.py', DUMP)
    place.write('dump.sh', '#!/usr/bin/python3 -u\n' + DUMP, 0o755)
    expect = case['expect']
    if expect['workers']:
        reserve_port(int(expect['env']['MASTER_PORT']))
    result = launch(case['argv'], case['env'])
    dumps = place.dumps()
    if not expect['workers']:
        assert not expect['ok'] and (result.rc, dumps) == (2, {})
        return
    codes = [int(value) for name, value in case['env'].items() if name.startswith('EXIT_')]
    assert result.rc == (0 if expect['ok'] else codes[0]), result
    recorded = recorded_workers(expect)
    assert dumps.keys() <= recorded.keys()
    if expect['ok']:
        assert dumps.keys() == recorded.keys()
    for rank, got in dumps.items():
        check_worker(case, recorded[rank], got)
