/* acceptor.h - accepts connections, also where no descriptor is left for one.
 *
 * accept4(2) fails with EMFILE or ENFILE while the connection goes on waiting, so that a loop would
 * be told of it without end. Either the owner gives up a descriptor for it, or it is taken with one
 * that was kept for that, and closed at once. */
#ifndef LAUNCHD_DAEMON_OS_ACCEPTOR_H
#define LAUNCHD_DAEMON_OS_ACCEPTOR_H

#include <stdbool.h>

struct address;

struct acceptor {
	/* the owner's, before acceptor_open(); any may call acceptor_close() */
	/* A connection from there, which neither blocks nor outlives an exec; it is the owner's. */
	void (*on_connection)(struct acceptor *a, int fd, const struct address *from);
	/* No descriptor is left. True: the owner has closed one of its own. NULL: it never does. */
	bool (*make_room)(struct acceptor *a);
	void (*on_dropped)(struct acceptor *a); /* one was closed for lack of one; may be NULL */
	void *owner;
	unsigned at_once; /* how many acceptor_run() accepts at the most; 0: as many as is good */

	/* private */
	int spare; /* -1: there is none */
	bool closed;
};

void acceptor_open(struct acceptor *a);

/* Accepts what waits at a socket that listens and doesn't block: so many connections that other
 * events have their turn, too. True: more may wait. */
bool acceptor_run(struct acceptor *a, int listening);

/* Accepts no more, also where it is at work; twice is once. */
void acceptor_close(struct acceptor *a);

#endif
