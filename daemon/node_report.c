/* node_report.c - see node_report.h */
#include "daemon/node_report.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/text.h"
#include "config/settings.h"
#include "daemon/check/finding.h"
#include "daemon/check/quick.h"
#include "daemon/check/quick_input.h"
#include "daemon/job/ending.h"
#include "daemon/workers/tree.h"

static void add_form(const struct settings *s, const struct findings *f, struct text *out)
{
	char host[256] = "";

	(void)gethostname(host, sizeof host - 1); /* that it is too long is no harm */
	if (settings_is(s, SET_CHECK_NODE, "prometheus")) {
		findings_prometheus(f, NULL, out);
	} else if (settings_is(s, SET_CHECK_NODE, "json") || settings_flag(s, SET_JSON)) {
		findings_json(f, host, out);
		text_add(out, "\n");
	} else {
		findings_table(f, out);
	}
}

/* What --check-command has started ends with it, even where the process that runs it was killed.
 * Who was there before is spared. */
static int look(const struct quick_input *in, struct findings *ret)
{
	struct survivor left[SURVIVORS_MAX];
	struct spared spared;
	sigset_t chld, before;
	unsigned count = 0;
	int rc;

	if (!in->command || tree_adopt_orphans() < 0 || tree_spare(&spared) < 0)
		return quick_check(in, ret);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &chld, &before); /* can't fail */
	rc = quick_check(in, ret);
	(void)tree_end_all(&spared, NULL, left, &count);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int node_report(const struct settings *s, const char *const *env, struct arena *arena,
	struct text *out, struct failure *why)
{
	struct quick_input in;
	struct findings *f;
	int rc = quick_input_make(s, env, false, true, arena, &in, why);

	if (rc < 0)
		return rc;
	f = calloc(1, sizeof *f);
	if (!f)
		return failure_oom(why);
	rc = look(&in, f);
	if (rc < 0)
		(void)failure_set(why, rc, "this node can't be checked: %s", strerror(-rc));
	else
		add_form(s, f, out);
	rc = rc < 0 ? rc : findings_worst(f) == HEALTH_BAD;
	free(f);
	return rc;
}
