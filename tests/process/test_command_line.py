"""Section 2: the command line as users of the originals write it, and its errors."""
import os

import pytest

from harness import native, worker

# an original's value and flag, and one of ours: tests/unit/config/test_cli.c has every way to write one
BOTH_SPELLINGS = [('nproc_per_node', '2'), ('use_env', None), ('rdzv_conf', 'timeout=1'),
                  ('leftover_grace', '2.5')]


def as_python(place, *options):
    """A command line whose Python is the dumper, so that its argv is the worker's full command."""
    place.write('train.py', '')
    return ['--python', worker('dump'), *options]


@pytest.mark.parametrize('flag, value', BOTH_SPELLINGS)
def test_both_spellings_and_both_forms(dry, flag, value):
    for spelled in (flag, flag.replace('_', '-')):
        forms = [[f'--{spelled}']] if value is None else \
            [[f'--{spelled}', value], [f'--{spelled}={value}']]
        for form in forms:
            settings = {name.replace('-', '_'): row for name, row in
                        dry(form).json['settings'].items()}
            assert settings[flag] == {'value': value or '1', 'source': f'--{spelled}'}


def test_everything_behind_the_script_is_the_scripts(launch, place):
    args = ['--nproc_per_node', '9', '', 'a b', '-m', '--', "q'\"\n", '$x', '*', '\udcff\udc80é',
            '--', '--local_rank=5']
    argv = native('dump', '--nproc_per_node', '2') + args
    assert launch(argv).rc == 0
    assert [dump['argv'][1:] for dump in place.dumps().values()] == [args, args]


@pytest.mark.parametrize('args, kept', [
    (['--', '--', 'a'], ['--', 'a']),
    (['--'], []),
])
def test_one_double_dash_behind_the_script_is_dropped(launch, place, args, kept):
    assert launch(native('dump') + args).rc == 0
    assert place.dumps()[0]['argv'][1:] == kept


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


def test_python_without_a_py_file_is_a_script(launch, place):
    place.write('python', 'print("ran")')
    assert launch(['python', 'train']).out == 'ran\n'


# What is wanted of a kind of value, or its bounds, where test_mistakes.py doesn't have the sentence.
@pytest.mark.parametrize('argv, words', [
    (['--use_env=maybe'], ['--use_env', '"maybe"', '0 or 1']),
    (['--log-max-size', '1T'], ['--log-max-size', '"1T"', '64M']),
    (['--log-keep', '0'], ['--log-keep', '"0"', 'from 1 to 1000']),
    (['--tail-lines', '1001'], ['--tail-lines', '"1001"', 'from 0 to 1000']),
    (['--local_rank', 'x'], ['--local_rank (short for --local-ranks-filter)', '"x"']),
    (['--rdzv-backend', 'etcd-v2'], ['--rdzv-backend', '"etcd-v2"', 'etcd', '--rdzv-endpoint']),
    (['--config', '/nowhere/job.ini'], ['--config', '/nowhere/job.ini', 'No such file']),
    (['--log-dir', '/proc/1/status/x'], ['--log-dir', '/proc/1/status', 'Not a directory']),
    (['--events', '/nowhere/e'], ['--events', '/nowhere/e', 'its directory /nowhere']),
])
def test_bad_values_name_source_value_and_what_is_right(refused, argv, words):
    refused([*argv, '/bin/true'], *words)


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


@pytest.mark.skipif(os.path.exists('/proc/driver/nvidia'), reason='there are GPUs here')
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


@pytest.mark.parametrize('options, script, noted', [
    ([], ['--nproc_per_node', '2'], True), ([], ['--nproc-per-node=2'], True), ([], ['--lr', '1', '--nnodes=2'], True),
    ([], ['--lr', '1'], False), (['--nproc_per_node=1'], ['--nproc_per_node', '2'], False), ([], ['--bind=x'], False)])
def test_options_behind_the_script_are_the_scripts(dry, options, script, noted):
    notes = dry(options, command=('/bin/true', *script)).notes
    assert any('goes to /bin/true, as it stands behind it' in note['text'] for note in notes) == noted
