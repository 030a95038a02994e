/* party.c - see party.h */
#include "daemon/cluster/party.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/cluster/message.h"
#include "daemon/net/beat.h"
#include "daemon/net/wire.h"
#include "daemon/observe/bus.h"

void party_part_closed(struct party *p)
{
	if (--p->parts == 0 && p->closing)
		p->on->closed(p->owner);
}

void party_say(const struct party *p, enum note_level level, const char *fmt, ...)
{
	struct text t = { 0 };
	va_list ap;

	va_start(ap, fmt);
	text_vprintf(&t, fmt, ap);
	va_end(ap);
	bus_note(p->bus, level, text_string(&t));
	text_done(&t);
}

void party_tell_node(const struct party *p, unsigned node, const char *name, const char *why)
{
	bus_emit(p->bus,
		&(struct event){
			.kind = why ? EVENT_NODE_LOST : EVENT_NODE_JOINED,
			.other = { node, name, why },
		});
}

/* What another node refuses comes as an errno, which decides the exit code here. */
void party_fail(const struct party *p, int code, const char *fmt, ...)
{
	struct failure why = { 0 };
	struct text t = { 0 };
	const char *text;
	va_list ap;

	va_start(ap, fmt);
	text_vprintf(&t, fmt, ap);
	va_end(ap);
	text = text_string(&t);
	if (code == -EINVAL)
		(void)failure_usage(&why, "%s", text);
	else if (code == -ENOENT || code == -EACCES) /* of --wrap, on another node */
		(void)failure_program(&why, code, "%s", text);
	else
		(void)failure_set(&why, code, "%s", text);
	text_done(&t);
	p->on->failed(p->owner, &why);
}

void party_over_unstarted(const struct party *p, const struct cause *cause)
{
	const struct result r = { .cause = *cause };
	struct job_end end = { .why_not = "" };

	verdict_make(&r, &end.verdict);
	p->on->over(p->owner, &end);
}

int party_met(const struct party *p, const struct meeting *met, struct failure *why)
{
	if (p->config->verbose && !met->alone)
		party_say(p, NOTE_INFO, "the launchers have met after %.2f s; this is node rank %u",
			(double)(uv_hrtime() - p->began_ns) / 1e9, met->node_rank);
	return p->on->met(p->owner, met, why);
}

bool party_slept(const struct beat *b, unsigned node, struct cause *ret)
{
	uint64_t slept_ms = beat_slept_ms(b), now = uv_hrtime();

	if (slept_ms == 0)
		return false;
	*ret = (struct cause){
		.kind = CAUSE_NODE_LOST,
		.at_ns = now > slept_ms * 1000000 ? now - slept_ms * 1000000 : 1,
		.noticed_ns = now,
		.node = node,
		.asleep = true,
	};
	(void)snprintf(ret->detail, sizeof ret->detail,
		"its launcher did not run for %.1f s, so the other nodes considered it lost",
		(double)slept_ms / 1000);
	return true;
}

uint64_t party_wait(const struct party *p, uv_timer_t *t, uv_timer_cb then, uint64_t ms)
{
	uv_update_time(p->loop);
	(void)uv_timer_start(t, then, ms, 0);
	return uv_now(p->loop) + ms;
}

bool party_overslept(const struct party *p, uint64_t overdue_ms)
{
	return uv_now(p->loop) > overdue_ms + p->config->node_timeout_ms / 4;
}

uint64_t party_left_ms(const struct party *p, uint64_t until_ms)
{
	uint64_t now = uv_now(p->loop);

	return until_ms > now ? until_ms - now : 0;
}

struct address party_own_address(const struct link *l)
{
	struct address at = { 0 };
	socklen_t len = sizeof at;
	uv_os_fd_t fd;

	if (!l->tcp || uv_fileno((const uv_handle_t *)l->tcp, &fd) < 0 ||
		getsockname(fd, &at.any, &len) < 0)
		return (struct address){ 0 };
	return address_unmapped(&at);
}

void party_send(struct link *to, const struct message *m)
{
	struct wire_out w = { 0 };

	message_put(&w, m);
	(void)link_send(to, m->type, w.at, w.len);
	wire_out_done(&w);
}

void party_introduce(const struct party *p, struct link *hub)
{
	const struct member_config *c = p->config;
	struct message m = {
		.type = MESSAGE_JOIN,
		.join = {
			.node_rank = c->node_rank_known ? c->node_rank : NODE_RANK_UNKNOWN,
			.nnodes = c->nnodes,
			.nproc = c->nproc,
			.max_restarts = c->policy.max_restarts,
			.store = c->store_wish,
			.run_hash = message_hash(c->run_id),
			.job_hash = message_hash(c->job),
			.version = LAUNCHD_VERSION,
			.after_end_ms = (uint32_t)c->after_end_ms,
			.peer = c->peer,
		},
	};

	(void)strncpy(m.join.run_id, c->run_id ? c->run_id : "", sizeof m.join.run_id - 1);
	(void)strncpy(m.join.job, c->job ? c->job : "", sizeof m.join.job - 1);
	(void)strncpy(m.join.name, c->name, sizeof m.join.name - 1);
	address_host_text(&hub->peer_address, m.join.reached);
	party_send(hub, &m);
}
