/* process_fixture.h - for tests that make, signal and kill processes: each plays in a process of
 * its own, a subreaper in a session of its own, as the supervisor is, so that whatever goes wrong
 * stays below it. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_WORKERS_PROCESS_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_WORKERS_PROCESS_FIXTURE_H

#include "tests/unit/unit.h"

#include <sys/types.h>

/* What a part returns: NULL, or the sentence that does not hold. */
typedef const char *process_part(void);

#define HOLDS(condition, sentence) \
	do { \
		if (!(condition)) \
			return sentence; \
	} while (0)

/* What a part returns that can't be played here, and what is missing. */
#define NEEDS "needs "

/* A test for each row: the sentence, and the part that shows it. */
struct process_row {
	const char *says;
	process_part *part;
	bool root; /* only root can play it */
};

void process_suite_add(struct suite *s, const struct process_row *rows, size_t count);

/* Numbers that all processes of a part share, 64 zeros at its start. */
extern volatile int *shared_numbers;

/* Plays a part where /proc is not to be believed. foreign: it is another pid namespace's, in which
 * this process has the number of one that has many children where kernels have threads; else there
 * is none at all. */
const char *play_without_proc(bool foreign, process_part *part);

enum actor_kind {
	ACTOR_CHILD = 0,
	ACTOR_SESSION = 1, /* in a session of its own */
	ACTOR_ORPHAN = 2,  /* its parent has ended: a child of the nearest subreaper */
};

/* Starts a process that acts; returns its pid once it has said that it is ready. */
pid_t actor_start(unsigned kind, void (*act)(void));

/* Of an actor: lets actor_start() return. */
void actor_ready(void);

/* Acts: wait for a signal, wait while TERM is ignored, end at once. */
void act_wait(void);
void act_stay(void);
void act_end(void);

/* Has a child of its own in another session, shared_numbers[0], which act_wait()s; and waits. */
void act_parent(void);

/* Waits until a process is in this state, as proc(5) has it; 'Z' also if it is gone. */
void actor_await(pid_t pid, char state);

/* Waits until another process, or a thread, has set this one of shared_numbers. */
void actor_await_number(unsigned which);

bool actor_lives(pid_t pid);

/* Waits for a child's end and returns its status; 128 + a signal. */
int actor_reap(pid_t pid);

#endif
