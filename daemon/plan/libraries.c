/* libraries.c - what TensorFlow and JAX are told of the job: --tf-config, --tf-roles, --jax-env,
 * and what is wrong without; see decide.h and plan.h.
 *
 * TensorFlow reads TF_CONFIG alone. JAX has variables for its coordinator and devices, but takes
 * rank and size from whoever it believes has started it; environ.c makes that Open MPI. */
#include "daemon/plan/decide.h"

#include <limits.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/json.h"
#include "common/notes.h"
#include "common/num.h"
#include "common/text.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"

enum { ENV_MAX_BYTES = 128 * 1024 }; /* of one variable, MAX_ARG_STRLEN in execve(2) */

/* Ranks in a row that have one task type. */
struct role {
	const char *type;
	size_t len;
	unsigned count;
};

/* The first role of a list; false: there is none. *list is moved behind it; at most INT_MAX count.
 */
static bool next_role(const char **list, struct role *ret)
{
	const char *at = *list, *equals = strchr(at, '=');
	size_t len = strcspn(at, ",");
	uint64_t n;

	if (!equals || equals >= at + len ||
		num_parse_len(equals + 1, (size_t)(at + len - equals - 1), 1, INT_MAX, &n) < 0)
		return false;
	*ret = (struct role){ at, (size_t)(equals - at), (unsigned)n };
	*list = at + len + (at[len] == ',' && at[len + 1] ? 1 : 0);
	return true;
}

static bool is_type(const struct role *r, const char *type)
{
	return strlen(type) == r->len && strncmp(r->type, type, r->len) == 0;
}

/* The bit of a type that TensorFlow knows; 0: it knows none such. */
static unsigned type_bit(const struct role *r)
{
	static const char *const types[] = { "chief", "evaluator", "worker", "ps" };

	for (unsigned i = 0; i < sizeof types / sizeof *types; i++)
		if (is_type(r, types[i]))
			return 1u << i;
	return 0;
}

/* Whether TensorFlow takes these roles, and of how many workers they are. */
static int check_roles(const struct deciding *d, const char *list, uint64_t *ret_count)
{
	const char *where = settings_where(d->s, SET_TF_ROLES), *at = list;
	unsigned seen = 0, single = 1u << 0 | 1u << 1; /* chief, evaluator */
	struct role r;

	*ret_count = 0;
	while (*at) {
		if (!next_role(&at, &r) || type_bit(&r) == 0)
			return failure_usage(d->why,
				"%s: \"%s\" is not a list of TYPE=N, as in ps=2,worker=6, where TYPE is "
				"chief, worker, ps or evaluator and N is 1 or more",
				where, list);
		if (seen & type_bit(&r))
			return failure_usage(d->why, "%s: \"%s\" has %.*s twice", where, list,
				(int)r.len, r.type);
		if ((type_bit(&r) & single) && r.count > 1)
			return failure_usage(d->why, "%s: TensorFlow allows one %.*s only, not %u",
				where, (int)r.len, r.type, r.count);
		seen |= type_bit(&r);
		*ret_count += r.count;
	}
	return 0;
}

/* The workers of all nodes, one after the other. */
struct walk {
	const struct topology *t;
	const unsigned *nproc_of_node;
	const char *first_host; /* of node 0: where all others reach it; NULL: not known */
	unsigned node, local;
};

static const char *host_port(struct arena *a, const char *host, unsigned port)
{
	bool v6 = host && strchr(host, ':');
	const char *number = port ? arena_printf(a, "%u", port) : "PORT";

	return arena_printf(
		a, "%s%s%s:%s", v6 ? "[" : "", host ? host : "HOST", v6 ? "]" : "", number);
}

static const char *next_place(struct walk *w, struct arena *a)
{
	unsigned nnodes = w->t->identity.nnodes, port = 0;
	const char *host = NULL;

	while (w->node < nnodes && w->local == w->nproc_of_node[w->node]) {
		w->node++;
		w->local = 0;
	}
	if (w->t->peers && w->node < nnodes) {
		host = w->t->peers[w->node].addr;
		port = w->t->peers[w->node].ports[w->local];
	}
	w->local++;
	return host_port(a, w->node == 0 ? w->first_host : host, port);
}

/* "cluster" of TF_CONFIG. An evaluator is not of it: TensorFlow has it evaluate checkpoints by
 * itself. */
static const char *render_cluster(const struct deciding *d, const struct topology *t,
	const unsigned *nproc_of_node, const struct plan *p)
{
	struct walk w = { t, nproc_of_node, p->master_addr, 0, 0 };
	const char *at = p->library.tf_roles;
	struct arena scratch = { 0 };
	struct text out = { 0 };
	struct json j = { .out = &out };
	const char *ret;
	struct role r;

	json_object_begin(&j, NULL);
	while (next_role(&at, &r)) {
		bool in = !is_type(&r, "evaluator");

		if (in)
			json_array_begin(&j, arena_strndup(&scratch, r.type, r.len));
		for (unsigned i = 0; i < r.count; i++) {
			const char *place = next_place(&w, &scratch);

			if (in)
				json_string(&j, NULL, place);
		}
		if (in)
			json_array_end(&j);
	}
	json_object_end(&j);
	ret = arena_strdup(d->s->arena, text_string(&out));
	d->s->arena->failed = d->s->arena->failed || out.failed || arena_failed(&scratch);
	text_done(&out);
	arena_done(&scratch);
	return ret;
}

const char *plan_tf_config(const struct plan *p, unsigned rank, struct arena *arena)
{
	const char *at = p->library.tf_roles;
	struct role r = { .type = "" };
	unsigned first = 0;

	while (next_role(&at, &r) && rank - first >= r.count && *at)
		first += r.count;
	return arena_printf(arena, "{\"cluster\":%s,\"task\":{\"type\":\"%.*s\",\"index\":%u}}",
		p->library.tf_cluster, (int)r.len, r.type, rank - first);
}

/* Why the launchers don't tell one another their ports; NULL: they do, or will. */
static const char *never_told(
	const struct deciding *d, const struct topology *t, const struct plan *p)
{
	if (settings_given(d->s, SET_ONLY_RANK))
		return arena_printf(d->s->arena, "with %s they don't: leave one of them out",
			settings_where(d->s, SET_ONLY_RANK));
	if (p->nnodes == 1 || t->peers || p->provisional)
		return NULL;
	return settings_is(d->s, SET_CONTROL, "off") ?
		arena_printf(d->s->arena, "with %s off they don't: leave one of them out",
			settings_label(d->s, SET_CONTROL)) :
		"they could not meet";
}

/* Whether each launcher has told what the option needs. */
static int check_told(const struct deciding *d, const struct topology *t,
	const unsigned *nproc_of_node, const struct plan *p, enum setting_id id)
{
	const char *keeps = never_told(d, t, p), *label = settings_label(d->s, id);

	if (keeps)
		return failure_usage(d->why,
			"%s: the launchers choose ports and tell one another when they meet, but %s",
			label, keeps);
	for (unsigned i = 0; t->peers && i < p->nnodes; i++) {
		const struct peer *peer = &t->peers[i];
		const char *name = p->node_names ? p->node_names[i] : peer->addr;

		if (id == SET_TF_CONFIG ? peer->port_count == nproc_of_node[i] :
					  peer->jax_port != 0)
			continue;
		return failure_usage(d->why, "%s: node %u%s%s%s %s", label, i, name ? " (" : "",
			name ? name : "", name ? ")" : "",
			peer->addr ?
				"was started without it: give it to the launchers of all nodes" :
				"has not joined, so the port of its workers is not known");
	}
	return 0;
}

static int decide_tf(const struct deciding *d, const struct topology *t,
	const unsigned *nproc_of_node, struct plan *p)
{
	const char *roles = settings_text(d->s, SET_TF_ROLES);
	uint64_t count = p->world_size;

	if ((roles && check_roles(d, roles, &count) < 0) ||
		check_told(d, t, nproc_of_node, p, SET_TF_CONFIG) < 0)
		return d->why->code;
	if (count != p->world_size && !p->provisional)
		return failure_usage(d->why, "%s: \"%s\" is for %llu worker%s, but the job has %u",
			settings_where(d->s, SET_TF_ROLES), roles, (unsigned long long)count,
			count == 1 ? "" : "s", p->world_size);
	p->library.tf_roles = roles ? roles : arena_printf(d->s->arena, "worker=%u", p->world_size);
	/* a place has several bytes: far too many are not rendered first */
	if (count < ENV_MAX_BYTES && !arena_failed(d->s->arena))
		p->library.tf_cluster = render_cluster(d, t, nproc_of_node, p);
	if (count >= ENV_MAX_BYTES ||
		(p->library.tf_cluster && strlen(p->library.tf_cluster) > ENV_MAX_BYTES - 100))
		return failure_usage(d->why,
			"%s: with %llu workers TF_CONFIG is longer than the %u bytes that a variable can have",
			settings_label(d->s, SET_TF_CONFIG), (unsigned long long)count,
			ENV_MAX_BYTES);
	return 0;
}

static int decide_jax(const struct deciding *d, const struct topology *t,
	const unsigned *nproc_of_node, struct plan *p)
{
	if (check_told(d, t, nproc_of_node, p, SET_JAX_ENV) < 0)
		return d->why->code;
	p->library.jax_coordinator =
		host_port(d->s->arena, p->master_addr, t->peers ? t->peers[0].jax_port : 0);
	return 0;
}

/* TensorFlow itself says nothing: each worker trains alone, or two of them are one task. */
static void note_tf(const struct deciding *d, const struct topology *t, const struct plan *p)
{
	const char *config = env_given(d->s->env, d->facts->env, "TF_CONFIG");
	bool speaks = t->identity.node_rank_known && p->node_rank == 0;

	if (config && *config && p->start_count > 1)
		notes_add(d->notes, NOTE_WARNING,
			"all %u workers of this node get the same TF_CONFIG, and so the same task; "
			"--tf-config gives each worker its own",
			p->start_count);
	else if (!config && d->facts->program.tensorflow && p->world_size > 1 && speaks)
		notes_add(d->notes, NOTE_WARNING,
			"%s imports tensorflow, but TF_CONFIG is not set: each of the %u workers would "
			"train alone; --tf-config lets them train together (--env TF_CONFIG= if they "
			"are to be alone)",
			p->script, p->world_size);
}

int decide_libraries(const struct deciding *d, const struct topology *t,
	const unsigned *nproc_of_node, struct plan *p)
{
	if (!settings_flag(d->s, SET_TF_CONFIG))
		note_tf(d, t, p);
	else if (!failure_go_on(decide_tf(d, t, nproc_of_node, p), d->why))
		return d->why->code;
	return settings_flag(d->s, SET_JAX_ENV) ? decide_jax(d, t, nproc_of_node, p) : 0;
}
