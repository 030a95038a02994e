"""Section 2: torchrun's name and flags, those of later work, and the shells' completion."""
import os
import pathlib
import pty
import select
import shutil
import subprocess
import time

import pytest

from harness import BUILD, LIMIT, native, worker


def test_a_symlink_named_torchrun_has_torchruns_defaults(launch, place):
    place.write('train.py', '')
    argv = ['--python', worker('dump'), '--nproc-per-node=2', 'train.py', '--r=$local_rank', '$$']
    assert launch(argv, name='torchrun').rc == 0
    assert [place.dumps()[i]['argv'][1:] for i in range(2)] == \
        [['-u', 'train.py', f'--r={i}', '$'] for i in range(2)]
    assert launch(argv).rc == 0
    assert place.dumps()[1]['argv'][1:] == \
        ['-u', 'train.py', '--local_rank=1', '--r=$local_rank', '$$']


def test_install_torchrun_makes_the_link(launch, place):
    (place.path / 'bin').mkdir()
    link, program = place.path / 'bin/torchrun', BUILD / 'launchd'
    path = {'PATH': str(link.parent)}
    for _ in range(2):  # it may be there already
        made = launch(['--install-torchrun', 'bin'], path)
        assert (made.rc, made.out, made.err) == (0, f'bin/torchrun is launchd: {program}\n', '')
        assert os.readlink(link) == str(program)
    assert launch(['--install-torchrun=bin'], path, program=link).rc == 0


def test_install_torchrun_says_which_one_path_finds(launch, place):
    other = pathlib.Path(place.write('other/torchrun', '', 0o755))
    for name, path, said in (
            ('a', 'nowhere', f'PATH has no torchrun yet: add {place.path}/a to it'),
            ('b', f'{other.parent}:{place.path}/b', f'PATH finds {other} first: put '
                                                    f'{place.path}/b before that')):
        (place.path / name).mkdir()
        made = launch(['--install-torchrun', f'{place.path}/{name}'], {'PATH': path})
        assert (made.rc, made.out.splitlines()[1:]) == (0, [said])


@pytest.mark.parametrize('make, said', [
    (lambda link: link.write_text('mine'), 'bin/torchrun is there already, and is not'),
    (lambda link: link.symlink_to('/nowhere/launchd'), 'already, a link to /nowhere/launchd, and'),
    (lambda link: link.mkdir(), 'bin/torchrun is there already, and is not'),
])
def test_install_torchrun_touches_no_strangers(refused, place, make, said):
    link = place.path / 'bin/torchrun'
    link.parent.mkdir()
    make(link)
    before = link.lstat()  # of which readlink(2) changes the time of access
    refused(['--install-torchrun', 'bin'], 'error: --install-torchrun: ', said)
    after = link.lstat()
    assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)


def test_install_torchrun_needs_a_directory(refused):
    refused(['--install-torchrun', 'none'], "--install-torchrun: can't make none/torchrun: No such",
            rc=1)
    refused(['--install-torchrun'], '--install-torchrun needs a value: --install-torchrun=DIR')


def test_install_torchrun_makes_no_link_to_a_program_that_is_gone(place):
    """Whoever executes it may have it open only: from memory, or a file that was replaced."""
    copy, into = place.path / 'copy', place.path / 'bin'
    shutil.copy(BUILD / 'launchd', copy)
    into.mkdir()
    with open(copy, 'rb') as program:
        copy.unlink()
        fd = program.fileno()
        done = subprocess.run([f'/proc/self/fd/{fd}', '--install-torchrun', into], pass_fds=[fd],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (1, '')
    assert f'{copy} (deleted)' in done.stderr
    assert not list(into.iterdir())


def test_torchruns_defaults_are_ours(dry):
    plan = dry(name='torchrun')
    assert plan.setting('use_env') == ('1', "torchrun's default")
    assert plan.setting('expand-args') == ('1', "torchrun's default")
    assert dry(['--expand-args=0'], name='torchrun').setting('expand-args') == \
        ('0', '--expand-args')


DEFAULTS = [
    ('max-restarts', '0'), ('redirects', '0'), ('tee', '0'), ('log-line-prefix-template', ''),
    ('local-ranks-filter', ''), ('duplicate-stdout-filters', ''), ('duplicate-stderr-filters', ''),
    ('signals-to-handle', 'SIGTERM,SIGINT,SIGHUP,SIGQUIT'), ('rdzv-backend', 'static'),
    ('rdzv-endpoint', ''), ('rdzv-id', 'none'), ('rdzv-conf', ''), ('role', 'default'),
    ('nnodes', '1:1'), ('nproc-per-node', '1'), ('shutdown-timeout', '30'), ('node-rank', '0'),
]


@pytest.mark.parametrize('flag, default', DEFAULTS)
def test_every_flag_is_accepted_at_its_default(dry, flag, default):
    for spelled in (flag, flag.replace('-', '_')):
        assert dry([f'--{spelled}={default}']).warnings() == []
    assert dry([], {'PET_' + flag.upper().replace('-', '_'): default}).warnings() == []


@pytest.mark.parametrize('flag', ['-r', '-t'])
def test_short_flags_are_accepted_at_their_default(dry, flag):
    assert dry([flag, '0']).warnings() == []
    assert dry([f'{flag}0']).warnings() == []


# flag, value, and what a worker's stdout and stderr are then: way, console, prefix; each
# combination is a row of tests/unit/daemon/plan/test_output_plan.c
OUTPUT = [
    ('redirects', '0:1', ('file', False, None), ('pipe', True, None)),
    ('tee', '0:2', ('pipe', True, None), ('pipe', True, '[${role_name}${local_rank}]:')),
    ('local-ranks-filter', '1', ('pipe', False, None), ('pipe', False, None)),
]


@pytest.mark.parametrize('flag, value, stdout, stderr', OUTPUT)
def test_flags_of_output(dry, flag, value, stdout, stderr):
    variable = 'PET_' + flag.upper().replace('-', '_')
    for plan in (dry([f'--{flag}={value}']), dry([], {variable: value})):
        worker = plan.json['workers'][0]
        for name, (way, console, prefix) in (('stdout', stdout), ('stderr', stderr)):
            is_ = worker[name]
            assert (is_['way'], is_['console'], is_['prefix']) == (way, console, prefix)


def test_short_flags_of_output(dry):
    assert dry(['-r', '3']).json['workers'][0]['stdout']['way'] == 'file'
    assert dry(['-t3']).json['workers'][0]['stdout']['file'].endswith('/attempt_0/0/stdout.log')


def test_the_tree_is_torchruns(dry):
    """<dir>/<run id>_XXXXXXXX/attempt_N/<local rank>/{stdout.log,stderr.log,error.json}"""
    plan = dry(['--log-dir=logs', '--rdzv-id=r', '--nproc_per_node=2'])
    below = 'logs/r_XXXXXXXX/attempt_0/1/'
    worker = plan.json['workers'][1]
    assert worker['stdout']['file'] == below + 'stdout.log'
    assert worker['stderr']['file'] == below + 'stderr.log'
    assert {'name': 'TORCHELASTIC_ERROR_FILE', 'change': 'set', 'value': below + 'error.json'} \
        .items() <= next(e for e in worker['environment']
                         if e['name'] == 'TORCHELASTIC_ERROR_FILE').items()


def test_lines_that_are_filtered(dry):
    plan = dry(['-t', '3', '--duplicate-stdout-filters=a,,b,c'])
    assert plan.json['workers'][0]['stdout']['filtered'] is True
    assert plan.json['workers'][0]['stderr']['filtered'] is False


def test_what_means_nothing_here_warns_in_one_line(launch):
    result = launch(['--event-log-handler=console', *native('dump')])
    assert result.rc == 0
    assert result.err == 'launchd: warning: --event-log-handler has no effect: launchd reports what happens on its ' \
        'standard error\n'


@pytest.mark.parametrize('flag, variables', [(['--run-path'], {}), ([], {'PET_RUN_PATH': '1'})])
def test_run_path_runs_the_script_by_python(launch, place, flag, variables):
    place.write('train.py', '')
    result = launch([*flag, '--python', worker('dump'), 'train.py', '--lr=1'], variables, name='torchrun')
    assert result.rc == 0, result
    assert place.dumps()[0]['argv'][1:] == ['-u', 'train.py', '--lr=1']
    assert 'has no effect: the launcher has no Python of its own' in result.err


def test_signals_to_handle_adds_to_those_that_end_the_job(dry):
    plan = dry(['--signals-to-handle=SIGUSR1'], {'PET_SIGNALS_TO_HANDLE': 'SIGUSR2'})
    assert plan.json['signals']['SIGUSR1'] == \
        {'value': 'forward:30', 'source': '--signals-to-handle'}
    assert plan.json['signals']['SIGTERM'] == {'value': 'forward:30', 'source': 'default'}
    assert 'SIGUSR2' not in plan.json['signals']
    assert plan.warnings() == []


def test_signals_that_are_exported_for_torchruns_agent_count(dry, refused):
    name = 'TORCHELASTIC_SIGNALS_TO_HANDLE'
    assert dry([], {name: 'SIGUSR1'}).json['signals']['SIGUSR1'] == \
        {'value': 'forward:30', 'source': name}
    assert 'SIGUSR1' not in dry([], {name: 'SIGUSR1', 'PET_SIGNALS_TO_HANDLE': 'SIGTERM'}).json['signals']
    refused(native('dump'), name, 'SIGFOO', env={name: 'SIGFOO'})


def test_standalone(launch, place):
    ids = set()
    for _ in range(2):
        assert launch(['--standalone', *native('dump')],
                      {'MASTER_ADDR': 'else', 'MASTER_PORT': '1', 'NODE_RANK': '4',
                       'OMPI_COMM_WORLD_RANK': '1', 'OMPI_COMM_WORLD_SIZE': '2'}).rc == 0
        env = place.dumps()[0]['env']
        assert (env['MASTER_ADDR'], env['WORLD_SIZE'], env['RANK']) == ('127.0.0.1', '1', '0')
        ids.add(env['TORCHELASTIC_RUN_ID'])
    assert len(ids) == 2 and all(len(run) == 36 for run in ids)


def test_standalone_says_what_it_overrides(dry):
    warnings = dry(['--standalone', '--master_addr=h', '--rdzv-id=x']).warnings()
    assert len(warnings) == 2
    assert '--master_addr is overridden by' in warnings[0] and '--rdzv-id is overridden by' in warnings[1]


def test_rdzv_conf_timeouts_are_read_as_seconds(dry):
    plan = dry(['--rdzv-conf=timeout=900,join_timeout=60,read_timeout=60'])
    assert plan.setting('join-timeout') == ('60', 'join_timeout in --rdzv-conf')
    assert [w for w in plan.warnings() if 'timeout' in w] == [
        '--rdzv-conf: read_timeout has no effect: --node-timeout decides when a node is lost']


def test_role_and_id(launch, place):
    assert launch(['--role', 'trainer', '--rdzv-id', 'job-7', *native('dump')]).rc == 0
    env = place.dumps()[0]['env']
    assert (env['ROLE_NAME'], env['TORCHELASTIC_RUN_ID']) == ('trainer', 'job-7')


def test_virtual_local_rank(launch, place, refused):
    argv = ['--virtual-local-rank', '--nproc_per_node=2', *native('dump')]
    assert launch(argv, {'CUDA_VISIBLE_DEVICES': '3, GPU-x'}).rc == 0
    got = [place.dumps()[rank]['env'] for rank in range(2)]
    assert [env['LOCAL_RANK'] for env in got] == ['0', '0']
    assert [env['RANK'] for env in got] == ['0', '1']
    assert [env['CUDA_VISIBLE_DEVICES'] for env in got] == ['3', 'GPU-x']
    refused(argv, '--virtual-local-rank', '2 workers', env={'CUDA_VISIBLE_DEVICES': '3'})


@pytest.mark.parametrize('words, expected', [
    (['--nproc_per_no'], {'--nproc_per_node'}),
    (['--mpi-env', ''], {'rewrite', 'scrub', 'keep', 'rewrite-slurm', 'rewrite-pmi'}),
    (['--mpi-env', '=', 's'], {'scrub'}),
    (['--rdzv-backend', 'c'], {'c10d'}),
    (['--rdzv_backend', 'c'], {'c10d'}),
    (['--nproc-per-node', ''], {'auto', 'cpu', 'gpu'}),
    (['--signal-scope', ''], {'worker', 'group', 'tree'}),
    (['--wrap'], {'--wrap', '--wrap-ranks'}),
    (['--wrap', 'gdb --args', '--only'], {'--only-rank'}),
    (['--nproc_per_node', '2', '--no_p'], {'--no_python'}),
    (['train.py', '--nproc'], set()),
])
def test_bash_completes(launch, place, words, expected):
    script = place.write('completion', launch(['--print-completion', 'bash']).out)
    listed = ' '.join(f"'{word}'" for word in words)
    got = subprocess.run(
        ['bash', '--norc', '-ec', f'. {script}; complete -p launchd >/dev/null; '
         f'COMP_WORDS=(launchd {listed}); COMP_CWORD={len(words)}; COMPREPLY=(); _launchd || :; '
         'printf "%s\\n" "${COMPREPLY[@]}"'],
        env=place.environment({}), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=LIMIT, check=True)
    assert (set(got.stdout.split()), got.stderr) == (expected, '')


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, argv, env, cwd):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(argv, env=env, cwd=cwd, stdin=slave, stdout=slave,
                                        stderr=slave, start_new_session=True)
        os.close(slave)
        self.seen = ''

    def type(self, text):
        self.seen = ''
        os.write(self.master, text.encode())

    def wait(self, *words):
        end = time.monotonic() + LIMIT
        while not all(word in self.seen for word in words):
            left = end - time.monotonic()
            assert left > 0 and select.select([self.master], [], [], left)[0], self.seen
            self.seen += os.read(self.master, 4096).decode(errors='replace')

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.mark.parametrize('how', ['installed', 'evaluated'])
def test_zsh_completes(launch, place, how):
    """As a function of the site, and as torchrun's users load it: eval "$(... zsh)"."""
    script = place.write('site/_launchd', launch(['--print-completion', 'zsh']).out)
    load = f'fpath=({place.path}/site $fpath)' if how == 'installed' else ''
    after = f'eval "$(<{script})"' if how == 'evaluated' else ''
    terminal = Terminal(['zsh', '-f', '-i'], place.environment({'TERM': 'dumb'}), place.path)
    try:
        terminal.type(f"{load}\nautoload -Uz compinit; compinit -D -u\n{after}\n"
                      "setopt no_auto_menu no_list_beep; bindkey '^T' list-choices\n"
                      'PS1=; echo rea""dy\n')
        terminal.wait('ready')
        assert '_arguments' not in terminal.seen
        terminal.type('launchd --mpi-env=\x14')
        terminal.wait('rewrite', 'scrub', 'keep')
        terminal.type('\x15launchd --rdzv-\x14')
        terminal.wait('--rdzv-backend', '--rdzv-endpoint', '--rdzv-id', '--rdzv-conf')
    finally:
        terminal.close()


def test_a_default_in_other_words_is_still_the_default(dry):
    plan = dry(['--max-restarts=00'], {'PET_RUN_PATH': 'false'})
    assert plan.warnings() == []
