/* starter.c - see starter.h */
#include "daemon/workers/starter.h"

#include <errno.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/output/front.h"
#include "daemon/plan/plan.h"
#include "daemon/workers/spawn.h"
#include "daemon/workers/worker.h"

void starter_init(struct starter *s, const struct plan *plan, const struct attempt *attempt,
	const struct inherited *inherited, struct output *output)
{
	struct env_edits edits = { 0 };

	*s = (struct starter){
		.plan = plan, .attempt = attempt, .inherited = inherited, .output = output
	};
	/* the same names are touched for all workers */
	plan_environment(plan, plan->start_first, attempt, &s->scratch, &edits);
	plan_untouched(plan, &edits, &s->scratch, &s->unchanged);
}

static void render_environment(struct starter *s, unsigned local_rank, struct vec *ret)
{
	struct env_edits edits = { 0 };

	plan_environment(s->plan, local_rank, s->attempt, &s->scratch, &edits);
	vec_add_all(&s->scratch, ret, s->unchanged.at);
	for (size_t i = 0; i < edits.count; i++)
		if (edits.at[i].value)
			vec_add(&s->scratch, ret,
				arena_printf(
					&s->scratch, "%s=%s", edits.at[i].name, edits.at[i].value));
}

int starter_start(struct starter *s, struct worker *w, int epoll_fd, struct failure *why)
{
	struct arena_mark mark = arena_mark(&s->scratch);
	unsigned local_rank = w->outcome.local_rank;
	struct vec argv = { 0 }, env = { 0 };
	unsigned index = local_rank - s->plan->start_first;
	struct stdio stdio[3] = { s->plan->input };
	struct spawn how = { .program = plan_program(s->plan, local_rank),
		.stdio = stdio,
		.inherited = s->inherited };
	int rc;

	for (int fd = 1; fd < 3 && s->output; fd++)
		stdio[fd] = output_stdio(s->output, index, fd);
	plan_command(s->plan, local_rank, &s->scratch, &argv);
	render_environment(s, local_rank, &env);
	how.argv = vec_argv(&argv);
	how.env = vec_argv(&env);
	if (arena_failed(&s->scratch)) {
		worker_not_started(w, ENDED_UNMADE, ENOMEM);
		rc = failure_oom(why);
	} else {
		rc = worker_start(w, epoll_fd, &how, why);
	}
	for (int fd = 1; fd < 3 && rc == 0; fd++)
		if (w->pipe[fd] >= 0)
			output_take(s->output, index, fd, fd_take(&w->pipe[fd]));
	arena_rewind(&s->scratch, mark);
	return rc;
}

void starter_done(struct starter *s)
{
	arena_done(&s->scratch);
}
