/* json_parts.c - see json_parts.h */
#include "daemon/report/json_parts.h"

#include <stdio.h>
#include <string.h>

#include "common/signame.h"
#include "common/text.h"
#include "common/vec.h"

enum { NS_PER_US = 1000, US_PER_S = 1000000 };

static const char *const cause_words[] = {
	[CAUSE_NONE] = "none",
	[CAUSE_FAILURE] = "failure",
	[CAUSE_SIGNAL] = "signal",
	[CAUSE_MAX_RUNTIME] = "max_runtime",
	[CAUSE_GUARD] = "launchd_killed",
	[CAUSE_LAUNCHER] = "launcher_ended",
	[CAUSE_HANGUP] = "hang_up",
	[CAUSE_NODE_LOST] = "node_lost",
};

static const char *const how_words[] = {
	[ENDED_NONE] = "not_started",
	[ENDED_EXIT] = "exit",
	[ENDED_SIGNAL] = "signal",
	[ENDED_UNSTARTED] = "not_startable",
	[ENDED_UNMADE] = "not_startable",
};

static const char *const oom_words[] = {
	[OOM_NO] = "no",
	[OOM_LIKELY] = "likely",
	[OOM_YES] = "yes",
};

const char *json_bool(bool b)
{
	return b ? "true" : "false";
}

const char *json_cause_word(enum cause_kind kind)
{
	return cause_words[kind];
}

const char *json_how_word(enum how how)
{
	return how_words[how];
}

void json_add_string(struct text *out, const char *key, const char *value)
{
	text_printf(out, "\"%s\":", key);
	text_add_json(out, value);
}

void json_add_number(struct text *out, const char *key, bool known, long long value)
{
	if (known)
		text_printf(out, "\"%s\":%lld", key, value);
	else
		text_printf(out, "\"%s\":null", key);
}

void json_add_seconds(struct text *out, const char *key, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t us = to_ns > from_ns ? (to_ns - from_ns) / NS_PER_US : 0;

	if (from_ns && to_ns)
		text_printf(out, "\"%s\":%llu.%06u", key, (unsigned long long)(us / US_PER_S),
			(unsigned)(us % US_PER_S));
	else
		text_printf(out, "\"%s\":null", key);
}

void json_add_words(struct text *out, const char *key, const struct vec *words)
{
	text_printf(out, "\"%s\":[", key);
	for (size_t i = 0; i < words->count; i++) {
		text_add(out, i ? "," : "");
		text_add_json(out, words->at[i]);
	}
	text_add(out, "]");
}

void json_add_sender(struct text *out, const struct sender *s)
{
	char command[sizeof s->command + 1]; /* it may have no NUL at its end */

	if (!s->pid && !s->kernel) {
		json_add_string(out, "sender", NULL);
		return;
	}
	(void)snprintf(command, sizeof command, "%.*s", (int)sizeof s->command, s->command);
	text_add(out, "\"sender\":{");
	json_add_number(out, "pid", s->pid > 0, s->pid);
	text_add(out, ",");
	json_add_number(out, "uid", s->pid > 0, s->uid);
	text_add(out, ",");
	json_add_string(out, "command", *command ? command : NULL);
	text_printf(out, ",\"kernel\":%s}", json_bool(s->kernel));
}

void json_add_ending(struct text *out, const struct outcome *o)
{
	const struct ending *e = &o->end;

	json_add_number(out, "exit_code", e->how == ENDED_EXIT, e->value);
	text_add(out, ",");
	json_add_string(out, "signal", e->how == ENDED_SIGNAL ? signal_name(e->value) : NULL);
	text_add(out, ",");
	json_add_string(out, "error", ending_is_unstarted(e) ? strerror(e->value) : NULL);
	text_printf(out, ",\"core_dumped\":%s,", json_bool(e->how == ENDED_SIGNAL && e->core));
	json_add_string(out, "oom", oom_words[o->oom]);
}
