#!/usr/bin/env python3
"""Holds the catalogue of messages against the ids that launchd sends.

check_catalog.py IDS CATALOG  each id of the header IDS has an entry, and the other way round; what an
                              entry quotes as @FIELD@ is a field that launchd sends with it at least
                              somewhere; and where there is a journalctl, it takes the file
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FIELDS = {'JOB', 'RUN_ID', 'NODE_RANK', 'ATTEMPT', 'RANK', 'LOCAL_RANK', 'WORKER_PID', 'EXIT_CODE',
          'SIGNAL', 'LOST_NODE_RANK', 'EXCLUDE_HOSTS', 'NEXT_ATTEMPT', 'JOB_EXIT_CODE'}


def entries(text):
    """{id: its text}, each with a subject."""
    parts = re.split(r'^-- ([0-9a-f]{32})$', text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def taken(journalctl, catalog, ids):
    """What is wrong with it for journalctl, which compiles it below a root of ours."""
    with tempfile.TemporaryDirectory() as root:
        place = pathlib.Path(root, 'usr/lib/systemd/catalog')
        place.mkdir(parents=True)
        shutil.copy(catalog, place)
        pathlib.Path(root, 'var/lib/systemd/catalog').mkdir(parents=True)
        command = [journalctl, f'--root={root}']
        made = subprocess.run([*command, '--update-catalog'], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            return [f'journalctl --update-catalog: {made.stderr.strip()}']
        shown = subprocess.run([*command, '--list-catalog'], capture_output=True, text=True, check=False).stdout
    return [f'journalctl does not list {each}' for each in ids if each not in shown]


def main(header, catalog):
    ids = dict(re.findall(r'ID\((\w+), "([0-9a-f]{32})"', pathlib.Path(header).read_text(encoding='utf-8')))
    explained = entries(pathlib.Path(catalog).read_text(encoding='utf-8'))
    wrong = [f'{name} ({number}) is not in {catalog}' for name, number in ids.items() if number not in explained]
    wrong += [f'{number} of {catalog} is no id' for number in explained if number not in ids.values()]
    wrong += [f'{number} occurs twice' for number in ids.values() if list(ids.values()).count(number) > 1]
    for number, text in explained.items():
        if not re.match(r'\nSubject: \S', text):
            wrong.append(f'{number} has no subject')
        wrong += [f'{number}: no entry has a field {name}'
                  for name in re.findall(r'@(\w+)@', text) if name not in FIELDS]
    if not ids:
        wrong.append(f'{header} has no ids')
    journalctl = shutil.which('journalctl')
    if journalctl and not wrong:
        wrong = taken(journalctl, catalog, ids.values())
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
