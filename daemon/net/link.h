/* link.h - one connection of the control channel, at either end: typed messages in and out,
 * authenticated if the job has a key.
 *
 * link_dial() or link_accept() starts it. on_ready is called once the peer has proved that it has
 * the key, on_message for each message from then on, and on_closed exactly once, when the last
 * handle is closed and the struct is the owner's again. Any callback may send, or close the link.
 *
 * The hub pings before its owner can send anything, and the peer answers before its owner sees any
 * message: by the time the peer reacts to anything, the hub knows the peer's clock.
 *
 * A link is a stream of bytes in each direction, from which frames are cut. TCP is only the
 * first way to carry it: what was sent is kept until the peer acknowledges it in its beats, and
 * what TCP does not deliver in time goes in pieces by UDP (beat.h) or over a fresh connection:
 *
 *   sent      kept ......... acked        the peer's taken
 *   received  taken: how far the stream has arrived, by whichever way; tcp_taken: how far TCP has
 *             delivered it. Duplicates are recognised by their offset and dropped.
 *
 * So a connection that breaks, by a reset or because the kernel gave up, does not end a watched
 * link. An EOF without a CLOSE frame does: the peer's process has died. Its guard then has a moment
 * to tell how (rescue.h).
 *
 * link_redial() makes a fresh connection: a temporary link with its own handshake, whose READY
 * names the session that it resumes. Once the hub has answered, both ends move that connection
 * under the old link, whose keys and frame numbers continue.
 *
 * The process must ignore SIGPIPE. */
#ifndef LAUNCHD_DAEMON_NET_LINK_H
#define LAUNCHD_DAEMON_NET_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/address.h"
#include "daemon/net/clock.h"
#include "daemon/net/frame.h"
#include "daemon/net/handshake.h"
#include "daemon/net/kept.h"

struct failure;
struct sm;
struct sodium;

enum {
	LINK_QUEUE_MAX = 4 << 20,  /* bytes that a peer may lag behind in reading */
	LINK_HANDSHAKE_MS = 10000, /* from dialing or accepting to ready */
	/* How long TCP retries data and keepalive probes: beats detect a loss much sooner. */
	LINK_USER_TIMEOUT_MS = 300000,
	/* Some firewalls forget idle connections after 60 s. Keepalives wake up no process. */
	LINK_KEEPALIVE_S = 20,
	LINK_ACK_BYTES = 64 << 10, /* after so many bytes an acknowledgement is sent at once */
	LINK_PINGS = 8, /* by the hub, at once when ready: an estimate of the peer's clock */
	LINK_TYPE_MIN = FRAME_OWNER, /* of the owner's messages */
};

/* The job's key, shared by all its links, which it must outlive. */
struct link_auth {
	bool keyed;
	unsigned char key[FRAME_KEY];
	const struct sodium *sodium; /* NULL where not keyed */
};

/* Why a link has ended, for owners that act on it; on_closed has the sentence. */
enum link_end {
	LINK_END_NONE,
	LINK_END_OURS,      /* link_close() */
	LINK_END_PEERS,     /* the peer closed it on purpose: a CLOSE frame came */
	LINK_END_LOST,      /* the connection ended or broke without one: the peer died */
	LINK_END_UNREACHED, /* there was no connection: refused, no route, or no answer in time */
	LINK_END_MUTE,      /* connected, but the handshake timed out or was cut short */
	LINK_END_VERSION,   /* the peer speaks another version of the protocol */
	LINK_END_KEYED,     /* only one end has a key */
	LINK_END_KEY,       /* the keys differ */
	LINK_END_BROKEN,    /* malformed, too long, or altered in transit */
	LINK_END_FULL,      /* the peer doesn't read: LINK_QUEUE_MAX was reached */
	LINK_END_SYSTEM,    /* out of memory, or a system call failed */
};

enum link_state {
	LINK_IDLE,
	LINK_CONNECTING,
	LINK_HELLO, /* the peer's HELLO is awaited */
	LINK_PROOF, /* its READY */
	LINK_OPEN,
	LINK_DRAINING, /* queued bytes still go out; the owner hears nothing more */
	LINK_CLOSING,
	LINK_CLOSED,
	LINK_STATES,
};

extern const struct sm link_life; /* of these states */

struct link;

/* Sends and receives beats over a link; see beat.h. */
struct link_watcher {
	void (*on_beat)(struct link *l, const unsigned char *payload, size_t len);
	/* Look at it soon: its connection broke, was replaced or could not be, many bytes came, or
	 * something was sent that TCP won't deliver in time. */
	void (*on_change)(struct link *l);
	void (*on_ending)(struct link *l); /* once; the link is closing */
};

/* What a watcher keeps of each link. */
struct link_beats {
	const struct link_watcher *watcher; /* NULL: none watches */
	void *of;                           /* the struct beat */
	struct link *next, *previous;       /* of all that are watched */
	struct link *chain;                 /* next with the same hash */
	uint64_t interval_ns;               /* of the beats that the peer sends */
	struct address from;                /* where its datagrams come from; family 0: none came */
	unsigned socket;                    /* the hub's socket by which they come */
	uint64_t sent, seen;                /* sequence numbers: our last, the peer's last by UDP */
	uint64_t peer_sent_ns, received_ns; /* the peer's last beat: when at the peer, and here */
	uint64_t udp_ns;                    /* when the last datagram came; 0: never */
	uint64_t udp_heard_ns; /* when the peer last said that it gets ours; 0: never */
	uint64_t suspect_ns;   /* when it was first found silent for the time-out; 0: it isn't */
	bool silent;           /* and that was told */
	bool lost;             /* we consider the peer lost, and tell it so */
	uint64_t peer_sent;    /* where the peer's stream ended by its last beat */
	uint64_t missing_ns; /* since when some of that is missing, and nothing more came; 0: no */
	uint64_t missing_at; /* from here on */
	uint64_t piece_at;   /* what was sent in pieces, in this round */
	uint64_t piece_ns, piece_wait_ns; /* when the next round is due, and how long it waits */
	uint64_t dial_ns;                 /* no fresh connection before */
	bool behind;                      /* the peer says that TCP is behind what came in pieces */
	bool refused;                     /* ICMP says that the peer's UDP port is closed */
	bool asked;                       /* whether anybody is, when it had died */
	bool entrusted;     /* the job has begun: who is killed is told of by its guard; of ours: */
	int place, lent;    /* the death_notice's numbers for it and its socket, and 1; 0: none */
	uint64_t notice_ns; /* the peer's guard was heard first; 0: never */
	enum { TROUBLE_SILENT, TROUBLE_UNACKED, TROUBLE_MISSING } trouble;
};

struct link {
	/* the owner's, before link_dial() or in listener's on_accept; the rest is { 0 } */
	void (*on_ready)(struct link *l);
	void (*on_message)(struct link *l, unsigned type, const unsigned char *payload, size_t len);
	void (*on_closed)(struct link *l, const char *why); /* one sentence, no newline */
	void (*on_idle)(struct link *l); /* the queue has been written out; may be NULL */
	/* A hub's: its link of that session, which a dialer wants to resume; NULL: none. */
	struct link *(*find)(struct link *l, uint64_t session);
	void *owner;
	uint32_t timeout_ms; /* silence after which we consider the peer lost; 0: never */

	/* to be read */
	enum link_state state;
	enum link_end end;
	bool is_hub;   /* accepted, not dialed */
	bool peer_udp; /* the hub receives beats by UDP at its port */
	bool eof;      /* it ended without CLOSE: the peer seems to have died */
	bool agreed;   /* all other nodes know, too, what killed the peer */
	uint32_t peer_timeout_ms;
	int killed_by;     /* the signal that killed the peer, according to its guard; 0: unknown */
	uint64_t session;  /* chosen by the hub at random; the same at both ends */
	uint64_t heard_ns; /* when the last authenticated frame or beat came, uv_hrtime() */
	uint64_t broke_ns; /* when the connection broke or ended; 0: it has not */
	struct clock_offset clock; /* the peer's clock beside ours */
	char peer[ADDRESS_TEXT];   /* "10.0.0.4:41234" */
	struct address peer_address;

	/* private */
	const struct link_auth *auth;
	uv_tcp_t *tcp;    /* NULL: it broke */
	uv_timer_t limit; /* of the handshake, and of a flush */
	uv_udp_t udp;     /* a dialer's, for beats */
	union {
		uv_connect_t connect;
		uv_shutdown_t shutdown;
	} request;
	bool has_udp;
	bool unkept;      /* not watched, so nothing is acknowledged, nor kept */
	unsigned handles; /* not closed yet */
	unsigned pings;   /* still to be sent */
	struct frame_key out;
	struct frame_stream in;
	struct kept kept;          /* of our stream, from the end of the handshake on */
	uint64_t unacked_ns;       /* since when no more of it is acknowledged; 0: all is */
	uint64_t taken, tcp_taken; /* of the peer's: in a row, and by TCP */
	uint64_t told;             /* what we have told of it */
	int broke;                 /* why the connection broke: negative errno */
	struct link *fresh;        /* a connection that may take its place */
	struct link *resumes;      /* this is such a one, for that link */
	uint64_t resumes_at;       /* what had come when it asked */
	bool moved;                /* its connection is that link's now */
	bool was_reset;            /* a write got ECONNRESET, which the kernel reports only once */
	bool fresh_refused;        /* nobody listens at the hub's port any more */
	struct hello hello;        /* ours */
	unsigned char token[HANDSHAKE_TOKEN];
	unsigned char beat_in[FRAME_KEY], beat_out[FRAME_KEY];
	struct link_beats beats;
	void (*on_settled)(struct link *l); /* the listener's: the handshake is over, either way */
	void *listener;
	struct link *pending_next, *pending_previous;
	char why[256];
};

/* Connects. Where that fails later, or the peer refuses us, on_closed says so; the link may then be
 * dialed again ({ 0 } but for the owner's part). On failure nothing was begun. */
int link_dial(struct link *l, uv_loop_t *loop, const struct address *to,
	const struct link_auth *auth, struct failure *why);

/* Takes over a connection that was accepted, and its descriptor, from `from`. udp: whether we hear
 * beats by UDP at the same port. On failure on_closed was told why, and fd stays the caller's. */
int link_accept(struct link *l, uv_loop_t *loop, int fd, const struct address *from, bool udp,
	const struct link_auth *auth);

/* Sends a message of type LINK_TYPE_MIN to 255 and at most FRAME_MAX bytes, which are copied. At
 * once, where the peer reads as fast. -ENOTCONN: the link is not open. -ENOBUFS: the peer is too
 * far behind, -ENOMEM, or another errno: the link is being closed, on_closed will say why. */
int link_send(struct link *l, unsigned type, const void *payload, size_t len);

/* Whether it is open, and nothing that was sent waits until the peer has read more: what is sent
 * next goes out before whatever comes after it. */
bool link_is_idle(const struct link *l);

/* Ends the link; on_closed comes later, nothing else does. flush: what was sent still goes out, and
 * a word of farewell, for as long as timeout_ms, LINK_HANDSHAKE_MS at most; else what is queued is
 * dropped. A second call without flush cuts a flush short; else it does nothing. why: for
 * on_closed; NULL for "closed here". */
void link_close(struct link *l, bool flush, const char *why);

/* For the watcher: sends a beat as a frame. As link_send(). */
int link_send_beat(struct link *l, const void *payload, size_t len);

/* For the watcher: some bytes of the peer's stream have come. True: what is new was taken, and the
 * owner may have heard messages, and ended the link. False: all of them were known, or there is a
 * gap before them. */
bool link_take(struct link *l, uint64_t at, const unsigned char *bytes, size_t len);

/* For the watcher: the peer has our stream up to there. May end a link that says farewell, or that
 * was never sent so much. */
void link_acknowledge(struct link *l, uint64_t upto);

/* For the watcher: whether TCP is known not to bring in time what is sent now. */
bool link_is_behind(const struct link *l);

/* For the watcher of a dialer's link: tries a fresh connection, one at a time. */
void link_redial(struct link *l);

/* For the watcher: ends a link whose connection broke, with that as the reason. */
void link_give_up(struct link *l);

/* For the watcher: l->udp is a handle with this socket from now on, closed with the link. */
void link_adopt_udp(struct link *l, int fd);

#endif
