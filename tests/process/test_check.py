"""--check FILE: all that is wrong with a configuration, and nothing is started."""
import json
import socket

import pytest

from harness import worker
from needs import needs_mounts
from test_sources import SYSTEM, with_system_file

RIGHT = '[launchd]\nscript = {}\nno_python = yes\nuse_env = yes\n'


@pytest.fixture
def check(launch, place):
    """check(text, ...) -> (exit code, what it says of job.ini on stderr, the same on stdout)"""
    def run(text, *options, env=None, **how):
        place.write('job.ini', text)
        before = sorted(place.path.iterdir())
        result = launch([*options, '--check', 'job.ini'], env, **how)
        assert not place.dumps() and sorted(place.path.iterdir()) == before
        lines = result.err.splitlines()
        assert all(line.startswith('launchd: ') for line in lines), result
        return result.rc, [line.removeprefix('launchd: ') for line in lines], result.out

    return run


def right():
    return RIGHT.format(worker('dump'))


def begins(said, *expected):
    """Each line begins so, and there is no other."""
    assert [line[:len(text)] for line, text in zip(said, expected)] == list(expected), said
    assert len(said) == len(expected), said
    return True


def test_a_job_that_is_right(check):
    more = 'log-dir = logs\nreport = report.json\nmetrics-listen = 127.0.0.1:1\n'
    assert check(right() + more) == (0, [], 'job.ini: no errors\n')


WRONG = '[launchd]\nnproc_per_node = two\nrol = x\nstdin = null\nstdin = null\n[lunchd]\na = 1\nb = 2\n' \
    '[env]\nRANK = 1\n[launchd]\nlocal_rank_arg = ' + 'x' * 190 + '\nwrap-ranks = 0\nmonitor_interval = 1\n'


def test_every_line_that_is_wrong(check, refused):
    rc, said, out = check(WRONG)
    assert (rc, out) == (2, 'job.ini: 7 errors\n')
    assert begins(said, 'error: job.ini:2: nproc_per_node: "two" is not', 'error: job.ini:3: "rol" is not a setting',
                  'error: job.ini:5: stdin is set twice, first at job.ini:4',
                  'error: job.ini:7: [lunchd] is not a section', 'error: job.ini:10: launchd sets RANK',
                  'error: job.ini:12: the line has 207 bytes', 'error: job.ini:13: wrap-ranks needs --wrap',
                  'warning: job.ini:14: monitor-interval has no effect')
    # a run reports the first, and exits with the same code
    assert refused(['--config', 'job.ini']) == f'launchd: {said[0]}'


def test_all_that_a_start_lacks(check, place):
    """No script, no command to wrap it, no place for what is written, no key: all of it at once."""
    place.write('open.key', 'a secret that is long enough\n', 0o644)
    rc, said, out = check(
        '[launchd]\nscript = nosuch.py\nuse_env = 1\nnnodes = 2\nnode_rank = 0\nmaster_addr = 127.0.0.1\n'
        'on-signal = FOO=stop\nwrap = nosuchtool\nmetrics-listen = x\nreport = /nosuch/r\nevents = /nosuch/e\n'
        'log-dir = job.ini\nkey-file = open.key\n', '--control=auto')
    assert (rc, out) == (2, 'job.ini: 8 errors\n')
    assert begins(said, 'error: nosuch.py: no such file', 'error: job.ini:7: "FOO" is not a signal',
                  'error: job.ini:8: nosuchtool: no such file', 'error: job.ini:9: "x" is not an IP address',
                  'error: job.ini:10: /nosuch/r: its directory', 'error: job.ini:12: job.ini is not a directory',
                  'error: job.ini:11: /nosuch/e: its directory', 'error: job.ini:13: open.key has mode 0644')


@pytest.mark.parametrize('text, said', [
    ('', 'error: no training script'),
    ('[launchd]\nscript = nosuch\nno_python = 1\nuse_env = 1\n', 'error: nosuch: no such file on PATH'),
    ('[launchd]\nscript = job.ini\npython = /nosuch\n', 'error: job.ini:3: /nosuch: no such file'),
    ('[launchd]\nscript = job.ini\n[cluster]\nnodes = 10.99.0.8, 10.99.0.9\n',
     'error: job.ini:4: this host is not one of the nodes'),
    ('{"nnodes": 2,\n"a": 1}\n', 'error: job.ini:1: this looks like JSON'),
    ('\ufeff\0', 'error: job.ini:1: a NUL byte'),
])
def test_one_thing_that_is_wrong(check, text, said):
    """Whatever exit code a run would have."""
    rc, errors, out = check(text)
    assert (rc, out) == (2, 'job.ini: 1 error\n')
    assert begins(errors, said)


def test_a_file_of_another_kind(check):
    """The script, say: a hundred of its lines will do."""
    rc, said, out = check('import sys\n' * 1000)
    assert (rc, len(said)) == (2, 100)
    assert out == 'job.ini: 100 errors, and the rest was not read\n'


@needs_mounts
def test_what_is_wrong_with_the_moment(check, launch, place):
    """A name without an answer may have one later: exit code 1, as of a run, which a service tries again."""
    wrap = with_system_file(place, '')  # and no resolver
    text = right() + 'join-timeout = 1\n[cluster]\nnodes = n0.invalid, n1.invalid\n'
    rc, said, out = check(text, wrap=wrap)
    assert begins(said, 'error: job.ini:7: this host, ')
    assert (rc, out) == (1, 'job.ini: 1 error\n')
    run = launch(['--config', 'job.ini'], wrap=wrap)
    assert (run.rc, run.err) == (1, f'launchd: {said[0]}\n')


def test_files_that_are_not_there(launch):
    result = launch(['--check', 'nosuch.ini'])
    assert (result.rc, result.out) == (2, 'nosuch.ini: 1 error\n')
    assert result.err == "launchd: error: --check: nosuch.ini: can't be read: No such file or directory\n"
    result = launch(['--check', '/'])
    assert (result.rc, result.out) == (2, '/: 1 error\n')


def test_warnings_are_no_errors(check):
    rc, said, out = check(right() + 'restart-delay = 5\nlog-keep = 3\n')
    assert (rc, out) == (0, 'job.ini: no errors\n')
    assert begins(said, 'warning: job.ini:5: restart-delay has no effect',
                  'warning: job.ini:6: log-keep has no effect')


def test_quiet_says_errors_alone(check):
    assert check(right() + 'restart-delay = 5\n', '--quiet') == (0, [], '')
    rc, said, out = check(WRONG, '--quiet')
    assert (rc, len(said), out) == (2, 7, '')


def test_variables_and_options_are_read_too(check, launch, place):
    rc, said, _ = check('[launchd]\nrol = x\n', env={'LAUNCHD_NNODES': 'x', 'PET_ROLE': 'r', 'PET_NNODES': 'y'})
    assert rc == 2
    assert begins(sorted(said), 'error: LAUNCHD_NNODES: "x"', 'error: PET_NNODES: "y"', 'error: job.ini:2: "rol"')
    place.write('job.ini', '[launchd]\nscript = nosuch\n')
    result = launch(['--no_python', '--use_env', '--check', 'job.ini', worker('dump')])
    assert (result.rc, result.out, result.err) == (0, 'job.ini: no errors\n', '')
    assert not place.dumps()


def test_the_command_line_is_as_ever(refused, place):
    place.write('job.ini', right())
    refused(['--check', 'job.ini', '--nnodes=x'], '--nnodes: "x"')
    refused(['--check'], '--check needs a value: --check=FILE')
    refused(['--check='], '--check is empty')
    refused(['--check=job.ini', '--config=job.ini'], '--check and --config are mutually exclusive')
    refused(['--check=job.ini', '--dry-run'], '--check and --dry-run are mutually exclusive')


@pytest.mark.parametrize('option, shown', [('--version', 'launchd '), ('--help', 'Usage: '),
                                           ('--self-check', 'launchd '), ('--print-completion=bash', '_launchd')])
def test_what_only_asks_for_information_goes_first(launch, option, shown):
    result = launch([option, '--check', 'nosuch.ini'])
    assert result.rc == 0 and shown in result.out and result.err == ''


def test_messages_in_the_format_that_the_file_asks_for(launch, place):
    place.write('job.ini', '[launchd]\nlog-format = json\nrol = x\nstdin = y\n')
    result = launch(['--check', 'job.ini'])
    said = [json.loads(line) for line in result.err.splitlines()]
    assert [(line['level'], line['text'][:9]) for line in said] == [('error', 'job.ini:3'), ('error', 'job.ini:4')]
    assert (result.rc, result.out) == (2, 'job.ini: 2 errors\n')


def test_ports_that_are_taken_are_not_asked_for(check):
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        text = right() + f'nnodes = 2\nnode_rank = 0\nmaster_addr = 127.0.0.1\nmaster_port = {port}\n' \
            f'metrics-listen = 127.0.0.1:{port}\n'
        assert check(text, '--control=required') == (0, [], 'job.ini: no errors\n')


@needs_mounts
def test_the_systems_file_is_read_too(check, place):
    wrap = with_system_file(place, '[launchd]\nrol = x\nstdin = y\n')
    rc, said, out = check('[launchd]\nnnodes = x\n', wrap=wrap)
    assert (rc, out) == (2, 'job.ini: 3 errors\n')
    assert begins(said, f'error: {SYSTEM}:2: "rol"', f'error: {SYSTEM}:3: stdin', 'error: job.ini:2: nnodes')


@needs_mounts
def test_the_systems_file_itself_needs_no_script(launch, place):
    for text, rc, said, out in (('[launchd]\nstdin = null\n', 0, [], 'no errors'),
                                ('[launchd]\nstdin = y\nrol = x\n', 2, [f'{SYSTEM}:2: stdin', f'{SYSTEM}:3: "rol"'],
                                 '2 errors')):
        result = launch(['--check', SYSTEM], wrap=with_system_file(place, text))
        assert (result.rc, result.out) == (rc, f'{SYSTEM}: {out}\n')
        assert begins(result.err.splitlines(), *[f'launchd: error: {line}' for line in said])
