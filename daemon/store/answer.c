/* answer.c - see answer.h */
#include "daemon/store/answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"

enum { PUSH_KEEP = 64 << 10, LARGE = 16 << 10 };

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

static int out_of_memory(const struct inquiry *a)
{
	return failure_set(a->why, -ENOMEM,
		"out of memory for its %s: the store uses %" PRIu64 " of %" PRIu64 " MiB",
		query_name(a->r->query), a->s->budget->used >> 20, a->s->budget->max >> 20);
}

/* Adds to the reply. 0 or -ENOMEM, which is said. */
static int say(const struct inquiry *a, const void *bytes, size_t len)
{
	return bytes_add(a->reply, a->s->budget, bytes, len) < 0 ? out_of_memory(a) : 0;
}

static int say_byte(const struct inquiry *a, int byte)
{
	const uint8_t word = (uint8_t)byte;

	return say(a, &word, sizeof word);
}

static int say_number(const struct inquiry *a, int64_t number)
{
	return say(a, &number, sizeof number);
}

static int add_span(struct bytes *to, struct budget *b, struct span span)
{
	const uint64_t len = span.len;

	if (bytes_reserve(to, b, sizeof len + span.len) < 0)
		return -ENOMEM;
	memcpy(to->at + to->len, &len, sizeof len);
	if (len > 0)
		memcpy(to->at + to->len + sizeof len, span.at, span.len);
	to->len += sizeof len + span.len;
	return 0;
}

static int say_span(const struct inquiry *a, struct span span)
{
	return add_span(a->reply, a->s->budget, span) < 0 ? out_of_memory(a) : 0;
}

/* NULL: an empty one. */
static int say_value(const struct inquiry *a, struct blob *value)
{
	if (!value)
		return say_span(a, (struct span){ NULL, 0 });
	if (value->len < LARGE || !a->s->tell_large)
		return say_span(a, (struct span){ value->at, value->len });
	if (say_number(a, (int64_t)value->len) < 0)
		return -ENOMEM;
	a->s->tell_large(a->who, a->reply, value);
	return 0;
}

/* The key that the next argument names, made where there is none; NULL: out of memory. */
static struct key *need_key(struct inquiry *a)
{
	return keys_need(&a->s->keys, request_span(&a->at));
}

/* The key, if there is one, stays as it was. */
static int no_memory_for(const struct inquiry *a, struct key *key)
{
	if (key)
		keys_settle(&a->s->keys, key);
	return out_of_memory(a);
}

static void on_ready(struct guest *g, void *to)
{
	const struct space *s = to;
	const uint8_t word = STOP_WAITING;

	s->tell(g, &word, sizeof word);
}

/* Tells those to go on who wait for a key that has come; with `one` the first of them only. */
static void wake(struct space *s, struct key *key, bool one)
{
	wait_wake(&s->keys, key, one, on_ready, s);
}

/* A change, as those who watch the key are told of it; nothing where nobody does. -ENOMEM. */
static int push_make(
	const struct inquiry *a, const struct key *key, int kind, struct span old, struct span now)
{
	const struct span name = { key->name, key->len };
	const uint8_t word = (uint8_t)kind;
	struct bytes *to = &a->s->push;

	if (LIST_EMPTY(&key->watches))
		return 0;
	if (bytes_add(to, a->s->budget, &word, sizeof word) < 0 ||
		add_span(to, a->s->budget, name) < 0 || add_span(to, a->s->budget, old) < 0)
		return -ENOMEM;
	return add_span(to, a->s->budget, now);
}

static void push_send(const struct inquiry *a, const struct key *key)
{
	struct bytes *what = &a->s->push;

	if (what->len == 0)
		return;
	for (const struct watch *w = LIST_FIRST(&key->watches); w; w = LIST_NEXT(w, of_key))
		a->s->tell(w->guest, what->at, what->len);
	bytes_trim(what, a->s->budget, PUSH_KEEP);
}

static bool is_equal(struct span a, struct span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* Changes a key so that it has a value, wakes who waits for it and tells who watches it; kind: what
 * these are told where it had one. key NULL: there was no memory for it. On failure the key is
 * settled, and as it was. */
static int change(const struct inquiry *a, struct key *key, int kind, struct span now)
{
	bool whole = kind == KEY_UPDATED;
	bool same = key && key->value && whole && is_equal(key_value(key), now);
	struct span old = key_value(whole ? key : NULL);

	if (!key || push_make(a, key, key->value ? kind : KEY_CREATED, old, now) < 0 ||
		(whole ? key_set : key_append)(&a->s->keys, key, now) < 0) {
		bytes_trim(&a->s->push, a->s->budget, PUSH_KEEP);
		return no_memory_for(a, key);
	}
	a->s->changes += !same;
	wake(a->s, key, false);
	push_send(a, key);
	return 0;
}

static int set(const struct inquiry *a, struct key *key, struct span value)
{
	return change(a, key, KEY_UPDATED, value);
}

static int on_set(struct inquiry *a)
{
	struct key *key = need_key(a);

	return set(a, key, request_span(&a->at));
}

/* The query takes any number of what another one takes one of. */
static int repeat(struct inquiry *a, int (*one)(struct inquiry *a))
{
	int rc = 0;

	for (uint64_t i = 0; i < a->r->count && rc == 0; i++)
		rc = one(a);
	return rc;
}

static int on_multi_set(struct inquiry *a)
{
	return repeat(a, on_set);
}

static int on_compare_set(struct inquiry *a)
{
	struct span name = request_span(&a->at), expected = request_span(&a->at);
	struct span desired = request_span(&a->at);
	struct key *key = keys_find(&a->s->keys, name);
	bool has_value = key && key->value;
	bool store = has_value ? is_equal(key_value(key), expected) : expected.len == 0;
	int rc;

	if (has_value && !store)
		return say_value(a, key->value);
	/* a key that is not there is said to be what was expected: so does torch */
	rc = say_span(a, store ? desired : expected);
	if (rc < 0 || !store)
		return rc;
	return set(a, key ? key : keys_need(&a->s->keys, name), desired);
}

/* A missing key is empty to clients of 2.2 and above, and the end of older ones: so does torch.
 * All of them wait for it first. */
static int on_get(struct inquiry *a)
{
	const struct key *key = keys_find(&a->s->keys, request_span(&a->at));

	if (!(key && key->value) && a->r->dialect != STORE_DIALECT_D)
		return failure_set(a->why, -EPROTO, "its %s names a key that does not exist",
			query_name(a->r->query));
	return say_value(a, key ? key->value : NULL);
}

static int on_multi_get(struct inquiry *a)
{
	return repeat(a, on_get);
}

/* Adds to the number that a key's value begins with, as std::stoll reads it: blanks, sign, digits;
 * no value is 0, and the sum goes around the end. -EPROTO: there is no number, or none that fits.
 */
static int add(const struct inquiry *a, const struct key *key, int64_t delta, int64_t *ret)
{
	struct span value = key_value(key);
	char text[2 * DIGITS] = "0", *end;
	size_t len = value.len < sizeof text - 1 ? value.len : sizeof text - 1;
	long long number;

	if (key && key->value) {
		memcpy(text, value.at, len);
		text[len] = '\0';
	}
	errno = 0;
	number = strtoll(text, &end, 10);
	if (end == text || errno != 0)
		return failure_set(a->why, -EPROTO, "its %s adds to a value that is not a number",
			query_name(a->r->query));
	*ret = (int64_t)((uint64_t)number + (uint64_t)delta);
	return 0;
}

/* A number as ADD stores it. */
static struct span in_digits(int64_t number, char text[DIGITS])
{
	int len = snprintf(text, DIGITS, "%" PRId64, number);

	return (struct span){ (const uint8_t *)text, (size_t)len };
}

static int on_add(struct inquiry *a)
{
	struct span name = request_span(&a->at);
	struct key *key = keys_find(&a->s->keys, name);
	char text[DIGITS];
	int64_t number = 0;
	int rc = add(a, key, request_number(&a->at), &number);

	if (rc == 0)
		rc = say_number(a, number);
	if (rc < 0)
		return rc;
	return set(a, key ? key : keys_need(&a->s->keys, name), in_digits(number, text));
}

static int on_append(struct inquiry *a)
{
	struct key *key = need_key(a);

	return change(a, key, KEY_APPENDED, request_span(&a->at));
}

static int on_getnumkeys(struct inquiry *a)
{
	return say_number(a, (int64_t)a->s->keys.with_value);
}

static int on_delete_key(struct inquiry *a)
{
	struct key *key = keys_find(&a->s->keys, request_span(&a->at));
	int rc;

	if (!key || !key->value)
		return say_number(a, 0);
	rc = push_make(a, key, KEY_DELETED, key_value(key), (struct span){ NULL, 0 });
	rc = rc < 0 ? out_of_memory(a) : say_number(a, 1);
	if (rc < 0) {
		bytes_trim(&a->s->push, a->s->budget, PUSH_KEEP);
		return rc;
	}
	push_send(a, key);
	a->s->changes++;
	key_unset(&a->s->keys, key);
	keys_settle(&a->s->keys, key);
	return 0;
}

static int on_ping(struct inquiry *a)
{
	return say(a, a->at, sizeof(uint32_t));
}

static int say_name(const struct key *key, void *to)
{
	return say_span(to, (struct span){ key->name, key->len });
}

static int on_list_keys(struct inquiry *a)
{
	int rc = say_number(a, (int64_t)a->s->keys.with_value);

	return rc < 0 ? rc : keys_each(&a->s->keys, say_name, a);
}

static int on_validate(struct inquiry *a)
{
	(void)a;
	return 0;
}

/* --- the queries that wait, and queues --- */

/* How many of the keys are not there. */
static size_t missing(const struct inquiry *a)
{
	const uint8_t *at = a->at;
	size_t count = 0;

	for (uint64_t i = 0; i < a->r->count; i++) {
		const struct key *key = keys_find(&a->s->keys, request_span(&at));

		count += !key || !key_is_there(key);
	}
	return count;
}

/* By what ProcessGroupNCCL's monitor asks once a second, behind any prefix. */
static bool is_poll(const struct inquiry *a)
{
	static const char name[] = "exception_dump";
	const size_t len = sizeof name - 1;
	const uint8_t *at = a->at;
	struct span key;

	if (a->r->count != 1)
		return false;
	key = request_span(&at);
	return key.len >= len && memcmp(key.at + key.len - len, name, len) == 0;
}

static int on_check(struct inquiry *a)
{
	a->who->polls += is_poll(a);
	return say_byte(a, missing(a) == 0 ? READY : NOT_READY);
}

static int on_wait(struct inquiry *a)
{
	size_t count = missing(a);

	if (count == 0)
		return say_byte(a, STOP_WAITING);
	if (wait_begin(&a->s->keys, a->who, count) < 0)
		return out_of_memory(a);
	for (uint64_t i = 0; i < a->r->count; i++) {
		struct key *key = need_key(a);

		if (!key) {
			wait_end(&a->s->keys, a->who);
			return out_of_memory(a);
		}
		if (!key_is_there(key))
			wait_for(a->who, key);
	}
	return 0;
}

static int on_cancel_wait(struct inquiry *a)
{
	return say_byte(a, WAIT_CANCELED); /* answer() has ended the wait */
}

static int on_watch_key(struct inquiry *a)
{
	struct key *key = need_key(a);

	if (!key || watch_add(&a->s->keys, a->who, key) < 0)
		return no_memory_for(a, key);
	return say_byte(a, KEY_CALLBACK_REGISTERED);
}

static int on_queue_push(struct inquiry *a)
{
	struct key *key = need_key(a);

	if (!key || key_push(&a->s->keys, key, request_span(&a->at)) < 0)
		return no_memory_for(a, key);
	a->s->changes++;
	wake(a->s, key, true);
	return 0;
}

static int on_queue_pop(struct inquiry *a)
{
	struct key *key = keys_find(&a->s->keys, request_span(&a->at));
	int rc;

	if (!key || !key->queue_first)
		return say_number(a, 0);
	rc = say_number(a, (int64_t)key->queued);
	if (rc == 0)
		rc = say_value(a, key->queue_first);
	if (rc < 0)
		return rc;
	a->s->changes++;
	key_pop(&a->s->keys, key);
	keys_settle(&a->s->keys, key);
	return 0;
}

static int on_queue_len(struct inquiry *a)
{
	const struct key *key = keys_find(&a->s->keys, request_span(&a->at));

	return say_number(a, key ? (int64_t)key->queued : 0);
}

/* Counts who has come; all but the last wait, for whatever sets the key next. */
static int on_barrier(struct inquiry *a)
{
	struct key *key = need_key(a);
	int64_t world = request_number(&a->at), count = 0;
	char text[DIGITS];
	int rc = key ? add(a, key, 1, &count) : out_of_memory(a);

	if (rc < 0)
		return rc;
	if (count >= world)
		return say_byte(a, STOP_WAITING) < 0 ? no_memory_for(a, key) :
						       set(a, key, in_digits(count, text));
	if (wait_begin(&a->s->keys, a->who, 1) < 0 ||
		key_set(&a->s->keys, key, in_digits(count, text)) < 0) {
		wait_end(&a->s->keys, a->who);
		return no_memory_for(a, key);
	}
	wait_for(a->who, key);
	a->s->changes++;
	return 0;
}

static int (*const handlers[QUERIES])(struct inquiry *a) = {
	[QUERY_VALIDATE] = on_validate,
	[QUERY_SET] = on_set,
	[QUERY_COMPARE_SET] = on_compare_set,
	[QUERY_GET] = on_get,
	[QUERY_ADD] = on_add,
	[QUERY_CHECK] = on_check,
	[QUERY_WAIT] = on_wait,
	[QUERY_GETNUMKEYS] = on_getnumkeys,
	[QUERY_WATCH_KEY] = on_watch_key,
	[QUERY_DELETE_KEY] = on_delete_key,
	[QUERY_APPEND] = on_append,
	[QUERY_MULTI_GET] = on_multi_get,
	[QUERY_MULTI_SET] = on_multi_set,
	[QUERY_CANCEL_WAIT] = on_cancel_wait,
	[QUERY_PING] = on_ping,
	[QUERY_QUEUE_PUSH] = on_queue_push,
	[QUERY_QUEUE_POP] = on_queue_pop,
	[QUERY_QUEUE_LEN] = on_queue_len,
	[QUERY_LIST_KEYS] = on_list_keys,
	[QUERY_BARRIER] = on_barrier,
};

int answer(struct space *s, struct guest *who, const struct request *r, struct bytes *reply,
	struct failure *why)
{
	struct inquiry a = { s, who, r, r->args, reply, why };

	wait_end(&s->keys, who);
	return handlers[r->query](&a);
}

void space_clear(struct space *s)
{
	keys_clear(&s->keys);
	bytes_done(&s->push, s->budget);
}
