/* test_journal.c - launchd's own words and events without the output thread: to the journal's
 * socket, or to stderr. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/observe/bus.h"
#include "daemon/observe/say.h"
#include "daemon/plan/plan.h"
#include "daemon/service/journal.h"

struct scene {
	char directory[40];
	struct sockaddr_un at;
	int server; /* -1: none */
	struct plan plan;
	struct bus bus;
	struct journal journal;
	struct text said; /* on stderr */
};

static void begin(struct scene *s, bool is_there, bool is_stderr, enum journal_use use)
{
	*s = (struct scene){ .at.sun_family = AF_UNIX, .server = -1 };
	(void)snprintf(s->directory, sizeof s->directory, "/tmp/launchd-journal-XXXXXX");
	assert_non_null(mkdtemp(s->directory));
	(void)snprintf(s->at.sun_path, sizeof s->at.sun_path, "%s/socket", s->directory);
	if (is_there) {
		s->server = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(s->server, (const struct sockaddr *)&s->at, sizeof s->at), 0);
	}
	s->plan = (struct plan){ .run_id = "r",
		.job_name = "j",
		.nnodes = 2,
		.node_rank = 1,
		.output = { .journal = use, .stderr_is_journal = is_stderr } };
	journal_start(&s->journal, &s->plan, -1, &s->bus);
	s->journal.path = s->at.sun_path;
}

static void end(struct scene *s)
{
	journal_close(&s->journal);
	if (s->server >= 0) {
		(void)close(s->server);
		assert_int_equal(unlink(s->at.sun_path), 0);
	}
	assert_int_equal(rmdir(s->directory), 0);
	text_done(&s->said);
}

/* Says a line as main() does, and takes what comes to stderr. */
static void say_one(struct scene *s)
{
	int own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10), ends[2];
	char got[256];
	ssize_t n;

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	(void)dup2(ends[1], STDERR_FILENO);
	say("warning", "well");
	(void)dup2(own, STDERR_FILENO);
	n = read(ends[0], got, sizeof got);
	if (n > 0)
		text_add_bytes(&s->said, got, (size_t)n);
	(void)close(own);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void assert_entry(const struct scene *s, const char *part)
{
	char got[512];
	ssize_t n = recv(s->server, got, sizeof got - 1, MSG_DONTWAIT);

	assert_true((n >= 0) == (part != NULL));
	if (n < 0)
		return;
	got[n] = '\0';
	assert_contains(got, part);
}

static const struct say_row {
	const char *says;
	bool is_there, is_stderr;
	enum journal_use use;
	const char *entry, *err;
} sayings[] = {
	{ "nobody wants a journal", true, true, JOURNAL_NONE, NULL, "launchd: warning: well\n" },
	{ "beside stderr", true, false, JOURNAL_MESSAGES, "MESSAGE=well\n",
		"launchd: warning: well\n" },
	{ "in its place", true, true, JOURNAL_MESSAGES, "MESSAGE=well\n", "" },
	{ "also where workers' lines go there", true, true, JOURNAL_ALL, "MESSAGE=well\n", "" },
	{ "it is away: once on stderr", false, false, JOURNAL_MESSAGES, NULL,
		"launchd: warning: well\n" },
	{ "in its place, and away", false, true, JOURNAL_MESSAGES, NULL,
		"launchd: warning: well\n" },
};

static void test_say(void **state)
{
	const struct say_row *row = *state;
	struct scene s;

	begin(&s, row->is_there, row->is_stderr, row->use);
	say_one(&s);
	if (row->is_there)
		assert_entry(&s, row->entry);
	assert_string_equal(text_string(&s.said), row->err);
	end(&s);
}

/* Rank and attempt are known from the event on that tells of them. */
static void test_events(void **state)
{
	const struct event started = { .kind = EVENT_ATTEMPT_STARTED,
		.attempt_started = { 4, "n0", 1 } };
	struct event met = { .kind = EVENT_JOB_STARTED };
	struct scene s;

	(void)state;
	begin(&s, true, false, JOURNAL_MESSAGES);
	met.job_started.plan = &s.plan;
	say_one(&s);
	assert_entry(&s, "JOB=j\nRUN_ID=r\nMESSAGE=");
	bus_emit(&s.bus, &met);
	assert_entry(&s, "RUN_ID=r\nNODE_RANK=1\nMESSAGE=job j: ");
	bus_emit(&s.bus, &started);
	assert_entry(&s, "NODE_RANK=1\nATTEMPT=4\nMESSAGE=attempt 4 starts");
	end(&s);
}

/* It reads nothing: one second for all that is left to say. */
static void test_stuck(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, true, true, JOURNAL_MESSAGES);
	for (int i = 0; i < 20000 && !s.journal.given_up; i++)
		say_one(&s);
	assert_true(s.journal.given_up);
	assert_string_equal(text_string(&s.said), "launchd: warning: well\n");
	end(&s);
}

TESTS(journal)
{
	struct suite s = { .count = 0 };

	SUITE_ROWS(&s, test_say, sayings);
	suite_add(&s, "what is known goes into the fields", test_events, NULL, NULL);
	suite_add(&s, "a journald that is stuck is given up", test_stuck, NULL, NULL);
	return suite_run(&s);
}
