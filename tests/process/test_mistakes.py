"""What launchd says to 63 ways to get it wrong: each row is a mistake, each case a command line with
the environment and files it needs, the exit code, and every line that launchd itself writes. The texts
are what users read first, so they change here or not at all."""
import dataclasses
import os
import re
import resource
import socket

import pytest

from needs import needs_open_build, needs_root

FILES = {
    'train.py': 'pass\n', 'prog.sh': '#!/bin/sh\nexit 0\n', 'nox.sh': '#!/bin/sh\nexit 0\n',
    'says.sh': '#!/bin/sh\necho a last word >&2\n',
    'crlf.sh': '#!/bin/sh\r\nexit 0\r\n', 'plain.sh': 'exit 0\n', 'src/train.py': 'pass\n',
    'crlf.py': '#!/usr/bin/env python3\r\npass\r\n', 'gone.py': '#!/nowhere/python3 -u\npass\n',
    'nox.py': '#! train.py\npass\n', 'below.py': '#!./gone.py\npass\n',
    'env.py': '#!/usr/bin/env nosuch\npass\n', 'envu.py': '#!/usr/bin/env python3 -u\npass\n',
    'usage.py': 'import argparse\nargparse.ArgumentParser().parse_args()\n',
    'open.key': 'a secret that is long enough\n',
}
EXECUTABLE = {'prog.sh', 'says.sh', 'crlf.sh', 'plain.sh', 'crlf.py', 'gone.py', 'nox.py', 'below.py',
              'env.py', 'envu.py'}
OMPI = {'OMPI_COMM_WORLD_RANK': '1', 'OMPI_COMM_WORLD_SIZE': '2', 'MASTER_ADDR': 'h'}
TWO = ['--nnodes=2', '--node_rank=1']
RUN = ['--no_python', '--use_env']
HOST = os.uname().nodename


@dataclasses.dataclass
class Case:
    argv: list
    rc: int
    said: list  # without "launchd: "
    env: dict = dataclasses.field(default_factory=dict)
    shown: str = ''  # a part of what stands below launchd's lines
    file: object = None  # the text or bytes of job.ini
    processes: int = 0  # that its user may have; 0: as many as the test's


def bad(text, *argv, rc=2, **more):
    """A case of one line, an error."""
    return Case(list(argv), rc, [f'error: {text}'], **more)


def fine(*argv, said=(), **more):
    """A case that runs."""
    return Case(list(argv), 0, list(said), **more)


def ini(text, line):
    """A file with one mistake."""
    return bad(line, '--config=job.ini', 'train.py', file=text)


def failed(code, command, *lines):
    """A report of rank 0, whose last lines are told elsewhere."""
    return [f'error: root cause: rank 0 (local rank 0, pid N) on HOST (node 0): exit code {code} '
            'after T', 'error: time: WHEN', f'error: command: {command}', *lines]


NPROC = 'is not a whole number from 1 to 65536, auto, cpu or gpu'
SECONDS = 'is not a time from 0 to 31536000 seconds, such as 90, 0.5, 90s, 5m, 1h30m or 2d'
STREAMS = 'is not a number from 0 to 3 (1 is stdout, 2 stderr, 3 both) or a list of them by local ' \
          'rank, as in 0:1,4-7:3'
CROWDED = 'Resource temporarily unavailable: no more processes and threads are allowed here ' \
          '(ulimit -u, or pids.max of the control group)'
THREADS = 'note: OMP_NUM_THREADS is not set: launchd sets it to 1 for each worker'
# root may write to every directory, and still not there
UNMADE = ("--log-dir: can't create the log directory /proc/nosuch: No such file or directory"
          if os.geteuid() == 0 else
          "--log-dir: /proc/nosuch: its directory /proc can't be written to: Permission denied")

MISTAKES = {
    'no script': [
        bad("no training script: launchd [options] script [script's arguments], or script = PATH in the "
            "file of --config; see launchd "
            '--help')],
    'a letter is missing at the end': [fine('--nproc_per_nod', '2', 'train.py', said=[THREADS])],
    'an option of nearly that name': [
        bad('--nprocs: no such option, did you mean --nproc_per_node?', '--nprocs', '2',
            'train.py')],
    'an abbreviation': [fine('--np', '2', 'train.py', said=[THREADS])],
    "mpirun's number of processes": [
        *[bad(f"{word}: no such option; --nproc_per_node is the number of workers on each node; the job's size is "
              'their sum', word, '2', 'train.py') for word in ('-n', '-np')]],
    'options of other launchers': [
        bad(f'--{name}: no such option; {hint}', f'--{name}', '2', 'train.py') for name, hint in [
            ('num_gpus', '--nproc_per_node is the number of workers on each node'),
            ('num_machines', '--nnodes is the number of nodes'),
            ('tf-port', 'launchd --help lists them')]],
    'a number of workers that is none': [
        *[bad(f'--nproc_per_node: "{text}" {NPROC}', f'--nproc_per_node={text}', 'train.py')
          for text in ('two', '0', '-1', '1e3', '100000')],
        bad('--nproc_per_node is empty; it needs a whole number from 1 to 65536, auto, cpu or gpu',
            '--nproc_per_node=', 'train.py'),
        bad(f'--nproc_per_node: "gpus" {NPROC}; did you mean gpu?', '--nproc_per_node=gpus',
            'train.py')],
    'a value that was forgotten': [
        bad(f'--nproc_per_node: "train.py" {NPROC}', '--nproc_per_node', 'train.py')],
    'GPUs that are not there': [
        bad('--nproc_per_node: "gpu" means one worker per GPU, but NVML and CUDA_VISIBLE_DEVICES show no GPU here '
            '(NVML: WHY)', '--nproc_per_node=gpu', 'train.py', env={'CUDA_VISIBLE_DEVICES': ''})],
    'a kind of device that is not known': [
        bad('--nproc_per_node: "xpu" is not supported: give a number', '--nproc_per_node=xpu',
            'train.py')],
    'a script that is not there': [
        bad('nosuch.py: no such file', 'nosuch.py', rc=127),
        bad('trian.py: no such file; did you mean train.py?', 'trian.py', rc=127),
        bad('src/trian.py: no such file; did you mean src/train.py?', 'src/trian.py', rc=127),
        bad('srk/train.py: no such file', 'srk/train.py', rc=127)],
    'a directory': [bad('src: a directory without __main__.py', 'src', rc=126)],
    'an empty script': [
        bad("the script's name is empty (an unset variable?)", '', 'train.py')],
    'a program without its x': [
        bad('./nox.sh: Permission denied: it is not executable (chmod +x ./nox.sh)', *RUN,
            './nox.sh', rc=126)],
    'a program of this directory': [
        bad('prog.sh is not on PATH; for the one in this directory write ./prog.sh', *RUN,
            'prog.sh', rc=127),
        bad('nosuch: no such file on PATH', *RUN, 'nosuch', rc=127)],
    'Windows line ends': [
        bad('./crlf.sh: its first line, #!/bin/sh, ends with a carriage return (Windows line endings): '
            'run dos2unix ./crlf.sh', *RUN, './crlf.sh', rc=127),
        bad('./crlf.py: its first line, #!/usr/bin/env python3, ends with a carriage return (Windows '
            'line endings): run dos2unix ./crlf.py', *RUN, './crlf.py', rc=127),
        fine('crlf.py')],
    'an interpreter that is not there': [
        bad("./gone.py: its first line, #!/nowhere/python3 -u, names an interpreter that doesn't "
            'exist: fix that line, or install /nowhere/python3', *RUN, './gone.py', rc=127),
        bad('--python: ./gone.py: its first line, #!/nowhere/python3 -u, names an interpreter that '
            "doesn't exist: fix that line, or install /nowhere/python3", '--python=./gone.py',
            'train.py', rc=127),
        bad('--wrap: ./gone.py: its first line, #!/nowhere/python3 -u, names an interpreter that '
            "doesn't exist: fix that line, or install /nowhere/python3", '--wrap=./gone.py', 'train.py',
            rc=127),
        bad("./nox.py: its first line, #! train.py, names an interpreter that can't be executed: "
            'Permission denied', *RUN, './nox.py', rc=126),
        Case([*RUN, './below.py'], 127, [
            'error: ./below.py: execve: No such file or directory: the interpreter in its '
            '#! line, or the dynamic loader it was linked for, does not exist',
            'error: root cause: rank 0 (local rank 0) on HOST (node 0): could not be started',
            'error: time: WHEN', 'error: command: ./below.py']),
        Case([*RUN, './env.py'], 127, failed(127, './env.py', 'error: last line:'),
             shown=': No such file or directory'),
        Case([*RUN, './envu.py'], 127, failed(127, './envu.py', 'error: last 2 lines:'),
             shown='env: use -[v]S to pass options in shebang lines'),
        fine('gone.py')],
    'as many processes as may be': [
        bad(f"can't start a process: {CROWDED}", *RUN, './prog.sh', rc=1, processes=1),
        Case([*TWO, '--master_addr=no-such-host.invalid', '--join-timeout=1', '--control=required',
              *RUN, './prog.sh'], 1, [
            "note: the name no-such-host.invalid can't be resolved: can't start a thread: "
            f'{CROWDED}; trying again for up to 1 s (--join-timeout)',
            f"error: node 1 ({HOST}) could not find node rank 0's launcher within 1 s (--join-timeout): the name "
            f"no-such-host.invalid can't be resolved: can't start a thread: {CROWDED} (--control "
            'required)'], processes=2),
        Case(['--log-dir=logs', *RUN, './prog.sh'], 1, [
            f"error: can't start the output thread: {CROWDED}",
            'error: root cause: rank 0 (local rank 0) on HOST (node 0): could not be started',
            'error: time: WHEN', 'error: command: ./prog.sh'], processes=2),
        Case([*RUN, './prog.sh'], 1, [
            f"error: can't start a process: {CROWDED}",
            'error: root cause: rank 0 (local rank 0) on HOST (node 0): could not be started',
            'error: time: WHEN', 'error: command: ./prog.sh'], processes=2),
        Case([*RUN, './says.sh'], 0, [], shown='a last word', processes=3)],
    'a script without a first line': [
        Case([*RUN, './plain.sh'], 126, [
            'error: ./plain.sh: execve: Exec format error: it has no #! line, or was '
            'built for another architecture',
            'error: root cause: rank 0 (local rank 0) on HOST (node 0): could not be started',
            'error: time: WHEN', 'error: command: ./plain.sh'])],
    "a shell's script without --no_python": [
        Case(['prog.sh'], 1, failed(
            1, 'PYTHON -u prog.sh --local_rank=0',
            'error: hint: Python runs prog.sh, whose first line is #!/bin/sh: for a program that '
            "isn't a Python script give --no_python --use_env", 'error: last 4 lines:'))],
    'python before the script': [
        bad('the script is "python": launchd starts Python itself, so drop that word (or keep it '
            'and add --no_python --use_env)', 'python', 'train.py')],
    'two dashes before the script': [fine('--', 'train.py')],
    'an option behind two dashes': [
        bad('--use_env: no such file; "--" ends the options, so what follows it is the script', '--',
            '--use_env', 'train.py', rc=127)],
    'options behind the script': [
        Case(['--use_env', 'usage.py', '--nproc_per_node', '2'], 2, failed(
            2, 'PYTHON -u usage.py --nproc_per_node 2',
            "error: hint: --nproc_per_node comes after the script, so it went to the script: "
            "launchd's own options go before the script", 'error: last 2 lines:'))],
    'a file for a module': [
        bad('-m takes the name of a module, but train.py is a file: give train, or leave out -m',
            '-m', 'train.py'),
        bad('--module takes the name of a module, but src/train.py is a file: give src.train, or '
            'leave out --module', '--module', 'src/train.py')],
    'a Python that can not be one': [
        bad('--python: ./none: no such file', '--python=./none', 'train.py', rc=127),
        bad('--python: none: no such file on PATH', '--python=none', 'train.py', rc=127),
        bad('--python: ./src: Is a directory', '--python=./src', 'train.py', rc=126),
        bad('--python: ./nox.sh: Permission denied: it is not executable (chmod +x ./nox.sh)',
            '--python=./nox.sh', 'train.py', rc=126)],
    'a module without Python': [
        bad('--no_python and -m are mutually exclusive: a module is run by Python', *RUN, '-m',
            'train')],
    'an elastic job': [
        bad('--nnodes: "1:4" is not a whole number from 1 to 65536; elastic jobs (MIN:MAX with MIN '
            'below MAX) are not supported: give one number', '--nnodes=1:4', 'train.py')],
    'several nodes without an address': [
        bad('the job has 2 nodes (--nnodes), but no address of node rank 0: give '
            '--master_addr to all nodes, or set MASTER_ADDR', '--nnodes=2', 'train.py')],
    'several nodes without an endpoint': [
        bad('the job has 2 nodes (--nnodes), but no address to meet at: give all nodes '
            '--rdzv-endpoint HOST:PORT, the address of one of them', '--nnodes=2',
            '--rdzv_backend=c10d', 'train.py')],
    'a node rank that is too high': [
        bad('node rank 2 (--node_rank) must be below the number of nodes, 2 (--nnodes)',
            '--nnodes=2', '--node_rank=2', '--master_addr=h', 'train.py')],
    'a node rank without a number of nodes': [
        bad('--node_rank says 1, but the number of nodes is not given: use --nnodes (or set '
            'NNODES)', '--node_rank=1', 'train.py')],
    'a host that nobody knows': [
        Case([*TWO, '--master_addr=no-such-host.invalid', '--join-timeout=1', '--control=required',
              'train.py'], 1, [
            "note: the name no-such-host.invalid can't be resolved: UNKNOWN; trying again for up to "
            '1 s (--join-timeout)',
            f"error: node 1 ({HOST}) could not find node rank 0's launcher within 1 s (--join-timeout): the name "
            "no-such-host.invalid can't be resolved: UNKNOWN (--control required)"])],
    'a port in the address': [
        *[bad(f'{where}: "{text}" has a port; use --master_port 29500, and give the host alone '
              f'here: {host}', *argv, 'train.py', env=env)
          for text, host in (('127.0.0.1:29500', '127.0.0.1'), ('[fd00::1]:29500', 'fd00::1'),
                             ('train-0:29500', 'train-0'), ('::1:29500', '::1'))
          for where, argv, env in (
              ('--master_addr', [f'--master_addr={text}'], {}),
              ('--master_addr', [*TWO, f'--master_addr={text}'], {}),
              ('PET_MASTER_ADDR', TWO, {'PET_MASTER_ADDR': text}),
              ('LAUNCHD_MASTER_ADDR', TWO, {'LAUNCHD_MASTER_ADDR': text}),
              ('MASTER_ADDR', TWO, {'MASTER_ADDR': text}))],
        ini('[launchd]\nmaster_addr = h:1\n', 'job.ini:2: "h:1" has a port; use --master_port 1, and '
            'give the host alone here: h')],
    'a URL for an address': [
        bad('--master_addr: "http://10.0.0.1" is a URL; leave out http://',
            '--master_addr=http://10.0.0.1', 'train.py'),
        bad('MASTER_ADDR: "tcp://h:29500" is a URL; leave out tcp://', *TWO, 'train.py',
            env={'MASTER_ADDR': 'tcp://h:29500'}),
        bad('--rdzv_endpoint: "http://h:29400" is a URL; leave out http://', *TWO,
            '--rdzv_endpoint=http://h:29400', 'train.py')],
    'a port that is none': [
        *[bad(f'--master_port: "{text}" is not a whole number from 0 to 65535',
              f'--master_port={text}', 'train.py') for text in ('99999', 'http')]],
    'an interface or address that is not there': [
        bad('--interface: "eth999" names no interface of this node that is up and has an address '
            'others can reach; it has: LIST', *TWO, '--master_addr=h', '--interface=eth999',
            'train.py'),
        bad('--local-addr: "192.0.2.99" is not an address of this node; it has: LIST', *TWO,
            '--master_addr=h', '--local-addr=192.0.2.99', 'train.py'),
        bad('--local-addr: "10.0.0.9:29500" has a port; use --master_port 29500, and give the host '
            'alone here: 10.0.0.9', *TWO, '--master_addr=h', '--local-addr=10.0.0.9:29500',
            'train.py')],
    'a backend that is none': [
        bad('--rdzv_backend: "etcd" is not supported: use c10d with --rdzv-endpoint '
            'HOST:PORT (of node rank 0), or start launchd with mpirun', '--rdzv_backend=etcd', 'train.py'),
        bad('--rdzv_backend: "c10" is not one of static|c10d; did you mean c10d?',
            '--rdzv_backend=c10', 'train.py'),
        bad('--rdzv_backend: "zeus" is not one of static|c10d; custom backends are not supported: '
            'use c10d with --rdzv-endpoint HOST:PORT (of node rank 0), or start launchd with mpirun',
            '--rdzv_backend=zeus', 'train.py')],
    'an endpoint that is none': [
        bad('--rdzv_endpoint: "localhost:": "" is not a port from 0 to 65535',
            '--rdzv_endpoint=localhost:', 'train.py'),
        bad('--rdzv_endpoint: "localhost:http": "http" is not a port from 0 to 65535',
            '--rdzv_endpoint=localhost:http', 'train.py'),
        bad('--rdzv_endpoint: ":29400" is not HOST[:PORT] or [IPV6]:PORT', '--rdzv_endpoint=:29400',
            'train.py')],
    'an endpoint without brackets': [
        fine('--rdzv_endpoint=::1:29400', 'train.py', said=[
            'note: --rdzv_endpoint: "::1:29400" is read as port 29400 of ::1; write [::1]:29400 to '
            'make that clear'])],
    "torchrun's settings of a rendezvous": [
        bad('--rdzv_conf: "timeout" is not a list of key=value, separated by commas',
            '--rdzv_conf=timeout', 'train.py'),
        fine('--rdzv_conf=foo=bar', 'train.py', said=[
            "warning: --rdzv_conf: foo has no effect: launchd's nodes find one another without torch's store"])],
    'a file with a mistake': [
        ini('[launchd]\nnproc_per_nod = 2\n', 'job.ini:2: "nproc_per_nod" is not a setting of launchd, '
            'did you mean nproc_per_node?'),
        ini('nproc_per_node = 2\n', 'job.ini:1: nproc_per_node comes before any section; settings '
            'go into [launchd]'),
        ini('[lanchd]\nnproc_per_node = 2\n', 'job.ini:2: [lanchd] is not a section; there are [launchd], '
            '[env], [cluster], [cgroup] and [check]'),
        ini('[launchd]\nnproc_per_node 2\n', 'job.ini:2: "nproc_per_node 2" is not key = value'),
        ini('[launchd]\nrole = "x"\n', 'job.ini:2: role: quotes would be part of the value: leave '
            'them out'),
        ini('[launchd]\nrole = x # y\n', "job.ini:2: role: '#' and what follows it would be part of "
            "the value; a comment begins with ';'"),
        ini('[launchd]\nrole = x\nrole = y\n', 'job.ini:3: role is set twice, first at '
            'job.ini:2'),
        ini('[launchd]\nnproc_per_node = two\n', f'job.ini:2: nproc_per_node: "two" {NPROC}'),
        ini('[launchd]\nconfig = x\n', 'job.ini:2: --config is for the command line only')],
    'a file that is odd': [
        fine('--config=job.ini', 'train.py', file=text) for text in
        ('[launchd]\r\nrole = x\r\n', '\ufeff[launchd]\nrole = x\n', '\t[launchd]\n\trole\t=\tx\n',
         '')],
    'a file in UTF-16': [
        ini('[launchd]\n'.encode('utf-16'), 'job.ini: the file is UTF-16: save it as UTF-8'),
        ini('[launchd]\n'.encode('utf-16-le'), 'job.ini:1: a NUL byte; if the file is UTF-16, save '
            'it as UTF-8')],
    'JSON for a file': [
        ini('\n{"nproc_per_node": 2}\n', 'job.ini:2: this looks like JSON; settings are lines "key = '
            'value" below a [launchd] line')],
    'variables that shells can not read': [
        fine('--env=1A=2', 'train.py', said=[
            'warning: --env: "1A" is set, but shells can\'t read a variable of that name (letters, '
            'digits and _ only, no digit first)']),
        fine('--config=job.ini', 'train.py', file='[env]\nBAD-NAME = 1\n', said=[
            'warning: job.ini:2: "BAD-NAME" is set, but shells can\'t read a variable of that name '
            '(letters, digits and _ only, no digit first)'])],
    'one node and several': [
        bad('--standalone means one node, but --nnodes says 2', '--standalone', '--nnodes=2',
            'train.py')],
    'NUMA binding': [
        bad('--numa-binding: "nod" is not one of node|socket|exclusive|core-complex; did you mean node?',
            '--numa-binding=nod', 'train.py')],
    'a start method that is none': [
        bad('--start-method: "frok" is not one of spawn|fork|forkserver; did you mean fork?', '--start-method=frok',
            'train.py')],
    'streams and log directories that can not be': [
        bad(f'-r: "5" {STREAMS}', '-r', '5', 'train.py'),
        bad(f'-t: "3x" {STREAMS}', '-t', '3x', 'train.py'),
        bad('--log-dir: train.py is not a directory', '--log-dir=train.py', 'train.py'),
        bad(UNMADE, '--log-dir=/proc/nosuch', 'train.py')],
    'a macro of nearly that name': [
        fine('--log-line-prefix-template=[${rnak}]', 'train.py', said=[
            'warning: --log-line-prefix-template: ${rnak} is not replaced; did you mean ${rank}?']),
        fine('--log-line-prefix-template=[$gpu]', 'train.py', said=[
            'warning: --log-line-prefix-template: ${gpu} is not replaced; launchd(1) lists the '
            'names that are'])],
    'local ranks that are none': [
        fine('--local-ranks-filter=9', 'train.py', said=[
            'warning: --local-ranks-filter: "9" has local rank 9, but the last one is 0']),
        bad('--local-ranks-filter: "a" is not a list of ranks and ranges, as in 0,4-7',
            '--local-ranks-filter=a', 'train.py')],
    'a wrapper that is none': [
        bad('--wrap: nosuchtool: no such file on PATH', '--wrap=nosuchtool', 'train.py', rc=127),
        bad('--wrap: "env \'A" is not a command: unmatched \'', "--wrap=env 'A", 'train.py'),
        bad('--wrap-ranks needs --wrap, the command for those ranks', '--wrap-ranks=0', 'train.py')],
    "a variable that is launchd's": [
        bad('--env: launchd sets RANK for each worker, as decided by --node_rank and '
            '--nproc_per_node', '--env=RANK=5', 'train.py')],
    'signals and ends that are none': [
        bad('--on-signal: "FOO" is not a signal: give a name like TERM or SIGUSR1, or a number',
            '--on-signal=FOO=stop', 'train.py'),
        bad('--on-signal: "USR1=frward" is not an action: use forward, forward:SECONDS, stop, '
            'stop:SECONDS, preempt, preempt:SECONDS, restart, reopen or ignore', '--on-signal=USR1=frward', 'train.py'),
        bad('--signals-to-handle: "SIGFOO" is not a signal: give a name like TERM or SIGUSR1, '
            'or a number', '--signals-to-handle=SIGFOO', 'train.py'),
        bad('--restart-on: "SIGFOO" is not a list of exit codes from 1 to 255, ranges of them and '
            'names of signals, as in 1,64-77,SIGSEGV', '--max-restarts=1', '--restart-on=SIGFOO',
            'train.py')],
    'times with units': [
        *[fine(f'--shutdown-timeout={text}', 'train.py') for text in
          ('30s', '1h', '1.5m', '500ms', '0.5', '5min', '1d', '1h30m')],
        *[bad(f'--shutdown-timeout: "{text}" {SECONDS}', f'--shutdown-timeout={text}', 'train.py')
          for text in ('30x', '-1', '1h30', 's', '1H')]],
    'files that can not be written': [
        bad('--report: /nosuch/x: its directory /nosuch: No such file or directory',
            '--report=/nosuch/x', 'train.py'),
        bad('--events: descriptor 9 is not open: whoever starts launchd must open it', '--events=fd:9',
            'train.py')],
    'a key that is not there': [
        fine('--key-file=nosuch', 'train.py', said=[
            'warning: --key-file: nosuch: No such file or directory; it has no effect here, as this '
            'launcher meets no other'])],
    'a key that others may read': [
        bad('--key-file: open.key has mode 0644: others may read or write it (chmod 600 fixes that)', *TWO, '--master_addr=h', '--key-file=open.key', 'train.py')],
    'a long dash': [
        bad('\u2013nproc_per_node begins with a long dash (U+2013): type --nproc_per_node',
            '\u2013nproc_per_node', '2', 'train.py'),
        bad('\u2014use_env begins with a long dash (U+2014): type --use_env', '--nproc_per_node=2',
            '\u2014use_env', 'train.py'),
        bad('\u2212t begins with a long dash (U+2212): type -t', '\u2212t', '3', 'train.py')],
    'a variable of nearly that name': [
        fine('train.py', env={'LAUNCHD_NPROC_PER_NOD': '2'}, said=[
            'warning: LAUNCHD_NPROC_PER_NOD is not a variable of launchd; the nearest setting is '
            'nproc_per_node']),
        fine('train.py', env={'PET_NPROC': '2'})],
    'variables that are none': [
        bad('NODE_RANK: "x" is not a whole number from 0 to 65536', 'train.py',
            env={'NODE_RANK': 'x'}),
        fine('train.py', env={'LOGLEVEL': 'LOUD'}, said=[
            "warning: LOGLEVEL=LOUD has no effect: it is not a level of Python's logging (DEBUG, INFO, "
            'WARNING, ERROR, CRITICAL, or a number)']),
        bad('PYTHON_EXEC: /nosuch: no such file', 'train.py', rc=127, env={'PYTHON_EXEC': '/nosuch'}),
        bad('neither python3 nor python is on PATH; give --python PATH', 'train.py', rc=127,
            env={'PATH': ''})],
    "a rank that contradicts mpirun's": [
        bad('--node_rank says 0, but OMPI_COMM_WORLD_RANK says 1: leave out the one that is wrong '
            '(--standalone starts a job of this node alone)', '--node_rank=0', 'train.py',
            env=OMPI)],
    "ranks of Kubernetes' or Azure ML's": [
        bad('RANK=0 and WORLD_SIZE=2 are set, so this is one of several processes: if they count nodes, give '
            '--env-ranks node, or --nnodes $WORLD_SIZE --node_rank $RANK; for a job of this node alone, --nnodes 1',
            'train.py', env={'RANK': '0', 'WORLD_SIZE': '2', 'MASTER_ADDR': '127.0.0.1'})],
}


def normal(line):
    """Without what is another one each time, or on each host."""
    for pattern, to in ((r'pid \d+', 'pid N'), (r'after \d+\.\d+ s$', 'after T'),
                        (f' on {re.escape(socket.gethostname())}(?= \\(node )', ' on HOST'),
                        (r'^error: time: .*', 'error: time: WHEN'), (r'/usr/bin/python3?', 'PYTHON'),
                        (r'(; it has): .*', r'\1: LIST'), (r' \(NVML: .*\)$', ' (NVML: WHY)'),
                        (r"(can't be resolved: )[a-zA-Z ]+?(?=[;(]| \()", r'\1UNKNOWN')):
        line = re.sub(pattern, to, line)
    return line


def names():
    return [pytest.param(name, index, marks=[needs_root, needs_open_build] if case.processes else [])
            for name, cases in MISTAKES.items() for index, case in enumerate(cases)]


def test_all_are_there():
    assert len(MISTAKES) == 64


def as_one_with(processes, place):
    """Who runs this becomes a user of whom there are no other processes, as root has no limit; the
    place is that user's."""
    user = 100000 + 8 * os.getpid() + processes
    place.give(user)

    def become():
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)

    return become


@pytest.mark.parametrize('name, index', names(), ids=lambda value: str(value))
def test_mistake(launch, place, name, index):
    case = MISTAKES[name][index]
    for file, text in FILES.items():
        path = place.path / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
        path.chmod(0o755 if file in EXECUTABLE else 0o644)
    if case.file is not None:
        (place.path / 'job.ini').write_bytes(
            case.file if isinstance(case.file, bytes) else case.file.encode())
    before = None
    if case.processes:
        before = as_one_with(case.processes, place)
    result = launch(case.argv, {'LAUNCHD_CONTROL': None, **case.env}, before=before)
    said = [normal(line.removeprefix('launchd: ')) for line in result.err.splitlines()
            if line.startswith('launchd: ')]
    assert (said, result.rc) == (case.said, case.rc), result
    assert case.shown in result.err
