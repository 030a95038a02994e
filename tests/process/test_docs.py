"""Help, man page and example file come from the one table, so they name the same options."""
import re
import shutil
import subprocess

import pytest

from harness import BUILD

DOCS = BUILD / 'config' / 'docs'
MANDOC = shutil.which('mandoc')


def options_of_help(launch):
    result = launch(['--help'])
    assert result.rc == 0 and result.err == ''
    return set(re.findall(r'^  (?:-\w, )?--([\w-]+)', result.out, re.M))


def test_help_in_groups(launch):
    text = launch(['-h']).out
    titles = re.findall(r'\n\n(\S.*):\n  -', text)
    assert titles == ['Job and nodes', 'Several nodes', 'Workers', "Workers' environment",
                      'Output', 'Ending', 'Restarts', 'Rendezvous, as torchrun spells it', 'General',
                      'Known from torchrun, with a limit']
    assert max(map(len, text.splitlines())) <= 110
    assert {'nproc_per_node', 'rdzv-backend', 'dry-run', 'mpi-env'} <= options_of_help(launch)


def test_version(launch):
    result = launch(['--version'])
    assert result.rc == 0 and re.fullmatch(r'launchd \d+\.\d+\.\d+\n', result.out)


@pytest.mark.skipif(not MANDOC, reason='no mandoc here')
def test_the_man_page_is_clean_and_has_every_option(launch):
    page = DOCS / 'launchd.1'
    lint = subprocess.run([MANDOC, '-Tlint', '-Wwarning', page], capture_output=True, text=True)
    assert (lint.returncode, lint.stdout) == (0, '')
    text = subprocess.run([MANDOC, '-Tascii', page], capture_output=True, text=True).stdout
    text = re.sub('.\b', '', text)  # bold and underlined
    assert {option for option in options_of_help(launch) if f'--{option}' not in text} == set()


def test_the_example_file_has_every_key_and_works(dry, place, launch):
    example = (DOCS / 'launchd.conf.example').read_text()
    keys = set(re.findall(r'^;([\w-]+) = ', example, re.M))
    assert {'nproc_per_node', 'shutdown-timeout', 'unset-env'} <= keys <= options_of_help(launch) | \
        {'NAME'}
    assert dry(['--config', str(DOCS / 'launchd.conf.example')]).value('nproc_per_node') == '1'
    defaults = re.sub(r'^;([\w-]+ = \S)', r'\1', example, flags=re.M)
    assert defaults != example
    place.write('all.ini', defaults)
    plan = dry(['--config', 'all.ini'])
    assert plan.setting('shutdown-timeout') == ('30', plan.setting('shutdown-timeout')[1])
    assert 'all.ini:' in plan.setting('shutdown-timeout')[1]
