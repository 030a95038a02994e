/* look.c - see look.h */
#include "daemon/run/look.h"

#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/json.h"
#include "common/sm.h"
#include "common/text.h"
#include "common/utc.h"
#include "daemon/cluster/sight.h"
#include "daemon/control/job_status.h"
#include "daemon/job/job_end.h"
#include "daemon/job/phrases.h"
#include "daemon/os/procfs.h"
#include "daemon/output/log_tree.h"
#include "daemon/output/tail.h"
#include "daemon/place/picture.h"
#include "daemon/plan/plan.h"
#include "daemon/run/state.h"
#include "daemon/run/watch/joined.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/worker.h"

struct looking {
	const struct run *run;
	const struct tails *tails;
	size_t line_max; /* bytes; 0: as many as there are */
	struct arena memory;
	const bool *joined; /* NULL: it can't be seen */
};

const char *last_lines(const char *text, unsigned lines)
{
	const char *at = text + strlen(text);

	while (at > text && (at[-1] != '\n' || --lines > 0))
		at--;
	return at;
}

/* A moment of the attempt as the time of day; 0 stays 0. */
static int64_t wall_of(const struct run *r, uint64_t ns)
{
	const struct result *own = &r->end->own;

	return ns > 0 && own->started_ns > 0 ?
		own->started_wall_ns + (int64_t)(ns - own->started_ns) :
		0;
}

static void look_who_joined(struct looking *l)
{
	const struct run *r = l->run;
	unsigned count = r->plan->start_count;
	pid_t *pids = arena_alloc(&l->memory, count * sizeof *pids);
	bool *joined = arena_alloc(&l->memory, count * sizeof *joined);

	if (!pids || !joined)
		return;
	for (unsigned i = 0; i < count; i++)
		if (worker_is_alive(&r->pool.workers[i]))
			pids[i] = r->pool.workers[i].outcome.pid;
	if (joined_look(pids, count, r->plan->master_addr, r->master_port, joined) == 0)
		l->joined = joined;
}

static void set_files(struct looking *l, unsigned local_rank, struct worker_status *ret)
{
	const char *dir = l->run->attempt.log_dir;

	for (int fd = 1; dir && fd <= 2; fd++)
		if (plan_stream(l->run->plan, local_rank, fd).file)
			ret->files[fd - 1] = tree_log_path(dir, local_rank, fd, &l->memory);
}

static void set_outcome(const struct run *r, const struct outcome *o, struct worker_status *ret)
{
	ret->pid = o->pid;
	ret->started_ns = wall_of(r, o->started_ns);
	ret->ended_ns = wall_of(r, o->ended_ns);
	ret->exit_code = o->end.how == ENDED_EXIT ? o->end.value : -1;
	ret->signal = o->end.how == ENDED_SIGNAL ? o->end.value : 0;
}

static void set_running(struct looking *l, unsigned i, struct worker_status *ret)
{
	const struct worker *w = &l->run->pool.workers[i];
	struct usage used;

	set_outcome(l->run, &w->outcome, ret);
	ret->state = worker_life.states[w->state].name;
	if (!worker_is_alive(w))
		return;
	if (process_usage(w->outcome.pid, &used) == 0) {
		ret->has_usage = true;
		ret->cpu_ms = used.cpu_ms;
		ret->memory_bytes = used.memory_bytes;
	}
	ret->is_seen = l->joined != NULL;
	ret->joined = l->joined && l->joined[i];
}

/* A character that is cut is left out. */
static const char *last_line(struct looking *l, const char *text)
{
	const char *line = last_lines(text, 1);

	if (l->line_max == 0 || strlen(line) <= l->line_max)
		return line;
	return arena_strndup(&l->memory, line, text_whole(line, l->line_max));
}

static void look_at(struct looking *l, unsigned i, struct worker_status *ret)
{
	const struct run *r = l->run;
	unsigned local_rank = r->plan->start_first + i;
	bool was_started =
		r->state == RUN_DRAINING || r->state == RUN_WAITING || r->state == RUN_OVER;

	*ret = (struct worker_status){
		.rank = plan_rank(r->plan, local_rank).rank,
		.local_rank = local_rank,
		.state = worker_life.states[was_started ? WORKER_ENDED : WORKER_PLANNED].name,
		.exit_code = -1,
	};
	set_files(l, local_rank, ret);
	if (r->state == RUN_WORKING)
		set_running(l, i, ret);
	else if (was_started)
		set_outcome(r, &r->outcomes[i], ret);
	if (l->tails && i < l->tails->count && *l->tails->of[i])
		ret->last_line = last_line(l, l->tails->of[i]);
}

/* Before the nodes have met nobody knows the workers' ranks. */
static void look_at_workers(struct looking *l, struct job_status *ret)
{
	const struct run *r = l->run;
	unsigned count = r->plan->start_count;
	struct worker_status *workers;

	if (r->state == RUN_MEETING || !r->outcomes)
		return;
	workers = arena_alloc(&l->memory, count * sizeof *workers);
	if (!workers)
		return;
	if (r->state == RUN_WORKING)
		look_who_joined(l);
	for (unsigned i = 0; i < count; i++)
		look_at(l, i, &workers[i]);
	ret->workers = workers;
	ret->worker_count = count;
}

static void look_who_is_awaited(struct looking *l, struct job_status *ret)
{
	const struct run *r = l->run;
	unsigned *nodes = arena_alloc(&l->memory, r->plan->nnodes * sizeof *nodes);

	if (!nodes || r->state != RUN_MEETING)
		return;
	ret->awaited = nodes;
	ret->awaited_count = sight_awaited(&r->member, nodes, r->plan->nnodes);
}

/* NULL: nobody has asked for one. */
static const char *placement_of(const struct plan *p, struct arena *arena)
{
	struct text out = { 0 };
	struct json j = { .out = &out };
	struct picture picture;
	const char *json;

	if (!p->placement)
		return NULL;
	picture = plan_picture(p);
	json_object_begin(&j, NULL);
	picture_json(&picture, arena, &j);
	json_object_end(&j);
	json = out.failed ? NULL : arena_strdup(arena, text_string(&out));
	text_done(&out);
	return json;
}

/* Of the job on node rank 0, elsewhere of this node. */
static void set_step(const struct run *r, struct job_status *ret)
{
	const struct job_steps *job = sight_steps(&r->member);

	ret->step_known = job ? job->attempt_known : r->steps.known;
	ret->step = job ? job->attempt_best : r->steps.newest;
	if (ret->step_known)
		ret->step_at_ns = wall_of(r, job ? job->at_ns : r->steps.at_ns);
}

void look_add(const struct run *r, int64_t since_ns, const struct tails *tails, size_t line_max,
	struct text *out)
{
	const struct plan *p = r->plan;
	struct looking l = { .run = r, .tails = tails, .line_max = line_max };
	struct text stopping = { 0 };
	struct job_status s = {
		.name = p->job_name,
		.run_id = p->run_id,
		.state = run_life.states[r->state].name,
		.host = r->in->hostname,
		.hang = *r->hang.suspicion ? r->hang.suspicion : NULL,
		.log_dir = r->attempt.log_dir,
		.attempt = r->attempt.number,
		.max_restarts = p->max_restarts,
		.nnodes = p->nnodes,
		.nproc_per_node = p->nproc,
		.world_size = p->world_size,
		.node_rank = p->node_rank,
		.node_names = p->node_names,
		.node_known = r->state != RUN_MEETING || r->in->member->node_rank_known,
		.guard = r->in->guard->guard,
		.supervisor = getpid(),
		.at_ns = utc_now_ns(),
		.started_ns = since_ns,
		.attempt_started_ns = r->end->own.started_wall_ns,
	};

	set_step(r, &s);
	if (r->known.kind != CAUSE_NONE)
		cause_brief_add(&r->known, p->max_runtime_ms, &stopping);
	if (r->known.kind == CAUSE_PREEMPTED) {
		text_add(&stopping, ", time left: ");
		span_add(&stopping, uv_hrtime(), r->preempted_ns);
	}
	s.stopping = stopping.len > 0 ? text_string(&stopping) : NULL;
	look_who_is_awaited(&l, &s);
	look_at_workers(&l, &s);
	if (line_max == 0 && r->state != RUN_MEETING) /* not for a survey of all nodes */
		s.placement = placement_of(p, &l.memory);
	job_status_json(&s, out);
	if (arena_failed(&l.memory))
		out->failed = true;
	text_done(&stopping);
	arena_done(&l.memory);
}
