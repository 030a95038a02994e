"""Help, man page and example file come from the one table, so they name the same options. README
and the guides are written by hand, so their links, options and examples are checked."""
import os
import re
import shlex
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from harness import BUILD
from together import Cluster

DOCS = BUILD / 'config' / 'docs'
HERE = os.uname().nodename
MANDOC = shutil.which('mandoc')
SOURCE = Path(__file__).resolve().parents[2]
README = SOURCE / 'README.md'
README_WORDS = 1500  # what is longer goes to the man page or to a guide
ARCHITECTURE = SOURCE / 'ARCHITECTURE.md'
ARCHITECTURE_LINES = 250
GUIDES = sorted((SOURCE / 'config' / 'docs').glob('*.md'))
MIGRATING = SOURCE / 'config' / 'docs' / 'migrating.md'  # test_migrating.py knows others' options, too
PAGES = [*sorted(SOURCE.glob('*.md')), *GUIDES, *sorted((SOURCE / 'tests').glob('*/README.md'))]
# of mpirun, srun, gdb, scripts and our own test tools, which README and the guides show as well
FOREIGN_OPTIONS = {'distribution', 'wait', 'map-by', 'bind-to', 'mpi', 'ntasks-per-node', 'args', 'lr', 'local_rank',
                   'quick', 'all', 'only', 'dist', 'from', 'seed', 'deaths', 'rounds',
                   'signal', 'now', 'no-block', 'all-nodes', 'create', 'update-catalog', 'exclude', 'least', 'pty', 'build',
                   'fake', 'shm-size'}


def options_of_help(launch):
    result = launch(['--help'])
    assert result.rc == 0 and result.err == ''
    return set(re.findall(r'^  (?:-\w, )?--([\w-]+)', result.out, re.M))


def test_help_in_groups(launch):
    text = launch(['-h']).out
    titles = re.findall(r'\n\n(\S.*):\n  -', text)
    assert titles == ['Job and nodes', 'Multiple nodes', 'Workers', "Workers' environment",
                      'Placement of workers', 'Limits of each worker, by cgroups', 'Checking nodes',
                      'Output', 'Ending the job', 'After a failure, and hangs', 'Restarts', 'Rendezvous, as with torchrun', 'General',
                      'Limited or without effect']
    assert max(map(len, text.splitlines())) <= 110
    assert {'nproc_per_node', 'rdzv-backend', 'dry-run', 'mpi-env'} <= options_of_help(launch)


def test_version(launch):
    result = launch(['--version'])
    assert result.rc == 0 and re.fullmatch(r'launchd \d+\.\d+\.\d+\n', result.out)


@pytest.mark.skipif(not MANDOC, reason='no mandoc here')
@pytest.mark.parametrize('page', ['launchd.1', 'launchctl.1', 'launchd.conf.5', 'launchd-control.7'])
def test_a_man_page_is_clean(page):
    lint = subprocess.run([MANDOC, '-Tlint', '-Wwarning', DOCS / page], capture_output=True, text=True)
    assert (lint.returncode, lint.stdout) == (0, '')


def rendered(page):
    text = subprocess.run([MANDOC, '-Tascii', DOCS / page], capture_output=True, text=True).stdout
    return re.sub('.\b', '', text)  # bold and underlined


@pytest.mark.skipif(not MANDOC, reason='no mandoc here')
def test_the_man_page_has_every_option(launch):
    text = rendered('launchd.1')
    assert {option for option in options_of_help(launch) if f'--{option}' not in text} == set()


def keys_of_the_example():
    """(section, key, default) of each setting."""
    section = ''
    for title, key, default in re.findall(r'^(?:\[(\w+)\]|;([\w-]+) = (.*))$',
                                          (DOCS / 'launchd.conf.example').read_text(), re.M):
        section = title or section
        if key and section != 'env':
            yield section, key, default


@pytest.mark.skipif(not MANDOC, reason='no mandoc here')
def test_the_man_page_of_files_has_every_key_in_its_section():
    keys = rendered('launchd.conf.5').partition('\nKEYS\n')[2].partition('\nFILES\n')[0]
    _, *sections = re.split(r'\n   \[(\w+)\]\n', keys)
    shown = {(section, key, default) for section, text in zip(sections[::2], sections[1::2])
             for key, default in re.findall(r'^ {8,}([\w-]+) +\S+(?: \((.*)\))?$', text, re.M)}
    words = {('0', 'no'), ('1', 'yes')}
    expected = set(keys_of_the_example())
    assert {row[:2] for row in shown} == {row[:2] for row in expected}
    assert {(was[2], now[2]) for was, now in zip(sorted(expected), sorted(shown)) if was != now} <= words


@pytest.mark.skipif(not MANDOC, reason='no mandoc here')
def test_the_man_pages_example_of_a_file_is_one(launch, place):
    shown = rendered('launchd.conf.5').partition('\nEXAMPLES\n')[2].partition('\nSEE ALSO\n')[0]
    script = place.write('train.py', '')
    text = textwrap.dedent('\n'.join(line for line in shown.splitlines() if line.startswith(' ' * 10)))
    place.write('job.ini', text.replace('gpu00', HERE).replace('/srv/train.py', script))
    result = launch(['--check', 'job.ini'])
    assert (result.rc, result.out, result.err) == (0, 'job.ini: no errors\n', '')


def test_the_example_job_is_right(launch, place):
    """As it stands, and with all that is commented out; where this machine is one of its nodes."""
    example = (SOURCE / 'systemd' / 'job.conf.example').read_text()
    script = place.write('train.py', '')
    key = place.write('job.key', 'a secret that is long enough\n', 0o600)
    (place.path / 'logs').mkdir()
    stands_for = {'gpu[01-04]': f'{HERE},gpu[02-04]', '/srv/train/train.py': script, '= gpu\n': '= 2\n',
                  '/srv/train/venv/bin/python': '/usr/bin/python3', '/etc/launchd/NAME.key': key,
                  '/var/log/launchd/NAME\n': f'{place.path}/logs\n'}
    for word, ours in stands_for.items():
        assert word in example
        example = example.replace(word, ours)
    whole = re.sub(r'^;(?=[\w-]+ = )', '', example, flags=re.M)
    assert whole != example
    for text in (example, whole):
        place.write('job.ini', text)
        result = launch(['--check', 'job.ini', '--control=required'])
        assert (result.rc, result.out, result.err) == (0, 'job.ini: no errors\n', '')


def test_the_example_file_has_every_key_and_works(dry, place, launch):
    example = (DOCS / 'launchd.conf.example').read_text()
    keys, section = set(), ''
    for title, key in re.findall(r'^(?:\[(\w+)\]|;([\w-]+) = )', example, re.M):
        section = title or section
        known = {key, f'{section}-{key}'} & options_of_help(launch)
        keys |= known or {key} - {''} if section != 'check' else known
    assert {'nproc_per_node', 'shutdown-timeout', 'unset-env'} <= keys <= options_of_help(launch) | \
        {'NAME', 'script', 'args'}
    assert dry(['--config', str(DOCS / 'launchd.conf.example')]).value('nproc_per_node') == '1'
    defaults = re.sub(r'^;([\w-]+ = \S)', r'\1', example, flags=re.M)
    assert defaults != example
    place.write('all.ini', defaults)
    plan = dry(['--config', 'all.ini'])
    assert plan.setting('shutdown-timeout') == ('30', plan.setting('shutdown-timeout')[1])
    assert 'all.ini:' in plan.setting('shutdown-timeout')[1]


def anchors_of(page):
    """What may follow "#" in a link to it: its headings, as web front ends for git spell them."""
    headings = re.findall(r'^#+ (.*)$', page.read_text(), re.M)
    return {re.sub(r'[^\w -]', '', heading).lower().replace(' ', '-') for heading in headings}


def links_of(page):
    """(file, anchor) of each link that is not a URL."""
    targets = re.findall(r'\]\(([^)\s]+)\)', page.read_text())
    return [target.partition('#')[::2] for target in targets if '://' not in target]


def test_readme_is_short():
    assert len(README.read_text().split()) <= README_WORDS


def test_the_map_of_rooms_is_short():
    assert len(ARCHITECTURE.read_text().splitlines()) <= ARCHITECTURE_LINES


@pytest.mark.parametrize('page', PAGES, ids=lambda page: str(page.relative_to(SOURCE)))
def test_links_lead_somewhere(page):
    for name, anchor in links_of(page):
        target = page.parent / name if name else page
        assert target.exists(), f'{name} does not exist'
        assert not anchor or anchor in anchors_of(target), f'{name} has no heading #{anchor}'


def test_readme_links_every_guide():
    linked = {(README.parent / name).resolve() for name, _ in links_of(README)}
    assert GUIDES and {guide.name for guide in GUIDES if guide not in linked} == set()


def test_readme_and_guides_name_options_that_exist(launch):
    named = {option for page in {README, *GUIDES} - {MIGRATING}
             for option in re.findall(r'(?<![\w-])--([a-z][\w-]*)', page.read_text())}
    known = {option.replace('_', '-') for option in options_of_help(launch)}
    assert 'dry-run' in named
    assert {option for option in named - FOREIGN_OPTIONS
            if option.replace('_', '-') not in known} == set()


def examples_of(page):
    """The arguments of each launchd in an indented block, whatever starts it there."""
    text = page.read_text().replace('\\\n', ' ')
    lines = re.findall(r'^(?: {4}|\.Dl ).*\b(?:launchd|torchrun) (-.*)$', text, re.M)
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.parametrize('page', [README, DOCS / 'launchd.1', *filter(examples_of, GUIDES)],
                         ids=lambda page: page.name)
def test_examples_are_understood(launch, place, page):
    """By --dry-run: the other nodes are not there, nor are GPUs."""
    for name in ('nsys', 'gdb', 'mpirun', 'nhc', 'launchd-nodecheck'):
        place.write(name, '#!/bin/sh\n', 0o755)
    place.write('train.py', '')
    place.write('job.conf', '[launchd]\nscript = train.py\n')
    place.write('job.ini', '[check]\nleast-node = 400\n')
    place.write('bundle.json', '{"launchd_blackbox": 1}')
    stands_for = {'gpu': '2', '~/bin': place.path, 'scheduled_events.py': '/bin/true',
                  '/logs/blackbox/failure-20261126T112233.123Z-attempt-0': 'bundle.json',
                  '/etc/launchd/train.conf': 'job.conf', '/etc/launchd/NAME.conf': 'job.conf',
                  '/var/lib/prometheus/node-exporter/train.%n.prom': 'train.%n.prom'}
    for example in examples_of(page):
        argv = [word if before == '--preflight' else stands_for.get(word, word)
                for before, word in zip(['', *example], example) if word != '--dry-run']
        env = {'PATH': f'{place.path}:/usr/bin:/bin'}
        if '--env-ranks' in example:  # in a PyTorchJob
            env |= {'MASTER_ADDR': '10.0.0.4', 'RANK': '0', 'WORLD_SIZE': '2'}
        if '--per-process' in example:  # under mpirun
            env |= {f'OMPI_COMM_WORLD_{name}': value for name, value in (
                ('RANK', '0'), ('SIZE', '2'), ('LOCAL_RANK', '0'), ('LOCAL_SIZE', '2'))}
        dry = [] if '--check' in argv else ['--dry-run']
        result = launch([*dry, *argv], env, cwd=place.path)
        here = {0, 3} if any(str(word).startswith('--check-node') for word in argv) else {0}
        assert result.rc in here and result.err == '', (example, result)


def test_examples_are_found():
    assert len(examples_of(README)) >= 10
    assert len(examples_of(DOCS / 'launchd.1')) >= 8


# --- what README and failures.md show of a worker that fails

TRAIN = """
import os
import time


def main():
    started = os.open("started", os.O_RDWR)
    os.write(started, b"x")
    if os.environ["RANK"] == "4":
        for _ in range(9):
            os.read(started, 1)
        raise ValueError("loss is NaN in step 2000")
    time.sleep(600)


main()
"""


def shown(page, begin):
    """The indented block that begins so, without the indent."""
    block = re.search(rf'^ {{4}}{begin}.*\n(?: {{4}}.*\n)*', page.read_text(), re.M)[0]
    return re.sub('^ {4}', '', block, flags=re.M)


def without_names_and_numbers(text):
    text = re.sub(r' on \S+ \(node', ' on HOST (node', text)
    text = re.sub(r'/\S+(?=/train.py|/python3)', '', text)
    return re.sub(r'\d+(\.\d+)?', 'N', text)


@pytest.fixture
def failed(start, place):
    """failed(options) -> what node rank 0 of three says when rank 4 has failed."""
    def run(*options):
        place.write('train.py', TRAIN)
        place.fifo('started')
        cluster = Cluster(start, 3, ['--nproc_per_node=3', '--use_env', *options, 'train.py'],
                          {'TZ': 'UTC', 'PATH': '/usr/bin:/bin'})
        results = cluster.end()
        assert [result.rc for result in results] == [1, 1, 1], results
        return results[0].err

    return run


@pytest.mark.parametrize('page', [README, SOURCE / 'config' / 'docs' / 'failures.md'],
                         ids=lambda page: page.name)
def test_reports_look_as_shown(failed, page):
    begin = 'launchd: error: root cause: rank'
    said = failed()
    assert without_names_and_numbers(said[said.index(begin):]) == \
        without_names_and_numbers(shown(page, begin))


def test_restarts_look_as_shown(failed):
    begin = 'launchd: warning: root cause: rank'
    said = failed('--max-restarts=1')
    assert without_names_and_numbers(said[said.index(begin):]).splitlines()[0] == \
        without_names_and_numbers(shown(SOURCE / 'config/docs/failures.md', begin)).rstrip()


def test_a_pod_lives_longer_than_its_workers(launch):
    """Of Kubernetes' grace and ours: the guide says which is to be the longer one, and the examples have it so."""
    [grace] = re.findall(r'--shutdown-timeout SECONDS.*?\[(\d+)\]', launch(['--help']).out, re.S)
    guide = (SOURCE / 'config' / 'docs' / 'launching.md').read_text()
    [paragraph] = [text for text in guide.split('\n\n') if 'terminationGracePeriodSeconds' in text]
    assert f'must be greater than `--shutdown-timeout` ({grace} by default)' in paragraph
    pods = [path.read_text() for path in (SOURCE / 'examples' / 'kubernetes').glob('*.yaml')]
    periods = [int(period) for pod in pods for period in re.findall(r'terminationGracePeriodSeconds: (\d+)', pod)]
    assert len(periods) == sum('/opt/launchd/launchd' in pod for pod in pods) == 2
    assert all(period >= int(grace) + 10 for period in periods)
