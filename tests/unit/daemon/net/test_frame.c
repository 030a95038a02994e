/* test_frame.c - frames cut out of a stream, in whatever pieces it comes, and refused when anyone
 * has touched them. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/net/frame.h"
#include "daemon/net/sodium.h"

enum { LENGTHS = 5 };

static const size_t lengths[LENGTHS] = { 0, 1, 300, 20000, 7 };

struct bytes {
	unsigned char *at;
	size_t len;
};

static struct frame_key key_make(const struct sodium *sodium, char fill)
{
	struct frame_key k = { .sodium = sodium };

	memset(k.bytes, fill, sizeof k.bytes);
	return k;
}

/* Frames of types 16, 17, … with payloads of these lengths, each filled with its type. */
static struct bytes frames_make(struct frame_key *key, const size_t *lens, size_t count)
{
	struct bytes b = { calloc(1, 1 << 21), 0 };
	unsigned char *payload = malloc(1 << 20), *room = malloc((1 << 20) + 64);

	assert_true(b.at && payload && room);
	for (size_t i = 0; i < count; i++) {
		const unsigned char *frame;

		memset(payload, (int)(FRAME_OWNER + i), lens[i]);
		frame = frame_write(key, (unsigned)(FRAME_OWNER + i), payload, lens[i], room);
		memcpy(b.at + b.len, frame, frame_size(key, lens[i]));
		b.len += frame_size(key, lens[i]);
	}
	free(payload);
	free(room);
	return b;
}

static void feed(struct frame_stream *s, const unsigned char *bytes, size_t len)
{
	while (len > 0) {
		unsigned char *at;
		size_t room, n;

		assert_int_equal(frame_stream_room(s, &at, &room), 0);
		n = len < room ? len : room;
		memcpy(at, bytes, n);
		frame_stream_fed(s, n);
		bytes += n;
		len -= n;
	}
}

static void assert_filled(const struct frame *f)
{
	for (size_t i = 0; i < f->len; i++)
		assert_int_equal(f->payload[i], f->type);
}

static const struct piece_row {
	const char *says;
	size_t piece;
	bool keyed;
} pieces[] = {
	{ "byte by byte", 1, false },
	{ "byte by byte, with a key", 1, true },
	{ "in pieces of 7 bytes, with a key", 7, true },
	{ "in pieces of 1000 bytes, with a key", 1000, true },
	{ "all at once", 1 << 20, false },
	{ "all at once, with a key", 1 << 20, true },
};

static void test_pieces(void **state)
{
	const struct piece_row *row = *state;
	struct sodium sodium;
	struct failure why = { 0 };
	struct frame_key out;
	struct frame_stream s = { .max = FRAME_MAX };
	struct bytes b;
	struct frame f;
	size_t seen = 0;
	int rc;

	assert_int_equal(sodium_load(&sodium, &why), 0);
	out = s.key = key_make(row->keyed ? &sodium : NULL, 'k');
	b = frames_make(&out, lengths, LENGTHS);
	for (size_t at = 0; at < b.len; at += row->piece) {
		feed(&s, b.at + at, b.len - at < row->piece ? b.len - at : row->piece);
		while ((rc = frame_stream_next(&s, &f)) > 0) {
			assert_int_equal(f.type, FRAME_OWNER + seen);
			assert_int_equal(f.len, lengths[seen]);
			assert_filled(&f);
			seen++;
		}
		assert_int_equal(rc, 0);
		assert_true(s.room <= 2 * (s.end - s.begin) + (8 << 10)); /* flat while waiting */
	}
	assert_int_equal(seen, LENGTHS);
	assert_null(s.at); /* nothing is kept for nothing */
	free(b.at);
}

enum change { FLIP, SWAP, REPEAT, DROP, OTHER_KEY, NO_CHANGE };

static const struct change_row {
	const char *says;
	enum change change;
	size_t at; /* of the byte that is flipped */
	int good;  /* frames before it is seen */
	int rc;
} changes[] = {
	{ "nothing is changed", NO_CHANGE, 0, 3, 0 },
	{ "another type", FLIP, 4, 0, -EBADMSG },
	{ "another length that fits", FLIP, 0, 0, -EBADMSG },
	{ "flags that nobody has defined", FLIP, 5, 0, -EPROTO },
	{ "another payload", FLIP, 8, 0, -EBADMSG },
	{ "another tag", FLIP, 12, 0, -EBADMSG },
	{ "the second frame's payload", FLIP, 28 + 8, 1, -EBADMSG },
	{ "two frames in the wrong order", SWAP, 0, 0, -EBADMSG },
	{ "a frame again", REPEAT, 0, 1, -EBADMSG },
	{ "a frame left out", DROP, 0, 0, -EBADMSG },
	{ "a key that is not ours", OTHER_KEY, 0, 0, -EBADMSG },
};

/* Three frames of 4 bytes: 28 bytes each. */
static void apply(enum change change, size_t at, struct bytes *b)
{
	unsigned char first[28];

	memcpy(first, b->at, sizeof first);
	if (change == FLIP)
		b->at[at] ^= 1;
	if (change == SWAP || change == DROP)
		memmove(b->at, b->at + 28, change == SWAP ? 28 : 56);
	if (change == SWAP || change == REPEAT)
		memcpy(b->at + 28, first, sizeof first);
	if (change == DROP)
		b->len -= 28;
}

static void test_change(void **state)
{
	static const size_t lens[] = { 4, 4, 4 };
	const struct change_row *row = *state;
	struct sodium sodium;
	struct failure why = { 0 };
	struct frame_stream s = { .max = FRAME_MAX };
	struct frame_key out;
	struct bytes b;
	struct frame f;
	int good = 0, rc;

	assert_int_equal(sodium_load(&sodium, &why), 0);
	s.key = key_make(&sodium, 'k');
	out = key_make(&sodium, row->change == OTHER_KEY ? 'o' : 'k');
	b = frames_make(&out, lens, 3);
	assert_int_equal(b.len, 84);
	apply(row->change, row->at, &b);
	feed(&s, b.at, b.len);
	while ((rc = frame_stream_next(&s, &f)) > 0)
		good++;
	assert_int_equal(good, row->good);
	assert_int_equal(rc, row->rc);
	frame_stream_done(&s);
	free(b.at);
}

static void test_too_long(void **state)
{
	static const unsigned char header[8] = { 0xff, 0xff, 0xff, 0xff, 16 };
	static const size_t fits = FRAME_EARLY_MAX, too_long = FRAME_EARLY_MAX + 1;
	struct frame_stream s = { .max = FRAME_EARLY_MAX };
	struct frame_key out = { 0 };
	struct bytes b = frames_make(&out, &fits, 1);
	struct frame f;

	(void)state;
	feed(&s, b.at, b.len);
	assert_int_equal(frame_stream_next(&s, &f), 1);
	free(b.at);
	b = frames_make(&out, &too_long, 1);
	feed(&s, b.at, FRAME_HEADER); /* the header is enough */
	assert_int_equal(frame_stream_next(&s, &f), -EMSGSIZE);
	frame_stream_done(&s);
	free(b.at);
	feed(&s, header, sizeof header);
	assert_int_equal(frame_stream_next(&s, &f), -EMSGSIZE);
	frame_stream_done(&s);
}

/* What is announced costs nothing before it comes. */
static void test_announced(void **state)
{
	static const unsigned char header[9] = { 0, 0, 0x10, 0, 16 };
	struct frame_stream s = { .max = FRAME_MAX };
	struct frame f;

	(void)state;
	feed(&s, header, sizeof header);
	assert_int_equal(frame_stream_next(&s, &f), 0);
	assert_true(s.room <= 8 << 10);
	frame_stream_done(&s);
}

static void test_largest(void **state)
{
	static const size_t largest = FRAME_MAX;
	struct frame_stream s = { .max = FRAME_MAX };
	struct frame_key out = { 0 };
	struct bytes b = frames_make(&out, &largest, 1);
	struct frame f;

	(void)state;
	feed(&s, b.at, b.len);
	assert_int_equal(frame_stream_next(&s, &f), 1);
	assert_int_equal(f.len, FRAME_MAX);
	assert_filled(&f);
	assert_int_equal(frame_stream_next(&s, &f), 0);
	assert_null(s.at);
	free(b.at);
}

static void test_fed_nothing(void **state)
{
	struct frame_stream s = { .max = FRAME_MAX };
	unsigned char *at;
	size_t room;

	(void)state;
	assert_int_equal(frame_stream_room(&s, &at, &room), 0);
	assert_true(room > 0);
	frame_stream_fed(&s, 0);
	assert_null(s.at);
}

TESTS(frame)
{
	static struct suite s;

	SUITE_ROWS(&s, test_pieces, pieces);
	SUITE_ROWS(&s, test_change, changes);
	suite_add(&s, "a payload longer than allowed is refused by its header", test_too_long, NULL,
		NULL);
	suite_add(&s, "memory grows with what has come only", test_announced, NULL, NULL);
	suite_add(&s, "a payload of FRAME_MAX bytes passes", test_largest, NULL, NULL);
	suite_add(&s, "memory for reading is given back unused", test_fed_nothing, NULL, NULL);
	return suite_run(&s);
}
