/* journal_fields.c - see journal_fields.h */
#include "daemon/service/journal_fields.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/journal_entry.h"
#include "common/num.h"
#include "common/signame.h"
#include "daemon/job/job_end.h"
#include "daemon/observe/event.h"
#include "daemon/plan/plan.h"
#include "daemon/service/journal_ids.h"

static const struct level {
	const char *word, *json;
	enum priority priority;
} levels[] = {
	{ "launchd: note: ", "\"level\":\"note\"", PRIORITY_INFO },
	{ "launchd: warning: ", "\"level\":\"warning\"", PRIORITY_WARNING },
	{ "launchd: error: ", "\"level\":\"error\"", PRIORITY_ERROR },
};

static void add_frame(struct text *entry, const struct journal_frame *f, enum priority priority)
{
	entry_add_number(entry, "PRIORITY", priority);
	entry_add_string(entry, "SYSLOG_IDENTIFIER", "launchd");
	entry_add_string(entry, "JOB", f->job_name);
	entry_add_string(entry, "RUN_ID", f->run_id);
	if (f->node_known)
		entry_add_number(entry, "NODE_RANK", f->node);
	if (f->attempt >= 0)
		entry_add_number(entry, "ATTEMPT", f->attempt);
}

static bool has(const char *line, size_t len, const char *part)
{
	return memmem(line, len, part, strlen(part)) != NULL;
}

/* How much of a line is "launchd: level: "; the level is kept where there is none. */
static size_t find_level(const char *line, size_t len, enum priority *level)
{
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		size_t n = strlen(levels[i].word);

		if (len >= n && memcmp(line, levels[i].word, n) == 0) {
			*level = levels[i].priority;
			return n;
		}
		if (len > 0 && *line == '{' && has(line, len, levels[i].json)) {
			*level = levels[i].priority;
			return 0;
		}
	}
	return 0;
}

static void add_line(struct text *out, const struct journal_frame *f, enum priority level,
	const char *text, size_t len)
{
	if (len > ENTRY_TEXT_MAX)
		len = ENTRY_TEXT_MAX;
	add_frame(out, f, level);
	entry_add(out, "MESSAGE", text, len);
}

void journal_add_lines(struct text *out, const struct journal_frame *frame, const char *lines,
	size_t len, bool to_stderr)
{
	const char *end = lines + len;
	enum priority level = PRIORITY_INFO;

	while (lines < end) {
		const char *newline = memchr(lines, '\n', (size_t)(end - lines));
		const char *next = newline ? newline + 1 : end;
		size_t whole = (size_t)((newline ? newline : end) - lines);
		size_t skip = find_level(lines, whole, &level);
		struct text entry = { 0 };

		add_line(&entry, frame, level, lines + skip, whole - skip);
		records_add_entry(out, &entry, lines,
			to_stderr && whole < ENTRY_TEXT_MAX ? (size_t)(next - lines) : 0);
		text_done(&entry);
		lines = next;
	}
}

/* Who: an outcome's worker, and how it ended. */
static void add_worker(struct text *entry, const struct outcome *o)
{
	entry_add_number(entry, "RANK", o->rank);
	entry_add_number(entry, "LOCAL_RANK", o->local_rank);
	if (o->pid > 0)
		entry_add_number(entry, "WORKER_PID", o->pid);
	if (o->end.how == ENDED_EXIT)
		entry_add_number(entry, "EXIT_CODE", o->end.value);
	else if (o->end.how == ENDED_SIGNAL || o->end.how == ENDED_SENT)
		entry_add_string(entry, "SIGNAL", signal_name(o->end.value));
}

/* An entry that is being made. */
struct making {
	struct text fields, message;
	enum journal_id id;
	enum priority priority;
};

static void make_job_started(struct making *m, const struct event *e)
{
	const struct plan *p = e->job_started.plan;

	m->id = JOURNAL_ID_JOB_STARTED;
	text_printf(&m->message, "job %s: %u of %u workers run here (node %u of %u)",
		p->job_name ? p->job_name : "", p->start_count, p->world_size, p->node_rank,
		p->nnodes);
}

static void make_attempt_started(struct making *m, const struct event *e)
{
	m->id = JOURNAL_ID_ATTEMPT_STARTED;
	text_printf(&m->message, "attempt %u starts, master %s port %u", e->attempt_started.attempt,
		e->attempt_started.master_addr, e->attempt_started.master_port);
}

static const char *const memory_words[] = {
	[OOM_NO] = "",
	[OOM_LIKELY] = ", probably out of memory",
	[OOM_YES] = ", out of memory",
	[OOM_CHILD] = ", and a process that it had started ran out of memory",
};

static void make_worker_ended(struct making *m, const struct event *e)
{
	const struct outcome *o = e->worker;

	m->id = JOURNAL_ID_WORKER_FAILED;
	m->priority = PRIORITY_ERROR;
	add_worker(&m->fields, o);
	text_printf(&m->message, "rank %u (local rank %u, pid %d): ", o->rank, o->local_rank,
		(int)o->pid);
	ending_describe(&o->end, &m->message);
	text_add(&m->message, memory_words[o->oom]);
}

static void make_stop(struct making *m, const struct event *e)
{
	m->id = JOURNAL_ID_STOP;
	m->priority = PRIORITY_NOTICE;
	if (!e->stop.signal) {
		text_add(&m->message, "stopping what this node's workers left behind");
		return;
	}
	entry_add_string(&m->fields, "SIGNAL", signal_name(e->stop.signal));
	text_printf(&m->message, "stopping this node's workers by %s", signal_name(e->stop.signal));
	if (e->stop.signal != SIGKILL)
		text_printf(&m->message, ", and by SIGKILL after %s s",
			num_seconds(e->stop.grace_ms).text);
}

static void make_node_lost(struct making *m, const struct event *e)
{
	m->id = JOURNAL_ID_NODE_LOST;
	m->priority = PRIORITY_ERROR;
	entry_add_number(&m->fields, "LOST_NODE_RANK", e->other.rank);
	text_printf(&m->message, "node %u (%s) is lost%s%s", e->other.rank,
		e->other.name ? e->other.name : "", e->other.detail ? ": " : "",
		e->other.detail ? e->other.detail : "");
}

/* What a job came to, or an attempt. */
static void add_verdict(struct making *m, const struct verdict *v)
{
	const struct outcome *culprit = cause_culprit(&v->cause);

	if (culprit)
		add_worker(&m->fields, culprit);
	else if (v->cause.kind == CAUSE_SIGNAL)
		entry_add_string(&m->fields, "SIGNAL", signal_name(v->cause.signal));
	else if (v->cause.kind == CAUSE_NODE_LOST)
		entry_add_number(&m->fields, "LOST_NODE_RANK", v->cause.node);
	else if (v->cause.kind == CAUSE_BAD_NODE && v->cause.exclude)
		entry_add_string(&m->fields, "EXCLUDE_HOSTS", v->cause.exclude);
}

static void make_restart(struct making *m, const struct event *e)
{
	const struct verdict *v = &e->restart.end->verdict;

	m->id = JOURNAL_ID_RESTART;
	m->priority = v->cause.kind == CAUSE_RESTART ? PRIORITY_NOTICE : PRIORITY_WARNING;
	add_verdict(m, v);
	entry_add_number(&m->fields, "NEXT_ATTEMPT", e->restart.attempt);
	text_printf(&m->message, "restarting all workers as attempt %u: %s", e->restart.attempt,
		v->text);
}

static void make_job_ended(struct making *m, const struct event *e)
{
	const struct run_end *end = e->job_ended.end;

	m->id = journal_id_of_end(end);
	m->priority = m->id == JOURNAL_ID_ENDED_WELL ? PRIORITY_INFO :
		m->id == JOURNAL_ID_BY_REQUEST       ? PRIORITY_NOTICE :
						       PRIORITY_ERROR;
	entry_add_number(&m->fields, "JOB_EXIT_CODE", e->job_ended.exit_code);
	if (end)
		add_verdict(m, &end->job.verdict);
	text_printf(&m->message, "%s with exit code %d",
		end ? "the job has ended" : "no job was run here: launchd ends",
		e->job_ended.exit_code);
	if (end && *end->job.verdict.text)
		text_printf(&m->message, ": %s", end->job.verdict.text);
}

static void (*const makers[EVENT_KINDS])(struct making *m, const struct event *e) = {
	[EVENT_JOB_STARTED] = make_job_started,
	[EVENT_ATTEMPT_STARTED] = make_attempt_started,
	[EVENT_WORKER_ENDED] = make_worker_ended,
	[EVENT_STOP] = make_stop,
	[EVENT_NODE_LOST] = make_node_lost,
	[EVENT_RESTART] = make_restart,
	[EVENT_JOB_ENDED] = make_job_ended,
};

/* A worker that ends well, or because launchd ends it, is no event of the journal's: there may be
 * hundreds. */
static bool is_wanted(const struct event *e)
{
	if (!makers[e->kind])
		return false;
	return e->kind != EVENT_WORKER_ENDED ||
		(e->worker->asked == ASKED_NOTHING && !ending_is_success(&e->worker->end));
}

void journal_add_event(struct text *out, const struct journal_frame *frame, const struct event *e)
{
	struct making m = { .priority = PRIORITY_INFO };
	struct text entry = { 0 };

	if (!is_wanted(e))
		return;
	makers[e->kind](&m, e);
	add_line(&entry, frame, m.priority, text_string(&m.message), m.message.len);
	entry_add_string(&entry, "MESSAGE_ID", journal_id_number(m.id));
	entry_add_string(&entry, "EVENT", journal_id_word(m.id));
	text_add_bytes(&entry, text_string(&m.fields), m.fields.len);
	entry.failed = entry.failed || m.fields.failed;
	records_add_entry(out, &entry, "", 0);
	text_done(&entry);
	text_done(&m.fields);
	text_done(&m.message);
}
