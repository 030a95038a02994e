"""What config/docs/migrating.md says: old and new commands, as their diff blocks have them, and the
nodes and workers that an old one means, by what its launcher's own parser does."""
import argparse
import collections
import re
import shlex
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / 'config' / 'docs' / 'migrating.md'
HOSTS = {'n0': 2, 'n1': 2}  # of the page's host file

# torch 2.15.0, torch/distributed/run.py and launch.py; DeepSpeed 0.19, launcher/runner.py; Horovod
# 0.28, runner/launch.py; accelerate 1.11, commands/launch.py. "=": with a value. Every --a-b of
# torch is also --a_b.
TORCHRUN = """
    --nnodes= --nproc-per-node= --rdzv-backend= --rdzv-endpoint= --rdzv-id= --rdzv-conf= --standalone
    --max-restarts= --monitor-interval= --start-method= --event-log-handler= --role= -m --module
    --no-python --run-path --log-dir= -r= --redirects= -t= --tee= --log-line-prefix-template=
    --local-ranks-filter= --duplicate-stdout-filters= --duplicate-stderr-filters= --node-rank=
    --master-addr= --master-port= --local-addr= --logs-specs= --numa-binding= --signals-to-handle=
    --shutdown-timeout= --virtual-local-rank --print-completion="""
OPTIONS = {
    'torchrun': TORCHRUN,
    'torch.distributed.launch': TORCHRUN + ' --use-env --logdir=',
    # Azure ML's, as tests/contract has it
    'launch.py': '--nnodes= --node_rank= --nproc_per_node= --master_addr= --master_port= --use_env -m '
                 '--module --no_python --nccl_socket_ifname=',
    'deepspeed': """
        -H= --hostfile= -i= --include= -e= --exclude= --num_nodes= --min_elastic_nodes=
        --max_elastic_nodes= --num_gpus= --num_accelerators= --master_port= --master_addr= --node_rank=
        --launcher= --launcher_args= --module --no_python --no_local_rank --no_ssh --no_ssh_check
        --force_multi --save_pid --enable_each_rank_log= --autotuning= --elastic_training
        --bind_cores_to_rank --bind_core_list= --ssh_port= --venv_script= --log_level= -q --quiet""",
    'horovodrun': """
        -v --version -np= --num-proc= -cb --check-build --disable-cache --start-timeout=
        --network-interfaces= --network-interface= --output-filename= --verbose --config-file= -p=
        --ssh-port= -i= --ssh-identity-file= --fusion-threshold-mb= --cycle-time-ms= --cache-capacity=
        --min-np= --min-num-proc= --max-np= --max-num-proc= --slots-per-host= --elastic-timeout=
        --reset-limit= --timeline-filename= --mpi-args= --tcp --binding-args= --log-level=
        -prefix-timestamp --prefix-output-with-timestamp -H= --hosts= -hostfile= --hostfile=
        --host-discovery-script= --gloo --mpi --jsrun""",
    'accelerate': """
        --config_file= -q --quiet --cpu --multi_gpu --tpu --use_xpu --mixed_precision= --num_processes=
        --num_machines= --num_cpu_threads_per_process= --enable_cpu_affinity --dynamo_backend=
        --dynamo_mode= --use_deepspeed --use_fsdp --use_megatron_lm --gpu_ids= --same_network
        --machine_rank= --main_process_ip= --main_process_port= -t= --tee= --log_dir= --role=
        --rdzv_backend= --rdzv_conf= --max_restarts= --monitor_interval= -m --module --no_python
        --debug --mpirun_hostfile= --mpirun_ccl= --deepspeed_config_file= --zero_stage=
        --fsdp_sharding_strategy=""",
    'mpirun': """-n= -np= -H= --host= --hostfile= --map-by= --bind-to= -x= --oversubscribe
        --allow-run-as-root""",
    'srun': """-N= --nodes= -n= --ntasks= --ntasks-per-node= --mpi= --cpus-per-task= --gpus-per-node= -O
        --overcommit --signal=""",
    'python': '',  # Lightning's own
}


class Pair(collections.namedtuple('Pair', 'section context old new line')):
    """A block: the heading above it, its lines without a sign, its old and its new commands, the
    number of its first line."""

    def says(self, name):
        """The value of a YAML key in it, before the change."""
        [value] = re.findall(rf'^[ -]\s*{name}: (\S+)$', self.context, re.M)
        return value

    def __str__(self):
        return f'line {self.line}'


VARIABLES = {'$WORLD_SIZE': '2', '$RANK': '0', '$MASTER_ADDR': 'n0'}  # of the first pod's shell


def smaller(text):
    """A page's node has 8 workers; two will do here."""
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    return re.sub(r'\b8\b', '2', re.sub(r'\b16\b', '4', text))


def blocks():
    """The page in order: (section, number of the line, language or '', lines) of each block that is
    code, be it fenced or indented."""
    section, found, lines = '', [], PAGE.read_text().splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith('#'):
            section = line.lstrip('# ')
        if line.lstrip().startswith('```'):
            end = next(n for n in range(at + 1, len(lines)) if lines[n].strip() == '```')
            found.append((section, at + 1, line.strip()[3:], lines[at + 1:end]))
            at = end
        elif line.startswith('    ') and not lines[at - 1]:
            found.append((section, at + 1, '', [line]))
        at += 1
    return found


def commands(lines, sign):
    """What follows "command: " where the block is a part of an Azure ML job."""
    lines = [line[1:].strip() for line in lines if line[:1] == sign]
    return [line.removeprefix('command: ') for line in lines if line.startswith('command: ')] or lines


def pairs():
    found = []
    for section, number, language, lines in blocks():
        assert language == 'diff', f'{PAGE.name}:{number}: what is to be done with this block?'
        lines = [smaller(line) for line in lines]
        found.append(Pair(section, '\n'.join(line for line in lines if 'command: ' not in line),
                          commands(lines, '-'), commands(lines, '+'), number))
        assert found[-1].old and found[-1].new, f'{PAGE.name}:{number}: a command is missing'
    return found


def prose():
    """(section, text) of each, without blocks."""
    text = re.sub(r'^```.*?^```$', '', PAGE.read_text(), flags=re.M | re.S)
    return [part.partition('\n')[::2] for part in re.split(r'^#+ ', text, flags=re.M)[1:]]


def spellings(launcher, flag):
    long_of_torch = 'torch' in launcher and flag.startswith('--')
    return {flag, f'--{flag[2:].replace("-", "_")}'} if long_of_torch else {flag}


def names_of(launcher):
    """All spellings of its options."""
    flags = OPTIONS[launcher].replace('=', '').split()
    return {name for flag in flags for name in spellings(launcher, flag)}


def assigned(command):
    """Its words, and the variables before them."""
    words, env = shlex.split(command), {}
    while re.fullmatch(r'[A-Z_]+=.*', words[0]):
        name, _, env[name] = words.pop(0).partition('=')
    return words, env


def launcher_of(words):
    """Which one it is, and the words behind its name."""
    starts = [(['python', '-m', 'torch.distributed.launch'], 'torch.distributed.launch'),
              (['python', 'launch.py'], 'launch.py'), (['accelerate', 'launch'], 'accelerate'),
              *(([name], name) for name in OPTIONS)]
    for start, name in starts:
        if words[:len(start)] == start:
            return name, words[len(start):]
    raise AssertionError(f'whose command is this? {words}')


class Strict(argparse.ArgumentParser):
    def error(self, message):
        raise AssertionError(f'{self.prog}: {message}')


def parsed(command):
    """(launcher, its options by name as {'nproc_per_node': '2'}, script and arguments). An option that
    the launcher doesn't have is an AssertionError."""
    words, _ = assigned(command)
    name, words = launcher_of(words)
    parser = Strict(prog=name, add_help=False, allow_abbrev=False)
    for option in OPTIONS[name].split():
        flag = option.rstrip('=')
        parser.add_argument(*sorted(spellings(name, flag)), dest=flag.lstrip('-').replace('-', '_'),
                            default=argparse.SUPPRESS,
                            action='store' if option.endswith('=') else 'store_true')
    parser.add_argument('script')
    parser.add_argument('args', nargs=argparse.REMAINDER)
    options = vars(parser.parse_args(words))
    return name, options, [options.pop('script'), *options.pop('args')]


def slots(text):
    return [int(host.partition(':')[2] or 1) for host in text.split(',')]


def workers_of(pair):
    """How many workers each of the old command's nodes has: [2, 2]."""
    name, o, _ = parsed(pair.old[0])
    if pair.section == 'Azure ML':
        each = o.get('nproc_per_node') or pair.says('process_count_per_instance')
        return [int(each)] * int(pair.says('instance_count'))
    if name in ('torchrun', 'torch.distributed.launch'):
        return [int(o['nproc_per_node'])] * int(o.get('nnodes', 1))
    if name == 'deepspeed':
        if 'num_gpus' in o:
            return [int(o['num_gpus'])]
        if o.get('include', '').startswith('localhost:'):
            return [len(o['include'].split(','))]
        return [HOSTS[host] for host in o.get('include', '@'.join(HOSTS)).split('@')]
    if name == 'accelerate':
        nodes = int(o.get('num_machines', 1))
        return [int(o['num_processes']) // nodes] * nodes
    if name in ('horovodrun', 'mpirun'):
        each = slots(o['H']) if 'H' in o else list(HOSTS.values())
        assert sum(each) == int(o['np'])
        return each
    if name == 'srun':
        return [int(o['ntasks_per_node'])] * int(o['N'])
    [(nodes, devices)] = re.findall(r'Trainer\(num_nodes=(\d+), devices=(\d+)\)', pair.context)
    return [int(devices)] * int(nodes)


def needs_hosts(command):
    """Whether it names several hosts that must be there, or needs a batch system."""
    words, _ = assigned(command)
    return words[0] in ('mpirun', 'srun') or '--cluster-hostfile' in words or \
        any(word.startswith('--mpirun-host') for word in words)


def new_commands(on_hosts):
    """(pair, new command) of those that run there; Azure ML's mpirun is not on the page."""
    return [(pair, command) for pair in pairs() for command in pair.new
            if on_hosts == (needs_hosts(command) or '--per-process' in command)]


# Leaves what each worker got; rank 1 fails when all are there, which ends the others. Each keeps the FIFO open, so
# that none of their bytes gets lost.
TRAIN = '''import contextlib, json, os, signal, sys
out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dumps")
with contextlib.suppress(FileExistsError):
    os.mkfifo(f"{out}.there")
there = os.open(f"{out}.there", os.O_RDWR)
rank = int(os.environ.get("RANK") or os.environ["NODE_RANK"])
size = int(os.environ.get("WORLD_SIZE", 2))
with open(f"{out}/part.{rank}", "w") as file:
    json.dump({"argv": sys.argv[1:], "env": dict(os.environ)}, file)
os.rename(f"{out}/part.{rank}", f"{out}/{rank}.json")
os.write(there, b"x")
if rank != 1:
    signal.pause()
for _ in range(size):
    os.read(there, 1)
sys.exit(7)
'''
EXIT_CODE = 7  # of the job that is told so
# which test_torchrun_sets_what_the_page_promises holds against torch 2.15
TORCHRUN_SETS = {
    'RANK', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'WORLD_SIZE', 'GROUP_RANK', 'GROUP_WORLD_SIZE', 'ROLE_NAME',
    'ROLE_RANK', 'ROLE_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'TORCHELASTIC_RESTART_COUNT',
    'TORCHELASTIC_MAX_RESTARTS', 'TORCHELASTIC_RUN_ID', 'TORCHELASTIC_USE_AGENT_STORE',
    'TORCH_NCCL_ASYNC_ERROR_HANDLING', 'TORCHELASTIC_ERROR_FILE', 'OMP_NUM_THREADS'}


def check_workers(pair, command, dumps):
    """dumps: by rank. Each worker stands where the old command would have put it, and finds what the
    page says."""
    nodes = [1] * len(workers_of(pair)) if '--node-env' in command else workers_of(pair)
    places = [(node, local) for node, each in enumerate(nodes) for local in range(each)]
    assert sorted(dumps) == list(range(len(places)))
    script = parsed(pair.old[0])[2]
    args = script[script.index('train.py') + 1:]
    for rank, (node, local) in enumerate(places):
        env, argv = dumps[rank]['env'], dumps[rank]['argv']
        assert argv == [*local_rank_argument(pair, local), *args]
        if '--node-env' in command:
            assert (env['NODE_RANK'], TORCHRUN_SETS & env.keys() - {'OMP_NUM_THREADS'}) == (
                f'{node}', {'MASTER_ADDR', 'MASTER_PORT', 'TORCH_NCCL_ASYNC_ERROR_HANDLING'})
            continue
        found = {name: env[name] for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE',
                                              'NODE_RANK', 'GROUP_RANK', 'GROUP_WORLD_SIZE')}
        assert found == {'RANK': f'{rank}', 'WORLD_SIZE': f'{len(places)}', 'LOCAL_RANK': f'{local}',
                         'LOCAL_WORLD_SIZE': f'{nodes[node]}', 'NODE_RANK': f'{node}',
                         'GROUP_RANK': f'{node}', 'GROUP_WORLD_SIZE': f'{len(nodes)}'}
        omitted = {'OMP_NUM_THREADS'} if '--per-process' in command else set()
        assert TORCHRUN_SETS - omitted - env.keys() == set()
        for name, value in expected_variables(pair, rank, local, len(places), nodes[node]).items():
            assert env.get(name) == value, name


def local_rank_argument(pair, local):
    """Which the old command hands over."""
    name, options, _ = parsed(pair.old[0])
    if name in ('torch.distributed.launch', 'launch.py', 'deepspeed') and \
            not options.keys() & {'use_env', 'no_local_rank'}:
        return [f'--local-rank={local}' if 'torch 2.0 and later' in pair.context else f'--local_rank={local}']
    return []


def expected_variables(pair, rank, local, size, each):
    """Beyond torchrun's: those that the old command sets or means."""
    name, options, _ = parsed(pair.old[0])
    found = {}
    if 'mixed_precision' in options:
        found['ACCELERATE_MIXED_PRECISION'] = options['mixed_precision']
    if 'gpu_ids' in options or 'localhost:' in options.get('include', ''):
        found['CUDA_VISIBLE_DEVICES'] = options.get('gpu_ids') or options['include'].partition(':')[2]
    if name in ('mpirun', 'horovodrun') or 'type: mpi' in pair.context:
        found |= {'OMPI_COMM_WORLD_RANK': f'{rank}', 'OMPI_COMM_WORLD_SIZE': f'{size}',
                  'OMPI_COMM_WORLD_LOCAL_RANK': f'{local}', 'OMPI_COMM_WORLD_LOCAL_SIZE': f'{each}'}
    if name == 'srun':
        found |= {'SLURM_PROCID': f'{rank}', 'SLURM_LOCALID': f'{local}', 'SLURM_NTASKS': f'{size}'}
    return found
