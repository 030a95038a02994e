/* links_talk.c - see links_talk.h */
#include "daemon/check/links_talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "common/failure.h"
#include "daemon/check/links_dial.h"
#include "daemon/check/links_guest.h"

enum {
	GUESTS_MAX = 4 * LINKS_ROUNDS_MAX, /* a partner has one or two; more are strangers */
	POLLED_MAX = 1 + LINKS_ROUNDS_MAX + GUESTS_MAX,
	STRANGER_US = 500000, /* for its greeting, once all places are taken */
};

/* One after the other, each for all partners. A rate is nothing to rely on before it was seen
 * twice, a while apart. */
enum links_step { TRYING, AGAIN, LEAVING, LEFT };

struct talk {
	const struct links_talk *how;
	int64_t began_us, until_us;
	enum links_step step;
	struct links_dial dials[LINKS_ROUNDS_MAX];
	struct links_guest guests[GUESTS_MAX];
	bool heard[LINKS_ROUNDS_MAX], bye[LINKS_ROUNDS_MAX]; /* of each partner */
	unsigned turn;                                       /* the guest that was admitted last */
};

static int64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static bool is_known(const struct talk *t, unsigned i)
{
	return t->how->partners[i].at.any.sa_family != AF_UNSPEC;
}

/* --- who dials us --- */

static void on_hello(struct talk *t, struct links_guest *g)
{
	for (unsigned i = 0; i < t->how->count; i++) {
		if (g->hello.magic != LINKS_MAGIC || g->hello.token != t->how->token ||
			g->hello.node != t->how->partners[i].node)
			continue;
		t->heard[i] = true;
		t->bye[i] |= g->hello.purpose == LINKS_BYE;
		if (g->hello.purpose == LINKS_BYE)
			break;
		links_guest_queue(g);
		return;
	}
	links_guest_end(g);
}

/* A free place, or that of somebody who has had time enough to greet. */
static struct links_guest *free_place(struct talk *t, int64_t now)
{
	for (unsigned i = 0; i < GUESTS_MAX; i++)
		if (t->guests[i].state == LINKS_GUEST_NONE)
			return &t->guests[i];
	for (unsigned i = 0; i < GUESTS_MAX; i++)
		if (t->guests[i].state == LINKS_GUEST_GREETING &&
			now - t->guests[i].moved_us > STRANGER_US) {
			links_guest_end(&t->guests[i]);
			return &t->guests[i];
		}
	return NULL;
}

static void accept_all(struct talk *t, int64_t now)
{
	struct links_guest *place;
	int fd;

	while ((place = free_place(t, now)) != NULL) {
		fd = accept4(t->how->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		links_guest_begin(place, fd, now);
	}
}

/* The next guest's turn, if no other one carries data. */
static void admit(struct talk *t, int64_t now)
{
	for (unsigned i = 0; i < GUESTS_MAX; i++)
		if (links_guest_is_busy(&t->guests[i], now))
			return;
	for (unsigned i = 1; i <= GUESTS_MAX; i++) {
		unsigned at = (t->turn + i) % GUESTS_MAX;

		if (t->guests[at].state == LINKS_GUEST_QUEUING) {
			links_guest_admit(&t->guests[at], now);
			t->turn = at;
			return;
		}
	}
}

/* --- whom we dial --- */

static bool all_rest(const struct talk *t)
{
	for (unsigned i = 0; i < t->how->count; i++)
		if (t->dials[i].state != LINKS_DIAL_RESTING)
			return false;
	return true;
}

static bool was_reached(const struct links_dial *d)
{
	return d->told.state != LINKS_UNTRIED && d->told.state != LINKS_UNREACHED &&
		d->told.state != LINKS_REFUSED;
}

static void begin_step(struct talk *t, int64_t now)
{
	for (unsigned i = 0; i < t->how->count; i++) {
		struct links_dial *d = &t->dials[i];

		if ((t->step == TRYING && is_known(t, i)) ||
			(t->step == AGAIN && d->told.state == LINKS_DONE))
			links_dial_begin(d, LINKS_TRY, now);
		else if (t->step == LEAVING && was_reached(d))
			links_dial_begin(d, LINKS_BYE, now);
	}
}

/* Begins what comes next: another look at a link that carries nothing, or the next step. */
static void go_on(struct talk *t, int64_t now)
{
	for (unsigned i = 0; i < t->how->count; i++) {
		struct links_dial *d = &t->dials[i];

		if (d->state == LINKS_DIAL_RESTING && d->told.state == LINKS_STALLED &&
			d->purpose == LINKS_TRY)
			links_dial_begin(d, LINKS_TRY_SMALL, now);
	}
	while (t->step != LEFT && all_rest(t)) {
		t->step++;
		begin_step(t, now);
	}
}

/* --- until all are done --- */

/* Nobody is waited for who can't be reached and hasn't come either, nor who wasn't there. */
static bool is_over(const struct talk *t, int64_t now)
{
	bool late = now - t->began_us >= LINKS_CONNECT_US;

	if (now >= t->until_us)
		return true;
	if (t->step != LEFT)
		return false;
	for (unsigned i = 0; i < t->how->count; i++)
		if (is_known(t, i) && !t->bye[i] && (t->heard[i] || !late))
			return false;
	return true;
}

static bool some_wait(const struct talk *t)
{
	for (unsigned i = 0; i < GUESTS_MAX; i++)
		if (t->guests[i].state == LINKS_GUEST_QUEUING)
			return true;
	return false;
}

/* When something is to be done that no socket tells; whoever waits for a turn may have it when what
 * moves now does so no more. */
static int next_ms(const struct talk *t, int64_t now)
{
	int64_t due = t->until_us, late = t->began_us + LINKS_CONNECT_US;

	if (late > now && late < due)
		due = late;
	if (some_wait(t) && now + LINKS_IDLE_US < due)
		due = now + LINKS_IDLE_US;
	for (unsigned i = 0; i < t->how->count; i++)
		if (links_dial_due_us(&t->dials[i]) < due)
			due = links_dial_due_us(&t->dials[i]);
	return due <= now ? 0 : (int)((due - now) / 1000 + 1);
}

/* The listener, then partners, then guests: -1 is none for poll(2). */
static void list_sockets(struct talk *t, struct pollfd polled[POLLED_MAX], int64_t now)
{
	bool may_send = true;

	for (unsigned i = 0; i < t->how->count; i++)
		may_send &= !links_dial_is_busy(&t->dials[i], now);
	*polled++ = (struct pollfd){ .fd = t->how->listener, .events = POLLIN };
	for (unsigned i = 0; i < LINKS_ROUNDS_MAX; i++)
		*polled++ = (struct pollfd){ .fd = i < t->how->count ? t->dials[i].fd : -1,
			.events = links_dial_events(&t->dials[i], may_send) };
	for (unsigned i = 0; i < GUESTS_MAX; i++)
		*polled++ = (struct pollfd){ .fd = t->guests[i].fd,
			.events = links_guest_events(&t->guests[i]) };
}

static void serve(struct talk *t, const struct pollfd polled[POLLED_MAX], int64_t now)
{
	const struct pollfd *guests = polled + 1 + LINKS_ROUNDS_MAX;

	for (unsigned i = 0; i < t->how->count; i++)
		if (polled[1 + i].revents)
			links_dial_ready(&t->dials[i], polled[1 + i].revents, now);
	for (unsigned i = 0; i < GUESTS_MAX; i++)
		if (guests[i].revents && links_guest_ready(&t->guests[i], now))
			on_hello(t, &t->guests[i]);
	if (polled[0].revents)
		accept_all(t, now);
}

static int work(struct talk *t, struct failure *why)
{
	struct pollfd polled[POLLED_MAX];
	int64_t now = t->began_us;

	for (go_on(t, now); !is_over(t, now); go_on(t, now)) {
		admit(t, now);
		list_sockets(t, polled, now);
		if (poll(polled, POLLED_MAX, next_ms(t, now)) < 0) {
			if (errno != EINTR)
				return failure_set(why, -errno, "the check of links can't wait: %s",
					strerror(errno));
			memset(polled, 0, sizeof polled);
		}
		now = now_us();
		serve(t, polled, now);
		for (unsigned i = 0; i < t->how->count; i++)
			links_dial_tick(&t->dials[i], now);
	}
	for (unsigned i = 0; i < t->how->count; i++)
		links_dial_stop(&t->dials[i], now);
	return 0;
}

int links_talk(const struct links_talk *how, struct links_told *ret, struct failure *why)
{
	struct talk t = { .how = how, .began_us = now_us() };
	int rc;

	t.until_us = t.began_us + LINKS_TALK_MS * 1000LL;
	if (how->until_ms * 1000 < t.until_us)
		t.until_us = how->until_ms * 1000;
	for (unsigned i = 0; i < GUESTS_MAX; i++)
		t.guests[i].fd = -1;
	for (unsigned i = 0; i < how->count; i++)
		links_dial_init(&t.dials[i], &how->partners[i], how->node);
	begin_step(&t, t.began_us);
	rc = work(&t, why);
	ret->count = how->count;
	for (unsigned i = 0; i < how->count; i++)
		ret->at[i] = t.dials[i].told;
	for (unsigned i = 0; i < GUESTS_MAX; i++)
		links_guest_end(&t.guests[i]);
	return rc;
}
