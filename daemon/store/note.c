/* note.c - see note.h */
#include "daemon/store/note.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/address.h"
#include "daemon/store/client.h"
#include "daemon/store/store.h"

void note(struct store *s, const char *fmt, ...)
{
	char text[768];
	va_list ap;

	if (!s->config.on_note || s->notes > NOTES_MAX)
		return;
	s->notes++;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (s->notes > NOTES_MAX)
		(void)snprintf(text, sizeof text,
			"the store closes more connections, of which nothing more is said");
	s->config.on_note(s->config.owner, text);
}

void note_client(struct client *c, const char *why)
{
	struct sockaddr_storage addr = { 0 };
	int len = sizeof addr;
	char text[ADDRESS_TEXT];

	(void)uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&addr, &len);
	address_text((const struct sockaddr *)&addr, text);
	note(c->store, "the store closed the connection of %s: %s", text, why);
}
