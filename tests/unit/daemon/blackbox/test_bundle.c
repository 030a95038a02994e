/* test_bundle.c - a bundle as JSON and back, and files that are none of ours. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/blackbox/bundle.h"
#include "daemon/os/cjson.h"
#include "tests/unit/json.h"

static struct cjson c;

static const struct bundle_worker workers[] = {
	{ .rank = 8,
		.local_rank = 0,
		.pid = 4711,
		.fate = FATE_FIRST,
		.end = "exit code 1",
		.error = "ValueError: \"x\"\n",
		.lines = "one\ntwo \x1b[31m",
		.log = "/logs/0" },
	{ .rank = 9,
		.local_rank = 1,
		.pid = 4712,
		.fate = FATE_ENDED,
		.end = "killed by SIGTERM",
		.after_ms = -3,
		.look = { .known = true,
			.state = 'S',
			.wait = "futex_wait_queue",
			.call = "futex",
			.cpu_ms = 123456,
			.io_bytes = 5000000000,
			.threads = 17,
			.later_ms = 100,
			.later_cpu_ms = 99 } },
};

static const struct bundle_finding findings[] = {
	{ "nvml", "GPU 3", "bad", "Xid 79" },
	{ "ras", "", "unknown", "no answer within 2 s" },
};

static const struct bundle whole = {
	.name = "failure-20261126T112233.123Z-attempt-2",
	.job = "train",
	.host = "gpu07",
	.launchd = "0.1.0",
	.attempt = 2,
	.node = 1,
	.nnodes = 2,
	.world_size = 16,
	.wall_ms = 1795692153123,
	.cause = "failure",
	.kind = "exception",
	.why = "a worker failed",
	.first = { true, 8, 1, "gpu07", "exit code 1", "ValueError", "python t.py" },
	.held = true,
	.workers = workers,
	.worker_count = 2,
	.findings = findings,
	.finding_count = 2,
};

static const struct bundle_rank ranks[] = { { 3, 0, FATE_FAILED, "exit code 7", 250, true } };
static const struct bundle_node nodes[] = { { 0, "gpu06", "/box/node-0", "8 workers", false },
	{ 1, "gpu07", NULL, NULL, true } };

static const struct bundle_index index_whole = {
	.name = "failure-20261126T112233.123Z-attempt-2",
	.job = "train",
	.launchd = "0.1.0",
	.attempt = 2,
	.nnodes = 2,
	.world_size = 16,
	.wall_ms = 1795692153123,
	.cause = "failure",
	.kind = "exception",
	.why = "root cause: rank 8",
	.unsure = true,
	.futile = 3,
	.first = { true, 8, 1, "gpu07", "exit code 1", "ValueError", "python t.py" },
	.ranks = ranks,
	.rank_count = 1,
	.counts = { 1, 1, 1, 13, 0, 0 },
	.nodes = nodes,
	.node_count = 2,
};

static int read_bundle(
	const struct text *t, struct arena *a, struct bundle *ret, struct failure *why)
{
	return bundle_parse(&c, "a file", text_string(t), t->len, a, ret, why);
}

/* What is read is written as it was. */
static void test_bundle(void **state)
{
	struct text first = { 0 }, again = { 0 };
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct bundle b;

	(void)state;
	bundle_json(&whole, &first);
	assert_true(json_is_valid(text_string(&first), first.len));
	assert_int_equal(read_bundle(&first, &arena, &b, &why), 0);
	assert_int_equal(b.worker_count, 2);
	assert_int_equal(b.workers[1].look.io_bytes, 5000000000);
	assert_int_equal(b.workers[1].after_ms, -3);
	assert_int_equal(b.wall_ms, whole.wall_ms);
	bundle_json(&b, &again);
	assert_string_equal(text_string(&first), text_string(&again));
	text_done(&first);
	text_done(&again);
	arena_done(&arena);
}

static void test_index(void **state)
{
	struct text first = { 0 }, again = { 0 };
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct bundle_index x;

	(void)state;
	index_json(&index_whole, &first);
	assert_true(json_is_valid(text_string(&first), first.len));
	assert_int_equal(
		index_parse(&c, "a file", text_string(&first), first.len, &arena, &x, &why), 0);
	assert_int_equal(x.counts[FATE_ENDED], 13);
	assert_true(x.nodes[1].lost);
	index_json(&x, &again);
	assert_string_equal(text_string(&first), text_string(&again));
	text_done(&first);
	text_done(&again);
	arena_done(&arena);
}

/* A file that was cut off anywhere is none, and says so; nothing is read beyond its end. */
static void test_cut(void **state)
{
	struct text all = { 0 };

	(void)state;
	bundle_json(&whole, &all);
	for (size_t len = 0; len + 2 < all.len; len++) {
		struct arena arena = { 0 };
		struct failure why = { 0 };
		struct bundle b;
		char *cut = strndup(text_string(&all), len);

		assert_non_null(cut);
		assert_int_equal(bundle_parse(&c, "a file", cut, len, &arena, &b, &why), -EINVAL);
		assert_contains(why.text, "a file: it is not JSON, or was cut off");
		free(cut);
		arena_done(&arena);
	}
	text_done(&all);
}

#define MARK "{\"launchd_blackbox\":1,"

static const struct bad_row {
	const char *says, *text, *part;
} bad[] = {
	{ "nothing", "", "it is not JSON" },
	{ "another thing", "[1]", "it is not JSON, or was cut off" },
	{ "an object of somebody else's", "{}", "there is no \"launchd_blackbox\" in it" },
	{ "an index", "{\"launchd_blackbox_index\":1}", "there is no \"launchd_blackbox\" in it" },
	{ "a newer form", "{\"launchd_blackbox\":2}",
		"a newer launchd has written it, in a form (2)" },
	{ "a form that is no number", "{\"launchd_blackbox\":\"x\"}",
		"\"launchd_blackbox\" is not a number" },
	{ "a text that is a number", MARK "\"name\":7}", "\"name\" is not a text" },
	{ "a number that is a text", MARK "\"attempt\":\"7\"}", "\"attempt\" is not a number" },
	{ "a number below 0", MARK "\"attempt\":-1}",
		"\"attempt\" is not a number that it can be" },
	{ "a number that is too large", MARK "\"node\":1e300}", "\"node\" is not a number" },
	{ "a flag that is a number", MARK "\"held\":1}", "\"held\" is not true or false" },
	{ "a list that is an object", MARK "\"workers\":{}}", "\"workers\" is not a list" },
	{ "a list of numbers", MARK "\"workers\":[1]}", "\"workers\" is not a list of objects" },
	{ "a fate that is none", MARK "\"workers\":[{\"fate\":\"odd\"}]}", "\"fate\" is not well" },
	{ "no fate", MARK "\"workers\":[{}]}", "\"fate\" is not well" },
	{ "an object that is a list", MARK "\"first\":[]}", "\"first\" is not an object" },
	{ "a look that is a text", MARK "\"workers\":[{\"fate\":\"well\",\"look\":\"x\"}]}",
		"\"look\" is not an object" },
};

static void test_bad(void **state)
{
	const struct bad_row *row = *state;
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct bundle b = { .node = 77 };

	assert_int_equal(bundle_parse(&c, "a file", row->text, strlen(row->text), &arena, &b, &why),
		-EINVAL);
	assert_contains(why.text, "a file: ");
	assert_contains(why.text, row->part);
	assert_int_equal(b.node, 77);
	arena_done(&arena);
}

/* Names may be missing, as in a file of an older launchd. */
static void test_empty(void **state)
{
	static const char text[] = MARK "\"more\":[[[]]],\"first\":null,\"workers\":null}";
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct bundle b;

	(void)state;
	assert_int_equal(bundle_parse(&c, "a file", text, strlen(text), &arena, &b, &why), 0);
	assert_null(b.name);
	assert_false(b.first.known);
	assert_int_equal(b.worker_count, 0);
	arena_done(&arena);
}

static void test_deep(void **state)
{
	enum { DEPTH = 100000 };
	char *text = malloc(DEPTH + 1);
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct bundle b;

	(void)state;
	assert_non_null(text);
	memset(text, '[', DEPTH);
	text[DEPTH] = '\0';
	assert_int_equal(bundle_parse(&c, "a file", text, DEPTH, &arena, &b, &why), -EINVAL);
	free(text);
	arena_done(&arena);
}

/* More than anybody has. */
static void test_long_list(void **state)
{
	struct text t = { 0 };
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct bundle b;

	(void)state;
	text_add(&t, MARK "\"findings\":[{}");
	for (int i = 0; i < BUNDLE_ITEMS_MAX; i++)
		text_add(&t, ",{}");
	text_add(&t, "]}");
	assert_int_equal(read_bundle(&t, &arena, &b, &why), -EINVAL);
	assert_contains(why.text, "\"findings\" is not a list of 65536 or fewer");
	text_done(&t);
	arena_done(&arena);
}

TESTS(bundle)
{
	static struct suite s;
	struct failure why = { 0 };
	int rc;

	if (cjson_open(NULL, &c, &why) < 0)
		return 77; /* skipped */
	suite_add(&s, "a node's part is read as it was written", test_bundle, NULL, NULL);
	suite_add(&s, "so is the index", test_index, NULL, NULL);
	suite_add(&s, "what was cut off is refused wherever that was", test_cut, NULL, NULL);
	SUITE_ROWS(&s, test_bad, bad);
	suite_add(&s, "what is missing is not known", test_empty, NULL, NULL);
	suite_add(&s, "nesting without an end is refused", test_deep, NULL, NULL);
	suite_add(&s, "a list without an end is refused", test_long_list, NULL, NULL);
	rc = suite_run(&s);
	cjson_close(&c);
	return rc;
}
