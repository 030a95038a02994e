/* test_answer_limits.c - memory that ends, and clients with as much as may be. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/daemon/store/store_sim.h"

#define A STORE_DIALECT_A
#define D STORE_DIALECT_D

/* One who waits for as many keys as may be, beside many others, and goes: in no time. */
static void test_many_waits(void **state)
{
	struct text bytes = { 0 };
	struct sim sim;

	(void)state;
	sim_init(&sim, STORE_DIALECT_NONE, 256 << 20);
	wire_request(&bytes, D, "VALIDATE %0x3c85f7ce");
	wire_request(&bytes, D, "WAIT @131072");
	for (unsigned i = 0; i < 131072; i++) {
		char name[16];

		(void)snprintf(name, sizeof name, "key%u", i % 131000);
		wire_words(&bytes, name);
	}
	for (int round = 0; round < (SANITIZED ? 1 : 5); round++)
		for (unsigned i = 0; i < SIM_CLIENTS; i++) {
			sim_replace(&sim, i);
			sim_feed(&sim, i, text_string(&bytes), bytes.len);
			assert_int_equal(sim.at[i].guest.awaited, 131072);
		}
	assert_int_equal(sim.space.keys.count, 131000);
	text_done(&bytes);
	sim_done(&sim);
	assert_int_equal(sim.budget.used, 0);
}

static const struct limit_row {
	const char *says, *request;
	unsigned times;
} memory_limits[] = {
	{ "keys", "SET key%u v", 100000 },
	{ "values", "SET key%u *60000", 100 },
	{ "one value that grows", "APPEND k *60000", 100 },
	{ "a queue", "QUEUE_PUSH q v%u", 100000 },
	{ "waits", "WAIT @2 a%u b%u", 100000 },
};

/* Over the limit the client that asked is closed, what there was stays, others go on. */
static void test_memory(void **state)
{
	const struct limit_row *row = *state;
	struct text bytes = { 0 };
	struct sim sim;
	unsigned i;

	sim_init(&sim, STORE_DIALECT_NONE, 1 << 20);
	wire_request(&bytes, D, "VALIDATE %0x3c85f7ce");
	sim_feed(&sim, 0, text_string(&bytes), bytes.len);
	wire_request(&bytes, D, "SET small v");
	sim_feed(&sim, 1, text_string(&bytes), bytes.len);
	for (i = 0; i < row->times && sim.at[0].why.code == 0; i++) {
		char request[64];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		(void)snprintf(request, sizeof request, row->request, i, i);
#pragma GCC diagnostic pop
		text_done(&bytes);
		wire_request(&bytes, D, request);
		sim_feed(&sim, 0, text_string(&bytes), bytes.len);
		assert_true(sim.budget.used <= sim.budget.max);
	}
	text_done(&bytes);
	if (strncmp(row->request, "WAIT", 4) == 0) { /* each ends the one before */
		assert_int_equal(i, row->times);
		assert_true(sim.budget.used < 64 << 10);
	} else {
		assert_contains(sim.at[0].why.text, "out of memory");
		sim_replace(&sim, 0);
		wire_request(&bytes, D, "GET small");
		sim_feed(&sim, 1, text_string(&bytes), bytes.len);
		text_done(&bytes);
		wire_words(&bytes, "v");
		assert_int_equal(sim.at[1].out.len, bytes.len);
		text_done(&bytes);
	}
	sim_done(&sim);
	assert_int_equal(sim.budget.used, 0);
}

/* Wherever memory ends, nothing is lost and nothing is half done. */
static void test_memory_everywhere(void **state)
{
	static const char *const requests[] = { "SET k v", "ADD n #1", "APPEND k v", "WAIT @2 a b",
		"COMPARE_SET c '' v", "QUEUE_PUSH q v", "BARRIER b #2", "MULTI_SET @2 d 1 e 2",
		"MULTI_GET @2 d e", "LIST_KEYS", "QUEUE_POP q", "DELETE_KEY k", "WATCH_KEY k" };

	(void)state;
	for (uint64_t max = 0; max < 6000; max += SANITIZED ? 24 : 8)
		for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
			const enum store_dialect d = i == 12 ? A : D;
			struct text bytes = { 0 };
			struct sim sim;

			sim_init(&sim, A, max);
			if (d == D)
				wire_request(&bytes, D, "VALIDATE %0x3c85f7ce");
			wire_request(&bytes, d, requests[i]);
			sim_feed(&sim, 0, text_string(&bytes), bytes.len);
			sim_feed(&sim, 1, text_string(&bytes), bytes.len);
			text_done(&bytes);
			assert_true(sim.budget.used <= max);
			sim_done(&sim);
			assert_int_equal(sim.budget.used, 0);
		}
}

TESTS(answer_limits)
{
	static struct suite s;

	SUITE_ROWS(&s, test_memory, memory_limits);
	suite_add(&s, "a client that waited for 131072 keys goes", test_many_waits, NULL, NULL);
	suite_add(&s, "memory that ends anywhere", test_memory_everywhere, NULL, NULL);
	return suite_run(&s);
}
