/* tally.c - see tally.h */
#include "daemon/output/tally.h"

#include <stddef.h>

void tally_add(_Atomic uint64_t *count, uint64_t more)
{
	if (count)
		(void)atomic_fetch_add_explicit(count, more, memory_order_relaxed);
}

static uint64_t look(const _Atomic uint64_t *count)
{
	return atomic_load_explicit(count, memory_order_relaxed);
}

struct output_counts tally_read(const struct tally *t)
{
	struct output_counts c;

	for (int i = 0; i < 2; i++) {
		c.read_bytes[i] = look(&t->read_bytes[i]);
		c.log_bytes[i] = look(&t->log_bytes[i]);
		c.dropped_lines[i] = look(&t->dropped_lines[i]);
	}
	return c;
}
