"""A read-only root, a full /tmp, a TMPDIR that points nowhere: where error files and logs go then."""
import os
import pathlib
import re
import shutil

import pytest

from harness import worker
from needs import dropping, needs_mounts, needs_root, why_not
from own_mounts import OWN_MOUNTS
from together import Cluster, errors, warnings

# All is read-only but $LEFT, and what else is mounted writable for the test's own sake; the command begins in $WORK.
READ_ONLY = """
for dir in $LEFT "$DUMP_DIR"; do mount --bind "$dir" "$dir"; done
mount -o remount,bind,ro /
for dir in /tmp /var/tmp /dev /dev/shm /run; do
    case " $LEFT " in *" $dir "*) ;; *) ! mountpoint -q $dir || mount -o remount,bind,ro $dir ;; esac
done
cd "$WORK"
exec "$@"
"""
# A tmpfs in which directories can be made, and no file be written.
FULL = """
mount -t tmpfs -o "$OPTIONS" none "$TMPDIR"
cat /dev/zero > "$TMPDIR/full" 2>&- || mkdir "$TMPDIR/directory"
exec "$@"
"""
QUOTA = 'usrquota,usrquota_block_hardlimit=64k'

# Tells its places, leaves an orphan, and fails with words if it can.
SCRIPT = """
echo "file ${TORCHELASTIC_ERROR_FILE-none}" "socket ${LAUNCHD_PROGRESS_SOCKET-none}" \
    "dumps ${TORCH_NCCL_DEBUG_INFO_PIPE_FILE-none}"
setsid sleep 1000 &
[ -z "$TORCHELASTIC_ERROR_FILE" ] ||
    echo '{"message": {"message": "ValueError: the teapot is empty"}}' > "$TORCHELASTIC_ERROR_FILE"
exit 3
"""


@pytest.fixture
def failing(launch, place):
    """failing(mounts, options, env): a job in a mount namespace, and the path of its worker's error file."""
    def run(mounts, *options, before=(), **env):
        script = place.write('job.sh', SCRIPT)
        env = {'TMPDIR': None, 'WORK': str(place.path), 'LEFT': '', 'TORCHELASTIC_ERROR_FILE': '/dev/null', **env}
        result = launch(['--no_python', '--use_env', '--nproc_per_node=1', *options, 'sh', script], env,
                        wrap=[*OWN_MOUNTS, 'sh', '-ec', mounts, 'sh', *before])
        assert result.rc == 3, result
        [file] = set(re.findall(r'^(?:\[default0\]:)?file (\S+)', result.out, re.M))
        return result, file
    return run


@pytest.fixture
def work(place):
    path = place.path / 'work'
    path.mkdir()
    return str(path)


@pytest.mark.parametrize('left', ['/dev/shm', 'the user\'s', 'work'])
@needs_mounts
def test_another_place(failing, place, work, left):
    left = {'the user\'s': str(place.run), 'work': work}.get(left, left)
    result, file = failing(READ_ONLY, '--progress=notify', LEFT=left, WORK=work)
    assert file.startswith(f'{left}/launchd_') and f'socket {left}/launchd_' in result.out
    assert 'ValueError: the teapot is empty' in result.err and warnings(result) == []
    assert f"launchd: note: /tmp can't be used: Read-only file system; {left}/launchd_" in result.err
    assert not pathlib.Path(file).parent.exists()


@needs_mounts
def test_a_place_that_has_no_room_for_a_socket(failing, place):
    """A socket's path has 107 bytes at most; the user did not choose this one."""
    work = place.path / ('w' * 100)
    work.mkdir()
    result, file = failing(READ_ONLY, '--progress=notify', LEFT=str(work), WORK=str(work))
    assert file.startswith(f'{work}/launchd_') and 'ValueError: the teapot is empty' in result.err
    assert [line for line in warnings(result) if '--progress notify: the path of the socket is too long' in line]


@pytest.mark.parametrize('left', ['the user\'s', 'work'])
@pytest.mark.parametrize('unsafe', [lambda path: os.chmod(path, 0o777),
                                    pytest.param(lambda path: os.chown(path, 65534, 65534), marks=needs_root)],
                         ids=['others write to it', 'another user\'s'])
@needs_mounts
def test_no_place_in_which_others_could_replace_it(failing, place, work, left, unsafe):
    path = {'the user\'s': str(place.run), 'work': work}[left]
    unsafe(path)
    result, file = failing(READ_ONLY, LEFT=path, WORK=work)
    assert file == 'none' and 'workers have no error files' in result.err


@needs_mounts
def test_no_place_at_all(failing, place):
    """With all that looks into the directory otherwise."""
    result, file = failing(READ_ONLY, '--progress=notify', f'--blackbox={place.out}', '--max-restarts=1',
                           '--on-hang=report')
    assert file == 'none' and 'socket none dumps none' in result.out
    said = [line for line in warnings(result) if 'error files' in line]
    assert said == ["launchd: warning: /tmp can't be used: Read-only file system; neither can any other temporary "
                    'directory, nor the working directory; workers have no error files']
    said = [line for line in warnings(result) if 'notify' in line]
    assert said == ['launchd: warning: --progress notify: there is no directory for its socket: no step is known']
    assert "launchd: note: launchctl can't reach this job: " in result.err
    assert 'exit code 3' in errors(result)[0] and 'evidence: ' in result.err


@needs_mounts
def test_logs_elsewhere(failing, place, work):
    """They may be large: not in memory."""
    result, _ = failing(READ_ONLY, '-t3', LEFT=f'/dev/shm {work}', WORK=work)
    [logs] = re.findall(r"workers' log files: (\S+)", result.err)
    assert logs.startswith(f'{work}/launchd_logs_')
    assert 'ValueError: the teapot is empty' in result.err


@needs_mounts
def test_no_place_for_logs(launch, place):
    """Who asks for files gets no job without them."""
    result = launch(['-r3', '--no_python', '--use_env', worker('ending')],
                    {'TMPDIR': '/nowhere', 'WORK': str(place.path), 'LEFT': '/dev/shm'},
                    wrap=[*OWN_MOUNTS, 'sh', '-ec', READ_ONLY, 'sh'])
    assert result.rc == 1
    assert ('launchd: error: can\'t create a log directory: TMPDIR=/nowhere can\'t be used: No such file or directory; '
            'neither can any other temporary directory, nor the working directory; choose one with --log-dir DIR'
            ) in result.err


WHY_NO_QUOTA = why_not(*OWN_MOUNTS, 'mount', '-t', 'tmpfs', '-o', QUOTA, 'none', '/mnt')


@pytest.mark.parametrize('options, how, words', [
    ('size=64k', (), 'No space left on device'),
    pytest.param(QUOTA, dropping('sys_resource'), 'Disk quota exceeded',
                 marks=pytest.mark.skipif(bool(WHY_NO_QUOTA), reason=WHY_NO_QUOTA))], ids=['disk', 'quota'])
@needs_mounts
def test_full(failing, place, options, how, words):
    mounts = FULL.replace('cat /dev', ' '.join([*how, 'cat /dev']))
    result, file = failing(mounts, before=how, TMPDIR=str(place.tmp), OPTIONS=options)
    assert file.startswith('/tmp/launchd_') and 'ValueError: the teapot is empty' in result.err
    assert re.search(rf"^launchd: note: TMPDIR={place.tmp} can't be used: {words}; /tmp/launchd_\w+ is used instead$",
                     result.err, re.M)


def test_a_tmpdir_that_is_not_there_is_named_once(start, place):
    """By each launcher, unless all of them have one console."""
    gone = f'{place.path}/gone'
    note = f"launchd: note: TMPDIR={gone} can't be used: No such file or directory; /tmp/launchd_"
    for joined in False, True:
        said = [result.err for result in Cluster(
            start, 2, ['--no_python', '--use_env', 'true'], {'TMPDIR': gone},
            each=lambda node: ([], {'SLURM_PROCID': str(node), 'SLURM_STEP_ID': '0', 'SLURM_STEP_NUM_TASKS': '2'}
                               if joined else {})).end()]
        assert [err.count(note) for err in said] == [err.count('gone') for err in said] == [1, 0 if joined else 1]


def test_logs_where_tmpdir_is_not_there(launch, place):
    result = launch(['-r3', '--no_python', '--use_env', 'true'], {'TMPDIR': f'{place.path}/gone'})
    [logs] = re.findall(rf"^launchd: note: TMPDIR={place.path}/gone can't be used: .*; workers' log files: (\S+)",
                        result.err, re.M)
    assert result.rc == 0 and result.err.count('TMPDIR') == 1 and logs.startswith('/tmp/launchd_logs_')
    shutil.rmtree(pathlib.Path(logs).parent)
