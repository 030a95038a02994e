/* ctl_link.h - a connection to a launcher's control socket, and what is asked by it. */
#ifndef LAUNCHD_DAEMON_CTL_CTL_LINK_H
#define LAUNCHD_DAEMON_CTL_CTL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/text.h"
#include "daemon/os/cjson.h"

struct failure;

struct ctl_link {
	const struct cjson *cjson;
	int fd;
	pid_t supervisor;         /* whoever listens; 0: of another pid namespace */
	uid_t uid;                /* its user */
	struct text in;           /* what has come */
	size_t used;              /* of that: the line before */
	unsigned asked, followed; /* numbers of the last request and the stream's; 0: none */
	int64_t asked_ms;         /* when the last request was sent */
	/* what of the stream comes before another request's answer, borrowed for the call */
	void (*on_event)(void *owner, const cJSON *root);
	void *owner;
	bool stopped; /* it did not answer, as a signal or a debugger has stopped it */
};

/* Connects, and waits for nothing. -ENOENT, -ECONNREFUSED: nobody listens there any more; -EAGAIN:
 * as many connections as may wait there do. */
int ctl_link_open(
	const struct cjson *cjson, const char *path, struct ctl_link *ret, struct failure *why);
void ctl_link_close(struct ctl_link *l);

/* Asks for an operation; members is "" or the request's others, with a comma before each. *ret_root
 * is the whole answer, to be freed, and *ret_result its result. -ECONNRESET: the launcher has ended
 * meanwhile; -ETIMEDOUT: it does not answer, and why says whether it is stopped: one that a
 * signal has stopped already is sent nothing; -EREMOTEIO: it has refused, for why; -EBUSY: it has
 * as many clients as it can serve. */
int ctl_link_ask(struct ctl_link *l, const char *op, const char *members, cJSON **ret_root,
	const cJSON **ret_result, struct failure *why);

/* The same in two short steps: ctl_link_send() sends the request; ctl_link_try() reads what has
 * come, and returns 1 if that is the whole answer, 0 if not. An answer of more than CTL_TRY_MOST
 * bytes is refused. -ETIMEDOUT: ctl_link_ask() would wait no longer either, that long after the
 * request. */
enum {
	CTL_TRY_MOST = 4 << 20,
	CTL_PATIENCE_MS = 15000, /* a guard wakes a supervisor that somebody stopped after 10 s */
};
int ctl_link_send(struct ctl_link *l, const char *op, const char *members, struct failure *why);
int ctl_link_try(struct ctl_link *l, int64_t waited_ms, cJSON **ret_root, const cJSON **ret_result,
	struct failure *why);

/* Begins a stream, and then waits for its next line: *ret_event is what came, its newline taken
 * away, until the next call. 0: the stream has ended. members: as above. */
int ctl_link_follow(struct ctl_link *l, const char *op, const char *members, struct failure *why);
int ctl_link_next(struct ctl_link *l, cJSON **ret_root, struct failure *why);

/* Waits for that long (-1: for ever), and no longer than the launcher lives. 1: it has said
 * something, or closed the connection; 0: time is over; or a negative errno. */
int ctl_link_wait(const struct ctl_link *l, int ms, struct failure *why);

/* What the line last read has behind a member's name, up to the object's end, as the launcher wrote
 * it: the member must be the last one. NULL: it has none of that name. */
const char *ctl_link_raw(const struct ctl_link *l, const char *name, size_t *ret_len);

/* A member of an object; NULL: it has none of that name, or none of that type. */
const cJSON *member_object(const struct cjson *c, const cJSON *of, const char *name);
const char *member_text(const struct cjson *c, const cJSON *of, const char *name);
bool member_number(const struct cjson *c, const cJSON *of, const char *name, double *ret);

#endif
