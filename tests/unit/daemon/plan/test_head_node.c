/* test_head_node.c - the command by which mpirun starts a launcher on each node. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "common/vec.h"
#include "common/words.h"
#include "config/hosts.h"
#include "daemon/plan/head_node.h"

#define CLI(id, text) \
	{ \
		SET_##id, text, LEVEL_COMMAND_LINE \
	}
#define MAP   "mpirun --map-by ppr:1:node --bind-to none "
#define TWO   "-n 2 --host n0:1,n1:1 "
#define KILL  "--mca odls_base_sigkill_timeout "
#define WHOLE "--mca orte_keep_fqdn_hostnames 1 --mca prte_keep_fqdn_hostnames 1 "
#define LIMIT "OMPI_MCA_odls_base_sigkill_timeout="

/* The hosts are a host file's text, "f"; the words are ours behind the program's name. */
static const struct head_row {
	const char *says, *hosts, *words;
	struct setting_given put[2]; /* ends with text NULL */
	const char *env[8];
	bool root;
	const char *command; /* NULL: refused */
	const char *part;    /* of the sentence */
} rows[] = {
	{ "two nodes", "n0\nn1\n", "--use_env t.py --lr 1", { { 0 } }, { NULL }, false,
		MAP TWO "launchd --use_env t.py --lr 1", NULL },
	{ "one node, as root", "n0\n", "t.py", { { 0 } }, { NULL }, true,
		"mpirun --allow-run-as-root --map-by ppr:1:node --bind-to none -n 1 --host n0:1 "
		"launchd t.py",
		NULL },
	{ "variables by their names, in order", "n0\nn1\n", "t.py", { { 0 } },
		{ "NCCL_DEBUG=INFO", "A=secret value", "LAUNCHD_KEY=secret", "HOME=/root",
			"EMPTY=" },
		false, MAP TWO "-x A -x EMPTY -x LAUNCHD_KEY -x NCCL_DEBUG launchd t.py", NULL },
	{ "slots are workers", "n0 slots=8\nn1 slots=8\n", "t.py", { { 0 } }, { NULL }, false,
		MAP TWO "launchd --nproc_per_node=8 t.py", NULL },
	{ "unless their number is given", "n0 slots=8\nn1 slots=4\n", "--np 2 t.py",
		{ CLI(NPROC_PER_NODE, "2") }, { NULL }, false, MAP TWO "launchd --np 2 t.py",
		NULL },
	{ "then of some, too", "n0 slots=8\nn1\n", "t.py", { CLI(NPROC_PER_NODE, "gpu") }, { NULL },
		false, MAP TWO "launchd t.py", NULL },
	{ "uneven slots are programs of one mpirun",
		"n0 slots=2\nn1 slots=3\nn2 slots=3\nn3 slots=2\n", "t.py a", { { 0 } }, { "X=" },
		true,
		"mpirun --allow-run-as-root --map-by ppr:1:node --bind-to none "
		"-n 1 --host n0:1 -x X launchd --nproc_per_node=2 t.py a : "
		"-n 2 --host n1:1,n2:1 -x X launchd --nproc_per_node=3 t.py a : "
		"-n 1 --host n3:1 -x X launchd --nproc_per_node=2 t.py a",
		NULL },
	{ "a host without slots has one", "n0 slots=8\nn1\n", "t.py", { { 0 } }, { NULL }, false,
		MAP "-n 1 --host n0:1 launchd --nproc_per_node=8 t.py : "
		    "-n 1 --host n1:1 launchd --nproc_per_node=1 t.py",
		NULL },
	{ "names with domains stay whole", "n0.a\nn0.b\n", "t.py", { CLI(SHUTDOWN_TIMEOUT, "9") },
		{ NULL }, false, MAP KILL "10 " WHOLE "-n 2 --host n0.a:1,n0.b:1 launchd t.py",
		NULL },
	{ "... if one has one", "n0\nn1.a\n", "t.py", { { 0 } }, { NULL }, false,
		MAP WHOLE "-n 2 --host n0:1,n1.a:1 launchd t.py", NULL },
	{ "an address has none", "10.0.0.1\n", "t.py", { { 0 } }, { NULL }, false,
		MAP "-n 1 --host 10.0.0.1:1 launchd t.py", NULL },
	{ "a user is in the file alone", "a@n0 slots=2\nn1 slots=2\n", "t.py", { { 0 } }, { "X=" },
		false, MAP "-n 2 --hostfile f -x X launchd --nproc_per_node=2 t.py", NULL },
	{ "... or a port", "n0\nn1 port=22\n", "t.py", { { 0 } }, { NULL }, false,
		MAP "-n 2 --hostfile f launchd t.py", NULL },
	{ "... whatever slots there are", "a@n0.x slots=2\nn1 slots=4\n", "t.py",
		{ CLI(NPROC_PER_NODE, "2") }, { NULL }, false,
		MAP WHOLE "-n 2 --hostfile f launchd t.py", NULL },
	{ "a time for the workers to end", "n0\nn1\n", "t.py", { CLI(SHUTDOWN_TIMEOUT, "2.5") },
		{ NULL }, false, MAP KILL "4 " TWO "launchd t.py", NULL },
	{ "that of TERM", "n0\nn1\n", "t.py", { CLI(ON_SIGNAL, "TERM=stop:60") }, { NULL }, false,
		MAP KILL "61 " TWO "launchd t.py", NULL },
	{ "not that of another signal", "n0\nn1\n", "t.py", { CLI(ON_SIGNAL, "USR1=stop:60") },
		{ NULL }, false, MAP TWO "launchd t.py", NULL },
	{ "none where TERM ends nothing", "n0\nn1\n", "t.py",
		{ CLI(SHUTDOWN_TIMEOUT, "9"), CLI(ON_SIGNAL, "TERM=ignore") }, { NULL }, false,
		MAP TWO "launchd t.py", NULL },
	{ "mpirun's own variable goes above it", "n0\nn1\n", "t.py", { CLI(SHUTDOWN_TIMEOUT, "9") },
		{ LIMIT "5" }, false, MAP TWO "launchd t.py", NULL },
	{ "a number of nodes that is right", "n0\nn1\n", "--nnodes 2 t.py", { CLI(NNODES, "2") },
		{ NULL }, false, MAP TWO "launchd --nnodes 2 t.py", NULL },
	{ "the system's file is no contradiction", "n0\nn1\n", "t.py",
		{ { SET_CLUSTER_NODES, "a,b", LEVEL_SYSTEM_FILE },
			{ SET_NNODES, "3", LEVEL_SYSTEM_FILE } },
		{ NULL }, false, MAP TWO "launchd t.py", NULL },
	{ "what a worker inherits from mpirun starts no worker here", "n0\nn1\n", "t.py", { { 0 } },
		{ "TORCHELASTIC_RUN_ID=x", "LOCAL_RANK=0", "OMPI_COMM_WORLD_RANK=0" }, false,
		MAP TWO "launchd t.py", NULL },
	{ "a standalone that says no", "n0\nn1\n", "t.py", { CLI(STANDALONE, "0") }, { NULL },
		false, MAP TWO "launchd t.py", NULL },

	{ "under mpirun", "n0\n", "t.py", { { 0 } }, { "OMPI_COMM_WORLD_RANK=0" }, false, NULL,
		"--mpirun-hostfile runs mpirun, but mpirun has started this process already: leave "
		"--mpirun-hostfile out, or run this command without mpirun" },
	{ "under Hydra", "n0\n", "t.py", { { 0 } }, { "PMI_RANK=0" }, false, NULL,
		"but mpiexec has started" },
	{ "in a step of Slurm", "n0\n", "t.py", { { 0 } }, { "SLURM_STEP_ID=0", "SLURM_PROCID=0" },
		false, NULL, "but srun has started" },
	{ "mpirun's own list of variables", "n0\n", "t.py", { { 0 } },
		{ "OMPI_MCA_mca_base_env_list=A;B" }, false, NULL,
		"refuses beside OMPI_MCA_mca_base_env_list: unset that" },
	{ "both lists", "n0\n", "t.py", { CLI(MPIRUN_HOSTS, "n0") }, { NULL }, false, NULL,
		"given and --mpirun-hostfile both list the nodes" },
	{ "a job of one node", "n0\n", "t.py", { CLI(STANDALONE, "1") }, { NULL }, false, NULL,
		"--mpirun-hostfile and given" },
	{ "a rank", "n0\n", "t.py", { { SET_NODE_RANK, "0", LEVEL_PET } }, { NULL }, false, NULL,
		"is one node's, and mpirun tells" },
	{ "another list", "n0\n", "t.py", { { SET_CLUSTER_NODES, "a,b", LEVEL_FILE } }, { NULL },
		false, NULL, "lists the nodes, too" },
	{ "another list in a file", "n0\n", "t.py", { CLI(CLUSTER_HOSTFILE, "x") }, { NULL }, false,
		NULL, "lists the nodes, too" },
	{ "an address of one node", "n0\n", "t.py", { CLI(LOCAL_ADDR, "10.0.0.1") }, { NULL },
		false, NULL, "all nodes would get it" },
	{ "another number of nodes", "n0\n", "t.py", { CLI(NNODES, "2") }, { NULL }, false, NULL,
		"given says 2, but f lists 1 node: leave" },
	{ "an IPv6 address", "n0\n[fd00::1]\n", "t.py", { { 0 } }, { NULL }, false, NULL,
		"f:2: mpirun takes no IPv6 addresses such as fd00::1" },
	{ "a user with uneven slots", "n0 slots=2\na@n1 slots=4\n", "t.py", { { 0 } }, { NULL },
		false, NULL,
		"f:2: mpirun takes the user or port of n1 for hosts that all have the same number "
		"of workers alone, but n0 has slots=2 and n1 slots=4: give --nproc_per_node" },
	{ "a user in a file that mpirun can't read", "n0:2\na@n1:2\n", "t.py",
		{ CLI(NPROC_PER_NODE, "2") }, { NULL }, false, NULL,
		"f:2: mpirun takes the user or port of n1 from Open MPI's kind of file alone" },
	{ "more workers than there may be", "n0 max_slots=2\n", "t.py",
		{ CLI(NPROC_PER_NODE, "3") }, { NULL }, false, NULL,
		"f:1: n0 has max_slots=2, but given says 3 workers" },
	{ "a word that would divide the command", "n0\n", "t.py a : b", { { 0 } }, { NULL }, false,
		NULL, "the argument \":\" would divide mpirun's command line" },
	{ "a signal that is none", "n0\n", "t.py", { CLI(ON_SIGNAL, "FOO=stop") }, { NULL }, false,
		NULL, "\"FOO\" is not a signal" },
};

static void test_command(void **state)
{
	const struct head_row *row = *state;
	struct hosts hosts = { 0 };
	struct vec words = { 0 };
	struct text command = { 0 };
	struct head_plan p = { 0 };
	struct settings_fixture b;
	struct head_facts f = { &b.s, row->env, &hosts, "f", "mpirun", "launchd", &words,
		row->root };
	const char *fault;
	int rc;

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_MPIRUN_HOSTFILE, "f", "--mpirun-hostfile");
	settings_fixture_put_all(&b, row->put, 2);
	assert_int_equal(
		hosts_read_file(&b.arena, row->hosts, strlen(row->hosts), "f", &hosts, &b.why), 0);
	assert_int_equal(words_split(row->words, &b.arena, &words, &fault), 0);
	rc = head_node_check(&f, &b.why);
	if (rc == 0)
		rc = head_node_make(&f, &b.arena, &p, &b.why);
	assert_outcome(rc, row->command ? 0 : -EINVAL, &b.why, row->part);
	for (size_t i = 0; i < p.argv.count; i++)
		text_printf(&command, "%s%s", i ? " " : "", p.argv.at[i]);
	assert_string_equal(text_string(&command), row->command ? row->command : "");
	text_done(&command);
	settings_fixture_done(&b);
}

/* No word is longer than the kernel takes. */
static void test_many_hosts(void **state)
{
	static const char *const env[] = { NULL };
	struct hosts hosts = { 0 };
	struct vec words = { 0 };
	struct head_plan p = { 0 };
	struct settings_fixture b;
	struct head_facts f = { &b.s, env, &hosts, "f", "mpirun", "launchd", &words, false };
	size_t found = 0;

	(void)state;
	settings_fixture_make(&b, false);
	vec_add(&b.arena, &words, "t.py");
	settings_fixture_put(&b, SET_MPIRUN_HOSTS, "n0", "--mpirun-hosts");
	assert_int_equal(hosts_add_list(&b.arena, "node[00001-20000]", "f", &hosts, &b.why), 0);
	assert_int_equal(head_node_make(&f, &b.arena, &p, &b.why), 0);
	for (size_t i = 0; i + 1 < p.argv.count; i++) {
		const char *list = p.argv.at[i + 1];

		if (strcmp(p.argv.at[i], "--host") != 0)
			continue;
		assert_true(strlen(list) < 100000);
		assert_int_equal(strncmp(list, "node", 4), 0);
		for (; list; list = strchr(list + 1, ','))
			found++;
	}
	assert_int_equal(found, 20000);
	settings_fixture_done(&b);
}

static const struct export_row {
	const char *says, *name;
	bool goes;
} exports[] = {
	{ "a setting of ours", "LAUNCHD_MAX_RESTARTS", true },
	{ "the job's key", "LAUNCHD_KEY", true },
	{ "a setting of torchrun's", "PET_NPROC_PER_NODE", true },
	{ "the master address", "MASTER_ADDR", true },
	{ "NCCL's", "NCCL_SOCKET_IFNAME", true },
	{ "CUDA's", "CUDA_VISIBLE_DEVICES", true },
	{ "a path", "LD_LIBRARY_PATH", true },
	{ "a path of programs", "PATH", true },
	{ "threads", "OMP_NUM_THREADS", true },
	{ "UCX's", "UCX_TLS", true },
	{ "a service's key", "WANDB_API_KEY", true },
	{ "Slurm's of the job", "SLURM_JOB_ID", true },
	{ "Azure ML's of the job", "AZ_BATCH_MASTER_NODE", true },
	{ "a beginning of another name", "HOMEBREW_PREFIX", true },
	{ "torchrun's own way of a setting", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", true },

	{ "the user's directory", "HOME", false },
	{ "the host's name", "HOSTNAME", false },
	{ "the directory", "PWD", false },
	{ "a directory that may be there only", "TMPDIR", false },
	{ "the login", "SSH_AUTH_SOCK", false },
	{ "the session", "XDG_RUNTIME_DIR", false },
	{ "the terminal", "TERM", false },
	{ "the pod", "POD_IP", false },
	{ "a rank", "RANK", false },
	{ "a node's rank", "NODE_RANK", false },
	{ "a worker's job", "TORCHELASTIC_RUN_ID", false },
	{ "Open MPI's, which mpirun hands over", "OMPI_MCA_btl", false },
	{ "PMIx's", "PMIX_RANK", false },
	{ "Slurm's of the task", "SLURM_PROCID", false },
	{ "systemd's of the unit", "NOTIFY_SOCKET", false },
	{ "a unit's", "INVOCATION_ID", false },
	{ "a function", "BASH_FUNC_module%%", false },
};

static void test_exports(void **state)
{
	const struct export_row *row = *state;
	char entry[64];

	(void)snprintf(entry, sizeof entry, "%s=x", row->name);
	assert_int_equal(head_node_exports(entry, strlen(row->name)), row->goes);
}

TESTS(head_node)
{
	static struct suite s;

	SUITE_ROWS(&s, test_command, rows);
	SUITE_ROWS(&s, test_exports, exports);
	suite_add(&s, "20,000 hosts", test_many_hosts, NULL, NULL);
	return suite_run(&s);
}
