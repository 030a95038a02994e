/* head_node.c - see head_node.h
 *
 * All options are those that Open MPI 4 and 5 have in common. Hosts are given one by one, whatever
 * file they are from, because mpirun reads neither HOST:N nor brackets in a host file. The
 * exception is a user or a port: mpirun takes it from a host file alone. */
#include "daemon/plan/head_node.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/name.h"
#include "common/text.h"
#include "config/hosts.h"
#include "config/reaction.h"
#include "config/settings.h"
#include "daemon/launchers/launchers.h"
#include "daemon/plan/scrub.h"
#include "daemon/plan/topology.h"

#define ENV_LIST       "OMPI_MCA_mca_base_env_list"
#define KILL_PARAMETER "odls_base_sigkill_timeout"

enum { HOSTS_BYTES = 64 << 10 }; /* of one --host: the kernel takes 128 KiB for a word */

bool head_node_given(const struct settings *s)
{
	return settings_given(s, SET_MPIRUN_HOSTS) || settings_given(s, SET_MPIRUN_HOSTFILE);
}

static const char *asked_by(const struct settings *s)
{
	return settings_where(
		s, settings_given(s, SET_MPIRUN_HOSTS) ? SET_MPIRUN_HOSTS : SET_MPIRUN_HOSTFILE);
}

/* By the user; the system's file has defaults for every job. */
static bool is_given(const struct settings *s, enum setting_id id)
{
	return s->value[id].from.level > LEVEL_SYSTEM_FILE;
}

int head_node_check(const struct head_facts *f, struct failure *why)
{
	static const struct {
		enum setting_id id;
		const char *because;
	} others[] = {
		{ SET_STANDALONE, "runs a job on this node alone" },
		{ SET_PER_PROCESS,
			"needs a launcher for each worker, and mpirun starts one on "
			"each node" },
		{ SET_NODE_RANK, "is one node's, and mpirun tells each node its own" },
		{ SET_CLUSTER_NODES, "lists the nodes, too" },
		{ SET_CLUSTER_HOSTFILE, "lists the nodes, too" },
		{ SET_LOCAL_ADDR, "is one node's, and all nodes would get it" },
	};
	const struct settings *s = f->s;
	const struct launcher *launcher = launcher_of(f->env);
	const char *asked = asked_by(s);

	if (launcher->kind == LAUNCHER_TASK)
		return failure_usage(why,
			"%s runs mpirun, but %s has started this process already: leave %s out, or run "
			"this command without %s",
			asked, launcher->name, asked, launcher->name);
	if (settings_given(s, SET_MPIRUN_HOSTS) && settings_given(s, SET_MPIRUN_HOSTFILE))
		return failure_usage(why, "%s and %s both list the nodes: leave one of them out",
			settings_where(s, SET_MPIRUN_HOSTS),
			settings_where(s, SET_MPIRUN_HOSTFILE));
	if (env_get(f->env, ENV_LIST))
		return failure_usage(why,
			"%s hands all variables over by mpirun's -x, which mpirun refuses beside " ENV_LIST
			": unset that",
			asked);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (is_given(s, others[i].id) &&
			(others[i].id != SET_STANDALONE || settings_flag(s, SET_STANDALONE)))
			return failure_usage(why, "%s and %s are mutually exclusive: %s %s", asked,
				settings_label(s, others[i].id), settings_label(s, others[i].id),
				others[i].because);
	return 0;
}

/* A host with a user or a port, so that mpirun must read the file itself; or NULL. */
static const struct host *find_login(const struct hosts *hosts)
{
	for (size_t i = 0; i < hosts->count; i++)
		if (hosts->at[i].login)
			return &hosts->at[i];
	return NULL;
}

/* Whether mpirun can read such a file, and needs nothing but it. */
static int check_login(const struct head_facts *f, struct failure *why)
{
	const struct hosts *hosts = f->hosts;
	const struct host *login = find_login(hosts);

	if (login && hosts->is_wider)
		return failure_usage(why,
			"%s: mpirun takes the user or port of %s from Open MPI's kind of file alone, "
			"and this one has more (HOST:N, user=, brackets, ^HOST, a comma or Windows line "
			"ends): write lines USER@HOST slots=N, or put the user into ~/.ssh/config",
			login->where, login->name);
	for (size_t i = 1; login && i < hosts->count; i++)
		if (hosts->at[i].slots != hosts->at[0].slots &&
			!settings_given(f->s, SET_NPROC_PER_NODE))
			return failure_usage(why,
				"%s: mpirun takes the user or port of %s for hosts that all have the "
				"same number of workers alone, but %s has slots=%u and %s slots=%u: "
				"give --nproc_per_node, or put the user into ~/.ssh/config",
				login->where, login->name, hosts->at[0].name, hosts->at[0].slots,
				hosts->at[i].name, hosts->at[i].slots);
	return 0;
}

/* What the hosts must be for mpirun and for the settings. */
static int check_hosts(const struct head_facts *f, struct failure *why)
{
	const struct settings *s = f->s;
	const struct hosts *hosts = f->hosts;
	uint64_t nproc = settings_number(s, SET_NPROC_PER_NODE);

	if (is_given(s, SET_NNODES) && settings_number(s, SET_NNODES) != hosts->count)
		return failure_usage(why,
			"%s says %llu, but %s lists %zu node%s: leave out the one that is wrong",
			settings_where(s, SET_NNODES),
			(unsigned long long)settings_number(s, SET_NNODES), f->hosts_from,
			hosts->count, hosts->count == 1 ? "" : "s");
	for (size_t i = 0; i < hosts->count; i++) {
		const struct host *h = &hosts->at[i];

		if (h->is_address && strchr(h->name, ':'))
			return failure_usage(why,
				"%s: mpirun takes no IPv6 addresses such as %s: give the host's name",
				h->where, h->name);
		if (settings_given(s, SET_NPROC_PER_NODE) && h->max_slots && nproc > h->max_slots)
			return failure_usage(why,
				"%s: %s has max_slots=%u, but %s says %llu workers", h->where,
				h->name, h->max_slots, settings_where(s, SET_NPROC_PER_NODE),
				(unsigned long long)nproc);
	}
	return check_login(f, why);
}

/* A lone ":" begins another program for mpirun, wherever it stands. */
static int check_words(const struct vec *words, struct failure *why)
{
	for (size_t i = 0; i < words->count; i++)
		if (strcmp(words->at[i], ":") == 0)
			return failure_usage(why,
				"the argument \":\" would divide mpirun's command line: put the "
				"script's arguments into a file of --config (args = WORDS)");
	return 0;
}

/* mpirun's time between SIGTERM and SIGKILL, where the user has asked for one of the workers: the
 * price of a longer one is that mpirun returns later. One second is for launchd's last acts. */
static int decide_kill(const struct head_facts *f, struct head_plan *p, struct failure *why)
{
	const struct settings *s = f->s;
	struct reactions reactions;
	const struct reaction *term = &reactions.of[SIGTERM];
	bool of_signal;

	if (reactions_make(s, &reactions, why) < 0)
		return why->code;
	of_signal = term->grace_ms != settings_number(s, SET_SHUTDOWN_TIMEOUT);
	if (!reaction_ends(term) || (!of_signal && !settings_given(s, SET_SHUTDOWN_TIMEOUT)) ||
		env_get(f->env, "OMPI_MCA_" KILL_PARAMETER))
		return 0;
	p->kill_s = (term->grace_ms + 999) / 1000 + 1;
	p->kill_from = settings_where(s, of_signal ? SET_ON_SIGNAL : SET_SHUTDOWN_TIMEOUT);
	return 0;
}

bool head_node_exports(const char *name, size_t len)
{
	/* what is another's on another host: the login, the place, the rank */
	static const char *const own[] = { "HOME", "USER", "LOGNAME", "SHELL", "MAIL", "HOSTNAME",
		"HOST", "PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", "TERM", "TERM_*", "COLUMNS",
		"LINES", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "SSH_*", "SUDO_*", "XDG_*",
		"DBUS_*", "TMUX*", "STY", "POD_*", "AZ_BATCH_NODE_*",
		"AZ_BATCH_IS_CURRENT_NODE_MASTER", "OMPI_*", "RANK", "LOCAL_RANK", "WORLD_SIZE",
		"LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
		"ROLE_NAME", "ROLE_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
		"TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_ERROR_FILE",
		"TORCHELASTIC_USE_AGENT_STORE", "JOB_COMPLETION_INDEX" };
	const char *why;

	if (!name_is_identifier(name, len)) /* a shell's function */
		return false;
	if (name_matches(SETTING_KEY_VARIABLE, name, len)) /* the launchers' own, and no worker's */
		return true;
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (name_matches(own[i], name, len))
			return false;
	return scrub_of(name, len, MPI_ENV_SCRUB, &why) == SCRUB_PASS &&
		scrub_of_service(name, len, true, &why) == SCRUB_PASS;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names, so that one environment always makes the same command. */
static void find_exported(const char *const *env, struct arena *arena, struct vec *ret)
{
	for (; *env; env++) {
		size_t len = env_name_length(*env);

		if ((*env)[len] == '=' && head_node_exports(*env, len))
			vec_add(arena, ret, arena_strndup(arena, *env, len));
	}
	if (ret->count > 0)
		qsort(ret->at, ret->count, sizeof *ret->at, by_name);
}

/* A name with a domain stays whole: mpirun would cut it off, and take n0.a and n0.b for one host.
 * Open MPI 4 knows the first of these parameters, 5 the second; neither minds the other. */
static void keep_domains(const struct hosts *hosts, struct arena *arena, struct vec *argv)
{
	for (size_t i = 0; i < hosts->count; i++)
		if (!hosts->at[i].is_address && strchr(hosts->at[i].name, '.')) {
			vec_add_all(arena, argv,
				(const char *const[]){ "--mca", "orte_keep_fqdn_hostnames", "1",
					"--mca", "prte_keep_fqdn_hostnames", "1", NULL });
			return;
		}
}

/* "--host n0:1,n1:1": one launcher each, however many slots there are. */
static int add_hosts(const struct host *at, const struct host *end, struct arena *arena,
	struct vec *argv, struct failure *why)
{
	struct text list = { 0 };
	bool failed;

	for (; at < end; at++) {
		text_printf(&list, "%s%s:1", list.len ? "," : "", at->name);
		if (at + 1 < end && list.len < HOSTS_BYTES)
			continue;
		vec_add(arena, argv, "--host");
		vec_add(arena, argv, arena_strdup(arena, text_string(&list)));
		text_drop(&list, list.len);
	}
	failed = list.failed;
	text_done(&list);
	return failed ? failure_oom(why) : 0;
}

/* The launchers of hosts that have the same number of workers: what mpirun calls an application. */
static int add_application(const struct head_facts *f, const struct host *at,
	const struct host *end, const struct vec *exported, struct arena *arena,
	struct head_plan *p, struct failure *why)
{
	struct vec *argv = &p->argv;

	vec_add(arena, argv, "-n");
	vec_add(arena, argv, arena_printf(arena, "%zu", (size_t)(end - at)));
	if (find_login(f->hosts))
		vec_add_all(
			arena, argv, (const char *const[]){ "--hostfile", f->hosts_from, NULL });
	else if (add_hosts(at, end, arena, argv, why) < 0)
		return why->code;
	for (size_t i = 0; i < exported->count; i++) {
		vec_add(arena, argv, "-x");
		vec_add(arena, argv, exported->at[i]);
	}
	vec_add(arena, argv, f->self);
	if (p->slots)
		vec_add(arena, argv, arena_printf(arena, "--nproc_per_node=%u", at->slots));
	vec_add_all(arena, argv, f->words->at);
	return 0;
}

int head_node_make(
	const struct head_facts *f, struct arena *arena, struct head_plan *ret, struct failure *why)
{
	const struct host *at = f->hosts->at, *end = at + f->hosts->count;
	struct head_plan p = { .slots =
				       at->slots > 0 && !settings_given(f->s, SET_NPROC_PER_NODE) };
	struct vec exported = { 0 };

	if (head_node_check(f, why) < 0 || check_hosts(f, why) < 0 ||
		check_words(f->words, why) < 0 || decide_kill(f, &p, why) < 0)
		return why->code;
	find_exported(f->env, arena, &exported);
	vec_add(arena, &p.argv, f->mpirun);
	if (f->root)
		vec_add(arena, &p.argv, "--allow-run-as-root");
	vec_add_all(arena, &p.argv,
		(const char *const[]){ "--map-by", "ppr:1:node", "--bind-to", "none", NULL });
	if (p.kill_from)
		vec_add_all(arena, &p.argv,
			(const char *const[]){ "--mca", KILL_PARAMETER,
				arena_printf(arena, "%llu", (unsigned long long)p.kill_s), NULL });
	keep_domains(f->hosts, arena, &p.argv);
	while (at < end) {
		const struct host *next = at + 1;

		while (next < end && (!p.slots || next->slots == at->slots))
			next++;
		if (at > f->hosts->at)
			vec_add(arena, &p.argv, ":");
		if (add_application(f, at, next, &exported, arena, &p, why) < 0)
			return why->code;
		at = next;
	}
	if (arena_failed(arena))
		return failure_oom(why);
	*ret = p;
	return 0;
}
