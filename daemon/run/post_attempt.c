/* post_attempt.c - see post_attempt.h */
#include "daemon/run/post_attempt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/job/ending.h"
#include "daemon/job/phrases.h"
#include "daemon/observe/bus.h"
#include "daemon/os/user_command.h"
#include "daemon/plan/plan.h"
#include "daemon/report/outcome_json.h"
#include "daemon/workers/tree.h"

enum { LEAST_MS = 1000 }; /* though the node is as good as gone */

/* Shared with the child. */
struct post_answer {
	struct helper_answer helper;
	struct command_said command;
};

/* --- in the child --- */

static const char *outcome_word(enum cause_kind kind)
{
	switch (kind) {
	case CAUSE_NONE:
		return "success";
	case CAUSE_FAILURE:
	case CAUSE_NODE_LOST:
	case CAUSE_HANG:
	case CAUSE_TIMEOUT:
		return "failure";
	case CAUSE_SIGNAL:
	case CAUSE_MAX_RUNTIME:
	case CAUSE_GUARD:
	case CAUSE_LAUNCHER:
	case CAUSE_HANGUP:
	case CAUSE_RESTART:
	case CAUSE_BAD_NODE:
	case CAUSE_PREEMPTED:
		break;
	}
	return "stopped";
}

/* What it inherited itself, from another launcher's command, goes. */
static void put(const struct helper *h, const char *name, const char *value)
{
	if ((value ? setenv(name, value, 1) : unsetenv(name)) < 0)
		helper_fail(h, "%s: %s", name, strerror(errno));
}

static void put_number(const struct helper *h, const char *name, bool known, unsigned number)
{
	char text[16];

	(void)snprintf(text, sizeof text, "%u", number);
	put(h, name, known ? text : NULL);
}

/* "rank 3 (local rank 1, pid 4711) on gpu07 (node 1): exit code 1"; nothing of an attempt that went
 * well. */
static void add_words(const struct post_attempt *p, const struct cause *c, struct text *out)
{
	const struct outcome *culprit = cause_culprit(c);

	if (culprit) {
		worker_add(out, culprit);
		text_add(out, *c->host ? " on " : "");
		if (*c->host)
			place_add(out, c->host, c->node);
		text_add(out, ": ");
		outcome_add(out, culprit);
	} else if (c->kind != CAUSE_NONE) {
		cause_brief_add(c, p->plan->max_runtime_ms, out);
		if (*c->detail)
			text_printf(out, ": %s", c->detail);
	}
}

static void set_environment(const struct helper *h, const struct post_attempt *p)
{
	const struct cause *c = p->what.cause;
	const struct outcome *culprit = cause_culprit(c);
	struct text words = { 0 };

	add_words(p, c, &words);
	put_number(h, "GROUP_RANK", true, p->plan->node_rank);
	put_number(h, "LAUNCHD_ATTEMPT", true, p->what.attempt);
	put(h, "LAUNCHD_OUTCOME", outcome_word(c->kind));
	put(h, "LAUNCHD_CAUSE", json_cause_word(c->kind));
	put(h, "LAUNCHD_CAUSE_TEXT", text_string(&words));
	put_number(h, "LAUNCHD_CULPRIT_RANK", culprit != NULL, culprit ? culprit->rank : 0);
	put_number(h, "LAUNCHD_CULPRIT_NODE", culprit != NULL, c->node);
	put(h, "LAUNCHD_BUNDLE", p->what.bundle);
	text_done(&words);
}

static void work(struct helper *h)
{
	const struct post_attempt *p = h->owner;
	const char *what;
	int rc;

	set_environment(h, p);
	rc = command_run(p->plan->post_attempt, &((struct post_answer *)h->answer)->command, &what);
	if (rc < 0)
		helper_fail(h, "%s: %s", what, strerror(-rc));
}

/* --- in the supervisor --- */

static void warn(const struct post_attempt *p, struct text *why)
{
	struct text line = { 0 };

	text_printf(&line, "--post-attempt %s failed after attempt %u: %s",
		p->plan->post_attempt[0], p->what.attempt, text_string(why));
	bus_note(p->bus, NOTE_WARNING, text_string(&line));
	text_done(&line);
}

static void on_end(struct helper *h, bool succeeded)
{
	const struct post_attempt *p = h->owner;
	const struct command_said said =
		command_copy(&((const struct post_answer *)h->answer)->command);
	struct text why = { 0 };

	if (!succeeded)
		helper_explain(h, "it", &why);
	else if (!command_succeeded(&said))
		command_end_add(&said, &why);
	if (why.len > 0) {
		command_words_add(&said, &why);
		warn(p, &why);
	}
	text_done(&why);
	helper_close(h);
}

/* What has left the child's process group is this process's child by now. */
static void on_closed(struct helper *h)
{
	const struct post_attempt *p = h->owner;

	if (tree_end_soon(TREE_PATIENCE_MS) > 0)
		bus_note(p->bus, NOTE_WARNING,
			"a process of --post-attempt can't be ended: it hangs in the kernel");
	p->on_over(p->owner);
}

/* A node that is taken away has no more than that. */
static uint64_t limit_ms(const struct post_attempt *p)
{
	uint64_t limit = p->plan->post_attempt_ms, left = p->what.left_ms;

	if (left == 0 || left >= limit)
		return limit;
	return left > LEAST_MS ? left : LEAST_MS;
}

bool post_attempt_start(struct post_attempt *p, uv_loop_t *loop, const struct attempt_over *what)
{
	const struct plan *plan = p->plan;
	struct text why = { 0 };
	int rc;

	/* of several launchers on a host one is enough */
	if (!plan->post_attempt || (plan->process.is && plan->process.local_rank > 0))
		return false;
	p->what = *what;
	p->helper = (struct helper){
		.work = work,
		.on_end = on_end,
		.on_closed = on_closed,
		.owner = p,
		.name = "post-attempt",
		.argv = p->argv,
		.group = true,
	};
	rc = helper_start(&p->helper, loop, sizeof(struct post_answer), limit_ms(p));
	if (rc == 0)
		return true;
	text_printf(&why, "it can't be started: %s", strerror(-rc));
	warn(p, &why);
	text_done(&why);
	return false;
}

void post_attempt_end(struct post_attempt *p)
{
	helper_close(&p->helper);
}
