/* message_fixture.c - see message_fixture.h */
#include "tests/unit/daemon/cluster/message_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "daemon/net/wire.h"
#include "tests/unit/unit.h"

struct bytes bytes_of(const struct message *m)
{
	struct wire_out w = { 0 };
	struct bytes b = { .type = m->type };

	message_put(&w, m);
	assert_false(w.failed);
	b.len = w.len;
	b.at = malloc(w.len + (w.len == 0));
	assert_non_null(b.at);
	if (w.len > 0) /* else there may be no buffer */
		memcpy(b.at, w.at, w.len);
	wire_out_done(&w);
	return b;
}

int read_bytes(const struct bytes *b, struct arena *arena, struct message *ret)
{
	return message_get(b->type, b->at, b->len, arena, ret);
}

static int read_part(const struct bytes *b, size_t len)
{
	unsigned char *exact = calloc(1, len + (len == 0));
	struct arena arena = { 0 };
	struct message m;
	int rc;

	assert_non_null(exact);
	memcpy(exact, b->at, len < b->len ? len : b->len);
	rc = message_get(b->type, exact, len, &arena, &m);
	arena_done(&arena);
	free(exact);
	return rc;
}

struct message read_again(const struct message *m, struct arena *arena)
{
	struct bytes b = bytes_of(m);
	struct message got;

	for (size_t len = 0; len < b.len; len++) {
		/* outcomes have their number from the length, so that fewer are a message, too */
		bool whole =
			b.type == MESSAGE_OUTCOMES && len >= 4 && (len - 4) % OUTCOME_BYTES == 0;

		assert_int_equal(read_part(&b, len), whole ? 0 : -EPROTO);
	}
	assert_int_equal(read_part(&b, b.len + 1), -EPROTO);
	assert_int_equal(read_bytes(&b, arena, &got), 0);
	assert_int_equal(got.type, m->type);
	free(b.at);
	return got;
}
