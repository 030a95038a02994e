/* visit.h - a client of a TCPStore, for a process that has nothing else to do meanwhile: each call
 * blocks, but never longer than its limit. Speaks as torch 2.2 and later does, so that any server
 * of the protocol will do; keys are sent as they are, while torch puts "/" before its own. */
#ifndef LAUNCHD_DAEMON_STORE_VISIT_H
#define LAUNCHD_DAEMON_STORE_VISIT_H

#include <stddef.h>
#include <stdint.h>

struct failure;
struct text;

/* The owner begins with fd -1. After any failure but -ETIMEDOUT of a key that has not come, the
 * connection is closed, and all that follows is -ENOTCONN. One thread. */
struct visit {
	int fd;
	int limit_ms; /* for each answer that the server owes at once */
};

/* Connects; host: an address as text, with a scope or not, or a name, whose look-up alone may take
 * longer than the limit. -ETIMEDOUT, -ECONNREFUSED or what else connect(2) says, with a sentence.
 */
int visit_open(struct visit *v, const char *host, unsigned port, int limit_ms, struct failure *why);

/* Sets a key. The server doesn't answer that: 0 says that it was sent. */
int visit_set(struct visit *v, const char *key, const void *value, size_t len, struct failure *why);

/* Waits until a key has come, at most wait_ms, and 0 is only a look. -ETIMEDOUT: it has not, which
 * is no failure: nothing is said, and the connection goes on. */
int visit_wait(struct visit *v, const char *key, int wait_ms, struct failure *why);

/* Waits as visit_wait() does, and adds the value to ret. */
int visit_get(struct visit *v, const char *key, int wait_ms, struct text *ret, struct failure *why);

/* Adds to a key's number, which is 0 where there is no key; *ret is the sum. */
int visit_add(struct visit *v, const char *key, int64_t delta, int64_t *ret, struct failure *why);

/* Also of what was never opened, and twice. */
void visit_close(struct visit *v);

#endif
