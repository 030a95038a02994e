/* pmi.c - see pmi.h. The words are those of MPICH's "simple PMI" (src/pmi/src/pmi_v1.c), as its
 * process managers take them: "cmd=put kvsname=K key=X value=Y", one line each. */
#include "daemon/meet/pmi.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/monotonic.h"

/* Values may have 1,024 bytes, or fewer: pieces of this many, in hexadecimal digits. */
enum { PIECE = 200, KVS_ROOM = 256, ANSWER_MS = 10000, FINALIZE_MS = 1500 };

static void pmi_say_error(struct pmi *p, int error)
{
	bool closed = error == EPIPE || error == ECONNRESET; /* it didn't read all, or nothing */

	(void)snprintf(p->line, sizeof p->line, "%s",
		closed ? "the launcher has closed it" : strerror(error));
}

/* One line, without its end: nobody asks twice at once, so nothing follows it. limit_ms: for how
 * long it is awaited; -1: for ever. */
static int pmi_read_line(struct pmi *p, int limit_ms)
{
	struct pollfd there = { .fd = p->fd, .events = POLLIN };
	size_t len = 0;
	ssize_t got;

	while (len == 0 || (p->line[len - 1] != '\n' && len < sizeof p->line - 1)) {
		int n = poll(&there, 1, limit_ms);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0) {
			(void)snprintf(p->line, sizeof p->line, "no answer");
			return -ETIMEDOUT;
		}
		got = read(p->fd, p->line + len, sizeof p->line - 1 - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			pmi_say_error(p, got < 0 ? errno : EPIPE);
			return -EIO;
		}
		len += (size_t)got;
	}
	p->line[len - 1] = '\0';
	return 0;
}

/* The value of a word of the answer, up to a blank; NULL: it has none. */
static char *pmi_word(struct pmi *p, const char *name)
{
	size_t len = strlen(name);

	for (char *at = p->line; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
		if (strncmp(at, name, len) == 0 && at[len] == '=')
			return at + len + 1;
	return NULL;
}

/* Says a line, and hears one that is this command's, within limit_ms. */
static int pmi_ask_for(struct pmi *p, const char *line, const char *answer, int limit_ms)
{
	const char *rc;
	int failed;

	if (fd_write_all(p->fd, line, strlen(line)) < 0) {
		pmi_say_error(p, errno);
		return -EIO;
	}
	failed = pmi_read_line(p, limit_ms);
	if (failed < 0)
		return failed;
	rc = pmi_word(p, "rc");
	if (strncmp(p->line, "cmd=", 4) != 0 || strncmp(p->line + 4, answer, strlen(answer)) != 0 ||
		(rc && atoi(rc) != 0))
		return -EPROTO;
	return 0;
}

/* The server is on this host, and answers at once. */
static int pmi_ask(struct pmi *p, const char *line, const char *answer)
{
	return pmi_ask_for(p, line, answer, ANSWER_MS);
}

static int pmi_barrier(struct pmi *p)
{
	p->enter(p->owner, PMI_BARRIER);
	return pmi_ask_for(p, "cmd=barrier_in\n", "barrier_out", monotonic_left_ms(p->until_ms));
}

static int pmi_put(struct pmi *p, const char *kvs, unsigned n, const char *value)
{
	char line[KVS_ROOM + 2 * PIECE + 64];

	(void)snprintf(
		line, sizeof line, "cmd=put kvsname=%s key=launchd-%u value=%s\n", kvs, n, value);
	return pmi_ask(p, line, "put_result");
}

/* Piece n is hexadecimal digits; the last one is "-". */
static int pmi_put_all(struct pmi *p, const char *kvs, const unsigned char *mine, size_t len)
{
	unsigned n = 0;

	for (size_t at = 0; at < len; n++) {
		char digits[2 * PIECE + 1];
		size_t i = 0;

		for (; i < PIECE && at < len; i++, at++)
			(void)snprintf(digits + 2 * i, 3, "%02x", mine[at]);
		if (pmi_put(p, kvs, n, digits) < 0)
			return -EIO;
	}
	return len > 0 ? pmi_put(p, kvs, n, "-") : 0;
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static long pmi_get_all(struct pmi *p, const char *kvs, unsigned char *ret, size_t room)
{
	size_t len = 0;

	p->enter(p->owner, PMI_GET);
	for (unsigned n = 0;; n++) {
		char line[KVS_ROOM + 64];
		const char *value;

		(void)snprintf(line, sizeof line, "cmd=get kvsname=%s key=launchd-%u\n", kvs, n);
		if (pmi_ask(p, line, "get_result") < 0)
			return -EIO;
		value = pmi_word(p, "value");
		if (!value)
			return -EPROTO;
		if (*value == '-')
			return (long)len;
		for (; hex_digit(value[0]) >= 0 && hex_digit(value[1]) >= 0; value += 2) {
			if (len == room)
				return -EPROTO;
			ret[len++] =
				(unsigned char)(hex_digit(value[0]) * 16 + hex_digit(value[1]));
		}
	}
}

static long pmi_meet(struct pmi *p, const void *mine, size_t len, void *ret, size_t room)
{
	char kvs[KVS_ROOM];
	const char *name;
	long got;

	p->enter(p->owner, PMI_PUT);
	if (pmi_ask(p, "cmd=get_my_kvsname\n", "my_kvsname") < 0)
		return -EIO;
	name = pmi_word(p, "kvsname");
	if (!name || strcspn(name, " ") >= sizeof kvs) {
		(void)snprintf(p->line, sizeof p->line, "no usable kvsname");
		return -EPROTO;
	}
	(void)snprintf(kvs, sizeof kvs, "%.*s", (int)strcspn(name, " "), name);
	if (pmi_put_all(p, kvs, mine, len) < 0)
		return -EIO;
	got = pmi_barrier(p);
	if (got < 0)
		return got;
	/* each host's server has all values since the barrier, also those of processes that have
	 * left */
	return pmi_get_all(p, kvs, ret, room);
}

void pmi_finish(int fd)
{
	static const char line[] = "cmd=finalize\n";

	(void)send(fd, line, sizeof line - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

long pmi_exchange(struct pmi *p, const void *mine, size_t len, void *ret, size_t room)
{
	char why[sizeof p->line];
	long got;

	p->enter(p->owner, PMI_INIT);
	if (pmi_ask(p, "cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init") < 0)
		return -EIO;
	got = pmi_meet(p, mine, len, ret, room);
	if (got == -ETIMEDOUT)
		return got; /* the server's answer may come yet: who says finalize before it breaks
			       mpiexec */
	memcpy(why, p->line, sizeof why);
	if (got >= 0)
		p->enter(p->owner, PMI_FINALIZE);
	if (pmi_ask_for(p, "cmd=finalize\n", "finalize_ack", FINALIZE_MS) < 0 && got >= 0)
		return -EIO;
	memcpy(p->line, why, sizeof why);
	return got;
}
