/* join.c - see join.h */
#include "daemon/join.h"

#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/cluster/config.h"
#include "daemon/cluster/reachable.h"
#include "daemon/facts/facts.h"
#include "daemon/facts/interfaces.h"
#include "daemon/plan/plan.h"
#include "daemon/plan/topology.h"
#include "daemon/store/dialect.h"

enum { CONTROL_AUTO, CONTROL_REQUIRED, CONTROL_OFF };

bool join_tells_master(
	const struct settings *s, const struct facts *facts, const struct topology *t)
{
	return t->identity.nnodes > 1 && settings_number(s, SET_CONTROL) != CONTROL_OFF &&
		!settings_given(s, SET_ONLY_RANK) && pmix_meets(facts->env, t->launcher);
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
	case CONTROL_PMIX:
		return MEET_PMIX;
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

static int read_key(const struct settings *s, const struct facts *facts, struct job_key *ret,
	struct failure *why)
{
	const struct key_sources sources = {
		.file = settings_text(s, SET_KEY_FILE),
		.file_where = settings_where(s, SET_KEY_FILE),
		.text = env_get(facts->env, "LAUNCHD_KEY"),
	};

	return key_read(&sources, ret, why);
}

/* The job's name, where the user gave one: the preset is every job's. */
static const char *run_id_of(const struct settings *s)
{
	const char *id = settings_text(s, SET_RDZV_ID);

	return strcmp(id, setting_rows[SET_RDZV_ID].preset) != 0 ? id : NULL;
}

/* Where this node is, and where others may reach it. */
static int find_addresses(const struct settings *s, struct member_config *c, struct failure *why)
{
	const struct reachable_wish wish = {
		.local_addr = settings_text(s, SET_LOCAL_ADDR),
		.interfaces = settings_text(s, SET_INTERFACE),
		.where = settings_where(s, SET_INTERFACE),
		.one_host = true, /* loopback comes last, where nothing else is there */
	};
	struct interfaces all;
	int rc = interfaces_read(s->arena, &all, why);

	for (size_t i = 0; rc == 0 && i < all.count; i++)
		vec_add(s->arena, &c->local, all.at[i].address);
	return rc < 0 ? rc : reachable_choose(&all, &wish, s->arena, &c->addresses, why);
}

int join_config(const struct settings *s, const struct facts *facts, const struct topology *t,
	const struct plan *plan, char **argv, struct member_config *ret, struct failure *why)
{
	struct member_config c = {
		.way = way_of(s, t),
		.required = t->control.required,
		.nnodes = t->identity.nnodes,
		.node_rank = t->identity.node_rank,
		.nproc = t->nproc,
		.node_rank_known = t->identity.node_rank_known,
		.name = facts->hostname,
		.run_id = run_id_of(s),
		.hub_addr = t->control.addr,
		.hub_port = t->control.port,
		.port_given = t->control.port_given,
		.bound = settings_given(s, SET_INTERFACE) || settings_given(s, SET_LOCAL_ADDR),
		.own_addr = settings_text(s, SET_LOCAL_ADDR),
		.join_timeout_ms = plan->join_timeout_ms,
		.node_timeout_ms = plan->node_timeout_ms,
		.grace_ms = plan->grace_ms,
		.policy = { plan->max_restarts, plan->restart_delay_ms, plan->restart_min_uptime_ms,
			plan->restart_on, plan->no_restart_on },
		.master_addr = t->master.addr,
		.master_port = t->control.takes_master_port ? 0 : t->master.port,
		.agent_store = plan->store == STORE_AGENT,
		.store_wish = wish_of(s, plan),
		.store_dialect = dialect_of(plan->torch_version),
		.argv = argv,
		.arena = s->arena,
	};

	if (c.way == MEET_NOBODY) {
		*ret = c;
		return 0;
	}
	if (read_key(s, facts, &c.key, why) < 0 || find_addresses(s, &c, why) < 0)
		return why->code;
	*ret = c;
	return arena_failed(s->arena) ? failure_oom(why) : 0;
}
