/* test_rdzv_conf.c - torchrun's settings of its rendezvous. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "config/rdzv_conf.h"

static const struct conf_row {
	const char *says, *conf;
	enum level level;
	const char *backend;      /* NULL: the default, static */
	const char *join_timeout; /* given on the command line; NULL: not */
	int rc;
	const char *text, *where; /* of --join-timeout, where rc is 0 */
	const char *part;         /* of the sentence, or of the warning; NULL: none */
} rows[] = {
	{ "nothing", "", LEVEL_COMMAND_LINE, NULL, NULL, 0, "900", "default", NULL },
	{ "join_timeout with c10d", "join_timeout=60", LEVEL_COMMAND_LINE, "c10d", NULL, 0, "60",
		"join_timeout in --here", NULL },
	{ "join_timeout with static", "join_timeout=60", LEVEL_PET, NULL, NULL, 0, "60",
		"join_timeout in --here", NULL },
	{ "timeout with static", "timeout=900", LEVEL_COMMAND_LINE, NULL, NULL, 0, "900",
		"timeout in --here", NULL },
	{ "timeout with c10d", "timeout=900", LEVEL_COMMAND_LINE, "c10d", NULL, 0, "900", "default",
		"timeout has no effect: only the static backend" },
	{ "both: the last one counts", "timeout=900,join_timeout=60", LEVEL_COMMAND_LINE, NULL,
		NULL, 0, "60", "join_timeout in --here", NULL },
	{ "a given --join-timeout counts", "join_timeout=60", LEVEL_COMMAND_LINE, NULL, "5", 0, "5",
		"--join-timeout", NULL },
	{ "a given --join-timeout counts against two", "timeout=900,join_timeout=60", LEVEL_PET,
		NULL, "5", 0, "5", "--join-timeout", NULL },
	{ "no number", "join_timeout=x", LEVEL_PET, NULL, NULL, -EINVAL, NULL, NULL,
		"--here: \"join_timeout=x\": not a time, such as 90, 0.5, 90s, 5m, 1h30m or 2d" },
	{ "no number where another counts", "join_timeout=x", LEVEL_PET, NULL, "5", -EINVAL, NULL,
		NULL, "join_timeout=x" },
	{ "no time at all", "join_timeout=0", LEVEL_PET, NULL, NULL, -EINVAL, NULL, NULL,
		"join_timeout in --here: \"0\" is not a time from 1" },
	{ "last_call_timeout", "last_call_timeout=30", LEVEL_PET, NULL, NULL, 0, "900", NULL,
		"last_call_timeout has no effect: the job starts" },
	{ "close_timeout", "close_timeout=30", LEVEL_PET, NULL, NULL, 0, "900", NULL,
		"close_timeout has no effect" },
	{ "close_timeout that is no number", "close_timeout=x", LEVEL_PET, NULL, NULL, -EINVAL,
		NULL, NULL, "close_timeout=x" },
	{ "heartbeat_timeout", "heartbeat_timeout=5", LEVEL_PET, NULL, NULL, 0, "900", NULL,
		"heartbeat_timeout has no effect: --node-timeout" },
	{ "read_timeout", "read_timeout=60", LEVEL_PET, NULL, NULL, 0, "900", NULL,
		"read_timeout has no effect" },
	{ "keep_alive_interval", "keep_alive_interval=5", LEVEL_PET, NULL, NULL, 0, "900", NULL,
		"keep_alive_interval has no effect: --node-timeout" },
	{ "is_host with static", "is_host=1", LEVEL_PET, NULL, NULL, 0, "900", NULL,
		"is_host has no effect: only the c10d backend uses it" },
	{ "is_host with c10d", "is_host=1", LEVEL_PET, "c10d", NULL, 0, "900", NULL, NULL },
	{ "another key", "store_type=file", LEVEL_PET, NULL, NULL, 0, "900", NULL,
		"store_type has no effect: launchd's nodes find one another without" },
	{ "in quotes that no shell has taken off", "\"timeout=900,join_timeout=60\"", LEVEL_PET,
		NULL, NULL, 0, "60", "join_timeout in --here", NULL },
	{ "in single quotes, with blanks", " 'join_timeout = 7 , last_call_timeout=5' ", LEVEL_PET,
		NULL, NULL, 0, "7", "join_timeout in --here",
		"--here: last_call_timeout has no effect" },
	{ "a quote on one side is the key's", "'join_timeout=7", LEVEL_PET, NULL, NULL, 0, "900",
		NULL, "'join_timeout has no effect" },
	{ "nothing in quotes", "''", LEVEL_PET, NULL, NULL, 0, "900", "default", NULL },
	{ "the second of two", "join_timeout=7,store_type=file", LEVEL_PET, NULL, NULL, 0, "7",
		NULL, "store_type has no effect" },
};

static void test_conf(void **state)
{
	const struct conf_row *row = *state;
	struct settings_fixture b;
	int rc;

	settings_fixture_make(&b, false);
	rc = settings_put(
		&b.s, SET_RDZV_CONF, row->conf, (struct origin){ row->level, "--here" }, &b.why);
	assert_int_equal(rc, 0);
	settings_fixture_put_at(&b, SET_RDZV_BACKEND, row->backend, LEVEL_PET, "--backend");
	settings_fixture_put(&b, SET_JOIN_TIMEOUT, row->join_timeout, "--join-timeout");
	rc = rdzv_conf_apply(&b.s, &b.notes, &b.why);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->part : NULL);
	if (rc == 0) {
		assert_string_equal(settings_text(&b.s, SET_JOIN_TIMEOUT), row->text);
		if (row->where)
			assert_string_equal(settings_where(&b.s, SET_JOIN_TIMEOUT), row->where);
		assert_note(&b.notes, NOTE_WARNING, row->part);
	}
	settings_fixture_done(&b);
}

TESTS(rdzv_conf)
{
	static struct suite s;

	SUITE_ROWS(&s, test_conf, rows);
	return suite_run(&s);
}
