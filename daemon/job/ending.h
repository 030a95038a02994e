/* ending.h - how workers and the job ended, in words and numbers. Pure. */
#ifndef LAUNCHD_DAEMON_JOB_ENDING_H
#define LAUNCHD_DAEMON_JOB_ENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct text;

enum how {
	ENDED_NONE, /* never tried to start */
	ENDED_EXIT,
	ENDED_SIGNAL,
	ENDED_UNSTARTED, /* execve(2) refused its program */
	ENDED_UNMADE,    /* it did not come to that: no memory, no process, no log file */
	ENDED_SENT, /* it sent launchd a signal that ends the job, which is its failure, however it
		     * ended itself */
};

/* One meaning for each field: never a raw wait status. */
struct ending {
	enum how how;
	int value; /* exit code | signal | errno | errno | signal */
	bool core; /* ENDED_SIGNAL: a core was dumped */
};

/* What launchd did before a worker ended. */
enum asked { ASKED_NOTHING, ASKED_TO_STOP, ASKED_KILLED };

/* Whether the kernel's OOM killer ended it. LIKELY: its cgroup's counter rose, but other
 * processes share the cgroup. CHILD: it ended by itself, but a process that it had started was
 * killed so. */
enum oom { OOM_NO, OOM_LIKELY, OOM_YES, OOM_CHILD };

/* Whose memory was used up. */
enum oom_limit {
	OOM_LIMIT_UNKNOWN,
	OOM_LIMIT_OWN,   /* the worker's own: --cgroup-memory, or one that it has set itself */
	OOM_LIMIT_ABOVE, /* of a cgroup in which launchd was started */
	OOM_LIMIT_NONE,  /* the machine's */
};

/* What a worker's error file, or what it wrote last, says of the cause. */
enum blames {
	BLAMES_NOBODY, /* there is none, or nobody can tell */
	BLAMES_ITSELF, /* an exception of its own */
	BLAMES_A_PEER, /* another worker had gone: connection reset */
	BLAMES_A_WAIT, /* another worker did not come, and it timed out waiting for it */
	BLAMES_OUTPUT, /* launchd's own output had lost its reader, and it wrote there */
};

enum { WAITED_RANKS = 8 };

/* What a worker that timed out wrote about the ranks it waited for. */
struct waited {
	bool in_store;                /* for a key of the store, or for its clients */
	bool dials;                   /* rank 0, which hosts the store, did not answer */
	bool more;                    /* it names more ranks than these */
	unsigned count;               /* of the ranks that it names; 0: none */
	unsigned ranks[WAITED_RANKS]; /* of the job, not of one of its groups */
};

/* One worker's whole story, as the report tells it. */
struct outcome {
	unsigned rank, local_rank, attempt;
	unsigned node; /* node rank */
	pid_t pid;     /* 0: never started */
	struct ending end;
	enum oom oom;
	enum oom_limit oom_limit;
	uint64_t oom_bytes; /* that limit; 0: not known */
	enum asked asked;   /* by launchd, before it ended */
	int asked_signal;   /* the first one that asked it to stop */
	/* CLOCK_MONOTONIC; 0: never. ended_ns is the same for two on a node if their order is not
	 * known. */
	uint64_t started_ns, ended_ns, asked_ns;
	uint64_t late_ns; /* it may have ended so much earlier: a node alone does not ask, 0 */
	enum blames blames;
	struct waited waited; /* BLAMES_A_WAIT */
	bool unjoined;        /* it had no connection to the store when the attempt was to stop */
	bool shm_full;        /* /dev/shm had no room left when it failed */
	unsigned left;        /* processes that it left behind */
	unsigned left_killed; /* of these, how many needed SIGKILL */
};

/* Who sent a signal, as far as the kernel tells. */
struct sender {
	pid_t pid; /* 0: not known, or the kernel itself */
	uid_t uid;
	bool kernel; /* the terminal, a limit */
	/* comm of the pid when the signal was read; "rank 3": a process of that worker; "": gone
	 * already */
	char command[16];
};

/* Why the job ended before its work was done. */
enum cause_kind {
	CAUSE_NONE,        /* it was not: every worker ended by itself with 0 */
	CAUSE_FAILURE,     /* a worker's: cause.culprit; see cause_of_failure() */
	CAUSE_SIGNAL,      /* that launchd received */
	CAUSE_MAX_RUNTIME, /* --max-runtime is over */
	CAUSE_GUARD,       /* launchd's first process, which mpirun knows, was killed */
	CAUSE_LAUNCHER,    /* what started launchd (mpirun, srun) has ended */
	CAUSE_HANGUP,    /* nobody reads launchd's stdout or stderr any more: seen under mpirun and
			  * srun; or cause.victim wrote there */
	CAUSE_NODE_LOST, /* a node's launcher has gone, or is not heard any more */
	CAUSE_RESTART,   /* somebody asked for another attempt: the job goes on */
	CAUSE_BAD_NODE,  /* --preflight found nodes bad: no worker was started */
	CAUSE_HANG,      /* --on-hang stop, restart: cause.detail names class and ranks */
	CAUSE_PREEMPTED, /* a node is about to be taken away: cause.detail says how soon */
	CAUSE_TIMEOUT,   /* workers timed out waiting for another one: cause.culprit, if it is known
			  */
};

enum { CAUSE_KINDS = CAUSE_TIMEOUT + 1 };

enum { NODE_NAME_SIZE = 65, CAUSE_DETAIL_SIZE = 192 };

struct cause {
	enum cause_kind kind;
	int signal;           /* CAUSE_SIGNAL; PREEMPTED: that announced it; NODE_LOST: of which its
			       * supervisor died, where all nodes know that; 0: not so */
	struct sender sender; /* CAUSE_SIGNAL, PREEMPTED */
	unsigned requeue_code; /* PREEMPTED: the job's exit code, --requeue-exit-code */
	/* CAUSE_FAILURE; CAUSE_TIMEOUT: the worker that the others waited for, where has_culprit is
	 * set. A copy, as it may be another node's */
	struct outcome culprit;
	/* CAUSE_TIMEOUT: the first that timed out; HANGUP: that wrote to output without a reader,
	 * ENDED_NONE where that is not why. Its exit code counts */
	struct outcome victim;
	bool has_culprit;
	uint64_t at_ns;      /* CLOCK_MONOTONIC, when launchd knew; NODE_LOST: last heard of */
	uint64_t noticed_ns; /* NODE_LOST: when its loss was seen; it was lost between the two */
	uint64_t quiet_ns;   /* HANG: for so long nothing had moved; on node rank 0 only */
	unsigned node;       /* where: the node rank */
	char host[NODE_NAME_SIZE]; /* of that node, where others than this result's nodes know it:
				    * another launcher told the cause; "": none did */
	bool contact; /* NODE_LOST: all that this node knows is that it lost contact with that one
		       */
	bool asleep;  /* NODE_LOST: it is this node, which did not run, and was missed by others */
	/* NODE_LOST: "its connection was closed", ...; BAD_NODE: what is bad of the first of them,
	 * "GPU 2: 4 uncorrectable ECC errors"; TIMEOUT: "rank 0 timed out waiting for it"; else ""
	 */
	char detail[CAUSE_DETAIL_SIZE];
	/* The hosts to leave out, "gpu07,gpu12"; it lives as long as the job does. BAD_NODE: those
	 * that are bad; FAILURE: the one where a worker failed first more than once. NULL: none */
	const char *exclude;
	/* --no-progress-restarts: so many failed attempts in a row without a new step are why the
	 * job ends; 0: they are not */
	unsigned futile;
};

/* A process that could not be ended: in the kernel (state D), or another user's. */
struct survivor {
	pid_t pid;
	uid_t uid;
	char state; /* as proc(5) has it; '?': not known */
	char command[16];
	unsigned node;
};

enum { SURVIVORS_MAX = 16 };

/* A node of the job, as the report needs it. */
struct node {
	char name[NODE_NAME_SIZE]; /* its host's; "": it never joined */
	bool lost;
	bool lost_unsure; /* perhaps before the node whose loss is the cause */
	/* times of its outcomes are brought to the clock of the node that makes the report, and may
	 * be wrong by that much */
	uint64_t clock_error_ns;
};

/* What came of a run, of an attempt: on this node, or, where node rank 0 has heard all others, in
 * the whole job. */
struct result {
	const struct outcome *outcomes; /* one for each worker, by rank; borrowed */
	size_t count;
	const unsigned *suspects; /* ranks that --on-hang saw elsewhere while others waited */
	size_t suspect_count;
	/* others failed so close to it that nobody can tell who was first: by their nodes' clocks,
	 * or on a node whose kernel gives no pidfds */
	bool unsure;
	const struct node *nodes; /* by node rank; borrowed */
	unsigned node_count;
	struct cause cause;            /* the first one counts; with the worker that failed first */
	uint64_t started_ns, ended_ns; /* CLOCK_MONOTONIC: of the first start, of the last end */
	int64_t started_wall_ns;       /* CLOCK_REALTIME beside started_ns */
	unsigned left, left_killed; /* left behind by workers that can't be told apart any more */
	bool left_unknown; /* there may be more: without /proc (procfs.h) who is left is not seen */
	struct survivor survivors[SURVIVORS_MAX];
	unsigned survivor_count; /* may be larger than SURVIVORS_MAX */
};

/* The exit code of a job that --max-runtime ended, as timeout(1) has it. */
enum { EXIT_MAX_RUNTIME = 124 };

/* The exit code of a job that lost a node, which has no worker's code; unless all know the signal
 * that killed its supervisor. */
enum { EXIT_NODE_LOST = 125 };

/* The exit code of a job that was not started as its nodes are bad. */
enum { EXIT_BAD_NODE = 122 };

/* The exit code of a job whose attempts make no progress any more: --no-progress-restarts. */
enum { EXIT_NO_PROGRESS = 123 };

/* The exit code of a job that --on-hang ended. */
enum { EXIT_HANG = 121 };

bool ending_is_success(const struct ending *e);

/* Whether it could not be started, for whatever reason. */
bool ending_is_unstarted(const struct ending *e);

/* A worker's failure as the cause: the only way to make one, so that there is always a culprit. */
struct cause cause_of_failure(const struct outcome *culprit);

/* The worker to blame: that failed first, or that others waited for in vain; NULL: there is none,
 * or it is not known. */
const struct outcome *cause_culprit(const struct cause *c);
const struct outcome *result_culprit(const struct result *r);

/* The worker whose failure ended the job, culprit or victim; NULL: no failure did. */
const struct outcome *cause_failed(const struct cause *c);

/* Whether this one of the result's outcomes is the worker that failed first. */
bool result_is_culprit(const struct result *r, const struct outcome *o);

/* 0..255 as in a shell: the code, 128 + signal (also one that it sent), 127 for a program that
 * is not there, 126 for one that can't be executed. 1 for ENDED_NONE, and for ENDED_UNMADE, which
 * is no program's fault.
 */
int ending_exit_code(const struct ending *e);

/* The exit code of a job that ends for this cause. */
int cause_exit_code(const struct cause *c);

/* The job's exit code: the culprit's own, 128 + the signal that ended the job, 124 for
 * --max-runtime, 128 + SIGKILL for a killed guard, 128 + the signal for a killed supervisor that
 * all nodes know of, 128 + SIGHUP for a launcher that has ended or hung up, 128 + SIGTERM for an
 * attempt that was to be followed by another, which could not start, 122 for bad nodes, 123 for
 * attempts without progress, --requeue-exit-code for a preemption, and 0 only if every worker ended
 * with 0. */
int result_exit_code(const struct result *r);

/* By how much the times of two outcomes must differ for their order to be sure: on one node what
 * passes until a death is seen, on two what their clocks may be wrong by, and how late the later
 * one may have been seen. */
uint64_t result_tolerance_ns(
	const struct result *r, const struct outcome *a, const struct outcome *b);

/* Whether two ends are so close that the clocks of their nodes can't order them. */
bool result_is_close(const struct result *r, const struct outcome *a, const struct outcome *b);

/* Whether it failed so soon before or after the culprit that their order says little. A worker that
 * died of a lost peer is never that close to one that did not. */
bool result_is_together(const struct result *r, const struct outcome *o);

/* What a failure tells of itself, the most telling first. */
enum failing {
	FAILING_ITSELF, /* an exception of its own, a signal, no start */
	FAILING_MUTE,   /* an exit code without words: a cause, or a consequence */
	FAILING_ABORT,  /* SIGABRT without words: NCCL's watchdog, mostly */
	FAILING_PEER,   /* it says that another worker had gone, or did not come; or nobody read
			 * what it wrote */
};

enum failing outcome_failing(const struct outcome *o);

/* "exit code 1", "killed by SIGSEGV (core dumped)", "could not be started", "not started" */
void ending_describe(const struct ending *e, struct text *out);

#endif
