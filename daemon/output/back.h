/* back.h - the output thread: reads workers' pipes, writes their log files, and this node's
 * console. What it is to do, and what it has to tell, goes by post.h. */
#ifndef LAUNCHD_DAEMON_OUTPUT_BACK_H
#define LAUNCHD_DAEMON_OUTPUT_BACK_H

#include <stdbool.h>

#include "daemon/output/tally.h"

struct back;
struct failure;
struct logs;
struct merge;
struct output_host;
struct plan;
struct text;
struct post;
struct sm;
struct step_lines;

/* Once it ends, no reader is waited for that takes nothing within a second (hurried), or no reader
 * at all for longer than that, as the user has asked once more (pressed). */
enum back_state { BACK_RUNNING, BACK_ENDING, BACK_HURRIED, BACK_PRESSED, BACK_CLOSED, BACK_STATES };

extern const struct sm back_life;

/* Makes all but the loop. What the host points to is borrowed. -ENOMEM: nothing is left. */
int back_new(const struct plan *plan, const struct output_host *host, struct post *post,
	struct back **ret);

/* Makes the thread's loop with all that is in it, and opens the post; the consoles are this
 * process's stdout and stderr. Once open it stays so: 0. Negative errno: nothing is left, and it
 * may be tried again. */
int back_open(struct back *b);

/* The thread, or at the end, where there can be none, its work: obeys orders until ORDER_CLOSE, and
 * until all is written. */
void back_main(void *arg);

/* Opens an attempt's files. Also for the main thread, where neither files nor --merge-logs are
 * wanted: then nothing makes it wait, and nothing of the thread's is written to. */
int back_make_logs(struct back *b, const struct plan *plan, unsigned attempt, struct logs **ret,
	struct failure *why);

/* What workers have written so far; for any thread. */
struct output_counts back_counts(const struct back *b);

/* When the thread has ended: adds what stands last on stderr. */
void back_shown(const struct back *b, struct text *out);

/* --progress REGEX; NULL: that is not wanted. */
struct step_lines *back_steps(const struct back *b);

/* --merge-logs. */
struct merge *back_merge(const struct back *b);

/* When the thread has ended: gives the last line of --events' console its end, as another event
 * follows. Returns whether stderr's last line has none. */
bool back_end_lines(struct back *b);

/* Frees; the thread has ended, or there was none. NULL is allowed. */
void back_free(struct back *b);

#endif
