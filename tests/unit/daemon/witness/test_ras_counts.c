/* test_ras_counts.c - what answers of NCCL's RAS, as its sources print them, say of four ranks. */
#include "daemon/witness/ras_counts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "tests/unit/unit.h"

enum { RANKS = 4 };

/* --- JSON: NCCL 2.28.7 and later --- */

struct json_rank {
	int rank, pid;
	unsigned all_reduce, all_gather, sends;
	const char *lost; /* "unresponsive": there are no counts of it */
	bool destroyed, absent;
};

static const char *yes(bool is)
{
	return is ? "true" : "false";
}

static void add_head(struct text *t, const struct json_rank *r, const char *last)
{
	text_printf(t,
		"        {\n          \"rank\": %d,\n          \"host\": \"10.0.0.%d\",\n"
		"          \"pid\": %d,\n          \"cuda_dev\": 0,\n          \"nvml_dev\": 0%s\n"
		"          \"status\": {\n",
		r->rank, r->pid / 1000, r->pid, last);
}

static void add_here(struct text *t, const struct json_rank *r)
{
	add_head(t, r, ",");
	text_printf(t,
		"            \"init_state\": 0,\n            \"async_error\": 0,\n"
		"            \"finalize_called\": false,\n            \"destroy_flag\": %s,\n"
		"            \"abort_flag\": false\n          },\n"
		"          \"collective_counts\": {\n            \"Broadcast\": 1,\n"
		"            \"AllGather\": %u,\n            \"AllReduce\": %u,\n"
		"            \"Send\": %u\n          }\n        }",
		yes(r->destroyed), r->all_gather, r->all_reduce, r->sends);
}

/* As 2.28.9 does, without the comma behind nvml_dev. */
static void add_lost(struct text *t, const struct json_rank *r)
{
	add_head(t, r, "");
	text_printf(t,
		"            \"unresponsive\": %s,\n            \"considered_dead\": %s\n"
		"          }\n        }",
		yes(strcmp(r->lost, "unresponsive") == 0), yes(strcmp(r->lost, "dead") == 0));
}

static void add_comm(
	struct text *t, unsigned hash, unsigned size, const struct json_rank *ranks, unsigned count)
{
	const char *comma = "";

	text_printf(t,
		"    {\n      \"hash\": \"0x%x\",\n      \"secondary_hash\": \"0x1:0x2\",\n"
		"      \"size\": %u,\n      \"ranks_count\": %u,\n"
		"      \"missing_ranks_count\": 0,\n      \"ranks\": [\n",
		hash, size, size);
	for (unsigned i = 0; i < count; i++)
		if (!ranks[i].lost && !ranks[i].absent) {
			text_add(t, comma);
			add_here(t, &ranks[i]);
			comma = ",\n";
		}
	text_add(t, "\n      ],\n      \"missing_ranks\": [\n");
	comma = "";
	for (unsigned i = 0; i < count; i++)
		if (ranks[i].lost) {
			text_add(t, comma);
			add_lost(t, &ranks[i]);
			comma = ",\n";
		}
	text_add(t, "\n      ]\n    }");
}

static void begin_json(struct text *t)
{
	text_add(t,
		"OK\nOK\n{\n  \"nccl_version\": \"2.28.9\",\n  \"cuda_runtime_version\": 12080,\n"
		"  \"cuda_driver_version\": 12080,\n  \"timestamp\": \"2026-01-01 00:00:00\",\n"
		"  \"communicators_count\": 1,\n  \"communicators\": [\n");
}

static void end_json(struct text *t)
{
	text_add(t,
		"\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.001,\n"
		"    \"timeouts_count\": 0\n  }\n}\n");
}

/* The words of a rank's line: "=", "b", "a", "o", "g"; "": nothing is known of it. */
static void expect(const struct ras_counts *c, const struct ras_worker *own, size_t own_count,
	const char *const words[RANKS])
{
	struct rank_ops ops[RANKS];
	struct text line = { 0 };
	char word[8];

	(void)ras_counts_judge(c, own, own_count, RANKS, ops);
	for (unsigned i = 0; i < RANKS; i++) {
		rank_ops_add(&line, i, &ops[i]);
		assert_int_equal(sscanf(text_string(&line), "ops %*u %7s", word), 1);
		assert_string_equal(ops[i].known ? word : "", words[i]);
		text_done(&line);
	}
}

static const struct json_row {
	const char *says;
	struct json_rank ranks[RANKS];
	const char *words[RANKS];
} json_rows[] = {
	{ "all have started the same",
		{ { 0, 1001, 5, 2, 0, NULL, 0, 0 }, { 1, 1002, 5, 2, 0, NULL, 0, 0 },
			{ 2, 2001, 5, 2, 0, NULL, 0, 0 }, { 3, 2002, 5, 2, 0, NULL, 0, 0 } },
		{ "=", "=", "=", "=" } },
	{ "one has started less",
		{ { 0, 1001, 5, 2, 0, NULL, 0, 0 }, { 1, 1002, 5, 2, 0, NULL, 0, 0 },
			{ 2, 2001, 4, 2, 0, NULL, 0, 0 }, { 3, 2002, 5, 2, 0, NULL, 0, 0 } },
		{ "a", "a", "b", "a" } },
	{ "one has started as many, but others",
		{ { 0, 1001, 5, 2, 0, NULL, 0, 0 }, { 1, 1002, 5, 2, 0, NULL, 0, 0 },
			{ 2, 2001, 5, 2, 0, NULL, 0, 0 }, { 3, 2002, 4, 3, 0, NULL, 0, 0 } },
		{ "=", "=", "=", "o" } },
	{ "what is sent to one rank is no collective",
		{ { 0, 1001, 5, 2, 9, NULL, 0, 0 }, { 1, 1002, 5, 2, 3, NULL, 0, 0 },
			{ 2, 2001, 5, 2, 0, NULL, 0, 0 }, { 3, 2002, 5, 2, 0, NULL, 0, 0 } },
		{ "=", "=", "=", "=" } },
	{ "one does not answer, one is dead",
		{ { 0, 1001, 5, 2, 0, NULL, 0, 0 }, { 1, 1002, 5, 2, 0, "dead", 0, 0 },
			{ 2, 2001, 5, 2, 0, NULL, 0, 0 },
			{ 3, 2002, 5, 2, 0, "unresponsive", 0, 0 } },
		{ "=", "g", "=", "g" } },
	{ "one has no such communicator any more",
		{ { 0, 1001, 5, 2, 0, NULL, 0, 0 }, { 1, 1002, 5, 2, 0, "", 0, 0 },
			{ 2, 2001, 5, 2, 0, NULL, 0, 0 }, { 3, 2002, 5, 2, 0, NULL, 0, 0 } },
		{ "=", "", "=", "=" } },
	{ "a communicator that ends says nothing",
		{ { 0, 1001, 5, 2, 0, NULL, true, 0 }, { 1, 1002, 5, 2, 0, NULL, 0, 0 },
			{ 2, 2001, 4, 2, 0, NULL, 0, 0 }, { 3, 2002, 5, 2, 0, NULL, 0, 0 } },
		{ "", "", "", "" } },
	{ "a rank is in no communicator",
		{ { 0, 1001, 5, 2, 0, NULL, 0, 0 }, { 1, 1002, 5, 2, 0, NULL, 0, 0 },
			{ 2, 2001, 5, 2, 0, NULL, 0, 0 }, { .absent = true } },
		{ "=", "=", "=", "" } },
};

static void test_json(void **state)
{
	const struct json_row *row = *state;
	struct ras_counts c;
	struct text t = { 0 };

	begin_json(&t);
	add_comm(&t, 0xcf264af, RANKS, row->ranks, RANKS);
	end_json(&t);
	assert_int_equal(ras_counts_read(text_string(&t), t.len, &c), 0);
	expect(&c, NULL, 0, row->words);
	assert_false(ras_counts_moved(&c, &c));
	ras_counts_done(&c);
	/* of a part of it nothing follows */
	for (size_t len = 0; len + 80 < t.len; len += 7)
		assert_int_equal(ras_counts_read(text_string(&t), len, &c), -EPROTO);
	text_done(&t);
}

/* Ranks 0 and 1 in one, 2 and 3 in another, 0 and 2 in a third, as of a pipeline: rank 3 is
 * outside, rank 2 waits for it, and rank 0 for rank 2. Nobody has named all in one communicator. */
static void read_groups(struct ras_counts *c)
{
	static const struct json_rank left[] = { { 0, 1001, 7, 0, 0, NULL, 0, 0 },
		{ 1, 1002, 7, 0, 0, NULL, 0, 0 } };
	static const struct json_rank right[] = { { 0, 1003, 9, 0, 0, NULL, 0, 0 },
		{ 1, 1004, 8, 0, 0, NULL, 0, 0 } };
	static const struct json_rank first[] = { { 0, 1001, 4, 0, 0, NULL, 0, 0 },
		{ 1, 1003, 3, 0, 0, NULL, 0, 0 } };
	struct text t = { 0 };

	begin_json(&t);
	add_comm(&t, 1, 2, left, 2);
	text_add(&t, ",\n");
	add_comm(&t, 2, 2, right, 2);
	text_add(&t, ",\n");
	add_comm(&t, 3, 2, first, 2);
	end_json(&t);
	assert_int_equal(ras_counts_read(text_string(&t), t.len, c), 0);
	text_done(&t);
}

static void test_groups(void **state)
{
	static const struct ras_worker own[] = { { 1001, 0 }, { 1002, 1 }, { 1003, 2 },
		{ 1004, 3 } };
	struct ras_counts c;
	struct rank_ops ops[RANKS];

	(void)state;
	read_groups(&c);
	expect(&c, own, RANKS, (const char *const[]){ "a", "=", "ba", "b" });
	assert_true(ras_counts_judge(&c, own, RANKS, RANKS, ops));
	assert_int_equal(ops[3].started, 9); /* with the broadcast */
	assert_int_equal(ops[3].most, 10);
	/* who that is nobody knows: then nobody is named */
	assert_false(ras_counts_judge(&c, own, 3, RANKS, ops));
	expect(&c, own, 3, (const char *const[]){ "", "", "", "" });
	ras_counts_done(&c);
}

/* Two nodes have a process with the same pid: it is not taken for this node's. */
static void test_pids_of_two_nodes(void **state)
{
	static const struct ras_worker own[] = { { 71, 3 } };
	static const char one[] = "{\"communicators\":[{\"hash\":\"0x1\",\"size\":2,\"ranks\":["
				  "{\"rank\":0,\"host\":\"a\",\"pid\":71,\"collective_counts\":{"
				  "\"AllReduce\":4}},{\"rank\":1,\"host\":\"b\",\"pid\":71,"
				  "\"collective_counts\":{\"AllReduce\":3}}]}],\"ras\":{}}";
	struct ras_counts c;
	struct rank_ops ops[RANKS];

	(void)state;
	assert_int_equal(ras_counts_read(one, sizeof one - 1, &c), 0);
	assert_int_equal(c.count, 2);
	assert_false(ras_counts_judge(&c, own, 1, RANKS, ops));
	ras_counts_done(&c);
}

static void read_even(struct ras_counts *c, unsigned hash, unsigned count_of_last)
{
	struct json_rank ranks[RANKS] = { { 0, 1001, 5, 2, 0, NULL, 0, 0 },
		{ 1, 1002, 5, 2, 0, NULL, 0, 0 }, { 2, 2001, 5, 2, 0, NULL, 0, 0 },
		{ 3, 2002, count_of_last, 2, 0, NULL, 0, 0 } };
	struct text t = { 0 };

	begin_json(&t);
	add_comm(&t, hash, RANKS, ranks, RANKS);
	end_json(&t);
	assert_int_equal(ras_counts_read(text_string(&t), t.len, c), 0);
	text_done(&t);
}

static void test_moved(void **state)
{
	struct ras_counts first, same, later, other;

	(void)state;
	read_even(&first, 1, 4);
	read_even(&same, 1, 4);
	read_even(&later, 1, 5);
	read_even(&other, 2, 4);
	assert_false(ras_counts_moved(&first, &same));
	assert_true(ras_counts_moved(&first, &later));
	assert_true(ras_counts_moved(&first, &other)); /* another communicator */
	ras_counts_done(&first);
	ras_counts_done(&same);
	ras_counts_done(&later);
	ras_counts_done(&other);
}

/* --- text: NCCL 2.24 to 2.28.3 --- */

#define HEAD \
	"ERROR: Unknown command SET FORMAT json\nOK\nNCCL version 2.27.5 compiled with CUDA " \
	"12.9\n\nJob summary\n===========\n\n  Nodes  Processes         GPUs  Processes     " \
	"GPUs\n(total)   per node  per process    (total)  (total)\n      2          2" \
	"            1          4        4\n\nCommunicators... (0.00s)\n=============\n\n" \
	"Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n" \
	"    #  in group  per comm  per node  per comm  in group\n" \
	"    0         1         2         2         4         4   RUNNING  MISMATCH\n"
#define ERRORS   "\nErrors\n======\n\n"
#define WARNINGS "Warnings\n========\n\n"
#define COMM     "#0-0 (cf264af53edbe986) "
#define BEHIND \
	"  3 ranks have launched up to operation 42\n" \
	"  Rank 2 has launched up to operation 41 -- GPU 0 managed by process 2001 on node " \
	"10.0.0.2\n\n"

static const struct text_row {
	const char *says, *answer, *words[RANKS];
} text_rows[] = {
	{ "nothing differs", HEAD ERRORS WARNINGS, { "", "", "", "" } },
	{ "one has started less, of one kind (2.26 and later)",
		HEAD ERRORS WARNINGS COMM
		"MISMATCH\n  Communicator ranks have different AllReduce operation counts\n" BEHIND,
		{ "=", "=", "b", "=" } },
	{ "one has started less (2.24)",
		HEAD ERRORS WARNINGS COMM
		"MISMATCH\n  Communicator ranks have different collective operation "
		"counts\n" BEHIND,
		{ "=", "=", "b", "=" } },
	{ "one has started nothing",
		HEAD ERRORS WARNINGS COMM
		"MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
		"  3 ranks have launched up to operation 1\n"
		"  Rank 3 has not launched any operations -- [process information not found]\n\n",
		{ "=", "=", "=", "b" } },
	{ "one has started something else",
		HEAD ERRORS WARNINGS COMM
		"MISMATCH\n  Communicator ranks have different Broadcast operation counts\n"
		"  3 ranks have not launched any operations\n"
		"  Rank 1 has launched up to operation 1 -- GPU 1 (NVML 3) managed by process "
		"1002 on node 10.0.0.1\n\n  Communicator ranks have different AllReduce "
		"operation counts\n  3 ranks have launched up to operation 42\n"
		"  Rank 1 has launched up to operation 41 -- GPU 1 managed by process 1002 on "
		"node 10.0.0.1\n\n",
		{ "=", "ba", "=", "=" } },
	{ "two and two",
		HEAD ERRORS WARNINGS COMM
		"MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
		"  2 ranks have launched up to operation 42\n"
		"  Rank 0 -- GPU 0 managed by process 1001 on node 10.0.0.1\n"
		"  Rank 1 -- GPU 1 managed by process 1002 on node 10.0.0.1\n"
		"  2 ranks have launched up to operation 41\n"
		"  Rank 2 -- GPU 0 managed by process 2001 on node 10.0.0.2\n"
		"  Rank 3 -- GPU 1 managed by process 2002 on node 10.0.0.2\n\n",
		{ "a", "a", "b", "b" } },
	{ "one does not answer",
		HEAD ERRORS
		"INCOMPLETE\n  Missing communicator data from 1 job process\n"
		"  Process 2002 on node 10.0.0.2 managing GPU 1\n\n" COMM
		"INCOMPLETE\n  Missing communicator data from 1 rank\n"
		"  Rank 3 -- GPU 1 managed by process 2002 on node 10.0.0.2\n\n" WARNINGS
		"TIMEOUT\n  Encountered 1 communication timeout while gathering communicator "
		"data\n\n",
		{ "=", "=", "=", "g" } },
	{ "a status that differs is no count",
		HEAD ERRORS WARNINGS COMM
		"MISMATCH\n  Communicator ranks have different status\n"
		"  3 ranks have status RUNNING\n  Rank 3 has status INIT -- GPU 1 managed by "
		"process 2002 on node 10.0.0.2\n",
		{ "", "", "", "" } },
	{ "ranks of two communicators differ, of which not all are named",
		HEAD ERRORS WARNINGS COMM
		"MISMATCH\n  Communicator ranks have different AllReduce operation counts\n" BEHIND
		"#1-0 (1f264af53edbe986) MISMATCH\n  Communicator ranks have different AllReduce "
		"operation counts\n" BEHIND,
		{ "", "", "", "" } },
};

static void test_text(void **state)
{
	const struct text_row *row = *state;
	struct ras_counts c;

	assert_int_equal(ras_counts_read(row->answer, strlen(row->answer), &c), 0);
	expect(&c, NULL, 0, row->words);
	assert_false(ras_counts_moved(&c, &c) && c.count > 0);
	ras_counts_done(&c);
}

/* --- what is none --- */

static const char *const none[] = { "", "OK\n", "ERROR: Unknown command\n", HEAD, HEAD ERRORS,
	"\xff\xfe garbage", "{\"communicators\":[", "\"communicators\"", "Warnings\n========\n" };

static void test_none(void **state)
{
	struct ras_counts c;

	(void)state;
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		assert_int_equal(ras_counts_read(none[i], strlen(none[i]), &c), -EPROTO);
		assert_null(c.entries);
	}
}

/* --- the line of a rank --- */

static void test_line(void **state)
{
	const struct rank_ops ops = {
		.behind = true, .gone = true, .started = 41, .most = 42, .still_ms = 8000
	};
	struct rank_ops got;
	struct text line = { 0 };
	unsigned rank;

	(void)state;
	rank_ops_add(&line, 3, &ops);
	assert_string_equal(text_string(&line), "ops 3 bg 41 42 8000\n");
	assert_int_equal(rank_ops_read(text_string(&line), &rank, &got), 0);
	assert_int_equal(rank, 3);
	assert_true(got.known && got.behind && got.gone && !got.ahead && !got.odd);
	assert_int_equal(got.most, 42);
	assert_int_equal(got.still_ms, 8000);
	text_done(&line);
	assert_int_equal(rank_ops_read("ops ras 5120", &rank, &got), -EINVAL);
	assert_int_equal(rank_ops_read("ops 3", &rank, &got), -EINVAL);
}

TESTS(ras_counts)
{
	static struct suite s;

	SUITE_ROWS(&s, test_json, json_rows);
	SUITE_ROWS(&s, test_text, text_rows);
	suite_add(&s, "several communicators", test_groups, NULL, NULL);
	suite_add(&s, "a pid that two nodes have", test_pids_of_two_nodes, NULL, NULL);
	suite_add(&s, "what has moved", test_moved, NULL, NULL);
	suite_add(&s, "what is no answer", test_none, NULL, NULL);
	suite_add(&s, "a line is read as it was written", test_line, NULL, NULL);
	return suite_run(&s);
}
