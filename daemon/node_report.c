/* node_report.c - see node_report.h */
#include "daemon/node_report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/text.h"
#include "config/settings.h"
#include "daemon/check/finding.h"
#include "daemon/check/quick.h"
#include "daemon/check/quick_input.h"

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
	rc = quick_check(&in, f);
	if (rc < 0)
		(void)failure_set(why, rc, "this node can't be checked: %s", strerror(-rc));
	else
		add_form(s, f, out);
	rc = rc < 0 ? rc : findings_worst(f) == HEALTH_BAD;
	free(f);
	return rc;
}
