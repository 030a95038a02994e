/* listed.c - what the list of [cluster] decides; see topology.h */
#include "daemon/plan/topology.h"

#include <errno.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/num.h"
#include "common/text.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/launchers/launchers.h"

enum { SHOWN_MAX = 8 }; /* hosts or addresses in a sentence */

/* Whether a size that is said elsewhere sets a list of the system's file aside. */
static bool another_size(const struct deciding *d, const struct listed_nodes *l)
{
	const struct value *given = &d->s->value[SET_NNODES];
	const char *said = d->s->as_torchrun ? NULL : env_get(d->facts->env, "NNODES");
	uint64_t n = given->number;

	if (given->from.level > LEVEL_ENVIRONMENT)
		return n != l->hosts.count;
	return said && *said && (num_parse(said, 1, HOSTS_MAX, &n) < 0 || n != l->hosts.count);
}

const struct listed_nodes *listed_nodes(
	const struct deciding *d, const struct launcher *launcher, bool *ret_given)
{
	const struct listed_nodes *l = &d->facts->listed;

	if (l->hosts.count == 0)
		return NULL;
	*ret_given = d->s->value[l->id].from.level > LEVEL_ENVIRONMENT;
	if (*ret_given)
		return l;
	return launcher->kind == LAUNCHER_TASK || inside_worker(d->facts->env) ||
			another_size(d, l) ?
		NULL :
		l;
}

static void add_addresses(const struct vec *addresses, struct text *t)
{
	size_t shown = 0;

	for (size_t i = 0; i < addresses->count && shown < SHOWN_MAX; i++) {
		struct address a;

		if (address_parse(addresses->at[i], 0, &a) < 0 || address_is_loopback(&a) ||
			address_is_link_local(&a))
			continue;
		text_printf(t, "%s%s", shown ? ", " : "", addresses->at[i]);
		shown++;
	}
	if (shown == 0)
		text_add(t, "none");
}

/* This host is in none of the places. A name without an answer for the moment is no user's mistake:
 * the job may be started again. */
static int refuse_absent(const struct deciding *d, const struct listed_nodes *l)
{
	const struct host_answers *answers = &l->answers;
	struct text hosts = { 0 }, own = { 0 };
	int rc;

	for (size_t i = 0; i < l->hosts.count && i < SHOWN_MAX; i++)
		text_printf(&hosts, "%s%s", i ? ", " : "", l->hosts.at[i].name);
	if (l->hosts.count > SHOWN_MAX)
		text_add(&hosts, ", ...");
	add_addresses(&d->facts->addresses, &own);
	if (l->asked_names && !answers->is_final)
		rc = failure_set(d->why, -EAGAIN,
			"%s: this host, \"%s\" (addresses: %s), was not found among the nodes %s, but not all names could be looked up%s%s; if it is one of them, give its rank by --node_rank (LAUNCHD_NODE_RANK)",
			l->where, d->facts->hostname, text_string(&own), text_string(&hosts),
			answers->unknown ? ": " : "", answers->unknown ? answers->unknown : "");
	else
		rc = failure_usage(d->why,
			"%s: this host is not one of the nodes %s: its name is \"%s\", its addresses: %s%s%s; if it is one of them, give its rank by --node_rank (LAUNCHD_NODE_RANK)",
			l->where, text_string(&hosts), d->facts->hostname, text_string(&own),
			answers->unknown ? "; not found: " : "",
			answers->unknown ? answers->unknown : "");
	text_done(&hosts);
	text_done(&own);
	return rc;
}

static int refuse_several(const struct deciding *d, const struct listed_nodes *l)
{
	const struct host *one = &l->hosts.at[l->own.at[0]], *other = &l->hosts.at[l->own.at[1]];

	return failure_usage(d->why,
		"%s: %s and %s (%s) are both this host, \"%s\": list each host once", other->where,
		other->name, one->name, one->where, d->facts->hostname);
}

int listed_rank(const struct deciding *d, const struct listed_nodes *l, unsigned *ret,
	const char **ret_from)
{
	const struct host *own = &l->hosts.at[l->own.at[0]];

	if (l->own.count == 0)
		return refuse_absent(d, l);
	if (l->own.count > 1)
		return refuse_several(d, l);
	*ret = (unsigned)l->own.at[0];
	*ret_from = arena_printf(d->s->arena, "%s: %s", own->where, own->name);
	return 0;
}

const struct hosts *listed_slots(const struct deciding *d, const struct topology *t)
{
	bool given;
	const struct listed_nodes *l = listed_nodes(d, t->launcher, &given);

	return l && !settings_given(d->s, SET_NPROC_PER_NODE) && l->hosts.at[0].slots ? &l->hosts :
											NULL;
}

const char *const *listed_names(const struct deciding *d, const struct topology *t)
{
	bool given;
	const struct listed_nodes *l = listed_nodes(d, t->launcher, &given);
	const char **names;

	if (!l || l->hosts.count != t->identity.nnodes)
		return NULL;
	names = arena_alloc(d->s->arena, l->hosts.count * sizeof *names);
	for (size_t i = 0; names && i < l->hosts.count; i++)
		names[i] = l->hosts.at[i].name;
	return names;
}

int listed_check(const struct deciding *d, const struct topology *t)
{
	bool given;
	const struct listed_nodes *l = listed_nodes(d, t->launcher, &given);
	const struct host *own = l ? &l->hosts.at[t->identity.node_rank] : NULL;

	return own && own->max_slots && t->nproc > own->max_slots ?
		failure_usage(d->why, "%s: %s has max_slots=%u, but %s says %u workers", own->where,
			own->name, own->max_slots, t->nproc_from, t->nproc) :
		0;
}
