/* finder.h - looks up the hub's name from the settings without blocking, and again: names of nodes
 * that boot later become known later, and their addresses may change. */
#ifndef LAUNCHD_DAEMON_MEET_FINDER_H
#define LAUNCHD_DAEMON_MEET_FINDER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/address.h"

struct lookup;
struct sm;

enum finder_state {
	FINDER_NONE,
	FINDER_ASKING,
	FINDER_PAUSED, /* until the next try */
	FINDER_FOUND,  /* the resolver may be asked again */
	FINDER_FAILED,
	FINDER_CLOSED,
	FINDER_STATES,
};

extern const struct sm finder_life;

struct finder {
	/* the owner's, before finder_start(); the rest is { 0 } */
	void (*on_found)(struct finder *f); /* addresses are known; again after finder_again() */
	void (*on_searching)(struct finder *f, const char *why); /* at once, then each minute */
	void (*on_failed)(struct finder *f, const char *why);    /* once: the time is over */
	void (*on_closed)(struct finder *f); /* the memory is the owner's again */
	void *owner;

	/* to be read */
	struct addresses found; /* families in turn (RFC 8305, 4) */
	bool numeric;           /* the name is an address */

	/* private */
	enum finder_state state;
	const char *name;
	char port[8];
	uv_loop_t *loop;
	struct lookup *asked; /* NULL: nobody is asked now */
	uv_timer_t timer;
	uint64_t deadline_ms, note_ms;
	char why[256]; /* the last failure */
};

/* Looks the name up until it is found or within_ms have passed. A name that is an address is found
 * in the next iteration of the loop. The name is borrowed. */
void finder_start(
	struct finder *f, uv_loop_t *loop, const char *name, unsigned port, uint64_t within_ms);

/* Looks the name up again once it was found, unless that is under way or the name is an address. If
 * that fails, the known addresses stay and on_found is not called. */
void finder_again(struct finder *f);

/* Closes it, even while the resolver hangs; on_closed is called from the loop. */
void finder_close(struct finder *f);

#endif
