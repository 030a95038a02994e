/* preempt_watch.c - see preempt_watch.h */
#include "daemon/run/preempt_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/num.h"
#include "common/signame.h"
#include "common/text.h"
#include "config/table.h"
#include "daemon/observe/bus.h"
#include "daemon/os/process.h"

enum {
	SAID_BYTES = 256, /* of each stream; what follows is read and dropped */
	PAUSE_FIRST_MS = 1000,
	PAUSE_MAX_MS = 60000, /* a command that ran for so long is tried again soon */
};

/* Shared with the child. */
struct watch_said {
	struct helper_answer helper;
	int status; /* of the command, as waitpid(2) has it */
	char said[2][SAID_BYTES];
};

/* --- in the child --- */

struct tap {
	int fd; /* -1: it has ended */
	size_t len;
	char *to;
};

static void on_child(int signal)
{
	(void)signal; /* ends ppoll(2) */
}

/* False: there is nothing to take now. An end closes it. */
static bool take(struct tap *s)
{
	char bytes[4096];
	ssize_t n = s->fd < 0 ? -1 : read(s->fd, bytes, sizeof bytes);
	size_t room = SAID_BYTES - 1 - s->len;

	if (n == 0)
		fd_closep(&s->fd);
	if (n <= 0)
		return false;
	if (room > (size_t)n)
		room = (size_t)n;
	memcpy(s->to + s->len, bytes, room);
	s->len += room;
	return true;
}

static _Noreturn void become(const char *const *argv, const int outputs[2], pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && dup2(outputs[0], STDOUT_FILENO) >= 0 &&
		dup2(outputs[1], STDERR_FILENO) >= 0)
		(void)execv(argv[0], (char *const *)argv);
	_exit(127);
}

/* What it leaves in the pipes is taken, too; who holds them longer is not waited for. */
static int follow(pid_t child, struct tap streams[2])
{
	int status = 0;
	sigset_t none;

	sigemptyset(&none);
	while (waitpid(child, &status, WNOHANG) == 0) {
		struct pollfd polled[2] = { { streams[0].fd, POLLIN, 0 },
			{ streams[1].fd, POLLIN, 0 } };

		if (ppoll(polled, 2, NULL, &none) <= 0)
			continue;
		for (size_t i = 0; i < 2; i++)
			if (polled[i].revents)
				(void)take(&streams[i]);
	}
	for (size_t i = 0; i < 2; i++)
		while (streams[i].len < SAID_BYTES - 1 && take(&streams[i]))
			;
	return status;
}

static void work(struct helper *h)
{
	const struct preempt_watch *w = h->owner;
	struct watch_said *answer = (struct watch_said *)h->answer;
	const struct sigaction wakes = { .sa_handler = on_child };
	struct tap streams[2];
	int p[2], outputs[2];
	sigset_t chld;
	pid_t parent = getpid(), child;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &chld, NULL) < 0 || sigaction(SIGCHLD, &wakes, NULL) < 0)
		helper_fail(h, "sigaction: %s", strerror(errno));
	for (size_t i = 0; i < 2; i++) {
		if (pipe2(p, O_CLOEXEC) < 0 || fcntl(p[0], F_SETFL, O_NONBLOCK) < 0)
			helper_fail(h, "pipe: %s", strerror(errno));
		streams[i] = (struct tap){ .fd = p[0], .to = answer->said[i] };
		outputs[i] = p[1];
	}
	child = process_fork_to_exec();
	if (child == 0)
		become(w->command, outputs, parent);
	if (child < 0)
		helper_fail(h, "fork: %s", strerror(errno));
	(void)close(outputs[0]);
	(void)close(outputs[1]);
	answer->status = follow(child, streams);
}

/* --- in the supervisor --- */

/* Who has written it may have been anything. */
static struct watch_said copy_of(const struct helper *h)
{
	struct watch_said copy = *(const struct watch_said *)h->answer;

	for (size_t i = 0; i < 2; i++)
		copy.said[i][SAID_BYTES - 1] = '\0';
	return copy;
}

/* The first word of what it has printed. */
static size_t first_word(const char *said, const char **ret)
{
	*ret = said + strspn(said, " \t\r\n");
	return strcspn(*ret, " \t\r\n");
}

static uint64_t time_left(const struct preempt_watch *w, const char *said)
{
	uint64_t ms = w->preset_ms, max_s = setting_rows[SET_SHUTDOWN_TIMEOUT].max;
	struct text line = { 0 };
	char number[SAID_BYTES];
	const char *word;
	size_t len = first_word(said, &word);

	(void)snprintf(number, sizeof number, "%.*s", (int)len, word);
	if (len == 0 || num_parse_seconds(number, max_s, &ms) == 0)
		return ms;
	text_add(&line,
		"--preempt-watch exited with 0, but what it printed is no time, such as 30: \"");
	text_add_shown(&line, word, len);
	text_printf(&line, "\"; --shutdown-timeout counts, %s s", num_seconds(ms).text);
	bus_note(w->bus, NOTE_WARNING, text_string(&line));
	text_done(&line);
	return ms;
}

static void explain(const struct preempt_watch *w, bool succeeded, struct text *out)
{
	const struct watch_said seen = copy_of(&w->helper);
	const char *line = seen.said[1] + strspn(seen.said[1], " \t\r\n");
	size_t len = strcspn(line, "\r\n");

	if (!succeeded)
		helper_explain(&w->helper, "the watch", out);
	else if (WIFSIGNALED(seen.status))
		text_printf(out, "it was killed by %s", signal_name(WTERMSIG(seen.status)));
	else
		text_printf(out, "it exited with code %d", WEXITSTATUS(seen.status));
	text_add(out, len > 0 ? "; it printed: " : "");
	text_add_shown(out, line, len);
}

/* Once: there may be one that fails each time, and the job runs for days. */
static void warn(struct preempt_watch *w, bool succeeded)
{
	struct text line = { 0 };

	if (w->warned)
		return;
	w->warned = true;
	text_printf(&line, "--preempt-watch %s failed: ", w->command[0]);
	explain(w, succeeded, &line);
	text_add(&line,
		"; until it is preempted it should run on; it is run again after 1 s, and later each time");
	bus_note(w->bus, NOTE_WARNING, text_string(&line));
	text_done(&line);
}

static void on_again(uv_timer_t *t);

static void pause_before_next(struct preempt_watch *w)
{
	bool lasted = uv_now(w->again.loop) - w->began_ms >= PAUSE_MAX_MS;

	if (w->pause_ms == 0 || lasted)
		w->pause_ms = PAUSE_FIRST_MS;
	else
		w->pause_ms = w->pause_ms * 2 < PAUSE_MAX_MS ? w->pause_ms * 2 : PAUSE_MAX_MS;
	(void)uv_timer_start(&w->again, on_again, w->pause_ms, 0);
}

static void on_end(struct helper *h, bool succeeded)
{
	struct preempt_watch *w = h->owner;
	const struct watch_said seen = copy_of(h);
	bool announced = succeeded && WIFEXITED(seen.status) && WEXITSTATUS(seen.status) == 0;

	if (!announced) {
		warn(w, succeeded);
		uv_update_time(w->again.loop);
		pause_before_next(w);
	}
	helper_close(h);
	if (announced)
		w->announce(w->owner, time_left(w, seen.said[0]));
}

static void run_command(struct preempt_watch *w)
{
	struct text line = { 0 };
	int rc;

	w->helper = (struct helper){
		.work = work,
		.on_end = on_end,
		.owner = w,
		.name = "preempt-watch",
		.argv = w->argv,
		.group = true,
		.lasting = true,
	};
	uv_update_time(w->again.loop);
	w->began_ms = uv_now(w->again.loop);
	rc = helper_start(&w->helper, w->again.loop, sizeof(struct watch_said), 0);
	if (rc == 0)
		return;
	text_printf(&line, "--preempt-watch can't be started: %s", strerror(-rc));
	if (!w->warned)
		bus_note(w->bus, NOTE_WARNING, text_string(&line));
	w->warned = true;
	text_done(&line);
	pause_before_next(w);
}

static void on_again(uv_timer_t *t)
{
	struct preempt_watch *w = t->data;

	if (w->helper.state == HELPER_NONE) /* else its handles take longer to close than that */
		run_command(w);
	else
		pause_before_next(w);
}

void preempt_watch_start(struct preempt_watch *w, uv_loop_t *loop)
{
	(void)uv_timer_init(loop, &w->again); /* can't fail */
	w->again.data = w;
	w->open = true;
	run_command(w);
}

void preempt_watch_stop(struct preempt_watch *w)
{
	if (!w->open)
		return;
	w->open = false;
	uv_close((uv_handle_t *)&w->again, NULL);
	helper_close(&w->helper);
}
