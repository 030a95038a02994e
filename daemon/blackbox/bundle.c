/* bundle.c - see bundle.h */
#include "daemon/blackbox/bundle.h"

#include "common/json.h"
#include "common/text.h"

const char *bundle_fate_word(enum bundle_fate f)
{
	static const char *const words[FATES] = {
		[FATE_WELL] = "well",
		[FATE_FIRST] = "first",
		[FATE_FAILED] = "failed",
		[FATE_ENDED] = "ended",
		[FATE_RUNS] = "runs",
		[FATE_UNSTARTED] = "unstarted",
	};

	return words[f];
}

static void add_first(struct json *j, const struct bundle_first *f)
{
	if (!f->known) {
		json_raw(j, "first", "null");
		return;
	}
	json_object_begin(j, "first");
	json_number(j, "rank", f->rank);
	json_number(j, "node", f->node);
	json_string(j, "host", f->host);
	json_string(j, "text", f->text);
	json_string(j, "error", f->error);
	json_string(j, "command", f->command);
	json_object_end(j);
}

static void add_look(struct json *j, const struct bundle_look *l)
{
	const char state[2] = { l->state, '\0' };

	if (!l->known) {
		json_raw(j, "look", "null");
		return;
	}
	json_object_begin(j, "look");
	json_string(j, "state", state);
	json_string(j, "wait", l->wait);
	json_string(j, "call", l->call);
	json_number(j, "cpu_ms", (long long)l->cpu_ms);
	json_number(j, "io_bytes", (long long)l->io_bytes);
	json_number(j, "threads", (long long)l->threads);
	json_number(j, "later_ms", (long long)l->later_ms);
	json_number(j, "later_cpu_ms", (long long)l->later_cpu_ms);
	json_object_end(j);
}

static void add_worker(struct json *j, const struct bundle_worker *w)
{
	json_object_begin(j, NULL);
	json_number(j, "rank", w->rank);
	json_number(j, "local_rank", w->local_rank);
	json_number(j, "pid", w->pid);
	json_string(j, "fate", bundle_fate_word(w->fate));
	json_string(j, "end", w->end);
	json_number(j, "after_ms", w->after_ms);
	add_look(j, &w->look);
	json_string(j, "error", w->error);
	json_string(j, "lines", w->lines);
	json_string(j, "log", w->log);
	json_object_end(j);
}

static void add_finding(struct json *j, const struct bundle_finding *f)
{
	json_object_begin(j, NULL);
	json_string(j, "source", f->source);
	json_string(j, "subject", f->subject);
	json_string(j, "health", f->health);
	json_string(j, "text", f->text);
	json_object_end(j);
}

void bundle_json(const struct bundle *b, struct text *out)
{
	struct json j = { .out = out, .lines = true };

	json_object_begin(&j, NULL);
	json_number(&j, "launchd_blackbox", BUNDLE_VERSION);
	json_string(&j, "name", b->name);
	json_string(&j, "job", b->job);
	json_string(&j, "launchd", b->launchd);
	json_number(&j, "attempt", b->attempt);
	json_number(&j, "node", b->node);
	json_string(&j, "host", b->host);
	json_number(&j, "nnodes", b->nnodes);
	json_number(&j, "world_size", b->world_size);
	json_number(&j, "wall_ms", b->wall_ms);
	json_string(&j, "cause", b->cause);
	json_string(&j, "kind", b->kind);
	json_string(&j, "why", b->why);
	add_first(&j, &b->first);
	json_bool(&j, "held", b->held);
	json_array_begin(&j, "workers");
	for (size_t i = 0; i < b->worker_count; i++)
		add_worker(&j, &b->workers[i]);
	json_array_end(&j);
	json_array_begin(&j, "findings");
	for (size_t i = 0; i < b->finding_count; i++)
		add_finding(&j, &b->findings[i]);
	json_array_end(&j);
	json_object_end(&j);
	text_add(out, "\n");
}

static void add_rank(struct json *j, const struct bundle_rank *r)
{
	json_object_begin(j, NULL);
	json_number(j, "rank", r->rank);
	json_number(j, "node", r->node);
	json_string(j, "fate", bundle_fate_word(r->fate));
	json_string(j, "end", r->end);
	json_number(j, "after_ms", r->after_ms);
	json_bool(j, "blames_peer", r->blames_peer);
	json_object_end(j);
}

static void add_node(struct json *j, const struct bundle_node *n)
{
	json_object_begin(j, NULL);
	json_number(j, "node", n->node);
	json_string(j, "host", n->host);
	json_string(j, "path", n->path);
	json_string(j, "text", n->text);
	json_bool(j, "lost", n->lost);
	json_object_end(j);
}

void index_json(const struct bundle_index *x, struct text *out)
{
	struct json j = { .out = out, .lines = true };

	json_object_begin(&j, NULL);
	json_number(&j, "launchd_blackbox_index", BUNDLE_VERSION);
	json_string(&j, "name", x->name);
	json_string(&j, "job", x->job);
	json_string(&j, "launchd", x->launchd);
	json_number(&j, "attempt", x->attempt);
	json_number(&j, "nnodes", x->nnodes);
	json_number(&j, "world_size", x->world_size);
	json_number(&j, "wall_ms", x->wall_ms);
	json_string(&j, "cause", x->cause);
	json_string(&j, "kind", x->kind);
	json_string(&j, "why", x->why);
	json_bool(&j, "unsure", x->unsure);
	json_number(&j, "futile_attempts", x->futile);
	add_first(&j, &x->first);
	json_object_begin(&j, "counts");
	for (int f = 0; f < FATES; f++)
		json_number(&j, bundle_fate_word((enum bundle_fate)f), (long long)x->counts[f]);
	json_object_end(&j);
	json_array_begin(&j, "ranks");
	for (size_t i = 0; i < x->rank_count; i++)
		add_rank(&j, &x->ranks[i]);
	json_array_end(&j);
	json_array_begin(&j, "nodes");
	for (size_t i = 0; i < x->node_count; i++)
		add_node(&j, &x->nodes[i]);
	json_array_end(&j);
	json_object_end(&j);
	text_add(out, "\n");
}
