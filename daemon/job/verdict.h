/* verdict.h - which worker of the job failed first. Pure.
 *
 * Deaths are ordered by their own times, which are known up to the error of each node's clock.
 * What launchd ended is a consequence, and so is what died of a lost peer: SIGABRT (NCCL's
 * watchdog), an error file or last lines that tell of a reset connection. Where workers have only
 * timed out waiting for another one, that one is the cause, or nobody (absent.h). A lost node
 * counts as a death at the time when it was last heard. */
#ifndef LAUNCHD_DAEMON_JOB_VERDICT_H
#define LAUNCHD_DAEMON_JOB_VERDICT_H

#include "daemon/job/ending.h"

/* Sets unsure and cause of a result whose outcomes (with times on one clock) and nodes are
 * there. asked: why the job was stopped where somebody asked for it (CAUSE_NONE: nobody did);
 * lost: the first node that was lost (CAUSE_NONE: none). */
void verdict_find(struct result *r, const struct cause *asked, const struct cause *lost);

enum { VERDICT_TEXT_SIZE = 512 };

/* What every launcher ends with. */
struct verdict {
	int exit_code;
	bool well; /* every worker of the job ended with 0 */
	unsigned attempt;
	struct cause cause;           /* of which the text is */
	bool unsure;                  /* as a result has it */
	char text[VERDICT_TEXT_SIZE]; /* the line of the nodes that don't print the whole report */
};

/* The verdict that a job's result comes to: "root cause: rank 3 (local rank 1, pid 4711) on gpu07
 * (node 1): exit code 1". */
void verdict_make(const struct result *r, struct verdict *ret);

/* Whose words these are. */
struct speaker {
	unsigned rank;
	const char *master_port; /* where rank 0 hosts the store; NULL: launchd does */
};

struct arena;
struct error_record;

/* Of a script that starts ranks of its own (--node-env), whose words are all in its lines: finds
 * the exception that one of them died of, before those by which others say that they had lost it.
 * False: there is none. *ret is the arena's. */
bool blames_find_own(const char *lines, struct arena *arena, struct error_record *ret);

/* What the words of an error file say (message and traceback; either may be NULL). by: may be NULL;
 * else *ret has the rest of BLAMES_A_WAIT. */
enum blames blames_of(
	const char *message, const char *traceback, const struct speaker *by, struct waited *ret);

/* What a failed worker's last lines say (NULL: not known). Unlike an error file they need not tell
 * of its end: only an exception that nothing but a few lines follow counts, torch's, NCCL's and
 * gloo's own words about a peer, and an end that goes with them: neither SIGSEGV nor SIGKILL does.
 */
enum blames blames_of_lines(
	const struct ending *end, const char *lines, const struct speaker *by, struct waited *ret);

#endif
