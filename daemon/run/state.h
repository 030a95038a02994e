/* state.h - a run and its state, which the files of this room share. */
#ifndef LAUNCHD_DAEMON_RUN_STATE_H
#define LAUNCHD_DAEMON_RUN_STATE_H

#include <uv.h>

#include "daemon/cluster/member.h"
#include "daemon/plan/plan.h"
#include "daemon/run/black_box.h"
#include "daemon/run/gpu_watch.h"
#include "daemon/run/hang_watch.h"
#include "daemon/run/input.h"
#include "daemon/run/preempt_watch.h"
#include "daemon/run/post_attempt.h"
#include "daemon/run/preflight.h"
#include "daemon/run/space_look.h"
#include "daemon/run/watch/progress.h"
#include "daemon/run/watch/steps.h"
#include "daemon/workers/evidence_reader.h"
#include "daemon/workers/lifeline.h"
#include "daemon/workers/pool.h"
#include "daemon/workers/signals.h"

struct answers;
struct failure;
struct run_end;
struct sm;

enum run_state {
	RUN_MEETING,
	RUN_OPENING,  /* an attempt's log files are being opened */
	RUN_CHECKING, /* all nodes are: --preflight */
	RUN_WORKING,  /* an attempt's workers run, or what they left behind */
	RUN_DRAINING, /* they have ended: what they wrote is read to its end */
	RUN_WAITING,  /* ours have ended: for the others, for the next attempt */
	RUN_OVER,
	RUN_STATES,
};

/* --merge-logs, once the first attempt has started. */
enum run_merge {
	MERGE_NONE,
	MERGE_SENDS, /* this node's lines go to node rank 0 */
	MERGE_HEARS, /* it is node rank 0 */
};

struct run {
	const struct run_input *in;
	const struct plan *plan;
	const char *run_dir;
	struct failure run_dir_note; /* why it is not in TMPDIR, until that is said */
	struct run_end *end;
	struct failure *why;
	int rc; /* negative: there was no job */
	enum run_state state;
	uv_loop_t loop;
	struct member member;
	bool shared; /* other nodes end with the same code as this one */

	/* stop_request.c */
	struct signals signals;
	struct lifeline lifeline;
	uv_timer_t max_runtime;
	uv_timer_t doubt; /* runs while it isn't known who sent this one: */
	struct relayed doubted;
	unsigned asked_to_end[WAYS]; /* how often, by each way */
	struct preempt_watch preempt_watch;

	/* attempt.c */
	struct attempt attempt;
	unsigned master_port;
	struct preflight preflight; /* in CHECKING */
	struct space_look spaces;   /* where restarts are checked */
	struct gpu_watch gpu_watch; /* from the first check on, where restarts are checked */
	uv_timer_t starting; /* in OPENING for log files; then, or in CHECKING, for the watch's
				levels */
	uint64_t levels_until_ms;
	struct pool pool;
	struct progress progress; /* in WORKING */
	struct hang_watch hang;   /* in WORKING, with --on-hang */
	struct steps steps;       /* in WORKING, with --progress */
	uv_timer_t draining;      /* in DRAINING */
	struct cause known;       /* why it ends, as far as this node knows; NONE: it goes on */
	uint64_t preempted_ns;    /* when a node of the job is taken away, roughly; 0: none is */
	enum urgency urgency;     /* of the stop that workers have had */
	struct black_box box;     /* with --blackbox */
	struct post_attempt post; /* in DRAINING, with --post-attempt */
	bool *unjoined; /* by worker: had no connection to the store at the end; NULL: no memory */
	bool collected; /* in DRAINING: what the failed ones say is known */
	struct evidence said[EVIDENCE_MAX];
	size_t said_count;
	struct outcome *outcomes; /* made before the first worker; copied from the pool's */

	struct answers *answers; /* to whom asks by the control socket */

	/* run_merge.c */
	enum run_merge merge;
	uv_timer_t merging; /* until the member is closed */
};

/* Of enum run_state. */
extern const struct sm run_life;

/* Also stops what the new state doesn't own. */
void run_goto(struct run *r, enum run_state next);

#endif
