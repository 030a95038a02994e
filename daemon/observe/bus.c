/* bus.c - see bus.h */
#include "daemon/observe/bus.h"

#include <assert.h>
#include <uv.h>

void bus_add(struct bus *b, const struct observer *o, void *owner)
{
	assert(b->count < BUS_OBSERVERS);
	b->at[b->count].observer = o;
	b->at[b->count++].owner = owner;
}

void bus_remove(struct bus *b)
{
	assert(b->count > 0);
	b->count--;
}

bool bus_wants(const struct bus *b, enum event_kind kind)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->at[i].observer->on[kind])
			return true;
	return false;
}

void bus_emit(const struct bus *b, const struct event *e)
{
	struct event dated = *e;

	if (dated.at_ns == 0)
		dated.at_ns = uv_hrtime();
	for (size_t i = 0; i < b->count; i++)
		if (b->at[i].observer->on[e->kind])
			b->at[i].observer->on[e->kind](b->at[i].owner, &dated);
}

void bus_note(const struct bus *b, enum note_level level, const char *text)
{
	bus_emit(b, &(struct event){ .kind = EVENT_NOTE, .note = { level, text } });
}
