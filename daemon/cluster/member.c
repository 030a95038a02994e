/* member.c - see member.h */
#include "daemon/cluster/member.h"

/* For --verbose. */
static void say_way(struct member *m)
{
	const struct member_config *c = m->party.config;

	if (!c->verbose || c->way == MEET_NOBODY)
		return;
	if (c->way == MEET_EXCHANGE)
		party_say(&m->party, NOTE_INFO, "the launchers of %u nodes meet by %s", c->nnodes,
			c->pmi_fd ? "PMI" : "PMIx");
	else
		party_say(&m->party, NOTE_INFO,
			"the launchers of %u nodes meet at %s, port %u (%s)", c->nnodes,
			c->hub_addr, c->hub_port, c->port_from);
}

void member_start(struct member *m, uv_loop_t *loop, const struct member_config *c,
	const struct member_events *on, void *owner, const struct bus *bus, struct arena *memory)
{
	uv_update_time(loop);
	m->party = (struct party){ .config = c,
		.on = on,
		.owner = owner,
		.bus = bus,
		.loop = loop,
		.memory = memory,
		.began_ns = uv_hrtime(),
		.deadline_ms = uv_now(loop) + c->join_timeout_ms };
	say_way(m);
	member_meet(m);
}

void member_failed(struct member *m, const struct outcome *o)
{
	if (m->role == MEMBER_HUB)
		hub_failed(&m->hub, o);
	else
		spoke_tell(&m->spoke, &(struct message){ MESSAGE_FAILED, .failed = *o });
}

void member_asked(struct member *m, const struct stop *s)
{
	switch (m->role) {
	case MEMBER_NONE:
		party_over_unstarted(&m->party, &s->cause);
		return;
	case MEMBER_HUB:
		hub_asked(&m->hub, s);
		return;
	case MEMBER_SPOKE:
		spoke_asked(&m->spoke, s);
		return;
	}
}

void member_checked(struct member *m)
{
	if (m->role == MEMBER_HUB)
		hub_checked(&m->hub);
}

void member_check(struct member *m, const struct message_check *word)
{
	const struct message said = { MESSAGE_CHECK, .check = *word };

	if (m->role == MEMBER_HUB && m->hub.state == HUB_RUNNING)
		hub_tell(&m->hub, &said, NULL);
	if (m->role == MEMBER_SPOKE)
		spoke_tell(&m->spoke, &said);
}

void member_forward(struct member *m, int signal)
{
	const struct message said = { MESSAGE_SIGNAL, .signal = signal };

	if (!m->party.auth.keyed)
		return; /* the others would not accept it either */
	if (m->role == MEMBER_HUB)
		hub_tell(&m->hub, &said, NULL);
	if (m->role == MEMBER_SPOKE)
		spoke_tell(&m->spoke, &said);
}

void member_ended(
	struct member *m, const struct node_end *end, const struct evidence *list, size_t count)
{
	if (m->role == MEMBER_HUB)
		hub_ended(&m->hub, end, list, count);
	else
		spoke_ended(&m->spoke, end, list, count);
}

void member_waiting(struct member *m, unsigned attempt, const unsigned *ranks, size_t count)
{
	const struct message said = { MESSAGE_JOINED, .joined = { attempt, ranks, count } };

	if (m->role == MEMBER_HUB)
		hub_waiting(&m->hub, m->hub.self, &said.joined);
	else
		spoke_tell(&m->spoke, &said);
}

bool member_merges(const struct member *m)
{
	return m->role == MEMBER_SPOKE && spoke_merges(&m->spoke);
}

size_t member_log_room(const struct member *m)
{
	return m->role == MEMBER_SPOKE ? spoke_log_room(&m->spoke) : 0;
}

void member_log(struct member *m, int stream, const char *at, size_t len)
{
	if (m->role == MEMBER_SPOKE)
		spoke_log(&m->spoke, stream, at, len);
}

void member_log_end(struct member *m)
{
	if (m->role == MEMBER_SPOKE)
		spoke_log_end(&m->spoke);
}

void member_log_taken(struct member *m, unsigned node, size_t len)
{
	if (m->role == MEMBER_HUB)
		hub_lines_taken(&m->hub, node, len);
}

size_t member_query(struct member *m, unsigned query, bool *ret)
{
	return m->role == MEMBER_HUB ? hub_query(&m->hub, query, ret) : 0;
}

void member_status(struct member *m, const struct message_status *told)
{
	if (m->role == MEMBER_SPOKE)
		spoke_status(&m->spoke, told);
}

bool member_look(struct member *m, const struct message_look *told)
{
	return m->role == MEMBER_SPOKE && spoke_look(&m->spoke, told);
}

void member_hang(struct member *m, const struct message_hang *told)
{
	if (m->role == MEMBER_HUB && m->hub.state == HUB_RUNNING)
		hub_tell(&m->hub, &(struct message){ MESSAGE_HANG, .hang = *told }, NULL);
}

void member_bundle(struct member *m, const struct message_bundle *told)
{
	if (m->role == MEMBER_SPOKE)
		spoke_bundle(&m->spoke, told);
}

void member_step(struct member *m, const struct message_step *told)
{
	if (m->role == MEMBER_SPOKE)
		spoke_step(&m->spoke, told);
	else if (m->role == MEMBER_HUB && m->hub.state == HUB_RUNNING &&
		told->attempt == m->hub.job.attempt)
		hub_step(&m->hub, 0, told->step, told->at_ns);
}

void member_suspects(struct member *m, unsigned attempt, const unsigned *ranks, size_t count)
{
	if (m->role == MEMBER_HUB && m->hub.state == HUB_RUNNING && attempt == m->hub.job.attempt)
		job_suspect(&m->hub.job, ranks, count, uv_hrtime());
}

void member_close(struct member *m)
{
	if (m->party.closing)
		return;
	m->party.closing = true;
	m->party.parts++; /* for this call, as parts may close at once */
	pmix_close(&m->pmix);
	pmix_finish(&m->pmix);
	if (m->finds)
		finder_close(&m->finder);
	if (m->doubts)
		doubt_close(&m->doubt);
	if (m->role == MEMBER_HUB)
		hub_close(&m->hub);
	if (m->role == MEMBER_SPOKE)
		spoke_close(&m->spoke);
	party_part_closed(&m->party);
}

void member_hurry(struct member *m)
{
	if (m->role == MEMBER_HUB)
		hub_hurry(&m->hub);
	if (m->role == MEMBER_SPOKE)
		spoke_hurry(&m->spoke);
}
