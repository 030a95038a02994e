"""The launchers side by side: one way to start workers under each of them, and what came of it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import pytest
from harness import BUILD, LIMIT, TESTS, fresh_process, let_pass, running_after, status_of
from needs import why_no_mpirun

sys.path.insert(0, str(TESTS / 'bench'))
from measure import tree_of  # noqa: E402

TORCHRUN = os.environ.get('LAUNCHD_TORCHRUN', '')
AS_ROOT = ['--allow-run-as-root'] if os.geteuid() == 0 else []
MPIRUN = ['mpirun', *AS_ROOT, '--oversubscribe', '--bind-to', 'none', '-n']
# mpirun's ranks under the name by which the test workers know theirs
RANKED = ['sh', '-c', 'export RANK=$OMPI_COMM_WORLD_RANK; exec "$@"', 'sh']


def why_absent(name):
    """Why this launcher can't be run here; empty: it can."""
    if name == 'torchrun' and not TORCHRUN:
        return 'no torchrun: LAUNCHD_TORCHRUN names that of an environment with torch 2.15'
    if name == 'torchrun' and not shutil.which(TORCHRUN):
        return f'LAUNCHD_TORCHRUN={TORCHRUN} is no program'
    if name == 'mpirun':
        return why_no_mpirun()
    return ''


def command(name, count, program, options=()):
    """The command line that runs the program count times."""
    program, options = [str(word) for word in program], list(options)
    if name == 'torchrun':
        return [TORCHRUN, '--no-python', f'--nproc-per-node={count}', *options, *program]
    if name == 'mpirun':
        return [*MPIRUN, str(count), *options, *RANKED, *program]
    return [str(BUILD / 'launchd'), f'--nproc_per_node={count}', '--no_python', '--use_env',
            *options, *program]


class Running:
    """A launcher that runs. What it leaves behind is the test's child, see conftest.py."""

    def __init__(self, argv, place, env, before):
        self.files = [tempfile.TemporaryFile(dir=place.path) for _ in range(2)]
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            argv, env=place.environment({'OMP_NUM_THREADS': '1', **env}), cwd=place.path,
            stdin=subprocess.DEVNULL, stdout=self.files[0], stderr=self.files[1],
            start_new_session=True, preexec_fn=lambda: fresh_process(before, False))
        self.pid = self.process.pid

    def signal(self, number):
        self.process.send_signal(number)

    def err(self):
        size = os.fstat(self.files[1].fileno()).st_size
        return os.pread(self.files[1].fileno(), size, 0).decode(errors='replace')

    def wait(self, limit=LIMIT):
        """The exit code as a shell has it; None if it still runs."""
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        return code if code >= 0 else 128 - code

    def end(self):
        """The exit code; fails if there is none in time."""
        code = self.wait()
        assert code is not None, f'it does not end; it said:\n{self.err()}'
        return code

    def memory_mb(self, workers):
        """The launcher's own processes: the sum of what each had at most in memory."""
        own = set(tree_of(self.pid)) - set(workers)
        return sum(int(status_of(pid).get('VmHWM', '0 kB').split()[0]) for pid in own) / 1024

    def close(self):
        for file in self.files:
            file.close()


class Peer:
    """One of the launchers, in one test."""

    def __init__(self, name, place, patience):
        self.name, self.place, self.jobs = name, place, []
        self.patience = patience  # how long to wait for an end; short where none should come

    def start(self, count, program, env=None, options=None, before=None, under=()):
        """options: by launcher; under: what the launcher itself is started by."""
        argv = command(self.name, count, program, (options or {}).get(self.name, ()))
        self.jobs.append(Running([*under, *argv], self.place, env or {}, before))
        return self.jobs[-1]

    def settle(self):
        """PyTorch's handlers are there when workers are; a late one would be a different defect."""
        if self.name == 'torchrun':
            let_pass(1, 'it installs its handlers, and tells nobody')

    def survivors(self, pids):
        """Those that still run when the launcher has gone. Ours have to be gone in the end; for a
        peer's we wait some seconds."""
        return running_after(pids, LIMIT if self.name == 'launchd' else 4)


def skip_if_absent(*names):
    for name in names:
        if why_absent(name):
            pytest.skip(why_absent(name))


def versions():
    """What the table was made with."""
    said = []
    if not why_absent('torchrun'):
        python = str(pathlib.Path(TORCHRUN).parent / 'python3')
        said.append('torch ' + output(python, '-c', 'import torch; print(torch.__version__)'))
    if not why_absent('mpirun'):
        said.append(output('mpirun', '--version'))
    return ', '.join([*said, output(str(BUILD / 'launchd'), '--version')])


def output(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()[0]
