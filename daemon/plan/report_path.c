/* report_path.c - where --report, --events and --metrics-file go; see decide.h */
#include "daemon/plan/decide.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/num.h"
#include "config/settings.h"
#include "daemon/facts/facts.h"
#include "daemon/plan/plan.h"

/* What the letter after a '%' stands for; NULL: nothing. */
static const char *value_of(const struct deciding *d, char letter, const char *node_rank)
{
	switch (letter) {
	case 'n':
		return node_rank;
	case 'h':
		return d->facts->hostname;
	case '%':
		return "%";
	default:
		return NULL;
	}
}

/* The setting's file on this node; NULL: another node writes it. `holds` says what one file holds
 * where only node rank 0 writes it. */
static int node_path(const struct deciding *d, enum setting_id id, const char *holds,
	const struct plan *p, const char **ret)
{
	const char *text = settings_text(d->s, id);
	const char *where = settings_where(d->s, id);
	const char *number = arena_printf(d->s->arena, "%u", p->node_rank);
	const char *path = "";
	bool of_this_node = false;

	for (const char *at = text; *at;) {
		size_t plain = strcspn(at, "%");
		const char *value = at[plain] ? value_of(d, at[plain + 1], number) : "";

		if (!value)
			return failure_usage(d->why,
				"%s: \"%s\" contains \"%.2s\", which is unknown: %%n is the node rank, %%h the host name, %%%% a percent sign",
				where, text, at + plain);
		of_this_node |= at[plain] && at[plain + 1] != '%';
		path = arena_printf(d->s->arena, "%s%.*s%s", path, (int)plain, at, value);
		at += at[plain] ? plain + 2 : plain;
	}
	if (p->nnodes > 1 && !of_this_node)
		notes_add(d->notes, NOTE_VERBOSE,
			"%s: only node rank 0 writes %s, %s; with %%n (the node rank) in the name "
			"each node writes its own",
			where, path, holds);
	if (p->node_rank == 0 || p->nnodes == 1 || of_this_node)
		*ret = path;
	return 0;
}

int decide_report(const struct deciding *d, struct plan *p)
{
	if (!settings_text(d->s, SET_REPORT))
		return 0;
	return node_path(d, SET_REPORT,
		arena_printf(d->s->arena, "which covers all %u nodes", p->nnodes), p,
		&p->report_path);
}

/* node_exporter reads no other files of its directory, and says nothing of them. */
static bool is_for_textfile(const char *path)
{
	size_t len = strlen(path);

	return len >= 5 && strcmp(path + len - 5, ".prom") == 0;
}

/* "127.0.0.1:9400", "[::1]:9400" */
static int decide_metrics_address(const struct deciding *d, struct plan *p)
{
	const char *text = settings_text(d->s, SET_METRICS_LISTEN);
	const char *colon = text ? strrchr(text, ':') : NULL, *host;
	size_t len = colon ? (size_t)(colon - text) : 0;
	bool bracketed = len > 2 && *text == '[' && text[len - 1] == ']';
	uint64_t port = 0;

	if (!text)
		return 0;
	host = arena_strndup(d->s->arena, text + bracketed, len - 2 * (size_t)bracketed);
	if (!host)
		return failure_oom(d->why);
	if (!colon || num_parse(colon + 1, 1, UINT16_MAX, &port) < 0 ||
		bracketed != (strchr(host, ':') != NULL) ||
		address_parse(host, (uint16_t)port, &p->metrics_address) < 0)
		return failure_usage(d->why,
			"%s: \"%s\" is not an IP address and a port from 1 to 65535, as in "
			"127.0.0.1:9400, or [::]:9400 for all addresses",
			settings_where(d->s, SET_METRICS_LISTEN), text);
	return 0;
}

int decide_metrics(const struct deciding *d, struct plan *p)
{
	int rc = decide_metrics_address(d, p);

	if (rc < 0 || !settings_text(d->s, SET_METRICS_FILE))
		return rc;
	rc = node_path(d, SET_METRICS_FILE, "with what this node sees", p, &p->metrics_path);
	if (p->metrics_path && !is_for_textfile(p->metrics_path))
		notes_add(d->notes, NOTE_VERBOSE,
			"%s: node_exporter would not read %s, as its name does not end in .prom",
			settings_where(d->s, SET_METRICS_FILE), p->metrics_path);
	return rc;
}

int decide_events(const struct deciding *d, struct plan *p)
{
	const char *text = settings_text(d->s, SET_EVENTS);
	uint64_t fd;

	if (!text)
		return 0;
	if (strncmp(text, "fd:", 3) != 0)
		return node_path(
			d, SET_EVENTS, "with what it sees itself", p, &p->output.events_path);
	if (num_parse(text + 3, 0, INT_MAX, &fd) < 0)
		return failure_usage(d->why,
			"%s: \"%s\" has no descriptor number after \"fd:\"; for a file of that name write ./%s",
			settings_where(d->s, SET_EVENTS), text, text);
	p->output.events_fd = (int)fd;
	return 0;
}
