/* test_keys.c - keys, their values and queues, and who waits for them or watches them. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/keys.h"

enum { MANY = 1000, GUESTS = 4 };

struct fixture {
	struct budget budget;
	struct keys keys;
	struct guest guests[GUESTS];
	char ready[16]; /* the guests in their order: "021" */
};

static struct span span_of(const char *text)
{
	return (struct span){ (const uint8_t *)text, strlen(text) };
}

static void make(struct fixture *f, uint64_t max)
{
	static const uint8_t secret[SIPHASH_KEY_SIZE] = { 1 };

	*f = (struct fixture){ .budget = { .max = max } };
	keys_init(&f->keys, &f->budget, secret);
}

static void done(struct fixture *f)
{
	for (size_t i = 0; i < GUESTS; i++)
		guest_leave(&f->keys, &f->guests[i]);
	keys_clear(&f->keys);
	assert_int_equal(f->keys.count, 0);
	assert_int_equal(f->keys.with_value, 0);
	assert_int_equal(f->budget.used, 0);
}

static void on_ready(struct guest *g, void *to)
{
	struct fixture *f = to;
	const char word[] = { (char)('0' + (g - f->guests)), '\0' };

	strcat(f->ready, word);
}

static void assert_value(const struct key *key, const char *text)
{
	assert_int_equal(key_value(key).len, strlen(text));
	assert_memory_equal(key_value(key).at, text, strlen(text));
}

static void test_values(void **state)
{
	struct fixture f;
	struct key *key;

	(void)state;
	make(&f, 1 << 20);
	assert_null(keys_find(&f.keys, span_of("a")));
	key = keys_need(&f.keys, span_of("a"));
	assert_ptr_equal(keys_need(&f.keys, span_of("a")), key);
	assert_false(key_is_there(key));
	assert_int_equal(key_value(key).len, 0);
	assert_int_equal(key_append(&f.keys, key, span_of("one")), 0);
	assert_int_equal(key_append(&f.keys, key, span_of(" and another that needs room")), 0);
	assert_value(key, "one and another that needs room");
	assert_int_equal(key_set(&f.keys, key, span_of("")), 0);
	assert_true(key_is_there(key)); /* an empty value is one */
	assert_int_equal(f.keys.with_value, 1);
	keys_settle(&f.keys, key);
	assert_ptr_equal(keys_find(&f.keys, span_of("a")), key);
	key_unset(&f.keys, key);
	key_unset(&f.keys, key);
	assert_int_equal(f.keys.with_value, 0);
	keys_settle(&f.keys, key);
	assert_null(keys_find(&f.keys, span_of("a")));
	done(&f);
}

static int count_one(const struct key *key, void *to)
{
	(void)key;
	return ++*(int *)to == MANY / 2 ? -EINTR : 0;
}

static void test_many(void **state)
{
	struct fixture f;
	char name[16];
	int seen = 0;

	(void)state;
	make(&f, 1 << 20);
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof name, "key %d", i);
		assert_int_equal(
			key_set(&f.keys, keys_need(&f.keys, span_of(name)), span_of(name)), 0);
	}
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof name, "key %d", i);
		assert_value(keys_find(&f.keys, span_of(name)), name);
	}
	assert_int_equal(f.keys.count, MANY);
	assert_int_equal(keys_each(&f.keys, count_one, &seen), -EINTR);
	assert_int_equal(seen, MANY / 2);
	assert_int_equal(keys_each(&f.keys, count_one, &seen), 0);
	assert_int_equal(seen, MANY / 2 + MANY);
	done(&f);
}

static void test_no_memory(void **state)
{
	static char large[9990];
	struct fixture f;
	struct key *key;

	(void)state;
	memset(large, 'x', sizeof large - 1);
	make(&f, 10000);
	key = keys_need(&f.keys, span_of("a"));
	assert_int_equal(key_set(&f.keys, key, span_of("old")), 0);
	assert_int_equal(key_set(&f.keys, key, span_of(large)), -ENOMEM);
	assert_int_equal(key_append(&f.keys, key, span_of(large)), -ENOMEM);
	assert_int_equal(key_push(&f.keys, key, span_of(large)), -ENOMEM);
	assert_value(key, "old");
	assert_null(keys_need(&f.keys, span_of(large)));
	done(&f);
}

static void test_queue(void **state)
{
	struct fixture f;
	struct key *key;

	(void)state;
	make(&f, 1 << 20);
	key = keys_need(&f.keys, span_of("q"));
	key_pop(&f.keys, key);
	assert_int_equal(key_push(&f.keys, key, span_of("first")), 0);
	assert_int_equal(key_push(&f.keys, key, span_of("second")), 0);
	assert_true(key_is_there(key));
	assert_int_equal(f.keys.with_value, 0);
	assert_int_equal(key->queued, 2);
	assert_memory_equal(key->queue_first->at, "first", 5);
	key_pop(&f.keys, key);
	assert_memory_equal(key->queue_first->at, "second", 6);
	key_pop(&f.keys, key);
	assert_null(key->queue_last);
	assert_false(key_is_there(key));
	keys_settle(&f.keys, key);
	done(&f);
}

static void wait_for_one(struct fixture *f, unsigned guest, const char *name)
{
	assert_int_equal(wait_begin(&f->keys, &f->guests[guest], 1), 0);
	wait_for(&f->guests[guest], keys_need(&f->keys, span_of(name)));
}

static void wait_for_two(struct fixture *f, unsigned guest)
{
	assert_int_equal(wait_begin(&f->keys, &f->guests[guest], 2), 0);
	wait_for(&f->guests[guest], keys_need(&f->keys, span_of("a")));
	wait_for(&f->guests[guest], keys_need(&f->keys, span_of("b")));
}

static struct key *come(struct fixture *f, const char *name, bool one)
{
	struct key *key = keys_need(&f->keys, span_of(name));

	assert_int_equal(key_set(&f->keys, key, span_of("v")), 0);
	wait_wake(&f->keys, key, one, on_ready, f);
	return key;
}

static void test_waits(void **state)
{
	struct fixture f;

	(void)state;
	make(&f, 1 << 20);
	wait_for_one(&f, 1, "a");
	wait_for_two(&f, 0);
	wait_for_one(&f, 2, "a");
	wait_for_one(&f, 3, "b");
	(void)come(&f, "a", false);
	assert_string_equal(f.ready, "12"); /* the oldest first; 0 waits for b, too */
	wait_end(&f.keys, &f.guests[3]);
	wait_end(&f.keys, &f.guests[3]);
	(void)come(&f, "b", false);
	assert_string_equal(f.ready, "120");
	done(&f);
}

static void test_wakes_one(void **state)
{
	struct fixture f;

	(void)state;
	make(&f, 1 << 20);
	wait_for_two(&f, 0); /* its last key has not come, so that it takes nothing */
	wait_for_one(&f, 1, "a");
	wait_for_one(&f, 2, "a");
	(void)come(&f, "a", true);
	assert_string_equal(f.ready, "1");
	done(&f);
}

static void test_leaves(void **state)
{
	struct fixture f;
	struct key *key;
	const struct watch *w;

	(void)state;
	make(&f, 1 << 20);
	key = keys_need(&f.keys, span_of("a"));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(watch_add(&f.keys, &f.guests[i], key), 0);
	assert_int_equal(watch_add(&f.keys, &f.guests[1], keys_need(&f.keys, span_of("b"))), 0);
	wait_for_one(&f, 1, "c");
	guest_leave(&f.keys, &f.guests[1]);
	assert_int_equal(f.keys.count, 1); /* nobody needs the others */
	w = LIST_FIRST(&key->watches);
	assert_ptr_equal(w->guest, &f.guests[2]);
	w = LIST_NEXT(w, of_key);
	assert_ptr_equal(w->guest, &f.guests[0]);
	assert_null(LIST_NEXT(w, of_key));
	done(&f);
}

TESTS(keys)
{
	static struct suite s;

	suite_add(&s, "a value is set, appended to and taken away", test_values, NULL, NULL);
	suite_add(&s, "many keys are found again", test_many, NULL, NULL);
	suite_add(&s, "without memory all stays as it was", test_no_memory, NULL, NULL);
	suite_add(&s, "what is queued first comes first", test_queue, NULL, NULL);
	suite_add(&s, "those who wait go on when their last key comes", test_waits, NULL, NULL);
	suite_add(&s, "one of those who wait goes on", test_wakes_one, NULL, NULL);
	suite_add(&s, "who leaves neither waits nor watches any more", test_leaves, NULL, NULL);
	return suite_run(&s);
}
