/* steps.h - --progress: the steps that this node's workers come to. A timer looks once a second for
 * what lines and files have told, and tells node rank 0 of what is new; without --progress there is
 * nothing of it, in the loop or elsewhere. */
#ifndef LAUNCHD_DAEMON_RUN_WATCH_STEPS_H
#define LAUNCHD_DAEMON_RUN_WATCH_STEPS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/run/watch/step_file.h"
#include "daemon/run/watch/step_socket.h"

struct bus;
struct failure;
struct member;
struct output;
struct plan;

struct steps {
	/* the owner's, before it enters; all are borrowed */
	const struct bus *bus;
	struct output *output;
	struct member *member;
	char **argv;             /* as struct helper has it */
	const struct plan *plan; /* before it starts */

	/* to be read */
	bool wanted;     /* --progress is given */
	bool known;      /* this attempt's workers have come to one, on this node: */
	uint64_t newest; /* the highest */
	uint64_t at_ns;  /* when they did */
	uint64_t signs;  /* of life: grows with each, also where the step is not new */

	/* private */
	uv_timer_t tick;
	bool works, told, numbered;
	unsigned attempt;
	uint64_t told_step;
	uint64_t counted;        /* of what has no numbers, over all attempts */
	uint64_t lines, changes; /* that were seen, of this attempt */
	struct step_file file;
	struct step_socket socket;
	/* on node rank 0, of the job: what --events was told */
	bool job_known, job_told;
	uint64_t job_step, job_at_ns, job_told_ns;
};

/* Into the loop; run_dir is where workers find the socket of --progress notify; NULL: they find
 * none. On failure why is set. steps_leave() in any case. */
int steps_enter(struct steps *s, uv_loop_t *loop, const char *run_dir, struct failure *why);

/* An attempt begins, maybe with another run_dir: the socket is in it. On failure, as before. */
int steps_listen(struct steps *s, const char *run_dir, struct failure *why);
void steps_leave(struct steps *s);

/* The workers of an attempt run. They have ended, and what they wrote is read: what they came to
 * last is told, before member_ended(). Nothing without --progress. */
void steps_start(struct steps *s, unsigned attempt);
void steps_stop(struct steps *s);

/* On node rank 0: the job has come to a step that is new to this attempt, at that time. */
void steps_of_job(struct steps *s, uint64_t step, uint64_t at_ns);

#endif
