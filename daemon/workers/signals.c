/* signals.c - see signals.h */
#include "daemon/workers/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "config/reaction.h"
#include "daemon/workers/deaths.h"
#include "daemon/workers/tree.h"

static bool is_taken(const struct reactions *r, const sigset_t *ignored, int signal)
{
	return r->of[signal].kind != REACTION_NONE &&
		(signal == SIGTERM || r->of[signal].named || sigismember(ignored, signal) != 1);
}

static bool ends_the_job(const struct reactions *r, int signal)
{
	return reaction_ends(&r->of[signal]);
}

void signals_taken(const struct reactions *r, const sigset_t *ignored, sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGCHLD);
	for (int n = 1; n < REACTION_SIGNALS; n++)
		if (is_taken(r, ignored, n))
			sigaddset(ret, n);
}

void signals_ending(const struct reactions *r, const sigset_t *ignored, sigset_t *ret)
{
	sigemptyset(ret);
	for (int n = 1; n < REACTION_SIGNALS; n++)
		if (is_taken(r, ignored, n) && ends_the_job(r, n))
			sigaddset(ret, n);
}

/* Those that the supervisor receives itself. STOP and CONT come to it for other reasons. */
static void signals_direct(const struct reactions *r, const sigset_t *ignored, sigset_t *ret)
{
	signals_ending(r, ignored, ret);
	sigaddset(ret, SIGCHLD);
	for (int n = 1; n < REACTION_SIGNALS; n++)
		if (r->of[n].named && r->of[n].kind != REACTION_SUSPEND &&
			r->of[n].kind != REACTION_RESUME)
			sigaddset(ret, n);
}

struct relayed signals_relayed(int signal, int code, pid_t pid, uid_t uid, pid_t supervisor)
{
	struct relayed got = { .signal = signal, .code = code, .pid = pid, .uid = uid };

	if (code > 0 || pid <= 0) /* the kernel, or a process of a pid namespace above ours */
		return got;
	got.session = getsid(pid);
	got.branch = tree_branch(supervisor, pid);
	return got;
}

static void on_direct(uv_poll_t *h, int status, int events)
{
	struct signals *s = h->data;
	struct signalfd_siginfo si;
	struct relayed got;

	(void)status, (void)events;
	/* one at a time: a callback may stop us; libuv comes back for the next */
	if (read(s->fd, &si, sizeof si) != (ssize_t)sizeof si)
		return;
	if (si.ssi_signo == SIGCHLD) {
		s->on_child(s, deaths_first(si.ssi_code, (pid_t)si.ssi_pid));
		return;
	}
	got = signals_relayed(
		(int)si.ssi_signo, si.ssi_code, (pid_t)si.ssi_pid, si.ssi_uid, getpid());
	s->on_signal(s, &got, WAY_DIRECT);
}

static void on_relay(uv_poll_t *h, int status, int events)
{
	struct signals *s = h->data;
	struct relayed got;
	ssize_t n = read(s->relay, &got, sizeof got);

	(void)status, (void)events;
	if (n == (ssize_t)sizeof got) {
		s->on_signal(s, &got, WAY_GUARD);
	} else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		(void)uv_poll_stop(h);
		s->on_guard_gone(s);
	}
}

static int watch(struct signals *s, uv_poll_t *poll, uv_loop_t *loop, int fd, uv_poll_cb on_event,
	struct failure *why)
{
	int rc = uv_poll_init(loop, poll, fd);

	if (rc < 0)
		return failure_set(why, rc, "can't watch signals: %s", uv_strerror(rc));
	poll->data = s;
	s->handles++;
	(void)uv_poll_start(poll, UV_READABLE, on_event); /* can't fail on a new handle */
	return 0;
}

int signals_start(struct signals *s, uv_loop_t *loop, const struct reactions *r,
	const sigset_t *ignored, int relay, struct failure *why)
{
	sigset_t direct;
	int rc;

	signals_direct(r, ignored, &direct);
	s->relay = relay;
	s->fd = signalfd(-1, &direct, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->fd < 0)
		return failure_set(why, -errno, "signalfd: %s", strerror(errno));
	rc = watch(s, &s->direct_poll, loop, s->fd, on_direct, why);
	if (rc < 0)
		fd_closep(&s->fd);
	else
		rc = watch(s, &s->relay_poll, loop, relay, on_relay, why);
	if (rc < 0)
		signals_stop(s);
	return rc;
}

static void on_closed(uv_handle_t *h)
{
	struct signals *s = h->data;

	if (--s->handles > 0)
		return;
	fd_closep(&s->fd);
	fd_closep(&s->relay);
}

static void stop(struct signals *s, uv_poll_t *poll)
{
	if (poll->data == s && !uv_is_closing((uv_handle_t *)poll))
		uv_close((uv_handle_t *)poll, on_closed);
}

void signals_stop(struct signals *s)
{
	stop(s, &s->direct_poll);
	stop(s, &s->relay_poll);
}

void signals_release(const sigset_t *taken)
{
	const struct timespec now = { 0 };

	while (sigtimedwait(taken, NULL, &now) > 0)
		;
	(void)sigprocmask(SIG_UNBLOCK, taken, NULL); /* a valid set */
}
