#!/usr/bin/python3
"""The traces of tests/witness/trial.py, packed, and played to the detector of hangs again.

    replay.py pack DIR TRACES.xz      what trial.py has kept in DIR, from some seconds before it happened
    replay.py play SIM TRACES.xz [RUNS [SEED [RUN]]]   by witness_sim, which see; exits as that does"""
import lzma
import pathlib
import re
import subprocess
import sys

BEFORE_MS = 25000  # in which habits are learnt


def part(trace):
    """Without what launchd itself has said, which may be another thing today."""
    head, *lines = trace.splitlines()
    since = int(re.search(r' onset=(\d+)', head)[1]) - BEFORE_MS
    wanted, late = [head], False
    for line in lines:
        word = re.match(r'(?:t=|rank=\d+ at=)(\d+) ?(\w*)', line)
        late = late or bool(word) and int(word[1]) >= since
        news = line.startswith('t=') and word[2] in ('suspect', 'certain', 'cleared')
        if word and word[2] == 'begin':  # nothing was quiet before
            wanted.append(re.sub(r'\d+', str(max(since, int(word[1]))), line, count=1))
        elif late and not news:
            wanted.append(line)
    return ''.join(f'{line}\n' for line in wanted)


def pack(directory, to):
    traces = sorted(pathlib.Path(directory).glob('*.trace'))
    text = ''.join(part(trace.read_text()) for trace in traces)
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    pathlib.Path(to).write_bytes(packed)
    print(f'{len(traces)} traces, {len(text)} bytes, packed {len(packed)}')


def play(sim, packed, runs='1000', seed='1', *run):
    text = lzma.decompress(pathlib.Path(packed).read_bytes())
    return subprocess.run([sim, runs, seed, *run], input=text).returncode


if sys.argv[1] == 'pack':
    pack(*sys.argv[2:])
else:
    sys.exit(play(*sys.argv[2:]))
