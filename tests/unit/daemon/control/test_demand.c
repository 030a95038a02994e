/* test_demand.c - lines that clients of the control socket send: what they ask for, and what is
 * wrong with them. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>

#include "common/text.h"
#include "daemon/control/demand.h"
#include "daemon/os/cjson.h"

static struct cjson cjson;

/* What was understood, as one line. */
static void describe(const struct demand *d, struct text *out)
{
	text_printf(out, "%d:", d->has_id ? (int)d->id : -1);
	switch (d->op) {
	case OP_STATUS:
		text_add(out, d->all_nodes ? "status of all" : "status");
		return;
	case OP_TAIL:
		text_printf(out, "tail of %u, %u", d->rank, d->lines);
		return;
	case OP_SIGNAL:
		text_printf(out, "signal %d to", d->signal);
		for (size_t i = 0; i < d->rank_count; i++)
			text_printf(out, " %u", d->ranks[i]);
		text_add(out, d->has_ranks ? "" : " all");
		return;
	case OP_LOGS:
		text_add(out, "logs of");
		for (size_t i = 0; i < d->rank_count; i++)
			text_printf(out, " %u", d->ranks[i]);
		text_add(out, d->has_ranks ? "" : " all");
		return;
	case OP_STOP:
		text_add(out, d->now ? "stop now" : "stop");
		return;
	case OP_ENV:
		text_printf(out, "env of %u", d->rank);
		return;
	case OP_LOGLEVEL:
		text_printf(out, "level %s", d->has_level ? control_level_name(d->level) : "?");
		return;
	case OP_RESTART:
	case OP_REOPEN:
	case OP_EVENTS:
	case OP_METRICS:
	case OPS:
		text_printf(out, "%d", (int)d->op);
	}
}

static const struct request_row {
	const char *says, *line;
	const char *what; /* it asks for; or the error, and how its sentence begins */
	const char *why;
} rows[] = {
	{ "status", "{\"v\":1,\"id\":7,\"op\":\"status\"}", "7:status", NULL },
	{ "in any order, with blanks", " { \"op\" : \"status\", \"id\":0 ,\"v\":1 }\r", "0:status",
		NULL },
	{ "the largest number", "{\"v\":1,\"id\":9007199254740991,\"op\":\"stop\"}", "-1:stop",
		NULL },
	{ "lines of two workers",
		"{\"v\":1,\"id\":1,\"op\":\"logs\",\"follow\":true,\"ranks\":[3,0]}",
		"1:logs of 3 0", NULL },
	{ "lines of all", "{\"v\":1,\"id\":1,\"op\":\"logs\",\"follow\":true}", "1:logs of all",
		NULL },
	{ "lines that are not followed", "{\"v\":1,\"id\":1,\"op\":\"logs\"}", "1!malformed",
		"follow: it is missing" },
	{ "status of all nodes", "{\"v\":1,\"id\":1,\"op\":\"status\",\"nodes\":\"all\"}",
		"1:status of all", NULL },
	{ "tail", "{\"v\":1,\"id\":1,\"op\":\"tail\",\"rank\":3}", "1:tail of 3, 10", NULL },
	{ "tail of some lines", "{\"v\":1,\"id\":1,\"op\":\"tail\",\"rank\":3,\"lines\":1000}",
		"1:tail of 3, 1000", NULL },
	{ "a signal to all", "{\"v\":1,\"id\":1,\"op\":\"signal\",\"signal\":\"USR1\"}",
		"1:signal 10 to all", NULL },
	{ "a signal to some",
		"{\"v\":1,\"id\":1,\"op\":\"signal\",\"signal\":\"SIGUSR2\",\"ranks\":[5,0]}",
		"1:signal 12 to 5 0", NULL },
	{ "a signal to none",
		"{\"v\":1,\"id\":1,\"op\":\"signal\",\"signal\":\"KILL\",\"ranks\":[]}",
		"1:signal 9 to", NULL },
	{ "stop", "{\"v\":1,\"id\":1,\"op\":\"stop\",\"now\":false}", "1:stop", NULL },
	{ "stop now", "{\"v\":1,\"id\":1,\"op\":\"stop\",\"now\":true}", "1:stop now", NULL },
	{ "restart", "{\"v\":1,\"id\":1,\"op\":\"restart\"}", "1:4", NULL },
	{ "reopen", "{\"v\":1,\"id\":1,\"op\":\"reopen\"}", "1:5", NULL },
	{ "env", "{\"v\":1,\"id\":1,\"op\":\"env\",\"rank\":2}", "1:env of 2", NULL },
	{ "events", "{\"v\":1,\"id\":1,\"op\":\"events\",\"follow\":true}", "1:7", NULL },
	{ "metrics", "{\"v\":1,\"id\":1,\"op\":\"metrics\"}", "1:8", NULL },
	{ "the level", "{\"v\":1,\"id\":1,\"op\":\"loglevel\"}", "1:level ?", NULL },
	{ "another level", "{\"v\":1,\"id\":1,\"op\":\"loglevel\",\"level\":\"verbose\"}",
		"1:level verbose", NULL },
	/* and what is wrong */
	{ "no JSON", "status", "-1!malformed", "the line is not one JSON object" },
	{ "no object", "[1]", "-1!malformed", "the line is not one JSON object" },
	{ "two objects", "{\"v\":1,\"id\":1,\"op\":\"stop\"}{}", "-1!malformed",
		"the line is not" },
	{ "an open end", "{\"v\":1,\"id\":1,\"op\":\"stop\"", "-1!malformed", "the line is not" },
	{ "no version", "{\"id\":1,\"op\":\"stop\"}", "1!version", "v: it is missing" },
	{ "another version", "{\"v\":2,\"op\":\"stop\",\"id\":1}", "1!version",
		"this launcher speaks version 1" },
	{ "a version of another type", "{\"v\":\"1\",\"op\":\"stop\",\"id\":1}", "1!version",
		"this launcher speaks version 1" },
	{ "no number", "{\"v\":1,\"op\":\"stop\"}", "-1!malformed", "id: it is missing" },
	{ "a number below 0", "{\"v\":1,\"op\":\"stop\",\"id\":-1}", "-1!malformed",
		"id: a whole number" },
	{ "half a number", "{\"v\":1,\"op\":\"stop\",\"id\":1.5}", "-1!malformed",
		"id: a whole number" },
	{ "a number beyond what is exact", "{\"v\":1,\"op\":\"stop\",\"id\":9007199254740993}",
		"-1!malformed", "id: a whole number" },
	{ "a number that is a string", "{\"v\":1,\"op\":\"stop\",\"id\":\"1\"}", "-1!malformed",
		"id: a whole number" },
	{ "no operation", "{\"v\":1,\"id\":1}", "1!malformed", "op: it is missing" },
	{ "an operation of another type", "{\"v\":1,\"id\":1,\"op\":1}", "1!malformed",
		"op: a string" },
	{ "an unknown operation", "{\"v\":1,\"id\":1,\"op\":\"fly\"}", "1!unknown-op",
		"there is no such operation" },
	{ "an unknown member", "{\"v\":1,\"id\":1,\"op\":\"stop\",\"at\":3}", "1!unknown-field",
		"there is a member" },
	{ "another operation's member", "{\"v\":1,\"id\":1,\"op\":\"stop\",\"rank\":3}",
		"1!unknown-field", "rank: stop has no such member" },
	{ "a member twice", "{\"v\":1,\"id\":1,\"op\":\"stop\",\"now\":true,\"now\":false}",
		"1!malformed", "now: twice" },
	{ "a rank is missing", "{\"v\":1,\"id\":1,\"op\":\"env\"}", "1!malformed",
		"rank: it is missing" },
	{ "a rank below 0", "{\"v\":1,\"id\":1,\"op\":\"env\",\"rank\":-1}", "1!malformed",
		"rank: a whole number" },
	{ "a rank beyond all", "{\"v\":1,\"id\":1,\"op\":\"env\",\"rank\":1e300}", "1!malformed",
		"rank: a whole number" },
	{ "ranks that are none",
		"{\"v\":1,\"id\":1,\"op\":\"signal\",\"signal\":\"USR1\",\"ranks\":3}",
		"1!malformed", "ranks: an array" },
	{ "ranks of words",
		"{\"v\":1,\"id\":1,\"op\":\"signal\",\"signal\":\"USR1\",\"ranks\":[\"a\"]}",
		"1!malformed", "ranks: whole numbers" },
	{ "no lines", "{\"v\":1,\"id\":1,\"op\":\"tail\",\"rank\":3,\"lines\":0}", "1!malformed",
		"lines: a number from 1 to 1000" },
	{ "too many lines", "{\"v\":1,\"id\":1,\"op\":\"tail\",\"rank\":3,\"lines\":1001}",
		"1!malformed", "lines: a number from 1 to 1000" },
	{ "no signal", "{\"v\":1,\"id\":1,\"op\":\"signal\"}", "1!malformed",
		"signal: it is missing" },
	{ "no such signal", "{\"v\":1,\"id\":1,\"op\":\"signal\",\"signal\":\"NOPE\"}",
		"1!malformed", "signal: a signal's name" },
	{ "a signal's number", "{\"v\":1,\"id\":1,\"op\":\"signal\",\"signal\":9}", "1!malformed",
		"signal: a signal's name" },
	{ "nodes that are not all", "{\"v\":1,\"id\":1,\"op\":\"status\",\"nodes\":\"some\"}",
		"1!malformed", "nodes: \"all\"" },
	{ "now is no word", "{\"v\":1,\"id\":1,\"op\":\"stop\",\"now\":\"yes\"}", "1!malformed",
		"now: true or false" },
	{ "events once", "{\"v\":1,\"id\":1,\"op\":\"events\",\"follow\":false}", "1!malformed",
		"follow: true is needed" },
	{ "events without an end", "{\"v\":1,\"id\":1,\"op\":\"events\"}", "1!malformed",
		"follow: it is missing" },
	{ "no such level", "{\"v\":1,\"id\":1,\"op\":\"loglevel\",\"level\":\"debug\"}",
		"1!malformed", "level: one of verbose" },
};

static void test_request(void **state)
{
	const struct request_row *row = *state;
	char line[CONTROL_LINE_MAX];
	struct demand d = { .id = 99 };
	struct text got = { 0 }, why = { 0 };
	size_t len = strlen(row->line);
	enum control_error e;

	memcpy(line, row->line, len);
	line[len] = '\n';
	e = demand_read(&cjson, line, len, &d, &why);
	if (e == CONTROL_OK && d.id == 9007199254740991)
		d.has_id = false; /* more than an int */
	if (e == CONTROL_OK)
		describe(&d, &got);
	else
		text_printf(&got, "%d!%s", d.has_id ? (int)d.id : -1, control_error_name(e));
	assert_string_equal(text_string(&got), row->what);
	if (row->why)
		assert_memory_equal(text_string(&why), row->why, strlen(row->why));
	else
		assert_int_equal(why.len, 0);
	text_done(&got);
	text_done(&why);
}

/* As many ranks as a line may have. */
static void test_many_ranks(void **state)
{
	struct text line = { 0 }, why = { 0 };
	struct demand d;
	unsigned count = 0;

	(void)state;
	text_add(&line, "{\"v\":1,\"id\":1,\"op\":\"signal\",\"signal\":\"INT\",\"ranks\":[0");
	for (count = 1; line.len + 5 < CONTROL_LINE_MAX; count++)
		text_add(&line, ",7");
	text_add(&line, "]}");
	assert_int_equal(demand_read(&cjson, line.at, line.len, &d, &why), CONTROL_OK);
	assert_int_equal(d.rank_count, count);
	assert_int_equal(d.ranks[count - 1], 7);
	text_done(&line);
	text_done(&why);
}

static void test_names(void **state)
{
	enum note_level level = NOTE_NONE;

	(void)state;
	for (int e = 0; e < CONTROL_ERRORS; e++) {
		assert_non_null(control_error_name((enum control_error)e));
		for (int f = 0; f < e; f++)
			assert_string_not_equal(control_error_name((enum control_error)e),
				control_error_name((enum control_error)f));
	}
	assert_true(control_level_find("warning", &level));
	assert_int_equal(level, NOTE_WARNING);
	assert_false(control_level_find("", &level));
	assert_string_equal(control_level_name(NOTE_NONE), "quiet");
}

TESTS(demand)
{
	struct suite s = { .count = 0 };
	struct failure why;

	if (cjson_open(NULL, &cjson, &why) < 0)
		return 77; /* not here */
	SUITE_ROWS(&s, test_request, rows);
	suite_add(&s, "as many ranks as a line has room for", test_many_ranks, NULL, NULL);
	suite_add(&s, "names", test_names, NULL, NULL);
	return suite_run(&s);
}
