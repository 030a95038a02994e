/* netem.c - one network of simulated hosts: netem DEVICE SEED PID...
 *
 * Makes a TUN device in the network namespace of each PID (host 0, 1, ...) and carries packets
 * between them by the last 16 bits of their destination, which are the host's number + 1. What
 * goes elsewhere, or to many, is dropped. What a packet meets is set for each host and direction:
 * `out` is what it sends, `in` what it receives. Lines on stdin, each answered by one on stdout:
 *
 *   host N|all out|in|both [loss P] [delay MS] [jitter MS] [reorder 0|1] [cut 0|1] [rate MBIT/S]
 *       [no_udp 0|1] [no_tcp 0|1] [max_size BYTES] [reset 0|1] [forget MS]
 *   pair A B cut 0|1     no packet from A to B
 *   heal                 everything as at the start
 *   stats                "N out passed lost cut in passed lost cut", hosts in one line
 *
 * Loss is drawn by a generator of each host and direction, so that one stream of packets meets the
 * same losses in each run with the same seed. A delay is that of the direction plus up to jitter;
 * a packet overtakes one with the same sender and receiver only where reorder is set. At a rate
 * packets queue for up to QUEUE_NS, and more are lost. The second
 * line is of firewalls (wall.h); what they drop counts as cut. A packet that is under way when its
 * receiver is cut is lost. Nothing is lost unless asked for. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "flight.h"
#include "wall.h"

enum { HOSTS_MAX = 256, PACKET_MAX = 9216, BATCH = 32, QUEUE_DEVICE = 20000 };
enum { QUEUE_NS = 50000000 };
enum { OUT, IN, DIRECTIONS };
enum { PASSED, LOST, CUT, FATES };

struct direction {
	double loss, delay_ms, jitter_ms, rate;
	int64_t free_ns; /* when what has come before will have passed at this rate */
	bool reorder, cut;
	struct wall wall;
	uint64_t dice;
	uint64_t fates[FATES];
};

struct network {
	int count, timer, epoll;
	int devices[HOSTS_MAX];
	struct direction hosts[HOSTS_MAX][DIRECTIONS];
	bool pair_cut[HOSTS_MAX][HOSTS_MAX];
	int64_t last_ns[HOSTS_MAX][HOSTS_MAX]; /* when the newest packet of a pair is due */
	struct flight flight;
	struct wall_flows flows;
};

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "netem: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* splitmix64: from 0 to below 1 */
static double draw(uint64_t *dice)
{
	uint64_t z = *dice += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* The last step of a packet, which a cut of its receiver still prevents. */
static void deliver(struct network *n, int to, const unsigned char *bytes, size_t size)
{
	struct direction *in = &n->hosts[to][IN];

	if (in->cut) {
		in->fates[CUT]++;
		return;
	}
	in->fates[PASSED]++;
	/* a device that is down takes nothing, as a cable that is out */
	if (write(n->devices[to], bytes, size) < 0 && errno != EIO && errno != EINVAL &&
		errno != EBADFD)
		die("cannot write a packet");
}

/* Whether the packet gets through this direction; adds what it has to wait. */
static bool meets(struct direction *d, size_t size, int64_t now, int64_t *delay_ns)
{
	int64_t due_ns = now + *delay_ns;

	if (d->cut) {
		d->fates[CUT]++;
		return false;
	}
	if ((d->loss > 0 && draw(&d->dice) < d->loss) ||
		(d->rate > 0 && d->free_ns - due_ns > QUEUE_NS)) {
		d->fates[LOST]++;
		return false;
	}
	if (d->rate > 0) {
		d->free_ns = (d->free_ns > due_ns ? d->free_ns : due_ns) +
			(int64_t)((double)size * 8e3 / d->rate);
		*delay_ns += d->free_ns - due_ns;
	}
	*delay_ns += (int64_t)(d->delay_ms * 1e6);
	if (d->jitter_ms > 0)
		*delay_ns += (int64_t)(d->jitter_ms * 1e6 * draw(&d->dice));
	return true;
}

/* The receiver's number; -1: it is for nobody here, or for many. */
static int receiver(const struct network *n, const unsigned char *bytes, size_t size)
{
	unsigned number = 0;

	if (size >= 20 && bytes[0] >> 4 == 4 && bytes[16] < 224)
		number = (unsigned)bytes[18] << 8 | bytes[19];
	else if (size >= 40 && bytes[0] >> 4 == 6 && bytes[24] != 0xff)
		number = (unsigned)bytes[38] << 8 | bytes[39];
	return number >= 1 && number <= (unsigned)n->count ? (int)number - 1 : -1;
}

/* Both ends of its connection are told that there is none. */
static void reset(struct network *n, int from, int to, const unsigned char *bytes, size_t size)
{
	for (int back = 0; back < 2; back++) {
		unsigned char copy[PACKET_MAX];

		memcpy(copy, bytes, size);
		deliver(n, back ? from : to, copy, wall_reset(copy, size, back));
	}
}

/* Whether no wall on its way stops it. */
static bool is_let_through(
	struct network *n, int from, int to, const unsigned char *bytes, size_t size)
{
	const struct wall *walls[] = { &n->hosts[from][OUT].wall, &n->hosts[to][IN].wall };
	int64_t now = now_ns();
	struct wall_flow *flow = wall_flow(&n->flows, bytes, size, now);

	for (size_t i = 0; i < sizeof walls / sizeof *walls; i++) {
		if (!wall_passes(walls[i], bytes, size, flow, now))
			return false;
		if (flow && walls[i]->reset) {
			reset(n, from, to, bytes, size);
			return false;
		}
	}
	if (flow)
		flow->seen_ns = now;
	return true;
}

static void carry(struct network *n, int from, const unsigned char *bytes, size_t size)
{
	int to = receiver(n, bytes, size);
	struct direction *out = &n->hosts[from][OUT];
	int64_t delay_ns = 0, due_ns, now = now_ns();

	if (to < 0)
		return;
	if (n->pair_cut[from][to] || !is_let_through(n, from, to, bytes, size)) {
		out->fates[CUT]++;
		return;
	}
	if (!meets(out, size, now, &delay_ns))
		return;
	out->fates[PASSED]++;
	if (!meets(&n->hosts[to][IN], size, now, &delay_ns))
		return;
	due_ns = now + delay_ns;
	if (!out->reorder && !n->hosts[to][IN].reorder && due_ns < n->last_ns[from][to])
		due_ns = n->last_ns[from][to];
	n->last_ns[from][to] = due_ns;
	if (due_ns <= now) {
		deliver(n, to, bytes, size);
		return;
	}
	flight_add(&n->flight, due_ns, to, bytes, size);
}

static void deliver_due(struct network *n)
{
	int64_t now = now_ns(), next;

	while ((next = flight_next_ns(&n->flight)) > 0 && next <= now) {
		struct packet *p = flight_take(&n->flight);

		deliver(n, p->to, p->bytes, p->size);
		free(p);
	}
}

static void set_timer(struct network *n)
{
	int64_t at = flight_next_ns(&n->flight);
	const struct itimerspec t = { .it_value = { at / 1000000000, at % 1000000000 } };

	if (timerfd_settime(n->timer, TFD_TIMER_ABSTIME, &t, NULL) < 0)
		die("cannot set the timer");
}

/* Some of what a host has sent; the rest when the others had their turn. */
static void read_device(struct network *n, int from)
{
	unsigned char bytes[PACKET_MAX];

	for (int i = 0; i < BATCH; i++) {
		ssize_t size = read(n->devices[from], bytes, sizeof bytes);

		if (size < 0 && errno == EBADFD) /* the host is gone, and would be ready for ever */
			(void)epoll_ctl(n->epoll, EPOLL_CTL_DEL, n->devices[from], NULL);
		if (size <= 0)
			return;
		carry(n, from, bytes, (size_t)size);
	}
}

static bool set_direction(struct direction *d, const char *name, double value)
{
	bool known = true;

	if (strcmp(name, "loss") == 0 && value <= 1)
		d->loss = value;
	else if (strcmp(name, "delay") == 0)
		d->delay_ms = value;
	else if (strcmp(name, "jitter") == 0)
		d->jitter_ms = value;
	else if (strcmp(name, "rate") == 0)
		d->rate = value;
	else if (strcmp(name, "reorder") == 0)
		d->reorder = value > 0;
	else if (strcmp(name, "cut") == 0)
		d->cut = value > 0;
	else if (strcmp(name, "no_udp") == 0)
		d->wall.no_udp = value > 0;
	else if (strcmp(name, "no_tcp") == 0)
		d->wall.no_tcp = value > 0;
	else if (strcmp(name, "max_size") == 0)
		d->wall.max_size = (size_t)value;
	else if (strcmp(name, "reset") == 0)
		d->wall.reset = value > 0;
	else if (strcmp(name, "forget") == 0)
		d->wall.forget_ms = value;
	else
		known = false;
	return known;
}

/* "N|all out|in|both NAME VALUE..." */
static bool command_host(struct network *n, char *words)
{
	const char *who = strtok(words, " "), *where = strtok(NULL, " "), *name, *value;
	int first = who && strcmp(who, "all") != 0 ? atoi(who) : 0;
	int last = who && strcmp(who, "all") == 0 ? n->count - 1 : first;

	if (!where || first < 0 || last >= n->count || !strstr("out in both", where))
		return false;
	while ((name = strtok(NULL, " "))) {
		char *end = NULL;
		double number = (value = strtok(NULL, " ")) ? strtod(value, &end) : -1;

		if (!value || *end || !(number >= 0))
			return false;
		for (int host = first; host <= last; host++)
			for (int d = OUT; d < DIRECTIONS; d++)
				if ((strcmp(where, d == OUT ? "in" : "out") != 0) &&
					!set_direction(&n->hosts[host][d], name, number))
					return false;
	}
	return true;
}

static bool command_pair(struct network *n, const char *words)
{
	int from, to, cut;

	if (sscanf(words, "%d %d cut %d", &from, &to, &cut) != 3 || from < 0 || to < 0 ||
		from >= n->count || to >= n->count)
		return false;
	n->pair_cut[from][to] = cut > 0;
	return true;
}

static void heal(struct network *n)
{
	memset(n->pair_cut, 0, sizeof n->pair_cut);
	for (int host = 0; host < n->count; host++)
		for (int d = OUT; d < DIRECTIONS; d++) {
			struct direction *one = &n->hosts[host][d];

			one->loss = one->delay_ms = one->jitter_ms = 0;
			one->reorder = one->cut = false;
			one->wall = (struct wall){ 0 };
		}
}

static void print_stats(const struct network *n)
{
	for (int host = 0; host < n->count; host++) {
		(void)printf("%s%d", host ? " " : "", host);
		for (int d = OUT; d < DIRECTIONS; d++) {
			(void)printf(" %s", d == OUT ? "out" : "in");
			for (int fate = 0; fate < FATES; fate++)
				(void)printf(" %" PRIu64, n->hosts[host][d].fates[fate]);
		}
	}
	(void)putchar('\n');
}

/* One line of stdin. The test waits for each answer, so that no more than one is ever there. */
static void read_command(struct network *n)
{
	char line[512];
	bool done = true;
	ssize_t size = read(STDIN_FILENO, line, sizeof line - 1);

	if (size <= 0)
		exit(0);
	line[size] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "host ", 5) == 0)
		done = command_host(n, line + 5);
	else if (strncmp(line, "pair ", 5) == 0)
		done = command_pair(n, line + 5);
	else if (strcmp(line, "heal") == 0)
		heal(n);
	else if (strcmp(line, "stats") == 0)
		print_stats(n);
	else
		done = false;
	if (strcmp(line, "stats") != 0)
		(void)puts(done ? "ok" : "error");
}

/* A descriptor stays one of the namespace in which it was opened. */
static int open_device(const char *name, const char *pid)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	char path[64];
	int space, fd, net;

	(void)snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
	space = open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0 || setns(space, CLONE_NEWNET) < 0)
		die(path);
	(void)close(space);
	(void)snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0)
		die("/dev/net/tun");
	net = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	request.ifr_qlen = QUEUE_DEVICE;
	if (net < 0 || ioctl(net, SIOCSIFTXQLEN, &request) < 0)
		die("cannot set the length of a device's queue");
	(void)close(net);
	return fd;
}

static void watch(const struct network *n, int fd, int number)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = number };

	if (epoll_ctl(n->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		die("epoll_ctl");
}

static void setup(struct network *n, char **argv, int count)
{
	uint64_t seed = strtoull(argv[2], NULL, 10);

	n->count = count;
	n->epoll = epoll_create1(EPOLL_CLOEXEC);
	n->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (n->epoll < 0 || n->timer < 0)
		die("epoll or timerfd");
	watch(n, STDIN_FILENO, HOSTS_MAX);
	watch(n, n->timer, HOSTS_MAX + 1);
	for (int host = 0; host < count; host++) {
		n->devices[host] = open_device(argv[1], argv[3 + host]);
		watch(n, n->devices[host], host);
		for (int d = OUT; d < DIRECTIONS; d++) {
			n->hosts[host][d].dice = (seed << 16) + (uint64_t)(host * DIRECTIONS + d);
			/* generators of neighbouring seeds would run behind one another */
			(void)draw(&n->hosts[host][d].dice);
			n->hosts[host][d].dice *= 0xda942042e4dd58b5;
		}
	}
}

int main(int argc, char **argv)
{
	static struct network n;
	struct epoll_event events[HOSTS_MAX];
	const struct sched_param soon = { .sched_priority = 1 };

	if (argc < 4 || argc - 3 > HOSTS_MAX) {
		(void)fputs("usage: netem DEVICE SEED PID...\n", stderr);
		return 2;
	}
	setup(&n, argv, argc - 3);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)puts("ready");
	/* the network is not to wait for the hosts' programs, where that is allowed */
	(void)sched_setscheduler(0, SCHED_FIFO, &soon);
	for (;;) {
		int ready = epoll_wait(n.epoll, events, HOSTS_MAX, -1);
		uint64_t times;

		for (int i = 0; i < ready; i++) {
			if (events[i].data.fd < HOSTS_MAX)
				read_device(&n, events[i].data.fd);
			else if (events[i].data.fd == HOSTS_MAX)
				read_command(&n);
			else
				(void)!read(n.timer, &times, sizeof times);
		}
		deliver_due(&n);
		set_timer(&n);
	}
}
