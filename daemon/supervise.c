/* supervise.c - see supervise.h */
#include "daemon/supervise.h"

#include <errno.h>
#include <string.h>

#include "common/failure.h"
#include "common/text.h"
#include "daemon/plan/plan.h"
#include "daemon/report/ending.h"
#include "daemon/report/report.h"
#include "daemon/say.h"
#include "daemon/workers/child.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/place.h"
#include "daemon/workers/run.h"
#include "daemon/workers/signals.h"

/* --verbose: which process has which rank. */
static void on_started(void *owner, const struct outcome *outcomes, size_t count)
{
	(void)owner;
	for (size_t i = 0; i < count; i++) {
		struct text line = { 0 };

		text_printf(&line, "started rank %u (local rank %u, attempt %u, pid %d)",
			outcomes[i].rank, outcomes[i].local_rank, outcomes[i].attempt,
			(int)outcomes[i].pid);
		say("note", text_string(&line));
		text_done(&line);
	}
}

static int report(const struct supervision *s, const struct result *result)
{
	struct text text = { 0 };
	int code = result_exit_code(result);

	report_failure(result, s->plan, s->hostname, &text);
	say_text(&text);
	if (code == 0 && s->verbose)
		say("note", "all workers ended with exit code 0");
	return code;
}

static void remove_run_dir(const struct supervision *s, struct failure *why)
{
	int rc = run_dir_remove(s->guard->run_dir);

	if (rc < 0)
		(void)failure_set(
			why, -EIO, "%s: can't be removed: %s", s->guard->run_dir, strerror(-rc));
}

int supervise(const struct supervision *s, struct failure *why)
{
	const struct run_input in = {
		.plan = s->plan,
		.heritage = s->heritage,
		.guard = s->guard,
		.run_dir = s->guard->run_dir,
		.arena = s->arena,
		.on_started = s->verbose ? on_started : NULL,
	};
	struct result result;
	int rc = run_plan(&in, &result, why);

	remove_run_dir(s, why);
	signals_release(&s->guard->taken);
	if (rc < 0)
		return rc;
	if (why->code != 0) /* why a worker could not be started, or a file not be removed */
		say(result_exit_code(&result) == 0 ? "warning" : "error", why->text);
	return report(s, &result);
}
