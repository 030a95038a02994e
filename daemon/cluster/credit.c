/* credit.c - see credit.h */
#include "daemon/cluster/credit.h"

#include <assert.h>

#include "daemon/cluster/message.h"

enum { PARTS = 4 };

size_t credit_for(unsigned nodes)
{
	size_t each = nodes > 0 ? CREDIT_TOTAL / nodes : MESSAGE_LOG_ROOM_MAX;

	if (each > MESSAGE_LOG_ROOM_MAX)
		return MESSAGE_LOG_ROOM_MAX;
	return each < CREDIT_MIN ? CREDIT_MIN : each;
}

struct credit credit_open(size_t whole)
{
	return (struct credit){ .whole = whole, .left = whole };
}

size_t credit_room(const struct credit *c)
{
	if (c->left < c->whole / PARTS)
		return 0;
	return c->left < MESSAGE_LOG_MAX ? c->left : MESSAGE_LOG_MAX;
}

bool credit_spend(struct credit *c, size_t len)
{
	if (len > c->left)
		return false;
	c->left -= len;
	return true;
}

size_t credit_take(struct credit *c, size_t len)
{
	size_t give = 0;

	assert(len <= c->whole - c->left - c->taken);
	c->taken += len;
	if (c->taken >= c->whole / PARTS) {
		give = c->taken;
		c->left += give;
		c->taken = 0;
	}
	return give;
}

bool credit_give(struct credit *c, size_t len)
{
	if (len > c->whole - c->left)
		return false;
	c->left += len;
	return true;
}
