/* test_finder.c - node rank 0's address is looked up without waiting. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "common/address.h"
#include "common/fd.h"
#include "daemon/meet/finder.h"

struct look {
	uv_loop_t loop;
	struct finder finder;
	unsigned agains; /* how often it asks again */
	unsigned found, searching, failed, closed;
	char why[256];
};

static void on_found(struct finder *f)
{
	struct look *l = f->owner;

	if (l->found++ == l->agains)
		finder_close(f);
	else
		finder_again(f);
}

static void on_searching(struct finder *f, const char *why)
{
	struct look *l = f->owner;

	(void)why;
	l->searching++;
}

static void on_failed(struct finder *f, const char *why)
{
	struct look *l = f->owner;

	l->failed++;
	(void)snprintf(l->why, sizeof l->why, "%s", why);
	finder_close(f);
	finder_close(f); /* a second time does nothing */
}

static void on_closed(struct finder *f)
{
	struct look *l = f->owner;

	l->closed++;
}

static void look_up(struct look *l, const char *name, uint64_t within_ms)
{
	assert_int_equal(uv_loop_init(&l->loop), 0);
	l->finder = (struct finder){ .on_found = on_found,
		.on_searching = on_searching,
		.on_failed = on_failed,
		.on_closed = on_closed,
		.owner = l };
	finder_start(&l->finder, &l->loop, name, 29501, within_ms);
	assert_int_equal(l->found + l->failed, 0); /* not from within */
}

static void end_look(struct look *l)
{
	assert_int_equal(uv_run(&l->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(l->closed, 1);
	assert_int_equal(uv_loop_close(&l->loop), 0);
}

static const struct row {
	const char *says, *name, *text; /* text NULL: it is not found */
	bool numeric;
} rows[] = {
	{ "an IPv4 address", "10.0.0.4", "10.0.0.4:29501", true },
	{ "an IPv6 address", "fd00::4", "[fd00::4]:29501", true },
	{ "a name", "localhost", NULL, false },
};

/* Where it stands in no file, DNS may let us wait for a minute. */
static bool localhost_is_known(void)
{
	static char hosts[65536];

	return fd_read_file("/etc/hosts", hosts, sizeof hosts) > 0 && strstr(hosts, "localhost");
}

static void test_found(void **state)
{
	const struct row *row = *state;
	struct look l = { 0 };
	char text[ADDRESS_TEXT];

	needs(row->numeric || localhost_is_known(), "the name localhost in /etc/hosts");
	look_up(&l, row->name, 60000);
	end_look(&l);
	assert_int_equal(l.found, 1);
	assert_int_equal(l.failed + l.searching, 0);
	assert_true(l.finder.found.count > 0);
	assert_int_equal(l.finder.numeric, row->numeric);
	address_text(&l.finder.found.at[0], text);
	if (row->text)
		assert_string_equal(text, row->text);
	for (unsigned i = 0; i < l.finder.found.count; i++) {
		const struct address *a = &l.finder.found.at[i];

		assert_int_equal(address_port(a), 29501);
		assert_int_equal(address_is_loopback(a), !row->numeric);
		for (unsigned j = 0; j < i; j++)
			assert_memory_not_equal(&l.finder.found.at[i], &l.finder.found.at[j],
				sizeof *l.finder.found.at);
	}
}

static const struct unknown_row {
	const char *says;
	uint64_t within_ms;
} unknown_rows[] = {
	{ "a name that nobody knows", 0 },
	/* no multiple of the pauses, and longer than one lookup on a machine that is busy */
	{ "... is looked for as long as was said", 3300 },
};

static void test_not_found(void **state)
{
	const struct unknown_row *row = *state;
	uint64_t began = uv_hrtime();
	struct look l = { 0 };

	look_up(&l, "no-such-host.invalid", row->within_ms);
	end_look(&l);
	assert_int_equal(l.found, 0);
	assert_int_equal(l.failed, 1);
	assert_contains(l.why, "the name no-such-host.invalid can't be resolved: ");
	assert_int_equal(l.searching, row->within_ms > 0); /* at once, and not again so soon */
	/* the loop's clock has whole ms */
	assert_true((uv_hrtime() - began) / 1000000 + 1 >= row->within_ms);
}

/* Linked with --wrap: there is no thread to be had. */
static bool no_threads;

typedef void thread_entry(void *of);

int __real_uv_thread_create_ex(
	uv_thread_t *ret, const uv_thread_options_t *options, thread_entry *entry, void *of);
int __wrap_uv_thread_create_ex(
	uv_thread_t *ret, const uv_thread_options_t *options, thread_entry *entry, void *of);
int __wrap_uv_thread_create_ex(
	uv_thread_t *ret, const uv_thread_options_t *options, thread_entry *entry, void *of)
{
	return no_threads ? UV_EAGAIN : __real_uv_thread_create_ex(ret, options, entry, of);
}

/* Nobody could be asked: that is a reason to wait as well, or to give up. */
static void test_no_thread(void **state)
{
	const uint64_t within_ms[] = { 0, 400 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct look l = { 0 };

		no_threads = true;
		look_up(&l, "localhost", within_ms[i]);
		end_look(&l);
		no_threads = false;
		assert_int_equal(l.found, 0);
		assert_int_equal(l.failed, 1);
		assert_contains(l.why, "the name localhost can't be resolved: ");
		assert_contains(l.why, "a thread");
		assert_int_equal(l.searching, within_ms[i] > 0);
	}
}

static void test_again(void **state)
{
	struct look l = { .agains = 3 };

	(void)state;
	needs(localhost_is_known(), "the name localhost in /etc/hosts");
	look_up(&l, "localhost", 60000);
	finder_again(&l.finder); /* it is asking */
	end_look(&l);
	assert_int_equal(l.found, 4);
	assert_true(address_is_loopback(&l.finder.found.at[0]));
	for (unsigned i = 1; i < l.finder.found.count; i++) /* one of each family */
		assert_true(l.finder.found.at[i].any.sa_family !=
			l.finder.found.at[i - 1].any.sa_family);
}

static void test_closed_while_it_asks(void **state)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "no-such-host.invalid" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct look l = { 0 };

		look_up(&l, names[i], 60000);
		finder_close(&l.finder);
		end_look(&l);
		assert_int_equal(l.found + l.failed, 0);
	}
}

static void test_edges(void **state)
{
	(void)state;
	assert_life(&finder_life,
		(const char *const[]){ "none: asking paused", "asking: paused found failed closed",
			"paused: asking paused found failed closed", "found: closed",
			"failed: closed", "closed:", NULL });
}

TESTS(finder)
{
	static struct suite s;

	SUITE_ROWS(&s, test_found, rows);
	SUITE_ROWS(&s, test_not_found, unknown_rows);
	suite_add(&s, "no thread can be started", test_no_thread, NULL, NULL);
	suite_add(&s, "asked again what it means", test_again, NULL, NULL);
	suite_add(&s, "closed before the answer", test_closed_while_it_asks, NULL, NULL);
	suite_add(&s, "its states", test_edges, NULL, NULL);
	return suite_run(&s);
}
