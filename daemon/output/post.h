/* post.h - what front.c, the main thread's side, and back.c, the output thread's, share,
 * and nobody else. */
#ifndef LAUNCHD_DAEMON_OUTPUT_POST_H
#define LAUNCHD_DAEMON_OUTPUT_POST_H

#include <uv.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/output/front.h"
#include "daemon/output/logs.h"
#include "daemon/output/merge.h"
#include "daemon/output/status.h"

/* What the thread is to do; of several at once in this order. */
enum post_order {
	ORDER_NONE = 0,
	ORDER_START = 1,
	ORDER_DRAIN = 2,
	ORDER_PREPARE = 4,
	ORDER_REOPEN = 8,
	ORDER_STATUS = 16,
	ORDER_CLOSE = 32,
	ORDER_SEND = 64,
	ORDER_HEAR = 128,
	ORDER_ADOPT = 256, /* before all others */
};

struct output {
	/* both threads', under the lock */
	uv_mutex_t lock;
	uv_cond_t gate; /* see output_start() */
	uv_cond_t ended;
	const struct plan *next_plan; /* ORDER_PREPARE */
	struct text words, events;    /* launchd's own, for stderr; of --events */
	size_t unsaid, untold;        /* bytes of them that found no room */
	int requests;                 /* of signalfd(2): for a hurry, while it closes; -1 */
	struct logs *fresh;           /* ORDER_ADOPT: made by the main thread */
	struct logs *collected; /* has no more to be drained, and is told when that is asked for */
	struct logs *prepared;
	struct failure prepared_why;
	int prepared_rc;
	unsigned orders, next_attempt; /* the latter: ORDER_PREPARE */
	unsigned asked, answered;      /* at the end: whether the thread is stuck in a disk */
	char status_text[80];          /* ORDER_STATUS; "": none yet */
	bool at_gate, started;         /* the thread waits there until it is started */
	bool attached, over, status_ended;
	bool hurry; /* ORDER_CLOSE: no reader is waited for that takes nothing */
	/* events that the main loop has yet to hear */
	bool told_prepared, told_drained, told_status, told_lines;

	/* the main thread's */
	bool draining; /* what that came to has not been told yet */
	uv_thread_t thread;
	uv_async_t to_main;
	const struct output_events *on;
	void *owner;
	struct logs *now; /* the attempt that it starts, or has started */

	/* the output thread's */
	uv_loop_t loop;
	uv_async_t to_thread;
	uv_check_t turn;
	uv_idle_t again; /* runs while a console has more to show at once */
	uv_timer_t drain;
	uv_timer_t events_again; /* runs while lines of --events wait for a reader */
	struct output_host host;
	struct console consoles[2];
	struct console *console_of[2]; /* stdout and stderr may be one */
	struct console *console_of_workers[2];
	int events_fd; /* of --events; -1: none, or a file */
	struct filer filer;
	struct busy busy;
	struct stream_host shared; /* by all streams */
	struct merge merge;        /* its parts say whose they are */
	struct status status;
	struct logs *logs; /* all attempts that are not done, the youngest first */
	struct arena memory;
	const char *run_dir; /* NULL: not made, or none */
	long nap_ns;         /* between two turns: see gather() */
	uint64_t written;    /* by the consoles, when somebody looked last */
	uv_poll_t request;   /* of `requests` */
	bool has_loop, has_async, has_status, has_request, closing, hurrying, requested;
};

/* Gives the thread an order, or only wakes it. */
void output_order(struct output *o, enum post_order what);

/* The main loop is to hear of lines: see output_events. With the lock held. */
void output_tell_lines(struct output *o);

/* Makes the thread's loop with all that is in it; on failure writer_close() and the loop's end are
 * the caller's all the same. */
int writer_open(struct output *o);

/* Closes the handles. */
void writer_close(struct output *o);

/* ORDER_CLOSE: it ends when all is written, or the reader's time is over. */
void writer_end(struct output *o, bool hurry);

/* No stream has more for a console, nor for its file. */
bool writer_has_written(const struct output *o);

/* And nothing is in the post: all is where it goes to. */
bool writer_has_all(struct output *o);

/* The console that --events fd:1 or fd:2 are: their lines stand between those of workers. NULL:
 * they go elsewhere. */
struct console *writer_events_console(const struct output *o);

/* For the thread's own files: what it has to say. owner: the struct output. */
void writer_say(void *owner, bool warning, const char *text);

/* Opens an attempt's files, and tells; the attempts before it are in nobody's hands any more. */
void writer_prepare(struct output *o, const struct plan *plan, unsigned attempt);

/* The same at once, from the main thread; false: files are wanted, which may make it wait. */
bool writer_prepare_at_once(struct output *o, const struct plan *plan, unsigned attempt);
void writer_adopt(struct output *o);

/* Its workers have been started. */
void writer_start(struct output *o);

/* Reads what its workers have left in their pipes, and tells. */
void writer_drain(struct output *o);

/* The main thread has no more to do with any attempt. */
void writer_let_go(struct output *o);

/* The thread: from output_start() on obeys orders until ORDER_CLOSE, and until all is written. */
void writer_main(void *arg);

#endif
