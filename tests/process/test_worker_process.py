"""Section 4: a worker as a process: session, signals, descriptors, Python, stdin, CPUs, limits."""
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys

import pytest

from harness import BUILD, native, worker
from needs import PID_1, needs_pids

NULL = '/dev/null'


def signals_in(mask):
    return {number for number in range(1, 65) if int(mask, 16) >> (number - 1) & 1}


def test_own_session(launch, place):
    result = launch(native('dump', '--nproc_per_node=2'))
    dumps = place.dumps().values()
    for dump in dumps:
        assert dump['sid'] == dump['pgid'] == dump['pid']
    assert len({dump['pid'] for dump in dumps}) == 2
    [supervisor] = {dump['ppid'] for dump in dumps}
    assert supervisor not in {result.pid, 1}


def test_working_directory_is_the_launchers(launch, place):
    assert launch(native('dump'), cwd=place.tmp).rc == 0
    assert place.dumps()[0]['cwd'] == str(place.tmp.resolve())


def test_default_dispositions_and_an_empty_mask(launch, place):
    assert launch(native('dump')).rc == 0
    dump = place.dumps()[0]
    assert signals_in(dump['SigIgn']) == signals_in(dump['SigBlk']) == set()
    assert signals_in(dump['SigPnd']) == set()


IGNORED = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGPIPE,
           signal.SIGTSTP}


def test_what_was_ignored_on_entry_stays_so_but_for_chld_and_term(launch, place):
    def before():
        for number in IGNORED | {signal.SIGCHLD, signal.SIGTERM}:
            signal.signal(number, signal.SIG_IGN)

    assert launch(native('dump'), {'EXIT_0': '5'}, before=before).rc == 5
    assert signals_in(place.dumps()[0]['SigIgn']) == IGNORED


def test_what_was_blocked_on_entry_is_not(launch, place):
    def before():
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    assert launch(native('dump'), before=before).rc == 0
    assert signals_in(place.dumps()[0]['SigBlk']) == set()


def test_only_0_1_and_2_are_open(launch, place):
    """Even when the launcher inherits others, low and high."""
    pipes = [fd for _ in range(3) for fd in os.pipe()]
    high = os.dup2(pipes[0], 900)
    try:
        result = launch(native('dump', '--nproc_per_node=2'), pass_fds=[*pipes, high])
    finally:
        for fd in [*pipes, high]:
            os.close(fd)
    assert result.rc == 0
    for dump in place.dumps().values():
        assert set(dump['fds']) == {'0', '1', '2'}


def test_output_goes_where_the_launchers_goes(launch, place):
    place.write('say.py', 'import sys; print("out"); print("err", file=sys.stderr)')
    result = launch(['say.py'])
    assert (result.out, result.err) == ('out\n', 'err\n')


def close_all(*fds):
    def before():
        for fd in fds:
            os.close(fd)

    return before


@pytest.mark.parametrize('closed', [(0,), (1,), (2,), (0, 1, 2)])
def test_descriptors_that_were_closed_on_entry(launch, place, closed):
    assert launch(native('dump'), {'EXIT_0': '6'}, before=close_all(*closed)).rc == 6
    fds = place.dumps()[0]['fds']
    assert set(fds) == {'0', '1', '2'}
    # what workers print passes through launchd all the same: a report may want its end
    assert all((fds[str(fd)] == NULL) == (fd == 0) for fd in closed)


def test_a_reader_of_stderr_that_is_gone_does_not_end_the_job(launch, place):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = launch(native('dump', '--nproc_per_node=2'), {'EXIT_1': '7'}, err=writer)
    finally:
        os.close(writer)
    assert result.rc == 7
    assert signals_in(place.dumps()[1]['SigIgn']) == set()  # nor is PIPE ignored in workers


def test_a_reader_of_stdout_that_is_gone(launch, place):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert launch(['--no_python', '--use_env', '/bin/echo', 'x'], out=writer).rc == 0
        assert launch(['--no_python', '--use_env', '/usr/bin/yes'], out=writer).rc in (1, 141)
        assert launch(['--help'], out=writer).rc == 1
    finally:
        os.close(writer)


def test_python_is_unbuffered(launch, place):
    place.write('train.py', 'import sys; print(sys.stdout.write_through, sys.orig_argv[1:])')
    assert launch(['train.py', 'a']).out == \
        "True ['-u', 'train.py', '--local_rank=0', 'a']\n"


def test_which_python(launch, place):
    """--python, PYTHON_EXEC, python3, python; names are searched on PATH, paths are not."""
    place.write('train.py', '')
    for name in ('given/p', 'given/q', 'both/python3', 'both/python', 'old/python'):
        path = place.path / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(worker('dump'))
    place.write('broken/python3', 'not executable')
    rows = [
        (['--python=given/p'], {'PYTHON_EXEC': 'given/q', 'PATH': 'both'}, 'given/p'),
        (['--python=python'], {'PATH': 'both'}, 'both/python'),
        ([], {'PYTHON_EXEC': 'given/q', 'PATH': 'both'}, 'given/q'),
        ([], {'PATH': 'old:both'}, 'both/python3'),
        ([], {'PATH': 'nowhere:old'}, 'old/python'),
        ([], {'PATH': 'broken:both'}, 'both/python3'),
        ([], {'PATH': 'broken:old'}, 'old/python'),
    ]
    for options, env, expected in rows:
        assert launch([*options, 'train.py'], env).rc == 0
        assert place.dumps()[0]['argv'][0] == expected


def test_a_virtual_environments_python_stays_its_own(launch, place):
    """Python finds its environment by the path it was called by, so links are not resolved."""
    (place.path / 'venv/bin').mkdir(parents=True)
    (place.path / 'venv/bin/python3').symlink_to(os.path.realpath('/usr/bin/python3'))
    place.write('venv/pyvenv.cfg', 'home = /usr/bin\n')
    place.write('train.py', 'import sys; print(sys.prefix)')
    expected = str(place.path / 'venv') + '\n'
    path = f'{place.path}/venv/bin:/usr/bin:/bin'
    assert launch(['train.py'], {'PATH': path}).out == expected
    assert launch(['--python', 'venv/bin/python3', 'train.py']).out == expected
    assert launch(['train.py'], {'PYTHON_EXEC': f'{place.path}/venv/bin/python3'}).out == expected


@pytest.fixture
def installed(place):
    """The program in a virtual environment with a PyTorch."""
    venv = place.path / 'venv'
    place.write('venv/pyvenv.cfg', 'home = /usr/bin\n')
    place.write('venv/lib/python3.11/site-packages/torch/version.py', "__version__ = '2.4.0'\n")
    place.write('train.py', 'import sys; print(sys.prefix)')
    (venv / 'bin').mkdir()
    (venv / 'bin/python3').symlink_to(os.path.realpath('/usr/bin/python3'))
    shutil.copy(BUILD / 'launchd', venv / 'bin/launchd')
    return venv


def test_the_virtual_environment_of_launchd_itself(launch, place, installed):
    """Called by its path, or by a link, as --install-torchrun makes it; what is named goes first."""
    own, paths = f'{installed}\n', '/usr\n'
    program = installed / 'bin/launchd'
    (place.path / 'torchrun').symlink_to(program)
    assert launch(['train.py'], program=program).out == own
    assert launch(['train.py'], program=place.path / 'torchrun').out == own
    assert launch(['train.py'], {'VIRTUAL_ENV': ''}, program=program).out == own
    assert launch(['train.py'], {'VIRTUAL_ENV': '/another'}, program=program).out == paths
    assert launch(['train.py'], {'PYTHON_EXEC': '/usr/bin/python3'}, program=program).out == paths
    assert re.search(rf"program +{installed}/bin/python3 +\(launchd's virtual environment\)",
                     launch(['--dry-run', 'train.py'], program=program).out)


@pytest.mark.parametrize('missing', ['pyvenv.cfg', 'lib', 'bin/python3'])
def test_a_virtual_environment_that_is_not_the_workers(launch, installed, missing):
    """pipx and uv make one for launchd alone, without PyTorch; there may be one on PYTHONPATH."""
    (installed / missing).rename(installed / 'elsewhere')
    packages = str(next(installed.glob('*/python3*/site-packages')))
    result = launch(['train.py'], {'PYTHONPATH': packages}, program=installed / 'bin/launchd')
    assert result.out == '/usr\n'


CAT = ['--no_python', '--use_env', '/bin/cat']


def test_stdin_from_a_pipe_of_the_users(launch):
    for options, env, expected in [
            ([], {}, 'data'), (['--stdin=null'], {}, ''), (['--stdin=inherit'], {}, 'data'),
            (['--stdin=inherit'], {'PMI_RANK': '0', 'PMI_SIZE': '1'}, 'data')]:
        reader, writer = os.pipe()
        os.write(writer, b'data')
        os.close(writer)
        try:
            assert launch([*options, *CAT], env, stdin=reader).out == expected
        finally:
            os.close(reader)


def test_stdin_on_a_terminal(launch, place):
    master, slave = pty.openpty()
    try:
        assert launch(native('dump', '--nproc_per_node=2'), stdin=slave).rc == 0
        name = os.ttyname(slave)
    finally:
        os.close(master)
        os.close(slave)
    for dump in place.dumps().values():
        assert dump['tty'] and dump['fds']['0'] == name


@pytest.mark.parametrize('env', [
    {'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '1'},
    {'PMI_RANK': '0', 'PMI_SIZE': '1'},
    {'SLURM_STEP_ID': '0', 'SLURM_PROCID': '0', 'SLURM_STEP_NUM_TASKS': '1'},
])
def test_stdin_is_null_under_mpirun_and_srun(launch, place, env):
    reader, writer = os.pipe()
    try:
        assert launch(native('dump'), env, stdin=reader).rc == 0
    finally:
        os.close(reader)
        os.close(writer)
    assert place.dumps()[0]['fds']['0'] == NULL


def test_stdin_is_null_under_systemd(launch, place):
    """systemd says the pid it started; below a service's shell that is another one."""
    reader, writer = os.pipe()
    try:
        wrap = ['sh', '-c', 'SYSTEMD_EXEC_PID=$$ exec "$@"', 'sh']
        assert launch(native('dump'), wrap=wrap, stdin=reader).rc == 0
        assert place.dumps()[0]['fds']['0'] == NULL
        assert launch(native('dump'), {'SYSTEMD_EXEC_PID': '1', 'INVOCATION_ID': 'x'},
                      stdin=reader).rc == 0
        assert place.dumps()[0]['fds']['0'].startswith('pipe:')
    finally:
        os.close(reader)
        os.close(writer)


@needs_pids
def test_stdin_is_null_under_a_systemd_that_does_not_say_the_pid(launch, place):
    """Before v248: a unit's process has INVOCATION_ID and is a child of pid 1."""
    wrap = [*PID_1, 'sh', '-c', '"$@"; exit $?', 'sh']
    reader, writer = os.pipe()
    try:
        assert launch(native('dump'), {'INVOCATION_ID': 'x'}, wrap=wrap, stdin=reader).rc == 0
        assert place.dumps()[0]['fds']['0'] == NULL
        assert launch(native('dump'), {}, wrap=wrap, stdin=reader).rc == 0
        assert place.dumps()[0]['fds']['0'].startswith('pipe:')
    finally:
        os.close(reader)
        os.close(writer)


def cpus_allowed():
    """What the cpuset allows, whatever this process is bound to."""
    code = 'import os; os.sched_setaffinity(0, range(1024)); print(len(os.sched_getaffinity(0)))'
    return int(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True,
                              check=True).stdout)


def test_mpiruns_binding_is_undone_and_said_on_request(launch, place):
    everything = cpus_allowed()
    if everything < 2:
        pytest.skip('one CPU: nothing to bind to')
    wrap = ['taskset', '-c', str(min(os.sched_getaffinity(0)))]
    env = {'OMPI_MCA_orte_bound_at_launch': '1', 'OMPI_COMM_WORLD_RANK': '0',
           'OMPI_COMM_WORLD_SIZE': '1', 'OMP_NUM_THREADS': '1',
           'OMPI_MCA_odls_base_sigkill_timeout': '31'}
    result = launch(native('dump', '--nproc_per_node=2'), env, wrap=wrap)
    assert [dump['cpus'] for dump in place.dumps().values()] == [everything] * 2
    assert result.err == ''
    result = launch(native('dump', '--verbose'), env, wrap=wrap)
    assert f'bound this launcher to fewer CPUs than it may use; launchd has undone that, and ' \
        f'workers may use all {everything}\n' in result.err
    result = launch(native('dump', '--nproc_per_node=cpu'), env, wrap=wrap)
    assert len(place.dumps()) == everything


@pytest.mark.parametrize('env', [
    {}, {'OMPI_MCA_orte_bound_at_launch': '0'},
    {'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '1',
     'OMPI_MCA_odls_base_sigkill_timeout': '31'}])
def test_a_binding_of_the_users_stays(launch, place, env):
    wrap = ['taskset', '-c', str(min(os.sched_getaffinity(0)))]
    result = launch(native('dump'), env, wrap=wrap)
    assert result.rc == 0 and result.err == ''
    assert place.dumps()[0]['cpus'] == 1


def test_the_limit_of_open_files_is_raised_for_us_only(start, place):
    hard = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 4096)
    ready, go = place.fifo('ready'), place.fifo('go')
    job = start(native('dump'), {'TELL': ready.path, 'GO': go.path},
                before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)))
    ready.expect('ready', 1)
    assert place.dumps()[0]['nofile'] == [64, hard]
    assert resource.prlimit(job.pid, resource.RLIMIT_NOFILE) == (hard, hard)
    go.go()
    assert job.end().rc == 0


def test_many_workers_with_few_files(launch, place):
    """More workers than the soft limit allows descriptors."""
    def before():
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, hard))

    result = launch(native('dump', '--nproc_per_node=100'), before=before)
    assert result.rc == 0 and len(place.dumps()) == 100
