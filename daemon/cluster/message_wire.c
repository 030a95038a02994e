/* message_wire.c - see message_wire.h */
#include "daemon/cluster/message_wire.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "daemon/job/ending.h"

enum { SIGNAL_MAX = 127, CODE_MAX = 255, ERRNO_MAX = 4095, TEXT_MAX = 512 };

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

void wire_put_line(struct wire_out *w, const char *s, size_t room)
{
	char line[TEXT_MAX];
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

void wire_get_line(struct wire_in *w, char *ret, size_t room)
{
	wire_get_string(w, ret, room);
	for (const char *c = ret; *c; c++)
		w->failed = w->failed || is_control(*c);
}

void wire_put_bool(struct wire_out *w, bool value)
{
	wire_put_u8(w, value);
}

bool wire_get_bool(struct wire_in *w)
{
	return wire_get_below(w, 2) != 0;
}

unsigned wire_get_below(struct wire_in *w, unsigned end)
{
	unsigned value = wire_get_u8(w);

	w->failed = w->failed || value >= end;
	return w->failed ? 0 : value;
}

static pid_t get_pid(struct wire_in *w)
{
	uint32_t pid = wire_get_u32(w);

	w->failed = w->failed || pid > INT_MAX;
	return w->failed ? 0 : (pid_t)pid;
}

void wire_put_cause(struct wire_out *w, const struct cause *c)
{
	wire_put_u8(w, (uint8_t)c->kind);
	wire_put_u8(w, (uint8_t)c->signal);
	wire_put_u32(w, (uint32_t)c->sender.pid);
	wire_put_u32(w, c->sender.uid);
	wire_put_bool(w, c->sender.kernel);
	wire_put_line(w, c->sender.command, sizeof c->sender.command);
	wire_put_u64(w, c->at_ns);
	wire_put_u64(w, c->noticed_ns);
	wire_put_u32(w, c->node);
	wire_put_line(w, c->host, sizeof c->host);
	wire_put_line(w, c->detail, sizeof c->detail);
	if (c->kind == CAUSE_FAILURE)
		wire_put_outcome(w, &c->culprit);
}

void wire_get_cause(struct wire_in *w, struct cause *ret)
{
	ret->kind = wire_get_below(w, CAUSE_NODE_LOST + 1);
	ret->signal = (int)wire_get_below(w, SIGNAL_MAX + 1);
	ret->sender.pid = get_pid(w);
	ret->sender.uid = wire_get_u32(w);
	ret->sender.kernel = wire_get_bool(w);
	wire_get_line(w, ret->sender.command, sizeof ret->sender.command);
	ret->at_ns = wire_get_u64(w);
	ret->noticed_ns = wire_get_u64(w);
	ret->node = wire_get_u32(w);
	wire_get_line(w, ret->host, sizeof ret->host);
	wire_get_line(w, ret->detail, sizeof ret->detail);
	if (ret->kind == CAUSE_FAILURE)
		wire_get_outcome(w, &ret->culprit);
	w->failed = w->failed || (ret->kind == CAUSE_SIGNAL && ret->signal == 0) ||
		(ret->kind != CAUSE_SIGNAL && ret->kind != CAUSE_NODE_LOST && ret->signal != 0);
}

static void put_ending(struct wire_out *w, const struct ending *e)
{
	wire_put_u8(w, (uint8_t)e->how);
	wire_put_u16(w, (uint16_t)e->value);
	wire_put_bool(w, e->core);
}

static void get_ending(struct wire_in *w, struct ending *ret)
{
	static const int max[] = {
		[ENDED_NONE] = 0,
		[ENDED_EXIT] = CODE_MAX,
		[ENDED_SIGNAL] = SIGNAL_MAX,
		[ENDED_UNSTARTED] = ERRNO_MAX,
		[ENDED_UNMADE] = ERRNO_MAX,
	};

	ret->how = wire_get_below(w, ENDED_UNMADE + 1);
	ret->value = wire_get_u16(w);
	ret->core = wire_get_bool(w);
	w->failed = w->failed || ret->value > max[ret->how] ||
		(ret->how == ENDED_SIGNAL && ret->value == 0) ||
		(ret->how != ENDED_SIGNAL && ret->core);
}

void wire_put_outcome(struct wire_out *w, const struct outcome *o)
{
	wire_put_u32(w, o->rank);
	wire_put_u32(w, o->local_rank);
	wire_put_u32(w, o->attempt);
	wire_put_u32(w, o->node);
	wire_put_u32(w, (uint32_t)o->pid);
	put_ending(w, &o->end);
	wire_put_u8(w, (uint8_t)o->oom);
	wire_put_u8(w, (uint8_t)o->asked);
	wire_put_u8(w, (uint8_t)o->asked_signal);
	wire_put_u64(w, o->started_ns);
	wire_put_u64(w, o->ended_ns);
	wire_put_u64(w, o->asked_ns);
	wire_put_u64(w, o->late_ns);
	wire_put_u8(w, (uint8_t)o->blames);
	wire_put_u32(w, o->left);
	wire_put_u32(w, o->left_killed);
}

void wire_get_outcome(struct wire_in *w, struct outcome *ret)
{
	ret->rank = wire_get_u32(w);
	ret->local_rank = wire_get_u32(w);
	ret->attempt = wire_get_u32(w);
	ret->node = wire_get_u32(w);
	ret->pid = get_pid(w);
	get_ending(w, &ret->end);
	ret->oom = wire_get_below(w, OOM_YES + 1);
	ret->asked = wire_get_below(w, ASKED_KILLED + 1);
	ret->asked_signal = (int)wire_get_below(w, SIGNAL_MAX + 1);
	ret->started_ns = wire_get_u64(w);
	ret->ended_ns = wire_get_u64(w);
	ret->asked_ns = wire_get_u64(w);
	ret->late_ns = wire_get_u64(w);
	w->failed = w->failed || ret->late_ns > ret->ended_ns;
	ret->blames = wire_get_below(w, BLAMES_A_PEER + 1);
	ret->left = wire_get_u32(w);
	ret->left_killed = wire_get_u32(w);
}
