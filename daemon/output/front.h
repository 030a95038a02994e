/* front.h - the thread that writes: workers' output, log files, and launchd's own messages.
 *
 * The event loop waits for nothing: what may wait for a disk or a reader is done by a thread of its
 * own, which the loop gives orders to and hears of by events. Functions are the main thread's. */
#ifndef LAUNCHD_DAEMON_OUTPUT_FRONT_H
#define LAUNCHD_DAEMON_OUTPUT_FRONT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "daemon/job/evidence.h"
#include "daemon/output/host.h"
#include "daemon/output/step_lines.h"
#include "daemon/output/tally.h"
#include "daemon/plan/plan.h"

struct failure;
struct followed_lines;
struct merge;
struct output;
struct tails;

struct output_events {
	/* The files of an attempt are there, or are not, which why says. */
	void (*prepared)(void *owner, const struct failure *why);
	/* All that its workers wrote is read: see output_words(). */
	void (*drained)(void *owner);
	/* The terminal is written to by others: no status line any more. */
	void (*status_over)(void *owner);
	/* The answer to output_ask_tails(), borrowed for the call; NULL: there is no memory. */
	void (*tails)(void *owner, const struct tails *t);
	/* While output_follow() is on: lines that workers write, borrowed for the call. */
	void (*followed)(void *owner, const struct followed_lines *f);
	/* --merge-logs: see merge_next(), merge_is_over() and merge_taken(). */
	void (*lines)(void *owner);
};

/* The thread is not there yet: it is started when there is something for it to do. What the host
 * points to, and the plan's output, are borrowed until output_close(). -ENOMEM. */
int output_open(const struct plan *plan, const struct output_host *host, struct output **ret,
	struct failure *why);

/* From now on the thread may be started. Before it holds no lock, the allocator's included, so the
 * process may fork a child that allocates: pmix_start(). */
void output_start(struct output *o);

/* --merge-logs: of which merge/merge.h tells what the event loop does. */
struct merge *output_merge(const struct output *o);

/* Tells events to this loop, until output_detach(), also after a failure; the loop then has handles
 * to close. */
int output_attach(struct output *o, uv_loop_t *loop, const struct output_events *on, void *owner,
	struct failure *why);
void output_detach(struct output *o);

/* An attempt, whose plan is borrowed until output_close(): its files are opened, `prepared`
 * follows. */
void output_prepare(struct output *o, const struct plan *plan, unsigned attempt);

/* The directory of the prepared attempt's log files; NULL: there is none. */
const char *output_log_dir(const struct output *o);

/* What to start the i-th worker's stdout (1) or stderr (2) with, and the end of the pipe that
 * STDIO_PIPE then has, which is taken over; pid is the worker's. */
struct stdio output_stdio(const struct output *o, unsigned i, int fd);
void output_take(struct output *o, unsigned i, int fd, int pipe, pid_t pid);

/* All workers are started, or none is any more: their pipes are read. */
void output_started(struct output *o);

/* For how long to wait for the answer to output_prepare(), and that it was not given: a disk hangs,
 * and is given less time from then on. */
uint64_t output_patience_ms(const struct output *o);
void output_give_up(struct output *o);

/* All processes of the attempt have ended: `drained` follows within some more than a second, unless
 * a disk hangs. */
void output_drain(struct output *o);

/* The i-th worker's last words, between `drained` and the next output_prepare(). */
const struct left_words *output_words(const struct output *o, unsigned i);

/* Whole lines of launchd's own, for stderr. Also from before output_attach() to output_close(). */
void output_say(struct output *o, const char *at, size_t len);

/* Whole records for the journal, see common/journal_entry.h; where the plan has one. As above. */
void output_journal(struct output *o, const char *at, size_t len);

/* Whole lines of --events, and of --hang-trace. */
void output_events(struct output *o, const char *at, size_t len);
void output_looks(struct output *o, const char *at, size_t len);

/* The page of metrics, whole, for the host's write_page(). One that is not written yet is dropped.
 */
void output_page(struct output *o, const char *at, size_t len);

/* What workers have written so far. */
struct output_counts output_counts(const struct output *o);

/* The steps in lines of the attempt's workers: --progress REGEX; without it none is seen. Forgets
 * those that were: another attempt begins. */
struct steps_seen output_steps(const struct output *o);
void output_forget_steps(struct output *o);

/* Draws the status line, see status.h; "": from now on any write to the terminal ends it;
 * NULL: removes it, and it does not come back. */
void output_status(struct output *o, const char *text);

/* What the workers of the attempt have written last, at most so many lines of each: `tails`
 * follows, unless a disk hangs. False: nothing was written yet. */
bool output_ask_tails(struct output *o, unsigned lines);

/* Whether `followed` is called. Of lines that the event loop has not taken 256 KiB wait; workers
 * and consoles wait for none of them. */
void output_follow(struct output *o, bool on);

/* Log files were moved away: they are opened again by their names. */
void output_reopen(struct output *o);

struct closing {
	bool hurry;            /* also set when it came to it meanwhile */
	const sigset_t *asked; /* blocked signals that ask for a hurry later; NULL: none */
	bool ret_mid_line;     /* stderr's last line has no end: what follows must give it one */
	struct output_counts ret_counts; /* the last ones */
	struct text *shown;              /* gets what stands last on stderr */
};

/* Writes what is left, frees, and waits for it as long as a reader takes 4 KB within
 * patience_for_ms() of the plan's grace, or, in a hurry, as long as it takes anything within a
 * second (once that is asked for: for a second); not for a disk that hangs, for more than some
 * seconds: false, then the thread is still there. */
bool output_close(struct output *o, struct closing *c);

#endif
