/* store_fixture.h - a store and its clients in one process: real sockets, one loop. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_STORE_STORE_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_STORE_STORE_FIXTURE_H

#include "daemon/store/store.h"

enum { FIXTURE_MEMORY = 64 << 20, FIXTURE_NOTES = 64 };

struct store_fixture {
	uv_loop_t loop;
	struct store store;
	char notes[FIXTURE_NOTES][256];
	unsigned note_count;
	bool closed;
};

/* A store on an address, at any port, for clients of torch 2.2 and above. */
void store_fixture_open(struct store_fixture *st, const char *addr, uint64_t memory);

/* Closes it, and asserts that libuv has nothing left. */
void store_fixture_close(struct store_fixture *st);

/* A client by IPv4, from an address of this host. */
int dial(const struct store_fixture *st, const char *to, const char *from);

/* A client of 127.0.0.1 that has said who it is. */
int dial_and_greet(struct store_fixture *st);

/* Sends a request (see store_sim.h), with the store at work meanwhile; as far as it takes it. */
void ask(struct store_fixture *st, int fd, const char *request);

/* Lets the store work until there is something to read here. */
void run_until_readable(struct store_fixture *st, int fd);

/* Asserts that a client is sent these words next. */
void hear(struct store_fixture *st, int fd, const char *words);

/* Asserts that a client is closed, with no word more, and closes its end. */
void hear_end(struct store_fixture *st, int fd);

/* Lets the store work until it has nothing to do. */
void settle(struct store_fixture *st);

#endif
