/* message_log.c - lines of workers on their way to node rank 0's console; see message.h */
#include "daemon/cluster/message.h"

#include <assert.h>
#include <errno.h>

#include "daemon/cluster/message_wire.h"

enum { STDOUT = 1, STDERR = 2 };

void message_put_log(struct wire_out *out, int stream, const char *at, size_t len)
{
	assert((stream == STDOUT || stream == STDERR) && len > 0 && len <= MESSAGE_LOG_MAX);
	wire_put_u8(out, (uint8_t)stream);
	wire_put_raw(out, at, len);
}

int message_get_log(
	const unsigned char *at, size_t len, int *ret_stream, const char **ret, size_t *ret_len)
{
	struct wire_in w = wire_from(at, len);
	unsigned stream = wire_get_below(&w, STDERR + 1);
	size_t left = w.left;
	const unsigned char *bytes = wire_get_raw(&w, left);

	if (!wire_is_read(&w) || stream == 0 || left == 0 || left > MESSAGE_LOG_MAX)
		return -EPROTO;
	*ret_stream = (int)stream;
	*ret = (const char *)bytes;
	*ret_len = left;
	return 0;
}

void message_put_log_room(struct wire_out *out, size_t bytes)
{
	assert(bytes > 0 && bytes <= MESSAGE_LOG_ROOM_MAX);
	wire_put_u32(out, (uint32_t)bytes);
}

int message_get_log_room(const unsigned char *at, size_t len, size_t *ret)
{
	struct wire_in w = wire_from(at, len);
	uint32_t bytes = wire_get_u32(&w);

	if (!wire_is_read(&w) || bytes == 0 || bytes > MESSAGE_LOG_ROOM_MAX)
		return -EPROTO;
	*ret = bytes;
	return 0;
}
