/* test_datagram.c - beats, pieces and notices as bytes, and their tags. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/failure.h"
#include "daemon/net/datagram.h"
#include "daemon/net/sodium.h"

static const struct beat_body beat = { 1, 2, 3, UINT64_MAX, 5, 6, 7, true, false, true };

static void test_beat_body(void **state)
{
	unsigned char bytes[BEAT_BODY];
	struct beat_body b = { 0 };

	(void)state;
	beat_body_write(&beat, bytes);
	assert_int_equal(beat_body_read(bytes, sizeof bytes, &b), 0);
	assert_true(b.session == 1 && b.sequence == 2 && b.sent_ns == 3 && b.udp_heard);
	assert_true(b.echo_ns == UINT64_MAX && b.received_ns == 5);
	assert_true(b.sent == 6 && b.taken == 7 && !b.tcp_behind && b.lost);
	for (size_t len = 0; len < sizeof bytes; len++)
		assert_int_equal(beat_body_read(bytes, len, &b), -EPROTO);
	bytes[4] = 8; /* a flag that nobody knows */
	assert_int_equal(beat_body_read(bytes, sizeof bytes, &b), -EPROTO);
	beat_body_write(&beat, bytes);
	bytes[0] = 'X';
	assert_int_equal(beat_body_read(bytes, sizeof bytes, &b), -EPROTO);
}

static void test_seal(void **state)
{
	struct sodium sodium;
	struct failure why = { 0 };
	unsigned char secret[FRAME_KEY] = "secret", d[BEAT_DATAGRAM];

	(void)state;
	assert_int_equal(sodium_load(&sodium, &why), 0);
	beat_body_write(&beat, d);
	datagram_seal(&sodium, secret, d, BEAT_BODY);
	assert_true(datagram_is_sealed(&sodium, secret, d, BEAT_BODY));
	for (size_t i = 0; i < 8 * sizeof d; i++) {
		d[i / 8] ^= (unsigned char)(1 << i % 8);
		assert_false(datagram_is_sealed(&sodium, secret, d, BEAT_BODY));
		d[i / 8] ^= (unsigned char)(1 << i % 8);
	}
	secret[31] = 1;
	assert_false(datagram_is_sealed(&sodium, secret, d, BEAT_BODY));
	datagram_seal(NULL, secret, d, BEAT_BODY);
	assert_true(datagram_is_sealed(NULL, secret, d, BEAT_BODY));
	secret[15] = 1;
	assert_false(datagram_is_sealed(NULL, secret, d, BEAT_BODY));
}

static void test_piece(void **state)
{
	static const unsigned char bytes[PIECE_BYTES] = "some bytes of a stream";
	struct piece p = { .session = 1, .at = UINT64_C(1) << 40, .bytes = bytes }, got = { 0 };
	unsigned char d[PIECE_DATAGRAM + 1] = { 0 };

	(void)state;
	for (p.len = 1; p.len <= PIECE_BYTES; p.len++) {
		size_t len = piece_write(&p, d);

		assert_int_equal(len, PIECE_HEAD + p.len);
		assert_int_equal(piece_read(d, len + FRAME_TAG, &got), 0);
		assert_true(got.session == 1 && got.at == p.at && got.len == p.len);
		assert_memory_equal(got.bytes, bytes, p.len);
	}
	assert_int_equal(piece_read(d, PIECE_HEAD + FRAME_TAG, &got), -EPROTO);
	assert_int_equal(piece_read(d, PIECE_DATAGRAM + 1, &got), -EPROTO);
	d[3] = 'B';
	assert_int_equal(piece_read(d, PIECE_DATAGRAM, &got), -EPROTO);
}

static void test_piece_at_the_end(void **state)
{
	static const unsigned char byte = 'x';
	struct piece p = { .session = 1, .at = UINT64_MAX, .bytes = &byte, .len = 1 }, got;
	unsigned char d[PIECE_DATAGRAM] = { 0 };

	(void)state;
	assert_int_equal(piece_read(d, piece_write(&p, d) + FRAME_TAG, &got), -EPROTO);
	p.at--;
	assert_int_equal(piece_read(d, piece_write(&p, d) + FRAME_TAG, &got), 0);
}

static const struct notice killed = { NOTICE_KILLED, false, SIGSEGV, 77 };
static const unsigned char key[NOTICE_KEY] = "a key of notices";

static void test_notice(void **state)
{
	unsigned char d[NOTICE_DATAGRAM];
	uint64_t session = 0;
	struct notice n;

	(void)state;
	for (int answer = 0; answer < 2; answer++)
		for (int kind = NOTICE_KILLED; kind < NOTICE_KINDS; kind++) {
			notice_write(
				&(struct notice){ (enum notice_kind)kind, answer, SIGSEGV, 77 },
				key, d);
			assert_int_equal(notice_session(d, sizeof d, &session), 0);
			assert_int_equal(session, 77);
			assert_int_equal(notice_read(d, sizeof d, key, &n), 0);
			assert_true((int)n.kind == kind && n.answer == answer);
			assert_true(n.signal == SIGSEGV && n.session == 77);
		}
}

/* One that was altered, is too short, or has another key. */
static void test_bad_notice(void **state)
{
	unsigned char d[NOTICE_DATAGRAM], other[NOTICE_KEY] = "another key";
	uint64_t session;
	struct notice n;

	(void)state;
	notice_write(&killed, key, d);
	for (size_t i = 0; i < 8 * sizeof d; i++) {
		d[i / 8] ^= (unsigned char)(1 << i % 8);
		assert_int_equal(notice_read(d, sizeof d, key, &n), -EPROTO);
		d[i / 8] ^= (unsigned char)(1 << i % 8);
	}
	assert_int_equal(notice_read(d, sizeof d - 1, key, &n), -EPROTO);
	assert_int_equal(notice_session(d, sizeof d - 1, &session), -EPROTO);
	assert_int_equal(notice_read(d, sizeof d, other, &n), -EPROTO);
	assert_int_equal(notice_read(d, sizeof d, key, &n), 0);
}

/* With the right tag, but a value that no guard writes. */
static const struct unwritten_row {
	const char *says;
	struct notice n;
} unwritten[] = {
	{ "a notice without a signal", { NOTICE_KILLED, false, 0, 77 } },
	{ "a notice of a signal that there is not", { NOTICE_KILLED, false, 128, 77 } },
	{ "a notice of kind 0", { 0, false, SIGKILL, 77 } },
	{ "a notice of an unknown kind", { NOTICE_KINDS, false, SIGKILL, 77 } },
};

static void test_unwritten(void **state)
{
	const struct unwritten_row *row = *state;
	unsigned char d[NOTICE_DATAGRAM];
	struct notice n;

	notice_write(&row->n, key, d);
	assert_int_equal(notice_read(d, sizeof d, key, &n), -EPROTO);
}

static void test_notice_key(void **state)
{
	struct sodium sodium;
	struct failure why = { 0 };
	unsigned char secret[FRAME_KEY] = "the key of beats", one[NOTICE_KEY], other[NOTICE_KEY];

	(void)state;
	notice_key(NULL, secret, one); /* the token */
	assert_memory_equal(one, secret, sizeof one);
	assert_int_equal(sodium_load(&sodium, &why), 0);
	notice_key(&sodium, secret, one);
	assert_memory_not_equal(one, secret, sizeof one);
	secret[FRAME_KEY - 1] = 1;
	notice_key(&sodium, secret, other);
	assert_memory_not_equal(one, other, sizeof one);
}

TESTS(datagram)
{
	static struct suite s;

	suite_add(&s, "a beat is read as it was written", test_beat_body, NULL, NULL);
	suite_add(&s, "a datagram with any bit changed has a wrong tag", test_seal, NULL, NULL);
	suite_add(&s, "a piece is read as it was written", test_piece, NULL, NULL);
	suite_add(
		&s, "no piece lies beyond the end of a stream", test_piece_at_the_end, NULL, NULL);
	suite_add(&s, "a notice is read as it was written", test_notice, NULL, NULL);
	suite_add(&s, "a notice that was altered is none", test_bad_notice, NULL, NULL);
	suite_add(&s, "the key of notices is another one than that of beats", test_notice_key, NULL,
		NULL);
	SUITE_ROWS(&s, test_unwritten, unwritten);
	return suite_run(&s);
}
