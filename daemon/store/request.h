/* request.h - the wire format of PyTorch's TCPStore: finds where a request ends and what it holds.
 * Pure, and owns no memory: the bytes of a request lie one behind the other in its caller's, and
 * what has been looked at once is not looked at again when more of them have come.
 *
 * Nothing on the wire says how long a request is, or how many of them a packet has: bytes, in host
 * order, are a number for the query and its arguments. A key or value is a u64 length and that many
 * bytes. What a number means depends on the client's version of torch: its dialect. */
#ifndef LAUNCHD_DAEMON_STORE_REQUEST_H
#define LAUNCHD_DAEMON_STORE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct failure;

/* torch's own limits; it refuses what exceeds them. */
enum {
	STORE_KEY_MAX = 8 << 10,
	STORE_VALUE_MAX = 8 << 20,
	STORE_KEYS_MAX = 128 << 10, /* of one request */
};

/* A client that speaks D says so with its first bytes; A and C start alike, so that the store must
 * be told which of the two its old clients speak. */
enum store_dialect {
	STORE_DIALECT_NONE, /* clients that don't speak D are refused */
	STORE_DIALECT_A,    /* torch 1.13 to 2.0 */
	STORE_DIALECT_C,    /* torch 2.1 */
	STORE_DIALECT_D,    /* torch 2.2 and above */
};

enum query {
	QUERY_NONE, /* not the number of a query */
	QUERY_VALIDATE,
	QUERY_SET,
	QUERY_COMPARE_SET,
	QUERY_GET,
	QUERY_ADD,
	QUERY_CHECK,
	QUERY_WAIT,
	QUERY_GETNUMKEYS,
	QUERY_WATCH_KEY,
	QUERY_DELETE_KEY,
	QUERY_APPEND,
	QUERY_MULTI_GET,
	QUERY_MULTI_SET,
	QUERY_CANCEL_WAIT,
	QUERY_PING,
	QUERY_QUEUE_PUSH,
	QUERY_QUEUE_POP,
	QUERY_QUEUE_LEN,
	QUERY_LIST_KEYS,
	QUERY_BARRIER,
	QUERIES,
};

/* Bytes that somebody else owns. */
struct span {
	const uint8_t *at;
	size_t len;
};

/* One whole request; it points into the bytes that were looked at. */
struct request {
	enum query query;
	enum store_dialect dialect;
	uint64_t count;      /* of keys, where the query takes any number of them */
	const uint8_t *args; /* behind the count */
	size_t len;          /* all of it, from the query's number on */
};

/* How far a connection's bytes have been looked at. */
struct scan {
	enum store_dialect old, dialect; /* dialect: NONE until the first bytes tell */
	enum query query;                /* NONE: between two requests */
	const char *step, *again;        /* of its shape: what comes now, what is repeated */
	uint64_t count, left;            /* repetitions, and those to come with this one */
	size_t at, args;                 /* offsets from the request's first byte */
};

/* For a new connection; `old` is the dialect of clients that do not speak D. */
void scan_init(struct scan *s, enum store_dialect old);

/* Looks at `len` bytes, the first of which starts a request: those of the last call, if that found
 * no end, and what has come since. Returns 1 with the request, which is the first ret->len of them;
 * 0 if more must come; -EPROTO if it is not a request: the caller closes the connection. */
int scan_next(
	struct scan *s, const uint8_t *bytes, size_t len, struct request *ret, struct failure *why);

/* The arguments of a whole request, one by one, in their order; *at begins as args. */
struct span request_span(const uint8_t **at);
int64_t request_number(const uint8_t **at);

/* "SET", for sentences; "" for QUERY_NONE. */
const char *query_name(enum query q);

#endif
