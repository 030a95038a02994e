/* message_ends.c - messages about how workers end, and that they shall; see message.h */
#include "daemon/cluster/message.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/arena.h"
#include "daemon/cluster/message_wire.h"
#include "daemon/job/evidence.h"
#include "daemon/report/error_file.h"

enum { SIGNAL_MAX = 127, COMMAND_MAX_BYTES = 64 * 1024 };

void message_put_failed(struct wire_out *out, const struct outcome *o)
{
	wire_put_outcome(out, o);
}

int message_get_failed(const unsigned char *at, size_t len, struct outcome *ret)
{
	struct wire_in w = wire_from(at, len);
	struct outcome o = { 0 };

	wire_get_outcome(&w, &o);
	if (!wire_is_read(&w))
		return -EPROTO;
	*ret = o;
	return 0;
}

void message_put_stop(struct wire_out *out, const struct stop *s)
{
	wire_put_u32(out, s->attempt);
	wire_put_u8(out, (uint8_t)s->urgency);
	wire_put_u8(out, (uint8_t)s->signal);
	wire_put_u64(out, s->grace_ms);
	wire_put_cause(out, &s->cause);
}

int message_get_stop(const unsigned char *at, size_t len, struct stop *ret)
{
	struct wire_in w = wire_from(at, len);
	struct stop s = { .attempt = wire_get_u32(&w) };

	s.urgency = wire_get_below(&w, URGENCY_KILL + 1);
	s.signal = (int)wire_get_below(&w, SIGNAL_MAX + 1);
	s.grace_ms = wire_get_u64(&w);
	wire_get_cause(&w, &s.cause);
	if (!wire_is_read(&w) || s.urgency == URGENCY_NONE || s.cause.kind == CAUSE_NONE)
		return -EPROTO;
	*ret = s;
	return 0;
}

void message_put_outcomes(
	struct wire_out *out, unsigned attempt, const struct outcome *list, size_t count)
{
	assert(count <= OUTCOMES_MAX);
	wire_put_u32(out, attempt);
	for (size_t i = 0; i < count; i++)
		wire_put_outcome(out, &list[i]);
}

int message_get_outcomes(const unsigned char *at, size_t len, struct arena *arena,
	unsigned *ret_attempt, struct outcome **ret, size_t *ret_count)
{
	struct wire_in w = wire_from(at, len);
	unsigned attempt = wire_get_u32(&w);
	size_t count = w.left / OUTCOME_BYTES;
	struct arena_mark mark = arena_mark(arena);
	struct outcome *list;

	if (w.failed || w.left % OUTCOME_BYTES != 0 || count > OUTCOMES_MAX)
		return -EPROTO;
	list = arena_alloc(arena, (count + 1) * sizeof *list);
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		wire_get_outcome(&w, &list[i]);
	if (!wire_is_read(&w)) {
		arena_rewind(arena, mark);
		return -EPROTO;
	}
	*ret_attempt = attempt;
	*ret = list;
	*ret_count = count;
	return 0;
}

/* A text of any bytes but NUL, or none. */
static void put_optional(struct wire_out *w, const char *s, size_t max)
{
	wire_put_bool(w, s != NULL);
	if (s)
		wire_put_bytes(w, s, strnlen(s, max));
}

static const char *get_optional(struct wire_in *w, size_t max, struct arena *arena)
{
	const unsigned char *at;
	size_t len;

	if (!wire_get_bool(w))
		return NULL;
	at = wire_get_bytes(w, max, &len);
	w->failed = w->failed || (len > 0 && memchr(at, '\0', len));
	return w->failed ? NULL : arena_strndup(arena, (const char *)at, len);
}

void message_put_record(struct wire_out *out, const struct message_record *m)
{
	const struct error_record *r = m->record;
	const char *log = m->words.log;

	wire_put_u32(out, m->attempt);
	wire_put_u32(out, m->rank);
	put_optional(out, m->command, COMMAND_MAX_BYTES);
	wire_put_bool(out, r != NULL);
	if (r) {
		put_optional(out, r->message, RECORD_MAX_BYTES);
		put_optional(out, r->traceback, RECORD_MAX_BYTES);
		wire_put_i64(out, r->timestamp);
		put_optional(out, r->raw, RECORD_MAX_BYTES);
		put_optional(out, r->raw_why, MESSAGE_TEXT_SIZE);
	}
	put_optional(out, m->words.lines, LAST_LINES_BYTES);
	/* a path that is cut is none */
	put_optional(out, log && strnlen(log, LOG_BYTES + 1) <= LOG_BYTES ? log : NULL, LOG_BYTES);
}

/* NULL, and nothing has failed: there is none. */
static struct error_record *get_error_record(struct wire_in *w, struct arena *arena)
{
	struct error_record *r;

	if (!wire_get_bool(w))
		return NULL;
	r = arena_alloc(arena, sizeof *r);
	if (!r)
		return NULL;
	r->message = get_optional(w, RECORD_MAX_BYTES, arena);
	r->traceback = get_optional(w, RECORD_MAX_BYTES, arena);
	r->timestamp = wire_get_i64(w);
	r->raw = get_optional(w, RECORD_MAX_BYTES, arena);
	r->raw_why = get_optional(w, MESSAGE_TEXT_SIZE, arena);
	/* as evidence.h has it */
	w->failed = w->failed || r->timestamp < 0 || (r->raw == NULL) != (r->raw_why == NULL) ||
		(r->raw == NULL) != (r->message || r->traceback);
	return r;
}

int message_get_record(
	const unsigned char *at, size_t len, struct arena *arena, struct message_record *ret)
{
	struct wire_in w = wire_from(at, len);
	struct message_record m = { .attempt = wire_get_u32(&w) };
	struct arena_mark mark = arena_mark(arena);

	m.rank = wire_get_u32(&w);
	m.command = get_optional(&w, COMMAND_MAX_BYTES, arena);
	m.record = get_error_record(&w, arena);
	m.words.lines = get_optional(&w, LAST_LINES_BYTES, arena);
	m.words.log = get_optional(&w, LOG_BYTES, arena);
	if (arena_failed(arena))
		return -ENOMEM;
	if (!wire_is_read(&w)) {
		arena_rewind(arena, mark);
		return -EPROTO;
	}
	*ret = m;
	return 0;
}

static void put_survivor(struct wire_out *w, const struct survivor *s)
{
	wire_put_u32(w, (uint32_t)s->pid);
	wire_put_u32(w, s->uid);
	wire_put_line(w, (const char[]){ s->state, '\0' }, 2);
	wire_put_line(w, s->command, sizeof s->command);
	wire_put_u32(w, s->node);
}

static void get_survivor(struct wire_in *w, struct survivor *ret)
{
	uint32_t pid = wire_get_u32(w);
	char state[2];

	w->failed = w->failed || pid > INT32_MAX;
	ret->pid = (pid_t)pid;
	ret->uid = wire_get_u32(w);
	wire_get_line(w, state, sizeof state);
	ret->state = state[0];
	wire_get_line(w, ret->command, sizeof ret->command);
	ret->node = wire_get_u32(w);
}

void message_put_ended(struct wire_out *out, const struct node_end *e)
{
	wire_put_u32(out, e->attempt);
	wire_put_cause(out, &e->cause);
	wire_put_u32(out, e->left);
	wire_put_u32(out, e->left_killed);
	wire_put_bool(out, e->left_unknown);
	wire_put_u64(out, e->started_ns);
	wire_put_u64(out, e->ended_ns);
	wire_put_u32(out, e->survivor_count);
	for (unsigned i = 0; i < e->survivor_count && i < SURVIVORS_MAX; i++)
		put_survivor(out, &e->survivors[i]);
}

int message_get_ended(const unsigned char *at, size_t len, struct node_end *ret)
{
	struct wire_in w = wire_from(at, len);
	struct node_end e = { .attempt = wire_get_u32(&w) };

	wire_get_cause(&w, &e.cause);
	e.left = wire_get_u32(&w);
	e.left_killed = wire_get_u32(&w);
	e.left_unknown = wire_get_bool(&w);
	e.started_ns = wire_get_u64(&w);
	e.ended_ns = wire_get_u64(&w);
	e.survivor_count = wire_get_u32(&w);
	for (unsigned i = 0; i < e.survivor_count && i < SURVIVORS_MAX; i++)
		get_survivor(&w, &e.survivors[i]);
	if (!wire_is_read(&w))
		return -EPROTO;
	*ret = e;
	return 0;
}
