"""Section 2: the command line as users of the originals write it, and its errors."""
import os

import pytest

from harness import native, worker

BOTH_SPELLINGS = [
    ('nproc_per_node', '2'), ('nnodes', '3'), ('node_rank', '0'), ('master_addr', '10.0.0.1'),
    ('master_port', '1234'), ('local_rank_arg', 'lr'), ('virtual_local_rank', None),
    ('use_env', None), ('rdzv_id', 'x'), ('rdzv_backend', 'c10d'), ('rdzv_endpoint', 'h:1'),
    ('rdzv_conf', 'timeout=1'), ('shutdown_timeout', '1.5'), ('local_addr', '127.0.0.1'),
    ('mpi_env', 'keep'), ('nccl_socket_ifname', 'eth0'), ('expand_args', None),
    ('only_rank', '0'), ('signals_to_handle', 'SIGUSR1'), ('on_signal', 'USR1=ignore'),
    ('signal_scope', 'tree'), ('leftover_grace', '2.5'), ('max_runtime', '60'),
    ('unfinished_note', '0'), ('report', 'r.json'), ('wrap', 'env A=1'),
]


def as_python(place, *options):
    """A command line whose Python is the dumper, so that its argv is the worker's full command."""
    place.write('train.py', '')
    return ['--python', worker('dump'), *options]


@pytest.mark.parametrize('flag, value', BOTH_SPELLINGS)
def test_both_spellings_and_both_forms(dry, flag, value):
    more = ['--master_addr', 'h', '--nnodes', '4'] if flag == 'node_rank' else \
        ['--master_addr', 'h', '--node_rank', '1'] if flag == 'nnodes' else []
    for spelled in (flag, flag.replace('_', '-')):
        forms = [[f'--{spelled}']] if value is None else \
            [[f'--{spelled}', value], [f'--{spelled}={value}']]
        for form in forms:
            settings = {name.replace('-', '_'): row for name, row in
                        dry([*more, *form]).json['settings'].items()}
            assert settings[flag] == {'value': value or '1', 'source': f'--{spelled}'}


@pytest.mark.parametrize('short, flag, value', [
    ('--nproc=2', 'nproc_per_node', '2'),
    ('--nn=1', 'nnodes', '1'),
    ('--use', 'use_env', '1'),
    ('--master_p=5', 'master_port', '5'),
    ('--master-p=5', 'master_port', '5'),
    ('--mod', 'module', '1'),
    ('--stan', 'standalone', '1'),
    ('--ro=x', 'role', 'x'),
    ('--rdzv-en=h:1', 'rdzv-endpoint', 'h:1'),
    ('--sh=4', 'shutdown-timeout', '4'),
    ('--v', 'virtual-local-rank', '1'),  # the original, though we added --verbose and --version
    ('--py=/bin/true', 'python', '/bin/true'),
    ('--expa', 'expand-args', '1'),
    ('--mpi-=scrub', 'mpi-env', 'scrub'),
])
def test_abbreviations(dry, short, flag, value):
    assert dry([short]).setting(flag)[0] == value


def test_an_original_wins_over_what_we_added(launch):
    """--e is unique among the originals' flags: it is --event-log-handler, not --env."""
    result = launch(['--e', 'console', '--dry-run', '/bin/true'])
    assert result.rc == 0 and '--event-log-handler' not in result.err
    assert 'launchd reports what happens on its standard error' in result.out


@pytest.mark.parametrize('short, flags', [
    ('--no=1', ['--node_rank', '--no_python']),
    ('--m=1', ['--master_addr', '--module', '--max-restarts']),
    ('--rdzv=1', ['--rdzv-id', '--rdzv-backend']),
])
def test_ambiguous_abbreviations_are_refused(refused, short, flags):
    refused([short, '/bin/true'], short.partition('=')[0] + ':', *flags)


def test_unknown_options_show_the_nearest(refused):
    refused(['--nproc_per_nodes', '2', '/bin/true'], '--nproc_per_nodes', 'did you mean',
            '--nproc_per_node')
    refused(['--zzz', '/bin/true'], '--zzz', '--help')
    refused(['-z', '/bin/true'], '-z', '--help')


def test_everything_behind_the_script_is_the_scripts(launch, place):
    args = ['--nproc_per_node', '9', '', 'a b', '-m', '--', "q'\"\n", '$x', '*', '\udcff\udc80é',
            '--', '--local_rank=5']
    argv = native('dump', '--nproc_per_node', '2') + args
    assert launch(argv).rc == 0
    assert [dump['argv'][1:] for dump in place.dumps().values()] == [args, args]


@pytest.mark.parametrize('args, kept', [
    (['--', 'a'], ['a']),
    (['--', '--', 'a'], ['--', 'a']),
    (['a', '--', 'b'], ['a', '--', 'b']),
    (['--'], []),
])
def test_one_double_dash_behind_the_script_is_dropped(launch, place, args, kept):
    assert launch(native('dump') + args).rc == 0
    assert place.dumps()[0]['argv'][1:] == kept


def test_double_dash_before_the_script_ends_the_options(launch, place):
    argv = native('dump')
    assert launch([*argv[:-1], '--', argv[-1], '-x']).rc == 0
    assert place.dumps()[0]['argv'][1:] == ['-x']


def test_local_rank_stands_right_behind_the_script(launch, place):
    argv = as_python(place, '--nproc_per_node=2', 'train.py', '-a', '--local_rank=7')
    assert launch(argv).rc == 0
    assert [place.dumps()[i]['argv'][1:] for i in range(2)] == [
        ['-u', 'train.py', f'--local_rank={i}', '-a', '--local_rank=7'] for i in range(2)]


def test_use_env_leaves_it_out(launch, place):
    assert launch(as_python(place, '--use_env', 'train.py', 'a')).rc == 0
    assert place.dumps()[0]['argv'][1:] == ['-u', 'train.py', 'a']


def test_local_rank_arg_changes_the_spelling(launch, place):
    assert launch(as_python(place, '--local_rank_arg=--local-rank', 'train.py')).rc == 0
    assert place.dumps()[0]['argv'][1:] == ['-u', 'train.py', '--local-rank=0']


@pytest.mark.parametrize('flag', ['-m', '--module'])
def test_module(launch, place, flag):
    assert launch(as_python(place, flag, 'package.train', 'a')).rc == 0
    assert place.dumps()[0]['argv'][1:] == ['-u', '-m', 'package.train', '--local_rank=0', 'a']


def test_a_real_module_runs(launch, place):
    place.write('package/__init__.py', '')
    place.write('package/train.py', 'import sys; print(__name__, sys.argv[1:])')
    result = launch(['-m', 'package.train', 'a'])
    assert (result.rc, result.out) == (0, "__main__ ['--local_rank=0', 'a']\n")


def test_no_python_needs_use_env(refused):
    refused(['--no_python', worker('dump')], '--no_python', '--use_env')


def test_no_python_excludes_module(refused):
    refused(['--no_python', '--use_env', '-m', worker('dump')], '--no_python', '-m', 'module')


@pytest.mark.parametrize('python', ['python', 'python3', '/usr/bin/python3', 'python3.11'])
def test_python_before_the_script_is_refused(refused, place, python):
    place.write('train.py', '')
    refused([python, 'train.py', '--x'], f'"{python}"', 'drop that word')
    refused([python, '-u', 'train.py'], f'"{python}"', 'drop that word')
    refused([python, '-W', 'ignore', 'train.py'], f'"{python}"', 'drop that word')
    refused([python, '-m', 'train'], f'"{python}"', 'drop that word')


def test_python_without_a_py_file_is_a_script(launch, place):
    place.write('python', 'print("ran")')
    assert launch(['python', 'train']).out == 'ran\n'


@pytest.mark.parametrize('argv, words', [
    (['--nproc_per_node', 'two'],
     ['--nproc_per_node', '"two"', 'whole number', 'auto, cpu or gpu']),
    (['--nproc_per_node=0'], ['--nproc_per_node', '"0"', 'from 1']),
    (['--nproc-per-node', '-1'], ['--nproc-per-node', '"-1"', 'from 1']),
    (['--nproc_per_node='], ['--nproc_per_node', 'is empty']),
    (['--nproc_per_node', '2.0'], ['"2.0"']),
    (['--nproc_per_node', '99999999999999999999'], ['"99999999999999999999"']),
    (['--nnodes', '1:4'], ['--nnodes', '"1:4"', 'elastic', 'one number']),
    (['--nnodes', '0'], ['--nnodes', '"0"', 'from 1']),
    (['--node_rank', 'x'], ['--node_rank', '"x"', 'from 0']),
    (['--master_port', '65536'], ['--master_port', '"65536"', '65535']),
    (['--master_addr', ''], ['--master_addr', 'is empty']),
    (['--shutdown-timeout', '-1'], ['--shutdown-timeout', '"-1"', 'seconds']),
    (['--mpi-env', 'drop'], ['--mpi-env', '"drop"', 'rewrite|scrub|keep']),
    (['--stdin', 'x'], ['--stdin', '"x"', 'auto|inherit|null']),
    (['--rdzv-backend', 'etcd-v2'], ['--rdzv-backend', '"etcd-v2"', 'etcd', '--rdzv-endpoint']),
    (['--rdzv-backend', 'etcd'], ['--rdzv-backend', '"etcd"', '--rdzv-endpoint']),
    (['--rdzv-conf', 'timeout'], ['--rdzv-conf', '"timeout"', 'key=value']),
    (['--rdzv-conf', 'timeout=soon'], ['--rdzv-conf', 'timeout=soon', 'a time']),
    (['--rdzv-endpoint', ':1'], ['--rdzv-endpoint', '":1"', 'HOST[:PORT]']),
    (['--env', 'NAME'], ['--env', '"NAME"', 'NAME=VALUE']),
    (['--env', '=x'], ['--env', '""']),
    (['--env', 'RANK=1'], ['--env', 'RANK', '--node_rank']),
    (['--unset-env', 'MASTER_ADDR'], ['--unset-env', 'MASTER_ADDR', '--master_addr']),
    (['--use_env=maybe'], ['--use_env', '"maybe"', '0 or 1']),
    (['--quiet', '--verbose'], ['--quiet', '--verbose']),
    (['--config', '/nowhere/job.ini'], ['--config', '/nowhere/job.ini', 'No such file']),
    (['--standalone', '--nnodes=2'], ['--standalone', '--nnodes', '2']),
    (['--nproc_per_node'], ['--nproc_per_node']),
    (['--master_addr', '10.0.0.4 172.17.0.1 '], ['--master_addr', '"10.0.0.4 172.17.0.1 "', 'one']),
    (['--local_rank', 'x'], ['--local_rank (short for --local-ranks-filter)', '"x"']),
    (['--tee', '4'], ['--tee', '"4"', 'from 0 to 3', '0:1,4-7:3']),
    (['-r', '0:1,'], ['-r', '"0:1,"', '0:1,4-7:3']),
    (['--log-max-size', '1T'], ['--log-max-size', '"1T"', '64M']),
    (['--log-keep', '0'], ['--log-keep', '"0"', 'from 1 to 1000']),
    (['--tail-lines', '1001'], ['--tail-lines', '"1001"', 'from 0 to 1000']),
    (['--log-format', 'xml'], ['--log-format', '"xml"', 'text|json']),
    (['--console-overflow', 'wait'], ['--console-overflow', '"wait"', 'block|drop']),
    (['--local-ranks-filter', '0,,1'], ['--local-ranks-filter', '"0,,1"', '0,4-7']),
    (['--on-signal', 'USR1=reopen:1'], ['--on-signal', 'USR1=reopen:1', 'reopen or ignore']),
    (['--log-dir', '/dev/zero'], ['--log-dir', '/dev/zero is not a directory']),
    (['--log-dir', '/proc/1/status/x'], ['--log-dir', '/proc/1/status', 'Not a directory']),
    (['--events', '/nowhere/e'], ['--events', '/nowhere/e', 'its directory /nowhere']),
    (['--events', 'fd:77'], ['--events', 'descriptor 77 is not open']),
    (['--events', 'fd:'], ['--events', '"fd:"', './fd:']),
    (['--merge-logs', '--nnodes=2', '--node_rank=0', '--control=off', '--master_addr=h'],
     ['--merge-logs', 'launchers that meet', '--control']),
])
def test_bad_values_name_source_value_and_what_is_right(refused, argv, words):
    refused([*argv, '/bin/true'], *words)


def test_no_script(refused):
    refused([], 'no training script', '--help')
    refused(['--nproc_per_node', '2'], 'no training script')
    refused(['--nproc_per_node'], '--nproc_per_node needs a value')


def test_help_is_in_groups(launch):
    result = launch(['--help'])
    assert (result.rc, result.err) == (0, '')
    for words in ('Usage: launchd [options] script', 'Job and nodes:', "Workers' environment:",
                  '--nproc_per_node', '--dry-run', '-m, --module', 'Exit codes:'):
        assert words in result.out
    assert launch(['-h']).out == result.out


def test_help_and_version_need_nothing_else(launch):
    bad = {'LAUNCHD_NPROC_PER_NODE': 'x', 'OMPI_COMM_WORLD_RANK': '9'}
    assert launch(['--version'], bad).out.startswith('launchd 0.')
    assert launch(['--help'], bad).rc == 0


def test_nproc_cpu_is_the_cpus_workers_may_use(dry):
    cpus = os.sched_getaffinity(0)
    assert dry(['--nproc_per_node=cpu']).value('nproc_per_node') == str(len(cpus))
    plan = dry(['--nproc_per_node=cpu'], wrap=['taskset', '-c', str(min(cpus))])
    assert plan.value('nproc_per_node') == '1'


@pytest.mark.skipif(os.path.exists('/dev/nvidiactl'), reason='there are GPUs here')
def test_nproc_gpu_and_auto_without_a_gpu(dry, refused):
    refused(['--nproc_per_node=gpu', '/bin/true'], '--nproc_per_node', 'gpu', 'no GPU')
    assert dry(['--nproc_per_node=auto']).value('nproc_per_node') == \
        dry(['--nproc_per_node=cpu']).value('nproc_per_node')


def test_quiet_and_verbose(launch, place):
    argv = native('dump', '--nproc_per_node=2')
    assert 'OMP_NUM_THREADS' in launch(argv).err
    assert launch([argv[0], '--quiet', *argv[1:]]).err == ''
    said = launch([argv[0], '--verbose', *argv[1:]]).err
    for rank, dump in place.dumps().items():
        assert f'started rank {rank} (local rank {rank}, attempt 0, pid {dump["pid"]})' in said


def test_expand_args_is_torchruns_template(launch, place):
    args = ['$local_rank', '${local_rank}', 'x$$y', '$other', '${local_rank', '$local_ranks', '$']
    expanded = ['1', '1', 'x$y', '$other', '${local_rank', '$local_ranks', '$']
    argv = native('dump', '--nproc_per_node=2')
    assert launch([*argv, *args]).rc == 0
    assert place.dumps()[1]['argv'][1:] == args
    assert launch(['--expand-args', *argv, *args]).rc == 0
    assert place.dumps()[1]['argv'][1:] == expanded


def test_expand_args_all_is_what_the_worker_finds_in_its_environment(launch, place, dry):
    args = ['$RANK', '${local_rank}', 'tcp://$MASTER_ADDR:$MASTER_PORT', '$world_size', '$MINE', '$HOME']
    argv = native('dump', '--nproc_per_node=2', '--env=MINE=7')
    assert launch(['--expand-args=all', *argv, *args]).rc == 0
    for rank, dump in place.dumps().items():
        env = dump['env']
        assert dump['argv'][1:] == [str(rank), str(rank), f'tcp://127.0.0.1:{env["MASTER_PORT"]}', '2',
                                    '7', '$HOME']
    plan = dry(['--expand-args=all', '--master_port=7001'], command=('/bin/true', '$MASTER_PORT', '$RANK'))
    assert plan.workers[0]['command'][-2:] == ['7001', '0']


def test_a_report_has_the_expanded_arguments(launch):
    argv = native('ending', '--nproc_per_node=2', '--expand-args=all')
    result = launch([*argv, 'r$RANK'], {'END_1': 'exit:3', 'END_0': 'never'})
    assert result.rc == 3 and 'ending r1\n' in result.err
