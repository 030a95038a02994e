/* links_dial.c - see links_dial.h */
#include "daemon/check/links_dial.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "common/sm.h"
#include "daemon/check/links_tcp.h"

/* How much is sent: enough for TCP to find its speed, and for a few losses in a hundred to be seen;
 * on a fast link as much as goes in a time that a clock can measure; and on a slow one what goes in
 * a quarter of a second, as all partners of a node want their turn. */
enum {
	TRY_LEAST = 2 << 20,
	TRY_MOST = 64 << 20,
	TRY_LEAST_US = 20000,
	TRY_MOST_US = 250000,
	/* Until it is said that nothing gets through: TCP sends again after 0.2, 0.6 and 1.4 s. */
	STALL_US = 800000,
	SMALL_BYTES = 32 << 10,
	SMALL_SEGMENT = 536, /* what every path of IPv4 must carry, and less than of IPv6 */
	SMALL_US = 500000,
	AGAIN_US = 1200000, /* for another connection, while one SYN may be lost */
	LOOK_US = 25000,    /* from look to look at what has been acknowledged */
	PIECE = 128 << 10,
};

static const struct sm_state states[LINKS_DIAL_STATES] = {
	[LINKS_DIAL_RESTING] = { "resting", SM_TO(LINKS_DIAL_CONNECTING) },
	[LINKS_DIAL_CONNECTING] = { "connecting",
		SM_TO(LINKS_DIAL_ASKING) | SM_TO(LINKS_DIAL_RESTING) },
	[LINKS_DIAL_ASKING] = { "asking", SM_TO(LINKS_DIAL_SENDING) | SM_TO(LINKS_DIAL_RESTING) },
	[LINKS_DIAL_SENDING] = { "sending", SM_TO(LINKS_DIAL_ENDING) | SM_TO(LINKS_DIAL_RESTING) },
	[LINKS_DIAL_ENDING] = { "ending", SM_TO(LINKS_DIAL_RESTING) },
};
const struct sm links_dial_life = { "trial of a link", states, LINKS_DIAL_STATES };

static char data[PIECE]; /* zeros, which are not in the program file */

static void dial_goto(
	struct links_dial *d, enum links_dial_state next, int64_t now_us, int64_t limit_us)
{
	d->state = sm_go(&links_dial_life, d->state, next);
	d->begun_us = d->moved_us = d->looked_us = now_us;
	d->until_us = limit_us == INT64_MAX ? INT64_MAX : now_us + limit_us;
	if (next == LINKS_DIAL_RESTING)
		links_tcp_drop(&d->fd);
}

static void rest(struct links_dial *d, int64_t now_us)
{
	dial_goto(d, LINKS_DIAL_RESTING, now_us, INT64_MAX);
}

/* The first try's result stays where another one tells less. */
static void end_with(struct links_dial *d, enum links_result result, int64_t now_us)
{
	if (d->purpose == LINKS_TRY && d->told.state != LINKS_DONE)
		d->told.state = result;
	rest(d, now_us);
}

void links_dial_init(struct links_dial *d, const struct links_partner *partner, uint32_t from)
{
	*d = (struct links_dial){
		.state = LINKS_DIAL_RESTING,
		.partner = partner,
		.from = from,
		.fd = -1,
		.until_us = INT64_MAX,
		.told = { .node = partner->node, .state = LINKS_UNTRIED },
	};
}

/* --- connecting --- */

static void fail_to_connect(struct links_dial *d, int rc, int64_t now_us)
{
	end_with(d, rc == -ECONNREFUSED || rc == -ECONNRESET ? LINKS_REFUSED : LINKS_UNREACHED,
		now_us);
}

void links_dial_begin(struct links_dial *d, enum links_purpose purpose, int64_t now_us)
{
	int fd = links_tcp_dial(&d->partner->at, purpose == LINKS_TRY_SMALL ? SMALL_SEGMENT : 0);

	d->purpose = purpose;
	d->sent = d->acked = 0;
	dial_goto(d, LINKS_DIAL_CONNECTING, now_us,
		d->told.state == LINKS_UNTRIED ? LINKS_CONNECT_US : AGAIN_US);
	if (fd < 0)
		fail_to_connect(d, fd, now_us);
	else
		d->fd = fd;
}

static void on_connected(struct links_dial *d, int64_t now_us)
{
	const struct links_hello hello = {
		.magic = LINKS_MAGIC,
		.token = d->partner->token,
		.node = d->from,
		.purpose = d->purpose,
	};
	int rc = links_tcp_outcome(d->fd);

	if (rc < 0) {
		fail_to_connect(d, rc, now_us);
		return;
	}
	/* into a buffer that is empty: it takes all of it */
	if (send(d->fd, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello) {
		end_with(d, LINKS_BROKEN, now_us);
		return;
	}
	if (d->purpose == LINKS_BYE) {
		fd_closep(&d->fd); /* not dropped: it must still arrive */
		rest(d, now_us);
		return;
	}
	dial_goto(d, LINKS_DIAL_ASKING, now_us, INT64_MAX);
}

/* --- sending --- */

static uint64_t least_bytes(const struct links_dial *d)
{
	return d->purpose == LINKS_TRY ? TRY_LEAST : SMALL_BYTES;
}

/* Looks at what has been acknowledged of the data. */
static bool look(struct links_dial *d, struct links_tcp *ret, int64_t now_us)
{
	uint64_t acked;

	d->looked_us = now_us;
	if (links_tcp_read(d->fd, ret) < 0)
		return false;
	/* the hello, and the SYN that counts as a byte */
	acked = ret->acked > sizeof(struct links_hello) + 1 ?
		ret->acked - sizeof(struct links_hello) - 1 :
		0;
	if (acked > d->acked)
		d->moved_us = now_us;
	d->acked = acked;
	return true;
}

static uint64_t bits_per_second(uint64_t bytes, int64_t us)
{
	return us > 0 ? bytes * 8 * 1000000 / (uint64_t)us : 0;
}

/* For how long the network was waited for: neither for this process to send nor for the other one
 * to read, which on a busy machine may take longer. */
static int64_t network_us(const struct links_tcp *tcp, int64_t us)
{
	int64_t net_us = (int64_t)(tcp->busy_us - tcp->receiver_us);

	if (tcp->busy_us == 0 || net_us > us)
		return us;
	return net_us > 0 ? net_us : 1;
}

static void record(struct links_dial *d, const struct links_tcp *tcp, int64_t us)
{
	struct link_told *t = &d->told;
	uint64_t bit_s = bits_per_second(d->acked, us);
	uint64_t net_bit_s = bits_per_second(d->acked, network_us(tcp, us));

	t->state = LINKS_DONE;
	t->tries++;
	if (t->tries == 1 || tcp->rtt_us < t->rtt_us)
		t->rtt_us = tcp->rtt_us;
	if (net_bit_s > t->net_bit_s) {
		t->bit_s = bit_s;
		t->net_bit_s = net_bit_s;
	}
	t->segments += tcp->segments;
	t->resent += tcp->resent;
	if (tcp->segment_max > t->segment_max)
		t->segment_max = tcp->segment_max;
}

/* Whatever there was is sent, or its time is over. */
static void finish(struct links_dial *d, int64_t now_us)
{
	struct links_tcp tcp;

	if (!look(d, &tcp, now_us)) {
		end_with(d, LINKS_BROKEN, now_us);
		return;
	}
	if (d->purpose == LINKS_TRY)
		record(d, &tcp, now_us - d->begun_us);
	else if (d->acked >= SMALL_BYTES)
		d->told.state = LINKS_BIG_LOST;
	rest(d, now_us);
}

static void send_some(struct links_dial *d, int64_t now_us)
{
	ssize_t n = send(d->fd, data, sizeof data, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		end_with(d, LINKS_BROKEN, now_us);
		return;
	}
	d->sent += n > 0 ? (uint64_t)n : 0;
	if (d->sent < least_bytes(d) ||
		(d->purpose == LINKS_TRY && now_us - d->begun_us < TRY_LEAST_US &&
			d->sent < TRY_MOST))
		return;
	if (shutdown(d->fd, SHUT_WR) < 0) {
		end_with(d, LINKS_BROKEN, now_us);
		return;
	}
	/* the same time goes on */
	d->state = sm_go(&links_dial_life, d->state, LINKS_DIAL_ENDING);
}

/* A byte of the partner's. */
static void on_answer(struct links_dial *d, int64_t now_us)
{
	char said = 0;
	ssize_t n = recv(d->fd, &said, 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == 1 && said == LINKS_GO && d->state == LINKS_DIAL_ASKING)
		dial_goto(d, LINKS_DIAL_SENDING, now_us,
			d->purpose == LINKS_TRY ? TRY_MOST_US : SMALL_US);
	else if (n == 1 && said == LINKS_GOT && d->state == LINKS_DIAL_ENDING)
		finish(d, now_us);
	else
		end_with(d, n <= 0 && d->state == LINKS_DIAL_ASKING ? LINKS_SILENT : LINKS_BROKEN,
			now_us);
}

/* --- the loop's side --- */

short links_dial_events(const struct links_dial *d, bool may_send)
{
	switch (d->state) {
	case LINKS_DIAL_CONNECTING:
		return POLLOUT;
	case LINKS_DIAL_SENDING:
		return POLLOUT | POLLIN;
	case LINKS_DIAL_ASKING:
		return may_send ? POLLIN : 0;
	case LINKS_DIAL_ENDING:
		return POLLIN;
	case LINKS_DIAL_RESTING:
	case LINKS_DIAL_STATES:
		break;
	}
	return 0;
}

void links_dial_ready(struct links_dial *d, short found, int64_t now_us)
{
	if (d->state == LINKS_DIAL_CONNECTING)
		on_connected(d, now_us);
	else if (found & (POLLIN | POLLERR | POLLHUP))
		on_answer(d, now_us);
	else if (found & POLLOUT && d->state == LINKS_DIAL_SENDING)
		send_some(d, now_us);
}

/* Its time is over, with something acknowledged or nothing. */
static void on_late(struct links_dial *d, int64_t now_us)
{
	if (d->purpose != LINKS_TRY || d->acked > 0)
		finish(d, now_us);
	else if (now_us - d->begun_us < STALL_US)
		d->until_us = d->begun_us + STALL_US;
	else
		end_with(d, LINKS_STALLED, now_us);
}

void links_dial_tick(struct links_dial *d, int64_t now_us)
{
	struct links_tcp tcp;

	if (now_us < links_dial_due_us(d))
		return;
	if (d->state == LINKS_DIAL_CONNECTING)
		end_with(d, LINKS_UNREACHED, now_us);
	if (d->state != LINKS_DIAL_SENDING && d->state != LINKS_DIAL_ENDING)
		return;
	if (!look(d, &tcp, now_us))
		end_with(d, LINKS_BROKEN, now_us);
	else if (now_us >= d->until_us)
		on_late(d, now_us);
}

int64_t links_dial_due_us(const struct links_dial *d)
{
	if (d->state != LINKS_DIAL_SENDING && d->state != LINKS_DIAL_ENDING)
		return d->until_us;
	return d->until_us < d->looked_us + LOOK_US ? d->until_us : d->looked_us + LOOK_US;
}

bool links_dial_is_busy(const struct links_dial *d, int64_t now_us)
{
	return (d->state == LINKS_DIAL_SENDING || d->state == LINKS_DIAL_ENDING) &&
		now_us - d->moved_us < LINKS_IDLE_US;
}

void links_dial_stop(struct links_dial *d, int64_t now_us)
{
	bool sends = d->state == LINKS_DIAL_SENDING || d->state == LINKS_DIAL_ENDING;

	if (sends && d->acked > 0)
		finish(d, now_us);
	else if (sends || d->state == LINKS_DIAL_ASKING)
		end_with(d, LINKS_SILENT, now_us);
	else if (d->state != LINKS_DIAL_RESTING)
		rest(d, now_us);
}
