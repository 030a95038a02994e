/* test_handshake.c - the first two frames of a connection, and its keys. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/net/handshake.h"
#include "daemon/net/sodium.h"

#define NONCE "0123456789abcdef"

static const struct hello_row {
	const char *says;
	unsigned type;
	const char *bytes;
	size_t len;
	int rc;
	uint16_t version;
	bool keyed;
} hellos[] = {
	{ "with a key", FRAME_HELLO, "LNCHD\12\0\1" NONCE, 24, 0, 10, true },
	{ "without a key", FRAME_HELLO, "LNCHD\12\0\0" NONCE, 24, 0, 10, false },
	{ "another version", FRAME_HELLO, "LNCHD\12\1\1" NONCE, 24, 0, 266, true },
	{ "another version, longer", FRAME_HELLO, "LNCHD\13\0\3" NONCE "more", 28, 0, 11, false },
	{ "our version, longer", FRAME_HELLO, "LNCHD\12\0\1" NONCE "more", 28, -EPROTO, 0, 0 },
	{ "our version, neither with nor without", FRAME_HELLO, "LNCHD\12\0\2" NONCE, 24, -EPROTO,
		0, 0 },
	{ "cut off", FRAME_HELLO, "LNCHD\12\0\1" NONCE, 23, -EPROTO, 0, 0 },
	{ "nothing", FRAME_HELLO, "", 0, -EPROTO, 0, 0 },
	{ "of another program", FRAME_HELLO, "LNCHX\1\0\1" NONCE, 24, -EPROTO, 0, 0 },
	{ "another frame", FRAME_READY, "LNCHD\12\0\1" NONCE, 24, -EPROTO, 0, 0 },
};

static void test_hello(void **state)
{
	const struct hello_row *row = *state;
	const struct frame f = { row->type, (const unsigned char *)row->bytes, row->len };
	struct hello h = { .version = 99 };

	assert_int_equal(hello_get(&f, &h), row->rc);
	assert_int_equal(h.version, row->rc < 0 ? 99 : row->version);
	assert_int_equal(h.keyed, row->keyed);
	if (row->rc == 0)
		assert_memory_equal(h.nonce, NONCE, HANDSHAKE_NONCE);
}

static void test_put(void **state)
{
	const struct hello h = {
		.version = HANDSHAKE_VERSION, .keyed = true, .nonce = "0123456789abcde"
	};
	const struct ready r = { 0x1122334455667788, "0123456789abcde", true, 3000, 77 };
	struct wire_out w = { 0 };
	struct frame f;
	struct hello h2;
	struct ready r2 = { 0 };

	(void)state;
	hello_put(&w, &h);
	f = (struct frame){ FRAME_HELLO, w.at, w.len };
	assert_int_equal(hello_get(&f, &h2), 0);
	assert_memory_equal(h2.nonce, h.nonce, sizeof h.nonce);
	wire_out_done(&w);
	ready_put(&w, &r);
	f = (struct frame){ FRAME_READY, w.at, w.len };
	assert_int_equal(ready_get(&f, &r2), 0);
	assert_true(r2.session == r.session && r2.udp && r2.timeout_ms == 3000 && r2.taken == 77);
	assert_memory_equal(r2.token, r.token, sizeof r.token);
	for (f.len = 0; f.len < w.len; f.len++)
		assert_int_equal(ready_get(&f, &r2), -EPROTO);
	f.type = FRAME_HELLO;
	assert_int_equal(ready_get(&f, &r2), -EPROTO);
	wire_out_done(&w);
}

static void derive(const char *key, const char *dialer, const char *hub, struct handshake_keys *k)
{
	struct sodium sodium;
	struct failure why = { 0 };

	assert_int_equal(sodium_load(&sodium, &why), 0);
	handshake_derive(&sodium, (const unsigned char *)key, (const unsigned char *)dialer,
		(const unsigned char *)hub, k);
}

static void test_keys(void **state)
{
	static const char key[] = "a key of at least thirty-two bytes";
	static const char other[] = "another key of thirty-two bytes!";
	struct handshake_keys k[5];

	(void)state;
	derive(key, NONCE, "fedcba9876543210", &k[0]);
	derive(key, NONCE, "fedcba9876543210", &k[1]);
	assert_memory_equal(&k[0], &k[1], sizeof k[0]);
	derive(key, NONCE, "fedcba9876543211", &k[1]);
	derive(key, "0123456789abcdeg", "fedcba9876543210", &k[2]);
	derive(key, "fedcba9876543210", NONCE, &k[3]);
	derive(other, NONCE, "fedcba9876543210", &k[4]);
	for (size_t i = 0; i < 5 * 4; i++) /* each direction and purpose has its own */
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal((unsigned char *)k + i * FRAME_KEY,
				(unsigned char *)k + j * FRAME_KEY, FRAME_KEY);
}

TESTS(handshake)
{
	static struct suite s;

	SUITE_ROWS(&s, test_hello, hellos);
	suite_add(&s, "HELLO and READY are read as they were written", test_put, NULL, NULL);
	suite_add(&s, "each direction, purpose and session has its own key", test_keys, NULL, NULL);
	return suite_run(&s);
}
