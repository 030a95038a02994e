/* frame.c - see frame.h */
#include "daemon/net/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/net/sodium.h"

enum {
	FIRST_ROOM = 16 << 10, /* held only while bytes are being read */
	MORE_ROOM = 4 << 10,
};

static void put_le(unsigned char *at, uint64_t value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (unsigned char)(value >> (8 * i));
}

size_t frame_size(const struct frame_key *key, size_t len)
{
	return FRAME_HEADER + len + (key->sodium ? FRAME_TAG : 0);
}

/* The tag of a frame of so many bytes without it. Its number is written into the bytes before it,
 * so that all lies in one piece. */
static void make_tag(
	const struct frame_key *key, unsigned char *frame, size_t len, unsigned char ret[FRAME_TAG])
{
	put_le(frame - FRAME_LEAD, key->number, FRAME_LEAD);
	(void)key->sodium->generichash(
		ret, FRAME_TAG, frame - FRAME_LEAD, FRAME_LEAD + len, key->bytes, FRAME_KEY);
}

unsigned char *frame_write(
	struct frame_key *key, unsigned type, const void *payload, size_t len, unsigned char *ret)
{
	unsigned char *frame = ret + FRAME_LEAD;

	put_le(frame, len, 4);
	put_le(frame + 4, type, 4); /* and zeros */
	if (len > 0)
		memcpy(frame + FRAME_HEADER, payload, len);
	if (key->sodium)
		make_tag(key, frame, FRAME_HEADER + len, frame + FRAME_HEADER + len);
	key->number++;
	return frame;
}

int frame_stream_room(struct frame_stream *s, unsigned char **ret, size_t *ret_len)
{
	if (s->room - s->end < MORE_ROOM) {
		size_t room = 2 * s->room < FIRST_ROOM ? FIRST_ROOM : 2 * s->room;
		unsigned char *at = realloc(s->at, room);

		if (!at)
			return -ENOMEM;
		if (!s->at)
			s->begin = s->end = FRAME_LEAD;
		s->at = at;
		s->room = room;
	}
	*ret = s->at + s->end;
	*ret_len = s->room - s->end;
	return 0;
}

/* Moves what is left to the front, and gives back the memory behind it. */
static void compact(struct frame_stream *s)
{
	size_t len = s->end - s->begin;
	unsigned char *at;

	if (len == 0) {
		frame_stream_done(s);
		return;
	}
	memmove(s->at + FRAME_LEAD, s->at + s->begin, len);
	s->begin = FRAME_LEAD;
	s->end = FRAME_LEAD + len;
	if (s->room <= 2 * s->end + MORE_ROOM)
		return;
	at = realloc(s->at, s->end); /* where that fails, what is there is good */
	if (at) {
		s->at = at;
		s->room = s->end;
	}
}

void frame_stream_fed(struct frame_stream *s, size_t len)
{
	s->end += len;
	if (len == 0)
		compact(s);
}

static uint32_t payload_len(const unsigned char *h)
{
	return h[0] | (uint32_t)h[1] << 8 | (uint32_t)h[2] << 16 | (uint32_t)h[3] << 24;
}

static int check_tag(const struct frame_key *key, unsigned char *frame, size_t len)
{
	unsigned char tag[FRAME_TAG];

	make_tag(key, frame, len, tag);
	return key->sodium->memcmp(tag, frame + len, FRAME_TAG) == 0 ? 0 : -EBADMSG;
}

int frame_stream_next(struct frame_stream *s, struct frame *ret)
{
	unsigned char *frame = s->at ? s->at + s->begin : NULL;
	size_t have = s->end - s->begin, len;

	if (frame && have >= FRAME_HEADER) {
		len = payload_len(frame);
		if (frame[5] != 0 || frame[6] != 0 || frame[7] != 0)
			return -EPROTO;
		if (len > s->max)
			return -EMSGSIZE;
		if (have >= frame_size(&s->key, len)) {
			if (s->key.sodium && check_tag(&s->key, frame, FRAME_HEADER + len) < 0)
				return -EBADMSG;
			s->key.number++;
			s->begin += frame_size(&s->key, len);
			*ret = (struct frame){ frame[4], frame + FRAME_HEADER, len };
			return 1;
		}
	}
	if (s->at)
		compact(s);
	return 0;
}

void frame_stream_done(struct frame_stream *s)
{
	free(s->at);
	s->at = NULL;
	s->begin = s->end = s->room = 0;
}
