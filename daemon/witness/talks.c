/* talks.c - see talks.h */
#include "daemon/witness/talks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/siphash.h"

enum {
	SOCKETS_MAX = 1 << 16, /* of all workers of a node */
	ESTABLISHED = 1,       /* TCP_ESTABLISHED, which linux/tcp.h has no name for */
	ADDRESS_BYTES = 16,
};

/* Which worker has a socket, by its inode. */
struct owner {
	unsigned inode, worker;
};

struct socket_dump {
	const struct looked *workers;
	struct worker_sample *samples;
	unsigned count, store_port, node;
	struct owner *owners; /* sorted */
	size_t owner_count;
};

static void add_owner(struct socket_dump *a, int dir, const char *name, unsigned worker)
{
	char link[64];
	ssize_t n = readlinkat(dir, name, link, sizeof link - 1);
	unsigned inode;

	if (n <= 0 || a->owner_count >= SOCKETS_MAX)
		return;
	link[n] = '\0';
	if (sscanf(link, "socket:[%u]", &inode) == 1)
		a->owners[a->owner_count++] = (struct owner){ inode, worker };
}

static void find_owned(struct socket_dump *a, unsigned worker)
{
	const struct dirent *e;
	char path[64];
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%d/fd", (int)a->workers[worker].pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((e = readdir(dir)))
		if (*e->d_name != '.')
			add_owner(a, dirfd(dir), e->d_name, worker);
	(void)closedir(dir);
}

static int by_inode(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* An end of a connection as bytes: the address as IPv6 has it, the port. */
struct end_bytes {
	uint8_t at[ADDRESS_BYTES + 2];
};

static struct end_bytes end_of(int family, const void *address, uint16_t port)
{
	static const uint8_t mapped[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	struct end_bytes e = { { 0 } };

	if (family == AF_INET) {
		memcpy(e.at, mapped, sizeof mapped);
		memcpy(e.at + sizeof mapped, address, 4);
	} else {
		memcpy(e.at, address, ADDRESS_BYTES);
	}
	memcpy(e.at + ADDRESS_BYTES, &port, sizeof port);
	return e;
}

static bool is_loopback(const struct end_bytes *e)
{
	static const uint8_t one[ADDRESS_BYTES] = { [15] = 1 };

	return memcmp(e->at, one, ADDRESS_BYTES) == 0 ||
		(e->at[10] == 0xff && e->at[11] == 0xff && e->at[12] == 127);
}

/* The same at both ends, and on one node only where it never leaves it. */
static uint64_t id_of(const struct inet_diag_msg *m, unsigned node)
{
	static const uint8_t key[SIPHASH_KEY_SIZE] = "launchd's talks";
	struct {
		struct end_bytes low, high;
		uint32_t node;
	} pair = { .node = 0 };
	struct end_bytes a = end_of(m->idiag_family, m->id.idiag_src, m->id.idiag_sport);
	struct end_bytes b = end_of(m->idiag_family, m->id.idiag_dst, m->id.idiag_dport);
	bool ordered = memcmp(&a, &b, sizeof a) <= 0;

	pair.low = ordered ? a : b;
	pair.high = ordered ? b : a;
	pair.node = is_loopback(&a) ? node : 0;
	return siphash(key, (const uint8_t *)&pair, sizeof pair);
}

static uint32_t age_of(const struct tcp_talk *t)
{
	return t->sent_ms < t->heard_ms ? t->sent_ms : t->heard_ms;
}

/* Keeps the latest ones. */
static void keep(struct worker_sample *s, const struct tcp_talk *t)
{
	unsigned oldest = 0;

	if (s->talk_count < TALKS_MAX) {
		s->talks[s->talk_count++] = *t;
		return;
	}
	for (unsigned i = 1; i < TALKS_MAX; i++)
		if (age_of(&s->talks[i]) > age_of(&s->talks[oldest]))
			oldest = i;
	if (age_of(t) < age_of(&s->talks[oldest]))
		s->talks[oldest] = *t;
}

static void take_socket(
	const struct socket_dump *a, const struct inet_diag_msg *m, const struct tcp_info *info)
{
	const struct owner wanted = { m->idiag_inode, 0 };
	const struct owner *o =
		bsearch(&wanted, a->owners, a->owner_count, sizeof *a->owners, by_inode);
	struct worker_sample *s = o ? &a->samples[o->worker] : NULL;

	if (!s)
		return;
	if (a->store_port > 0 && ntohs(m->id.idiag_dport) == a->store_port) {
		if (s->store_port == 0)
			s->store_port = ntohs(m->id.idiag_sport);
		return;
	}
	if (a->store_port > 0 && ntohs(m->id.idiag_sport) == a->store_port)
		return; /* it hosts the store */
	s->net_bytes += info->tcpi_bytes_received + info->tcpi_bytes_acked;
	keep(s,
		&(struct tcp_talk){
			.id = id_of(m, a->node),
			.sent_ms = info->tcpi_last_data_sent,
			.heard_ms = info->tcpi_last_data_recv,
			.unread = m->idiag_rqueue,
			.unacked = info->tcpi_unacked,
			.retries = info->tcpi_backoff,
		});
}

static void take_message(const struct socket_dump *a, const struct nlmsghdr *h)
{
	const struct inet_diag_msg *m = NLMSG_DATA(h);
	const char *at = (const char *)(m + 1), *end = (const char *)h + h->nlmsg_len;
	struct tcp_info info = { 0 };
	struct rtattr attr;

	while (end - at >= (ptrdiff_t)sizeof attr) {
		size_t len;

		memcpy(&attr, at, sizeof attr);
		if (attr.rta_len < sizeof attr || attr.rta_len > end - at)
			return;
		len = attr.rta_len - sizeof attr;
		if (attr.rta_type == INET_DIAG_INFO) {
			memcpy(&info, at + sizeof attr, len < sizeof info ? len : sizeof info);
			take_socket(a, m, &info);
			return;
		}
		at += RTA_ALIGN((size_t)attr.rta_len);
	}
}

static int ask(int fd, uint8_t family)
{
	const struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} question = {
		.h = { .nlmsg_len = sizeof question,
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.r = { .sdiag_family = family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_ext = 1 << (INET_DIAG_INFO - 1),
			.idiag_states = 1 << ESTABLISHED },
	};

	return send(fd, &question, sizeof question, 0) < 0 ? -errno : 0;
}

static int hear(const struct socket_dump *a, int fd)
{
	static union {
		struct nlmsghdr first;
		char at[32 << 10];
	} room;

	for (;;) {
		ssize_t n = recv(fd, &room, sizeof room, 0);
		unsigned left = (unsigned)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		for (const struct nlmsghdr *h = &room.first; NLMSG_OK(h, left);
			h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return -EPROTO;
			take_message(a, h);
		}
	}
}

static int dump(const struct socket_dump *a)
{
	const struct timeval limit = { .tv_sec = 2 };
	autoclose fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int rc;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0)
		return -errno;
	rc = ask(fd, AF_INET);
	rc = rc < 0 ? rc : hear(a, fd);
	rc = rc < 0 ? rc : ask(fd, AF_INET6);
	return rc < 0 ? rc : hear(a, fd);
}

int talks_add(const struct looked *workers, struct worker_sample *samples, unsigned count,
	unsigned store_port, unsigned node)
{
	struct socket_dump a = { workers, samples, count, store_port, node, NULL, 0 };
	int rc;

	a.owners = malloc(SOCKETS_MAX * sizeof *a.owners); /* what isn't used costs nothing */
	if (!a.owners)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++)
		find_owned(&a, i);
	qsort(a.owners, a.owner_count, sizeof *a.owners, by_inode);
	rc = dump(&a);
	free(a.owners);
	return rc;
}
