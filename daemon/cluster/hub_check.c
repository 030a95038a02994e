/* hub_check.c - the store where the checks of all nodes meet; see hub_parts.h. It is not the
 * workers': they find theirs empty, and it is there where rank 0 hosts that. */
#include "daemon/cluster/hub_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/address.h"
#include "common/failure.h"
#include "daemon/store/store.h"

enum { CHECK_MEMORY_MAX = 256 << 20 };

struct check_store {
	struct store store;
	struct hub *hub;
	char host[ADDRESS_TEXT]; /* where this node's own check finds it */
};

/* Where a node's link has come to; none: it has no connection by TCP now. */
static struct address reached_of(const struct caller *p)
{
	struct address at = { 0 };
	socklen_t len = sizeof at;
	uv_os_fd_t fd;

	if (!p->link.tcp || uv_fileno((const uv_handle_t *)p->link.tcp, &fd) < 0 ||
		getsockname(fd, &at.any, &len) < 0)
		return (struct address){ 0 };
	return at;
}

/* The one address where all nodes have come to, else all: nodes come to the store by the address by
 * which they have come to this launcher. A link-local one can't be bound by its text. */
static void find_address(const struct hub *h, char ret[ADDRESS_TEXT])
{
	struct address all = { 0 };
	bool first = true;

	for (const struct caller *p = h->all; p; p = p->next) {
		struct address one = reached_of(p);

		if (!p->joined)
			continue;
		if (first)
			all = one;
		else if (!address_same_host(&all, &one))
			all = (struct address){ 0 };
		first = false;
	}
	address_host_text(&all, ret);
	if (address_is_link_local(&all))
		*ret = '\0';
}

static void on_note(void *owner, const char *text)
{
	const struct check_store *c = owner;

	party_say(c->hub->party, NOTE_WARNING, "the check of the nodes: %s", text);
}

/* NULL: why says so. */
static struct check_store *open_store(struct hub *h, struct failure *why)
{
	struct check_store *c = calloc(1, sizeof *c);
	struct store_config config = {
		.memory_max = CHECK_MEMORY_MAX,
		.on_note = on_note,
		.owner = c,
	};

	if (!c) {
		(void)failure_oom(why);
		return NULL;
	}
	c->hub = h;
	find_address(h, c->host);
	if (*c->host)
		config.addr = c->host;
	else
		(void)strcpy(c->host, "127.0.0.1");
	if (store_open(&c->store, h->party->loop, &config, why) == 0)
		return c;
	free(c);
	return NULL;
}

const char *hub_check_open(struct hub *h, struct message_start *start)
{
	struct failure why = { 0 };

	if (start->checks == 0 || h->joined < 2)
		return "";
	h->check = open_store(h, &why);
	if (!h->check) {
		start->checks = 0;
		party_say(h->party, NOTE_WARNING, "the nodes are not checked: %s", why.text);
		return "";
	}
	h->handles++;
	start->check_port = store_port(&h->check->store);
	for (const struct caller *p = h->all; p; p = p->next)
		if (p->joined)
			(void)store_allow(&h->check->store, &p->link.peer_address);
	return h->check->host;
}

static void on_closed(struct store *s)
{
	struct check_store *c = s->config.owner;
	struct hub *h = c->hub;

	free(c);
	hub_handle_closed(h);
}

void hub_check_close(struct hub *h)
{
	struct check_store *c = h->check;

	h->check = NULL;
	if (c)
		store_close(&c->store, on_closed);
}
