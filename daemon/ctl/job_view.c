/* job_view.c - see job_view.h */
#include "daemon/ctl/job_view.h"

#include <string.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/ctl/columns.h"
#include "daemon/ctl/ctl_link.h"

/* What is being written. */
struct viewing {
	const struct cjson *cjson;
	struct arena *arena;
	double now; /* by the clock of the node that is being shown */
	const struct view_frame *frame;
	const cJSON *own; /* the node of whose GPUs the frame tells: pids mean nothing elsewhere */
	bool all_nodes;   /* of the job: each worker's row says where it is */
};

/* For what a node says. */
static struct viewing of_node(const struct viewing *v, const cJSON *node)
{
	struct viewing ret = *v;

	ret.now = 0;
	(void)member_number(v->cjson, node, "at", &ret.now);
	return ret;
}

static unsigned count_of(const struct viewing *v, const cJSON *of, const char *name)
{
	double n;

	return member_number(v->cjson, of, name, &n) && n >= 0 && n < 4e9 ? (unsigned)n : 0;
}

/* "7s", "12:03", "2:03:11", "3d 02:03"; "-" where it is not known. */
static const char *duration(const struct viewing *v, double seconds)
{
	unsigned long s = seconds > 0 && seconds < 1e12 ? (unsigned long)seconds : 0;

	if (s < 60)
		return arena_printf(v->arena, "%lus", s);
	if (s < 3600)
		return arena_printf(v->arena, "%lu:%02lu", s / 60, s % 60);
	if (s < 86400)
		return arena_printf(v->arena, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
	return arena_printf(v->arena, "%lud %02lu:%02lu", s / 86400, s / 3600 % 24, s / 60 % 60);
}

/* From a moment to the next one, or to now; NULL: it has not begun. */
static const char *time_since(
	const struct viewing *v, const cJSON *of, const char *from, const char *to)
{
	double begin, end;

	if (!member_number(v->cjson, of, from, &begin))
		return NULL;
	if (!to || !member_number(v->cjson, of, to, &end))
		end = v->now;
	return duration(v, end - begin);
}

/* "872 MiB", "3.2 GiB" */
static const char *bytes(const struct viewing *v, double n)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	unsigned unit = 0;

	for (; n >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
		n /= 1024;
	return arena_printf(v->arena, "%.*f %s", n < 10 && unit > 0 ? 1 : 0, n, units[unit]);
}

/* A worker's state in a word or two: "running", "exit 3", "SIGKILL". */
static const char *state_of(const struct viewing *v, const cJSON *worker)
{
	const char *signal = member_text(v->cjson, worker, "signal");
	double code;

	if (signal)
		return signal;
	if (member_number(v->cjson, worker, "exit_code", &code))
		return arena_printf(v->arena, "exit %d", (int)code);
	return member_text(v->cjson, worker, "state");
}

static const char *store_of(const struct viewing *v, const cJSON *worker)
{
	const cJSON *joined = v->cjson->item(worker, "joined");

	return !joined || joined->type & cJSON_NULL ? NULL :
		joined->type & cJSON_True           ? "joined" :
						      "no";
}

static const char *gpu_memory(const struct viewing *v, pid_t pid)
{
	for (size_t i = 0; i < v->frame->gpu_count; i++)
		if (v->frame->gpus[i].worker == pid)
			return bytes(v, (double)v->frame->gpus[i].bytes);
	return NULL;
}

static void add_place(const struct viewing *v, const cJSON *node, struct columns *to)
{
	columns_add(to, arena_printf(v->arena, "%u", count_of(v, node, "node_rank")));
	columns_add(to, member_text(v->cjson, node, "host"));
}

static void add_worker(
	const struct viewing *v, const cJSON *node, const cJSON *worker, struct columns *to)
{
	double pid, number;
	bool has_pid = member_number(v->cjson, worker, "pid", &pid);

	if (v->all_nodes)
		add_place(v, node, to);
	columns_add(to, arena_printf(v->arena, "%u", count_of(v, worker, "rank")));
	columns_add(to, arena_printf(v->arena, "%u", count_of(v, worker, "local_rank")));
	columns_add(to, has_pid ? arena_printf(v->arena, "%d", (int)pid) : NULL);
	columns_add(to, state_of(v, worker));
	columns_add(to, time_since(v, worker, "started_at", "ended_at"));
	columns_add(to,
		member_number(v->cjson, worker, "cpu_seconds", &number) ? duration(v, number) :
									  NULL);
	columns_add(to,
		member_number(v->cjson, worker, "memory_bytes", &number) ? bytes(v, number) : NULL);
	if (v->frame->gpus)
		columns_add(to, has_pid && node == v->own ? gpu_memory(v, (pid_t)pid) : NULL);
	columns_add(to, store_of(v, worker));
	columns_add(to, member_text(v->cjson, worker, "last_line"));
}

static void begin_workers(const struct viewing *v, struct columns *to)
{
	static const char *const head[] = { "NODE", "HOST", "RANK", "LOCAL", "PID", "STATE", "TIME",
		"CPU", "MEMORY", "GPU MEMORY", "STORE", "LAST LINE" };
	enum { RANK = 2, GPU = 9 };
	unsigned count = sizeof head / sizeof *head;

	*to = (struct columns){ .arena = v->arena };
	to->count = count - (v->all_nodes ? 0 : RANK) - (v->frame->gpus ? 0 : 1);
	for (unsigned i = v->all_nodes ? 0 : RANK; i < count; i++)
		if (i != GPU || v->frame->gpus)
			columns_add(to, head[i]);
}

/* False: there are none. */
static bool add_workers(const struct viewing *v, const cJSON *node, struct columns *to)
{
	const cJSON *workers = member_object(v->cjson, node, "workers");
	const cJSON *first = workers ? workers->child : NULL;
	const struct viewing there = of_node(v, node);

	for (const cJSON *worker = first; worker; worker = worker->next)
		add_worker(&there, node, worker, to);
	return first != NULL;
}

static void add_shown(struct text *out, const char *before, const char *text)
{
	if (!text)
		return;
	text_add(out, before);
	text_add_shown(out, text, strlen(text));
}

/* "; waiting for nodes 1 (gpu02), 3 (gpu04)", without the names where they are not known */
static void add_awaited(const struct viewing *v, const cJSON *status, struct text *out)
{
	const cJSON *nodes = member_object(v->cjson, status, "awaited");
	const cJSON *hosts = member_object(v->cjson, status, "awaited_hosts");
	const cJSON *host = hosts ? hosts->child : NULL;
	const char *before = nodes && nodes->child && nodes->child->next ? "; waiting for nodes " :
									   "; waiting for node ";

	for (const cJSON *node = nodes ? nodes->child : NULL; node; node = node->next) {
		text_printf(out, "%s%d", before, (int)node->valuedouble);
		add_shown(out, " (", host ? host->valuestring : NULL);
		text_add(out, host && host->valuestring ? ")" : "");
		host = host ? host->next : NULL;
		before = ", ";
	}
}

/* How long the nodes have been meeting, or the attempt working; of other states nothing tells when
 * they began. */
static const char *time_in_state(const struct viewing *v, const cJSON *status)
{
	const char *state = member_text(v->cjson, status, "state");

	if (state && strcmp(state, "meeting") == 0)
		return time_since(v, status, "started_at", NULL);
	if (state && strcmp(state, "working") == 0)
		return time_since(v, status, "attempt_started_at", NULL);
	return NULL;
}

static void add_step(const struct viewing *v, const cJSON *status, struct text *out)
{
	const char *since = time_since(v, status, "step_at", NULL);
	double step;

	if (!member_number(v->cjson, status, "step", &step))
		return;
	text_printf(out, "; step %.0f", step);
	if (since)
		text_printf(out, ", %s ago", since);
}

static void add_job(const struct viewing *v, const cJSON *status, struct text *out)
{
	const struct viewing here = of_node(v, status);
	const char *run_id = member_text(v->cjson, status, "run_id");
	const char *name = member_text(v->cjson, status, "name");
	double node;

	add_shown(out, "", name ? name : "?");
	if (run_id && name && strcmp(run_id, name) != 0 && strcmp(run_id, "none") != 0)
		add_shown(out, ", run ", run_id);
	add_shown(out, ": ", member_text(v->cjson, status, "state"));
	add_shown(out, " for ", time_in_state(&here, status));
	if (count_of(v, status, "attempt") > 0)
		text_printf(out, "; attempt %u", count_of(v, status, "attempt"));
	if (count_of(v, status, "max_restarts") > 0)
		text_printf(out, "; at most %u restarts", count_of(v, status, "max_restarts"));
	add_awaited(v, status, out);
	add_step(&here, status, out);
	add_shown(out, "; stopping: ", member_text(v->cjson, status, "stopping"));
	add_shown(out, "; may hang: ", member_text(v->cjson, status, "hang"));
	text_add(out, "\n");
	if (member_number(v->cjson, status, "node_rank", &node))
		text_printf(out, "node %d of %u", (int)node, count_of(v, status, "nnodes"));
	else
		text_printf(out, "one of %u nodes", count_of(v, status, "nnodes"));
	add_shown(out, " on ", member_text(v->cjson, status, "host"));
	text_printf(out, ": launcher %u, supervisor %u", count_of(v, status, "guard_pid"),
		count_of(v, status, "supervisor_pid"));
	add_shown(out, "; logs in ", member_text(v->cjson, status, "log_dir"));
	text_add(out, "\n");
}

size_t job_view_pids(const struct cjson *c, const cJSON *status, pid_t *ret, size_t room)
{
	const cJSON *workers = member_object(c, status, "workers");
	size_t count = 0;

	for (const cJSON *w = workers ? workers->child : NULL; w && count < room; w = w->next) {
		double pid, ended;

		if (member_number(c, w, "pid", &pid) && !member_number(c, w, "ended_at", &ended))
			ret[count++] = (pid_t)pid;
	}
	return count;
}

/* Where launchers place workers. */
static void add_placement(const struct viewing *v, const cJSON *status, struct text *out)
{
	const cJSON *placement = member_object(v->cjson, status, "placement");
	const cJSON *lines = placement ? member_object(v->cjson, placement, "picture") : NULL;

	if (!lines || !lines->child)
		return;
	text_add(out, "\nPlacement\n");
	for (const cJSON *line = lines->child; line; line = line->next)
		if (line->valuestring) {
			add_shown(out, "  ", line->valuestring);
			text_add(out, "\n");
		}
}

void job_view_status(const struct cjson *c, const cJSON *status, const struct view_frame *frame,
	struct arena *arena, struct text *out)
{
	const struct viewing v = { c, arena, 0, frame, status, false };
	struct columns table;

	add_job(&v, status, out);
	begin_workers(&v, &table);
	if (add_workers(&v, status, &table))
		columns_print(&table, frame->width, out);
	add_placement(&v, status, out);
	if (arena_failed(arena))
		out->failed = true;
}

/* One without workers that are known: why, or how far it is. */
static void add_bare_node(const struct viewing *v, const cJSON *node, struct text *out)
{
	const char *error = member_text(v->cjson, node, "error");

	text_printf(out, "node %u", count_of(v, node, "node_rank"));
	add_shown(out, " on ", member_text(v->cjson, node, "host"));
	add_shown(out, ": ", error ? error : member_text(v->cjson, node, "state"));
	text_add(out, "\n");
}

void job_view_nodes(const struct cjson *c, const cJSON *all, const struct view_frame *frame,
	struct arena *arena, struct text *out)
{
	const cJSON *nodes = member_object(c, all, "nodes");
	const cJSON *first = nodes ? nodes->child : NULL;
	const struct viewing v = { c, arena, 0, frame, first, true };
	struct text bare = { 0 };
	struct columns table;
	bool any = false;

	if (first)
		add_job(&v, first, out);
	begin_workers(&v, &table);
	for (const cJSON *node = first; node; node = node->next)
		if (add_workers(&v, node, &table))
			any = true;
		else
			add_bare_node(&v, node, &bare);
	if (any)
		columns_print(&table, frame->width, out);
	text_add(out, text_string(&bare));
	if (arena_failed(arena) || bare.failed)
		out->failed = true;
	text_done(&bare);
}

void job_view_head(struct columns *c)
{
	static const char *const head[] = { "JOB", "RUN ID", "PID", "USER", "STATE", "NODE",
		"WORKERS", "TIME" };

	c->count = sizeof head / sizeof *head;
	for (unsigned i = 0; i < c->count; i++)
		columns_add(c, head[i]);
}

/* "7 of 8": those that run. */
static const char *workers_of(const struct viewing *v, const cJSON *status)
{
	const cJSON *workers = member_object(v->cjson, status, "workers");
	unsigned all = 0, running = 0;

	for (const cJSON *w = workers ? workers->child : NULL; w; w = w->next) {
		const char *state = member_text(v->cjson, w, "state");

		all++;
		running += state && strcmp(state, "ended") != 0 && strcmp(state, "planned") != 0;
	}
	return all == 0 ? NULL : arena_printf(v->arena, "%u of %u", running, all);
}

/* Another user may have named it, and all rows get as wide as the widest. */
static void add_narrow(struct columns *to, const char *cell)
{
	enum { WIDEST = 100 };
	size_t len = cell ? strnlen(cell, WIDEST) : 0;

	while (len > 0 && ((unsigned char)cell[len] & 0xc0) == 0x80)
		len--;
	columns_add(to, cell ? arena_strndup(to->arena, cell, len) : NULL);
}

void job_view_row(const struct cjson *c, const cJSON *status, pid_t guard, const char *user,
	struct columns *to)
{
	const struct viewing any = { .cjson = c, .arena = to->arena };
	const struct viewing v = of_node(&any, status);
	double node;

	add_narrow(to, member_text(c, status, "name"));
	add_narrow(to, member_text(c, status, "run_id"));
	columns_add(to, arena_printf(to->arena, "%d", (int)guard));
	columns_add(to, user);
	add_narrow(to, member_text(c, status, "state"));
	columns_add(to,
		member_number(c, status, "node_rank", &node) ?
			arena_printf(
				to->arena, "%d of %u", (int)node, count_of(&v, status, "nnodes")) :
			arena_printf(to->arena, "? of %u", count_of(&v, status, "nnodes")));
	columns_add(to, workers_of(&v, status));
	columns_add(to, time_since(&v, status, "started_at", NULL));
}
