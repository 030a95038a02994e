/* facts.c - see facts.h */
#include "daemon/facts/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/num.h"
#include "config/settings.h"
#include "daemon/facts/allowance.h"
#include "daemon/facts/interfaces.h"
#include "daemon/facts/machine.h"
#include "daemon/facts/machine_read.h"
#include "daemon/facts/torch.h"
#include "daemon/launchers/launchers.h"
#include "daemon/os/rehearsal.h"
#include "daemon/os/secret.h"

/* More CPUs than any kernel of today is built for (CONFIG_NR_CPUS is at most 8192). */
enum { CPUS_MAX = 16384 };

/* Takes off the CPU binding of mpirun: by default it binds a process to one core (two processes)
 * or one socket, which workers would share. The kernel cuts the mask to what the cpuset allows. */
static int cpus_read(
	const struct settings *s, const char *const *env, struct facts *f, struct failure *why)
{
	static cpu_set_t before[CPUS_MAX / CPU_SETSIZE], all[CPUS_MAX / CPU_SETSIZE];
	const char *name = launcher_of(env)->bound, *bound = name ? env_value(env, name) : NULL;
	bool by_mpirun = bound && strcmp(bound, "0") != 0;

	if (sched_getaffinity(0, sizeof before, before) < 0)
		return failure_set(why, -EIO, "sched_getaffinity: %s", strerror(errno));
	f->cpus = (unsigned)CPU_COUNT_S(sizeof before, before);
	f->cpus_online = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	if (!by_mpirun || settings_flag(s, SET_PER_PROCESS)) /* the binding is the rank's own */
		return 0;
	memset(all, 0xff, sizeof all);
	if (sched_setaffinity(0, sizeof all, all) < 0) {
		f->cpus_error = errno; /* a container's seccomp rules: the workers can do with it */
		return 0;
	}
	if (sched_getaffinity(0, sizeof all, all) < 0)
		return failure_set(why, -EIO, "sched_getaffinity: %s", strerror(errno));
	f->cpus_unbound = (unsigned)CPU_COUNT_S(sizeof all, all) > f->cpus;
	f->cpus = (unsigned)CPU_COUNT_S(sizeof all, all);
	return 0;
}

/* Looked at before we have any of that number ourselves. Behind a variable that was inherited there
 * may be any file. */
static int pmi_fd_read(const char *const *env)
{
	const char *text = env_get(env, "PMI_FD");
	struct stat st;
	uint64_t fd;

	return text && num_parse(text, 3, INT_MAX, &fd) == 0 && fstat((int)fd, &st) == 0 &&
			S_ISSOCK(st.st_mode) ?
		(int)fd :
		0;
}

/* The file has a line for each process, one host after the other. It is for a warning only, so what
 * is no file of a sensible size is left alone. */
static int allocated_nodes_read(const char *const *env, unsigned *ret, struct failure *why)
{
	enum { ENOUGH_BYTES = 1 << 20 };
	const struct launcher *allocation = allocation_of(env);
	const char *path =
		allocation && allocation->hostfile ? env_value(env, allocation->hostfile) : NULL;
	bool counts = path && launcher_of(env)->kind != LAUNCHER_TASK;
	int rc = counts ? path_answers(allocation->hostfile, path, why) : 0;
	int fd = counts && rc == 0 ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	char line[512], last[sizeof line] = "";
	struct stat st;

	*ret = 0;
	if (!file) {
		fd_closep(&fd);
		return rc;
	}
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < ENOUGH_BYTES)
		while (fgets(line, sizeof line, file)) {
			*ret += strcmp(line, last) != 0;
			memcpy(last, line, sizeof last);
		}
	(void)fclose(file);
	return 0;
}

/* NULL: /proc doesn't say; then names alone tell hosts apart. */
static const char *boot_id_read(struct arena *arena)
{
	autoclose fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof text);

	return len > 0 ? arena_strndup(arena, text, (size_t)len) : NULL;
}

static int addresses_read(struct arena *arena, struct facts *f, struct failure *why)
{
	struct interfaces all;
	int rc = interfaces_read(arena, &all, why);

	for (size_t i = 0; rc == 0 && i < all.count; i++)
		vec_add(arena, &f->addresses, all.at[i].address);
	return rc;
}

/* systemd says which process it executed since v248; before, a service is a child of pid 1. */
static bool by_systemd(const char *const *env)
{
	const char *pid = env_get(env, "SYSTEMD_EXEC_PID");
	uint64_t n;

	if (pid)
		return num_parse(pid, 1, INT32_MAX, &n) == 0 && n == (uint64_t)getpid();
	return env_get(env, "INVOCATION_ID") && getppid() == 1;
}

/* Whether stderr is the journal's stream: "device:inode", systemd.exec(5). A stderr that was led
 * elsewhere since has other numbers. */
static bool by_journal(const char *const *env)
{
	const char *text = env_get(env, "JOURNAL_STREAM");
	const char *colon = text ? strchr(text, ':') : NULL;
	uint64_t device, inode;
	struct stat st;

	return colon && num_parse_len(text, (size_t)(colon - text), 0, UINT64_MAX, &device) == 0 &&
		num_parse(colon + 1, 0, UINT64_MAX, &inode) == 0 &&
		fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* A UUID of version 4, RFC 9562. */
static int random_id_read(struct arena *arena, struct facts *f, struct failure *why)
{
	unsigned char b[16];
	int rc = secret_draw(b, sizeof b, why);

	if (rc < 0)
		return rc;
	b[6] = (unsigned char)(0x40 | (b[6] & 0x0f));
	b[8] = (unsigned char)(0x80 | (b[8] & 0x3f));
	f->random_id = arena_printf(arena,
		"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
		b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
		b[15]);
	return 0;
}

/* Which torch the workers would import: from files, a dozen system calls on the file server that
 * has the packages. A script in the interpreter's place is asked if it decides who hosts the store.
 */
static void torch_find(
	const struct settings *s, const char *const *env, struct arena *arena, struct facts *f)
{
	bool asks = settings_given(s, SET_STORE) ? settings_is(s, SET_STORE, "agent") :
						   !program_needs_port(s, env, &f->program);

	if (settings_flag(s, SET_NO_PYTHON))
		return;
	f->torch_version = torch_version_read(env, f->program.path, arena);
	if (!f->torch_version && asks)
		f->torch_version =
			torch_version_ask(env, f->program.path, arena, &f->torch_unknown);
}

/* 0 is a group that this pid namespace does not show. */
static bool is_background(void)
{
	pid_t group = tcgetpgrp(STDIN_FILENO);

	return group > 0 && group != getpgrp();
}

/* Containers may have IPv6 alone, and a new network namespace neither of the two. */
static enum loopback loopback_read(void)
{
	static const struct {
		const char *address;
		enum loopback is;
	} rows[] = { { "127.0.0.1", LOOPBACK_V4 }, { "::1", LOOPBACK_V6 } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct address a;
		autoclose fd = -1;

		if (address_parse(rows[i].address, 9, &a) < 0)
			continue;
		/* sends nothing; bind(2) succeeds where lo is down */
		fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, &a.any, address_size(&a)) == 0)
			return rows[i].is;
	}
	return LOOPBACK_NONE;
}

/* By hwloc, after mpirun's mask is off. */
static int parts_read(
	const struct settings *s, struct arena *arena, struct facts *f, struct failure *why)
{
	struct failure missing = { 0 };
	const char *asked = machine_is_needed(s);
	struct machine *m = asked ? arena_alloc(arena, sizeof *m) : NULL;

	if (!asked)
		return 0;
	if (!m)
		return failure_oom(why);
	f->machine = m;
	return machine_read(machine_devices_are_needed(s), arena, m, &missing) < 0 ?
		failure_set(why, missing.code, "%s: %s", asked, missing.text) :
		0;
}

static bool has_gpus_of(const struct machine *m, enum gpu_maker maker)
{
	for (size_t i = 0; m && i < m->gpu_count; i++)
		if (m->gpus[i].maker == maker)
			return true;
	return false;
}

/* Where somebody counts GPUs, chooses some, or wants to know where they are. */
static bool gpus_are_wanted(const struct settings *s, const struct machine *m)
{
	return settings_is(s, SET_NPROC_PER_NODE, "gpu") ||
		settings_is(s, SET_NPROC_PER_NODE, "auto") ||
		strcmp(settings_text(s, SET_GPUS), "all") != 0 ||
		settings_given(s, SET_GPUS_PER_WORKER) ||
		!settings_is(s, SET_VISIBLE_DEVICES, "keep") ||
		(settings_flag(s, SET_VIRTUAL_LOCAL_RANK) && settings_flag(s, SET_SHARE_GPUS)) ||
		has_gpus_of(m, GPU_NVIDIA);
}

/* Names and addresses tell which of the machine's a number means: in a container there are fewer.
 */
static int gpus_find(
	const struct settings *s, struct arena *arena, struct facts *f, struct failure *why)
{
	const char *list = settings_text(s, SET_GPUS);
	bool by_name = strstr(list, "GPU-") || strstr(list, "MIG-");
	struct machine *m = f->machine;

	if (gpus_are_wanted(s, m) &&
		gpus_read(by_name || m, GPUS_LIMIT_MS, arena, &f->gpus, why) < 0)
		return why->code;
	if (!m)
		return 0;
	gpus_name(&f->gpus, m);
	if (m->gpu_count > 0 && !f->gpus.known)
		f->gpus.maker = m->gpus[0].maker;
	return 0;
}

/* A shell with job control gives each command a process group of its own and puts it into the
 * terminal's foreground. A script has neither, and timeout(1) in it has only the former. */
static bool is_typed(const char *const *env)
{
	const char *name = launcher_of(env)->task_pid, *text = name ? env_get(env, name) : NULL;
	pid_t group = getpgrp();
	uint64_t pid;

	if (!text || num_parse(text, 2, INT32_MAX, &pid) < 0)
		return false;
	return getsid((pid_t)pid) == getsid(0) && getpgid((pid_t)pid) != group &&
		(tcgetpgrp(STDIN_FILENO) == group || tcgetpgrp(STDERR_FILENO) == group);
}

int facts_read_machine(const struct settings *s, const char *const *env, struct arena *arena,
	struct facts *ret, struct failure *why)
{
	struct facts f = { .env = env, .random_id = "" };
	const char *master = env_get(env, "MASTER_ADDR");
	bool needs_addresses = (master && *master) || listed_nodes_given(s) ||
		settings_flag(s, SET_PER_PROCESS) || settings_is(s, SET_MPI_ENV, "keep");
	char hostname[256];

	if (gethostname(hostname, sizeof hostname) < 0)
		return failure_set(why, -EIO, "gethostname: %s", strerror(errno));
	hostname[sizeof hostname - 1] = '\0';
	f.hostname = arena_strdup(arena, hostname);
	for (int fd = 0; fd < 3; fd++)
		f.terminal[fd] = isatty(fd) == 1;
	f.background = is_background();
	f.foreground = tcgetpgrp(STDERR_FILENO) == getpgrp();
	f.typed = is_typed(env);
	f.under_systemd = by_systemd(env);
	f.stderr_is_journal = by_journal(env);
	f.proc = proc_look();
	f.parent = getppid();
	f.loopback = loopback_read();
	f.pmi_fd = pmi_fd_read(env);
	f.task = pmix_task_read(env, arena);
	if (settings_flag(s, SET_PER_PROCESS))
		f.boot_id = boot_id_read(arena);
	if (allocated_nodes_read(env, &f.allocated_nodes, why) < 0 ||
		cpus_read(s, env, &f, why) < 0 || parts_read(s, arena, &f, why) < 0 ||
		gpus_find(s, arena, &f, why) < 0 ||
		(needs_addresses && addresses_read(arena, &f, why) < 0) ||
		(listed_nodes_given(s) &&
			listed_nodes_read(s, f.hostname, &f.addresses, arena, &f.listed, why) <
				0) ||
		(settings_flag(s, SET_STANDALONE) && random_id_read(arena, &f, why) < 0))
		return why->code;
	*ret = f;
	return arena_failed(arena) ? failure_oom(why) : 0;
}

/* It is needed on each node. */
static int command_find(const struct settings *s, enum setting_id id, const char *const *env,
	struct arena *arena, struct wrapper *ret, struct failure *why)
{
	int rc = wrapper_find(s, id, env, arena, ret, why);

	if (rc == 0 && ret->why.code < 0)
		rc = failure_copy(why, &ret->why);
	return rc;
}

struct programs {
	struct program program;
	struct wrapper wrapper, watch, post;
};

static int programs_find(const struct settings *s, const char *const *env, struct arena *arena,
	struct programs *ret, struct failure *why)
{
	if (!failure_go_on(program_find(s, env, arena, &ret->program, why), why) ||
		!failure_go_on(wrapper_find(s, SET_WRAP, env, arena, &ret->wrapper, why), why) ||
		!failure_go_on(
			command_find(s, SET_PREEMPT_WATCH, env, arena, &ret->watch, why), why) ||
		!failure_go_on(command_find(s, SET_POST_ATTEMPT, env, arena, &ret->post, why), why))
		return why->code;
	return 0;
}

struct programs_source {
	const struct settings *s;
	const char *const *env;
	struct arena *arena;
};

static void programs_rehearse(const void *how)
{
	const struct programs_source *f = how;
	struct failure ignored = { 0 };
	struct programs p;

	if (programs_find(f->s, f->env, f->arena, &p, &ignored) == 0 &&
		!settings_flag(f->s, SET_NO_PYTHON))
		(void)torch_version_read(f->env, p.program.path, f->arena);
}

int facts_read(const struct settings *s, const char *const *env, struct arena *arena,
	struct facts *ret, struct failure *why)
{
	const struct programs_source from = { s, env, arena };
	struct programs p;
	struct facts f;

	if ((program_is_far(s, env, arena) && rehearse(programs_rehearse, &from, why) < 0) ||
		programs_find(s, env, arena, &p, why) < 0 ||
		!failure_go_on(allowance_check(s, why), why) ||
		facts_read_machine(s, env, arena, &f, why) < 0)
		return why->code;
	f.program = p.program;
	f.wrapper = p.wrapper;
	f.preempt_watch = p.watch;
	f.post_attempt = p.post;
	if (!p.program.path)
		f.program.path =
			s->script; /* it was refused, and the plan is no good: see why->all */
	else
		torch_find(s, env, arena, &f);
	*ret = f;
	return arena_failed(arena) ? failure_oom(why) : 0;
}
