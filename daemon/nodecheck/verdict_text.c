/* verdict_text.c - see verdict_text.h */
#include "daemon/nodecheck/verdict_text.h"

#include <string.h>

#include "common/json.h"
#include "common/text.h"
#include "daemon/nodecheck/check_case.h"

static unsigned count_of(const struct check_case *c, enum health health)
{
	unsigned count = 0;

	for (unsigned n = 0; n < c->node_count; n++)
		count += c->nodes[n].health == health;
	return count;
}

enum nodecheck_exit verdict_exit(const struct check_case *c)
{
	if (c->no_gpu == c->ranks)
		return NODECHECK_NO_GPU;
	return c->unplaced || count_of(c, HEALTH_BAD) ? NODECHECK_BAD : NODECHECK_GOOD;
}

enum { COLUMN = 13, HOST_COLUMN = 20 };

static void add_column(struct text *out, const char *s, size_t width)
{
	text_add(out, s);
	for (size_t len = strlen(s); len < width; len++)
		text_add(out, " ");
	text_add(out, " ");
}

static void add_rate(struct text *out, enum rate rate, uint64_t value)
{
	struct text t = { 0 };

	if (value)
		rate_add(rate, value, &t);
	add_column(out, value ? text_string(&t) : "-", COLUMN);
	text_done(&t);
}

static void add_node(const struct case_node *n, struct text *out)
{
	struct text number = { 0 };

	text_printf(&number, "%u", n->number);
	add_column(out, text_string(&number), 4);
	text_done(&number);
	add_column(out, n->host, HOST_COLUMN);
	add_column(out, health_word(n->health), 7);
	add_rate(out, RATE_MEMORY, n->rates[RATE_MEMORY]);
	add_rate(out, RATE_COMPUTE, n->rates[RATE_COMPUTE]);
	add_rate(out, RATE_BUS, n->rates[RATE_BUS]);
	add_rate(out, RATE_BUS, n->nics);
	add_rate(out, RATE_BUS, n->pairs);
	text_printf(out, "%u x %s\n", n->count, *n->gpu ? n->gpu : "?");
}

/* "n1, n3 and 2 more" */
static void add_hosts(const struct check_case *c, enum health health, struct text *out)
{
	enum { NAMED = 20 };
	unsigned named = 0, all = count_of(c, health);

	for (unsigned n = 0; n < c->node_count && named < NAMED; n++)
		if (c->nodes[n].health == health)
			text_printf(out, "%s%s (node %u)", named++ ? ", " : "", c->nodes[n].host,
				c->nodes[n].number);
	if (all > named)
		text_printf(out, " and %u more", all - named);
}

static void add_verdict(const struct check_case *c, struct text *out)
{
	unsigned bad = count_of(c, HEALTH_BAD), unknown = count_of(c, HEALTH_UNKNOWN);

	if (bad) {
		text_printf(out, "%u of %u nodes %s bad: ", bad, c->node_count,
			bad == 1 ? "is" : "are");
		add_hosts(c, HEALTH_BAD, out);
	} else if (c->unplaced) {
		text_printf(out, "%u of what nodes do together %s bad, and no node can be blamed",
			c->unplaced, c->unplaced == 1 ? "is" : "are");
	} else {
		text_printf(out, "no node is bad");
	}
	if (unknown) {
		text_printf(out, "; of %u not everything is known: ", unknown);
		add_hosts(c, HEALTH_UNKNOWN, out);
	}
	text_add(out, "\n");
}

void verdict_table(const struct check_case *c, struct findings *room, struct text *out)
{
	text_add(out,
		"NODE HOST                 VERDICT MEMORY        COMPUTE       IN THE NODE   "
		"BY NICS       IN PAIRS      GPUS\n");
	for (unsigned n = 0; n < c->node_count; n++)
		add_node(&c->nodes[n], out);
	for (unsigned n = 0; n < c->node_count; n++) {
		case_findings(c, n, room);
		for (unsigned i = 0; i < room->count; i++) {
			const struct finding *f = &room->at[i];

			if (f->health == HEALTH_GOOD)
				continue;
			text_printf(out, "%s (node %u): %s: %s%s%s\n", c->nodes[n].host,
				c->nodes[n].number, health_word(f->health), f->subject,
				*f->subject ? ": " : "", f->text);
		}
		if (room->left_out)
			text_printf(
				out, "%s: %u more findings\n", c->nodes[n].host, room->left_out);
	}
	add_verdict(c, out);
}

/* In MB/s or MFLOP/s, by their units. */
static void json_rate(struct json *j, const char *key, uint64_t value)
{
	json_number_if(j, key, value != 0, (long long)value);
}

void verdict_json(const struct check_case *c, struct findings *room, struct text *out)
{
	struct json j = { .out = out };

	json_object_begin(&j, NULL);
	json_number(&j, "launchd_nodecheck", 1);
	json_string(&j, "verdict",
		count_of(c, HEALTH_BAD) || c->unplaced ? "bad" :
			count_of(c, HEALTH_UNKNOWN)    ? "unknown" :
							 "good");
	json_number(&j, "exit_code", verdict_exit(c));
	json_array_begin(&j, "nodes");
	for (unsigned n = 0; n < c->node_count; n++) {
		const struct case_node *node = &c->nodes[n];
		struct text found = { 0 };

		case_findings(c, n, room);
		findings_json(room, node->host, &found);
		json_object_begin(&j, NULL);
		json_number(&j, "node_rank", node->number);
		json_number(&j, "first_rank", node->first);
		json_number(&j, "gpus", node->count);
		json_string(&j, "gpu", *node->gpu ? node->gpu : NULL);
		json_rate(&j, "memory_mb_s", node->rates[RATE_MEMORY]);
		json_rate(&j, "compute_mflop_s", node->rates[RATE_COMPUTE]);
		json_rate(&j, "node_bus_mb_s", node->rates[RATE_BUS]);
		json_rate(&j, "nic_bus_mb_s", node->nics);
		json_rate(&j, "pair_bus_mb_s", node->pairs);
		json_raw(&j, "check", text_string(&found));
		json_object_end(&j);
		text_done(&found);
	}
	json_array_end(&j);
	json_object_end(&j);
	text_add(out, "\n");
}
