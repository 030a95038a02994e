/* test_facts.c - what is asked of the machine for which settings. What other files answer is
 * caught. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/facts/facts.h"
#include "daemon/facts/gpu.h"
#include "daemon/facts/interfaces.h"
#include "daemon/facts/torch.h"

/* How often each was asked, and whether it fails. */
static struct asked {
	unsigned gpus, interfaces, torch;
	bool ids; /* of the GPUs */
	bool fails;
} asked;

/* Which terminals this process has, and who its parent is. */
static struct played {
	bool terminal[3];
	pid_t group[3]; /* in the foreground of each */
	pid_t parent;   /* 0: its own */
} played;

/* NO_GROUP: it is no terminal, or not this session's; UNSEEN_GROUP: tcgetpgrp(3) has no number. */
enum { NO_GROUP = -1, UNSEEN_GROUP = 0, OURS = 700, ANOTHERS = 600 };

int __wrap_gpus_read(bool with_ids, uint64_t limit_ms, struct arena *arena, struct gpus *ret,
	struct failure *why);
int __wrap_interfaces_read(struct arena *arena, struct interfaces *ret, struct failure *why);
const char *__wrap_torch_version_read(
	const char *const *env, const char *python, struct arena *arena);
int __wrap_isatty(int fd);
pid_t __wrap_tcgetpgrp(int fd);
pid_t __wrap_getpgrp(void);
pid_t __wrap_getppid(void);
pid_t __real_getppid(void);
int __wrap_secret_draw(void *ret, size_t len, struct failure *why);
int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set);
int __real_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set);

int __wrap_gpus_read(bool with_ids, uint64_t limit_ms, struct arena *arena, struct gpus *ret,
	struct failure *why)
{
	(void)arena;
	assert_true(limit_ms > 0);
	asked.gpus++;
	asked.ids = with_ids;
	*ret = (struct gpus){ .known = true, .count = 6 };
	return asked.fails ? failure_set(why, -EIO, "no GPUs") : 0;
}

int __wrap_interfaces_read(struct arena *arena, struct interfaces *ret, struct failure *why)
{
	static const struct interface all[] = { { "lo", "127.0.0.1", true, true },
		{ "eth0", "10.0.0.7", true, false } };

	(void)arena;
	asked.interfaces++;
	*ret = (struct interfaces){ all, 2 };
	return asked.fails ? failure_set(why, -EIO, "no interfaces") : 0;
}

const char *__wrap_torch_version_read(
	const char *const *env, const char *python, struct arena *arena)
{
	(void)env, (void)arena;
	asked.torch++;
	assert_string_equal(python, "/bin/sh");
	return "2.9.1";
}

int __wrap_isatty(int fd)
{
	return played.terminal[fd];
}

pid_t __wrap_tcgetpgrp(int fd)
{
	return played.group[fd];
}

pid_t __wrap_getpgrp(void)
{
	return OURS;
}

pid_t __wrap_getppid(void)
{
	return played.parent ? played.parent : __real_getppid();
}

int __wrap_secret_draw(void *ret, size_t len, struct failure *why)
{
	unsigned char *bytes = ret;

	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)(0xf0 | i);
	return asked.fails ? failure_set(why, -EIO, "no randomness") : 0;
}

int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	if (!asked.fails)
		return __real_sched_setaffinity(pid, size, set);
	errno = EPERM;
	return -1;
}

/* One setting beside those of every row, and one variable. */
struct given {
	enum setting_id id;
	const char *value;    /* NULL: none */
	const char *variable; /* NULL: none */
};

/* The program is the shell, as Python or by itself: every machine has one. */
static int read_facts(
	struct settings_fixture *b, const struct given *g, bool python, struct facts *ret)
{
	const struct origin here = { LEVEL_COMMAND_LINE, "test" };
	/* borrowed by the facts */
	const char **env = arena_alloc(&b->arena, 3 * sizeof *env);

	assert_non_null(env);
	env[0] = g->variable;
	env[1] = NULL;
	env[1] = env_has_prefix(env, "OMPI_MCA_") || env_has_prefix(env, "PRTE_") ?
		"OMPI_COMM_WORLD_RANK=0" :
		NULL;
	env[2] = NULL;
	if (python)
		(void)settings_put(&b->s, SET_PYTHON, "/bin/sh", here, &b->why);
	else
		(void)settings_put(&b->s, SET_NO_PYTHON, "1", here, &b->why);
	b->s.script = python ? "-" : "/bin/sh";
	if (g->value)
		assert_int_equal(settings_put(&b->s, g->id, g->value, here, &b->why), 0);
	asked.gpus = asked.interfaces = asked.torch = 0;
	return facts_read(&b->s, env, &b->arena, ret, &b->why);
}

static const struct asks_row {
	const char *says;
	struct given given;
	bool python;
	unsigned gpus, addresses;
} asks[] = {
	{ "nothing that isn't needed", { 0 }, true, 0, 0 },
	{ "GPUs for nproc_per_node gpu", { SET_NPROC_PER_NODE, "gpu", NULL }, true, 6, 0 },
	{ "GPUs for auto", { SET_NPROC_PER_NODE, "auto", NULL }, true, 6, 0 },
	{ "none for a number", { SET_NPROC_PER_NODE, "4", NULL }, true, 0, 0 },
	{ "GPUs that are chosen", { SET_GPUS, "0,1", NULL }, true, 6, 0 },
	{ "none for all that there are", { SET_GPUS, "all", NULL }, true, 0, 0 },
	{ "GPUs for a number of each worker", { SET_GPUS_PER_WORKER, "2", NULL }, true, 6, 0 },
	{ "GPUs for one of each worker", { SET_VISIBLE_DEVICES, "one", NULL }, true, 6, 0 },
	{ "none for torchrun's way to say that", { SET_VIRTUAL_LOCAL_RANK, "1", NULL }, true, 0,
		0 },
	{ "none for cpu", { SET_NPROC_PER_NODE, "cpu", NULL }, true, 0, 0 },
	{ "addresses for MASTER_ADDR", { 0, NULL, "MASTER_ADDR=10.0.0.7" }, true, 0, 2 },
	{ "none where it is empty", { 0, NULL, "MASTER_ADDR=" }, true, 0, 0 },
	{ "nor PyTorch's version where no Python is started", { 0 }, false, 0, 0 },
};

static void test_asks(void **state)
{
	const struct asks_row *row = *state;
	struct settings_fixture b;
	struct facts f = { 0 };

	settings_fixture_make(&b, false);
	assert_outcome(read_facts(&b, &row->given, row->python, &f), 0, &b.why, NULL);
	assert_int_equal(asked.gpus, row->gpus ? 1 : 0);
	assert_int_equal(f.gpus.count, row->gpus);
	assert_int_equal(asked.interfaces, row->addresses ? 1 : 0);
	assert_int_equal(f.addresses.count, row->addresses);
	if (row->addresses)
		assert_string_equal(f.addresses.at[1], "10.0.0.7");
	assert_int_equal(asked.torch, row->python);
	if (row->python)
		assert_string_equal(f.torch_version, "2.9.1");
	else
		assert_null(f.torch_version);
	assert_string_equal(f.random_id, "");
	settings_fixture_done(&b);
}

/* They take longer. */
static void test_ids(void **state)
{
	static const struct {
		const char *list;
		bool ids;
	} rows[] = { { "0,1", false }, { "GPU-a", true }, { "MIG-a", true } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct given given = { SET_GPUS, rows[i].list, NULL };
		struct settings_fixture b;
		struct facts f = { 0 };

		settings_fixture_make(&b, false);
		assert_int_equal(read_facts(&b, &given, true, &f), 0);
		assert_int_equal(asked.ids, rows[i].ids);
		settings_fixture_done(&b);
	}
}

static const struct fails_row {
	const char *says;
	struct given given;
	const char *part;
} failures[] = {
	{ "the GPUs can't be counted", { SET_NPROC_PER_NODE, "gpu", NULL }, "no GPUs" },
	{ "the interfaces can't be read", { 0, NULL, "MASTER_ADDR=h" }, "no interfaces" },
	{ "there is not enough randomness", { SET_STANDALONE, "1", NULL }, "no randomness" },
};

static void test_fails(void **state)
{
	const struct fails_row *row = *state;
	struct settings_fixture b;
	struct facts f = { .cpus = 77 };
	int rc;

	settings_fixture_make(&b, false);
	asked.fails = true;
	rc = read_facts(&b, &row->given, true, &f);
	asked.fails = false;
	assert_outcome(rc, -EIO, &b.why, row->part);
	assert_int_equal(f.cpus, 77); /* untouched */
	settings_fixture_done(&b);
}

static void test_machine(void **state)
{
	const struct given nothing = { 0 };
	char hostname[256];
	cpu_set_t mine;
	struct settings_fixture b;
	struct facts f = { 0 };

	(void)state;
	settings_fixture_make(&b, false);
	assert_outcome(read_facts(&b, &nothing, false, &f), 0, &b.why, NULL);
	assert_int_equal(gethostname(hostname, sizeof hostname), 0);
	assert_string_equal(f.hostname, hostname);
	assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
	assert_int_equal(f.cpus, CPU_COUNT(&mine));
	assert_false(f.cpus_unbound);
	assert_string_equal(f.program.path, "/bin/sh");
	settings_fixture_done(&b);
}

static const struct terminal_row {
	const char *says;
	struct played played;
	bool foreground, background;
} terminals[] = {
	{ "no terminal", { .group = { NO_GROUP, NO_GROUP, NO_GROUP } }, false, false },
	{ "in a shell's foreground",
		{ .terminal = { true, true, true }, .group = { OURS, OURS, OURS } }, true, false },
	{ "in its background",
		{ .terminal = { true, true, true }, .group = { ANOTHERS, ANOTHERS, ANOTHERS } },
		false, true },
	{ "behind a pipe",
		{ .terminal = { false, false, true }, .group = { NO_GROUP, NO_GROUP, OURS } }, true,
		false },
	{ "stdout alone is one",
		{ .terminal = { false, true, false }, .group = { NO_GROUP, OURS, NO_GROUP } },
		false, false },
	{ "in the background, with stderr in a file",
		{ .terminal = { true, false, false }, .group = { ANOTHERS, NO_GROUP, NO_GROUP } },
		false, true },
	{ "a pid namespace doesn't show who is in the foreground",
		{ .terminal = { true, true, true },
			.group = { UNSEEN_GROUP, UNSEEN_GROUP, UNSEEN_GROUP } },
		false, false },
};

static void test_terminals(void **state)
{
	const struct terminal_row *row = *state;
	const struct given nothing = { 0 };
	struct settings_fixture b;
	struct facts f = { 0 };
	int rc;

	settings_fixture_make(&b, false);
	played = row->played;
	rc = read_facts(&b, &nothing, false, &f);
	played = (struct played){ .parent = 0 };
	assert_outcome(rc, 0, &b.why, NULL);
	assert_memory_equal(f.terminal, row->played.terminal, sizeof f.terminal);
	assert_int_equal(f.foreground, row->foreground);
	assert_int_equal(f.background, row->background);
	settings_fixture_done(&b);
}

/* A UUID of version 4. */
static void test_random_id(void **state)
{
	const struct given standalone = { SET_STANDALONE, "1", NULL };
	struct settings_fixture b;
	struct facts f = { 0 };

	(void)state;
	settings_fixture_make(&b, false);
	assert_outcome(read_facts(&b, &standalone, false, &f), 0, &b.why, NULL);
	assert_string_equal(f.random_id, "f0f1f2f3-f4f5-46f7-b8f9-fafbfcfdfeff");
	settings_fixture_done(&b);
}

static const struct systemd_row {
	const char *says, *pid; /* pid: with that added to ours for '%' */
	int added;
	bool by_systemd;
} systemd[] = {
	{ "systemd started this process", "%", 0, true },
	{ "it started another one, which started this", "%", 1, false },
	{ "what systemd never writes", "%x", 0, false },
	{ "an empty pid", "", 0, false },
};

static void test_systemd(void **state)
{
	const struct systemd_row *row = *state;
	char variable[64] = "SYSTEMD_EXEC_PID=";
	const struct given given = { 0, NULL, variable };
	struct settings_fixture b;
	struct facts f = { 0 };

	if (row->pid[0] == '%')
		(void)snprintf(variable, sizeof variable, "SYSTEMD_EXEC_PID=%d%s",
			(int)getpid() + row->added, row->pid + 1);
	settings_fixture_make(&b, false);
	assert_outcome(read_facts(&b, &given, false, &f), 0, &b.why, NULL);
	assert_int_equal(f.under_systemd, row->by_systemd);
	settings_fixture_done(&b);
}

/* Before v248 it didn't say which: its services are children of process 1. */
static const struct old_systemd_row {
	const char *says, *variable;
	pid_t parent;
	bool by_systemd;
} old_systemd[] = {
	{ "an older systemd's service", "INVOCATION_ID=abc", 1, true },
	{ "a process of one", "INVOCATION_ID=abc", 2, false },
	{ "a daemon that is none", "A=b", 1, false },
};

static void test_old_systemd(void **state)
{
	const struct old_systemd_row *row = *state;
	const struct given given = { 0, NULL, row->variable };
	struct settings_fixture b;
	struct facts f = { 0 };
	int rc;

	settings_fixture_make(&b, false);
	played.parent = row->parent;
	rc = read_facts(&b, &given, false, &f);
	played.parent = 0;
	assert_outcome(rc, 0, &b.why, NULL);
	assert_int_equal(f.under_systemd, row->by_systemd);
	settings_fixture_done(&b);
}

static const struct bound_row {
	const char *says, *variable;
	bool unbound;
} bindings[] = {
	{ "a binding by Open MPI is taken off", "OMPI_MCA_orte_bound_at_launch=1", true },
	{ "a binding by PRRTE, too", "PRTE_LAUNCHED=1", true },
	{ "Open MPI says that it has bound nothing", "OMPI_MCA_orte_bound_at_launch=0", false },
	{ "a binding by others stays", "SLURM_CPU_BIND=cores", false },
};

static void test_bound(void **state)
{
	const struct bound_row *row = *state;
	const struct given given = { 0, NULL, row->variable };
	cpu_set_t before, one, after;
	struct settings_fixture b;
	struct facts f = { 0 }, again = { 0 };
	size_t first = 0;
	int rc;

	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	needs(CPU_COUNT(&before) > 1, "two CPUs");
	while (!CPU_ISSET(first, &before))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	settings_fixture_make(&b, false);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	rc = read_facts(&b, &given, false, &f);
	if (rc == 0) /* nothing is left to take off */
		rc = read_facts(&b, &given, false, &again);
	assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
	assert_outcome(rc, 0, &b.why, NULL);
	assert_int_equal(f.cpus, CPU_COUNT(&after));
	assert_int_equal(f.cpus_unbound, row->unbound);
	assert_int_equal(f.cpus > 1, row->unbound);
	assert_int_equal(again.cpus, f.cpus);
	assert_false(again.cpus_unbound);
	settings_fixture_done(&b);
}

/* A container's seccomp rules may refuse it. */
static void test_stays_bound(void **state)
{
	const struct given given = { 0, NULL, "PRTE_LAUNCHED=1" };
	cpu_set_t mine;
	struct settings_fixture b;
	struct facts f = { 0 };
	int rc;

	(void)state;
	settings_fixture_make(&b, false);
	asked.fails = true;
	rc = read_facts(&b, &given, false, &f);
	asked.fails = false;
	assert_outcome(rc, 0, &b.why, NULL);
	assert_int_equal(f.cpus_error, EPERM);
	assert_false(f.cpus_unbound);
	assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
	assert_int_equal(f.cpus, CPU_COUNT(&mine));
	settings_fixture_done(&b);
}

TESTS(facts)
{
	static struct suite s;

	SUITE_ROWS(&s, test_asks, asks);
	suite_add(&s, "what GPUs are called is asked for names only", test_ids, NULL, NULL);
	SUITE_ROWS(&s, test_fails, failures);
	suite_add(&s, "the machine's name and CPUs", test_machine, NULL, NULL);
	suite_add(&s, "--standalone has a random id", test_random_id, NULL, NULL);
	SUITE_ROWS(&s, test_terminals, terminals);
	SUITE_ROWS(&s, test_systemd, systemd);
	SUITE_ROWS(&s, test_old_systemd, old_systemd);
	SUITE_ROWS(&s, test_bound, bindings);
	suite_add(&s, "a binding that can't be taken off is no failure", test_stays_bound, NULL,
		NULL);
	return suite_run(&s);
}
