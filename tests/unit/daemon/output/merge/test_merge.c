/* test_merge.c - other nodes' lines on the consoles of the output thread: stdout and stderr of this
 * program lead to files as long. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/output/front.h"
#include "daemon/output/merge/merge.h"

enum { SHARE = 64 * 1024, PIECE_MAX = 16 * 1024, NODES = 3, LIMIT_S = 60 };

struct fixture {
	int own[3], files[3];
	struct plan plan;
	struct output *output;
	size_t given[NODES], taken[NODES];
};

static void say(void *owner, bool warning, const char *text)
{
	(void)owner, (void)warning, (void)text;
}

static bool write_events(void *owner, const char *lines, size_t len)
{
	(void)owner, (void)lines, (void)len;
	return false;
}

static void fixture_make(struct fixture *s)
{
	const struct output_host host = {
		.hostname = "h", .say = say, .write_events = write_events
	};
	struct failure why = { 0 };

	(void)alarm(LIMIT_S); /* it hangs */
	*s = (struct fixture){ .plan = { .nnodes = NODES } };
	s->plan.output = (struct output_plan){ .merge = true, .events_fd = -1 };
	assert_int_equal(fflush(stdout) | fflush(stderr), 0);
	for (int fd = 1; fd <= 2; fd++) {
		char path[] = "merge-XXXXXX";

		s->own[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
		s->files[fd] = mkostemp(path, O_CLOEXEC);
		if (s->own[fd] < 0 || s->files[fd] < 0 || unlink(path) < 0 ||
			dup2(s->files[fd], fd) < 0)
			abort();
	}
	if (output_open(&s->plan, &host, &s->output, &why) < 0)
		abort();
	output_start(s->output);
	output_prepare(s->output, &s->plan, 0); /* which starts the thread */
}

static void hear_taken(struct fixture *s)
{
	unsigned node;
	size_t len;

	while (merge_taken(output_merge(s->output), &node, &len))
		s->taken[node] += len;
}

/* Lines or pieces, as a node sends them that is not given more credit than it has. */
static void hear(struct fixture *s, unsigned node, int stream, const char *at, size_t len)
{
	while (len > 0) {
		size_t left = SHARE - (s->given[node] - s->taken[node]);
		size_t n = len < PIECE_MAX ? len : PIECE_MAX;

		if (left < n || left < SHARE / 4) {
			hear_taken(s);
			continue;
		}
		if (merge_hear(output_merge(s->output), node, stream, at, n) != n)
			abort();
		s->given[node] += n;
		at += n;
		len -= n;
	}
}

static void hear_text(struct fixture *s, unsigned node, int stream, const char *text)
{
	hear(s, node, stream, text, strlen(text));
}

/* The thread serves nodes in turn: a line that shall stand before another one's is awaited. */
static void await_line(struct fixture *s, unsigned node, const char *text)
{
	size_t before = s->taken[node];

	while (strchr(text, '\n') && s->taken[node] == before)
		hear_taken(s);
}

/* Ends the thread; what stands in both files. */
static void fixture_end(struct fixture *s, struct text ret[3])
{
	struct closing c = { .hurry = false };
	bool closed = output_close(s->output, &c);

	for (int fd = 1; fd <= 2; fd++) {
		char buf[4096];
		ssize_t n;

		(void)lseek(s->files[fd], 0, SEEK_SET);
		while ((n = read(s->files[fd], buf, sizeof buf)) > 0)
			text_add_bytes(&ret[fd], buf, (size_t)n);
		(void)dup2(s->own[fd], fd);
		(void)close(s->own[fd]);
		(void)close(s->files[fd]);
	}
	assert_true(closed && !c.ret_mid_line);
}

static const struct merge_row {
	const char *says;
	struct {
		unsigned node;
		int stream;
		const char *text; /* NULL: the node is lost */
	} heard[5];
	const char *out, *err;
} rows[] = {
	{ "lines of a node", { { 1, 1, "a\nb\n" }, { 1, 2, "c\n" } }, "a\nb\n", "c\n" },
	{ "a line in pieces", { { 1, 1, "a" }, { 1, 1, "b" }, { 1, 1, "\n" } }, "ab\n", "" },
	{ "nodes are not mixed", { { 1, 1, "a" }, { 2, 1, "x\n" }, { 1, 1, "b\n" } }, "x\nab\n",
		"" },
	{ "streams are not mixed",
		{ { 1, 1, "a" }, { 1, 2, "x" }, { 1, 1, "b\n" }, { 1, 2, "y\n" } }, "ab\n",
		"xy\n" },
	{ "a last line gets its end", { { 1, 1, "a" } }, "a\n", "" },
	{ "a lost node's line ends", { { 1, 1, "a" }, { 1, 2, "b\nc" }, { 1, 0, NULL } }, "a\n",
		"b\nc\n" },
};

static void test_rows(void **state)
{
	const struct merge_row *row = *state;
	struct text got[3] = { { 0 } };
	struct fixture s;

	fixture_make(&s);
	assert_int_equal(merge_expect(output_merge(s.output), NODES, SHARE), 0);
	for (size_t i = 0; i < 5 && row->heard[i].node; i++) {
		if (row->heard[i].text) {
			hear_text(&s, row->heard[i].node, row->heard[i].stream, row->heard[i].text);
			await_line(&s, row->heard[i].node, row->heard[i].text);
		} else {
			merge_lost(output_merge(s.output), row->heard[i].node);
		}
	}
	fixture_end(&s, got);
	assert_string_equal(text_string(&got[1]), row->out);
	assert_string_equal(text_string(&got[2]), row->err);
	text_done(&got[1]);
	text_done(&got[2]);
}

/* All is shown though no more than the share is ever on the way: lines that are longer, of both
 * streams in turn, with begins of lines before them. */
static void test_long_lines(void **state)
{
	static char many[5 * SHARE];
	struct text got[3] = { { 0 } }, sent[3] = { { 0 } };
	struct fixture s;

	(void)state;
	fixture_make(&s);
	assert_int_equal(merge_expect(output_merge(s.output), NODES, SHARE), 0);
	memset(many, 'x', sizeof many);
	for (int i = 0; i < 40; i++) {
		int stream = 1 + i % 2;
		size_t len = (size_t)i * 7919 % sizeof many;

		hear(&s, 1, stream, many, len);
		hear_text(&s, 1, stream, "\nbegin ");
		text_add_bytes(&sent[stream], many, len);
		text_add(&sent[stream], "\nbegin ");
	}
	fixture_end(&s, got);
	for (int fd = 1; fd <= 2; fd++) {
		text_add(&sent[fd], "\n");
		assert_int_equal(got[fd].len, sent[fd].len);
		assert_memory_equal(got[fd].at, sent[fd].at, got[fd].len);
		text_done(&got[fd]);
		text_done(&sent[fd]);
	}
}

/* Nodes that nobody expects, and more than has room. */
static void test_too_much(void **state)
{
	static char many[SHARE + 1];
	struct text got[3] = { { 0 } };
	struct fixture s;
	size_t kept[4];

	(void)state;
	memset(many, 'x', sizeof many);
	fixture_make(&s);
	kept[0] = merge_hear(output_merge(s.output), 1, 1, "early\n", 6);
	(void)merge_expect(output_merge(s.output), NODES, SHARE);
	(void)merge_expect(output_merge(s.output), NODES, SHARE); /* twice is once */
	kept[1] = merge_hear(output_merge(s.output), NODES, 1, "strange\n", 8);
	kept[2] = merge_hear(output_merge(s.output), 1, 1, many, sizeof many);
	merge_lost(output_merge(s.output), NODES);
	fixture_end(&s, got);
	assert_int_equal(kept[0] + kept[1], 0);
	assert_int_equal(kept[2], SHARE);
	assert_int_equal(got[1].len, SHARE + 1);
	text_done(&got[1]);
}

static void test_merge_life(void **state)
{
	(void)state;
	assert_life(&merge_life,
		(const char *const[]){ "local: opening kept", "opening: sending kept",
			"sending: keeping", "keeping: kept", "kept:", NULL });
}

TESTS(merge)
{
	struct suite s = { .count = 0 };

	suite_add(&s, "where lines go", test_merge_life, NULL, NULL);
	SUITE_ROWS(&s, test_rows, rows);
	suite_add(&s, "lines that are longer than a node's share", test_long_lines, NULL, NULL);
	suite_add(&s, "what has no room", test_too_much, NULL, NULL);
	return suite_run(&s);
}
