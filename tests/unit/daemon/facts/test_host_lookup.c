/* test_host_lookup.c - the child that looks up names. What the resolver says is caught. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/vec.h"
#include "config/hosts.h"
#include "daemon/facts/host_lookup.h"

static bool no_fork;

int __wrap_getaddrinfo(
	const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret);
void __wrap_freeaddrinfo(struct addrinfo *list);
pid_t __wrap_fork(void);
pid_t __real_fork(void);

/* "own…" is one of ours, behind another's; "hang" takes forever, "later" is there the second time,
 * "never" has no answer, "none" doesn't exist. */
int __wrap_getaddrinfo(
	const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	static struct sockaddr_in others, ours;
	static struct addrinfo list[2];
	static unsigned asked;

	(void)service;
	assert_int_equal(hints->ai_socktype, SOCK_STREAM);
	while (strcmp(name, "hang") == 0)
		(void)pause();
	if (strcmp(name, "never") == 0 || (strcmp(name, "later") == 0 && asked++ == 0))
		return EAI_AGAIN;
	if (strcmp(name, "none") == 0)
		return EAI_NONAME;
	others.sin_family = ours.sin_family = AF_INET;
	others.sin_addr.s_addr = inet_addr("10.0.0.1");
	ours.sin_addr.s_addr = inet_addr("10.0.0.7");
	list[0] = (struct addrinfo){ .ai_addr = (struct sockaddr *)&others, .ai_next = &list[1] };
	list[1] = (struct addrinfo){ .ai_addr = (struct sockaddr *)&ours };
	if (strncmp(name, "own", 3) != 0 && strcmp(name, "later") != 0)
		list[0].ai_next = NULL;
	*ret = list;
	return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *list)
{
	assert_non_null(list);
}

pid_t __wrap_fork(void)
{
	if (!no_fork)
		return __real_fork();
	errno = EAGAIN;
	return -1;
}

static const struct lookup_row {
	const char *says, *list;
	const char *wanted; /* '1': of the host at that place; NULL: all */
	uint64_t limit_ms;
	size_t count, first;
	bool is_final;
	const char *unknown; /* begin of it */
} rows[] = {
	{ "one is ours", "a own b", NULL, 60000, 1, 1, true, NULL },
	{ "none is", "a b", NULL, 60000, 0, 0, true, NULL },
	{ "two are", "own1 a own2", NULL, 60000, 2, 0, true, NULL },
	{ "what is not asked for", "own1 own2 own3", "010", 60000, 1, 1, true, NULL },
	{ "a name that doesn't exist", "none own", NULL, 60000, 1, 1, true, "none: " },
	{ "a name that has an answer later", "a later", NULL, 60000, 1, 1, true, "later: " },
	{ "a name that has none", "own never", NULL, 4000, 1, 0, false, "never: " },
	{ "a resolver that hangs", "own hang", NULL, 4000, 1, 0, false, NULL },
	{ "one that hangs at once", "hang own", NULL, 100, 0, 0, false, NULL },
};

static void test_lookup(void **state)
{
	const struct lookup_row *row = *state;
	struct arena a = { 0 };
	struct failure why = { 0 };
	struct hosts h = { 0 };
	struct vec addresses = { 0 };
	struct host_answers answers = { 0 };
	bool wanted[3];

	vec_add(&a, &addresses, "10.0.0.7");
	assert_int_equal(hosts_add_list(&a, row->list, "here", &h, &why), 0);
	for (size_t i = 0; i < h.count; i++)
		wanted[i] = !row->wanted || row->wanted[i] == '1';
	assert_int_equal(host_lookup(&h, wanted, &addresses, row->limit_ms, &a, &answers, &why), 0);
	assert_int_equal(answers.own.count, row->count);
	if (row->count > 0)
		assert_int_equal(answers.own.at[0], row->first);
	assert_int_equal(answers.is_final, row->is_final);
	assert_true(!answers.unknown == !row->unknown);
	if (row->unknown)
		assert_int_equal(strncmp(answers.unknown, row->unknown, strlen(row->unknown)), 0);
	assert_true(waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
	arena_done(&a);
}

static void test_no_child(void **state)
{
	struct arena a = { 0 };
	struct failure why = { 0 };
	struct hosts h = { 0 };
	const struct vec addresses = { 0 };
	struct host_answers answers = { .unknown = "kept" };
	const bool wanted = true;

	(void)state;
	assert_int_equal(hosts_add_list(&a, "own", "here", &h, &why), 0);
	no_fork = true;
	assert_outcome(host_lookup(&h, &wanted, &addresses, 1000, &a, &answers, &why), -EAGAIN,
		&why, "a process that looks up names");
	no_fork = false;
	assert_string_equal(answers.unknown, "kept");
	arena_done(&a);
}

TESTS(host_lookup)
{
	static struct suite s;

	SUITE_ROWS(&s, test_lookup, rows);
	suite_add(&s, "no process can be started", test_no_child, NULL, NULL);
	return suite_run(&s);
}
