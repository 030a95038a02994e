/* kept.c - see kept.h */
#include "daemon/net/kept.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 512 }; /* most messages are shorter */

uint64_t kept_sent(const struct kept *k)
{
	return k->acked + (k->end - k->begin);
}

/* Room for len bytes behind the last one: at the front there may be some that is not used. */
static int make_room(struct kept *k, size_t len)
{
	size_t used = k->end - k->begin, room = k->room ? k->room : FIRST_ROOM;
	unsigned char *at;

	if (k->room - k->end >= len)
		return 0;
	if (k->begin >= used && k->room - used >= len) {
		memcpy(k->at, k->at + k->begin, used);
	} else {
		while (room < used + len)
			room *= 2;
		at = malloc(room);
		if (!at)
			return -ENOMEM;
		if (used > 0)
			memcpy(at, k->at + k->begin, used);
		free(k->at);
		k->at = at;
		k->room = room;
	}
	k->begin = 0;
	k->end = used;
	return 0;
}

int kept_add(struct kept *k, const void *bytes, size_t len)
{
	if (len == 0)
		return 0;
	if (make_room(k, len) < 0)
		return -ENOMEM;
	memcpy(k->at + k->end, bytes, len);
	k->end += len;
	return 0;
}

int kept_ack(struct kept *k, uint64_t upto)
{
	if (upto > kept_sent(k))
		return -EPROTO;
	if (upto <= k->acked)
		return 0;
	k->begin += upto - k->acked;
	k->acked = upto;
	if (k->begin == k->end)
		kept_done(k);
	return 1;
}

size_t kept_read(const struct kept *k, uint64_t from, void *ret, size_t room)
{
	size_t len = kept_sent(k) - from;

	assert(from >= k->acked && from <= kept_sent(k));
	if (len > room)
		len = room;
	if (len > 0)
		memcpy(ret, k->at + k->begin + (from - k->acked), len);
	return len;
}

void kept_done(struct kept *k)
{
	free(k->at);
	k->at = NULL;
	k->begin = k->end = k->room = 0;
}
