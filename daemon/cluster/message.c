/* message.c - see message.h. The fields of each message stand here once: the same function writes
 * them and reads them, so the two can't differ. */
#include "daemon/cluster/message.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/arena.h"
#include "common/siphash.h"
#include "daemon/net/wire.h"
#include "daemon/report/error_file.h"

enum {
	SIGNAL_MAX = 127,
	CODE_MAX = 255,
	ERRNO_MAX = 4095,
	LINE_MAX_BYTES = 512,
	NUMBER_BYTES = 4,
	COMMAND_MAX_BYTES = 64 * 1024,
	STDOUT = 1,
	STDERR = 2,
};

/* One pass over the fields of a message: to write them, or to read them. Functions on fields return
 * the field's value, which reading takes from the message. */
struct pass {
	struct wire_out *out; /* NULL: reading */
	struct wire_in in;
	struct arena *arena; /* reading, for what has no bounds */
};

static bool is_reading(const struct pass *p)
{
	return !p->out;
}

static bool has_failed(const struct pass *p)
{
	return is_reading(p) ? p->in.failed : p->out->failed;
}

/* What no launcher writes fails the message; it is only looked for in what is read. */
static void refuse_if(struct pass *p, bool wrong)
{
	if (is_reading(p))
		p->in.failed = p->in.failed || wrong;
}

static uint64_t integer(struct pass *p, uint64_t value, size_t len)
{
	if (is_reading(p))
		return wire_get_int(&p->in, len);
	wire_put_int(p->out, value, len);
	return value;
}

static uint64_t u64(struct pass *p, uint64_t value)
{
	return integer(p, value, 8);
}

static uint32_t u32(struct pass *p, uint32_t value)
{
	return (uint32_t)integer(p, value, 4);
}

static uint16_t u16(struct pass *p, unsigned value)
{
	assert(is_reading(p) || value <= UINT16_MAX);
	return (uint16_t)integer(p, value, 2);
}

/* A number up to `max`, in one byte. */
static unsigned small(struct pass *p, unsigned value, unsigned max)
{
	value = (unsigned)integer(p, value, 1);
	refuse_if(p, value > max);
	return has_failed(p) ? 0 : value;
}

static bool flag(struct pass *p, bool value)
{
	return small(p, value, 1) != 0;
}

static int signal_number(struct pass *p, int value)
{
	return (int)small(p, (unsigned)value, SIGNAL_MAX);
}

static pid_t process_id(struct pass *p, pid_t value)
{
	uint32_t pid = u32(p, (uint32_t)value);

	refuse_if(p, pid > INT_MAX);
	return has_failed(p) ? 0 : (pid_t)pid;
}

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

static void put_line(struct wire_out *w, const char *s, size_t room)
{
	char line[LINE_MAX_BYTES];
	size_t len = strnlen(s, room);

	assert(room <= sizeof line);
	if (len == room) { /* too long: no part of a character stays */
		len--;
		while (len > 0 && ((unsigned char)s[len] & 0xc0) == 0x80)
			len--;
	}
	for (size_t i = 0; i < len; i++)
		line[i] = is_control(s[i]) ? '?' : s[i];
	wire_put_bytes(w, line, len);
}

/* A line of text, as it will be shown: cut to room - 1 bytes, with '?' for control characters.
 * Reading fails at one of these: nobody writes to a user's terminal from another node. */
static void line(struct pass *p, char *s, size_t room)
{
	if (!is_reading(p)) {
		put_line(p->out, s, room);
		return;
	}
	wire_get_string(&p->in, s, room);
	for (const char *c = s; *c; c++)
		refuse_if(p, is_control(*c));
}

#define LINE(p, array) line(p, array, sizeof(array))

/* Bytes but NUL, or nothing at all. */
static const char *optional(struct pass *p, const char *s, size_t max)
{
	const unsigned char *at;
	size_t len;

	if (!is_reading(p)) {
		(void)flag(p, s != NULL);
		if (s)
			wire_put_bytes(p->out, s, strnlen(s, max));
		return s;
	}
	if (!flag(p, false))
		return NULL;
	at = wire_get_bytes(&p->in, max, &len);
	refuse_if(p, len > 0 && memchr(at, '\0', len));
	return p->in.failed ? NULL : arena_strndup(p->arena, (const char *)at, len);
}

/* A list at the end of a message. Memory is asked for only when the message is as long as it says.
 * NULL: it is not, or there is none, and then the arena has failed. */
static unsigned *numbers(struct pass *p, unsigned *list, size_t *count)
{
	*count = u32(p, (uint32_t)*count);
	if (is_reading(p)) {
		refuse_if(p, p->in.left != *count * NUMBER_BYTES);
		list = p->in.failed ? NULL : arena_alloc(p->arena, (*count + 1) * sizeof *list);
		for (size_t i = 0; list && i < *count; i++)
			list[i] = u32(p, 0);
		return list;
	}
	for (size_t i = 0; list && i < *count; i++)
		(void)u32(p, list[i]);
	return list;
}

/* How the reading of a message with memory from the arena ended: what it took goes back. */
static int end_reading(const struct pass *p, struct arena_mark before)
{
	if (arena_failed(p->arena))
		return -ENOMEM;
	if (wire_is_read(&p->in))
		return 0;
	arena_rewind(p->arena, before);
	return -EPROTO;
}

/* Define message_put_NAME() and message_get_NAME() by NAME_fields(). */
#define PUT(name, type) \
	void message_put_##name(struct wire_out *out, const __typeof__(type) *m) \
	{ \
		__typeof__(type) copy = *m; \
\
		name##_fields(&(struct pass){ .out = out }, &copy); \
	}

#define GET(name, type) \
	int message_get_##name(const unsigned char *at, size_t len, __typeof__(type) *ret) \
	{ \
		struct pass p = { .in = wire_from(at, len) }; \
		__typeof__(type) m = { 0 }; \
\
		name##_fields(&p, &m); \
		if (!wire_is_read(&p.in)) \
			return -EPROTO; \
		*ret = m; \
		return 0; \
	}

/* The same of a message with pointers, to memory of the arena. */
#define GET_INTO_ARENA(name, type) \
	int message_get_##name( \
		const unsigned char *at, size_t len, struct arena *arena, __typeof__(type) *ret) \
	{ \
		struct pass p = { .in = wire_from(at, len), .arena = arena }; \
		struct arena_mark before = arena_mark(arena); \
		__typeof__(type) m = { 0 }; \
		int rc; \
\
		name##_fields(&p, &m); \
		rc = end_reading(&p, before); \
		if (rc == 0) \
			*ret = m; \
		return rc; \
	}

/* --- of what several messages are made --- */

static void ending_fields(struct pass *p, struct ending *e)
{
	static const int max[] = {
		[ENDED_NONE] = 0,
		[ENDED_EXIT] = CODE_MAX,
		[ENDED_SIGNAL] = SIGNAL_MAX,
		[ENDED_UNSTARTED] = ERRNO_MAX,
		[ENDED_UNMADE] = ERRNO_MAX,
	};

	e->how = small(p, e->how, ENDED_UNMADE);
	e->value = u16(p, (unsigned)e->value);
	e->core = flag(p, e->core);
	refuse_if(p, e->value > max[e->how]);
	refuse_if(p, e->how == ENDED_SIGNAL ? e->value == 0 : e->core);
}

/* OUTCOME_BYTES of them. */
static void failed_fields(struct pass *p, struct outcome *o)
{
	o->rank = u32(p, o->rank);
	o->local_rank = u32(p, o->local_rank);
	o->attempt = u32(p, o->attempt);
	o->node = u32(p, o->node);
	o->pid = process_id(p, o->pid);
	ending_fields(p, &o->end);
	o->oom = small(p, o->oom, OOM_YES);
	o->asked = small(p, o->asked, ASKED_KILLED);
	o->asked_signal = signal_number(p, o->asked_signal);
	o->started_ns = u64(p, o->started_ns);
	o->ended_ns = u64(p, o->ended_ns);
	o->asked_ns = u64(p, o->asked_ns);
	o->late_ns = u64(p, o->late_ns);
	refuse_if(p, o->late_ns > o->ended_ns);
	o->blames = small(p, o->blames, BLAMES_A_PEER);
	o->left = u32(p, o->left);
	o->left_killed = u32(p, o->left_killed);
}

static void cause_fields(struct pass *p, struct cause *c)
{
	c->kind = small(p, c->kind, CAUSE_NODE_LOST);
	c->signal = signal_number(p, c->signal);
	c->sender.pid = process_id(p, c->sender.pid);
	c->sender.uid = u32(p, c->sender.uid);
	c->sender.kernel = flag(p, c->sender.kernel);
	LINE(p, c->sender.command);
	c->at_ns = u64(p, c->at_ns);
	c->noticed_ns = u64(p, c->noticed_ns);
	c->node = u32(p, c->node);
	LINE(p, c->host);
	LINE(p, c->detail);
	if (c->kind == CAUSE_FAILURE)
		failed_fields(p, &c->culprit);
	refuse_if(p,
		c->kind == CAUSE_SIGNAL ? c->signal == 0 :
					  c->kind != CAUSE_NODE_LOST && c->signal != 0);
}

/* --- the meeting --- */

/* The key is no secret: nobody gains by two ids that are the same here. */
uint64_t message_run_hash(const char *run_id)
{
	static const uint8_t key[SIPHASH_KEY_SIZE] = "launchd's run id";
	uint64_t hash = run_id ? siphash(key, (const uint8_t *)run_id, strlen(run_id)) : 0;

	return run_id && hash == 0 ? 1 : hash;
}

static void join_fields(struct pass *p, struct message_join *m)
{
	m->node_rank = u32(p, m->node_rank);
	m->nnodes = u32(p, m->nnodes);
	m->nproc = u32(p, m->nproc);
	m->max_restarts = u32(p, m->max_restarts);
	m->store = small(p, m->store, STORE_WISH_RANK0);
	m->run_hash = u64(p, m->run_hash);
	LINE(p, m->run_id);
	LINE(p, m->name);
	LINE(p, m->version);
	LINE(p, m->reached);
}

PUT(join, struct message_join)
GET(join, struct message_join)

static void welcome_fields(struct pass *p, struct message_welcome *m)
{
	size_t count = m->nnodes;

	m->node_rank = u32(p, m->node_rank);
	LINE(p, m->master_addr);
	m->master_port = u16(p, m->master_port);
	m->max_restarts = u32(p, m->max_restarts);
	m->agent_store = flag(p, m->agent_store);
	m->nproc = numbers(p, m->nproc, &count);
	m->nnodes = (unsigned)count;
	refuse_if(p, m->node_rank >= m->nnodes);
}

PUT(welcome, struct message_welcome)
GET_INTO_ARENA(welcome, struct message_welcome)

static void refused_fields(struct pass *p, struct message_refused *m)
{
	m->why = small(p, m->why, REFUSED_UNABLE);
	m->code = -(int)u16(p, (unsigned)-m->code);
	LINE(p, m->text);
	refuse_if(p, m->code == 0);
}

PUT(refused, struct message_refused)
GET(refused, struct message_refused)

void message_put_text(struct wire_out *out, const char *text)
{
	put_line(out, text, MESSAGE_TEXT_SIZE);
}

int message_get_text(const unsigned char *at, size_t len, char ret[MESSAGE_TEXT_SIZE])
{
	struct pass p = { .in = wire_from(at, len) };
	char text[MESSAGE_TEXT_SIZE] = "";

	LINE(&p, text);
	if (!wire_is_read(&p.in))
		return -EPROTO;
	memcpy(ret, text, sizeof text);
	return 0;
}

static void start_fields(struct pass *p, struct message_start *m)
{
	m->attempt = u32(p, m->attempt);
	m->master_port = u16(p, m->master_port);
}

PUT(start, struct message_start)
GET(start, struct message_start)

void message_put_ranks(struct wire_out *out, unsigned attempt, const unsigned *ranks, size_t count)
{
	struct pass p = { .out = out };

	wire_put_u32(out, attempt);
	(void)numbers(&p, (unsigned *)ranks, &count);
}

int message_get_ranks(const unsigned char *at, size_t len, struct arena *arena,
	unsigned *ret_attempt, unsigned **ret, size_t *ret_count)
{
	struct pass p = { .in = wire_from(at, len), .arena = arena };
	struct arena_mark before = arena_mark(arena);
	unsigned attempt = u32(&p, 0);
	size_t count = 0;
	unsigned *ranks = numbers(&p, NULL, &count);
	int rc = end_reading(&p, before);

	if (rc < 0)
		return rc;
	*ret_attempt = attempt;
	*ret = ranks;
	*ret_count = count;
	return 0;
}

/* --- how workers end, and that they shall --- */

PUT(failed, struct outcome)
GET(failed, struct outcome)

static void stop_fields(struct pass *p, struct stop *s)
{
	s->attempt = u32(p, s->attempt);
	s->urgency = small(p, s->urgency, URGENCY_KILL);
	s->signal = signal_number(p, s->signal);
	s->grace_ms = u64(p, s->grace_ms);
	cause_fields(p, &s->cause);
	refuse_if(p, s->urgency == URGENCY_NONE || s->cause.kind == CAUSE_NONE);
}

PUT(stop, struct stop)
GET(stop, struct stop)

void message_put_signal(struct wire_out *out, int signal)
{
	wire_put_u8(out, (uint8_t)signal);
}

int message_get_signal(const unsigned char *at, size_t len, int *ret)
{
	struct pass p = { .in = wire_from(at, len) };
	int signal = signal_number(&p, 0);

	if (!wire_is_read(&p.in) || signal == 0)
		return -EPROTO;
	*ret = signal;
	return 0;
}

void message_put_outcomes(
	struct wire_out *out, unsigned attempt, const struct outcome *list, size_t count)
{
	assert(count <= OUTCOMES_MAX);
	wire_put_u32(out, attempt);
	for (size_t i = 0; i < count; i++)
		message_put_failed(out, &list[i]);
}

int message_get_outcomes(const unsigned char *at, size_t len, struct arena *arena,
	unsigned *ret_attempt, struct outcome **ret, size_t *ret_count)
{
	struct pass p = { .in = wire_from(at, len), .arena = arena };
	struct arena_mark before = arena_mark(arena);
	unsigned attempt = u32(&p, 0);
	size_t count = p.in.left / OUTCOME_BYTES;
	struct outcome *list;
	int rc;

	if (p.in.failed || p.in.left % OUTCOME_BYTES != 0 || count > OUTCOMES_MAX)
		return -EPROTO;
	list = arena_alloc(arena, (count + 1) * sizeof *list);
	for (size_t i = 0; list && i < count; i++) {
		list[i] = (struct outcome){ 0 };
		failed_fields(&p, &list[i]);
	}
	rc = end_reading(&p, before);
	if (rc < 0)
		return rc;
	*ret_attempt = attempt;
	*ret = list;
	*ret_count = count;
	return 0;
}

static void error_record_fields(struct pass *p, struct error_record *r)
{
	r->message = optional(p, r->message, RECORD_MAX_BYTES);
	r->traceback = optional(p, r->traceback, RECORD_MAX_BYTES);
	r->timestamp = (int64_t)u64(p, (uint64_t)r->timestamp);
	r->raw = optional(p, r->raw, RECORD_MAX_BYTES);
	r->raw_why = optional(p, r->raw_why, MESSAGE_TEXT_SIZE);
	/* as evidence.h has it */
	refuse_if(p, r->timestamp < 0 || (r->raw == NULL) != (r->raw_why == NULL));
	refuse_if(p, (r->raw == NULL) != (r->message || r->traceback));
}

/* NULL: the worker wrote none, or reading has failed. */
static const struct error_record *error_record(struct pass *p, const struct error_record *written)
{
	struct error_record *r, copy = { 0 };

	if (!is_reading(p)) {
		(void)flag(p, written != NULL);
		if (written) {
			copy = *written;
			error_record_fields(p, &copy);
		}
		return written;
	}
	r = flag(p, false) ? arena_alloc(p->arena, sizeof *r) : NULL;
	if (r) {
		*r = copy;
		error_record_fields(p, r);
	}
	return r;
}

static void record_fields(struct pass *p, struct message_record *m)
{
	m->attempt = u32(p, m->attempt);
	m->rank = u32(p, m->rank);
	m->command = optional(p, m->command, COMMAND_MAX_BYTES);
	m->record = error_record(p, m->record);
	m->words.lines = optional(p, m->words.lines, LAST_LINES_BYTES);
	m->words.log = optional(p, m->words.log, LOG_BYTES);
}

void message_put_record(struct wire_out *out, const struct message_record *m)
{
	struct message_record copy = *m;

	if (copy.words.log && strnlen(copy.words.log, LOG_BYTES + 1) > LOG_BYTES)
		copy.words.log = NULL; /* a path that is cut names nothing */
	record_fields(&(struct pass){ .out = out }, &copy);
}

GET_INTO_ARENA(record, struct message_record)

static void survivor_fields(struct pass *p, struct survivor *s)
{
	char state[2] = { s->state, '\0' };

	s->pid = process_id(p, s->pid);
	s->uid = u32(p, s->uid);
	LINE(p, state);
	s->state = state[0];
	LINE(p, s->command);
	s->node = u32(p, s->node);
}

static void ended_fields(struct pass *p, struct node_end *e)
{
	e->attempt = u32(p, e->attempt);
	cause_fields(p, &e->cause);
	e->left = u32(p, e->left);
	e->left_killed = u32(p, e->left_killed);
	e->left_unknown = flag(p, e->left_unknown);
	e->started_ns = u64(p, e->started_ns);
	e->ended_ns = u64(p, e->ended_ns);
	e->survivor_count = u32(p, e->survivor_count);
	for (unsigned i = 0; i < e->survivor_count && i < SURVIVORS_MAX; i++)
		survivor_fields(p, &e->survivors[i]);
}

PUT(ended, struct node_end)
GET(ended, struct node_end)

static void verdict_fields(struct pass *p, struct verdict *v)
{
	v->exit_code = (int)small(p, (unsigned)v->exit_code, CODE_MAX);
	v->well = flag(p, v->well);
	v->attempt = u32(p, v->attempt);
	LINE(p, v->text);
	v->unsure = flag(p, v->unsure);
	cause_fields(p, &v->cause);
	refuse_if(p, v->well != (v->cause.kind == CAUSE_NONE) || (v->well && v->exit_code != 0));
}

PUT(verdict, struct verdict)
GET(verdict, struct verdict)

/* --- lines of workers, on their way to node rank 0's console --- */

void message_put_log(struct wire_out *out, int stream, const char *at, size_t len)
{
	assert((stream == STDOUT || stream == STDERR) && len > 0 && len <= MESSAGE_LOG_MAX);
	wire_put_u8(out, (uint8_t)stream);
	wire_put_raw(out, at, len);
}

int message_get_log(
	const unsigned char *at, size_t len, int *ret_stream, const char **ret, size_t *ret_len)
{
	struct wire_in in = wire_from(at, len);
	uint8_t stream = wire_get_u8(&in);

	if (in.failed || (stream != STDOUT && stream != STDERR) || in.left == 0 ||
		in.left > MESSAGE_LOG_MAX)
		return -EPROTO;
	*ret_stream = stream;
	*ret = (const char *)in.at;
	*ret_len = in.left;
	return 0;
}

void message_put_log_room(struct wire_out *out, size_t bytes)
{
	assert(bytes > 0 && bytes <= MESSAGE_LOG_ROOM_MAX);
	wire_put_u32(out, (uint32_t)bytes);
}

int message_get_log_room(const unsigned char *at, size_t len, size_t *ret)
{
	struct wire_in in = wire_from(at, len);
	uint32_t bytes = wire_get_u32(&in);

	if (!wire_is_read(&in) || bytes == 0 || bytes > MESSAGE_LOG_ROOM_MAX)
		return -EPROTO;
	*ret = bytes;
	return 0;
}
