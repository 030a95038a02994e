/* joined.c - see joined.h */
#include "daemon/run/watch/joined.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/os/procfs.h"
#include "daemon/os/sockets.h"

/* The connections to the store in one network namespace. */
struct connections {
	struct address at;  /* the store's */
	bool any_address;   /* only the port counts */
	char namespace[64]; /* "net:[4026531840]"; "": none was read */
	uint64_t *inodes;   /* in ascending order once all are there */
	size_t count, room;
	bool failed;
};

static bool is_store(const struct connections *c, const struct address *remote)
{
	return c->any_address ? address_port(remote) == address_port(&c->at) :
				address_same(remote, &c->at);
}

static void see_connection(const struct tcp_socket *s, void *to)
{
	struct connections *c = to;

	if (s->state != SOCKET_ESTABLISHED || s->inode == 0 || !is_store(c, &s->remote))
		return;
	if (c->count == c->room) {
		size_t room = c->room ? 2 * c->room : 64;
		uint64_t *now = realloc(c->inodes, room * sizeof *now);

		c->failed = c->failed || !now;
		if (!now)
			return;
		c->inodes = now;
		c->room = room;
	}
	c->inodes[c->count++] = s->inode;
}

static int compare(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

/* Reads the list of the namespace of a process, unless it is the one that was read last. */
static void read_namespace(struct connections *c, pid_t pid)
{
	char path[64], name[sizeof c->namespace] = "";
	ssize_t len;

	(void)snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
	len = readlink(path, name, sizeof name - 1);
	if (len > 0 && strcmp(name, c->namespace) == 0)
		return;
	memcpy(c->namespace, name, sizeof name);
	c->count = 0;
	(void)sockets_each(pid, see_connection, c);
	if (c->count > 1)
		qsort(c->inodes, c->count, sizeof *c->inodes, compare);
}

struct one_look {
	const struct connections *c;
	bool found;
};

static bool see_inode(uint64_t inode, void *to)
{
	struct one_look *look = to;
	const struct connections *c = look->c;

	look->found = bsearch(&inode, c->inodes, c->count, sizeof inode, compare) != NULL;
	return !look->found;
}

/* A wrapper has its program as a child, which is the one that connects. */
static bool has_joined(struct connections *c, pid_t pid)
{
	static struct pids below; /* one thread */
	struct one_look look = { .c = c };

	read_namespace(c, pid);
	below.at[0] = pid;
	below.count = c->count > 0 ? 1 : 0;
	for (size_t i = 0; i < below.count && !look.found; i++) {
		(void)sockets_of(below.at[i], see_inode, &look);
		if (!look.found)
			(void)process_children(below.at[i], &below);
	}
	return look.found;
}

int joined_look(const pid_t *pids, size_t count, const char *addr, unsigned port, bool *ret_joined)
{
	struct connections c = { .count = 0 };
	bool *found;
	int rc;

	if (proc_look() != PROC_OURS)
		return -ENOENT;
	found = calloc(count + 1, sizeof *found);
	rc = found ? 0 : -ENOMEM;
	/* not address_parse(), which knows no zones */
	if (uv_ip4_addr(addr, (int)port, &c.at.v4) < 0 &&
		uv_ip6_addr(addr, (int)port, &c.at.v6) < 0) {
		c.any_address = true;
		(void)uv_ip4_addr("0.0.0.0", (int)port, &c.at.v4);
	}

	for (size_t i = 0; i < count && rc == 0; i++) {
		found[i] = has_joined(&c, pids[i]);
		rc = c.failed ? -ENOMEM : 0;
	}
	if (rc == 0)
		memcpy(ret_joined, found, count * sizeof *found);
	free(found);
	free(c.inodes);
	return rc;
}
