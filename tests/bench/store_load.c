/* store_load.c - clients of a TCPStore of torch 2.2 or later, to measure what serves them.
 *
 *   store_load PORT CLIENTS MILLISECONDS mix|multi_get|large
 *
 * Each client asks, waits for the answer, and asks again, as torch's do, all of them in one
 * process. mix        SET of a key of 40 bytes with 64, GET of it, ADD: three requests, two answers
 *   multi_get  64 such keys at once
 *   large      GET of 1 MiB
 * The clock begins when all of them have had a first answer: torch's server asks the DNS for the
 * name of each one that comes, and answers nobody meanwhile. It goes on until there is an answer,
 * also where a busy machine lets none come in time. Prints how many requests it were in how long,
 * the median and 99th percentile of an answer's time, and how long it was until those first
 * answers, in ns. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { KEY = 40, VALUE = 64, KEYS = 64, LARGE = 1 << 20, CLIENTS_MAX = 1024, TIMES_MAX = 1 << 22 };
enum { SET = 1, GET = 3, ADD = 4, MULTI_GET = 10, PING = 13 };

struct client {
	int fd;
	unsigned number, step;
	uint64_t asked_ns;
	size_t awaited; /* bytes of the answer still to come */
};

static struct client clients[CLIENTS_MAX];
static uint32_t times[TIMES_MAX];
static size_t answers, requests;
static const char *what;

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void fail(const char *why)
{
	perror(why);
	exit(1);
}

static void send_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n <= 0)
			fail("send");
		bytes += n;
		len -= (size_t)n;
	}
}

static char *add_number(char *to, uint64_t number)
{
	memcpy(to, &number, sizeof number);
	return to + sizeof number;
}

static char *add_key(char *to, unsigned client, unsigned key)
{
	char name[64];

	(void)snprintf(name, sizeof name, "/default_pg/0//cpu//client%08u/%06u", client, key);
	to = add_number(to, KEY);
	memcpy(to, name, KEY);
	return to + KEY;
}

static void set(struct client *c, unsigned key, size_t size)
{
	static char request[LARGE + 256];
	char *end = request;

	*end++ = SET;
	end = add_key(end, c->number, key);
	end = add_number(end, size);
	memset(end, 'v', size);
	send_all(c->fd, request, (size_t)(end + size - request));
	requests++;
}

/* Asks the next thing. */
static void ask(struct client *c)
{
	char request[KEYS * (KEY + 8) + 64], *end = request;

	if (*what == 'm' && what[1] == 'i') { /* mix */
		if (c->step % 2 == 0)
			set(c, c->step / 2 % 128, VALUE);
		*end++ = c->step % 2 == 0 ? GET : ADD;
		end = add_key(end, c->number, c->step % 2 == 0 ? c->step / 2 % 128 : 999);
		c->awaited = sizeof(uint64_t) + (c->step % 2 == 0 ? VALUE : 0);
		if (c->step % 2 == 1)
			end = add_number(end, 1);
	} else if (*what == 'm') {
		*end++ = MULTI_GET;
		end = add_number(end, KEYS);
		for (unsigned i = 0; i < KEYS; i++)
			end = add_key(end, c->number, i);
		c->awaited = KEYS * (sizeof(uint64_t) + VALUE);
	} else {
		*end++ = GET;
		end = add_key(end, c->number, 0);
		c->awaited = sizeof(uint64_t) + LARGE;
	}
	c->step++;
	requests++;
	c->asked_ns = now_ns();
	send_all(c->fd, request, (size_t)(end - request));
}

static void hear(struct client *c)
{
	static char bytes[LARGE];
	size_t room = c->awaited < sizeof bytes ? c->awaited : sizeof bytes;
	ssize_t n = recv(c->fd, bytes, room, 0);

	if (n <= 0)
		fail("recv");
	c->awaited -= (size_t)n;
	if (c->awaited > 0)
		return;
	if (answers < TIMES_MAX)
		times[answers++] = (uint32_t)(now_ns() - c->asked_ns);
	ask(c);
}

static void connect_to(struct client *c, unsigned port)
{
	static const char hello[] = { 0x00, (char)0xce, (char)0xf7, (char)0x85, 0x3c };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	const int one = 1;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0 ||
		connect(c->fd, (struct sockaddr *)&in, sizeof in) < 0)
		fail("connect");
	send_all(c->fd, hello, sizeof hello);
	if (*what == 'l')
		set(c, 0, LARGE);
	for (unsigned i = 0; *what == 'm' && i < KEYS; i++)
		set(c, i, VALUE);
}

/* Each of them has been let in, and all that it has sent is done. */
static void greet(unsigned count)
{
	static const char ping[] = { PING, 1, 2, 3, 4 };
	char answer[4];

	for (unsigned i = 0; i < count; i++)
		send_all(clients[i].fd, ping, sizeof ping);
	for (unsigned i = 0; i < count; i++)
		if (recv(clients[i].fd, answer, sizeof answer, MSG_WAITALL) != sizeof answer)
			fail("recv");
}

static int compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	const int epoll = epoll_create1(EPOLL_CLOEXEC);
	const unsigned count = argc == 5 ? (unsigned)atoi(argv[2]) : 0;
	uint64_t begun, until, came = now_ns();

	if (count < 1 || count > CLIENTS_MAX || epoll < 0)
		return 2;
	what = argv[4];
	for (unsigned i = 0; i < count; i++) {
		struct epoll_event e = { .events = EPOLLIN, .data.ptr = &clients[i] };

		clients[i].number = i;
		connect_to(&clients[i], (unsigned)atoi(argv[1]));
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, clients[i].fd, &e) < 0)
			fail("epoll_ctl");
	}
	greet(count);
	requests = 0;
	begun = now_ns();
	came = begun - came;
	until = begun + (uint64_t)atoi(argv[3]) * 1000000;
	for (unsigned i = 0; i < count; i++)
		ask(&clients[i]);
	while (now_ns() < until || answers == 0) {
		struct epoll_event e[CLIENTS_MAX];
		int n = epoll_wait(epoll, e, CLIENTS_MAX, 1000);

		for (int i = 0; i < n; i++)
			hear(e[i].data.ptr);
	}
	until = now_ns();
	qsort(times, answers, sizeof *times, compare);
	printf("%zu %" PRIu64 " %u %u %" PRIu64 "\n", requests, until - begun, times[answers / 2],
		times[answers * 99 / 100], came);
	return 0;
}
