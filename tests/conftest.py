"""Fixtures of the whole-program tests: they run the real launchd, and prove that nothing is left.

Every test has a directory of its own, which is its workers' $TMPDIR, and pytest is a subreaper:
whatever a launcher leaves behind becomes a child of pytest, is found after the test, and fails it.
"""
import contextlib
import ctypes
import os
import pathlib
import shutil
import socket
import sys
import tempfile

import pytest

pytest.register_assert_rewrite('harness', 'written')
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / 'process'))
from harness import LIMIT, Job, Place, Plan, children_of, descendants_of, end_children, is_running, until  # noqa: E402
from steps import LAUNCHERS_SAID  # noqa: E402
from written import Reader  # noqa: E402

PR_SET_CHILD_SUBREAPER = 36
AZURE_PORT = 54965  # the master port of a node alone by Azure ML's rule


def pytest_addoption(parser):
    parser.addoption('--update-golden', action='store_true',
                     help='write what --dry-run prints now to tests/golden/')


def pytest_configure(config):
    config.addinivalue_line('markers', 'long: waits for ten seconds or more')
    config.addinivalue_line('markers', 'heavy: CI has no time for it, or not what it needs')
    config.addinivalue_line('markers', 'needs(TOOL...): is skipped where one is missing')
    config.addinivalue_line('markers', 'quick: stands for its kind in tests/run --quick')


def pytest_collection_modifyitems(items):
    """What takes long comes first, so that it is not what everything waits for at the end."""
    items.sort(key=lambda item: item.get_closest_marker('long') is None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """With a failure: how each launcher ended, and the end of what it said on stderr."""
    report = (yield).get_result()
    jobs = getattr(getattr(item, 'funcargs', {}).get('start'), 'jobs', ())
    if report.failed and jobs and hasattr(report.longrepr, 'addsection'):
        report.longrepr.addsection(LAUNCHERS_SAID, '\n'.join(
            line for number, job in enumerate(jobs) for line in (
                f'launcher {number}: {job.how()}', *job.said().splitlines()[-20:])))


def open_fds():
    return {entry: os.readlink(f'/proc/self/fd/{entry}') for entry in os.listdir('/proc/self/fd')
            if os.path.lexists(f'/proc/self/fd/{entry}')}


@contextlib.contextmanager
def reserved_port(port):
    """Keeps a port from outgoing connections of other tests: it may be one of those that the kernel
    picks for them, except while a socket is bound there. With SO_REUSEADDR and without a listener it
    doesn't keep a launcher from it."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def is_reserved():
            with contextlib.suppress(OSError):
                reserved.bind(('', port))
            return reserved.getsockname()[1] == port
        until(is_reserved, f'port {port}')
        yield


@pytest.fixture(scope='session', autouse=True)
def azure_port():
    with reserved_port(AZURE_PORT):
        yield


@pytest.fixture
def reserve_port():
    """reserve_port(port): until the test is over, see reserved_port()."""
    with contextlib.ExitStack() as ports:
        yield lambda port: ports.enter_context(reserved_port(port))


@pytest.fixture
def place():
    path = pathlib.Path(tempfile.mkdtemp(prefix='launchd-test-'))
    yield Place(path)
    shutil.rmtree(path)


@pytest.fixture(autouse=True)
def nothing_left(place):
    """After each test: no process, no run directory, no descriptor is left."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    before_children, before_fds = children_of(os.getpid()), open_fds()
    before = descendants_of(os.getpid())
    yield
    for fifo in place.fifos:
        fifo.close()
    try:
        if place.orphans_expected:
            until(lambda: not any(map(is_running, descendants_of(os.getpid()) - before)), 'orphans to end')
    finally:
        dead = {pid for pid in children_of(os.getpid()) - before_children if not is_running(pid)}
        alive = end_children(before_children)
    for run in place.tmp.glob('launchd_*') if place.launcher_killed else ():
        shutil.rmtree(run)  # a killed launcher had no chance to
    assert not alive, f'processes are left: {alive}'
    assert place.orphans_expected or not dead, f'launchd left zombies: {dead}'
    assert not list(place.tmp.glob('launchd_*')), 'a run directory is left'
    assert open_fds().keys() == before_fds.keys(), 'descriptors are left open'


@pytest.fixture
def start(place, nothing_left):
    """start(argv, env=..., ...) -> Job: runs launchd until the test ends it."""
    jobs = []

    def run(argv, env=None, **how):
        jobs.append(Job(place, argv, env, **how))
        return jobs[-1]

    run.jobs = jobs
    yield run
    left = [job.close() for job in jobs if not job.files[0].closed]
    assert not any(left), 'a launcher still ran at the end of the test'


@pytest.fixture
def launch(start):
    """launch(argv, env=..., cwd=..., stdin=..., ...) -> Result: runs launchd to its end."""

    def run(argv, env=None, limit=LIMIT, **how):
        return start(argv, env, **how).end(limit)

    return run


@pytest.fixture
def refused(launch, place):
    """refused(argv, *words, env=...): exit code 2, one line that has all the words, no worker."""

    def run(argv, *words, env=None, rc=2, **how):
        result = launch(argv, env, **how)
        errors = [line for line in result.err.splitlines() if line.startswith('launchd: error: ')]
        assert result.rc == rc, result
        assert len(errors) == 1, result
        for word in words:
            assert word in errors[0]
        assert result.out == ''
        assert not place.dumps()
        return errors[0]

    return run


@pytest.fixture
def consoles(nothing_left):
    """consoles() -> Reader, which is closed after the test."""
    with contextlib.ExitStack() as stack:
        yield lambda *args: stack.enter_context(contextlib.closing(Reader(*args)))


@pytest.fixture
def dry(launch):
    """dry(options, env=...) -> Plan: what launchd would do with a script that is there."""

    def run(options=(), env=None, command=('/bin/true',), **how):
        result = launch(['--dry-run=json', *options, *command], env, **how)
        assert result.rc == 0, result
        assert result.err == '', result
        return Plan(result.out)

    return run
