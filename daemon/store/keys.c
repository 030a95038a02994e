/* keys.c - see keys.h */
#include "daemon/store/keys.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { BUCKETS_MIN = 64 };

void keys_init(struct keys *k, struct budget *budget, const uint8_t secret[SIPHASH_KEY_SIZE])
{
	*k = (struct keys){ .budget = budget };
	memcpy(k->secret, secret, sizeof k->secret);
}

static struct key **bucket_of(const struct keys *k, uint64_t hash)
{
	return &k->buckets[hash & (k->bucket_count - 1)];
}

static struct key *find(const struct keys *k, struct span name, uint64_t hash)
{
	if (!k->buckets)
		return NULL;
	for (struct key *key = *bucket_of(k, hash); key; key = key->next)
		if (key->hash == hash && key->len == name.len &&
			memcmp(key->name, name.at, name.len) == 0)
			return key;
	return NULL;
}

struct key *keys_find(const struct keys *k, struct span name)
{
	return find(k, name, siphash(k->secret, name.at, name.len));
}

/* Twice as many buckets; without memory for them the chains become longer. */
static void grow(struct keys *k)
{
	const size_t was = k->bucket_count;
	const size_t count = was ? 2 * was : BUCKETS_MIN;
	struct key **buckets = budget_alloc(k->budget, count * sizeof *buckets);
	struct key **old = k->buckets;

	if (!buckets)
		return;
	memset((void *)buckets, 0, count * sizeof *buckets);
	k->buckets = buckets;
	k->bucket_count = count;
	for (size_t i = 0; i < was; i++)
		for (struct key *key = old[i], *next; key; key = next) {
			struct key **to = bucket_of(k, key->hash);

			next = key->next;
			key->next = *to;
			*to = key;
		}
	budget_free(k->budget, (void *)old, was * sizeof *old);
}

struct key *keys_need(struct keys *k, struct span name)
{
	const uint64_t hash = siphash(k->secret, name.at, name.len);
	struct key *key = find(k, name, hash), **bucket;

	if (key)
		return key;
	if (k->count >= k->bucket_count)
		grow(k);
	if (!k->buckets)
		return NULL;
	key = budget_alloc(k->budget, sizeof *key + name.len);
	if (!key)
		return NULL;
	bucket = bucket_of(k, hash);
	*key = (struct key){ .next = *bucket, .hash = hash, .len = name.len };
	TAILQ_INIT(&key->waits);
	if (name.len > 0)
		memcpy(key->name, name.at, name.len);
	*bucket = key;
	k->count++;
	return key;
}

static void free_key(struct keys *k, struct key *key)
{
	while (key->queue_first)
		key_pop(k, key);
	key_unset(k, key);
	budget_free(k->budget, key, sizeof *key + key->len);
	k->count--;
}

void keys_settle(struct keys *k, struct key *key)
{
	struct key **at = bucket_of(k, key->hash);

	if (key->value || key->queue_first || !TAILQ_EMPTY(&key->waits) ||
		!LIST_EMPTY(&key->watches))
		return;
	while (*at != key)
		at = &(*at)->next;
	*at = key->next;
	free_key(k, key);
}

void keys_clear(struct keys *k)
{
	for (size_t i = 0; i < k->bucket_count; i++)
		for (struct key *key = k->buckets[i], *next; key; key = next) {
			next = key->next;
			free_key(k, key);
		}
	budget_free(k->budget, (void *)k->buckets, k->bucket_count * sizeof *k->buckets);
	k->buckets = NULL;
	k->bucket_count = 0;
}

int key_set(struct keys *k, struct key *key, struct span value)
{
	const bool had = key->value != NULL;

	if (blob_set(&key->value, k->budget, value.at, value.len) < 0)
		return -ENOMEM;
	k->with_value += !had;
	return 0;
}

int key_append(struct keys *k, struct key *key, struct span more)
{
	const bool had = key->value != NULL;

	if (blob_add(&key->value, k->budget, more.at, more.len) < 0)
		return -ENOMEM;
	k->with_value += !had;
	return 0;
}

void key_unset(struct keys *k, struct key *key)
{
	if (!key->value)
		return;
	blob_drop(key->value, k->budget);
	key->value = NULL;
	k->with_value--;
}

struct span key_value(const struct key *key)
{
	return key && key->value ? (struct span){ key->value->at, key->value->len } :
				   (struct span){ NULL, 0 };
}

int key_push(struct keys *k, struct key *key, struct span value)
{
	struct blob *v = NULL;

	if (blob_set(&v, k->budget, value.at, value.len) < 0)
		return -ENOMEM;
	if (key->queue_last)
		key->queue_last->next = v;
	else
		key->queue_first = v;
	key->queue_last = v;
	key->queued++;
	return 0;
}

void key_pop(struct keys *k, struct key *key)
{
	struct blob *v = key->queue_first;

	if (!v)
		return;
	key->queue_first = v->next;
	if (!v->next)
		key->queue_last = NULL;
	key->queued--;
	blob_drop(v, k->budget);
}

bool key_is_there(const struct key *key)
{
	return key->value || key->queue_first;
}

int keys_each(const struct keys *k, int (*see)(const struct key *key, void *to), void *to)
{
	int rc = 0;

	for (size_t i = 0; i < k->bucket_count && rc == 0; i++)
		for (const struct key *key = k->buckets[i]; key && rc == 0; key = key->next)
			if (key->value)
				rc = see(key, to);
	return rc;
}

/* --- who waits and who watches --- */

int wait_begin(struct keys *k, struct guest *g, size_t room)
{
	assert(!g->waits && room > 0);
	g->waits = room == 1 ? &g->one : budget_alloc(k->budget, room * sizeof *g->waits);
	g->room = room;
	g->filled = g->awaited = 0;
	return g->waits ? 0 : -ENOMEM;
}

void wait_for(struct guest *g, struct key *key)
{
	struct wait *w = &g->waits[g->filled++];

	assert(g->filled <= g->room);
	g->awaited++;
	*w = (struct wait){ .guest = g, .key = key };
	TAILQ_INSERT_TAIL(&key->waits, w, of_key);
}

static void unlink_wait(struct wait *w)
{
	TAILQ_REMOVE(&w->key->waits, w, of_key);
	w->key = NULL;
}

static void forget(struct keys *k, struct guest *g)
{
	if (g->waits != &g->one)
		budget_free(k->budget, g->waits, g->room * sizeof *g->waits);
	g->waits = NULL;
	g->room = g->filled = g->awaited = 0;
}

void wait_end(struct keys *k, struct guest *g)
{
	if (!g->waits)
		return;
	for (size_t i = 0; i < g->filled; i++) {
		struct key *key = g->waits[i].key;

		if (!key)
			continue;
		unlink_wait(&g->waits[i]);
		keys_settle(k, key);
	}
	forget(k, g);
}

void wait_wake(struct keys *k, struct key *key, bool one, void (*ready)(struct guest *g, void *to),
	void *to)
{
	struct wait *w;

	while ((w = TAILQ_FIRST(&key->waits))) {
		struct guest *g = w->guest;

		unlink_wait(w);
		if (--g->awaited > 0)
			continue;
		forget(k, g);
		ready(g, to);
		if (one)
			return;
	}
}

int watch_add(struct keys *k, struct guest *g, struct key *key)
{
	struct watch *w = budget_alloc(k->budget, sizeof *w);

	if (!w)
		return -ENOMEM;
	*w = (struct watch){ .guest = g, .key = key };
	LIST_INSERT_HEAD(&key->watches, w, of_key);
	SLIST_INSERT_HEAD(&g->watches, w, of_guest);
	return 0;
}

void guest_leave(struct keys *k, struct guest *g)
{
	struct watch *w;

	wait_end(k, g);
	while ((w = SLIST_FIRST(&g->watches))) {
		struct key *key = w->key;

		SLIST_REMOVE_HEAD(&g->watches, of_guest);
		LIST_REMOVE(w, of_key);
		budget_free(k->budget, w, sizeof *w);
		keys_settle(k, key);
	}
}
