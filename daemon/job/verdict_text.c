/* verdict_text.c - the verdict in one line; see verdict.h */
#include "daemon/job/verdict.h"

#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "daemon/job/phrases.h"

/* Of the node where the cause came in; "": it is not known. */
static const char *host_of(const struct result *r)
{
	const struct cause *c = &r->cause;

	if (*c->host)
		return c->host;
	return c->node < r->node_count ? r->nodes[c->node].name : "";
}

/* "gpu07 (node 1)"; "node 1" where its name is not known. */
static void add_node(const struct result *r, struct text *out)
{
	const char *name = host_of(r);

	if (*name) {
		text_add_shown(out, name, strnlen(name, NODE_NAME_SIZE - 1));
		text_printf(out, " (node %u)", r->cause.node);
	} else {
		text_printf(out, "node %u", r->cause.node);
	}
}

/* In the words of the report, so that one search finds the culprit in every node's output. */
static void add_culprit(const struct result *r, struct text *out)
{
	text_add(out, r->unsure ? "possibly " : "");
	worker_add(out, &r->cause.culprit);
	text_add(out, " on ");
	add_node(r, out);
	text_add(out, ": ");
	outcome_add(out, &r->cause.culprit);
	if (r->unsure)
		text_add(out,
			"; another worker may have failed first: the nodes' clocks can't tell");
}

static void add_loss(const struct result *r, struct text *out)
{
	const char *name = host_of(r);

	text_printf(out, "%snode %u", r->cause.contact ? "this node lost contact with " : "",
		r->cause.node);
	if (*name) {
		text_add(out, " (");
		text_add_shown(out, name, strnlen(name, NODE_NAME_SIZE - 1));
		text_add(out, ")");
	}
	loss_add(out, &r->cause);
	if (*r->cause.detail) {
		text_add(out, ": ");
		text_add_shown(
			out, r->cause.detail, strnlen(r->cause.detail, sizeof r->cause.detail));
	}
	losses_add(out, r);
	if (r->unsure)
		text_add(out, "; a worker may have failed before that");
}

static void add_cause(const struct result *r, struct text *out)
{
	text_add(out, "root cause: ");
	if (r->cause.kind == CAUSE_FAILURE) {
		add_culprit(r, out);
	} else if (r->cause.kind == CAUSE_NODE_LOST) {
		add_loss(r, out);
	} else {
		cause_add(&r->cause, 0, out);
		text_add(out, " on ");
		add_node(r, out);
	}
}

void verdict_make(const struct result *r, struct verdict *ret)
{
	struct text text = { 0 };

	*ret = (struct verdict){ .exit_code = result_exit_code(r),
		.well = r->cause.kind == CAUSE_NONE,
		.attempt = r->count > 0 ? r->outcomes[0].attempt : 0,
		.cause = r->cause,
		.unsure = r->unsure };
	if (!ret->well)
		add_cause(r, &text);
	(void)snprintf(ret->text, sizeof ret->text, "%s", text_string(&text));
	text_done(&text);
}
