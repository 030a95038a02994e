/* rdzv_conf.c - see rdzv_conf.h */
#include "config/rdzv_conf.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/num.h"
#include "common/words.h"
#include "config/settings.h"
#include "config/value.h"

enum effect {
	NO_EFFECT,
	JOINS,        /* means --join-timeout */
	JOINS_STATIC, /* the same, with the static backend only */
	HOSTS,        /* with c10d: this node has the endpoint, whatever its addresses */
};

/* torchrun's keys; the rest of what it takes is the business of stores that launchd doesn't use. */
static const struct {
	const char *key;
	enum effect effect;
	bool seconds;
	const char *why;
} keys[] = {
	{ "join_timeout", JOINS, true, NULL },
	{ "is_host", HOSTS, false, "only the c10d backend uses it" },
	{ "timeout", JOINS_STATIC, true, "only the static backend uses it" },
	{ "last_call_timeout", NO_EFFECT, true,
		"the job starts as soon as all of its nodes have met" },
	{ "close_timeout", NO_EFFECT, true, "all nodes learn of the job's end at once" },
	{ "heartbeat_timeout", NO_EFFECT, true, "--node-timeout decides when a node is lost" },
	{ "read_timeout", NO_EFFECT, true, "--node-timeout decides when a node is lost" },
	{ "keep_alive_interval", NO_EFFECT, false, "--node-timeout decides when a node is lost" },
	{ "keep_alive_max_attempt", NO_EFFECT, false,
		"--node-timeout decides when a node is lost" },
};

static int apply_one(struct settings *s, const char *key, const char *value, enum level join_level,
	struct notes *notes, struct failure *why)
{
	const struct origin from = s->value[SET_RDZV_CONF].from;
	const char *because = "launchd's nodes find one another without torch's store";
	enum effect effect = NO_EFFECT;
	uint64_t ms;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		if (strcmp(keys[i].key, key) != 0)
			continue;
		if (keys[i].seconds && num_parse_seconds(value, UINT32_MAX, &ms) < 0)
			return failure_usage(why,
				"%s: \"%s=%s\": not a time, such as 90, 0.5, 90s, 5m, 1h30m or 2d",
				from.where, key, value);
		effect = keys[i].effect;
		because = keys[i].why;
	}
	if (effect == JOINS_STATIC && settings_is(s, SET_RDZV_BACKEND, "static"))
		effect = JOINS;
	if (effect == HOSTS && settings_is(s, SET_RDZV_BACKEND, "c10d")) {
		/* torchrun's words for true; all others mean false, as for the nodes that don't say
		 * it */
		if (!*value || !strchr("1tTyY", *value) || settings_given(s, SET_NODE_RANK))
			return 0;
		return settings_put(s, SET_NODE_RANK, "0",
			(struct origin){
				from.level, arena_printf(s->arena, "%s in %s", key, from.where) },
			why);
	}
	if (effect != JOINS)
		notes_add(
			notes, NOTE_WARNING, "%s: %s has no effect: %s", from.where, key, because);
	else if (join_level < from.level)
		return settings_put(s, SET_JOIN_TIMEOUT, value,
			(struct origin){
				from.level, arena_printf(s->arena, "%s in %s", key, from.where) },
			why);
	return 0;
}

int rdzv_conf_apply(struct settings *s, struct notes *notes, struct failure *why)
{
	enum level join_level = s->value[SET_JOIN_TIMEOUT].from.level;
	const char *text = settings_text(s, SET_RDZV_CONF);
	int rc = 0;

	size_t bare = conf_bare(&text);

	text = arena_strndup(s->arena, text, bare);
	while (*text && rc == 0) {
		const char *pair, *key, *value;
		size_t len = list_next(&text, &pair), key_len;

		pair = arena_strndup(s->arena, pair, len);
		value = strchr(pair, '=');
		if (!value) /* out of memory */
			return failure_oom(why);
		key_len = (size_t)(value++ - pair);
		while (key_len > 0 && strchr(" \t", pair[key_len - 1]))
			key_len--;
		key = arena_strndup(s->arena, pair, key_len);
		rc = apply_one(s, key, value + strspn(value, " \t"), join_level, notes, why);
	}
	return rc;
}
