/* traceback.h - workers whose last lines are a Python traceback, and that live on: their exception
 * ended nothing, because another thread or a collective keeps the process alive. Each is reported
 * once per attempt. */
#ifndef LAUNCHD_DAEMON_RUN_WATCH_TRACEBACK_H
#define LAUNCHD_DAEMON_RUN_WATCH_TRACEBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bus;
struct output;
struct pool;
struct tails;
struct traceback_seen;

enum { TRACEBACK_LIVES_MS = 60000, TRACEBACK_LOOK_MS = 10000 };

/* Begins as { 0 }. */
struct traceback_watch {
	/* the owner's; all are borrowed */
	const struct bus *bus;
	struct output *output;
	const struct pool *pool;

	/* private */
	struct traceback_seen *of; /* one per worker; NULL: not asked yet */
	unsigned count;
	uint64_t bytes;       /* that workers had written when it asked what it has heard */
	uint64_t asked_bytes; /* when it asked last */
	uint64_t looked_ms;   /* when it looked at that last */
};

/* The workers of an attempt were started. */
void traceback_begin(struct traceback_watch *w, uint64_t now_ms);

/* Now and then. Asks for the workers' last lines every TRACEBACK_LOOK_MS, if there are new ones:
 * the output's answer is for the next function. */
void traceback_look(struct traceback_watch *w, uint64_t now_ms);
void traceback_hear(struct traceback_watch *w, const struct tails *tails, uint64_t now_ms);

/* Frees. */
void traceback_done(struct traceback_watch *w);

/* Returns whether a text ends with a traceback that ends a process or a thread; *ret_at and
 * *ret_len are its last line, "ValueError: loss is NaN". Pure. */
bool traceback_ends(const char *text, const char **ret_at, size_t *ret_len);

#endif
