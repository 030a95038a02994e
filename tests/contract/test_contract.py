"""The launch contract: 150 recorded runs of Azure ML's launch.py (aml_launch_cases.json), each run
again by launchd.

A case has the launcher's variables `env` and its arguments `argv`. `expect.workers` are the
recorded workers in order of rank: their `argv` behind the script, the watched variables `env`
(null: not set), and `kept`: every other given variable reached the worker unchanged. launchd
rewrites or removes those of the scrub table, which all begin with OMPI_. Where the original was
refused (no workers), no worker may start; where a worker failed, the original raised, and launchd
ends with that worker's own exit code, maybe before the others have started their work.
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


def check_worker(case, expected, got):
    assert got['argv'] == expected['argv']
    assert {name: got['env'].get(name) for name in expected['env']} == expected['env']
    assert expected['kept']
    for name, value in case['env'].items():
        if not name.startswith('OMPI_') and name not in expected['env']:
            assert got['env'].get(name) == value, name


def test_there_are_150_cases():
    assert [case['id'] for case in CASES] == list(range(150))


@pytest.mark.parametrize('case', CASES, ids=lambda case: str(case['id']))
def test_case(case, launch, place):
    place.write('dump.py', DUMP)
    place.write('dump.sh', '#!/usr/bin/python3 -u\n' + DUMP, 0o755)
    result = launch(case['argv'], case['env'])
    expect, dumps = case['expect'], place.dumps()
    if not expect['workers']:
        assert not expect['ok'] and (result.rc, dumps) == (2, {})
        return
    codes = [int(value) for name, value in case['env'].items() if name.startswith('EXIT_')]
    assert result.rc == (0 if expect['ok'] else codes[0]), result
    recorded = {int(worker['env']['RANK']): worker for worker in expect['workers']}
    assert dumps.keys() <= recorded.keys()
    if expect['ok']:
        assert dumps.keys() == recorded.keys()
    for rank, got in dumps.items():
        check_worker(case, recorded[rank], got)
