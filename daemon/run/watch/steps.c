/* steps.c - see steps.h */
#include "daemon/run/watch/steps.h"

#include "common/arena.h"
#include "common/failure.h"
#include "daemon/cluster/member.h"
#include "daemon/cluster/message.h"
#include "daemon/observe/bus.h"
#include "daemon/output/front.h"
#include "daemon/plan/plan.h"

enum { TICK_MS = 1000 };

#define EVENT_EVERY_NS 10000000000ull /* a year of a job is three million of them */

static void come_to(struct steps *s, uint64_t step, uint64_t at_ns)
{
	s->signs++;
	if (s->known && step <= s->newest)
		return;
	s->known = true;
	s->newest = step;
	s->at_ns = at_ns;
}

static void on_news(void *owner, enum progress_news news, uint64_t step)
{
	struct steps *s = owner;

	if (!s->works)
		return;
	if (news == PROGRESS_STEP) {
		s->numbered = true;
		come_to(s, step, uv_hrtime());
	} else if (s->numbered) {
		s->signs++;
	} else {
		come_to(s, ++s->counted, uv_hrtime());
	}
}

static void look_at_lines(struct steps *s)
{
	const struct steps_seen seen = output_steps(s->output);

	if (seen.lines == s->lines)
		return;
	s->lines = seen.lines;
	come_to(s, seen.newest, seen.at_ns);
}

static void look_at_file(struct steps *s)
{
	const struct step_file_seen seen = step_file_look(&s->file);

	if (seen.changes == s->changes)
		return;
	s->counted += seen.changes - s->changes;
	s->changes = seen.changes;
	come_to(s, seen.numbered ? seen.number : s->counted, seen.at_ns);
}

static void tell_event(struct steps *s)
{
	s->job_told = true;
	s->job_told_ns = uv_hrtime();
	bus_emit(s->bus,
		&(struct event){ .kind = EVENT_STEP,
			.at_ns = s->job_at_ns,
			.step = { s->attempt, s->job_step } });
	s->job_known = false;
}

static void look(struct steps *s)
{
	if (s->plan->progress.by == PROGRESS_LINES)
		look_at_lines(s);
	else if (s->plan->progress.by == PROGRESS_FILE)
		look_at_file(s);
	else
		step_socket_read(&s->socket);
	if (!s->known || (s->told && s->told_step == s->newest))
		return;
	s->told = true;
	s->told_step = s->newest;
	member_step(s->member, &(struct message_step){ s->attempt, s->newest, s->at_ns });
}

void steps_of_job(struct steps *s, uint64_t step, uint64_t at_ns)
{
	s->job_known = true;
	s->job_step = step;
	s->job_at_ns = at_ns;
	if (!s->job_told || !s->works) /* others may end later than we do */
		tell_event(s);
}

static void on_tick(uv_timer_t *t)
{
	struct steps *s = t->data;

	look(s);
	if (s->job_known && uv_hrtime() - s->job_told_ns >= EVENT_EVERY_NS)
		tell_event(s);
}

int steps_listen(struct steps *s, const char *run_dir, struct failure *why)
{
	struct arena scratch = { 0 };
	const char *path;
	int rc = 0;

	if (!s->wanted || s->plan->progress.by != PROGRESS_NOTIFY)
		return 0;
	path = plan_progress_socket(run_dir, &scratch);
	if (path)
		rc = step_socket_open(&s->socket, s->tick.loop, path, why);
	else if (arena_failed(&scratch))
		rc = failure_oom(why);
	arena_done(&scratch);
	return rc;
}

int steps_enter(struct steps *s, uv_loop_t *loop, const char *run_dir, struct failure *why)
{
	s->wanted = s->plan->progress.by != PROGRESS_NONE;
	if (!s->wanted)
		return 0;
	(void)uv_timer_init(loop, &s->tick); /* can't fail */
	s->tick.data = s;
	s->socket.on_news = on_news;
	s->socket.owner = s;
	return steps_listen(s, run_dir, why);
}

void steps_leave(struct steps *s)
{
	if (!s->wanted)
		return;
	s->wanted = s->works = false;
	step_file_stop(&s->file);
	step_socket_close(&s->socket);
	uv_close((uv_handle_t *)&s->tick, NULL);
}

void steps_start(struct steps *s, unsigned attempt)
{
	if (!s->wanted)
		return;
	s->works = true;
	s->attempt = attempt;
	s->known = s->told = s->job_known = s->job_told = false;
	s->lines = s->changes = 0;
	output_forget_steps(s->output);
	if (s->plan->progress.by == PROGRESS_FILE)
		step_file_start(&s->file, s->tick.loop, s->plan->progress.what, s->argv);
	uv_update_time(s->tick.loop);
	(void)uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
}

void steps_stop(struct steps *s)
{
	if (!s->works)
		return;
	look(s);
	if (s->job_known)
		tell_event(s);
	s->works = false;
	(void)uv_timer_stop(&s->tick);
	step_file_stop(&s->file);
}
