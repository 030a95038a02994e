/* event_file.c - see event_file.h */
#include "daemon/observe/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/utc.h"
#include "daemon/observe/bus.h"
#include "daemon/observe/say.h"
#include "daemon/os/question.h"
#include "daemon/os/replace.h"
#include "daemon/output/front.h"
#include "daemon/plan/plan.h"

bool events_wanted(const struct output_plan *o)
{
	return o->events_path || o->events_fd >= 0;
}

void events_init(struct events *ev)
{
	*ev = (struct events){ .fd = -1 };
}

static int fail(const struct events *ev, struct failure *why, int rc)
{
	return failure_set(why, rc, "--events%s%s: write failed: %s; no more events are written",
		ev->path ? " " : "", ev->path ? ev->path : "",
		rc == -EAGAIN ? "the reader has stalled" : strerror(-rc));
}

/* Non-blocking, as a FIFO that nobody reads would hold launchd up here; a descriptor stays as it is
 * for the others that have it. */
static int open_place(const struct output_plan *o)
{
	enum { FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };
	int fd = o->events_path ? open(o->events_path, FLAGS, 0644) :
				  fcntl(o->events_fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? -errno : fd;
}

/* Writes what is kept, as far as it is taken. */
static int flush(struct events *ev, int patience_ms, struct failure *why)
{
	size_t done = 0;
	int rc = fd_write_within(ev->fd, text_string(&ev->kept), ev->kept.len, patience_ms, &done);

	if (rc < 0) {
		fd_closep(&ev->fd);
		(void)fail(ev, why, rc);
	}
	if (rc < 0 || done == ev->kept.len)
		text_done(&ev->kept);
	else
		text_drop(&ev->kept, done);
	return rc;
}

int events_open(struct events *ev, const struct output_plan *o, struct failure *why)
{
	int fd = events_wanted(o) ? open_place(o) : -1;
	struct stat st;

	ev->path = o->events_path;
	ev->open = true;
	ev->fd = fd < 0 ? -1 : fd;
	ev->is_file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	if (ev->fd >= 0)
		return flush(ev, 0, why);
	text_done(&ev->kept);
	return events_wanted(o) ? fail(ev, why, fd) : 0;
}

int events_write(struct events *ev, const char *lines, size_t len, struct failure *why)
{
	enum { KEPT_MAX = 1 << 20 };

	if (ev->open && ev->fd < 0)
		return 0;
	text_add_bytes(&ev->kept, lines, len);
	if (!ev->open)
		return 0;
	if (ev->kept.failed || ev->kept.len > KEPT_MAX) {
		int rc = ev->kept.failed ? -ENOMEM : -EAGAIN;

		events_done(ev);
		return fail(ev, why, rc);
	}
	return flush(ev, 0, why);
}

bool events_wait(const struct events *ev)
{
	return ev->fd >= 0 && ev->kept.len > 0;
}

static void events_end_work(const void *how, void *answer)
{
	struct events *ev = *(struct events *const *)how;

	ev->fd = QUESTION_KEPT;
	(void)flush(ev, 0, answer);
}

/* A file on a disk is always writable, and its server may hang. */
static int flush_file(struct events *ev, struct failure *why)
{
	const struct question q = { .work = events_end_work,
		.how = &ev,
		.whom = "its file system",
		.hint = "",
		.kept = ev->fd,
		.limit_ms = (uint64_t)last_files_left_ms() };
	struct failure hangs = { 0 }, told;
	int rc = question_ask(&q, &told, sizeof told, &hangs);

	text_done(&ev->kept);
	if (rc < 0)
		return fail(ev, why, rc == -ETIMEDOUT ? -EAGAIN : rc);
	return failure_copy(why, &told);
}

int events_end(struct events *ev, struct failure *why)
{
	enum { PATIENCE_MS = 1000 };
	int rc = ev->fd < 0 || ev->kept.len == 0 ? 0 :
		ev->is_file                      ? flush_file(ev, why) :
						   flush(ev, PATIENCE_MS, why);

	if (rc == 0 && events_wait(ev))
		rc = fail(ev, why, -EAGAIN);
	events_done(ev);
	return rc;
}

void events_done(struct events *ev)
{
	fd_closep(&ev->fd);
	text_done(&ev->kept);
}

/* What has failed is said once: no more lines follow. */
static void say_failed(const struct failure *why)
{
	if (why->code != 0)
		say("warning", why->text);
}

bool events_write_lines(void *owner, const char *lines, size_t len)
{
	struct events *ev = owner;
	struct failure why = { 0 };

	(void)events_write(ev, lines, len, &why);
	say_failed(&why);
	return events_wait(ev);
}

static void on_event(void *owner, const struct event *e)
{
	struct events *ev = owner;
	struct text line = { 0 };
	const struct event_frame frame = {
		.node_known = ev->node_known,
		.node = ev->node,
		.now_ns = uv_hrtime(),
		.wall_ns = utc_now_ns(),
	};

	event_add(&line, e, &frame);
	/* the thread may wait for a disk, the loop may not */
	if (!line.failed && ev->open && ev->output)
		output_events(ev->output, text_string(&line), line.len);
	else if (!line.failed)
		(void)events_write_lines(ev, text_string(&line), line.len);
	text_done(&line);
}

static void open_place_of(struct events *ev, const struct output_plan *o)
{
	struct failure why = { 0 };

	(void)events_open(ev, o, &why);
	say_failed(&why);
}

static void on_job_started(void *owner, const struct event *e)
{
	struct events *ev = owner;

	ev->node_known = true;
	ev->node = e->job_started.plan->node_rank;
	if (!ev->open)
		open_place_of(ev, &e->job_started.plan->output);
	on_event(ev, e);
}

static void on_job_ended(void *owner, const struct event *e)
{
	struct events *ev = owner;
	struct failure why = { 0 };

	if (ev->output)
		return; /* its thread waits for a disk, and holds the lines before this one */
	on_event(ev, e);
	(void)events_end(ev, &why);
	say_failed(&why);
}

static const struct observer event_file = {
	.on = {
		[EVENT_JOB_STARTED] = on_job_started,
		OBSERVE_EVENTS(on_event),
		[EVENT_JOB_ENDED] = on_job_ended,
	},
};

void events_start(struct events *ev, const struct output_plan *o, struct bus *b)
{
	if (!events_wanted(o))
		return;
	if (ev->node_known || !o->events_path)
		open_place_of(ev, o);
	bus_add(b, &event_file, ev);
}
