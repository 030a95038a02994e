/* channel.h - a hub and its dialers in one loop, for the tests of links and beats. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_NET_CHANNEL_H
#define LAUNCHD_TESTS_UNIT_DAEMON_NET_CHANNEL_H

#include <netinet/in.h>
#include <uv.h>

#include "daemon/net/beat.h"
#include "daemon/net/link.h"
#include "daemon/net/listener.h"
#include "daemon/net/sodium.h"

enum { CHANNEL_ENDS = 8 };

struct channel;

struct end {
	struct link link;
	struct channel *channel;
	unsigned ready, closed, messages, type, silent;
	uint64_t silent_ms, silent_at;
	size_t bytes;
	char why[256];
	void (*on_message)(struct end *e);
};

enum channel_goal {
	CHANNEL_NEVER,
	CHANNEL_READY, /* so many at both sides */
	CHANNEL_CLOSED,
	CHANNEL_HUBS_CLOSED,
	CHANNEL_DIALERS_CLOSED,
	CHANNEL_MESSAGES, /* so many at the hub */
	CHANNEL_PINGED,   /* the hub's first end is done with its pings */
	CHANNEL_SILENT,   /* so many were reported */
};

struct channel {
	uv_loop_t loop;
	struct sodium sodium;
	struct link_auth hub_auth, dialer_auth;
	struct listener listener;
	bool listener_open;
	struct address address;
	struct end hub[CHANNEL_ENDS], dialer[CHANNEL_ENDS];
	unsigned accepted;
	void (*heard)(struct link *, unsigned, const unsigned char *, size_t);
	void (*on_ready)(struct end *e);   /* in each end */
	void (*on_message)(struct end *e); /* in each end */
	uv_timer_t timer, guard;           /* the test's own; ends what hangs */
	uv_check_t check;
	enum channel_goal goal;
	unsigned goal_count;
	struct beat hub_beat, dialer_beat;
	bool beats;
	uint32_t timeout_ms;
	/* a dialer by hand */
	int raw;
	const unsigned char *script;
	size_t script_len, written;
};

/* Listens at 127.0.0.1; keys are a character, repeated, or NULL. */
void channel_make(struct channel *c, const char *hub_key, const char *dialer_key,
	void (*heard)(struct link *, unsigned, const unsigned char *, size_t));

/* Beats at both sides from now on, with this time-out. */
void channel_beat(struct channel *c, uint32_t timeout_ms);

/* For tests of beats: messages that nobody hears, an open link with beats every 100 ms, and that
 * neither side was reported as silent. */
enum { CHANNEL_TIMEOUT_MS = 1200 };
void channel_hear_nothing(struct link *l, unsigned type, const unsigned char *payload, size_t len);
void channel_make_beating(struct channel *c, const char *key);
/* Dialers stay connected, without a sign of life. */
void channel_mute(struct channel *c);
void assert_nobody_silent(const struct channel *c);

void end_make(struct channel *c, struct end *e);
void channel_dial(struct channel *c, unsigned i);

/* Until channel_stop(), or until the goal is reached; 60 s are a failure. */
void channel_run(struct channel *c);
void channel_run_until(struct channel *c, enum channel_goal goal, unsigned count);
void channel_run_ms(struct channel *c, uint64_t ms);
void channel_stop(struct channel *c);

/* Closes all; no handle may be left. */
void channel_done(struct channel *c);

#endif
