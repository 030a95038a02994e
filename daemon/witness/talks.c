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

/* A socket of a worker, or of a process that it has started. */
struct socket_seen {
	unsigned inode, worker;
	bool kids;      /* only of such a process */
	bool told;      /* it is a connection, and no other one's than of this job */
	uint64_t id;    /* of that, the same at both ends */
	uint64_t bytes; /* both ways */
};

struct socket_dump {
	const struct looked *workers;
	struct worker_sample *samples;
	unsigned count, store_port, node;
	struct socket_seen *seen; /* sorted */
	size_t seen_count;
};

static void add_seen(
	struct socket_dump *a, int dir, const char *name, const struct socket_seen *whose)
{
	char link[64];
	ssize_t n = readlinkat(dir, name, link, sizeof link - 1);
	unsigned inode;

	if (n <= 0 || a->seen_count >= SOCKETS_MAX)
		return;
	link[n] = '\0';
	if (sscanf(link, "socket:[%u]", &inode) != 1)
		return;
	a->seen[a->seen_count] = *whose;
	a->seen[a->seen_count++].inode = inode;
}

static void find_owned(struct socket_dump *a, pid_t pid, const struct socket_seen *whose)
{
	const struct dirent *e;
	char path[64];
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((e = readdir(dir)))
		if (*e->d_name != '.')
			add_seen(a, dirfd(dir), e->d_name, whose);
	(void)closedir(dir);
}

/* Of one that several have, the worker's own comes first. */
static int by_inode(const void *a, const void *b)
{
	const struct socket_seen *x = a, *y = b;

	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return (int)x->kids - (int)y->kids;
}

/* A child inherits its parent's sockets: keeps each once. */
static void sort_owned(struct socket_dump *a)
{
	size_t kept = 0;

	qsort(a->seen, a->seen_count, sizeof *a->seen, by_inode);
	for (size_t i = 0; i < a->seen_count; i++)
		if (kept == 0 || a->seen[kept - 1].inode != a->seen[i].inode)
			a->seen[kept++] = a->seen[i];
	a->seen_count = kept;
}

static struct socket_seen *find_seen(struct socket_seen *seen, size_t count, unsigned inode)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t at = (low + high) / 2;

		if (seen[at].inode == inode)
			return &seen[at];
		if (seen[at].inode < inode)
			low = at + 1;
		else
			high = at;
	}
	return NULL;
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

/* It has sent something, and heard nothing since. */
static bool is_asking(const struct tcp_talk *t)
{
	return t->sent_ms < t->heard_ms;
}

/* Keeps the latest ones, and of those with which it waits up to a half: of a root that gathers from
 * all it is the one that has not answered. */
static void keep(struct worker_sample *s, const struct tcp_talk *t)
{
	const struct tcp_talk *oldest = t;
	unsigned asking = is_asking(t);

	if (s->talk_count < TALKS_MAX) {
		s->talks[s->talk_count++] = *t;
		return;
	}
	for (unsigned i = 0; i < TALKS_MAX; i++)
		asking += is_asking(&s->talks[i]);
	for (unsigned i = 0; i < TALKS_MAX; i++) {
		const struct tcp_talk *other = &s->talks[i];
		bool leaves = is_asking(other) == (asking > TALKS_MAX / 2);

		if (leaves &&
			(is_asking(oldest) != is_asking(other) || age_of(other) > age_of(oldest)))
			oldest = other;
	}
	if (oldest != t)
		s->talks[oldest - s->talks] = *t;
}

static void take_socket(
	const struct socket_dump *a, const struct inet_diag_msg *m, const struct tcp_info *info)
{
	struct socket_seen *o = find_seen(a->seen, a->seen_count, m->idiag_inode);
	struct worker_sample *s = o ? &a->samples[o->worker] : NULL;

	if (!s)
		return;
	if (a->store_port > 0 && ntohs(m->id.idiag_dport) == a->store_port) {
		if (s->store_port == 0 && !o->kids)
			s->store_port = ntohs(m->id.idiag_sport);
		return;
	}
	if (a->store_port > 0 && ntohs(m->id.idiag_sport) == a->store_port)
		return; /* it hosts the store */
	o->told = true;
	o->id = id_of(m, a->node);
	o->bytes = info->tcpi_bytes_received + info->tcpi_bytes_acked;
	if (o->kids)
		return;
	keep(s,
		&(struct tcp_talk){
			.id = o->id,
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

/* --- how much went over them --- */

static int by_id(const void *a, const void *b)
{
	const struct socket_seen *x = *(struct socket_seen *const *)a;
	const struct socket_seen *y = *(struct socket_seen *const *)b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Connections between two workers of this node say themselves who talks to whom. */
static int leave_out_peers(struct socket_dump *a)
{
	struct socket_seen **ids = malloc((a->seen_count + 1) * sizeof *ids);
	size_t count = 0;

	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; i < a->seen_count; i++)
		if (a->seen[i].told)
			ids[count++] = &a->seen[i];
	qsort(ids, count, sizeof *ids, by_id);
	for (size_t i = 0; i + 1 < count; i++)
		if (ids[i]->id == ids[i + 1]->id && ids[i]->worker != ids[i + 1]->worker)
			ids[i]->told = ids[i + 1]->told = false;
	free(ids);
	return 0;
}

/* Since the look before: of a socket that was not there, all that went over it. */
static void count_bytes(const struct talks *t, const struct socket_dump *a, struct looked *workers)
{
	for (size_t i = 0; i < a->seen_count && t->seen; i++) {
		const struct socket_seen *now = &a->seen[i];
		const struct socket_seen *before = find_seen(t->seen, t->count, now->inode);
		uint64_t old = before ? before->bytes : 0;

		if (now->told && now->bytes > old)
			workers[now->worker].net_bytes += now->bytes - old;
	}
}

static void find_all_owned(struct socket_dump *a)
{
	for (unsigned i = 0; i < a->count; i++) {
		const struct looked *w = &a->workers[i];
		struct socket_seen whose = { .worker = i };

		find_owned(a, w->pid, &whose);
		whose.kids = true;
		for (unsigned k = 0; k < w->kid_count; k++)
			find_owned(a, w->kids[k].pid, &whose);
	}
	sort_owned(a);
}

int talks_add(
	struct talks *t, struct looked *workers, struct worker_sample *samples, unsigned count)
{
	struct socket_dump a = { workers, samples, count, t->store_port, t->node, NULL, 0 };
	int rc;

	a.seen = malloc(SOCKETS_MAX * sizeof *a.seen); /* what isn't used costs nothing */
	if (!a.seen)
		return -ENOMEM;
	find_all_owned(&a);
	rc = dump(&a);
	rc = rc < 0 ? rc : leave_out_peers(&a);
	if (rc == 0)
		count_bytes(t, &a, workers);
	for (unsigned i = 0; i < count; i++)
		samples[i].net_bytes = workers[i].net_bytes;
	talks_done(t);
	if (rc < 0) { /* what it has is no look to count from */
		free(a.seen);
		return rc;
	}
	t->seen = a.seen;
	t->count = a.seen_count;
	return 0;
}

void talks_done(struct talks *t)
{
	free(t->seen);
	t->seen = NULL;
	t->count = 0;
}
