/* test_notify.c - what arrives at the socket that NOTIFY_SOCKET names. */
#include "tests/unit/unit.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/observe/bus.h"
#include "daemon/plan/plan.h"
#include "daemon/service/notify.h"

struct told {
	struct bus bus;
	struct arena arena;
	struct plan plan;
	struct notify notify;
	struct text notes;
	uv_loop_t loop;
	int fd;
	char name[64];
	const char *env[4];
};

static void on_note(void *owner, const struct event *e)
{
	text_add(owner, e->note.text);
}

static const struct observer listener = { .on = { [EVENT_NOTE] = on_note } };

static void begin(struct told *t, const char *name)
{
	const struct notify_input in = { &t->plan, false, true, getpid(), &t->arena };

	(void)snprintf(t->name, sizeof t->name, "NOTIFY_SOCKET=%s", name);
	t->env[0] = t->name;
	t->env[1] = "WATCHDOG_USEC=20000";
	t->plan = (struct plan){ .env = t->env, .service = true, .nnodes = 1, .start_count = 1 };
	bus_add(&t->bus, &listener, &t->notes);
	notify_start(&t->notify, &in, &t->bus);
}

/* As systemd does: a socket, here of an abstract name that the kernel finds. */
static void open_receiver(struct told *t, char ret_name[32])
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	socklen_t size = sizeof a;

	t->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_true(t->fd >= 0);
	assert_int_equal(bind(t->fd, (struct sockaddr *)&a, sizeof a.sun_family), 0);
	assert_int_equal(getsockname(t->fd, (struct sockaddr *)&a, &size), 0);
	(void)snprintf(ret_name, 32, "@%.*s",
		(int)(size - offsetof(struct sockaddr_un, sun_path) - 1), a.sun_path + 1);
}

static void expect(const struct told *t, const char *lines)
{
	char got[8192] = "";
	ssize_t n = recv(t->fd, got, sizeof got - 1, 0);

	assert_true(n > 0);
	assert_string_equal(got, lines);
}

static void end(struct told *t)
{
	notify_done(&t->notify);
	if (t->fd >= 0)
		(void)close(t->fd);
	text_done(&t->notes);
	arena_done(&t->arena);
}

static void test_abstract(void **state)
{
	struct told t = { .fd = -1 };
	char name[32];

	(void)state;
	open_receiver(&t, name);
	begin(&t, name);
	expect(&t, "STATUS=starting\n");
	bus_emit(&t.bus, &(struct event){ .kind = EVENT_ATTEMPT_STARTED });
	expect(&t, "STATUS=attempt 0: starting 1 worker\n");
	assert_string_equal(text_string(&t.notes), "");
	end(&t);
}

/* A receiver that takes nothing for a while: the kernel's queue is full. */
static void test_full(void **state)
{
	struct told t = { .fd = -1 };
	char name[32], got[8192];
	int sent = 0;

	(void)state;
	open_receiver(&t, name);
	begin(&t, name);
	while (t.notify.unsent.len == 0 && ++sent < 100000)
		bus_emit(&t.bus, &(struct event){ .kind = EVENT_ATTEMPT_STARTED });
	assert_true(t.notify.unsent.len > 0);
	bus_emit(&t.bus, &(struct event){ .kind = EVENT_JOB_ENDED, .job_ended = { 1, NULL } });
	while (recv(t.fd, got, sizeof got, 0) > 0)
		;
	notify_done(&t.notify);
	expect(&t,
		"STATUS=attempt 0: starting 1 worker\n"
		"STOPPING=1\nSTATUS=ended with exit code 1: no worker was started\n");
	end(&t);
}

static void on_timer(uv_timer_t *timer)
{
	notify_leave(timer->data);
	uv_close((uv_handle_t *)timer, NULL);
}

static void test_watchdog(void **state)
{
	struct told t = { .fd = -1 };
	uv_timer_t timer;
	char name[32];

	(void)state;
	open_receiver(&t, name);
	begin(&t, name);
	expect(&t, "STATUS=starting\n");
	assert_int_equal(uv_loop_init(&t.loop), 0);
	notify_enter(&t.notify, &t.loop);
	assert_int_equal(uv_run(&t.loop, UV_RUN_NOWAIT), 0); /* it keeps no loop alive */
	(void)uv_timer_init(&t.loop, &timer);
	timer.data = &t.notify;
	(void)uv_timer_start(&timer, on_timer, 3000, 0);
	(void)uv_run(&t.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&t.loop), 0);
	expect(&t, "WATCHDOG=1\n");
	expect(&t, "WATCHDOG=1\n");
	end(&t);
}

static void test_nobody(void **state)
{
	const char *const names[] = { "relative", "/", "/no/such/socket" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct told t = { .fd = -1 };

		begin(&t, names[i]);
		assert_contains(text_string(&t.notes), names[i]);
		assert_contains(text_string(&t.notes), "the service manager is told nothing");
		end(&t);
	}
}

TESTS(notify)
{
	static struct suite s;

	suite_add(&s, "an abstract socket gets each text", test_abstract, NULL, NULL);
	suite_add(&s, "what finds no room is not lost", test_full, NULL, NULL);
	suite_add(&s, "signs of life while the loop runs", test_watchdog, NULL, NULL);
	suite_add(&s, "a socket that isn't there is warned of, once", test_nobody, NULL, NULL);
	return suite_run(&s);
}
