/* test_links_told.c - what a node tells of its links is read as it was written, and nothing else
 * is. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "daemon/check/links_told.h"

#define LINK_8 \
	"{\"node\":8,\"state\":\"big_lost\",\"tries\":0,\"rtt_us\":0,\"bit_s\":0,\"net_bit_s\":0," \
	"\"segments\":0,\"resent\":0,\"segment_max\":0}"
#define LINK_3 \
	"{\"node\":3,\"state\":\"done\",\"tries\":2,\"rtt_us\":140,\"bit_s\":123456789012," \
	"\"net_bit_s\":223456789012,\"segments\":5800,\"resent\":7,\"segment_max\":1448}"
#define WHOLE "{\"met\":1,\"mtu\":9000,\"to\":[" LINK_3 "," LINK_8 "]}"

static void test_round_trip(void **state)
{
	const struct links_told told = {
		.met = true,
		.mtu = 9000,
		.count = 2,
		.at = { { .node = 3,
				.state = LINKS_DONE,
				.tries = 2,
				.rtt_us = 140,
				.bit_s = 123456789012,
				.net_bit_s = 223456789012,
				.segments = 5800,
				.resent = 7,
				.segment_max = 1448 },
			{ .node = 8, .state = LINKS_BIG_LOST } },
	};
	struct links_told back;
	struct failure why = { 0 };
	struct text t = { 0 };

	(void)state;
	memset(&back, 0, sizeof back);
	links_told_write(&told, &t);
	assert_string_equal(text_string(&t), WHOLE);
	assert_int_equal(links_told_read(text_string(&t), &back, &why), 0);
	assert_true(back.met);
	assert_int_equal(back.mtu, 9000);
	assert_int_equal(back.count, 2);
	assert_memory_equal(&back.at[0], &told.at[0], sizeof back.at[0]);
	assert_int_equal(back.at[1].node, 8);
	assert_int_equal(back.at[1].state, LINKS_BIG_LOST);
	text_done(&t);
}

static void test_each_state_has_a_name(void **state)
{
	(void)state;
	for (int i = 0; i < LINKS_RESULTS; i++) {
		const struct links_told told = { .count = 1,
			.at = { { .node = 1, .state = (enum links_result)i } } };
		struct links_told back = { 0 };
		struct failure why = { 0 };
		struct text t = { 0 };

		links_told_write(&told, &t);
		assert_int_equal(links_told_read(text_string(&t), &back, &why), 0);
		assert_int_equal(back.at[0].state, i);
		text_done(&t);
	}
}

static const struct refused_row {
	const char *says, *json;
} refused[] = {
	{ "nothing", "" },
	{ "another object", "{\"a\":1}" },
	{ "no links", "{\"met\":1,\"mtu\":9000}" },
	{ "an end that is missing", "{\"met\":1,\"mtu\":9000,\"to\":[" LINK_3 },
	{ "something behind the end", WHOLE "," },
	{ "no comma", "{\"met\":1,\"mtu\":9000,\"to\":[" LINK_3 LINK_3 "]}" },
	{ "a comma before all", "{\"met\":1,\"mtu\":9000,\"to\":[," LINK_3 "]}" },
	{ "more links than there are rounds",
		"{\"met\":1,\"mtu\":9000,\"to\":[" LINK_3 "," LINK_3 "," LINK_3 "," LINK_3
		"," LINK_3 "," LINK_3 "," LINK_3 "]}" },
	{ "a number that is none", "{\"met\":yes,\"mtu\":9000,\"to\":[]}" },
	{ "neither true nor false", "{\"met\":2,\"mtu\":9000,\"to\":[]}" },
	{ "a number that is negative", "{\"met\":0,\"mtu\":-1,\"to\":[]}" },
	{ "a number that is too large", "{\"met\":0,\"mtu\":4294967296,\"to\":[]}" },
	{ "one beyond all types", "{\"met\":0,\"mtu\":99999999999999999999999,\"to\":[]}" },
	{ "a state that isn't known",
		"{\"met\":0,\"mtu\":0,\"to\":[{\"node\":8,\"state\":\"don\",\"tries\":0}]}" },
};

static void test_refused(void **state)
{
	const struct refused_row *row = *state;
	struct links_told t = { .mtu = 7 };
	struct failure why = { 0 };

	assert_outcome(links_told_read(row->json, &t, &why), -EPROTO, &why, "links");
	assert_int_equal(t.mtu, 7);
	assert_int_equal(t.count, 0);
}

TESTS(links_told)
{
	static struct suite s;

	suite_add(&s, "read as written", test_round_trip, NULL, NULL);
	suite_add(&s, "each state has a name", test_each_state_has_a_name, NULL, NULL);
	SUITE_ROWS(&s, test_refused, refused);
	return suite_run(&s);
}
