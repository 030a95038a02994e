/* fuzz_message.c - messages between launchers. The first byte is the message's type; what can be
 * read is written again, byte by byte the same. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "daemon/cluster/message.h"
#include "daemon/net/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	unsigned char *exact = malloc(len + 1);
	size_t left = len > 0 ? len - 1 : 0;
	unsigned type =
		len > 0 ? MESSAGE_JOIN + bytes[0] % (MESSAGE_END - MESSAGE_JOIN) : MESSAGE_END;
	struct arena arena = { 0 };
	struct wire_out out = { 0 };
	struct message m;
	int rc;

	PROMISE(exact != NULL);
	if (left > 0)
		memcpy(exact, bytes + 1, left);
	/* memory of the message's own size: a byte too far is seen */
	exact = realloc(exact, left + (left == 0));
	PROMISE(exact != NULL);
	rc = message_get(type, exact, left, &arena, &m);
	PROMISE(rc == 0 || rc == -EPROTO);
	PROMISE(!arena_failed(&arena));
	if (rc == 0) {
		fuzz_taken++;
		message_put(&out, &m);
		PROMISE(!out.failed && out.len == left);
		PROMISE(left == 0 || memcmp(out.at, exact, left) == 0);
	}
	wire_out_done(&out);
	arena_done(&arena);
	free(exact);
	return 0;
}
