/* answer_waits.c - see answer.h: the queries that wait, and queues. */
#include "daemon/store/asked.h"

#include <errno.h>

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

int on_check(struct inquiry *a)
{
	return say_byte(a, missing(a) == 0 ? READY : NOT_READY);
}

int on_wait(struct inquiry *a)
{
	size_t count = missing(a);

	if (count == 0)
		return say_byte(a, STOP_WAITING);
	if (wait_begin(&a->s->keys, a->who, count) < 0)
		return out_of_memory(a);
	for (uint64_t i = 0; i < a->r->count; i++) {
		struct key *key = need_key(a, request_span(&a->at));

		if (!key) {
			wait_end(&a->s->keys, a->who);
			return -ENOMEM;
		}
		if (!key_is_there(key))
			wait_for(a->who, key);
	}
	return 0;
}

int on_cancel_wait(struct inquiry *a)
{
	return say_byte(a, WAIT_CANCELED); /* answer() has ended the wait */
}

int on_watch_key(struct inquiry *a)
{
	struct key *key = need_key(a, request_span(&a->at));

	if (!key)
		return -ENOMEM;
	if (watch_add(&a->s->keys, a->who, key) < 0) {
		keys_settle(&a->s->keys, key);
		return out_of_memory(a);
	}
	return say_byte(a, KEY_CALLBACK_REGISTERED);
}

int on_queue_push(struct inquiry *a)
{
	struct key *key = need_key(a, request_span(&a->at));

	if (!key)
		return -ENOMEM;
	if (key_push(&a->s->keys, key, request_span(&a->at)) < 0) {
		keys_settle(&a->s->keys, key);
		return out_of_memory(a);
	}
	wake(a->s, key, true);
	return 0;
}

int on_queue_pop(struct inquiry *a)
{
	struct key *key = keys_find(&a->s->keys, request_span(&a->at));
	int rc;

	if (!key || !key->queue_first)
		return say_number(a, 0);
	rc = say_number(a, (int64_t)key->queued);
	if (rc == 0)
		rc = say_span(a, (struct span){ key->queue_first->at, key->queue_first->len });
	if (rc < 0)
		return rc;
	key_pop(&a->s->keys, key);
	keys_settle(&a->s->keys, key);
	return 0;
}

int on_queue_len(struct inquiry *a)
{
	const struct key *key = keys_find(&a->s->keys, request_span(&a->at));

	return say_number(a, key ? (int64_t)key->queued : 0);
}

/* Counts who has come; all but the last wait, for whatever sets the key next. */
int on_barrier(struct inquiry *a)
{
	struct key *key = need_key(a, request_span(&a->at));
	int64_t world = request_number(&a->at), count = 0;
	char text[DIGITS];
	int rc = 0;

	if (!key)
		return -ENOMEM;
	if (key->value)
		rc = read_number(a, key, &count);
	if (rc < 0)
		return rc;
	count = sum(count, 1);
	if (count >= world && (rc = say_byte(a, STOP_WAITING)) == 0)
		return set(a, key, in_digits(count, text));
	if (rc < 0) {
		keys_settle(&a->s->keys, key);
		return rc;
	}
	if (wait_begin(&a->s->keys, a->who, 1) < 0 ||
		key_set(&a->s->keys, key, in_digits(count, text)) < 0) {
		wait_end(&a->s->keys, a->who);
		keys_settle(&a->s->keys, key);
		return out_of_memory(a);
	}
	wait_for(a->who, key);
	return 0;
}
