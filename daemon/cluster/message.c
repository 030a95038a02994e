/* message.c - messages of the meeting, and small ones; see message.h */
#include "daemon/cluster/message.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/siphash.h"
#include "daemon/cluster/message_wire.h"

enum { SIGNAL_MAX = 127, NUMBER_BYTES = 4, CODE_MAX = 255 };

static int read_all(const struct wire_in *w)
{
	return wire_is_read(w) ? 0 : -EPROTO;
}

/* The key is no secret: nobody gains by two ids that are the same here. */
uint64_t message_run_hash(const char *run_id)
{
	static const uint8_t key[SIPHASH_KEY_SIZE] = "launchd's run id";
	uint64_t hash = run_id ? siphash(key, (const uint8_t *)run_id, strlen(run_id)) : 0;

	return run_id && hash == 0 ? 1 : hash;
}

void message_put_join(struct wire_out *out, const struct message_join *m)
{
	wire_put_u32(out, m->node_rank);
	wire_put_u32(out, m->nnodes);
	wire_put_u32(out, m->nproc);
	wire_put_u32(out, m->max_restarts);
	wire_put_u8(out, (uint8_t)m->store);
	wire_put_u64(out, m->run_hash);
	wire_put_line(out, m->run_id, sizeof m->run_id);
	wire_put_line(out, m->name, sizeof m->name);
	wire_put_line(out, m->version, sizeof m->version);
	wire_put_line(out, m->reached, sizeof m->reached);
}

int message_get_join(const unsigned char *at, size_t len, struct message_join *ret)
{
	struct wire_in w = wire_from(at, len);
	struct message_join m = { .node_rank = wire_get_u32(&w) };

	m.nnodes = wire_get_u32(&w);
	m.nproc = wire_get_u32(&w);
	m.max_restarts = wire_get_u32(&w);
	m.store = wire_get_below(&w, STORE_WISH_RANK0 + 1);
	m.run_hash = wire_get_u64(&w);
	wire_get_line(&w, m.run_id, sizeof m.run_id);
	wire_get_line(&w, m.name, sizeof m.name);
	wire_get_line(&w, m.version, sizeof m.version);
	wire_get_line(&w, m.reached, sizeof m.reached);
	if (read_all(&w) < 0)
		return -EPROTO;
	*ret = m;
	return 0;
}

static void put_numbers(struct wire_out *w, const unsigned *at, size_t count)
{
	wire_put_u32(w, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		wire_put_u32(w, at[i]);
}

/* Memory is asked for only when the message is as long as it says. NULL: it is not, or none is
 * there, and then the arena has failed. */
static unsigned *get_numbers(struct wire_in *w, struct arena *arena, size_t *ret_count)
{
	size_t count = wire_get_u32(w);
	unsigned *ret;

	w->failed = w->failed || w->left != count * NUMBER_BYTES;
	if (w->failed)
		return NULL;
	ret = arena_alloc(arena, (count + 1) * sizeof *ret);
	for (size_t i = 0; ret && i < count; i++)
		ret[i] = wire_get_u32(w);
	*ret_count = count;
	return ret;
}

void message_put_welcome(struct wire_out *out, const struct message_welcome *m)
{
	assert(m->master_port <= UINT16_MAX);
	wire_put_u32(out, m->node_rank);
	wire_put_line(out, m->master_addr, sizeof m->master_addr);
	wire_put_u16(out, (uint16_t)m->master_port);
	wire_put_u32(out, m->max_restarts);
	wire_put_bool(out, m->agent_store);
	put_numbers(out, m->nproc, m->nnodes);
}

int message_get_welcome(
	const unsigned char *at, size_t len, struct arena *arena, struct message_welcome *ret)
{
	struct wire_in w = wire_from(at, len);
	struct message_welcome m = { .node_rank = wire_get_u32(&w) };
	size_t count = 0;

	wire_get_line(&w, m.master_addr, sizeof m.master_addr);
	m.master_port = wire_get_u16(&w);
	m.max_restarts = wire_get_u32(&w);
	m.agent_store = wire_get_bool(&w);
	m.nproc = get_numbers(&w, arena, &count);
	m.nnodes = (unsigned)count;
	if (!w.failed && !m.nproc)
		return -ENOMEM;
	if (read_all(&w) < 0 || m.node_rank >= m.nnodes)
		return -EPROTO;
	*ret = m;
	return 0;
}

void message_put_refused(struct wire_out *out, const struct message_refused *m)
{
	wire_put_u8(out, (uint8_t)m->why);
	wire_put_u16(out, (uint16_t)-m->code);
	wire_put_line(out, m->text, sizeof m->text);
}

void message_failure(int code, const char *text, struct failure *why)
{
	if (code == -EINVAL)
		(void)failure_usage(why, "%s", text);
	else if (code == -ENOENT || code == -EACCES) /* of --wrap, on another node */
		(void)failure_program(why, code, "%s", text);
	else
		(void)failure_set(why, code, "%s", text);
}

int message_get_refused(const unsigned char *at, size_t len, struct message_refused *ret)
{
	struct wire_in w = wire_from(at, len);
	struct message_refused m = { .why = wire_get_below(&w, REFUSED_UNABLE + 1) };

	m.code = -wire_get_u16(&w);
	wire_get_line(&w, m.text, sizeof m.text);
	if (read_all(&w) < 0 || m.code == 0)
		return -EPROTO;
	*ret = m;
	return 0;
}

void message_put_text(struct wire_out *out, const char *text)
{
	wire_put_line(out, text, MESSAGE_TEXT_SIZE);
}

int message_get_text(const unsigned char *at, size_t len, char ret[MESSAGE_TEXT_SIZE])
{
	struct wire_in w = wire_from(at, len), again = w;
	char text[MESSAGE_TEXT_SIZE];

	wire_get_line(&w, text, sizeof text);
	if (read_all(&w) < 0)
		return -EPROTO;
	wire_get_line(&again, ret, MESSAGE_TEXT_SIZE);
	return 0;
}

void message_put_signal(struct wire_out *out, int signal)
{
	wire_put_u8(out, (uint8_t)signal);
}

int message_get_signal(const unsigned char *at, size_t len, int *ret)
{
	struct wire_in w = wire_from(at, len);
	int signal = (int)wire_get_below(&w, SIGNAL_MAX + 1);

	if (read_all(&w) < 0 || signal == 0)
		return -EPROTO;
	*ret = signal;
	return 0;
}

void message_put_start(struct wire_out *out, const struct message_start *m)
{
	assert(m->master_port <= UINT16_MAX);
	wire_put_u32(out, m->attempt);
	wire_put_u16(out, (uint16_t)m->master_port);
}

int message_get_start(const unsigned char *at, size_t len, struct message_start *ret)
{
	struct wire_in w = wire_from(at, len);
	struct message_start m = { .attempt = wire_get_u32(&w) };

	m.master_port = wire_get_u16(&w);
	if (read_all(&w) < 0)
		return -EPROTO;
	*ret = m;
	return 0;
}

void message_put_verdict(struct wire_out *out, const struct verdict *v)
{
	wire_put_u8(out, (uint8_t)v->exit_code);
	wire_put_bool(out, v->well);
	wire_put_u32(out, v->attempt);
	wire_put_line(out, v->text, sizeof v->text);
	wire_put_bool(out, v->unsure);
	wire_put_cause(out, &v->cause);
}

int message_get_verdict(const unsigned char *at, size_t len, struct verdict *ret)
{
	struct wire_in w = wire_from(at, len);
	struct verdict v = { .exit_code = (int)wire_get_below(&w, CODE_MAX + 1) };

	v.well = wire_get_bool(&w);
	v.attempt = wire_get_u32(&w);
	wire_get_line(&w, v.text, sizeof v.text);
	v.unsure = wire_get_bool(&w);
	wire_get_cause(&w, &v.cause);
	if (read_all(&w) < 0 || v.well != (v.cause.kind == CAUSE_NONE) ||
		(v.well && v.exit_code != 0))
		return -EPROTO;
	*ret = v;
	return 0;
}

void message_put_ranks(struct wire_out *out, unsigned attempt, const unsigned *ranks, size_t count)
{
	wire_put_u32(out, attempt);
	put_numbers(out, ranks, count);
}

int message_get_ranks(const unsigned char *at, size_t len, struct arena *arena,
	unsigned *ret_attempt, unsigned **ret, size_t *ret_count)
{
	struct wire_in w = wire_from(at, len);
	unsigned attempt = wire_get_u32(&w);
	size_t count = 0;
	unsigned *ranks = get_numbers(&w, arena, &count);

	if (!w.failed && !ranks)
		return -ENOMEM;
	if (read_all(&w) < 0)
		return -EPROTO;
	*ret_attempt = attempt;
	*ret = ranks;
	*ret_count = count;
	return 0;
}
