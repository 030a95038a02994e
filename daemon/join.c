/* join.c - see join.h */
#include "daemon/join.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/cluster/config.h"
#include "daemon/facts/facts.h"
#include "daemon/facts/interfaces.h"
#include "daemon/launchers/launchers.h"
#include "daemon/meet/reachable.h"
#include "daemon/os/port.h"
#include "daemon/os/rehearsal.h"
#include "daemon/os/secret.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/topology.h"
#include "daemon/store/dialect.h"

bool join_tells_master(
	const struct settings *s, const struct facts *facts, const struct topology *t)
{
	return t->identity.nnodes > 1 && !settings_is(s, SET_CONTROL, "off") &&
		!settings_given(s, SET_ONLY_RANK) && exchange_of(s, facts, t) != EXCHANGE_NONE;
}

/* A job of which one rank only is started here, to debug it, has nobody to meet. */
static enum way_to_meet way_of(const struct settings *s, const struct topology *t)
{
	if (settings_given(s, SET_ONLY_RANK))
		return MEET_NOBODY;
	switch (t->control.how) {
	case CONTROL_NONE:
		return MEET_NOBODY;
	case CONTROL_STATIC:
		return MEET_STATIC;
	case CONTROL_EXCHANGE:
		return MEET_EXCHANGE;
	}
	__builtin_unreachable();
}

/* How workers talk to the store; torch since 2.2 says so itself. */
static enum store_dialect dialect_of(const char *torch_version)
{
	enum store_dialect old = STORE_DIALECT_NONE;

	if (torch_version)
		(void)store_dialect_of(torch_version, &old); /* the plan has looked */
	return old;
}

static enum store_wish wish_of(const struct settings *s, const struct plan *plan)
{
	if (!settings_given(s, SET_STORE))
		return STORE_WISH_NONE;
	return plan->store == STORE_AGENT ? STORE_WISH_AGENT : STORE_WISH_RANK0;
}

/* A list's name for the first node may mean nothing on the others. Where nodes tell one another
 * their addresses, workers get the one by which they came. NULL: that one. */
static const char *master_of(const struct topology *t)
{
	struct address a;
	bool is_name = t->master.addr && address_parse(t->master.addr, 0, &a) < 0;

	return is_name && t->master.by_list && t->control.how == CONTROL_EXCHANGE ? NULL :
										    t->master.addr;
}

static int read_key(const struct settings *s, const struct facts *facts, struct job_key *ret,
	struct failure *why)
{
	const struct key_sources sources = {
		.file = settings_text(s, SET_KEY_FILE),
		.file_where = settings_where(s, SET_KEY_FILE),
		.text = env_get(facts->env, SETTING_KEY_VARIABLE),
	};

	return key_read(&sources, ret, why);
}

/* A launcher that meets nobody needs no key, and does not read it; that its file is not there would
 * show on several nodes only. */
static int note_idle_key(const struct settings *s, struct notes *notes, struct failure *why)
{
	const char *file = settings_text(s, SET_KEY_FILE);
	const char *where = settings_where(s, SET_KEY_FILE);

	if (s->value[SET_KEY_FILE].from.level <= LEVEL_SYSTEM_FILE)
		return 0;
	if (path_answers(where, file, why) < 0)
		return why->code;
	if (access(file, R_OK) < 0)
		notes_add(notes, NOTE_WARNING,
			"%s: %s: %s; it has no effect here, as this launcher meets no other", where,
			file, strerror(errno));
	return 0;
}

/* Which setting to change where the launchers' port is taken. */
static const char *port_from(const struct settings *s, const struct topology *t)
{
	if (t->control.port_given)
		return settings_where(s, SET_CONTROL_PORT);
	return t->master.meet_port ? t->master.meet_from : "master port + 1";
}

/* What --local-addr means. A name is looked up before anything runs, so that may take its time. */
static void look_up(const char *name, struct arena *arena, struct reachable_wish *wish)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct address ignored;
	struct addrinfo *list;
	char text[ADDRESS_TEXT];
	int rc;

	wish->local_addr = name;
	if (address_parse(name, 0, &ignored) == 0) {
		vec_add(arena, &wish->meant, name);
		return;
	}
	rc = getaddrinfo(name, NULL, &hints, &list);
	if (rc != 0) {
		wish->local_unknown = gai_strerror(rc);
		return;
	}
	for (const struct addrinfo *a = list; a && !arena_failed(arena); a = a->ai_next) {
		struct address one = address_of(a->ai_addr);
		const char *copy;

		address_host_text(&one, text);
		copy = arena_strdup(arena, text);
		if (copy)
			vec_add(arena, &wish->meant, copy);
	}
	freeaddrinfo(list);
}

/* The job's name, where the user gave one: the default is every job's. */
static const char *run_id_of(const struct settings *s)
{
	const char *id = settings_text(s, SET_RDZV_ID);

	return strcmp(id, setting_rows[SET_RDZV_ID].by_default) != 0 ? id : NULL;
}

/* Where this node is, and where others may reach it. */
static int find_addresses(const struct settings *s, struct member_config *c, struct failure *why)
{
	struct reachable_wish wish = {
		.local_where = settings_where(s, SET_LOCAL_ADDR),
		.interfaces = settings_text(s, SET_INTERFACE),
		.where = settings_where(s, SET_INTERFACE),
		.one_host = true, /* loopback comes last, where nothing else is there */
	};
	struct interfaces all;
	const char *own;
	int rc = interfaces_read(s->arena, &all, why);

	for (size_t i = 0; rc == 0 && i < all.count; i++)
		vec_add(s->arena, &c->local, all.at[i].address);
	if (rc == 0 && c->own_addr)
		rc = address_check(wish.local_where, c->own_addr, s->arena, &own, why);
	if (rc == 0 && c->own_addr)
		look_up(own, s->arena, &wish);
	return rc < 0 ? rc : reachable_choose(&all, &wish, s->arena, &c->addresses, why);
}

/* Why no job starts without a channel; NULL: it does. */
static const char *required_by(const struct settings *s, const struct topology *t)
{
	if (!t->control.required)
		return NULL;
	return settings_given(s, SET_CONTROL) ?
		"--control required" :
		"--control required, the default; --control-port sets the launchers' port, and with --control auto workers start without the others";
}

/* --local-addr; NULL: none. */
static const char *own_addr(const struct settings *s)
{
	const char *text = settings_text(s, SET_LOCAL_ADDR);

	return text && *text ? text : NULL;
}

/* What the others are told of this launcher. Several of a host are told apart only by
 * --per-process. */
static struct peer peer_of(
	const struct settings *s, const struct facts *facts, const struct topology *t)
{
	const char *host = facts->boot_id ?
		arena_printf(s->arena, "%s %s", facts->hostname, facts->boot_id) :
		facts->hostname;

	return (struct peer){
		.role = message_hash(settings_text(s, SET_ROLE)),
		.host = t->process.is ? message_hash(host) : 0,
		.leads = t->process.local_rank == 0,
	};
}

int join_config(const struct settings *s, const struct facts *facts, const struct topology *t,
	const struct plan *plan, char **argv, struct member_config *ret, struct notes *notes,
	struct failure *why)
{
	struct member_config c = {
		.way = way_of(s, t),
		.verbose = settings_flag(s, SET_VERBOSE),
		.required = required_by(s, t),
		.merge_logs = plan->output.merge,
		.nnodes = t->identity.nnodes,
		.nnodes_from = t->identity.nnodes_from,
		.node_rank = t->identity.node_rank,
		.node_names = plan->node_names,
		.nproc = t->nproc,
		.node_rank_given = t->identity.node_rank_known && !t->identity.by_launcher,
		.node_rank_known = t->identity.node_rank_known,
		.name = facts->hostname,
		.peer = peer_of(s, facts, t),
		.run_id = run_id_of(s),
		.job = t->job,
		.pmi_fd = t->control.exchange == EXCHANGE_PMI ? facts->pmi_fd : 0,
		.hub_addr = t->control.addr,
		.hub_port = t->control.port,
		.port_given = t->control.port_given,
		.port_from = port_from(s, t),
		.port_by_endpoint = t->master.meet_from == settings_where(s, SET_RDZV_ENDPOINT) &&
			!t->control.port_given,
		.stays = t->identity.by_launcher && t->launcher->ends_others,
		.bound = settings_given(s, SET_INTERFACE) || own_addr(s),
		.own_addr = own_addr(s),
		.join_timeout_ms = plan->join_timeout_ms,
		.node_timeout_ms = plan->node_timeout_ms,
		.grace_ms = plan->grace_ms,
		.after_end_ms = (plan->blackbox_dir ? plan->blackbox_hold_ms + BOX_REST_MS : 0) +
			(plan->post_attempt ? plan->post_attempt_ms + POST_ATTEMPT_REST_MS : 0),
		.policy = { plan->max_restarts, plan->restart_delay_ms, plan->restart_min_uptime_ms,
			plan->on_hang == ON_HANG_RESTART, plan->restart_on, plan->no_restart_on,
			plan->restart_window_ms, plan->no_progress_restarts,
			!plan->node_names && launchers_have_others(facts->env) },
		.check_first = plan->check_first,
		.check_again = plan->check_again,
		.master_addr = master_of(t),
		.master_port = t->control.takes_master_port ? 0 : t->master.port,
		.master_port_from = t->master.port_from,
		.agent_store = plan->store == STORE_AGENT,
		.torch = plan->python && !plan->node_env && plan->torch_version,
		.port_wait_ms = settings_number(s, SET_RESTART_GATE_TIMEOUT),
		.store_wish = wish_of(s, plan),
		.store_dialect = dialect_of(plan->torch_version),
		.argv = argv,
		.arena = s->arena,
	};

	if (c.way == MEET_NOBODY) {
		if (note_idle_key(s, notes, why) < 0)
			return why->code;
		*ret = c;
		return 0;
	}
	if (read_key(s, facts, &c.key, why) < 0 || find_addresses(s, &c, why) < 0)
		return why->code;
	if (c.own_addr || c.addresses.count > 0)
		c.peer.addr = c.own_addr ? c.own_addr : c.addresses.at[0];
	*ret = c;
	secret_wipe(&c.key, sizeof c.key);
	return arena_failed(s->arena) ? failure_oom(why) : 0;
}

int join_hold_ports(const struct settings *s, const struct topology *t, struct member_config *ret,
	struct failure *why)
{
	unsigned count = settings_flag(s, SET_TF_CONFIG) ? t->nproc : 0;
	unsigned *ports = count > 0 ? arena_alloc(s->arena, count * sizeof *ports) : NULL;
	struct peer *own = &ret->peer;
	int held, rc = 0;

	if (arena_failed(s->arena))
		return failure_oom(why);
	for (unsigned i = 0; rc == 0 && i < count; i++)
		rc = port_reserve(&held, &ports[i], why);
	if (rc == 0 && settings_flag(s, SET_JAX_ENV))
		rc = port_reserve(&held, &own->jax_port, why);
	own->ports = ports;
	own->port_count = count;
	return rc;
}
