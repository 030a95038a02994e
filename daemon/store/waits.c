/* waits.c - see waits.h */
#include "daemon/store/waits.h"

#include <assert.h>
#include <errno.h>

#include "daemon/store/keys.h"

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
	*w = (struct wait){ .guest = g, .key = key, .before = key->wait_last };
	if (w->before)
		w->before->next = w;
	else
		key->wait_first = w;
	key->wait_last = w;
}

static void unlink_wait(struct wait *w, struct key *key)
{
	if (w->before)
		w->before->next = w->next;
	else
		key->wait_first = w->next;
	if (w->next)
		w->next->before = w->before;
	else
		key->wait_last = w->before;
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
		unlink_wait(&g->waits[i], key);
		keys_settle(k, key);
	}
	forget(k, g);
}

void wait_wake(struct keys *k, struct key *key, bool one, void (*ready)(struct guest *g, void *to),
	void *to)
{
	while (key->wait_first) {
		struct guest *g = key->wait_first->guest;

		unlink_wait(key->wait_first, key);
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
	*w = (struct watch){ g, key, NULL, key->watches, g->watches };
	if (w->next)
		w->next->before = w;
	key->watches = w;
	g->watches = w;
	return 0;
}

static void watch_remove(struct keys *k, struct watch *w)
{
	struct key *key = w->key;

	if (w->before)
		w->before->next = w->next;
	else
		key->watches = w->next;
	if (w->next)
		w->next->before = w->before;
	budget_free(k->budget, w, sizeof *w);
	keys_settle(k, key);
}

void guest_leave(struct keys *k, struct guest *g)
{
	wait_end(k, g);
	while (g->watches) {
		struct watch *w = g->watches;

		g->watches = w->of_guest;
		watch_remove(k, w);
	}
}
