/* outcome_json.c - see outcome_json.h */
#include "daemon/report/outcome_json.h"

#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/signame.h"

enum { NS_PER_US = 1000, US_DIGITS = 6 };

static const char *const cause_words[] = {
	[CAUSE_NONE] = "none",
	[CAUSE_FAILURE] = "failure",
	[CAUSE_SIGNAL] = "signal",
	[CAUSE_MAX_RUNTIME] = "max_runtime",
	[CAUSE_GUARD] = "launchd_killed",
	[CAUSE_LAUNCHER] = "launcher_ended",
	[CAUSE_HANGUP] = "hang_up",
	[CAUSE_NODE_LOST] = "node_lost",
	[CAUSE_RESTART] = "restart_requested",
	[CAUSE_BAD_NODE] = "bad_node",
	[CAUSE_HANG] = "hang",
	[CAUSE_PREEMPTED] = "preempted",
	[CAUSE_TIMEOUT] = "collective_timeout",
};

static const char *const how_words[] = {
	[ENDED_NONE] = "not_started",
	[ENDED_EXIT] = "exit",
	[ENDED_SIGNAL] = "signal",
	[ENDED_UNSTARTED] = "not_startable",
	[ENDED_UNMADE] = "not_startable",
	[ENDED_SENT] = "sent_signal",
};

static const char *const oom_words[] = {
	[OOM_NO] = "no",
	[OOM_LIKELY] = "likely",
	[OOM_YES] = "yes",
	[OOM_CHILD] = "child",
};

static const char *const limit_words[] = {
	[OOM_LIMIT_UNKNOWN] = NULL,
	[OOM_LIMIT_OWN] = "own",
	[OOM_LIMIT_ABOVE] = "above",
	[OOM_LIMIT_NONE] = "machine",
};

const char *json_cause_word(enum cause_kind kind)
{
	return cause_words[kind];
}

const char *json_how_word(enum how how)
{
	return how_words[how];
}

void json_seconds(struct json *j, const char *key, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns && to_ns)
		json_decimal(
			j, key, to_ns > from_ns ? (to_ns - from_ns) / NS_PER_US : 0, US_DIGITS);
	else
		json_string(j, key, NULL);
}

void json_signal(struct json *j, const char *key, int signal)
{
	json_string(j, key, signal > 0 ? signal_name(signal) : NULL);
}

void json_sender(struct json *j, const struct sender *s)
{
	char command[sizeof s->command + 1]; /* it may have no NUL at its end */

	if (!s->pid && !s->kernel) {
		json_string(j, "sender", NULL);
		return;
	}
	(void)snprintf(command, sizeof command, "%.*s", (int)sizeof s->command, s->command);
	json_object_begin(j, "sender");
	json_number_if(j, "pid", s->pid > 0, s->pid);
	json_number_if(j, "uid", s->pid > 0, s->uid);
	json_string(j, "command", *command ? command : NULL);
	json_bool(j, "kernel", s->kernel);
	json_object_end(j);
}

void json_exclude(struct json *j, const char *exclude)
{
	char host[NODE_NAME_SIZE];

	if (!exclude) {
		json_string(j, "exclude", NULL);
		return;
	}
	json_array_begin(j, "exclude");
	for (const char *at = exclude; *at; at += strspn(at, ",")) {
		size_t len = strcspn(at, ",");

		(void)snprintf(host, sizeof host, "%.*s", (int)len, at);
		json_string(j, NULL, host);
		at += len;
	}
	json_array_end(j);
}

void json_ending(struct json *j, const struct outcome *o)
{
	const struct ending *e = &o->end;

	json_number_if(j, "exit_code", e->how == ENDED_EXIT, e->value);
	json_signal(j, "signal", e->how == ENDED_SIGNAL || e->how == ENDED_SENT ? e->value : 0);
	json_string(j, "error", ending_is_unstarted(e) ? strerror(e->value) : NULL);
	json_bool(j, "core_dumped", e->how == ENDED_SIGNAL && e->core);
	json_string(j, "oom", oom_words[o->oom]);
	json_string(j, "oom_limit", limit_words[o->oom_limit]);
	json_number_if(j, "oom_limit_bytes", o->oom_bytes > 0, (int64_t)o->oom_bytes);
}

void json_asked(struct json *j, const struct outcome *o)
{
	json_bool(j, "ended_by_launchd", o->asked != ASKED_NOTHING);
	json_bool(j, "killed_by_launchd", o->asked == ASKED_KILLED);
	json_signal(j, "asked_signal", o->asked_signal);
}
