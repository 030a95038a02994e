/* verdict_text.c - the verdict in one line; see verdict.h */
#include "daemon/cluster/verdict.h"

#include <stdio.h>
#include <string.h>

#include "common/signame.h"
#include "common/text.h"
#include "daemon/report/phrases.h"

/* "gpu07 (node 1)"; "node 1" where its name is not known. */
static void add_node(const struct result *r, unsigned node, struct text *out)
{
	const char *name = node < r->node_count ? r->nodes[node].name : "";

	if (*name) {
		text_add_shown(out, name, strlen(name));
		text_printf(out, " (node %u)", node);
	} else {
		text_printf(out, "node %u", node);
	}
}

/* In the words of the report, so that one search finds the culprit in every node's output. */
static void add_culprit(const struct result *r, struct text *out)
{
	text_printf(out, "%sfirst to fail: ", r->unsure ? "one of the " : "");
	worker_add(out, r->culprit);
	text_add(out, " on ");
	add_node(r, r->culprit->node, out);
	text_add(out, ": ");
	outcome_add(out, r->culprit);
	if (r->unsure)
		text_add(out, "; others may have failed before, as the nodes' clocks can't tell");
}

static void add_loss(const struct result *r, struct text *out)
{
	const char *name = r->cause.node < r->node_count ? r->nodes[r->cause.node].name : "";

	text_printf(out, "node %u", r->cause.node);
	if (*name) {
		text_add(out, " (");
		text_add_shown(out, name, strlen(name));
		text_add(out, ")");
	}
	text_add(out, " was lost");
	if (*r->cause.detail) {
		text_add(out, ": ");
		text_add_shown(
			out, r->cause.detail, strnlen(r->cause.detail, sizeof r->cause.detail));
	}
	if (r->unsure)
		text_add(out, "; a worker on another node may have failed before");
}

static void add_ended(const struct result *r, const char *by, const char *why, struct text *out)
{
	text_printf(out, "the job was ended%s on ", by);
	add_node(r, r->cause.node, out);
	text_add(out, why);
}

static void add_cause(const struct result *r, struct text *out)
{
	char by[32];

	switch (r->cause.kind) {
	case CAUSE_NONE:
		return;
	case CAUSE_FAILURE:
		add_culprit(r, out);
		return;
	case CAUSE_NODE_LOST:
		add_loss(r, out);
		return;
	case CAUSE_SIGNAL:
		(void)snprintf(by, sizeof by, " by %s", signal_name(r->cause.signal));
		add_ended(r, by, "", out);
		return;
	case CAUSE_MAX_RUNTIME:
		add_ended(r, " by --max-runtime", "", out);
		return;
	case CAUSE_GUARD:
		add_ended(r, "", ": launchd itself was killed", out);
		return;
	case CAUSE_LAUNCHER:
		add_ended(r, "", ": what started launchd (mpirun, srun) has ended", out);
		return;
	case CAUSE_HANGUP:
		add_ended(r, "",
			": nobody reads launchd's output any more, so mpirun or srun has ended",
			out);
		return;
	}
}

void verdict_make(const struct result *r, struct verdict *ret)
{
	struct text text = { 0 };

	*ret = (struct verdict){ .exit_code = result_exit_code(r),
		.well = r->cause.kind == CAUSE_NONE,
		.attempt = r->count > 0 ? r->outcomes[0].attempt : 0 };
	add_cause(r, &text);
	(void)snprintf(ret->text, sizeof ret->text, "%s", text_string(&text));
	text_done(&text);
}
