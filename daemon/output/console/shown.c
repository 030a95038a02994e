/* shown.c - see shown.h */
#include "daemon/output/console/shown.h"

#include <string.h>

#include "common/text.h"

void shown_add(struct console_end *s, const char *at, size_t len)
{
	size_t kept;

	if (!s)
		return;
	if (len > SHOWN_BYTES) {
		at += len - SHOWN_BYTES;
		len = SHOWN_BYTES;
	}
	kept = s->len < SHOWN_BYTES - len ? s->len : SHOWN_BYTES - len;
	memmove(s->at, s->at + s->len - kept, kept);
	memcpy(s->at + kept, at, len);
	s->len = kept + len;
}

void shown_copy(const struct console_end *s, struct text *out)
{
	text_add_bytes(out, s->at, s->len);
}
