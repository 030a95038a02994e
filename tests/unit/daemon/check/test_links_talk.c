/* test_links_talk.c - what one node finds of its partners, over loopback. */
#include "tests/unit/unit.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "daemon/check/links_talk.h"

enum { OWN, OTHER, NODES };
enum { TOKEN = 1000, QUIET_MS = 400, PATIENCE_MS = 20000, STRANGERS = 40 };

struct net {
	int listeners[NODES];
	struct address at[NODES];
};

static int listening(struct address *ret)
{
	socklen_t size = sizeof ret->v6;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(address_parse("127.0.0.1", 0, ret), 0);
	assert_int_equal(bind(fd, &ret->any, address_size(ret)), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, &ret->any, &size), 0);
	return fd;
}

static struct net begin(void)
{
	struct net n;

	memset(&n, 0, sizeof n);
	for (int i = 0; i < NODES; i++)
		n.listeners[i] = listening(&n.at[i]);
	return n;
}

static void end(struct net *n)
{
	for (int i = 0; i < NODES; i++)
		(void)close(n->listeners[i]);
}

/* A node with the other one as its partner; its token is TOKEN and its number. */
static struct links_talk node(const struct net *n, unsigned number, int limit_ms)
{
	unsigned other = !number;
	struct links_talk t = {
		.listener = n->listeners[number],
		.node = number,
		.token = TOKEN + number,
		.count = 1,
		.partners = { { .node = other, .at = n->at[other], .token = TOKEN + other } },
		.until_ms = monotonic_ms() + limit_ms,
	};

	return t;
}

static struct link_told told_by(const struct links_talk *t)
{
	struct links_told told = { 0 };
	struct failure why = { 0 };

	assert_int_equal(links_talk(t, &told, &why), 0);
	assert_int_equal(told.count, 1);
	return told.at[0];
}

/* The other node, in a process of its own, which exits with 0 if all was well there, too. */
static pid_t start_other(const struct net *n)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		struct links_talk t = node(n, OTHER, PATIENCE_MS);
		struct links_told told = { 0 };
		struct failure why = { 0 };

		(void)alarm(PATIENCE_MS / 1000);
		_exit(links_talk(&t, &told, &why) < 0 || told.at[0].state != LINKS_DONE);
	}
	return child;
}

static void assert_well(pid_t child)
{
	int status = -1;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void assert_done(const struct link_told *l)
{
	assert_int_equal(l->node, OTHER);
	assert_int_equal(l->state, LINKS_DONE);
	assert_int_equal(l->tries, 2);
	assert_true(l->bit_s > 0 && l->net_bit_s >= l->bit_s);
	assert_true(l->segments > 0 && l->segment_max > 500);
}

static void test_two_nodes(void **state)
{
	struct net n = begin();
	struct links_talk t = node(&n, OWN, PATIENCE_MS);
	pid_t other = start_other(&n);
	struct link_told l = told_by(&t);

	(void)state;
	assert_done(&l);
	assert_true(monotonic_ms() < t.until_ms - PATIENCE_MS / 2);
	assert_well(other);
	end(&n);
}

/* As many as there are places for, who say nothing, or something else. */
static void test_strangers_are_no_guests(void **state)
{
	struct net n = begin();
	struct links_talk t = node(&n, OWN, PATIENCE_MS);
	int strangers[STRANGERS];
	struct link_told l;
	pid_t other;

	(void)state;
	for (int i = 0; i < STRANGERS; i++) {
		static const char words[] = "GET / HTTP/1.1\r\nHost: somebody\r\n\r\n";

		strangers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(
			connect(strangers[i], &n.at[OWN].any, address_size(&n.at[OWN])), 0);
		if (i % 2)
			assert_true(send(strangers[i], words, sizeof words, MSG_NOSIGNAL) > 0);
	}
	other = start_other(&n);
	l = told_by(&t);
	assert_done(&l);
	assert_well(other);
	for (int i = 0; i < STRANGERS; i++)
		(void)close(strangers[i]);
	end(&n);
}

static void test_nobody_listens(void **state)
{
	struct net n = begin();
	struct links_talk t = node(&n, OWN, QUIET_MS);

	(void)state;
	(void)close(n.listeners[OTHER]);
	n.listeners[OTHER] = -1;
	assert_int_equal(told_by(&t).state, LINKS_REFUSED);
	end(&n);
}

static void test_a_process_that_stands_still(void **state)
{
	struct net n = begin();
	struct links_talk t = node(&n, OWN, QUIET_MS);

	(void)state;
	assert_int_equal(told_by(&t).state, LINKS_SILENT);
	end(&n);
}

static void test_one_that_had_not_come(void **state)
{
	struct net n = begin();
	struct links_talk t = node(&n, OWN, PATIENCE_MS);
	int64_t begun = monotonic_ms();

	(void)state;
	memset(&t.partners[0].at, 0, sizeof t.partners[0].at);
	assert_int_equal(told_by(&t).state, LINKS_UNTRIED);
	assert_true(monotonic_ms() - begun < PATIENCE_MS / 2);
	end(&n);
}

/* It is of another job: it is let in by nobody, and lets in nobody. */
static void test_another_token(void **state)
{
	struct net n = begin();
	struct links_talk t = node(&n, OWN, QUIET_MS);
	pid_t other = start_other(&n);

	(void)state;
	t.partners[0].token++;
	t.token++;
	assert_int_equal(told_by(&t).state, LINKS_SILENT);
	(void)close(n.listeners[OWN]);
	n.listeners[OWN] = -1;
	assert_int_equal(waitpid(other, NULL, 0), other);
	end(&n);
}

TESTS(links_talk)
{
	static struct suite s;

	suite_add(&s, "two nodes", test_two_nodes, NULL, NULL);
	suite_add(&s, "strangers are no guests", test_strangers_are_no_guests, NULL, NULL);
	suite_add(&s, "nobody listens", test_nobody_listens, NULL, NULL);
	suite_add(&s, "a process that stands still", test_a_process_that_stands_still, NULL, NULL);
	suite_add(&s, "one that had not come", test_one_that_had_not_come, NULL, NULL);
	suite_add(&s, "another token", test_another_token, NULL, NULL);
	return suite_run(&s);
}
