/* store_sim.h - the store without sockets: clients that feed bytes to the parser and the keys, and
 * what they are sent; and requests as text. For unit tests and fuzz targets. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_STORE_STORE_SIM_H
#define LAUNCHD_TESTS_UNIT_DAEMON_STORE_STORE_SIM_H

#include "common/failure.h"
#include "common/text.h"
#include "daemon/store/answer.h"

enum { SIM_CLIENTS = 8 };

struct sim_client {
	struct guest guest;
	struct scan scan;
	struct bytes in;
	struct text out;    /* what it was sent and has not been looked at */
	struct failure why; /* code not 0: the store has closed it */
};

struct sim {
	struct budget budget;
	struct space space;
	struct sim_client at[SIM_CLIENTS];
	unsigned answered; /* requests */
};

void sim_init(struct sim *sim, enum store_dialect old, uint64_t memory_max);

/* Bytes come from a client; nothing where the store has closed it. */
void sim_feed(struct sim *sim, unsigned client, const void *bytes, size_t len);

/* A client goes, and another one comes in its place. */
void sim_replace(struct sim *sim, unsigned client);

/* All go. What is still in use of the budget afterwards is a leak. */
void sim_done(struct sim *sim);

/* Adds a request, written as "SET key value": words are keys and values ('' is empty, *5 is five
 * letters x), #5 is an i64, %5 a u32, and @5 a u64 count. The number of the query is that of the
 * dialect. Aborts where the text is wrong. */
void wire_request(struct text *to, enum store_dialect dialect, const char *request);

/* Adds an answer, written as words of the same kinds, and $5 for a byte. */
void wire_words(struct text *to, const char *words);

#endif
