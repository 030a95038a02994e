/* test_party.c - what the parts of the control channel tell their owner, and how they tell time. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "common/failure.h"
#include "common/text.h"
#include "daemon/cluster/party.h"
#include "daemon/observe/bus.h"

enum { TIMEOUT_MS = 1000 };

/* A party and what its owner and the user hear. */
struct heard {
	struct party party;
	struct member_config config;
	struct bus bus;
	uv_loop_t loop;
	struct text said;
	struct failure failed;
	const struct meeting *met;
	unsigned closed, called;
};

static int on_met(void *owner, const struct meeting *m, struct failure *why)
{
	((struct heard *)owner)->met = m;
	return failure_set(why, -EBUSY, "not now");
}

static void on_failed(void *owner, const struct failure *why)
{
	((struct heard *)owner)->failed = *why;
}

static void on_closed(void *owner)
{
	((struct heard *)owner)->closed++;
}

static const struct member_events events = {
	.met = on_met, .failed = on_failed, .closed = on_closed
};

static void on_note(void *owner, const struct event *e)
{
	text_printf(owner, "%s: %s\n", note_word(e->note.level), e->note.text);
}

static void on_node_joined(void *owner, const struct event *e)
{
	text_printf(owner, "%s (%u) has come\n", e->other.name, e->other.rank);
}

static void on_node_lost(void *owner, const struct event *e)
{
	text_printf(owner, "%s (%u) is lost: %s\n", e->other.name, e->other.rank, e->other.detail);
}

static const struct observer observer = {
	.on = { [EVENT_NOTE] = on_note,
		[EVENT_NODE_JOINED] = on_node_joined,
		[EVENT_NODE_LOST] = on_node_lost },
};

static int make(void **state)
{
	static struct heard h;

	h = (struct heard){ .config = { .node_timeout_ms = TIMEOUT_MS } };
	h.party = (struct party){
		.config = &h.config, .on = &events, .owner = &h, .bus = &h.bus, .loop = &h.loop
	};
	bus_add(&h.bus, &observer, &h.said);
	*state = &h;
	return uv_loop_init(&h.loop);
}

static int done(void **state)
{
	struct heard *h = *state;

	text_done(&h->said);
	return uv_loop_close(&h->loop);
}

static void test_told(void **state)
{
	struct heard *h = *state;

	party_say(&h->party, NOTE_WARNING, "%d of %s", 3, "them");
	party_tell_node(&h->party, 2, "gpu2", NULL);
	party_tell_node(&h->party, 1, "gpu1", "cut");
	assert_string_equal(text_string(&h->said),
		"warning: 3 of them\ngpu2 (2) has come\ngpu1 (1) is lost: cut\n");
}

static const struct class_row {
	const char *says;
	int code, exit_code;
} classes[] = {
	{ "what the user wrote", -EINVAL, 2 },
	{ "a program that is not there", -ENOENT, 127 },
	{ "a program that can't be executed", -EACCES, 126 },
	{ "anything else", -ECONNRESET, 1 },
};

/* Another node's errno says what this launcher exits with. */
static void test_failed(void **state)
{
	const struct class_row *row = *state;
	struct heard *h;
	void *made;

	assert_int_equal(make(&made), 0);
	h = made;
	party_fail(&h->party, row->code, "node %u: %s", 2, "no");
	assert_int_equal(h->failed.code, row->code);
	assert_int_equal(failure_exit_code(&h->failed), row->exit_code);
	assert_string_equal(h->failed.text, "node 2: no");
	assert_int_equal(done(&made), 0);
}

/* Only who asked for every word reads of it, and not where there was nobody to meet. */
static void test_met(void **state)
{
	const struct meeting alone = { .node_rank = 3, .alone = true }, met = { .node_rank = 3 };
	struct heard *h = *state;
	struct failure why = { 0 };

	assert_int_equal(party_met(&h->party, &met, &why), -EBUSY);
	assert_ptr_equal(h->met, &met);
	assert_string_equal(why.text, "not now");
	h->config.verbose = true;
	(void)party_met(&h->party, &alone, &why);
	assert_int_equal(h->said.len, 0);
	(void)party_met(&h->party, &met, &why);
	assert_contains(text_string(&h->said), "note: the launchers have met after ");
	assert_contains(text_string(&h->said), "; this is node rank 3\n");
}

/* The last part that closes tells the owner, if that is closing. */
static void test_closed(void **state)
{
	struct heard *h = *state;

	h->party.parts = 3;
	party_part_closed(&h->party);
	h->party.closing = true;
	party_part_closed(&h->party);
	assert_int_equal(h->closed, 0);
	party_part_closed(&h->party);
	assert_int_equal(h->closed, 1);
	h->party.parts = 1;
	h->party.closing = false;
	party_part_closed(&h->party);
	assert_int_equal(h->closed, 1);
}

static void on_called(uv_timer_t *t)
{
	((struct heard *)t->data)->called++;
}

static void test_time(void **state)
{
	struct heard *h = *state;
	uint64_t due_ms;
	uv_timer_t t;

	(void)uv_timer_init(&h->loop, &t);
	t.data = h;
	due_ms = party_wait(&h->party, &t, on_called, 20);
	assert_int_equal(due_ms, uv_now(&h->loop) + 20);
	assert_int_equal(party_left_ms(&h->party, due_ms), 20);
	assert_int_equal(party_left_ms(&h->party, due_ms - 20), 0);
	assert_int_equal(party_left_ms(&h->party, due_ms - 21), 0);
	assert_int_equal(h->called, 0);
	(void)uv_run(&h->loop, UV_RUN_DEFAULT);
	assert_int_equal(h->called, 1);
	assert_true(uv_now(&h->loop) >= due_ms);
	uv_close((uv_handle_t *)&t, NULL);
	(void)uv_run(&h->loop, UV_RUN_DEFAULT);
}

/* By more than a quarter of the time after which a node counts as lost. */
static void test_overslept(void **state)
{
	struct heard *h = *state;
	uint64_t now_ms = uv_now(&h->loop);

	assert_false(party_overslept(&h->party, now_ms + 1));
	assert_false(party_overslept(&h->party, now_ms - TIMEOUT_MS / 4));
	assert_true(party_overslept(&h->party, now_ms - TIMEOUT_MS / 4 - 1));
}

TESTS(party)
{
	static struct suite s;

	suite_add(&s, "what the user is told", test_told, make, done);
	SUITE_ROWS(&s, test_failed, classes);
	suite_add(&s, "the nodes have met", test_met, make, done);
	suite_add(&s, "the last one tells that all is closed", test_closed, make, done);
	suite_add(&s, "a wait, and what is left of it", test_time, make, done);
	suite_add(&s, "whether it was suspended meanwhile", test_overslept, make, done);
	return suite_run(&s);
}
