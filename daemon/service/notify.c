/* notify.c - see notify.h */
#include "daemon/service/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/vec.h"
#include "daemon/observe/bus.h"
#include "daemon/plan/plan.h"

enum { AGAIN_MS = 100, UNSENT_MAX = 4096, BARRIER_MS = 2000 };

static void on_again(uv_timer_t *t);

static void warn(const struct notify *n, const char *what)
{
	struct text t = { 0 };

	text_printf(&t, "NOTIFY_SOCKET=%s: %s: the service manager is told nothing",
		env_get(n->bulletin.plan->env, "NOTIFY_SOCKET"), what);
	bus_note(n->bus, NOTE_WARNING, text_string(&t));
	text_done(&t);
}

/* There is no room: the next datagram has these lines, too. A newer STATUS= replaces an older one
 * there, as whoever reads it takes them in order. */
static void keep(struct notify *n, const char *lines, size_t len)
{
	if (n->unsent.len + len > UNSENT_MAX)
		return; /* 16 texts, or systemd hangs */
	text_add_bytes(&n->unsent, lines, len);
	if (n->loop && !uv_is_active((uv_handle_t *)&n->again))
		(void)uv_timer_start(&n->again, on_again, AGAIN_MS, 0);
}

/* False: there is no room now. */
static bool send_lines(struct notify *n, const char *lines, size_t len)
{
	ssize_t sent;

	do
		sent = sendto(n->fd, lines, len, MSG_NOSIGNAL, (const struct sockaddr *)&n->to,
			n->to_size);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return true;
	if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
		return false;
	warn(n, strerror(errno));
	fd_closep(&n->fd);
	return true;
}

static void flush(struct notify *n)
{
	if (n->fd >= 0 && n->unsent.len > 0 &&
		send_lines(n, text_string(&n->unsent), n->unsent.len))
		text_done(&n->unsent);
}

static void on_again(uv_timer_t *t)
{
	struct notify *n = t->data;

	flush(n);
	if (n->unsent.len > 0)
		(void)uv_timer_start(t, on_again, AGAIN_MS, 0);
}

static void say_lines(struct notify *n, const struct text *lines)
{
	flush(n);
	if (n->fd < 0 || lines->len == 0)
		return;
	if (n->unsent.len > 0 || !send_lines(n, lines->at, lines->len))
		keep(n, lines->at, lines->len);
}

static void on_event(void *owner, const struct event *e)
{
	struct notify *n = owner;
	struct text lines = { 0 };

	bulletin_take(&n->bulletin, e, &lines);
	say_lines(n, &lines);
	text_done(&lines);
}

static const struct observer notifier = {
	.on = {
		[EVENT_JOB_STARTED] = on_event,
		[EVENT_ATTEMPT_STARTED] = on_event,
		[EVENT_WORKER_STARTED] = on_event,
		[EVENT_WORKER_ENDED] = on_event,
		[EVENT_WORKERS_JOINED] = on_event,
		[EVENT_SIGNAL_RECEIVED] = on_event,
		[EVENT_STOP] = on_event,
		[EVENT_NODE_JOINED] = on_event,
		[EVENT_NODE_LOST] = on_event,
		[EVENT_RESTART] = on_event,
		[EVENT_CHECK_STARTED] = on_event,
		[EVENT_VERDICT] = on_event,
		[EVENT_JOB_ENDED] = on_event,
	},
};

/* A path, or behind '@' a name in the abstract namespace (unix(7)). */
static bool set_address(struct notify *n, const char *name)
{
	size_t len = strlen(name);

	n->to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if ((*name != '/' && *name != '@') || len < 2 || len >= sizeof n->to.sun_path)
		return false;
	memcpy(n->to.sun_path, name, len);
	n->to_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (*name == '/'));
	if (*name == '@')
		n->to.sun_path[0] = '\0';
	return true;
}

static void open_socket(struct notify *n, const char *name)
{
	if (!set_address(n, name)) {
		warn(n, "it is neither a path nor an abstract name");
		return;
	}
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (n->fd < 0)
		warn(n, strerror(errno));
}

void notify_start(struct notify *n, const struct notify_input *in, struct bus *b)
{
	const char *const *env = in->plan->env;
	struct text lines = { 0 };

	*n = (struct notify){ .bus = b, .fd = -1 };
	if (!in->plan->service)
		return;
	bulletin_begin(&n->bulletin, in->plan, in->meets, in->node_rank_known, in->arena, &lines);
	open_socket(n, env_get(env, "NOTIFY_SOCKET"));
	if (n->fd >= 0) {
		bus_add(b, &notifier, n);
		n->watchdog_ms = bulletin_watchdog_ms(
			env_get(env, "WATCHDOG_USEC"), env_get(env, "WATCHDOG_PID"), in->guard);
		say_lines(n, &lines);
	}
	text_done(&lines);
}

/* Not kept, as the next one says the same. */
static void on_watchdog(uv_timer_t *t)
{
	static const char alive[] = "WATCHDOG=1\n";
	struct notify *n = t->data;

	if (n->fd >= 0)
		(void)send_lines(n, alive, sizeof alive - 1);
}

void notify_enter(struct notify *n, uv_loop_t *loop)
{
	if (n->fd < 0)
		return;
	n->loop = loop;
	(void)uv_timer_init(loop, &n->watchdog); /* can't fail */
	(void)uv_timer_init(loop, &n->again);
	n->watchdog.data = n->again.data = n;
	uv_unref((uv_handle_t *)&n->watchdog);
	uv_unref((uv_handle_t *)&n->again);
	if (n->watchdog_ms > 0)
		(void)uv_timer_start(&n->watchdog, on_watchdog, n->watchdog_ms, n->watchdog_ms);
	if (n->unsent.len > 0)
		(void)uv_timer_start(&n->again, on_again, AGAIN_MS, 0);
}

void notify_leave(struct notify *n)
{
	if (!n->loop)
		return;
	n->loop = NULL;
	uv_close((uv_handle_t *)&n->watchdog, NULL);
	uv_close((uv_handle_t *)&n->again, NULL);
}

/* False: there is no room now. */
static bool send_barrier(struct notify *n, int fd)
{
	static char barrier[] = "BARRIER=1";
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} along = { .head = { .cmsg_len = CMSG_LEN(sizeof fd),
			    .cmsg_level = SOL_SOCKET,
			    .cmsg_type = SCM_RIGHTS } };
	struct iovec text = { barrier, sizeof barrier - 1 };
	const struct msghdr m = { .msg_name = &n->to,
		.msg_namelen = n->to_size,
		.msg_iov = &text,
		.msg_iovlen = 1,
		.msg_control = &along,
		.msg_controllen = sizeof along };

	memcpy(CMSG_DATA(&along.head), &fd, sizeof fd);
	return sendmsg(n->fd, &m, MSG_NOSIGNAL) >= 0;
}

/* systemd finds the unit of a datagram by its sender's pid, and drops those of a process that has
 * ended: the verdict was lost in half of all ends. When it comes to this one, after all others, it
 * closes the descriptor that goes along (sd_notify_barrier(3)). */
static void wait_until_read(struct notify *n)
{
	int ends[2];

	if (n->fd < 0 || n->unsent.len > 0 || pipe2(ends, O_CLOEXEC) < 0)
		return;

	autoclose read_end = ends[0];
	autoclose write_end = ends[1];
	struct pollfd p = { .fd = read_end };

	if (!send_barrier(n, write_end))
		return;
	fd_closep(&write_end);
	while (poll(&p, 1, BARRIER_MS) < 0 && errno == EINTR)
		;
}

void notify_done(struct notify *n)
{
	flush(n);
	wait_until_read(n);
	fd_closep(&n->fd);
	text_done(&n->unsent);
}
