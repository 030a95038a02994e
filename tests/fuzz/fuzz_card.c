/* fuzz_card.c - what came by PMIx. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "daemon/meet/card.h"

/* What is taken for a card is one: written again it is the same bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	unsigned char again[CARD_BYTES_MAX];
	struct failure why = { 0 };
	struct card c;
	int rc = card_decode(bytes, len, &c, &why);

	PROMISE(rc == 0 || rc == -EPROTO);
	PROMISE((why.code != 0) == (rc < 0));
	if (rc < 0)
		return 0;
	PROMISE(c.port > 0 && c.count > 0 && c.count <= CARD_ADDRESSES_MAX);
	PROMISE(card_encode(&c, again) == len);
	PROMISE(memcmp(again, bytes, len) == 0);
	return 0;
}
