/* bundle_parse.c - see bundle.h. The file may have been written by anybody: whatever is missing is
 * not known, and what has another type than it should have is an error that names it. */
#include "daemon/blackbox/bundle.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "daemon/os/cjson.h"

/* One pass over a file; the first thing that is wrong stays in why. */
struct parsing {
	const struct cjson *c;
	const char *where;
	struct arena *arena;
	struct failure *why;
};

static int type_of(const cJSON *item)
{
	return item->type & 0xff;
}

static void refuse(struct parsing *r, const char *name, const char *should)
{
	if (r->why->code == 0)
		(void)failure_usage(r->why, "%s: \"%s\" is not %s", r->where, name, should);
}

/* NULL: it is not there, or null. */
static const cJSON *member(struct parsing *r, const cJSON *of, const char *name)
{
	const cJSON *item = of ? r->c->item(of, name) : NULL;

	return item && type_of(item) != cJSON_NULL ? item : NULL;
}

static const char *string_of(struct parsing *r, const cJSON *of, const char *name)
{
	const cJSON *item = member(r, of, name);

	if (!item)
		return NULL;
	if (type_of(item) != cJSON_String || !item->valuestring) {
		refuse(r, name, "a text");
		return NULL;
	}
	return arena_strdup(r->arena, item->valuestring);
}

static double number_of(
	struct parsing *r, const cJSON *of, const char *name, double least, double most)
{
	const cJSON *item = member(r, of, name);

	if (!item)
		return 0;
	if (type_of(item) != cJSON_Number || !(item->valuedouble >= least) ||
		!(item->valuedouble <= most)) {
		refuse(r, name, "a number that it can be");
		return 0;
	}
	return item->valuedouble;
}

static unsigned count_of(struct parsing *r, const cJSON *of, const char *name)
{
	return (unsigned)number_of(r, of, name, 0, INT_MAX);
}

static uint64_t amount_of(struct parsing *r, const cJSON *of, const char *name)
{
	return (uint64_t)number_of(r, of, name, 0, 1e18);
}

static int64_t time_of(struct parsing *r, const cJSON *of, const char *name)
{
	return (int64_t)number_of(r, of, name, -1e15, 1e15);
}

static bool flag_of(struct parsing *r, const cJSON *of, const char *name)
{
	const cJSON *item = member(r, of, name);

	if (item && type_of(item) != cJSON_True && type_of(item) != cJSON_False)
		refuse(r, name, "true or false");
	return item && type_of(item) == cJSON_True;
}

static const cJSON *object_of(struct parsing *r, const cJSON *of, const char *name)
{
	const cJSON *item = member(r, of, name);

	if (item && type_of(item) != cJSON_Object) {
		refuse(r, name, "an object");
		return NULL;
	}
	return item;
}

static enum bundle_fate fate_of(struct parsing *r, const cJSON *of)
{
	const char *word = string_of(r, of, "fate");

	for (int f = 0; word && f < FATES; f++)
		if (strcmp(bundle_fate_word((enum bundle_fate)f), word) == 0)
			return (enum bundle_fate)f;
	refuse(r, "fate", "well, first, failed, ended, runs or unstarted");
	return FATE_WELL;
}

static void read_first(struct parsing *r, const cJSON *root, struct bundle_first *ret)
{
	const cJSON *of = object_of(r, root, "first");

	if (!of)
		return;
	*ret = (struct bundle_first){
		.known = true,
		.rank = count_of(r, of, "rank"),
		.node = count_of(r, of, "node"),
		.host = string_of(r, of, "host"),
		.text = string_of(r, of, "text"),
		.error = string_of(r, of, "error"),
		.command = string_of(r, of, "command"),
	};
}

static void read_look(struct parsing *r, const cJSON *worker, struct bundle_look *ret)
{
	const cJSON *of = object_of(r, worker, "look");
	const char *state;

	if (!of)
		return;
	state = string_of(r, of, "state");
	*ret = (struct bundle_look){
		.known = true,
		.state = state && *state ? *state : '?',
		.wait = string_of(r, of, "wait"),
		.call = string_of(r, of, "call"),
		.cpu_ms = amount_of(r, of, "cpu_ms"),
		.io_bytes = amount_of(r, of, "io_bytes"),
		.threads = amount_of(r, of, "threads"),
		.later_ms = amount_of(r, of, "later_ms"),
		.later_cpu_ms = amount_of(r, of, "later_cpu_ms"),
	};
}

static void read_worker(struct parsing *r, const cJSON *of, void *at)
{
	struct bundle_worker *w = at;

	w->rank = count_of(r, of, "rank");
	w->local_rank = count_of(r, of, "local_rank");
	w->pid = count_of(r, of, "pid");
	w->fate = fate_of(r, of);
	w->end = string_of(r, of, "end");
	w->after_ms = time_of(r, of, "after_ms");
	read_look(r, of, &w->look);
	w->error = string_of(r, of, "error");
	w->lines = string_of(r, of, "lines");
	w->log = string_of(r, of, "log");
}

static void read_finding(struct parsing *r, const cJSON *of, void *at)
{
	struct bundle_finding *f = at;

	f->source = string_of(r, of, "source");
	f->subject = string_of(r, of, "subject");
	f->health = string_of(r, of, "health");
	f->text = string_of(r, of, "text");
}

static void read_rank(struct parsing *r, const cJSON *of, void *at)
{
	struct bundle_rank *k = at;

	k->rank = count_of(r, of, "rank");
	k->node = count_of(r, of, "node");
	k->fate = fate_of(r, of);
	k->end = string_of(r, of, "end");
	k->after_ms = time_of(r, of, "after_ms");
	k->blames_peer = flag_of(r, of, "blames_peer");
}

static void read_node(struct parsing *r, const cJSON *of, void *at)
{
	struct bundle_node *n = at;

	n->node = count_of(r, of, "node");
	n->host = string_of(r, of, "host");
	n->path = string_of(r, of, "path");
	n->text = string_of(r, of, "text");
	n->lost = flag_of(r, of, "lost");
}

/* A list of objects, each of that size; NULL: there is none. */
static void *list_of(struct parsing *r, const cJSON *root, const char *name, size_t size,
	void (*read)(struct parsing *r, const cJSON *of, void *at), size_t *ret_count)
{
	const cJSON *list = member(r, root, name);
	size_t count = 0;
	char *all;

	*ret_count = 0;
	if (!list)
		return NULL;
	if (type_of(list) != cJSON_Array) {
		refuse(r, name, "a list");
		return NULL;
	}
	for (const cJSON *it = list->child; it; it = it->next)
		count++;
	if (count > BUNDLE_ITEMS_MAX) {
		refuse(r, name, "a list of 65536 or fewer");
		return NULL;
	}
	all = arena_alloc(r->arena, count * size);
	if (!all)
		return NULL;
	count = 0;
	for (const cJSON *it = list->child; it && r->why->code == 0; it = it->next) {
		if (type_of(it) != cJSON_Object)
			refuse(r, name, "a list of objects");
		else
			read(r, it, all + size * count++);
	}
	*ret_count = count;
	return all;
}

/* The whole text as an object that says it is one of ours; NULL: why. */
static cJSON *parse(struct parsing *r, const char *text, size_t len, const char *mark)
{
	/* with its NUL: see error_file.c */
	cJSON *root = r->c->parse(text, len + 1);

	if (!root || type_of(root) != cJSON_Object)
		(void)failure_usage(r->why, "%s: it is not JSON, or was cut off", r->where);
	else if (!r->c->item(root, mark))
		(void)failure_usage(r->why,
			"%s: it was not written by --blackbox: there is no \"%s\" in it", r->where,
			mark);
	else if (number_of(r, root, mark, 1, 1e9) > (double)BUNDLE_VERSION)
		(void)failure_usage(r->why,
			"%s: a newer launchd has written it, in a form (%.0f) that this one does "
			"not know",
			r->where, number_of(r, root, mark, 1, 1e9));
	if (r->why->code == 0)
		return root;
	r->c->free(root);
	return NULL;
}

static int finish(struct parsing *r, cJSON *root)
{
	r->c->free(root);
	if (r->why->code == 0 && arena_failed(r->arena))
		return failure_oom(r->why);
	return r->why->code;
}

int bundle_parse(const struct cjson *c, const char *where, const char *text, size_t len,
	struct arena *arena, struct bundle *ret, struct failure *why)
{
	struct parsing r = { c, where, arena, why };
	cJSON *root = parse(&r, text, len, "launchd_blackbox");
	struct bundle b = { 0 };
	int rc;

	if (!root)
		return why->code;
	b.name = string_of(&r, root, "name");
	b.job = string_of(&r, root, "job");
	b.launchd = string_of(&r, root, "launchd");
	b.attempt = count_of(&r, root, "attempt");
	b.node = count_of(&r, root, "node");
	b.host = string_of(&r, root, "host");
	b.nnodes = count_of(&r, root, "nnodes");
	b.world_size = count_of(&r, root, "world_size");
	b.wall_ms = time_of(&r, root, "wall_ms");
	b.cause = string_of(&r, root, "cause");
	b.kind = string_of(&r, root, "kind");
	b.why = string_of(&r, root, "why");
	read_first(&r, root, &b.first);
	b.held = flag_of(&r, root, "held");
	b.workers = list_of(&r, root, "workers", sizeof *b.workers, read_worker, &b.worker_count);
	b.findings =
		list_of(&r, root, "findings", sizeof *b.findings, read_finding, &b.finding_count);
	rc = finish(&r, root);
	if (rc == 0)
		*ret = b;
	return rc;
}

int index_parse(const struct cjson *c, const char *where, const char *text, size_t len,
	struct arena *arena, struct bundle_index *ret, struct failure *why)
{
	struct parsing r = { c, where, arena, why };
	cJSON *root = parse(&r, text, len, "launchd_blackbox_index");
	struct bundle_index x = { 0 };
	const cJSON *counts;
	int rc;

	if (!root)
		return why->code;
	x.name = string_of(&r, root, "name");
	x.job = string_of(&r, root, "job");
	x.launchd = string_of(&r, root, "launchd");
	x.attempt = count_of(&r, root, "attempt");
	x.nnodes = count_of(&r, root, "nnodes");
	x.world_size = count_of(&r, root, "world_size");
	x.wall_ms = time_of(&r, root, "wall_ms");
	x.cause = string_of(&r, root, "cause");
	x.kind = string_of(&r, root, "kind");
	x.why = string_of(&r, root, "why");
	x.unsure = flag_of(&r, root, "unsure");
	x.futile = count_of(&r, root, "futile_attempts");
	read_first(&r, root, &x.first);
	counts = object_of(&r, root, "counts");
	for (int f = 0; f < FATES; f++)
		x.counts[f] = amount_of(&r, counts, bundle_fate_word((enum bundle_fate)f));
	x.ranks = list_of(&r, root, "ranks", sizeof *x.ranks, read_rank, &x.rank_count);
	x.nodes = list_of(&r, root, "nodes", sizeof *x.nodes, read_node, &x.node_count);
	rc = finish(&r, root);
	if (rc == 0)
		*ret = x;
	return rc;
}
