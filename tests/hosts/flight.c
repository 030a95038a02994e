/* flight.c - see flight.h */
#include "flight.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAITING_MAX = 1 << 20 };

static _Noreturn void too_many(void)
{
	(void)fputs("netem: too many packets are under way\n", stderr);
	exit(1);
}

static bool before(const struct packet *a, const struct packet *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static void push(struct flight *f, struct packet *p)
{
	size_t at = f->waiting++;

	if (f->waiting > f->room) {
		f->room = f->room ? f->room * 2 : 1024;
		f->heap = reallocarray(f->heap, f->room, sizeof *f->heap);
		if (!f->heap)
			too_many();
	}
	for (; at > 0 && before(p, f->heap[(at - 1) / 2]); at = (at - 1) / 2)
		f->heap[at] = f->heap[(at - 1) / 2];
	f->heap[at] = p;
}

void flight_add(struct flight *f, int64_t due_ns, int to, const unsigned char *bytes, size_t size)
{
	struct packet *p = f->waiting < WAITING_MAX ? malloc(sizeof *p + size) : NULL;

	if (!p)
		too_many();
	*p = (struct packet){ due_ns, f->numbered++, (uint16_t)to, (uint16_t)size };
	memcpy(p->bytes, bytes, size);
	push(f, p);
}

int64_t flight_next_ns(const struct flight *f)
{
	return f->waiting > 0 ? f->heap[0]->due_ns : 0;
}

struct packet *flight_take(struct flight *f)
{
	struct packet *top = f->heap[0], *last = f->heap[--f->waiting];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < f->waiting) {
		if (child + 1 < f->waiting && before(f->heap[child + 1], f->heap[child]))
			child++;
		if (!before(f->heap[child], last))
			break;
		f->heap[at] = f->heap[child];
		at = child;
	}
	f->heap[at] = last;
	return top;
}
