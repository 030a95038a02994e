/* message.c - see message.h. The fields of each message stand here once: the same function writes
 * them and reads them, so the two can't differ. */
#include "daemon/cluster/message.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/arena.h"
#include "common/siphash.h"
#include "common/text.h"
#include "daemon/net/wire.h"
#include "daemon/report/error_file.h"

enum {
	SIGNAL_MAX = 127,
	CODE_MAX = 255,
	ERRNO_MAX = 4095,
	LINE_MAX_BYTES = PATH_MAX,
	NUMBER_BYTES = 4,
	PEER_BYTES = 8 + 8 + 1 + 1 + 4 + 2, /* at least */
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
	if (len == room)
		len = text_whole(s, room - 1);
	memcpy(line, s, len);
	for (size_t i = 0; i < len; i++)
		if (is_control(line[i]))
			line[i] = '?';
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

/* Memory for what is read, beyond a bound. NULL: there is none, and reading fails. */
static void *take(struct pass *p, size_t size)
{
	void *at = arena_alloc(p->arena, size);

	refuse_if(p, !at);
	return at;
}

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
	if (p->in.failed)
		return NULL;
	s = arena_strndup(p->arena, (const char *)at, len);
	refuse_if(p, arena_failed(p->arena));
	return s;
}

/* The same, for what is shown to users. */
static const char *shown(struct pass *p, const char *s, size_t max)
{
	s = optional(p, s, max);
	for (const char *c = s; is_reading(p) && c && *c; c++)
		refuse_if(p, is_control(*c));
	return s;
}

/* A list. Memory is asked for only when the message is as long as it says. NULL: it is not, or
 * there is none. */
static const unsigned *numbers(struct pass *p, const unsigned *list, size_t *count)
{
	unsigned *got;

	*count = u32(p, (uint32_t)*count);
	if (!is_reading(p)) {
		for (size_t i = 0; list && i < *count; i++)
			(void)u32(p, list[i]);
		return list;
	}
	refuse_if(p, p->in.left / NUMBER_BYTES < *count);
	got = p->in.failed ? NULL : take(p, (*count + 1) * sizeof *got);
	for (size_t i = 0; got && i < *count; i++)
		got[i] = u32(p, 0);
	return got;
}

/* Bytes of any kind up to the message's end: nothing of them is copied in reading. */
static const char *rest(struct pass *p, const char *at, size_t *len, size_t max)
{
	if (!is_reading(p)) {
		assert(*len <= max);
		wire_put_raw(p->out, at, *len);
		return at;
	}
	*len = p->in.left;
	refuse_if(p, *len > max);
	return (const char *)wire_get_raw(&p->in, *len);
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
		[ENDED_SENT] = SIGNAL_MAX,
	};

	e->how = small(p, e->how, ENDED_SENT);
	e->value = u16(p, (unsigned)e->value);
	e->core = flag(p, e->core);
	refuse_if(p, e->value > max[e->how]);
	refuse_if(p, (e->how == ENDED_SIGNAL || e->how == ENDED_SENT) && e->value == 0);
	refuse_if(p, e->how != ENDED_SIGNAL && e->core);
}

/* OUTCOME_BYTES of them. */
static void failed_fields(struct pass *p, struct outcome *o)
{
	unsigned marks;

	o->rank = u32(p, o->rank);
	o->local_rank = u32(p, o->local_rank);
	o->attempt = u32(p, o->attempt);
	o->node = u32(p, o->node);
	o->pid = process_id(p, o->pid);
	ending_fields(p, &o->end);
	o->oom = small(p, o->oom, OOM_CHILD);
	o->oom_limit = small(p, o->oom_limit, OOM_LIMIT_NONE);
	o->oom_bytes = u64(p, o->oom_bytes);
	o->asked = small(p, o->asked, ASKED_KILLED);
	o->asked_signal = signal_number(p, o->asked_signal);
	o->started_ns = u64(p, o->started_ns);
	o->ended_ns = u64(p, o->ended_ns);
	o->asked_ns = u64(p, o->asked_ns);
	o->late_ns = u64(p, o->late_ns);
	refuse_if(p, o->late_ns > o->ended_ns);
	o->blames = small(p, o->blames, BLAMES_OUTPUT);
	o->waited.in_store = flag(p, o->waited.in_store);
	o->waited.dials = flag(p, o->waited.dials);
	o->waited.more = flag(p, o->waited.more);
	o->waited.count = small(p, o->waited.count, WAITED_RANKS);
	for (size_t i = 0; i < WAITED_RANKS; i++)
		o->waited.ranks[i] = u32(p, o->waited.ranks[i]);
	marks = small(p, o->unjoined | (unsigned)o->shm_full << 1, 3);
	o->unjoined = marks & 1;
	o->shm_full = marks >> 1;
	o->left = u32(p, o->left);
	o->left_killed = u32(p, o->left_killed);
}

static void cause_fields(struct pass *p, struct cause *c)
{
	c->kind = small(p, c->kind, CAUSE_KINDS - 1);
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
	c->has_culprit = c->kind == CAUSE_TIMEOUT && flag(p, c->has_culprit);
	if (c->kind == CAUSE_FAILURE || c->has_culprit)
		failed_fields(p, &c->culprit);
	if (c->kind == CAUSE_TIMEOUT || c->kind == CAUSE_HANGUP)
		failed_fields(p, &c->victim);
	if (c->kind == CAUSE_BAD_NODE)
		c->exclude = shown(p, c->exclude, EXCLUDE_MAX);
	if (c->kind == CAUSE_PREEMPTED) {
		c->requeue_code = small(p, c->requeue_code, CODE_MAX);
		refuse_if(p, c->requeue_code == 0);
	} else {
		refuse_if(p,
			c->kind == CAUSE_SIGNAL ? c->signal == 0 :
						  c->kind != CAUSE_NODE_LOST && c->signal != 0);
	}
}

/* --- the meeting --- */

/* The key is no secret: nobody gains by two texts that are the same here. */
uint64_t message_hash(const char *text)
{
	static const char key[] = "launchd's run id";
	uint64_t hash =
		text ? siphash((const uint8_t *)key, (const uint8_t *)text, strlen(text)) : 0;

	return text && hash == 0 ? 1 : hash;
}

static void peer_fields(struct pass *p, struct peer *m)
{
	m->role = u64(p, m->role);
	m->host = u64(p, m->host);
	m->leads = flag(p, m->leads);
	m->addr = shown(p, m->addr, ADDRESS_SIZE - 1);
	m->ports = numbers(p, m->ports, &m->port_count);
	for (size_t i = 0; is_reading(p) && !has_failed(p) && i < m->port_count; i++)
		refuse_if(p, m->ports[i] == 0 || m->ports[i] > UINT16_MAX);
	m->jax_port = u16(p, m->jax_port);
}

/* Of so many nodes; as with numbers(), memory is asked for only when they can be there. */
static const struct peer *peers(struct pass *p, const struct peer *list, size_t count)
{
	struct peer *got;

	for (size_t i = 0; !is_reading(p) && i < count; i++) {
		struct peer one = list[i];

		peer_fields(p, &one);
	}
	if (!is_reading(p))
		return list;
	refuse_if(p, p->in.left / PEER_BYTES < count);
	got = has_failed(p) ? NULL : take(p, (count + 1) * sizeof *got);
	for (size_t i = 0; got && i < count; i++)
		peer_fields(p, &got[i]);
	return got;
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
	m->job_hash = u64(p, m->job_hash);
	LINE(p, m->job);
	LINE(p, m->name);
	LINE(p, m->version);
	LINE(p, m->reached);
	m->after_end_ms = u32(p, m->after_end_ms);
	peer_fields(p, &m->peer);
}

static void welcome_fields(struct pass *p, struct message_welcome *m)
{
	size_t count = m->nnodes;

	m->node_rank = u32(p, m->node_rank);
	LINE(p, m->master_addr);
	m->master_port = u16(p, m->master_port);
	m->max_restarts = u32(p, m->max_restarts);
	m->after_end_ms = u32(p, m->after_end_ms);
	m->port_wait_ms = u32(p, m->port_wait_ms);
	m->agent_store = flag(p, m->agent_store);
	m->nproc = numbers(p, m->nproc, &count);
	m->peers = peers(p, m->peers, count);
	m->nnodes = (unsigned)count;
	refuse_if(p, m->node_rank >= m->nnodes);
}

static void refused_fields(struct pass *p, struct message_refused *m)
{
	m->why = small(p, m->why, REFUSED_YET);
	m->code = -(int)u16(p, (unsigned)-m->code);
	LINE(p, m->text);
	refuse_if(p, m->code == 0);
}

static void start_fields(struct pass *p, struct message_start *m)
{
	m->attempt = u32(p, m->attempt);
	m->master_port = u16(p, m->master_port);
	m->checks = u32(p, m->checks);
	m->gate_ms = u32(p, m->gate_ms);
	m->job_ms = u64(p, m->job_ms);
}

static void joined_fields(struct pass *p, struct message_ranks *m)
{
	m->attempt = u32(p, m->attempt);
	m->list = numbers(p, m->list, &m->count);
}

/* --- how workers end, and that they shall --- */

static void stop_fields(struct pass *p, struct stop *s)
{
	s->attempt = u32(p, s->attempt);
	s->urgency = small(p, s->urgency, URGENCY_KILL);
	s->signal = signal_number(p, s->signal);
	s->grace_ms = u64(p, s->grace_ms);
	cause_fields(p, &s->cause);
	refuse_if(p, s->urgency == URGENCY_NONE || s->cause.kind == CAUSE_NONE);
}

/* Their number follows from the message's length. */
static void outcomes_fields(struct pass *p, struct message_outcomes *m)
{
	struct outcome *got;

	m->attempt = u32(p, m->attempt);
	if (!is_reading(p)) {
		assert(m->count <= OUTCOMES_MAX);
		for (size_t i = 0; i < m->count; i++) {
			struct outcome copy = m->list[i];

			failed_fields(p, &copy);
		}
		return;
	}
	m->count = p->in.left / OUTCOME_BYTES;
	refuse_if(p, p->in.left % OUTCOME_BYTES != 0 || m->count > OUTCOMES_MAX);
	got = p->in.failed ? NULL : take(p, (m->count + 1) * sizeof *got);
	for (size_t i = 0; got && i < m->count; i++)
		failed_fields(p, &got[i]);
	m->list = got;
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
	r = flag(p, false) ? take(p, sizeof *r) : NULL;
	if (r) {
		*r = copy;
		error_record_fields(p, r);
	}
	return r;
}

static void record_fields(struct pass *p, struct message_record *m)
{
	const char *log = m->words.log;

	m->attempt = u32(p, m->attempt);
	m->rank = u32(p, m->rank);
	m->command = optional(p, m->command, COMMAND_MAX_BYTES);
	m->record = error_record(p, m->record);
	m->words.lines = optional(p, m->words.lines, LAST_LINES_BYTES);
	if (log && strnlen(log, LOG_BYTES + 1) > LOG_BYTES)
		log = NULL; /* a path that is cut names nothing */
	m->words.log = optional(p, log, LOG_BYTES);
}

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

/* --- lines of workers, on their way to node rank 0's console --- */

static void log_fields(struct pass *p, struct message_log *m)
{
	assert(is_reading(p) || m->len > 0);
	m->stream = (int)small(p, (unsigned)m->stream, STDERR);
	m->at = rest(p, m->at, &m->len, MESSAGE_LOG_MAX);
	refuse_if(p, m->stream < STDOUT || m->len == 0);
}

static void log_room_fields(struct pass *p, size_t *bytes)
{
	assert(is_reading(p) || (*bytes > 0 && *bytes <= MESSAGE_LOG_ROOM_MAX));
	*bytes = u32(p, (uint32_t)*bytes);
	refuse_if(p, *bytes == 0 || *bytes > MESSAGE_LOG_ROOM_MAX);
}

/* --- how nodes are --- */

static void status_fields(struct pass *p, struct message_status *m)
{
	m->query = u32(p, m->query);
	m->at = rest(p, m->at, &m->len, MESSAGE_STATUS_MAX);
}

static void look_fields(struct pass *p, struct message_look *m)
{
	m->attempt = u32(p, m->attempt);
	m->at = rest(p, m->at, &m->len, MESSAGE_LOOK_MAX);
}

static void hang_fields(struct pass *p, struct message_hang *m)
{
	m->attempt = u32(p, m->attempt);
	m->order = small(p, m->order, HANG_ORDER_CERTAIN);
	LINE(p, m->text);
}

static void bundle_fields(struct pass *p, struct message_bundle *m)
{
	m->attempt = u32(p, m->attempt);
	LINE(p, m->path);
	LINE(p, m->text);
}

static void check_word_fields(struct pass *p, struct message_check *m)
{
	m->attempt = u32(p, m->attempt);
	m->phase = small(p, m->phase, CHECK_PHASE_MAX);
	m->word = small(p, m->word, CHECK_NEXT);
	m->at = rest(p, m->at, &m->len, MESSAGE_CHECK_MAX);
}

static void step_fields(struct pass *p, struct message_step *m)
{
	m->attempt = u32(p, m->attempt);
	m->step = u64(p, m->step);
	m->at_ns = u64(p, m->at_ns);
}

/* --- any of them --- */

static void fields(struct pass *p, struct message *m)
{
	switch (m->type) {
	case MESSAGE_JOIN:
		join_fields(p, &m->join);
		return;
	case MESSAGE_WAITING:
		LINE(p, m->waiting);
		return;
	case MESSAGE_WELCOME:
		welcome_fields(p, &m->welcome);
		return;
	case MESSAGE_REFUSED:
		refused_fields(p, &m->refused);
		return;
	case MESSAGE_FAILED:
		failed_fields(p, &m->failed);
		return;
	case MESSAGE_STOP:
		stop_fields(p, &m->stop);
		return;
	case MESSAGE_SIGNAL:
		m->signal = signal_number(p, m->signal);
		refuse_if(p, m->signal == 0);
		return;
	case MESSAGE_OUTCOMES:
		outcomes_fields(p, &m->outcomes);
		return;
	case MESSAGE_RECORD:
		record_fields(p, &m->record);
		return;
	case MESSAGE_ENDED:
		ended_fields(p, &m->ended);
		return;
	case MESSAGE_START:
		start_fields(p, &m->start);
		return;
	case MESSAGE_VERDICT:
		verdict_fields(p, &m->verdict);
		return;
	case MESSAGE_JOINED:
		joined_fields(p, &m->joined);
		return;
	case MESSAGE_LOG:
		log_fields(p, &m->log);
		return;
	case MESSAGE_LOG_ROOM:
		log_room_fields(p, &m->log_room);
		return;
	case MESSAGE_QUERY:
		m->query = u32(p, m->query);
		return;
	case MESSAGE_STATUS:
		status_fields(p, &m->status);
		return;
	case MESSAGE_CHECKED:
		m->checked = u32(p, m->checked);
		return;
	case MESSAGE_LOOK:
		look_fields(p, &m->look);
		return;
	case MESSAGE_HANG:
		hang_fields(p, &m->hang);
		return;
	case MESSAGE_BUNDLE:
		bundle_fields(p, &m->bundle);
		return;
	case MESSAGE_CHECK:
		check_word_fields(p, &m->check);
		return;
	case MESSAGE_STEP:
		step_fields(p, &m->step);
		return;
	case MESSAGE_READY:
	case MESSAGE_LEAVE:
		return;
	case MESSAGE_END:
		break;
	}
	refuse_if(p, true);
}

struct message message_waiting(const char *text)
{
	struct message m = { .type = MESSAGE_WAITING, .waiting = "" };

	text_fit(m.waiting, sizeof m.waiting, text);
	return m;
}

void message_put(struct wire_out *out, const struct message *m)
{
	struct message copy = *m;

	fields(&(struct pass){ .out = out }, &copy);
}

int message_get(unsigned type, const unsigned char *at, size_t len, struct arena *arena,
	struct message *ret)
{
	struct pass p = { .in = wire_from(at, len), .arena = arena };
	struct arena_mark before = arena_mark(arena);
	struct message m;

	memset(&m, 0, sizeof m); /* an initializer may leave bytes of a union as they are */
	m.type = type;
	fields(&p, &m);
	if (!wire_is_read(&p.in)) {
		arena_rewind(arena, before); /* what it took goes back */
		return arena_failed(arena) ? -ENOMEM : -EPROTO;
	}
	*ret = m;
	return 0;
}
