/* asked.h - one request on its way through the queries; between the files of answer.h. Pure. */
#ifndef LAUNCHD_DAEMON_STORE_ASKED_H
#define LAUNCHD_DAEMON_STORE_ASKED_H

#include "daemon/store/answer.h"

/* What torch calls WaitResponseType, CheckResponseType and WatchResponseType. */
enum { STOP_WAITING = 0, WAIT_CANCELED = 1 };
enum { READY = 0, NOT_READY = 1 };
enum { KEY_UPDATED, KEY_CREATED, KEY_DELETED, KEY_CALLBACK_REGISTERED, KEY_APPENDED };

enum { DIGITS = 24 };

struct inquiry {
	struct space *s;
	struct guest *who;
	const struct request *r;
	const uint8_t *at; /* the next argument */
	struct bytes *reply;
	struct failure *why;
};

/* Says that there is no memory for the request. Returns -ENOMEM. */
int out_of_memory(const struct inquiry *a);

/* Adds to the reply. 0 or -ENOMEM, which is said. */
int asked_say(const struct inquiry *a, const void *bytes, size_t len);
int say_byte(const struct inquiry *a, int byte);
int say_number(const struct inquiry *a, int64_t number);
int say_span(const struct inquiry *a, struct span span);

/* A key by its name, made where there is none; NULL: out of memory, which is said. */
struct key *need_key(const struct inquiry *a, struct span name);

/* Gives a key a value, wakes who waits for it and tells who watches it. On failure the key is
 * settled, and as it was. */
int set(const struct inquiry *a, struct key *key, struct span value);

/* Tells those to go on who wait for a key that has come; with `one` the first of them only. */
void wake(struct space *s, struct key *key, bool one);

/* The number at the beginning of a key's value, as std::stoll reads it: blanks, sign, digits.
 * -EPROTO: there is none, or none that fits. */
int read_number(const struct inquiry *a, const struct key *key, int64_t *ret);

/* a + b, around the end as in two's complement. */
int64_t sum(int64_t a, int64_t b);

/* A number as ADD stores it. */
struct span in_digits(int64_t number, char text[DIGITS]);

/* The queries that wait, and queues; for the table in answer.c. */
int on_check(struct inquiry *a);
int on_wait(struct inquiry *a);
int on_cancel_wait(struct inquiry *a);
int on_watch_key(struct inquiry *a);
int on_queue_push(struct inquiry *a);
int on_queue_pop(struct inquiry *a);
int on_queue_len(struct inquiry *a);
int on_barrier(struct inquiry *a);

#endif
