/* console.c - see console.h */
#include "daemon/output/console/console.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/sm.h"
#include "daemon/os/rehearsal.h"
#include "daemon/output/console/shown.h"

enum {
	OUT_ROOM = 128 * 1024,
	PIPE_BYTES = 256 * 1024, /* a reader that is woken less often is faster: 1.3 to 1.8 x */
	WORDS_MAX = 256 * 1024,
	TURNS = 32, /* before the workers' pipes are looked at again */
	SILENCE_MS = 1000,
	PATIENCE_MS = 200, /* a reader may have to wait for a CPU */
};

static bool has_others(const struct console *c)
{
	return c->words.len > 0 || (c->first && (c->first != c->owner || c->first->next));
}

/* The owner's stream has stopped in the middle of a line, and others wait. */
static void on_silence(uv_timer_t *t)
{
	struct console *c = t->data;

	if (!c->owner)
		return;
	if (c->shown > 0 || console_is_waiting(c) || c->owner->queued) {
		c->shown = 0;
		(void)uv_timer_start(t, on_silence, SILENCE_MS, 0);
		return;
	}
	c->owner->cut(c->owner, &c->out);
	c->owner = *c->owner->open ? c->owner : NULL;
	(void)console_flush(c);
}

static void on_patience(uv_timer_t *t);
static void on_writable(uv_poll_t *p, int status, int events);

static const struct sm_state states[CONSOLE_STATES] = {
	[CONSOLE_WRITING] = { "writing", SM_TO(CONSOLE_WAITING) | SM_TO(CONSOLE_BROKEN) },
	[CONSOLE_WAITING] = { "waiting",
		SM_TO(CONSOLE_WRITING) | SM_TO(CONSOLE_STUCK) | SM_TO(CONSOLE_BROKEN) },
	/* waiting: it is another node's no longer, see console_localize() */
	[CONSOLE_STUCK] = { "stuck",
		SM_TO(CONSOLE_WRITING) | SM_TO(CONSOLE_WAITING) | SM_TO(CONSOLE_BROKEN) },
	[CONSOLE_BROKEN] = { "broken", 0 },
};

const struct sm console_life = { "console", states, CONSOLE_STATES };

bool console_is_waiting(const struct console *c)
{
	return c->state == CONSOLE_WAITING || c->state == CONSOLE_STUCK;
}

static void lose_patience(struct console *c)
{
	if (!c->drops || uv_is_active((uv_handle_t *)&c->patience))
		return;
	uv_update_time(c->patience.loop);
	(void)uv_timer_start(&c->patience, on_patience, c->late ? 0 : PATIENCE_MS, 0);
}

static bool has_poll(const struct console *c)
{
	return c->kind == CONSOLE_POLLED || c->kind == CONSOLE_SOCKET || c->kind == CONSOLE_JOURNAL;
}

static void console_goto(struct console *c, enum console_state next)
{
	c->state = sm_go(&console_life, c->state, next);
	switch (next) {
	case CONSOLE_WAITING:
		if (has_poll(c))
			(void)uv_poll_start(&c->poll, UV_READABLE, on_writable); /* can't fail */
		lose_patience(c);
		break;
	case CONSOLE_WRITING:
	case CONSOLE_BROKEN:
		if (has_poll(c))
			(void)uv_poll_stop(&c->poll);
		if (c->kind != CONSOLE_REMOTE) /* which is late until it has taken all */
			(void)uv_timer_stop(&c->patience);
		break;
	case CONSOLE_STUCK:
	case CONSOLE_STATES:
		break;
	}
}

static bool is_writable(const struct console *c, int within_ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLOUT };

	return c->kind != CONSOLE_REMOTE && poll(&p, 1, within_ms) > 0;
}

static void on_patience(uv_timer_t *t)
{
	struct console *c = t->data;

	c->late = c->kind == CONSOLE_REMOTE;
	if (c->state != CONSOLE_WAITING)
		return;
	if (is_writable(c, 0)) /* it was this thread that did not look, for a disk; now it will */
		return;
	console_goto(c, CONSOLE_STUCK);
	for (struct source *s = c->first; s; s = s->next)
		if (s->overflow)
			s->overflow(s);
}

static void add_out(struct console *c, const char *at, size_t len)
{
	memcpy(c->out.at + c->out.len, at, len);
	c->out.len += len;
}

/* A line that had no end gets one, where something follows; its room was kept. */
static void begin_put(struct console *c)
{
	c->before = c->out.len;
	c->lent = c->unended;
	c->unended = false;
	if (c->lent)
		add_out(c, "\n", 1);
}

/* Nothing has followed: the end is taken back. */
static void end_put(struct console *c)
{
	if (c->lent && c->out.len == c->before + 1) {
		c->out.len--;
		c->unended = true;
	}
	c->lent = false;
}

struct outbuf *console_room(struct console *c, const struct source *s)
{
	if (c->owner ? c->owner != s : c->first != NULL || c->words.len > 0)
		return NULL;
	if (c->done > 0)
		return NULL;
	begin_put(c);
	return &c->out;
}

void console_put_last(struct console *c, size_t before)
{
	if (c->out.len == before || c->write) /* there others follow, or it is needed */
		return;
	c->out.len--;
	c->unended = true;
}

static void watch_silence(struct console *c)
{
	if (!c->owner)
		(void)uv_timer_stop(&c->silence);
	else if (has_others(c) && !uv_is_active((uv_handle_t *)&c->silence))
		(void)uv_timer_start(&c->silence, on_silence, SILENCE_MS, 0);
}

void console_put(struct console *c, struct source *s)
{
	end_put(c);
	c->shown += c->owner == s;
	if (*s->open)
		c->owner = s;
	else if (c->owner == s) /* else it has only dropped something, in another's line */
		c->owner = NULL;
	watch_silence(c);
}

void console_queue(struct console *c, struct source *s)
{
	if (s->queued)
		return;
	s->queued = true;
	s->next = NULL;
	if (c->first)
		c->last->next = s;
	else
		c->first = s;
	c->last = s;
	watch_silence(c);
}

static void unqueue(struct console *c, struct source *s)
{
	struct source **at = &c->first, *before = NULL;

	for (; *at && *at != s; at = &(*at)->next)
		before = *at;
	*at = s->next;
	if (c->last == s)
		c->last = before;
	s->queued = false;
	s->next = NULL;
}

void console_say(struct console *c, const char *at, size_t len)
{
	if (c->state == CONSOLE_BROKEN)
		return;
	if (!c->owner && c->words.len == 0 && len + 1 <= c->out.room - c->out.len) {
		begin_put(c);
		add_out(c, at, len);
		end_put(c);
	} else if (c->words.len + len <= WORDS_MAX) {
		text_add_bytes(&c->words, at, len);
		watch_silence(c);
	} else {
		c->unsaid += len;
	}
}

/* Words that waited, whole lines of them. */
static void put_words(struct console *c)
{
	size_t room, len = c->words.len;
	char lost[96];

	begin_put(c);
	room = c->out.room - c->out.len;
	if (len > room) {
		const char *end = memrchr(c->words.at, '\n', room);

		len = end ? (size_t)(end - c->words.at) + 1 : room;
	}
	add_out(c, c->words.at, len);
	end_put(c);
	text_drop(&c->words, len);
	if (c->words.len > 0)
		return;
	text_done(&c->words);
	if (c->unsaid > 0) {
		int n = snprintf(lost, sizeof lost,
			"launchd: warning: %zu bytes of launchd's own messages were dropped: the reader is too slow\n",
			c->unsaid);

		c->unsaid = 0;
		console_say(c, lost, (size_t)n);
	}
}

/* Another user's pipe, which can't be opened again, and which another process has made
 * non-blocking: no event tells when it has room. */
static bool waited(const struct console *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLOUT };

	return c->kind == CONSOLE_FILE && (poll(&p, 1, -1) > 0 || errno == EINTR);
}

static ssize_t write_some(const struct console *c)
{
	const char *at = c->out.at + c->done;
	size_t len = c->out.len - c->done;
	ssize_t n;

	if (c->write)
		return c->write(c, at, len);
	do
		n = c->kind == CONSOLE_SOCKET ? send(c->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL) :
						write(c->fd, at, len);
	while (n < 0 && (errno == EINTR || (errno == EAGAIN && waited(c))));
	return n;
}

static void on_writable(uv_poll_t *p, int status, int events)
{
	struct console *c = p->data;

	(void)status, (void)events;
	console_goto(c, CONSOLE_WRITING);
	(void)console_flush(c);
}

void console_writable(struct console *c, bool all)
{
	if (all) {
		c->late = false;
		(void)uv_timer_stop(&c->patience);
	}
	if (!console_is_waiting(c))
		return;
	console_goto(c, CONSOLE_WRITING);
	(void)console_flush(c);
}

void console_localize(struct console *c, bool drops)
{
	c->drops = drops;
	if (!drops) /* it would get stuck, for good */
		(void)uv_timer_stop(&c->patience);
	if (c->state == CONSOLE_STUCK)
		console_goto(c, CONSOLE_WAITING);
}

/* The reader has gone: the job goes on, and so do the files. On a full disk what has no room is
 * lost, which is said, and what comes later may have some. */
static void give_up(struct console *c)
{
	bool first = c->missing == 0;
	bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;

	c->error = errno;
	if (full)
		c->missing += c->out.len - c->done;
	else
		console_goto(c, CONSOLE_BROKEN);
	c->unended = false; /* what has room again is no part of this line: see put_missing() */
	c->out.len = c->done = 0;
	text_done(&c->words);
	if (full && first && c->on_missing)
		c->on_missing(c);
}

/* What is missing is said where it is missing, before what follows. False: there is no room yet. */
static bool put_missing(struct console *c)
{
	char note[160];
	ssize_t put;
	int n = snprintf(note, sizeof note, "%s[launchd: %llu bytes are missing here: %s]\n",
		c->mid_line ? "\n" : "", (unsigned long long)c->missing, strerror(c->error));

	put = c->write ? c->write(c, note, (size_t)n) : write(c->fd, note, (size_t)n);
	if (put > 0)
		c->mid_line = note[put - 1] != '\n';
	if (put != n)
		return false;
	c->missing = 0;
	return true;
}

static void count(struct console *c, size_t len)
{
	c->mid_line = c->out.at[c->done + len - 1] != '\n';
	shown_add(c->ends, c->out.at + c->done, len);
	c->done += len;
	c->written += len;
	c->taken_ns = uv_hrtime();
}

bool console_wait(struct console *c)
{
	enum { MOMENT_MS = 2 };
	const uint64_t lately_ns = 10000000;

	if (!console_is_waiting(c))
		return true;
	if (uv_hrtime() - c->taken_ns > lately_ns || !is_writable(c, MOMENT_MS))
		return false;
	console_goto(c, CONSOLE_WRITING);
	return true;
}

/* Whether out is empty now. */
static bool write_out(struct console *c)
{
	while (c->done < c->out.len && c->state != CONSOLE_BROKEN) {
		ssize_t n;

		if (console_is_waiting(c))
			return false;
		if (c->missing > 0 && c->done == 0 && !put_missing(c)) {
			c->missing += c->out.len;
			c->unended = false;
			break;
		}
		n = write_some(c);
		if (n < 0 && errno == EAGAIN) {
			console_goto(c, CONSOLE_WAITING);
			return false;
		}
		if (n < 0)
			give_up(c);
		else
			count(c, (size_t)n);
	}
	c->out.len = c->done = 0;
	return true;
}

void console_abandon(struct console *c)
{
	if (c->state != CONSOLE_BROKEN)
		console_goto(c, CONSOLE_BROKEN);
	while (console_flush(c))
		;
}

bool console_flush(struct console *c)
{
	for (int turn = 0; turn < TURNS; turn++) {
		struct source *s;

		if (!write_out(c))
			return false;
		if (!c->owner && c->words.len > 0) {
			put_words(c);
			continue;
		}
		s = c->owner ? (c->owner->queued ? c->owner : NULL) : c->first;
		if (!s) {
			watch_silence(c);
			return false;
		}
		unqueue(c, s);
		begin_put(c);
		if (s->pull(s, &c->out))
			console_queue(c, s);
		console_put(c, s);
	}
	return true;
}

bool console_is_idle(const struct console *c)
{
	return c->out.len == 0 && !c->first && c->words.len == 0;
}

/* A file of our own for the same pipe or terminal: what is non-blocking there stays blocking for
 * mpirun, the shell and the workers that have it, too. */
static int open_again(int fd)
{
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static enum console_kind kind_of(int fd, int *ret_again)
{
	char path[PATH_MAX];
	struct stat st;

	/* what is far is not asked what it is */
	if (file_is_far(fd, path) || fstat(fd, &st) < 0)
		return CONSOLE_FILE;
	if (S_ISSOCK(st.st_mode))
		return CONSOLE_SOCKET;
	if (S_ISFIFO(st.st_mode) || isatty(fd)) {
		*ret_again = open_again(fd);
		if (S_ISFIFO(st.st_mode) && fcntl(fd, F_GETPIPE_SZ) < PIPE_BYTES)
			(void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES); /* we may not have so much */
		/* another user's terminal (su): then it may make us wait */
		return *ret_again < 0 ? CONSOLE_FILE : CONSOLE_POLLED;
	}
	return CONSOLE_FILE;
}

/* What all kinds have. */
static int begin_open(struct console *c, uv_loop_t *loop)
{
	c->out = (struct outbuf){ .at = malloc(OUT_ROOM), .room = OUT_ROOM };
	(void)uv_timer_init(loop, &c->silence); /* can't fail */
	(void)uv_timer_init(loop, &c->patience);
	c->silence.data = c->patience.data = c;
	return c->out.at ? 0 : -ENOMEM;
}

int console_open_remote(struct console *c, uv_loop_t *loop,
	ssize_t (*write)(const struct console *c, const char *at, size_t len), void *owner)
{
	*c = (struct console){ .fd = -1,
		.epoll = -1,
		.kind = CONSOLE_REMOTE,
		.drops = true,
		.write = write,
		.owner_of_write = owner };
	return begin_open(c, loop);
}

int console_watch(struct console *c, int fd)
{
	struct epoll_event writable = { .events = EPOLLOUT };

	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &writable) < 0)
		return -errno;
	c->fd = fd;
	return 0;
}

static int open_poll(struct console *c, uv_loop_t *loop)
{
	int rc;

	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	rc = c->epoll < 0 ? -errno : uv_poll_init(loop, &c->poll, c->epoll);
	c->poll.data = c;
	return rc;
}

int console_open_journal(struct console *c, uv_loop_t *loop,
	ssize_t (*write)(const struct console *c, const char *at, size_t len), void *owner)
{
	int rc;

	*c = (struct console){ .fd = -1,
		.epoll = -1,
		.kind = CONSOLE_JOURNAL,
		.write = write,
		.owner_of_write = owner };
	rc = begin_open(c, loop);
	return rc < 0 ? rc : open_poll(c, loop);
}

int console_open(struct console *c, uv_loop_t *loop, int fd)
{
	int again = -1, rc;

	*c = (struct console){ .fd = fd, .epoll = -1 };
	c->kind = kind_of(fd, &again);
	if (c->kind == CONSOLE_POLLED)
		c->fd = again;
	rc = begin_open(c, loop);
	if (rc < 0 || !has_poll(c))
		return rc;
	rc = open_poll(c, loop);
	return rc < 0 ? rc : console_watch(c, c->fd);
}

void console_done(struct console *c)
{
	fd_closep(&c->epoll);
	if (c->kind == CONSOLE_POLLED)
		fd_closep(&c->fd);
	free(c->out.at);
	c->out = (struct outbuf){ 0 };
	text_done(&c->words);
}
