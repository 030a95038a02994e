/* console.h - launchd's own stdout or stderr, shared by all workers' streams and its own words.
 *
 * It never makes the output thread wait for a reader: a pipe, a terminal or a socket takes what it
 * can, and who has more to show waits in a queue for its turn. (A file on a disk may make it wait,
 * which is what this thread is for.) While a source has a line open, because it is too long to be
 * held, nobody else writes. */
#ifndef LAUNCHD_DAEMON_OUTPUT_CONSOLE_CONSOLE_H
#define LAUNCHD_DAEMON_OUTPUT_CONSOLE_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "common/text.h"
#include "daemon/output/console/lines.h"

struct console_end;

/* Who has something to show. */
struct source {
	struct source *next;
	bool queued;
	const bool *open; /* its line has begun on the console, and has not ended */
	/* Puts what fits into out, and says whether there is more. */
	bool (*pull)(struct source *s, struct outbuf *out);
	/* Drops what it keeps for a reader that has taken nothing for a while; NULL: it keeps it.
	 */
	void (*overflow)(struct source *s);
	/* Ends the open line, whose stream is silent. */
	void (*cut)(struct source *s, struct outbuf *out);
};

enum console_kind {
	CONSOLE_FILE,    /* written as it is: a disk's file, a null device */
	CONSOLE_POLLED,  /* a pipe or a terminal, opened again for ourselves as non-blocking */
	CONSOLE_SOCKET,  /* MSG_DONTWAIT */
	CONSOLE_REMOTE,  /* another node's, by the owner's write() */
	CONSOLE_JOURNAL, /* records for systemd's, likewise; a datagram socket tells of room */
};

enum console_state {
	CONSOLE_WRITING, /* its reader takes what there is */
	CONSOLE_WAITING, /* for its reader, which has no room */
	CONSOLE_STUCK,   /* for a while already, with `drops` */
	CONSOLE_BROKEN,  /* its reader is gone or given up: all is thrown away */
	CONSOLE_STATES
};

struct sm;
extern const struct sm console_life;

struct console {
	enum console_state state;
	int fd; /* ours for CONSOLE_POLLED, else the standard stream's number */
	enum console_kind kind;
	int epoll; /* uv_poll_init() would make the socket non-blocking for its other users */
	uv_poll_t poll;
	uv_timer_t silence;  /* runs while others wait for the end of an open line */
	uv_timer_t patience; /* with `drops`: runs while the reader takes nothing */
	bool drops;       /* sources are told to drop, when the reader takes nothing for a while */
	bool late;        /* CONSOLE_REMOTE: it was waited for, and has not taken all since */
	uint64_t missing; /* bytes that a full disk has not taken */
	int error;        /* why, errno */
	/* Bytes are missing, for the first time since all was written; may be NULL. */
	void (*on_missing)(struct console *c);
	struct outbuf out;
	size_t done;              /* of out, written already */
	uint64_t written;         /* in all */
	struct console_end *ends; /* the last bytes written; NULL: not kept */
	uint64_t taken_ns;        /* when the reader took something last */
	bool mid_line;            /* and its last line has no end */
	bool unended;  /* the last line has no end: what follows must give it one, if anything does
			*/
	bool lent;     /* it was given one, in case */
	size_t before; /* out's length before that */
	struct source *first, *last, *owner;
	size_t shown;      /* by the owner, since the timer looked */
	struct text words; /* launchd's own, that found no room in out */
	size_t unsaid;     /* bytes of such words, that found no room here either */
	/* CONSOLE_REMOTE and JOURNAL: as write(2); after EAGAIN, console_writable() is called */
	ssize_t (*write)(const struct console *c, const char *at, size_t len);
	void *owner_of_write;
};

/* Takes the standard stream fd of this process. -ENOMEM or an error of the loop: then too the loop
 * may have handles, and console_done() is to be called. */
int console_open(struct console *c, uv_loop_t *loop, int fd);

/* One that hands what it takes to its owner's write(). No worker of ours is to wait for another
 * node: until all is taken again sources are told to drop once the reader was waited for a while,
 * be it in pieces. On failure as above: -ENOMEM. */
int console_open_remote(struct console *c, uv_loop_t *loop,
	ssize_t (*write)(const struct console *c, const char *at, size_t len), void *owner);

/* One whose bytes are records, see common/journal_entry.h: all lines have an end. Nothing tells of
 * room before console_watch(). On failure as above. */
int console_open_journal(struct console *c, uv_loop_t *loop,
	ssize_t (*write)(const struct console *c, const char *at, size_t len), void *owner);

/* From now on this socket tells of room; it stays the caller's. Negative errno: it does not. */
int console_watch(struct console *c, int fd);

/* It takes bytes again; all: it has taken all. */
void console_writable(struct console *c, bool all);

/* Its reader is waited for as this node's own are; drops: as above. */
void console_localize(struct console *c, bool drops);

/* Where to put what a source has, now; NULL: it is to be queued. console_put() after it in any
 * case. */
struct outbuf *console_room(struct console *c, const struct source *s);

/* What this source put last is a stream's last line: if it had no '\n', it gets none, unless
 * something follows it here. `before` is out's length before it was put. */
void console_put_last(struct console *c, size_t before);

/* Something was put: by this source, whose `open` is as it is now. */
void console_put(struct console *c, struct source *s);

/* Its turn comes, from console_flush(). Once is enough. */
void console_queue(struct console *c, struct source *s);

/* Waiting or stuck. */
bool console_is_waiting(const struct console *c);

/* Its reader is waited for no longer. */
void console_abandon(struct console *c);

/* Whole lines of launchd's own. */
void console_say(struct console *c, const char *at, size_t len);

/* Waits a moment for a reader that is only a little late, if it waits for one: to fall behind costs
 * more. False: it is more than that. */
bool console_wait(struct console *c);

/* Writes what the reader takes, and lets the queue have its turns; returns when either has an end,
 * or after a while: true, there is more to do at once. */
bool console_flush(struct console *c);

/* Nothing waits here. */
bool console_is_idle(const struct console *c);

/* Frees it when the loop's owner has closed all that the loop has. */
void console_done(struct console *c);

#endif
