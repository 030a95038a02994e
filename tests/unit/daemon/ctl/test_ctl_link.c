/* test_ctl_link.c - answers from the control socket, right and wrong, and none at all. */
#include "tests/unit/daemon/workers/process_fixture.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/ctl/ctl_link.h"

static struct cjson cjson;
static char path[64];
static const char *says; /* the launcher's answer to all; NULL: it waits */
static bool stops, endless;

/* In a child: takes one connection, and answers its first line. */
static _Noreturn void serve(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), one;
	char line[256];

	(void)alarm(60);
	memcpy(at.sun_path, path, strlen(path) + 1);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 1) < 0)
		_exit(99);
	if (stops)
		(void)raise(SIGSTOP);
	one = accept(fd, NULL, NULL);
	if (one < 0 || recv(one, line, sizeof line, 0) <= 0)
		_exit(98);
	do {
		for (const char *p = says; p && *p; p++) /* as it comes */
			if (send(one, p, 1, MSG_NOSIGNAL) != 1)
				_exit(97);
		(void)poll(NULL, 0, endless ? 1 : 0);
	} while (endless);
	_exit(0);
}

static const struct answer_row {
	const char *says, *answer;
	int rc;
	const char *why;
} answers[] = {
	{ "a result", "{\"v\":1,\"id\":1,\"ok\":true,\"result\":{\"text\":\"a\"}}\n", 0, NULL },
	{ "a refusal",
		"{\"v\":1,\"id\":1,\"ok\":false,\"error\":{\"code\":\"x\",\"text\":\"not "
		"now\"}}\n",
		-EREMOTEIO, "not now" },
	{ "one that has no room for us",
		"{\"v\":1,\"id\":null,\"ok\":false,\"error\":{\"code\":\"busy\",\"text\":\"busy: "
		"64\"}}\n",
		-EBUSY, "busy: 64" },
	{ "a refusal that would write to a terminal",
		"{\"v\":1,\"id\":1,\"ok\":false,\"error\":{\"code\":\"x\",\"text\":\"\\u001b[2J\"}}\n",
		-EREMOTEIO, "\\x1b[2J" },
	{ "an answer to an earlier request, and then ours",
		"{\"v\":1,\"id\":0,\"ok\":true,\"result\":{\"text\":\"old\"}}\n"
		"{\"v\":1,\"id\":1,\"ok\":true,\"result\":{\"text\":\"a\"}}\n",
		0, NULL },
	{ "neither", "{\"v\":1}\n", -EREMOTEIO, "without a reason" },
	{ "no JSON", "hello\n", -EPROTO, "no JSON object" },
	{ "no object", "[1]\n", -EPROTO, "no JSON object" },
	{ "half a line", "{\"v\":1,", -ECONNRESET, "the job has ended" },
	{ "nothing", "", -ECONNRESET, "the job has ended" },
};

static pid_t begin(struct ctl_link *l)
{
	pid_t child;
	struct failure why = { 0 };

	(void)snprintf(path, sizeof path, "/tmp/test_ctl_link.%d", (int)getpid());
	(void)unlink(path);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		serve();
	while (ctl_link_open(&cjson, path, l, &why) < 0) {
		assert_true(why.code == -ENOENT || why.code == -ECONNREFUSED);
		why = (struct failure){ 0 };
		(void)usleep(1000);
	}
	assert_int_equal(l->supervisor, child);
	assert_int_equal(l->uid, geteuid());
	return child;
}

static void test_answer(void **state)
{
	const struct answer_row *row = *state;
	struct failure why = { 0 };
	const cJSON *result;
	struct ctl_link l;
	cJSON *root;
	pid_t child;
	int rc;

	says = row->answer;
	child = begin(&l);
	rc = ctl_link_ask(&l, "status", "", &root, &result, &why);
	assert_outcome(rc, row->rc, &why, row->why);
	if (rc == 0) {
		assert_string_equal(member_text(&cjson, result, "text"), "a");
		cjson.free(root);
	}
	ctl_link_close(&l);
	assert_int_equal(actor_reap(child), 0);
	assert_int_equal(unlink(path), 0);
}

/* The same in two steps: what was refused has no answer to be freed. */
static void test_try(void **state)
{
	const struct answer_row *row = *state;
	struct failure why = { 0 };
	const cJSON *result = NULL;
	struct ctl_link l;
	cJSON *root = NULL;
	pid_t child;
	int rc;

	says = row->answer;
	child = begin(&l);
	assert_int_equal(ctl_link_send(&l, "status", "", &why), 0);
	while ((rc = ctl_link_try(&l, 0, &root, &result, &why)) == 0)
		(void)usleep(1000);
	assert_true(rc > 0 ? root && result : !root);
	cjson.free(root);
	ctl_link_close(&l);
	(void)actor_reap(child);
	assert_int_equal(unlink(path), 0);
}

static void assert_raw(const struct ctl_link *l, const char *name, const char *expected)
{
	size_t len;
	const char *at = ctl_link_raw(l, name, &len);

	assert_non_null(at);
	assert_int_equal(len, strlen(expected));
	assert_memory_equal(at, expected, len);
}

static void test_stream(void **state)
{
	struct failure why = { 0 };
	struct ctl_link l;
	size_t len;
	cJSON *root;
	pid_t child;

	(void)state;
	says = "{\"v\":1,\"id\":1,\"event\":{\"n\":{}}}\n{\"v\":1,\"id\":1,\"lost\":3}\n"
	       "{\"v\":1,\"id\":1,\"ok\":true,\"result\":{}}\n";
	child = begin(&l);
	assert_int_equal(ctl_link_follow(&l, "events", "", &why), 0);
	assert_int_equal(ctl_link_next(&l, &root, &why), 1);
	assert_raw(&l, "event", "{\"n\":{}}");
	cjson.free(root);
	assert_int_equal(ctl_link_next(&l, &root, &why), 1);
	assert_null(ctl_link_raw(&l, "event", &len));
	cjson.free(root);
	assert_int_equal(ctl_link_next(&l, &root, &why), 0);
	assert_int_equal(ctl_link_wait(&l, 60000, &why), 1); /* it has ended */
	ctl_link_close(&l);
	assert_int_equal(actor_reap(child), 0);
	assert_int_equal(unlink(path), 0);
}

static void on_event(void *owner, const cJSON *root)
{
	struct text *told = owner;
	double lost = 0;

	text_add(told, member_object(&cjson, root, "event") ? "event " : "");
	if (member_number(&cjson, root, "lost", &lost))
		text_printf(told, "lost %.0f ", lost);
	text_add(told, cjson.item(root, "ok") ? "end" : "");
}

/* What of a stream comes before the answer to another request. */
static void test_between(void **state)
{
	struct failure why = { 0 };
	struct text told = { 0 };
	struct ctl_link l;
	const cJSON *result;
	cJSON *root;
	pid_t child;
	double n;

	(void)state;
	says = "{\"v\":1,\"id\":1,\"event\":{}}\n{\"v\":1,\"id\":1,\"lost\":3}\n"
	       "{\"v\":1,\"id\":1,\"ok\":false,\"error\":{\"code\":\"x\",\"text\":\"y\"}}\n"
	       "{\"v\":1,\"id\":2,\"ok\":true,\"result\":{\"n\":7}}\n";
	child = begin(&l);
	l.on_event = on_event;
	l.owner = &told;
	assert_int_equal(ctl_link_follow(&l, "logs", ",\"ranks\":[3]", &why), 0);
	assert_int_equal(ctl_link_ask(&l, "status", "", &root, &result, &why), 0);
	assert_string_equal(text_string(&told), "event lost 3 end");
	assert_true(member_number(&cjson, result, "n", &n) && n == 7);
	cjson.free(root);
	text_done(&told);
	ctl_link_close(&l);
	assert_int_equal(actor_reap(child), 0);
	assert_int_equal(unlink(path), 0);
}

/* Connections to a stopped process succeed: the kernel takes them. */
static void test_stopped(void **state)
{
	struct failure why = { 0 };
	const cJSON *result;
	struct ctl_link l;
	cJSON *root;
	char expected[80];
	pid_t child;

	(void)state;
	stops = true;
	says = "";
	child = begin(&l);
	actor_await(child, 'T');
	assert_int_equal(ctl_link_ask(&l, "status", "", &root, &result, &why), -ETIMEDOUT);
	(void)snprintf(expected, sizeof expected,
		"pid %d, is stopped by a signal; kill -CONT %d resumes it", (int)child, (int)child);
	assert_contains(why.text, expected);
	assert_null(strstr(why.text, "carry out")); /* it was sent nothing */
	assert_true(l.stopped);
	assert_int_equal(ctl_link_wait(&l, 0, &why), 0); /* but it is there */
	ctl_link_close(&l);
	(void)kill(child, SIGKILL);
	assert_int_equal(actor_reap(child), 128 + SIGKILL);
	assert_int_equal(unlink(path), 0);
	stops = false;
}

/* A pretender's, by which whoever asks it would wait for ever. */
static void test_endless(void **state)
{
	struct failure why = { 0 };
	const cJSON *result;
	struct ctl_link l;
	cJSON *root;
	pid_t child;

	(void)state;
	says = "{\"v\":1,\"id\":0,\"ok\":true,\"result\":{}}\n"; /* to an earlier request */
	endless = true;
	child = begin(&l);
	assert_int_equal(ctl_link_ask(&l, "status", "", &root, &result, &why), -ETIMEDOUT);
	assert_non_null(strstr(why.text, "has not answered for 15 s"));
	ctl_link_close(&l);
	(void)kill(child, SIGKILL);
	(void)actor_reap(child);
	assert_int_equal(unlink(path), 0);
	endless = false;
}

static void test_nobody(void **state)
{
	struct failure why = { 0 };
	struct ctl_link l;

	(void)state;
	assert_int_equal(ctl_link_open(&cjson, "/tmp/test_ctl_link.none", &l, &why), -ENOENT);
	assert_int_equal(l.fd, -1);
	why.code = 0;
	assert_int_equal(
		ctl_link_open(&cjson,
			"/tmp/0123456789012345678901234567890123456789012345678901234567890"
			"123456789012345678901234567890123456789012345678901234567890",
			&l, &why),
		-ENAMETOOLONG);
}

TESTS(ctl_link)
{
	struct suite s = { .count = 0 };
	struct failure why;

	if (cjson_open(NULL, &cjson, &why) < 0)
		return 77; /* not here */
	SUITE_ROWS(&s, test_answer, answers);
	SUITE_ROWS(&s, test_try, answers);
	suite_add(&s, "a stream", test_stream, NULL, NULL);
	suite_add(&s, "... beside other requests", test_between, NULL, NULL);
	suite_add(&s, "a launcher that is stopped", test_stopped, NULL, NULL);
	suite_add(&s, "one that sends without end", test_endless, NULL, NULL);
	suite_add(&s, "nobody", test_nobody, NULL, NULL);
	return suite_run(&s);
}
