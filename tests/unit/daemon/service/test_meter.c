/* test_meter.c - the file of --metrics-file: when it is written, and that it is whole. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "daemon/cluster/member.h"
#include "daemon/observe/bus.h"
#include "daemon/observe/say.h"
#include "daemon/plan/plan.h"
#include "daemon/service/meter.h"

struct scene {
	char directory[40], path[64];
	struct plan plan;
	struct arena arena;
	struct bus bus;
	struct meter meter;
	uv_loop_t loop;
	struct member *member; /* of no job: nothing is seen of others */
	struct text said;
};

static void hear(void *owner, const char *bytes, size_t len)
{
	text_add_bytes(owner, bytes, len);
}

static int make(void **state)
{
	struct scene *s = calloc(1, sizeof *s);

	assert_non_null(s);
	(void)snprintf(s->directory, sizeof s->directory, "/tmp/launchd-meter-XXXXXX");
	assert_non_null(mkdtemp(s->directory));
	(void)snprintf(s->path, sizeof s->path, "%s/a.prom", s->directory);
	s->plan = (struct plan){ .job_name = "j",
		.run_id = "r",
		.nnodes = 1,
		.start_count = 1,
		.metrics_path = s->path };
	s->member = calloc(1, sizeof *s->member);
	assert_non_null(s->member);
	assert_int_equal(uv_loop_init(&s->loop), 0);
	meter_start(&s->meter, &s->plan, &s->arena, &s->bus);
	say_through(hear, &s->said);
	*state = s;
	return 0;
}

static int unmake(void **state)
{
	struct scene *s = *state;

	say_through(NULL, NULL);
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	(void)unlink(s->path);
	assert_int_equal(rmdir(s->directory), 0); /* and nothing is left beside it */
	text_done(&s->said);
	arena_done(&s->arena);
	free(s->member);
	free(s);
	return 0;
}

static void begin(struct scene *s)
{
	struct failure why = { 0 };

	assert_int_equal(meter_enter(&s->meter, &s->loop, s->member, &why), 0);
	bus_emit(&s->bus,
		&(struct event){ EVENT_JOB_STARTED, 0, .job_started = { &s->plan, "host" } });
	bus_emit(&s->bus,
		&(struct event){ EVENT_ATTEMPT_STARTED, 0, .attempt_started = { 0, "h", 1 } });
}

static void tell_worker(struct scene *s, enum event_kind kind, const struct outcome *o)
{
	bus_emit(&s->bus, &(struct event){ kind, 0, .worker = o });
}

static const struct outcome running = { .pid = 1 };
static const struct outcome ended = { .pid = 1, .end = { ENDED_EXIT, 0, false } };

static void assert_file(const struct scene *s, const char *part)
{
	char page[16384];

	assert_true(fd_read_file(s->path, page, sizeof page) > 0);
	assert_contains(page, part);
}

/* The start of a job must not wait for it. */
static void test_late(void **state)
{
	struct scene *s = *state;
	struct stat st;

	begin(s);
	assert_int_equal(uv_run(&s->loop, UV_RUN_NOWAIT), 0); /* nothing is to be done yet */
	tell_worker(s, EVENT_WORKER_STARTED, &running);
	assert_int_equal(access(s->path, F_OK), -1);
	(void)uv_run(&s->loop, UV_RUN_ONCE);
	assert_file(s, "state=\"running\"} 1\n");
	assert_int_equal(stat(s->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	meter_leave(&s->meter);
}

/* What follows at once waits for its second; nothing wakes up after it. */
static void test_seldom(void **state)
{
	struct scene *s = *state;
	uint64_t first;

	begin(s);
	tell_worker(s, EVENT_WORKER_STARTED, &running);
	(void)uv_run(&s->loop, UV_RUN_ONCE);
	first = s->meter.written_ms;
	tell_worker(s, EVENT_WORKER_ENDED, &ended);
	tell_worker(s, EVENT_WORKER_ENDED, &ended);
	(void)uv_run(&s->loop, UV_RUN_NOWAIT);
	assert_file(s, "state=\"running\"} 1\n");
	(void)uv_run(&s->loop, UV_RUN_DEFAULT); /* returns when no timer runs any more */
	assert_file(s, "state=\"succeeded\"} 1\n");
	assert_in_range(s->meter.written_ms - first, 1000, 60000);
	meter_leave(&s->meter);
}

static void test_last(void **state)
{
	struct scene *s = *state;

	begin(s);
	meter_leave(&s->meter);
	s->meter.bytes.read_bytes[0] = 4711;
	bus_emit(&s->bus, &(struct event){ EVENT_JOB_ENDED, 0, .job_ended = { 7, NULL } });
	assert_file(s, "launchd_job_exit_code{job_name=\"j\",node_rank=\"0\"} 7\n");
	assert_file(s, "stream=\"stdout\"} 4711\n");
}

static void test_no_file(void **state)
{
	struct scene *s = *state;

	s->plan.metrics_path = NULL;
	begin(s);
	tell_worker(s, EVENT_WORKER_STARTED, &running);
	(void)uv_run(&s->loop, UV_RUN_NOWAIT);
	meter_leave(&s->meter);
	bus_emit(&s->bus, &(struct event){ EVENT_JOB_ENDED, 0, .job_ended = { 7, NULL } });
	assert_int_equal(access(s->path, F_OK), -1);
}

/* Nodes that never met have no ranks, and the file's name may have one in it. */
static void test_no_job(void **state)
{
	struct scene *s = *state;

	bus_emit(&s->bus, &(struct event){ EVENT_JOB_ENDED, 0, .job_ended = { 1, NULL } });
	assert_int_equal(access(s->path, F_OK), -1);
}

/* Once, however often it fails. */
static void test_failure(void **state)
{
	struct scene *s = *state;

	s->plan.metrics_path = "/nowhere/a.prom";
	begin(s);
	meter_leave(&s->meter);
	for (int i = 0; i < 2; i++)
		bus_emit(&s->bus, &(struct event){ EVENT_JOB_ENDED, 0, .job_ended = { 7, NULL } });
	assert_string_equal(text_string(&s->said),
		"launchd: warning: --metrics-file: /nowhere/a.prom can't be written: No such file "
		"or directory\n");
}

TESTS(meter)
{
	static struct suite s;

	suite_add(&s, "the first page comes after the workers", test_late, make, unmake);
	suite_add(&s, "one page a second, and then the last", test_seldom, make, unmake);
	suite_add(&s, "the page at the end", test_last, make, unmake);
	suite_add(&s, "no file is wanted", test_no_file, make, unmake);
	suite_add(&s, "the nodes never met", test_no_job, make, unmake);
	suite_add(&s, "a file that can't be written", test_failure, make, unmake);
	return suite_run(&s);
}
