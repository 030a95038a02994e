/* fuzz_store.c - the store's clients, from any bytes: the parser and the keys behind it.
 *
 * The first byte is the dialect of old clients. Then come events: a byte whose low three bits name
 * a client, whose next two say what it does (0, 1: sends, 2: sends a greeting first where it is
 * new, 3: goes), and whose other three bits with the byte behind give the number of bytes it sends.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/daemon/store/store_sim.h"

enum { MEMORY = 1 << 20 };

static const uint8_t hello[] = { 0x00, 0xce, 0xf7, 0x85, 0x3c };

/* What holds after every event. */
static void check(const struct sim *sim)
{
	uint64_t with_value = 0, waits = 0, watches = 0, of_guests = 0;
	size_t count = 0;

	PROMISE(sim->budget.used <= sim->budget.max);
	for (size_t i = 0; i < sim->space.keys.bucket_count; i++)
		for (const struct key *k = sim->space.keys.buckets[i]; k; k = k->next) {
			uint64_t queued = 0;

			count++;
			with_value += k->value != NULL;
			for (const struct blob *b = k->queue_first; b; b = b->next)
				queued++;
			for (const struct wait *w = TAILQ_FIRST(&k->waits); w;
				w = TAILQ_NEXT(w, of_key), waits++)
				PROMISE(w->key == k);
			for (const struct watch *w = LIST_FIRST(&k->watches); w;
				w = LIST_NEXT(w, of_key), watches++)
				PROMISE(w->key == k);
			PROMISE(queued == k->queued);
			PROMISE(k->value || k->queue_first || !TAILQ_EMPTY(&k->waits) ||
				!LIST_EMPTY(&k->watches));
		}
	PROMISE(count == sim->space.keys.count);
	PROMISE(with_value == sim->space.keys.with_value);
	for (size_t i = 0; i < SIM_CLIENTS; i++) {
		const struct sim_client *c = &sim->at[i];

		PROMISE((c->guest.waits == NULL) == (c->guest.awaited == 0));
		PROMISE(c->why.code == 0 ||
			(!c->guest.waits && SLIST_EMPTY(&c->guest.watches) && !c->in.at));
		of_guests += c->guest.awaited;
		for (const struct watch *w = SLIST_FIRST(&c->guest.watches); w;
			w = SLIST_NEXT(w, of_guest))
			watches--;
	}
	PROMISE(waits == of_guests && watches == 0);
	PROMISE(sim->space.push.len == 0);
}

/* The same bytes one by one say the same as at once. */
static void compare(enum store_dialect old, const uint8_t *bytes, size_t len)
{
	struct sim whole, parts;

	sim_init(&whole, old, 16 * MEMORY);
	sim_init(&parts, old, 16 * MEMORY);
	sim_feed(&whole, 0, bytes, len);
	for (size_t i = 0; i < len; i++)
		sim_feed(&parts, 0, bytes + i, 1);
	PROMISE(whole.at[0].why.code == parts.at[0].why.code);
	PROMISE(whole.at[0].out.len == parts.at[0].out.len);
	PROMISE(whole.at[0].out.len == 0 ||
		memcmp(whole.at[0].out.at, parts.at[0].out.at, whole.at[0].out.len) == 0);
	check(&whole);
	check(&parts);
	sim_done(&whole);
	sim_done(&parts);
	PROMISE(whole.budget.used == 0 && parts.budget.used == 0);
}

static void play(struct sim *sim, const uint8_t *bytes, size_t len)
{
	while (len > 1) {
		const unsigned client = bytes[0] & 7U, what = bytes[0] >> 3 & 3U;
		size_t n = (size_t)(bytes[0] >> 5) << 8 | bytes[1];

		bytes += 2;
		len -= 2;
		if (n > len)
			n = len;
		if (what == 3) {
			sim_replace(sim, client);
			n = 0;
		} else {
			uint8_t *exact = malloc(n + 1);

			PROMISE(exact != NULL);
			memcpy(exact, bytes, n);
			if (what == 2 && sim->at[client].scan.dialect == STORE_DIALECT_NONE)
				sim_feed(sim, client, hello, sizeof hello);
			sim_feed(sim, client, exact, n);
			free(exact);
		}
		text_done(&sim->at[client].out);
		check(sim);
		bytes += n;
		len -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const enum store_dialect dialects[] = { STORE_DIALECT_NONE, STORE_DIALECT_A,
		STORE_DIALECT_C, STORE_DIALECT_A };
	struct sim sim;

	if (len == 0)
		return 0;
	sim_init(&sim, dialects[bytes[0] & 3U], MEMORY);
	play(&sim, bytes + 1, len - 1);
	sim_done(&sim);
	PROMISE(sim.budget.used == 0);
	compare(dialects[bytes[0] & 3U], bytes + 1, len - 1);
	return 0;
}
