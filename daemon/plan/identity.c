/* identity.c - node rank and number of nodes; see topology.h */
#include "daemon/plan/topology.h"

#include <string.h>

#include "common/failure.h"
#include "common/notes.h"
#include "common/num.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/launchers/launchers.h"

/* A number with its place. */
struct found {
	bool there;
	unsigned n;
	const char *where;
};

/* first: the least that the variable says, where it counts from there; *ret counts from 0 then. */
static int from_variable(
	const struct deciding *d, const char *name, unsigned min, unsigned first, struct found *ret)
{
	const char *text = env_get(d->facts->env, name);
	uint64_t n;

	*ret = (struct found){ .where = name };
	if (!text || !*text)
		return 0;
	if (num_parse(text, min + first, setting_rows[SET_NNODES].max, &n) < 0)
		return failure_usage(d->why, "%s: \"%s\" is not a whole number from %u to %llu",
			name, text, min + first, (unsigned long long)setting_rows[SET_NNODES].max);
	ret->n = (unsigned)n - first;
	ret->there = true;
	return 0;
}

/* Rank and size of this host in a list of all. */
static int from_hosts(
	const struct deciding *d, const struct launcher *l, enum setting_id id, struct found *ret)
{
	const char *const *env = d->facts->env;
	const char *name = launcher_variable(l->hosts, env), *own = env_get(env, l->host), *host;
	unsigned rank = 0, count = 0;
	bool found = false;
	size_t len;

	for (; name && (host = launcher_host(env_get(env, name), count, &len)); count++)
		if (strlen(own) == len && strncmp(host, own, len) == 0) {
			rank = count;
			found = true;
		}
	*ret = (struct found){ .there = found,
		.n = id == SET_NNODES ? count : rank,
		.where = id == SET_NNODES ? name : l->host };
	return found || !name ? 0 :
				failure_usage(d->why, "%s: \"%s\" is none of the hosts of %s, %s",
					l->host, own, name, env_get(env, name));
}

/* The number that a launcher gives to this process. */
static int from_launcher(
	const struct deciding *d, const struct launcher *l, enum setting_id id, struct found *ret)
{
	const char *const *names = id == SET_NODE_RANK ? l->rank : l->size;
	const char *name = launcher_variable(names, d->facts->env);

	if (l->host)
		return from_hosts(d, l, id, ret);
	if (id == SET_NNODES && l->pmix_size) {
		*ret = (struct found){ d->facts->task.size > 0, d->facts->task.size, "PMIx" };
		return 0;
	}
	*ret = (struct found){ .where = names[0] };
	if (!name)
		return 0;
	return from_variable(
		d, name, id == SET_NODE_RANK ? 0 : 1, id == SET_NODE_RANK ? l->first_rank : 0, ret);
}

/* Settings above the environment are given; one of the system's file only fills a gap. */
static struct found from_settings(const struct deciding *d, enum setting_id id, bool given)
{
	enum level level = d->s->value[id].from.level;
	bool there = given ? level > LEVEL_ENVIRONMENT : level == LEVEL_SYSTEM_FILE;

	return (struct found){ there, (unsigned)settings_number(d->s, id),
		settings_where(d->s, id) };
}

/* The given number: a setting's, or else that of a list of nodes, which must not say another size
 * than the setting. theirs: what the environment says, above a list that only fills gaps. */
static int given(const struct deciding *d, enum setting_id id, const struct launcher *launcher,
	const struct found *theirs, struct found *ret)
{
	bool above;
	const struct listed_nodes *list = listed_nodes(d, launcher, &above);

	*ret = from_settings(d, id, true);
	if (!list)
		return 0;
	if (id == SET_NNODES && ret->there && ret->n != list->hosts.count)
		return failure_usage(d->why,
			"%s says %u, but %s lists %zu node%s: leave out the one that is wrong "
			"(--standalone starts a job of this node alone)",
			ret->where, ret->n, list->where, list->hosts.count,
			list->hosts.count == 1 ? "" : "s");
	if (ret->there || (theirs->there && !above))
		return 0;
	*ret = (struct found){ true, (unsigned)list->hosts.count, list->where };
	return id == SET_NNODES ? 0 : listed_rank(d, list, &ret->n, &ret->where);
}

/* Whether something goes above anyone's variables. */
static bool is_given(const struct deciding *d, enum setting_id id)
{
	bool above = false;

	return from_settings(d, id, true).there ||
		(listed_nodes(d, launcher_anyone(), &above) && above);
}

/* RANK and WORLD_SIZE, where they are said to be nodes'. */
static int from_env_ranks(const struct deciding *d, enum setting_id id, struct found *ret)
{
	const char *name = id == SET_NODE_RANK ? "RANK" : "WORLD_SIZE";

	if (from_variable(d, name, id == SET_NODE_RANK ? 0 : 1, 0, ret) < 0)
		return d->why->code;
	return ret->there ?
		0 :
		failure_usage(d->why, "%s node: %s is not set; it must be %s",
			settings_label(d->s, SET_ENV_RANKS), name,
			id == SET_NODE_RANK ? "this node's rank" : "the number of nodes");
}

/* A number of the environment is looked at where it counts: a launcher's always, as a given one
 * must agree with it; NODE_RANK and NNODES where nothing is given, and outside workers of another
 * launcher. torchrun has never read those: a debug run must not wait for what they name. */
static int said(const struct deciding *d, enum setting_id id, const struct launcher *launcher,
	struct found *ret)
{
	const struct launcher *platform = NULL;
	int rc;

	if (launcher->kind == LAUNCHER_TASK)
		return from_launcher(d, launcher, id, ret);
	*ret = (struct found){ .where = id == SET_NODE_RANK ? "NODE_RANK" : "NNODES" };
	if (inside_worker(d->facts->env) || is_given(d, id))
		return 0;
	if (settings_is(d->s, SET_ENV_RANKS, "node"))
		return from_env_ranks(d, id, ret);
	if (d->s->as_torchrun)
		return 0;
	rc = from_launcher(d, launcher, id, ret);
	while (rc == 0 && !ret->there && id == SET_NNODES &&
		(platform = platform_of(d->facts->env, platform)))
		rc = from_launcher(d, platform, id, ret);
	if (!ret->there)
		ret->where = launcher->size[0];
	return rc;
}

/* The given number, else the launcher's, else the system's file's; given and launcher must agree.
 * NODE_RANK and NNODES are anyone's: what is given goes above them. */
static int choose(const struct deciding *d, enum setting_id id, const struct launcher *launcher,
	struct found theirs, struct found *ret)
{
	struct found ours;

	if (given(d, id, launcher, &theirs, &ours) < 0)
		return d->why->code;
	if (ours.there && theirs.there && launcher->kind == LAUNCHER_TASK && ours.n != theirs.n)
		return failure_usage(d->why,
			"%s says %u, but %s says %u: leave out the one that is wrong (--standalone "
			"starts a job of this node alone)",
			ours.where, ours.n, theirs.where, theirs.n);
	*ret = ours.there ? ours : theirs.there ? theirs : from_settings(d, id, false);
	return 0;
}

static int standalone(const struct deciding *d, struct identity *ret)
{
	struct found nnodes = from_settings(d, SET_NNODES, true);
	struct found node_rank = from_settings(d, SET_NODE_RANK, true);
	const char *where = settings_where(d->s, SET_STANDALONE);

	if (nnodes.there && nnodes.n != 1)
		return failure_usage(
			d->why, "%s means one node, but %s says %u", where, nnodes.where, nnodes.n);
	if (node_rank.there && node_rank.n != 0)
		return failure_usage(d->why, "%s means one node, but %s says %u", where,
			node_rank.where, node_rank.n);
	*ret = (struct identity){ 1, 0, where, where, true, false };
	return 0;
}

/* The nodes agree on their ranks when they meet. */
static bool ranks_by_meeting(const struct deciding *d)
{
	return settings_is(d->s, SET_RDZV_BACKEND, "c10d") &&
		!settings_is(d->s, SET_CONTROL, "off");
}

/* Something says that there are several, and nothing how many, or which of them this is. */
static int refuse_half(const struct deciding *d, const struct launcher *launcher,
	const struct found *size, const struct found *rank)
{
	const struct found *there = size->there ? size : rank;
	const char *other = size->there ? launcher->rank[0] : launcher->size[0];
	bool is_read = !d->s->as_torchrun || launcher->kind == LAUNCHER_TASK;
	const char *flag = size->there ? "--node_rank" : "--nnodes";

	return failure_usage(d->why, "%s says %u, but %s is not given%s%s: use %s%s%s%s%s",
		there->where, there->n + (size->there ? 0 : launcher->first_rank),
		size->there ? "this node's rank" : "the number of nodes",
		d->facts->task.why ? ", and PMIx doesn't tell it: " : "",
		d->facts->task.why ? d->facts->task.why : "", flag,
		other && is_read ? " (or set " : "", other && is_read ? other : "",
		other && is_read ? ")" : "",
		launcher->kind == LAUNCHER_TASK ? ", or --standalone for a job of this node alone" :
						  "");
}

/* Whether a platform says the size in this variable. */
static bool is_platforms(const struct deciding *d, const char *where)
{
	const struct launcher *p = NULL;

	while ((p = platform_of(d->facts->env, p)))
		if (launcher_variable(p->size, d->facts->env) == where)
			return true;
	return false;
}

/* One of the two numbers is missing. */
static int complete(const struct deciding *d, const struct launcher *launcher, struct found size,
	struct found rank, struct identity *ret)
{
	bool anyone = launcher->kind == LAUNCHER_ANYONE;
	bool by_platform = size.there && anyone && is_platforms(d, size.where);

	if (!size.there && !rank.there) {
		*ret = (struct identity){ 1, 0, ONE_NODE, ONE_NODE, true, false };
		return 0;
	}
	if (!size.there && anyone && rank.n == 0) {
		*ret = (struct identity){ 1, 0, ONE_NODE, rank.where, true, false };
		return 0;
	}
	if (!size.there)
		return refuse_half(d, launcher, &size, &rank);
	if (size.n == 1 && anyone) {
		*ret = (struct identity){ 1, 0, size.where, ONE_NODE, true, false };
		return 0;
	}
	if (anyone && ranks_by_meeting(d)) {
		notes_add(d->notes, NOTE_VERBOSE,
			"this node's rank is not given: the nodes will agree on ranks when they meet");
		*ret = (struct identity){ size.n, 0, size.where, "rendezvous", false, false };
		return 0;
	}
	/* torchrun and classic launch take 0, and node 0's command line often leaves it out */
	if (anyone && d->s->value[SET_NNODES].from.level > LEVEL_ENVIRONMENT &&
		settings_is(d->s, SET_RDZV_BACKEND, "static")) {
		notes_add(d->notes, NOTE_WARNING,
			"%s says %u, but this node's rank is not given: assuming 0; every other node "
			"needs --node_rank",
			size.where, size.n);
		*ret = (struct identity){ size.n, 0, size.where, "default", true, false };
		return 0;
	}
	/* it starts a command that is none of its distributed ones on one node only */
	if (by_platform) {
		notes_add(d->notes, NOTE_WARNING,
			"%s says %u, but nothing says which node this is: this is a job of one node (--node_rank says it)",
			size.where, size.n);
		*ret = (struct identity){ 1, 0, ONE_NODE, ONE_NODE, true, false };
		return 0;
	}
	return refuse_half(d, launcher, &size, &rank);
}

/* A platform numbers the containers of jobs of one node, too: its rank counts where the job has
 * several and nothing else says one. */
static int from_platform(const struct deciding *d, const struct launcher *launcher,
	struct found size, struct found *rank)
{
	const struct launcher *platform = NULL;
	int rc = 0;

	if (!size.there || size.n < 2 || launcher->kind == LAUNCHER_TASK || ranks_by_meeting(d))
		return 0;
	while (rc == 0 && !rank->there && (platform = platform_of(d->facts->env, platform)))
		rc = from_launcher(d, platform, SET_NODE_RANK, rank);
	return rc;
}

/* --nnodes 1 is as good as --standalone. */
static bool is_set_aside(const struct deciding *d, const struct launcher *l)
{
	struct found nnodes = from_settings(d, SET_NNODES, true);

	return l->kind == LAUNCHER_TASK && nnodes.there && nnodes.n == 1;
}

/* By the name torchrun each of several tasks was a job of its own, by mistake. */
static int check_torchrun(
	const struct deciding *d, const struct launcher *launcher, const struct found *size)
{
	if (!d->s->as_torchrun || launcher->kind != LAUNCHER_TASK || size->n < 2 ||
		from_settings(d, SET_NNODES, true).there)
		return 0;
	return failure_usage(d->why,
		"%s says %u: %s has started several launchers, and torchrun reads no such variable: give --nnodes %u for one job, or --standalone for a job of each alone",
		size->where, size->n, launcher->name, size->n);
}

static int find_by(const struct deciding *d, const struct launcher *launcher, struct identity *ret)
{
	struct found said_rank, said_size, rank = { 0 }, size = { 0 };

	if (said(d, SET_NODE_RANK, launcher, &said_rank) < 0 ||
		said(d, SET_NNODES, launcher, &said_size) < 0 ||
		check_torchrun(d, launcher, &said_size) < 0 ||
		choose(d, SET_NODE_RANK, launcher, said_rank, &rank) < 0 ||
		choose(d, SET_NNODES, launcher, said_size, &size) < 0 ||
		from_platform(d, launcher, size, &rank) < 0)
		return d->why->code;
	if (!rank.there || !size.there)
		return complete(d, launcher, size, rank, ret);
	if (rank.n >= size.n)
		return failure_usage(d->why,
			"node rank %u (%s) must be below the number of nodes, %u (%s)", rank.n,
			rank.where, size.n, size.where);
	*ret = (struct identity){ size.n, rank.n, size.where, rank.where, true,
		launcher->kind == LAUNCHER_TASK && said_rank.there && size.n > 1 };
	return 0;
}

/* A launcher's size of 1 is ignored where other variables give more: each node's task may be a
 * step, or an mpirun, of its own. */
static bool is_only_task(const struct deciding *d, const struct launcher *l)
{
	struct failure ignored = { 0 };
	struct deciding look = *d;
	struct found size;

	look.why = &ignored;
	return l->kind == LAUNCHER_TASK && from_launcher(&look, l, SET_NNODES, &size) == 0 &&
		size.there && size.n == 1;
}

/* Whether flags, variables or a platform make it a job of several. What the system's file has is
 * for other jobs, and what a worker inherits is its own job's. */
static bool others_say_more(const struct deciding *d)
{
	struct notes notes = { .arena = d->s->arena };
	struct failure why = { 0 };
	const struct deciding look = { d->s, d->facts, &notes, &why };
	const struct value *nnodes = &d->s->value[SET_NNODES];
	const struct listed_nodes *list;
	struct identity id = { 0 };
	bool above = true;

	if (nnodes->from.level > LEVEL_ENVIRONMENT && nnodes->number > 1)
		return true;
	list = listed_nodes(d, launcher_anyone(), &above);
	return !started_in_worker(d->facts->env) && find_by(&look, launcher_anyone(), &id) == 0 &&
		id.nnodes > 1 && id.nnodes_from != nnodes->from.where &&
		(above || !list || id.nnodes_from != list->where);
}

int identity_find(const struct deciding *d, const struct launcher *launcher, struct identity *ret)
{
	if (settings_flag(d->s, SET_STANDALONE))
		return standalone(d, ret);
	if (is_set_aside(d, launcher) || (is_only_task(d, launcher) && others_say_more(d)))
		launcher = launcher_anyone();
	return find_by(d, launcher, ret);
}
