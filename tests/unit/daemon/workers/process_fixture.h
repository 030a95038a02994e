/* process_fixture.h - for tests that make, signal and kill processes: each plays in a process of
 * its own, a subreaper in a session of its own, as the supervisor is, so that whatever goes wrong
 * stays below it. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_WORKERS_PROCESS_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_WORKERS_PROCESS_FIXTURE_H

#include "tests/unit/unit.h"

#include <sys/types.h>

/* What a part returns: NULL, or the sentence that does not hold. */
typedef const char *stage_part(void);

#define HOLDS(condition, sentence) \
	do { \
		if (!(condition)) \
			return sentence; \
	} while (0)

/* What a part returns that can't be played here, and what is missing. */
#define NEEDS "needs "

/* A test for each row: the sentence, and the part that shows it. */
struct stage_row {
	const char *says;
	stage_part *part;
	bool root; /* only root can play it */
};

void stage_add(struct suite *s, const struct stage_row *rows, size_t count);

/* Numbers that all processes of a part share, 64 zeros at its start. */
extern volatile int *stage_shared;

/* Plays a part where /proc is not to be believed. foreign: it is another pid namespace's, in which
 * this process has the number of one that has many children where kernels have threads; else there
 * is none at all. */
const char *stage_without_proc(bool foreign, stage_part *part);

enum actor_kind {
	ACTOR_CHILD = 0,
	ACTOR_SESSION = 1, /* in a session of its own */
	ACTOR_ORPHAN = 2,  /* its parent has ended: a child of the nearest subreaper */
};

/* Starts a process that acts; returns its pid once it has said that it is ready. */
pid_t stage_start(unsigned kind, void (*act)(void));

/* Of an actor: lets stage_start() return. */
void stage_ready(void);

/* Acts: wait for a signal, wait while TERM is ignored, end at once. */
void stage_wait(void);
void stage_stay(void);
void stage_end(void);

/* Has a child of its own in another session, stage_shared[0], which stage_wait()s; and waits. */
void stage_parent(void);

/* Waits until a process is in this state, as proc(5) has it; 'Z' also if it is gone. */
void stage_await(pid_t pid, char state);

bool stage_lives(pid_t pid);

/* Waits for a child's end and returns its status; 128 + a signal. */
int stage_reap(pid_t pid);

#endif
