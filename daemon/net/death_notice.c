/* death_notice.c - see death_notice.h */
#include "daemon/net/death_notice.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <uv.h>

#include "common/fd.h"

enum { MS = 1000000, FIRST_WAIT_MS = 10 };

struct death_notice_entry {
	atomic_bool used; /* the rest is whole */
	bool answered;    /* the guard's: this round */
	uint8_t socket;
	struct address to;
	uint64_t session;
	unsigned char key[NOTICE_KEY];
};

/* Shared by both processes. */
struct death_notice_book {
	bool full; /* a peer found no place */
	unsigned sockets;
	unsigned end; /* of the entries that were ever used */
	struct death_notice_entry entries[DEATH_NOTICE_PEERS];
};

/* The guard's state while it tells the peers. */
struct teller {
	struct death_notice_book *book;
	struct pollfd sockets[DEATH_NOTICE_SOCKETS];
	unsigned count;
	struct notice notice;
};

void death_notice_make(struct death_notice *o)
{
	int ends[2];
	void *book = mmap(NULL, sizeof *o->book, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*o = (struct death_notice)DEATH_NOTICE_NONE;
	if (book == MAP_FAILED)
		return;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
		(void)munmap(book, sizeof *o->book);
		return;
	}
	*o = (struct death_notice){ .book = book, .lend = ends[0], .take = ends[1] };
}

void death_notice_is_guards(struct death_notice *o)
{
	fd_closep(&o->lend);
}

void death_notice_is_supervisors(struct death_notice *o)
{
	fd_closep(&o->take);
}

void death_notice_done(struct death_notice *o)
{
	fd_closep(&o->lend);
	fd_closep(&o->take);
	if (o->book)
		(void)munmap(o->book, sizeof *o->book);
	o->book = NULL;
}

/* Room for one descriptor in a message. */
union parcel {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int death_notice_lend(struct death_notice *o, int fd)
{
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union parcel p = { .bytes = { 0 } };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &p, .msg_controllen = sizeof p
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	if (!o->book || o->book->sockets == DEATH_NOTICE_SOCKETS)
		return -1;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	if (sendmsg(o->lend, &m, MSG_NOSIGNAL) != 1)
		return -1;
	return (int)o->book->sockets++;
}

int death_notice_add(struct death_notice *o, const struct death_notice_peer *p)
{
	struct death_notice_entry *e;
	int i = 0;

	if (!o->book)
		return -1;
	while (i < DEATH_NOTICE_PEERS && o->book->entries[i].used)
		i++;
	if (i == DEATH_NOTICE_PEERS) {
		o->book->full = true;
		return -1;
	}
	e = &o->book->entries[i];
	e->to = p->to;
	memcpy(e->key, p->key, sizeof e->key);
	e->socket = (uint8_t)p->socket;
	e->session = p->session;
	if (o->book->end <= (unsigned)i)
		o->book->end = (unsigned)i + 1;
	e->used = true;
	return i;
}

void death_notice_drop(struct death_notice *o, int place)
{
	if (o->book && place >= 0)
		o->book->entries[place].used = false;
}

/* The next one that was lent; -1: no more. */
static int take_socket(int from)
{
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union parcel p = { .bytes = { 0 } };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &p, .msg_controllen = sizeof p
	};
	const struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_type == SCM_RIGHTS) /* else there was no descriptor left for it */
		memcpy(&fd, CMSG_DATA(c), sizeof fd);
	return fd;
}

static void take_sockets(int from, struct teller *ret)
{
	int fd;

	while (ret->count < DEATH_NOTICE_SOCKETS && (fd = take_socket(from)) >= 0)
		ret->sockets[ret->count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* Tells those who have not answered. Returns how many that are. */
static unsigned tell_rest(struct teller *t)
{
	unsigned char datagram[NOTICE_DATAGRAM];
	unsigned count = 0;

	for (unsigned i = 0; i < t->book->end; i++) {
		struct death_notice_entry *e = &t->book->entries[i];

		if (!e->used || e->answered)
			continue;
		t->notice.session = e->session;
		notice_write(&t->notice, e->key, datagram);
		(void)sendto(t->sockets[e->socket].fd, datagram, sizeof datagram,
			MSG_DONTWAIT | MSG_NOSIGNAL, &e->to.any, address_size(&e->to));
		count++;
	}
	return count;
}

/* Whether one more has answered. */
static bool take_answer(struct teller *t, const unsigned char *bytes, size_t len)
{
	uint64_t session;
	struct notice n;

	if (notice_session(bytes, len, &session) < 0)
		return false;
	for (unsigned i = 0; i < t->book->end; i++) {
		struct death_notice_entry *e = &t->book->entries[i];

		if (!e->used || e->session != session || e->answered ||
			notice_read(bytes, len, e->key, &n) < 0 || !n.answer ||
			n.kind != t->notice.kind)
			continue;
		e->answered = true;
		return true;
	}
	return false;
}

/* Reads all that waits at one socket. Returns how many have answered. */
static unsigned take_answers(struct teller *t, int fd)
{
	unsigned char bytes[DATAGRAM_MAX + 1];
	unsigned count = 0;
	ssize_t n;

	/* an error is that of an earlier datagram of ours */
	while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) >= 0 || errno == ECONNREFUSED)
		count += n > 0 && take_answer(t, bytes, (size_t)n) ? 1 : 0;
	return count;
}

/* Listens until so many have answered, or time is up. Returns how many have not. */
static unsigned hear(struct teller *t, unsigned awaited, unsigned within_ms)
{
	uint64_t end = uv_hrtime() + (uint64_t)within_ms * MS, now;

	while (awaited > 0 && (now = uv_hrtime()) < end) {
		if (poll(t->sockets, t->count, (int)((end - now + MS - 1) / MS)) <= 0)
			continue; /* its time is over, or a debugger was there */
		for (unsigned i = 0; i < t->count && awaited > 0; i++)
			if (t->sockets[i].revents)
				awaited -= take_answers(t, t->sockets[i].fd);
	}
	return awaited;
}

/* Tells each until it answers. False: some have not. */
static bool tell_all(struct teller *t, enum notice_kind kind)
{
	unsigned waited_ms = 0, awaited = 1;

	t->notice.kind = kind;
	for (unsigned i = 0; i < t->book->end; i++)
		t->book->entries[i].answered = false;
	for (unsigned ms = FIRST_WAIT_MS; awaited > 0 && waited_ms < DEATH_NOTICE_ROUND_MS;
		ms *= 2) {
		awaited = hear(t, tell_rest(t), ms);
		waited_ms += ms;
	}
	return awaited == 0;
}

/* Whether there are peers, and all of them can be reached. */
static bool can_tell(const struct teller *t)
{
	unsigned count = 0;

	for (unsigned i = 0; i < t->book->end; i++) {
		const struct death_notice_entry *e = &t->book->entries[i];

		if (e->used && (e->socket >= t->count || address_size(&e->to) == 0))
			return false;
		count += e->used ? 1 : 0;
	}
	return count > 0 && !t->book->full;
}

bool death_notice_tell(struct death_notice *o, int signal)
{
	struct teller t = { .book = o->book, .notice = { .signal = signal } };
	bool all;

	if (!o->book)
		return false;
	take_sockets(o->take, &t);
	all = can_tell(&t) && tell_all(&t, NOTICE_KILLED);
	if (all)
		(void)tell_all(&t, NOTICE_AGREED); /* they know; it's up to the way to them now */
	for (unsigned i = 0; i < t.count; i++)
		fd_closep(&t.sockets[i].fd);
	return all;
}
