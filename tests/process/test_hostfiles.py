"""Files of hosts (hostfiles/*) as those write them who own a format: Open MPI, Hydra, DeepSpeed, horovodrun, MPI
operators, PBS. What launchd makes of each stands beside what the real mpirun and mpiexec.hydra make of it."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from harness import Plan, native
from needs import why_no_mpirun, why_not

HERE = pathlib.Path(__file__).parent / 'hostfiles'
OPENMPI5 = os.environ.get('LAUNCHD_OPENMPI5', '')  # its directory, in which there is bin/mpirun
AS_ROOT = ['--allow-run-as-root'] if os.geteuid() == 0 else []

# What comes of each: hosts with their slots, or the words of the error; then who says the same: Open MPI 4 and 5,
# Hydra. Each of the others refuses it, or says something else; 5~: as many slots as a node has CPUs; H?: that depends
# on its version.
FILES = {
    'blanks_around_equals': ('node1:4 node2:4', '45'),
    'blanks_of_all_kinds': ('node1:8 node2:8', '45'),
    'boards': (['boards:1: "boards=1" is not known', 'slots=N'], ''),
    'byte_order_mark': ('node1:2', ''),
    'comma_behind_a_host': (['comma_behind_a_host:1: "node1" is followed by a comma'], ''),
    'comment_right_behind': ('node1:4 node2:1', '45~'),
    'comments': ('node1:8 node3:8', '45'),
    'comments_of_c': ('node2:4 node3:4', '45'),
    'deepspeed': ('worker-0:8 worker-2:4', '45'),
    'deepspeed_comma': ('node1:8 node2:8', ''),
    'deepspeed_nothing': (['deepspeed_nothing names no host'], ''),
    'deepspeed_users': ('192.168.1.10:2 192.168.1.7:1', '45'),
    'excluded': ('node1:2 node3:2', ''),  # PRRTE 4's; before, the rest of the file is lost
    'hydra_address': ('10.0.0.1:4 10.0.0.2:4', 'H'),
    'hydra_binding': ('node1:2 node2:2', 'H'),
    'hydra_colon': ('node1:8 node2:4 node3:1', 'H'),
    'hydra_none': ('node2:4', 'H?'),  # 4.0 divides by zero
    'hydra_options': ('node1:2 node2:2', 'H'),
    'hydra_repeated': ('node1:4 node2:4', 'H'),
    'ipv6': ('2001:db8::1:2 2001:db8::2:2', '45'),
    'ipv6_in_brackets': ('2001:db8::1:4 2001:db8::2:4', ''),
    'max_slots_alone': ('node1:4 node2:2', '45'),
    'max_slots_below': (['max_slots_below:1: node1 has slots=4, above its max_slots=2'], ''),
    'max_slots_first': ('node1:4 node2:4', '45'),
    'max_slots_two_spellings': ('a:2 b:2', '45'),
    'mpijob_colon': ('pi-worker-0.pi-worker.default.svc:8 pi-worker-1.pi-worker.default.svc:8', 'H'),
    'mpijob_max_slots': ('caffe-wd-mpijob-worker-0:8 caffe-wd-mpijob-worker-1:8', '45'),
    'mpijob_slots': ('pi-worker-0.pi.default.svc:2 pi-worker-1.pi.default.svc:2', '45'),
    'names_alone': ('node1 node2', '45H'),
    'no_last_line_end': ('node1:2 node2:4', '45'),
    'one_name_in_two_domains': ('n0.a:2 n0.b:4', '45'),
    'other_words_for_max_slots': ('a:2 b:2 c:2 d:2 e:2 f:2 g:2', '45'),
    'other_words_for_slots': ('node1:2 node2:3 node3:4', '45'),
    'pbs_dealt_out': ('n0:2 n1:2', '45H'),
    'pbs_nodefile': ('r1i0n0.cluster:2 r1i0n1.cluster:2', '45H'),
    'pbs_uneven': ('n0:2 n1:1', '45~H'),
    'quoted': (['quoted:1: ""node1"" is not the name'], ''),
    'rankfile': ('node1:2 node2:1', '45'),
    'relative': (['relative:2: "+n1" counts nodes', "give the host's name"], ''),
    'repeated_addresses': ('10.4.0.1:2 10.4.0.2:2', '45H'),
    'repeated_before_slots': (['repeated_before_slots:2: node1 is listed twice, first at', ':1: slots=N'], ''),
    'repeated_behind_slots': ('node1:3 node2:2', '45'),
    'repeated_hosts': ('node1:3 node2:1', '45~H'),
    'repeated_slots': (['repeated_slots:2: node1 is listed twice, first at', ':1: slots=N'], ''),
    'slots_of_none': ('node2:4', '45'),
    'slots_of_some': ('node1:8 node2:1', '45~'),
    'slots_twice': (['slots_twice:1: "slots=4" gives the host\'s slots once more'], ''),
    'slots_without_a_number': (['slots_without_a_number:1: "slots" has no value: write slots=8'], ''),
    'tabs': ('node1:8 node2:8', '45'),
    'two_hosts_in_a_line': ('node1', '45'),
    'underscore': ('gpu_node_1:2 GPU-2:2', '45'),
    'unknown_word': (['unknown_word:1: "gpus=8" is not known'], ''),
    'user_and_port_behind': ('node1:2 node2:2 node3:2', '45'),
    'users': ('node1:2 node2.cluster:2 10.0.0.3:2', '45'),
    'windows_line_ends': ('node1:2 node2:4', ''),
    'words_of_digits': ('node1 node2', '45'),
}
TAKEN = sorted(name for name, (hosts, _) in FILES.items() if isinstance(hosts, str))
# what mpirun's command line has no words for; each node reads it by itself
NOT_BY_MPIRUN = {'deepspeed_users': 'deepspeed_users:1: mpirun takes the user or port of 192.168.1.10',
                 'hydra_options': "hydra_options:3: mpirun takes the user or port of node2 from Open MPI's kind",
                 'ipv6': 'ipv6:1: mpirun takes no IPv6 addresses',
                 'ipv6_in_brackets': 'ipv6_in_brackets:1: mpirun takes no IPv6 addresses'}
IGNORED = {'two_hosts_in_a_line': ['two_hosts_in_a_line:1: "node2" is ignored'],
           'words_of_digits': ['words_of_digits:1: "8" is ignored', 'words_of_digits:2: "8" is ignored']}


def split(text):
    """'n0:2 n1' -> [('n0', 2), ('n1', None)]"""
    found = [re.fullmatch(r'(\S+?)(?::(\d+))?', word) for word in text.split()]
    return [(match[1], int(match[2]) if match[2] else None) for match in found]


def openmpi(program, *options, env=None):
    """Ask for the allocation, and start nothing."""
    def ask(path):
        found = run([program, *AS_ROOT, '--do-not-launch', *options, '--hostfile', path, '-n', '1', 'true'], env)
        first = found.split('ALLOCATED NODES')[1] if 'ALLOCATED NODES' in found else ''
        nodes = re.findall(r'^\s+(\S+): (?:flags=\S+ )?slots=(\d+)', first, re.M)
        return [(name, int(slots)) for name, slots in nodes if slots != '0']
    return ask


def hydra(path):
    """Its proxies are started here. A host that stands in it several times has as many."""
    hosts = split(FILES[path.name][0]) if path.name in TAKEN else []
    found = run(['mpiexec.hydra', '-v', '-launcher', 'fork', '-f', path,
                 '-n', str(sum(slots or 1 for _, slots in hosts) or 1), 'true'])
    nodes = {}
    for name, slots in re.findall(r'proxy: (\S+) \((\d+) cores\)', found):
        nodes[name] = nodes.get(name, 0) + int(slots)
    return list(nodes.items())


def run(argv, env=None):
    result = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env={**os.environ, **(env or {})}, text=True, errors='replace', timeout=60, check=False)
    return result.stdout


WITH_5 = {'OPAL_PREFIX': OPENMPI5, 'PRTE_PREFIX': OPENMPI5}
OWNERS = {
    '4': openmpi('mpirun', '--mca', 'ras_base_verbose', '5', '--mca', 'orte_keep_fqdn_hostnames', '1',
                 '--mca', 'if_base_do_not_resolve', '1'),
    '5': openmpi(f'{OPENMPI5}/bin/mpirun', '--display', 'allocation', '--mca', 'prte_keep_fqdn_hostnames', '1',
                 env=WITH_5),
    'H': hydra}
OWNER_IS_THERE = [
    pytest.param('4', marks=pytest.mark.skipif(
        bool(why_no_mpirun()) or ' 4.' not in run(['mpirun', '--version']), reason='no Open MPI 4')),
    pytest.param('5', marks=pytest.mark.skipif(
        not OPENMPI5, reason='no Open MPI 5: LAUNCHD_OPENMPI5 names its directory')),
    pytest.param('H', marks=pytest.mark.skipif(
        bool(why_not('mpiexec.hydra', '--version')) or 'HYDRA' not in run(['mpiexec.hydra', '--version']),
        reason='no MPICH'))]


@pytest.fixture
def by_mpirun(place):
    """(arguments, environment) that read such a file; the mpirun here is never run."""
    place.write('bin/mpirun', '#!/bin/false\n', 0o755)
    return lambda name: (['--dry-run=json', '--mpirun-hostfile', HERE / name, 'train.py'],
                         {'PATH': f'{place.path}/bin:/usr/bin:/bin', 'LAUNCHD_CONTROL': None})


def test_every_file_is_expected():
    assert {path.name for path in HERE.iterdir()} == FILES.keys()


@pytest.mark.parametrize('name', TAKEN)
def test_taken(launch, refused, by_mpirun, name):
    argv, env = by_mpirun(name)
    if name in NOT_BY_MPIRUN:
        refused(argv, NOT_BY_MPIRUN[name], env=env)
        return
    result = launch(argv, env)
    assert result.rc == 0, result
    plan = json.loads(result.out)
    found = [(node['host'], int(node['nproc_per_node']['value'])) for node in plan['nodes']]
    assert found == [(host, slots or 1) for host, slots in split(FILES[name][0])]
    notes, ignored = [note['text'] for note in plan['notes']], IGNORED.get(name, [])
    assert len(notes) == len(ignored) and all(map(str.__contains__, notes, ignored)), notes


@pytest.mark.parametrize('name', TAKEN)
def test_taken_by_each_node(launch, name):
    """... of a static cluster, whatever mpirun has words for."""
    hosts = split(FILES[name][0])
    result = launch(['--dry-run=json', '--cluster-hostfile', HERE / name, f'--node_rank={len(hosts) - 1}', '/bin/true'])
    assert result.rc == 0, result
    plan = Plan(result.out)
    assert [plan.value(key) for key in ('nnodes', 'master_addr', 'nproc_per_node', 'world_size')] == [
        str(len(hosts)), hosts[0][0] if len(hosts) > 1 else '127.0.0.1', str(hosts[-1][1] or 1),
        str(sum(slots or 1 for _, slots in hosts))]
    assert len([note for note in plan.notes if note['level'] == 'warning']) == len(IGNORED.get(name, []))


@pytest.mark.parametrize('name', sorted(set(FILES) - set(TAKEN)))
def test_refused(refused, by_mpirun, name):
    argv, env = by_mpirun(name)
    refused(argv, *FILES[name][0], env=env)


@pytest.mark.parametrize('owner', OWNER_IS_THERE)
def test_the_real_program(owner):
    """It says the same of each file, or not, as the table has it."""
    for name, (hosts, same) in FILES.items():
        if f'{owner}?' in same:
            continue
        found = OWNERS[owner](HERE / name)
        wanted = split(hosts) if isinstance(hosts, str) else []
        if all(slots is None for _, slots in wanted) or f'{owner}~' in same:
            found, wanted = [host for host, _ in found], [host for host, _ in wanted]
        assert (found == wanted and found != []) == (owner in same), (name, found)


# Runs everything here; as with ssh, no variable goes along.
SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
cd "%s" && echo "$1" >>reached
own=$PWD/of.$1  # daemons of one host would share their directories, and race for them
mkdir "$own" && shift && cd / && exec env -i PATH=/usr/bin:/bin HOME=/ TMPDIR="$own" sh -c "$*"
"""
OPENMPI = [  # its mpirun's folder, and what it is asked for ssh by
    pytest.param('/usr/bin', {'OMPI_MCA_plm_rsh_agent': None, 'OMPI_MCA_if_base_do_not_resolve': '1'}, id='4',
                 marks=OWNER_IS_THERE[0].marks),
    pytest.param(f'{OPENMPI5}/bin', {'PRTE_MCA_plm_ssh_agent': None, **WITH_5}, id='5', marks=OWNER_IS_THERE[1].marks)]


@pytest.fixture
def by_real_mpirun(launch, place):
    """(folder, variables, arguments) -> whom ssh was to reach; on hosts that all are this one."""
    def run_it(folder, env, *argv):
        ssh = place.write('ssh', SSH % place.path, 0o755)
        env = {name: ssh if value is None else value for name, value in env.items()}
        env.update({'OMP_NUM_THREADS': '1', 'PATH': f'{folder}:/usr/bin:/bin', 'LAUNCHD_CONTROL': None})
        result = launch(argv, env)
        place.orphans_expected = True  # mpirun leaves what it runs for ssh to process 1
        assert result.rc == 0 and 'launchd:' not in result.err, result
        return sorted((place.path / 'reached').read_text().split())
    return run_it


@pytest.mark.parametrize('folder, env', OPENMPI)
@pytest.mark.parametrize('lines, reached', [
    (['n0.a slots=1', 'n0.b slots=2', '10.0.0.9'], ['10.0.0.9', 'n0.a', 'n0.b']),
    (['amd@n0.a', 'root@n1', 'n2 user_name=bob'], ['amd@n0.a', 'bob@n2', 'root@n1'])])
def test_whom_ssh_reaches(by_real_mpirun, place, folder, env, lines, reached):
    """Names with their domains, and users."""
    place.write('hosts', '\n'.join(lines))
    assert by_real_mpirun(folder, env, '--mpirun-hostfile=hosts', *native('dump')) == reached
    assert len(place.dumps()) == (4 if 'slots' in lines[0] else 3)


NAME_AND_VALUE_MAX = 131071  # bytes of a variable that Linux takes, without the NUL
BYTES = {
    'NEWLINES': b'a\n\n b\r\n', 'QUOTES': b'\'"`\\\' "', 'PARENTHESES': b'() { ${X}; $(id) }; [*] <&>|!#%~?',
    'BLANKS': b' \ta=b;c,d: ', 'NOTHING': b'', 'ALL': bytes(range(1, 256)),
    'LONG': b'(\n' + b"x'" * 50000, 'LONGEST': b'y' * (NAME_AND_VALUE_MAX - len('LONGEST='))}
SAVE = """
import os
for name in os.environ['NAMES'].split():
    with open(f"saved/{os.environ['RANK']}.{name}", 'wb') as file:
        file.write(os.environb[name.encode()])
"""


@pytest.mark.parametrize('folder, env', OPENMPI)
def test_variables_reach_other_hosts_byte_for_byte(by_real_mpirun, place, folder, env):
    """230 kB in all; the longest is as long as Linux takes one."""
    (place.path / 'saved').mkdir()
    place.write('save.py', SAVE)
    more = {name: os.fsdecode(value) for name, value in BYTES.items()}
    assert by_real_mpirun(folder, {**env, **more, 'NAMES': ' '.join(BYTES)},
                          '--mpirun-hosts=n0,n1', '--use_env', 'save.py') == ['n0', 'n1']
    for rank in range(2):
        for name, value in BYTES.items():
            assert (place.path / 'saved' / f'{rank}.{name}').read_bytes() == value, name
