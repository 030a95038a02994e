/* note.c - see note.h */
#include "daemon/store/note.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/store/client.h"
#include "daemon/store/store.h"

void address_text(const struct sockaddr *addr, char ret[ADDRESS_SIZE])
{
	char host[64] = "?";
	unsigned port = 0;

	if (addr->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)addr;

		(void)uv_ip4_name(in, host, sizeof host);
		port = ntohs(in->sin_port);
	} else if (addr->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)addr;

		(void)uv_ip6_name(in, host, sizeof host);
		port = ntohs(in->sin6_port);
	}
	(void)snprintf(
		ret, ADDRESS_SIZE, addr->sa_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host, port);
}

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
	char text[ADDRESS_SIZE];

	(void)uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&addr, &len);
	address_text((const struct sockaddr *)&addr, text);
	note(c->store, "the store closed the connection of %s: %s", text, why);
}
