/* helper.h - a child process for one thing that may hang, crash or print: the event loop never
 * waits for it, and it is killed when its time is over.
 *
 * It is forked and executes nothing, so that it has all that the caller knows, but it allocates: no
 * other thread of this process may hold a lock meanwhile. Not every allocator can be forked beside
 * a thread that uses it, as glibc's can.
 *
 * It answers in memory that both share, not through a pipe: what it had written stands there
 * whatever became of it, and nothing of it is half read. What it prints is kept from the user's
 * terminal; helper_explain() adds the first line of it. */
#ifndef LAUNCHD_DAEMON_OS_HELPER_H
#define LAUNCHD_DAEMON_OS_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct sm;
struct text;

/* The first member of the owner's own answer. Memory of the child's may have been anything. */
struct helper_answer {
	volatile unsigned step; /* how far it came, in the owner's numbers; 0 while it starts */
	char text[512];         /* why that failed; "": it did not say */
};

enum helper_state {
	HELPER_NONE,
	HELPER_RUNNING,
	HELPER_OVERDUE,  /* killed, as its time is over */
	HELPER_UNWANTED, /* killed, as it was closed */
	HELPER_ENDED,
	HELPER_CLOSING,
	HELPER_STATES,
};

extern const struct sm helper_life;

struct helper {
	/* the owner's, before helper_start(); the rest is { 0 } */
	/* What to do, in the child; it has succeeded where it returns. May call helper_fail(). */
	void (*work)(struct helper *h);
	/* Once, unless it is closed before; may call helper_close(). */
	void (*on_end)(struct helper *h, bool succeeded);
	/* The state is HELPER_NONE after helper_close(); may start it again. May be NULL. */
	void (*on_closed)(struct helper *h);
	void *owner;
	const char *name; /* of the process, 15 bytes at most */
	char **argv;      /* main()'s, for a command line of the child's own; NULL: it keeps ours */
	int input;        /* the child's standard input; 0: /dev/null */
	bool group;       /* what the child starts is killed with it, and when it has ended */
	/* It stays while other children of this process come, are ended and are reaped: whoever
	 * does that to all of them leaves it out. */
	bool lasting;

	/* to be read; the answer is there until helper_close() */
	enum helper_state state;
	struct helper_answer *answer;
	bool timed_out;

	/* private */
	size_t answer_size;
	uint64_t limit_ms;
	pid_t child; /* 0: reaped */
	int pidfd, printed, status;
	struct helper *next; /* of those that SIGCHLD tells of */
	struct helper *next_lasting;
	uv_poll_t gone; /* where there is a pidfd */
	uv_timer_t limit;
	unsigned handles; /* of the two above, not closed yet */
};

/* Starts the child, which has limit_ms to end; 0: as long as it likes. Its answer, of that size, is
 * all zeros. SIGCHLD may be blocked or not; nobody else may reap the child. Negative errno: nothing
 * is left. */
int helper_start(struct helper *h, uv_loop_t *loop, size_t answer_size, uint64_t limit_ms);

/* In the child: ends it as one that failed, with why. */
__attribute__((format(printf, 2, 3))) _Noreturn void helper_fail(
	const struct helper *h, const char *fmt, ...);

/* Adds why it has not succeeded: "PMIx_Init did not finish within 2 s", "its process was killed by
 * SIGSEGV in PMIx_Init", or what it says itself; then the first line of what it printed. `step`:
 * what it was at. Once. */
void helper_explain(const struct helper *h, const char *step, struct text *t);

/* SIGCHLD has come, which the owner of the loop must tell: where this kernel, or a sandbox, gives
 * no pidfds, nothing else tells that a child has ended. */
void helper_on_child(void);

/* For who ends or reaps all children of this process: whether there is a lasting one, and whether
 * this is one. */
bool helper_any_lasting(void);
bool helper_is_lasting(pid_t child);

/* The same: a child that has ended is not reaped yet. True: it was a lasting helper's, and is. */
bool helper_reap_lasting(pid_t child);

/* The children of lasting ones that SIGKILL has not ended, as they hang in the kernel: nobody waits
 * for them, and they count as lasting until they are reaped. How many. */
enum { HELPER_LOST_MAX = 8 };
size_t helper_lost(pid_t ret[HELPER_LOST_MAX]);

/* One more, of somebody else's: see question.h. */
void helper_lose(pid_t child);

/* Ends it, and the child if there is one; twice is once, and what never started can be closed. The
 * loop must run on until the state is HELPER_NONE; only then the memory is free. */
void helper_close(struct helper *h);

#endif
