/* fuzz.c - see fuzz.h */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/hosts.h"
#include "common/bits.h"
#include "config/lists.h"
#include "config/value.h"

unsigned fuzz_taken;

void fuzz_promise(const char *broken, const char *file, int line)
{
	if (!broken)
		return;
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, broken);
	abort();
}

struct words words_make(const uint8_t *bytes, size_t len)
{
	const char *at = (const char *)bytes;
	char divider = len > 0 && memchr(bytes, '\0', len) ? '\0' : '\n';
	struct words w = { calloc(len + 2, sizeof *w.at), 0 };

	PROMISE(w.at != NULL);
	while (len > 0) {
		const char *end = memchr(at, divider, len);
		size_t n = end ? (size_t)(end - at) : len;
		char *word = malloc(n + 1);

		PROMISE(word != NULL);
		memcpy(word, at, n);
		word[n] = '\0';
		w.at[w.count++] = word;
		n += end != NULL;
		at += n;
		len -= n;
	}
	return w;
}

void words_done(struct words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->at[i]);
	free((void *)w->at);
}

void reading_init(struct reading *r, bool as_torchrun)
{
	memset(r, 0, sizeof *r);
	r->notes.arena = &r->arena;
	settings_init(&r->s, &r->arena, as_torchrun);
}

void reading_done(struct reading *r)
{
	arena_done(&r->arena);
}

/* A list that was taken has hosts, each once, whose names are lists of themselves. */
static void check_hosts(const char *text, bool colon)
{
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct hosts hosts = { .colon = colon };
	const struct host *first;

	PROMISE(hosts_add_list(&arena, text, "here", &hosts, &why) == 0);
	PROMISE(hosts.count > 0 && hosts.count <= HOSTS_MAX);
	PROMISE(!hosts_twice(&arena, &hosts, &first));
	for (size_t i = 0; i < hosts.count && i < 16; i++) {
		struct hosts one = { 0 };

		PROMISE(hosts_add_list(&arena, hosts.at[i].name, "here", &one, &why) == 0);
		PROMISE(one.count == 1 && strcmp(one.at[0].name, hosts.at[i].name) == 0);
		PROMISE(one.at[0].is_address == hosts.at[i].is_address);
	}
	arena_done(&arena);
}

static void check_value(const struct setting_row *row, const struct value *v)
{
	PROMISE(v->text != NULL);
	PROMISE(v->from.where && *v->from.where);
	switch (row->kind) {
	case KIND_FLAG:
		PROMISE(v->number <= 1);
		break;
	case KIND_COUNT:
	case KIND_NNODES:
		PROMISE(v->number >= row->min && v->number <= row->max);
		break;
	case KIND_NPROC:
		PROMISE(v->number <= row->max);
		PROMISE(v->number > 0 || choice_index(row->choices, v->text) >= 0);
		break;
	case KIND_SECONDS:
		PROMISE(v->number >= row->min * 1000 && v->number <= row->max * 1000);
		break;
	case KIND_CPUS:
		PROMISE(v->number == 0 || v->number >= CPUS_LEAST);
		PROMISE(v->number <= row->max * 1000);
		break;
	case KIND_RATE:
		PROMISE(v->number <= row->max * 1000);
		break;
	case KIND_CHOICE:
		PROMISE((int)v->number == choice_index(row->choices, v->text));
		break;
	case KIND_LISTS:
		PROMISE(choice_index(row->choices, v->text) >= 0 || bits_lists(v->text) > 0);
		break;
	case KIND_TEXT:
	case KIND_RLIMITS: /* settings_put() has read it */
		PROMISE(*v->text);
		break;
	case KIND_HOSTS:
	case KIND_HOSTS_SLOTS:
		check_hosts(v->text, row->kind == KIND_HOSTS_SLOTS);
		break;
	case KIND_RANKS:
		if (!*v->text) /* all of them */
			break;
		PROMISE(ranks_last(v->text) <= INT_MAX);
		PROMISE(ranks_contain(v->text, (unsigned)ranks_last(v->text)));
		break;
	case KIND_STREAMS:
		PROMISE(streams_last(v->text) <= INT_MAX);
		PROMISE(streams_of(v->text, (unsigned)streams_last(v->text)) <= 3);
		break;
	case KIND_SIZE:
		PROMISE(v->number <= row->max);
		break;
	case KIND_SIGNED:
		PROMISE((int64_t)v->number >= (int64_t)row->min);
		PROMISE((int64_t)v->number <= (int64_t)row->max);
		break;
	case KIND_DEVICES:
		PROMISE(gpus_check(v->text) == 0);
		break;
	case KIND_ENDS:
		PROMISE(ends_check(v->text) == 0);
		break;
	case KIND_ENDS_OR_REPEAT:
		PROMISE(ends_or_repeat_check(v->text) == 0);
		break;
	case KIND_TEXT_OR_NONE:
	case KIND_CONF:
	case KIND_ARGS:
		break;
	case KIND_ENV:
	case KIND_UNSET:
		fuzz_promise("a list has no value", __FILE__, __LINE__);
	}
}

void reading_check(const struct reading *r)
{
	PROMISE(r->rc == 0 || r->rc == -EINVAL);
	PROMISE(r->why.code == r->rc);
	PROMISE((r->why.text[0] != '\0') == (r->rc != 0));
	PROMISE(!arena_failed(&r->arena));
	for (int id = 0; id < SETTING_COUNT; id++)
		if (r->s.value[id].from.level != LEVEL_NONE)
			check_value(&setting_rows[id], &r->s.value[id]);
	for (const struct env_change *c = r->s.env; c; c = c->next) {
		PROMISE(*c->name && !strchr(c->name, '='));
		PROMISE(c->from.level > LEVEL_DEFAULT && c->from.where && *c->from.where);
		for (const struct env_change *other = c->next; other; other = other->next)
			PROMISE(strcmp(c->name, other->name) != 0);
	}
	for (const struct note *n = r->notes.first; n; n = n->next)
		PROMISE(n->text && *n->text);
}

static void same_text(const char *a, const char *b)
{
	PROMISE((a == NULL) == (b == NULL));
	PROMISE(!a || strcmp(a, b) == 0);
}

void reading_compare(const struct reading *a, const struct reading *b)
{
	const struct env_change *ca = a->s.env, *cb = b->s.env;
	const struct note *na = a->notes.first, *nb = b->notes.first;

	PROMISE(a->rc == b->rc);
	same_text(a->why.text, b->why.text);
	for (int id = 0; id < SETTING_COUNT; id++) {
		PROMISE(a->s.value[id].number == b->s.value[id].number);
		PROMISE(a->s.value[id].from.level == b->s.value[id].from.level);
		same_text(a->s.value[id].text, b->s.value[id].text);
		same_text(a->s.value[id].from.where, b->s.value[id].from.where);
	}
	for (; ca && cb; ca = ca->next, cb = cb->next) {
		same_text(ca->name, cb->name);
		same_text(ca->value, cb->value);
	}
	PROMISE(!ca && !cb);
	for (; na && nb; na = na->next, nb = nb->next)
		same_text(na->text, nb->text);
	PROMISE(!na && !nb);
	same_text(a->s.script, b->s.script);
	PROMISE(a->s.args.count == b->s.args.count);
}
