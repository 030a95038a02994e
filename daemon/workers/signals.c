/* signals.c - see signals.h */
#include "daemon/workers/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "common/failure.h"

static const struct {
	int signal;
	enum signal_action action;
} rows[] = {
	{ SIGTERM, SIGNAL_END },
	{ SIGINT, SIGNAL_END },
	{ SIGHUP, SIGNAL_END },
	{ SIGQUIT, SIGNAL_END },
	{ SIGUSR1, SIGNAL_FORWARD },
	{ SIGUSR2, SIGNAL_FORWARD },
};

static void all_taken(sigset_t *ret)
{
	sigemptyset(ret);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		sigaddset(ret, rows[i].signal);
}

enum signal_action signal_action(int signal)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].signal == signal)
			return rows[i].action;
	return SIGNAL_NONE;
}

static void on_readable(uv_poll_t *h, int status, int events)
{
	struct signals *s = h->data;
	struct signalfd_siginfo si;

	(void)status, (void)events;
	/* one at a time: a callback may stop us; libuv comes back for the next */
	if (read(s->fd, &si, sizeof si) != (ssize_t)sizeof si)
		return;
	s->on_signal(s, (int)si.ssi_signo, signal_action((int)si.ssi_signo), (pid_t)si.ssi_pid);
}

int signals_start(struct signals *s, uv_loop_t *loop, const sigset_t *ignored, struct failure *why)
{
	sigset_t taken;
	int rc;

	sigemptyset(&taken);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].signal == SIGTERM || sigismember(ignored, rows[i].signal) != 1)
			sigaddset(&taken, rows[i].signal);
	if (sigprocmask(SIG_BLOCK, &taken, NULL) < 0)
		return failure_set(why, -errno, "sigprocmask: %s", strerror(errno));
	s->fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->fd < 0)
		return failure_set(why, -errno, "signalfd: %s", strerror(errno));
	rc = uv_poll_init(loop, &s->poll, s->fd);
	if (rc < 0) {
		(void)close(s->fd);
		return failure_set(why, rc, "can't watch signals: %s", uv_strerror(rc));
	}
	s->poll.data = s;
	rc = uv_poll_start(&s->poll, UV_READABLE, on_readable);
	if (rc < 0) {
		signals_stop(s);
		return failure_set(why, rc, "can't watch signals: %s", uv_strerror(rc));
	}
	return 0;
}

static void on_closed(uv_handle_t *h)
{
	struct signals *s = h->data;

	(void)close(s->fd);
	s->fd = -1;
}

void signals_stop(struct signals *s)
{
	if (!uv_is_closing((uv_handle_t *)&s->poll))
		uv_close((uv_handle_t *)&s->poll, on_closed);
}

void signals_release(void)
{
	const struct timespec now = { 0 };
	sigset_t taken;

	all_taken(&taken);
	while (sigtimedwait(&taken, NULL, &now) > 0)
		;
	(void)sigprocmask(SIG_UNBLOCK, &taken, NULL); /* a valid set */
}
