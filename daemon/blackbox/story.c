/* story.c - see story.h */
#include "daemon/blackbox/story.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "common/text.h"
#include "common/utc.h"
#include "daemon/blackbox/bundle.h"

enum {
	NAMED = 8,         /* workers, findings and nodes that get a line each */
	LINES = 8,         /* of what one wrote last */
	SHOWN_BYTES = 400, /* of one text */
	LATE_MS = 5000,    /* a failure that comes later is hardly a consequence */
	MEANT_MS = 100,    /* CPU time is counted in steps of 10 ms: of less no share is known */
	NS_PER_MS = 1000000,
	MS_PER_S = 1000,
};

static void add_shown(struct text *out, const char *s)
{
	size_t len = s ? strlen(s) : 0;

	text_add_shown(out, s ? s : "", len < SHOWN_BYTES ? len : text_whole(s, SHOWN_BYTES));
	if (len > SHOWN_BYTES)
		text_add(out, "...");
}

static bool is(const char *word, const char *text)
{
	return word && strcmp(word, text) == 0;
}

static void add_title(struct text *out, const char *title)
{
	text_printf(out, "\n%s\n", title);
}

static void add_node(struct text *out, unsigned node, const char *host)
{
	text_printf(out, "node %u", node);
	if (host && *host) {
		text_add(out, " (");
		add_shown(out, host);
		text_add(out, ")");
	}
}

static void add_after(struct text *out, int64_t ms)
{
	text_printf(out, "%" PRId64 ".%03d s %s", (ms < 0 ? -ms : ms) / MS_PER_S,
		(int)((ms < 0 ? -ms : ms) % MS_PER_S), ms < 0 ? "earlier" : "later");
}

/* "42 workers" */
static void add_workers(struct text *out, uint64_t count)
{
	text_printf(out, "%" PRIu64 " worker%s", count, count == 1 ? "" : "s");
}

/* --- what came first --- */

static void add_head(const struct bundle_index *x, const struct bundle *b, struct text *out)
{
	int64_t wall_ms = x ? x->wall_ms : b->wall_ms;
	const char *job = x ? x->job : b->job;
	unsigned attempt = x ? x->attempt : b->attempt, nnodes = x ? x->nnodes : b->nnodes;
	char when[UTC_SIZE];

	add_shown(out, x ? x->name : b->name);
	text_add(out, "\n  job ");
	add_shown(out, job && !is(job, "none") ? job : "without an id");
	text_printf(out, ", attempt %u, ", attempt);
	add_workers(out, x ? x->world_size : b->world_size);
	text_printf(out, " on %u node%s", nnodes, nnodes == 1 ? "" : "s");
	if (wall_ms > 0 && wall_ms <= INT64_MAX / NS_PER_MS) {
		utc_write(when, wall_ms * NS_PER_MS, 3);
		text_printf(out, ", %s", when);
	}
	text_add(out, "\n");
}

static void add_first_worker(const struct bundle_first *f, struct text *out)
{
	text_printf(out, "  rank %u on ", f->rank);
	add_node(out, f->node, f->host);
	text_add(out, ": ");
	add_shown(out, f->text ? f->text : "it failed");
	text_add(out, "\n");
	if (f->error) {
		text_add(out, "  its exception: ");
		add_shown(out, f->error);
		text_add(out, "\n");
	}
	if (f->command) {
		text_add(out, "  its command: ");
		add_shown(out, f->command);
		text_add(out, "\n");
	}
}

static void add_first(const struct bundle_index *x, const struct bundle *b, struct text *out)
{
	static const char prefix[] = "root cause: "; /* the title says that */
	const struct bundle_first *f = x ? &x->first : &b->first;
	const char *why = x ? x->why : b->why;

	add_title(out, "What came first");
	if (f->known)
		add_first_worker(f, out);
	if (why && !f->known) {
		text_add(out, "  ");
		add_shown(out,
			strncmp(why, prefix, strlen(prefix)) == 0 ? why + strlen(prefix) : why);
		text_add(out, "\n");
	}
	if (x && x->futile)
		text_printf(out, "  %u attempt%s in a row ended without a new step.\n", x->futile,
			x->futile == 1 ? "" : "s");
	if (x && x->unsure)
		text_add(out,
			"  Others failed so close to it that nobody can tell who was first.\n");
	if (!x && b->nnodes > 1 && !is(b->kind, "look"))
		text_add(out,
			"  This is what one node knew when its workers had ended; the whole job's "
			"story is in " BUNDLE_INDEX " of node rank 0.\n");
}

/* --- who followed --- */

static void add_follower(const struct bundle_rank *r, struct text *out)
{
	text_printf(out, "  rank %u (node %u): ", r->rank, r->node);
	add_shown(out, r->end ? r->end : "it failed");
	text_add(out, ", ");
	add_after(out, r->after_ms);
	text_add(out,
		r->blames_peer ? ": it says that another worker had gone, or did not come\n" :
			r->after_ms < 0       ? ": the clocks, or its words, speak against it\n" :
			r->after_ms > LATE_MS ? ": that late it may have a cause of its own\n" :
						": by itself, before launchd asked it to end\n");
}

static void add_followers(const struct bundle_index *x, struct text *out)
{
	size_t named = 0;

	add_title(out, "Who followed, and why");
	for (size_t i = 0; i < x->rank_count && named < NAMED; i++)
		if (x->ranks[i].fate == FATE_FAILED) {
			add_follower(&x->ranks[i], out);
			named++;
		}
	if (x->counts[FATE_FAILED] > named) {
		text_add(out, "  ");
		add_workers(out, x->counts[FATE_FAILED] - named);
		text_add(out, " more failed by themselves\n");
	}
	if (x->counts[FATE_ENDED]) {
		text_add(out, "  ");
		add_workers(out, x->counts[FATE_ENDED]);
		text_add(out,
			x->counts[FATE_ENDED] == 1 ?
				": launchd ended it because of the failure\n" :
				": launchd ended them because of the failure\n");
	}
	if (x->counts[FATE_WELL]) {
		text_add(out, "  ");
		add_workers(out, x->counts[FATE_WELL]);
		text_add(out, ": exit code 0\n");
	}
	if (x->counts[FATE_FAILED] + x->counts[FATE_ENDED] + x->counts[FATE_WELL] == 0)
		text_add(out, "  nobody\n");
}

/* --- what a node saw --- */

/* What it was doing; false: nothing is known. */
static bool add_look(const struct bundle_look *l, struct text *out)
{
	if (!l->known)
		return false;
	text_add(out,
		l->state == 'R'         ? "running" :
			l->state == 'D' ? "in the kernel, where no signal ends it" :
			l->state == 'T' || l->state == 't' ? "stopped" :
			l->state == 'Z'                    ? "dead already" :
							     "waiting");
	if (l->call && *l->call) {
		text_add(out, " in ");
		add_shown(out, l->call);
	}
	if (l->wait && *l->wait) {
		text_add(out, " at ");
		add_shown(out, l->wait);
	}
	text_printf(out, ", %" PRIu64 ".%01u s of CPU", l->cpu_ms / MS_PER_S,
		(unsigned)(l->cpu_ms % MS_PER_S / 100));
	if (l->later_ms >= MEANT_MS)
		text_printf(out, " (%" PRIu64 " %% of a CPU since then)",
			l->later_cpu_ms * 100 / l->later_ms);
	text_printf(out, ", %" PRIu64 " thread%s", l->threads, l->threads == 1 ? "" : "s");
	return true;
}

static void add_lines(const char *lines, struct text *out)
{
	const char *end = lines + strlen(lines), *at = end;
	unsigned count = 0;

	while (at > lines && count < LINES) {
		const char *before = at - 1;

		while (before > lines && before[-1] != '\n')
			before--;
		at = before;
		count++;
	}
	while (at < end) {
		size_t len = strcspn(at, "\n");

		text_add(out, "      | ");
		text_add_shown(out, at, len < SHOWN_BYTES ? len : text_whole(at, SHOWN_BYTES));
		text_add(out, "\n");
		at += len + (at[len] ? 1 : 0);
	}
}

/* In which order workers are told of. */
enum telling { TELLS_FIRST, TELLS_FAILURE, TELLS_ERROR, TELLS_NOTHING, TELLINGS };

static enum telling telling_of(const struct bundle_worker *w)
{
	return w->fate == FATE_FIRST   ? TELLS_FIRST :
		w->fate == FATE_FAILED ? TELLS_FAILURE :
		w->error               ? TELLS_ERROR :
					 TELLS_NOTHING;
}

/* Whether a worker has more to tell than that it was ended. */
static bool is_telling(const struct bundle_worker *w)
{
	return telling_of(w) != TELLS_NOTHING;
}

static void add_worker(const struct bundle_worker *w, struct text *out)
{
	text_printf(out, "    rank %u: ", w->rank);
	if (w->end)
		add_shown(out, w->end);
	else if (w->fate == FATE_UNSTARTED)
		text_add(out, "not started");
	if (w->fate == FATE_ENDED)
		text_add(out, " (launchd ended it)");
	if (w->look.known) {
		text_add(out, w->end ? "; before that " : "");
		(void)add_look(&w->look, out);
	}
	text_add(out, "\n");
	if (w->error && is_telling(w)) {
		text_add(out, "      ");
		add_shown(out, w->error);
		text_add(out, "\n");
	}
	if (w->lines && *w->lines && is_telling(w))
		add_lines(w->lines, out);
	if (w->log && is_telling(w)) {
		text_add(out, "      its log: ");
		add_shown(out, w->log);
		text_add(out, "\n");
	}
}

/* The culprit before its victims, whose words are louder mostly. */
static void add_node_workers(const struct bundle *b, struct text *out)
{
	size_t named = 0;

	for (int telling = 0; telling < TELLINGS; telling++)
		for (size_t i = 0; i < b->worker_count; i++) {
			if ((int)telling_of(&b->workers[i]) != telling)
				continue;
			if (named++ < NAMED)
				add_worker(&b->workers[i], out);
		}
	if (named > NAMED)
		text_printf(out, "    %zu more: see " BUNDLE_JSON "\n", named - NAMED);
}

static void add_findings(const struct bundle *b, struct text *out)
{
	static const char *const order[] = { "bad", "unknown", "good" };
	size_t named = 0, left = 0;

	for (size_t o = 0; o < sizeof order / sizeof *order; o++)
		for (size_t i = 0; i < b->finding_count; i++) {
			const struct bundle_finding *f = &b->findings[i];

			if (!is(f->health, order[o]))
				continue;
			if (named++ >= 2 * NAMED) {
				left++;
				continue;
			}
			text_add(out, "    ");
			add_shown(out, f->source);
			if (f->subject && *f->subject) {
				text_add(out, ", ");
				add_shown(out, f->subject);
			}
			text_add(out, ": ");
			add_shown(out, f->text);
			text_add(out, "\n");
		}
	if (left)
		text_printf(out, "    %zu more: see " BUNDLE_JSON "\n", left);
}

static const struct bundle *node_of(const struct bundle *nodes, size_t count, unsigned node)
{
	for (size_t i = 0; i < count; i++)
		if (nodes[i].node == node)
			return &nodes[i];
	return NULL;
}

static void add_part(const struct bundle *b, struct text *out)
{
	text_add(out, "  ");
	add_node(out, b->node, b->host);
	text_add(out, b->held ? ", whose workers ran until all was seen\n" : "\n");
	add_node_workers(b, out);
	add_findings(b, out);
}

/* A node whose part is elsewhere, or nowhere. */
static void add_told(const struct bundle_node *n, struct text *out)
{
	text_add(out, "  ");
	add_node(out, n->node, n->host);
	text_add(out, n->lost ? ", which was lost: " : ": ");
	add_shown(out, n->text && *n->text ? n->text : "it has told nothing");
	text_add(out, "\n");
	if (n->path && *n->path) {
		text_add(out, "    on that node: ");
		add_shown(out, n->path);
		text_add(out, "\n");
	}
}

static void add_nodes(
	const struct bundle_index *x, const struct bundle *nodes, size_t count, struct text *out)
{
	size_t left = 0, named = 0;

	add_title(out, "What each node saw");
	for (size_t i = 0; i < count; i++)
		if (i < NAMED || (x && x->first.known && nodes[i].node == x->first.node))
			add_part(&nodes[i], out);
		else
			left++;
	for (size_t i = 0; x && i < x->node_count; i++) {
		if (node_of(nodes, count, x->nodes[i].node))
			continue;
		if (named++ < NAMED)
			add_told(&x->nodes[i], out);
		else
			left++;
	}
	if (left)
		text_printf(out, "  and %zu more\n", left);
}

/* --- what to look at next --- */

struct advice {
	struct text *out;
	unsigned count;
};

__attribute__((format(printf, 2, 3))) static void advise(struct advice *a, const char *fmt, ...)
{
	va_list ap;

	text_printf(a->out, "  %u. ", ++a->count);
	va_start(ap, fmt);
	text_vprintf(a->out, fmt, ap);
	va_end(ap);
	text_add(a->out, "\n");
}

static void advise_of_signal(struct advice *a, const struct bundle_first *f)
{
	const char *how = f->text ? f->text : "";

	if (strstr(how, "SIGKILL"))
		advise(a,
			"Rank %u was killed by SIGKILL, which launchd did not send and which leaves no "
			"core dump: an OOM killer that launchd can't see (dmesg, the container's "
			"limit), a batch system, or somebody on node %u.",
			f->rank, f->node);
	else if (strstr(how, "SIGTERM") || strstr(how, "SIGINT") || strstr(how, "SIGHUP"))
		advise(a,
			"Rank %u got a signal that launchd did not send: find out who sends signals on "
			"node %u.",
			f->rank, f->node);
	else
		advise(a,
			"Rank %u was killed by a signal that launchd did not send: look for a core "
			"dump (coredumpctl, ulimit -c) on node %u.",
			f->rank, f->node);
}

/* What a hang is known by. */
static void advise_of_stacks(struct advice *a, const struct bundle *nodes, size_t count)
{
	advise(a,
		"Compare the stacks of the ranks that are named with those of the others: the odd "
		"one out is where to begin.");
	for (size_t n = 0; n < count; n++)
		for (size_t i = 0; i < nodes[n].finding_count; i++) {
			const struct bundle_finding *f = &nodes[n].findings[i];

			if (is(f->health, "good") &&
				(is(f->source, "python") || is(f->source, "stack_signal")))
				return;
		}
	advise(a,
		"There are no stacks of Python here: install py-spy, or give --stack-signal, and "
		"--blackbox-hold 10, for the next time.");
}

static void advise_of_kind(struct advice *a, const char *kind, const struct bundle_first *f,
	const struct bundle *nodes, size_t count)
{
	if (is(kind, "exception"))
		advise(a,
			"Read the exception of rank %u above; its last lines are in "
			"node-%u/rank-%u.*.txt.",
			f->rank, f->node, f->rank);
	else if (is(kind, "exit"))
		advise(a,
			"Rank %u gave an exit code and no exception: read its last lines, in "
			"node-%u/rank-%u.*.txt if there are any; torch's @record makes it leave a "
			"traceback.",
			f->rank, f->node, f->rank);
	else if (is(kind, "signal"))
		advise_of_signal(a, f);
	else if (is(kind, "oom"))
		advise(a,
			"The kernel's OOM killer ended rank %u: compare its memory with the limit in "
			"what the node saw; fewer loader processes or smaller batches need less.",
			f->rank);
	else if (is(kind, "not_startable"))
		advise(a,
			"Rank %u could not be started: its node's launcher has said why (the program's "
			"format, its rights, its interpreter).",
			f->rank);
	else if (is(kind, "hang") || is(kind, "look") || is(kind, "collective_timeout"))
		advise_of_stacks(a, nodes, count);
	else if (is(kind, "timeout"))
		advise(a,
			"The time limit was over: see whether the workers above were at work (CPU) or "
			"waited.");
	else if (is(kind, "node_lost"))
		advise(a,
			"Look at the console, BMC and kernel log of the node that was lost: nothing "
			"could be taken there.");
}

/* A worker that was stuck, in a way that ends no signal. */
static void advise_of_workers(struct advice *a, const struct bundle *b)
{
	for (size_t i = 0; i < b->worker_count; i++) {
		const struct bundle_look *l = &b->workers[i].look;

		if (!l->known)
			continue;
		if (l->state == 'D')
			advise(a,
				"Rank %u was stuck in the kernel (state D): a driver or a file "
				"server on node %u does not answer.",
				b->workers[i].rank, b->node);
		else if (l->state == 'T' || l->state == 't')
			advise(a,
				"Rank %u was stopped (SIGSTOP, or a debugger): find who did that.",
				b->workers[i].rank);
		else
			continue;
		if (a->count >= NAMED)
			return;
	}
}

static void advise_of_findings(struct advice *a, const struct bundle *b)
{
	for (size_t i = 0; i < b->finding_count && a->count < NAMED; i++) {
		const struct bundle_finding *f = &b->findings[i];

		if (!is(f->health, "bad"))
			continue;
		text_printf(a->out, "  %u. On node %u ", ++a->count, b->node);
		add_shown(a->out, f->source);
		text_add(a->out, " says: ");
		add_shown(a->out, f->subject);
		text_add(a->out, f->subject && *f->subject ? ": " : "");
		add_shown(a->out, f->text);
		text_add(a->out, "\n");
	}
}

static void add_advice(
	const struct bundle_index *x, const struct bundle *nodes, size_t count, struct text *out)
{
	struct advice a = { .out = out };

	add_title(out, "What to look at next");
	advise_of_kind(&a, x ? x->kind : nodes->kind, x ? &x->first : &nodes->first, nodes, count);
	for (size_t i = 0; i < count; i++)
		advise_of_findings(&a, &nodes[i]);
	for (size_t i = 0; i < count; i++)
		advise_of_workers(&a, &nodes[i]);
	if (a.count == 0)
		advise(&a, "The workers' logs: nothing here stands out.");
}

void story_add(const struct bundle_index *index, const struct bundle *nodes, size_t count,
	struct text *out)
{
	if (!index && count == 0)
		return;
	add_head(index, nodes, out);
	add_first(index, nodes, out);
	if (index)
		add_followers(index, out);
	add_nodes(index, nodes, count, out);
	add_advice(index, nodes, count, out);
}
