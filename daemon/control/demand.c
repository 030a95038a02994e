/* demand.c - see demand.h */
#include "daemon/control/demand.h"

#include <string.h>

#include "common/signame.h"
#include "common/text.h"
#include "daemon/os/cjson.h"

/* The members that a request may have, as bits of a set. */
enum field {
	FIELD_V = 1 << 0,
	FIELD_ID = 1 << 1,
	FIELD_OP = 1 << 2,
	FIELD_NODES = 1 << 3,
	FIELD_RANK = 1 << 4,
	FIELD_RANKS = 1 << 5,
	FIELD_LINES = 1 << 6,
	FIELD_SIGNAL = 1 << 7,
	FIELD_NOW = 1 << 8,
	FIELD_FOLLOW = 1 << 9,
	FIELD_LEVEL = 1 << 10,
	FIELDS_OF_ALL = FIELD_V | FIELD_ID | FIELD_OP,
};

struct reading {
	struct demand *to;
	struct text *why;
	unsigned seen; /* enum field */
	bool follow;
};

static const struct op_row {
	const char *name;
	unsigned may, must; /* enum field */
} ops[OPS] = {
	[OP_STATUS] = { "status", FIELD_NODES, 0 },
	[OP_TAIL] = { "tail", FIELD_RANK | FIELD_LINES, FIELD_RANK },
	[OP_SIGNAL] = { "signal", FIELD_SIGNAL | FIELD_RANKS, FIELD_SIGNAL },
	[OP_STOP] = { "stop", FIELD_NOW, 0 },
	[OP_RESTART] = { "restart", 0, 0 },
	[OP_REOPEN] = { "reopen", 0, 0 },
	[OP_ENV] = { "env", FIELD_RANK, FIELD_RANK },
	[OP_EVENTS] = { "events", FIELD_FOLLOW, FIELD_FOLLOW },
	[OP_METRICS] = { "metrics", 0, 0 },
	[OP_LOGLEVEL] = { "loglevel", FIELD_LEVEL, 0 },
	[OP_LOGS] = { "logs", FIELD_FOLLOW | FIELD_RANKS, FIELD_FOLLOW },
};

static const char *const errors[CONTROL_ERRORS] = {
	[CONTROL_OK] = "ok",
	[CONTROL_MALFORMED] = "malformed",
	[CONTROL_OTHER_VERSION] = "version",
	[CONTROL_UNKNOWN_OP] = "unknown-op",
	[CONTROL_UNKNOWN_FIELD] = "unknown-field",
	[CONTROL_TOO_LONG] = "too-long",
	[CONTROL_DENIED] = "denied",
	[CONTROL_BUSY] = "busy",
	[CONTROL_ELSEWHERE] = "elsewhere",
	[CONTROL_NO_RANK] = "no-rank",
	[CONTROL_NOT_NOW] = "not-now",
	[CONTROL_OVER] = "over",
	[CONTROL_UNAVAILABLE] = "unavailable",
	[CONTROL_FAILED] = "failed",
};

static const char *const levels[] = {
	[NOTE_VERBOSE] = "verbose",
	[NOTE_INFO] = "info",
	[NOTE_WARNING] = "warning",
	[NOTE_NONE] = "quiet",
};

const char *control_error_name(enum control_error e)
{
	return errors[e];
}

const char *control_level_name(enum note_level level)
{
	return levels[level];
}

bool control_level_find(const char *name, enum note_level *ret)
{
	for (unsigned i = 0; i < sizeof levels / sizeof *levels; i++)
		if (strcmp(levels[i], name) == 0) {
			*ret = (enum note_level)i;
			return true;
		}
	return false;
}

static bool is_of(const cJSON *item, int type)
{
	return (item->type & 0xff) == type;
}

/* A whole number of at most max. */
static bool whole(const cJSON *item, double max, double *ret)
{
	*ret = item->valuedouble;
	return is_of(item, cJSON_Number) && *ret >= 0 && *ret <= max &&
		(double)(int64_t)*ret == *ret;
}

static bool whole_unsigned(const cJSON *item, double max, unsigned *ret)
{
	double n;

	if (!whole(item, max, &n))
		return false;
	*ret = (unsigned)n;
	return true;
}

static bool boolean(const cJSON *item, bool *ret)
{
	*ret = is_of(item, cJSON_True);
	return *ret || is_of(item, cJSON_False);
}

static const char *string(const cJSON *item)
{
	return is_of(item, cJSON_String) ? item->valuestring : NULL;
}

static enum control_error refuse(struct reading *r, enum control_error e, const char *text)
{
	text_add(r->why, text);
	return e;
}

static enum control_error take_version(struct reading *r, const cJSON *item)
{
	return item->valuedouble == (int)CONTROL_VERSION && is_of(item, cJSON_Number) ?
		CONTROL_OK :
		refuse(r, CONTROL_OTHER_VERSION, "this launcher speaks version 1");
}

static enum control_error take_id(struct reading *r, const cJSON *item)
{
	double n;

	if (!whole(item, 9007199254740991.0, &n)) /* 2^53 - 1: a double has all below it */
		return refuse(r, CONTROL_MALFORMED, "id: a whole number is needed");
	r->to->id = (int64_t)n;
	r->to->has_id = true;
	return CONTROL_OK;
}

static enum control_error take_op(struct reading *r, const cJSON *item)
{
	const char *name = string(item);

	if (!name)
		return refuse(r, CONTROL_MALFORMED, "op: a string is needed");
	for (unsigned i = 0; i < OPS; i++)
		if (strcmp(ops[i].name, name) == 0) {
			r->to->op = (enum control_op)i;
			return CONTROL_OK;
		}
	return refuse(r, CONTROL_UNKNOWN_OP, "there is no such operation");
}

static enum control_error take_nodes(struct reading *r, const cJSON *item)
{
	const char *which = string(item);

	r->to->all_nodes = which && strcmp(which, "all") == 0;
	return r->to->all_nodes ? CONTROL_OK :
				  refuse(r, CONTROL_MALFORMED, "nodes: \"all\" is needed");
}

static enum control_error take_rank(struct reading *r, const cJSON *item)
{
	return whole_unsigned(item, INT32_MAX, &r->to->rank) ?
		CONTROL_OK :
		refuse(r, CONTROL_MALFORMED, "rank: a whole number is needed");
}

static enum control_error take_ranks(struct reading *r, const cJSON *item)
{
	struct demand *d = r->to;

	d->has_ranks = true;
	if (!is_of(item, cJSON_Array))
		return refuse(r, CONTROL_MALFORMED, "ranks: an array is needed");
	for (const cJSON *one = item->child; one; one = one->next)
		if (d->rank_count == DEMAND_RANKS_MAX ||
			!whole_unsigned(one, INT32_MAX, &d->ranks[d->rank_count++]))
			return refuse(r, CONTROL_MALFORMED, "ranks: whole numbers are needed");
	return CONTROL_OK;
}

static enum control_error take_lines(struct reading *r, const cJSON *item)
{
	return whole_unsigned(item, CONTROL_TAIL_LINES_MAX, &r->to->lines) && r->to->lines > 0 ?
		CONTROL_OK :
		refuse(r, CONTROL_MALFORMED, "lines: a number from 1 to 1000 is needed");
}

static enum control_error take_signal(struct reading *r, const cJSON *item)
{
	const char *name = string(item);

	r->to->signal = name ? signal_number(name, strlen(name)) : 0;
	return r->to->signal > 0 ?
		CONTROL_OK :
		refuse(r, CONTROL_MALFORMED, "signal: a signal's name is needed, such as USR1");
}

static enum control_error take_now(struct reading *r, const cJSON *item)
{
	return boolean(item, &r->to->now) ?
		CONTROL_OK :
		refuse(r, CONTROL_MALFORMED, "now: true or false is needed");
}

static enum control_error take_follow(struct reading *r, const cJSON *item)
{
	return boolean(item, &r->follow) && r->follow ?
		CONTROL_OK :
		refuse(r, CONTROL_MALFORMED, "follow: true is needed");
}

static enum control_error take_level(struct reading *r, const cJSON *item)
{
	const char *name = string(item);

	r->to->has_level = true;
	return name && control_level_find(name, &r->to->level) ?
		CONTROL_OK :
		refuse(r, CONTROL_MALFORMED,
			"level: one of verbose, info, warning and quiet is needed");
}

static const struct field_row {
	const char *name;
	enum field field;
	enum control_error (*take)(struct reading *r, const cJSON *item);
} fields[] = {
	{ "v", FIELD_V, take_version },
	{ "id", FIELD_ID, take_id },
	{ "op", FIELD_OP, take_op },
	{ "nodes", FIELD_NODES, take_nodes },
	{ "rank", FIELD_RANK, take_rank },
	{ "ranks", FIELD_RANKS, take_ranks },
	{ "lines", FIELD_LINES, take_lines },
	{ "signal", FIELD_SIGNAL, take_signal },
	{ "now", FIELD_NOW, take_now },
	{ "follow", FIELD_FOLLOW, take_follow },
	{ "level", FIELD_LEVEL, take_level },
	{ NULL, 0, NULL },
};

static const struct field_row *row_of(const char *name)
{
	for (const struct field_row *row = fields; row->name; row++)
		if (strcmp(row->name, name) == 0)
			return row;
	return NULL;
}

/* One member of the request; of several things that are wrong the first is told. */
static enum control_error take(struct reading *r, const cJSON *item)
{
	const struct field_row *row = row_of(item->string);

	if (!row)
		return refuse(r, CONTROL_UNKNOWN_FIELD, "there is a member that no operation has");
	if (r->seen & row->field) {
		text_printf(r->why, "%s: twice", row->name);
		return CONTROL_MALFORMED;
	}
	r->seen |= row->field;
	return row->take(r, item);
}

static enum control_error check_fields(struct reading *r)
{
	const struct op_row *op = &ops[r->to->op];
	unsigned missing = (op->must | FIELD_ID) & ~r->seen;

	for (const struct field_row *row = fields; row->name; row++) {
		if (r->seen & row->field & ~(op->may | FIELDS_OF_ALL)) {
			text_printf(r->why, "%s: %s has no such member", row->name, op->name);
			return CONTROL_UNKNOWN_FIELD;
		}
		if (missing & row->field) {
			text_printf(r->why, "%s: it is missing", row->name);
			return CONTROL_MALFORMED;
		}
	}
	return CONTROL_OK;
}

/* The number first: whatever else is wrong, the answer has it. */
static enum control_error read_object(const struct cjson *c, struct reading *r, const cJSON *root)
{
	const cJSON *id = c->item(root, "id");
	enum control_error e = CONTROL_OK;

	if (id)
		e = take_id(r, id);
	for (const cJSON *item = root->child; item && e == CONTROL_OK; item = item->next)
		e = take(r, item);
	if (e == CONTROL_OK && !(r->seen & FIELD_V))
		return refuse(r, CONTROL_OTHER_VERSION, "v: it is missing; this is version 1");
	if (e == CONTROL_OK && !(r->seen & FIELD_OP))
		return refuse(r, CONTROL_MALFORMED, "op: it is missing");
	return e == CONTROL_OK ? check_fields(r) : e;
}

enum control_error demand_read(
	const struct cjson *c, char *line, size_t len, struct demand *ret, struct text *why)
{
	struct reading r = { .to = ret, .why = why };
	const char *end = NULL;
	enum control_error e;
	cJSON *root;

	ret->has_id = ret->now = ret->all_nodes = ret->has_level = ret->has_ranks = false;
	ret->op = OP_STATUS;
	ret->rank_count = 0;
	ret->lines = CONTROL_TAIL_LINES;
	line[len] = '\0'; /* which it may look at, and must come to: see CVE-2023-53154 */
	root = c->parse_to_end(line, len + 1, &end, true);
	if (root && end == line + len && is_of(root, cJSON_Object))
		e = read_object(c, &r, root);
	else
		e = refuse(&r, CONTROL_MALFORMED, "the line is not one JSON object");
	c->free(root);
	return e;
}
