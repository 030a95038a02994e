/* link_resume.c - another connection in the place of one that broke or lets nothing through; see
 * link.h and handshake.h */
#include "daemon/net/link.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/net/talk.h"

/* The connection of `from` goes on under l: it brings the peer's stream from in_at on, and wants
 * ours from out_at on. from is closed. */
static void take_over(struct link *l, struct link *from, uint64_t in_at, uint64_t out_at)
{
	const unsigned char *more = from->in.at + from->in.begin;
	size_t len = from->in.end - from->in.begin;
	uv_os_fd_t fd;
	autoclose copy = -1;

	if (out_at > kept_sent(&l->kept) || kept_sent(&l->kept) - out_at > 4 * LINK_QUEUE_MAX) {
		link_fail(from, LINK_END_BROKEN, "%s resumes what was never said", from->peer);
		return;
	}
	if (uv_fileno((uv_handle_t *)from->tcp, &fd) == 0)
		copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0 || link_put_under(l, copy) < 0) { /* it is tried again */
		link_close(from, false, "no descriptor or no memory");
		return;
	}
	(void)fd_take(&copy);
	from->moved = true;
	l->was_reset = from->was_reset;
	l->broke_ns = 0;
	l->eof = false;
	l->heard_ns = uv_hrtime();
	l->tcp_taken = in_at + len;
	link_acknowledge(l, out_at);
	if (l->state < LINK_CLOSING && link_resend(l, out_at) == 0) {
		if (l->tcp) /* else it has broken at once */
			link_start_reading(l);
		(void)link_take(l, in_at, more, len);
	}
	link_close(from, false, "the connection goes on as that of an older link");
	if (l->beats.watcher)
		l->beats.watcher->on_change(l);
}

void link_resume(struct link *l, const struct ready *r)
{
	struct link *older = l->find ? l->find(l, r->session) : NULL;
	unsigned char bytes[8];
	struct wire_out w = wire_fixed(bytes, sizeof bytes);
	uint64_t taken;

	if (!older || older == l || memcmp(older->token, r->token, sizeof r->token) != 0) {
		link_close(
			l, true, "what it resumes is not here"); /* a farewell: it has its answer */
		return;
	}
	taken = older->taken;
	wire_put_u64(&w, taken);
	if (link_put(l, FRAME_RESUME, bytes, w.len) == 0 && l->state == LINK_OPEN)
		take_over(older, l, taken, r->taken);
}

void link_resumed(struct link *l, const struct frame *f)
{
	struct wire_in w = wire_from(f->payload, f->len);
	uint64_t taken = wire_get_u64(&w);

	if (!wire_is_read(&w))
		link_fail(l, LINK_END_BROKEN, "%s does not say what it resumes", l->peer);
	else
		take_over(l->resumes, l, l->resumes_at, taken);
}

static void hear_nothing(struct link *l, unsigned type, const unsigned char *payload, size_t len)
{
	(void)l, (void)type, (void)payload, (void)len;
}

/* The hub says farewell where it knows no such link any more. */
static void on_fresh_closed(struct link *fresh, const char *why)
{
	struct link *l = fresh->resumes;
	enum link_end end = fresh->end;

	(void)why;
	free(fresh);
	l->fresh = NULL;
	if (l->state == LINK_OPEN && end == LINK_END_PEERS)
		link_fail(l, LINK_END_LOST, "%s takes this node for lost", l->peer);
	else if (l->beats.watcher)
		l->beats.watcher->on_change(l);
	link_handle_closed(l);
}

void link_redial(struct link *l)
{
	struct failure why = { 0 };
	struct link *fresh = l->fresh ? NULL : calloc(1, sizeof *fresh);

	if (!fresh)
		return;
	*fresh = (struct link){ .on_message = hear_nothing,
		.on_closed = on_fresh_closed,
		.timeout_ms = l->timeout_ms,
		.resumes = l };
	if (link_dial(fresh, l->limit.loop, (const struct sockaddr *)&l->peer_address, l->auth,
		    &why) < 0) {
		free(fresh);
		return;
	}
	l->fresh = fresh;
	l->handles++;
}
