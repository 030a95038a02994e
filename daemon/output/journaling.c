/* journaling.c - see journaling.h */
#include "daemon/output/journaling.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "daemon/os/journal_socket.h"
#include "daemon/plan/plan.h"

#define AGAIN_NS 5000000000ull

enum {
	PATIENCE_MS = 10000,      /* journald may rotate its files, or wait for their disk */
	INSTEAD_MAX = 128 * 1024, /* of what waits in a console, half of what it keeps */
};

static const char *name_of(int fd)
{
	return fd == 1 ? "stdout" : "stderr";
}

bool journaling_header(const struct plan *plan, unsigned local_rank, unsigned attempt, int fd,
	pid_t pid, struct text *prefix)
{
	const struct worker_rank where = plan_rank(plan, local_rank);
	const char *name = strrchr(plan->script, '/');
	struct text fields = { 0 };
	char label[32];
	bool is_there;

	(void)snprintf(label, sizeof label, "[%u]: ", where.rank);
	name = name && name[1] ? name + 1 : plan->script;
	entry_add_number(&fields, "PRIORITY", PRIORITY_INFO);
	entry_add(&fields, "SYSLOG_IDENTIFIER", name, strnlen(name, NAME_MAX));
	if (pid > 0)
		entry_add_number(&fields, "SYSLOG_PID", pid);
	entry_add(&fields, "RUN_ID", plan->run_id, strnlen(plan->run_id, PREFIX_MAX / 4));
	entry_add(&fields, "JOB", plan->job_name, strnlen(plan->job_name, NAME_MAX));
	entry_add_number(&fields, "RANK", where.rank);
	entry_add_number(&fields, "LOCAL_RANK", where.local_rank);
	entry_add_number(&fields, "NODE_RANK", where.node_rank);
	entry_add_number(&fields, "ATTEMPT", attempt);
	entry_add_string(&fields, "STREAM", name_of(fd));
	text_done(prefix);
	is_there = !fields.failed &&
		records_add_header(prefix, fd, label, text_string(&fields), fields.len) &&
		prefix->len <= PREFIX_MAX;
	text_done(&fields);
	return is_there;
}

/* Where the next try may be in a while. */
static void stay_away(struct journaling *j)
{
	fd_closep(&j->fd);
	j->away_ns = uv_hrtime();
	(void)uv_timer_stop(&j->patience);
}

static void go_away(struct journaling *j, const char *why)
{
	char text[160];

	stay_away(j);
	(void)snprintf(text, sizeof text,
		"the journal (%s): %s; what would be there goes to standard output and error",
		j->path, why);
	j->say(j->owner, true, text);
}

static int come_back(struct journaling *j)
{
	autoclose fd = journal_socket_open(j->path);
	int rc = fd < 0 ? fd : console_watch(&j->console, fd);

	if (rc == 0)
		j->fd = fd_take(&fd);
	return rc;
}

static void on_patience(uv_timer_t *t)
{
	struct journaling *j = t->data;

	go_away(j, "it has taken nothing for 10 seconds");
	console_writable(&j->console, true);
}

/* Now. -EAGAIN: it has no room. */
static int try_send(struct journaling *j, const struct text *entry)
{
	int rc = journal_socket_send(j->fd, text_string(entry), entry->len);

	if (rc == -EAGAIN && !uv_is_active((uv_handle_t *)&j->patience)) {
		uv_update_time(j->patience.loop);
		(void)uv_timer_start(&j->patience, on_patience, PATIENCE_MS, 0);
	} else if (rc != -EAGAIN) {
		(void)uv_timer_stop(&j->patience);
	}
	return rc;
}

/* True: the journal is there, be it again. */
static bool is_there(struct journaling *j)
{
	bool is_first = j->away_ns == 0;
	uint64_t now = uv_hrtime();
	int rc;

	if (j->fd >= 0)
		return true;
	if (j->left || (!is_first && now - j->away_ns < AGAIN_NS))
		return false;
	j->away_ns = now;
	rc = come_back(j);
	if (rc < 0 && is_first)
		go_away(j, strerror(-rc));
	return rc == 0;
}

/* journald was started anew, with a new socket, if it is there at all. */
static int send_entry(struct journaling *j, const struct text *entry)
{
	int rc;

	if (!is_there(j))
		return -ENOTCONN;
	rc = try_send(j, entry);
	if (rc == 0 || rc == -EAGAIN)
		return rc;
	fd_closep(&j->fd);
	if (come_back(j) == 0)
		rc = try_send(j, entry);
	if (rc < 0 && rc != -EAGAIN)
		go_away(j, strerror(-rc));
	return rc;
}

static int send_record(struct journaling *j, const struct record *r)
{
	struct text *e = &j->entry;

	e->len = 0;
	if (r->fields_len > 0)
		text_add_bytes(e, r->fields, r->fields_len);
	if (r->kind == RECORD_PLAIN) {
		entry_add_number(e, "PRIORITY", PRIORITY_WARNING);
		entry_add_string(e, "SYSLOG_IDENTIFIER", "launchd");
	}
	if (r->kind != RECORD_ENTRY) {
		if (r->part > 0)
			entry_add_number(e, "LINE_PART", r->part);
		entry_add(e, "MESSAGE", r->text, r->text_len);
	}
	if (e->failed) { /* the entry is what is missing, not those after it */
		text_done(e);
		return -ENOMEM;
	}
	return send_entry(j, e);
}

/* To the console instead. -EAGAIN: its reader has much to read already. */
static int show_record(struct journaling *j, const struct record *r)
{
	struct console *to = j->instead[r->fd - 1];
	struct text line = { 0 };

	if (r->kind == RECORD_LINE && to->words.len > INSTEAD_MAX && to->state != CONSOLE_BROKEN) {
		j->waits = true;
		return -EAGAIN;
	}
	if (r->text_len == 0 && r->kind == RECORD_ENTRY)
		return 0;
	if (r->label_len > 0)
		text_add_bytes(&line, r->label, r->label_len);
	text_add_bytes(&line, r->text, r->text_len);
	if (r->kind != RECORD_ENTRY)
		text_add(&line, "\n");
	console_say(to, text_string(&line), line.len);
	text_done(&line);
	return 0;
}

static int deliver(struct journaling *j)
{
	const struct record r = records_now(&j->records);
	int rc;

	if (r.kind == RECORD_LINE && r.text_len == 0 && r.part > 1)
		return 0; /* the end of a line whose parts are out */
	rc = send_record(j, &r);
	return rc == 0 || rc == -EAGAIN ? rc : show_record(j, &r);
}

/* As write(2) for the console: takes records, and the start of one that is not whole. */
static ssize_t take_records(const struct console *c, const char *at, size_t len)
{
	struct journaling *j = c->owner_of_write;
	size_t done = 0;

	while (done < len) {
		bool whole;
		size_t n = records_take(&j->records, at + done, len - done, &whole);

		if (whole && deliver(j) == -EAGAIN) {
			records_untake(&j->records, n);
			break;
		}
		if (whole)
			records_next(&j->records);
		done += n;
	}
	errno = EAGAIN;
	return done > 0 ? (ssize_t)done : -1;
}

int journaling_open(struct journaling *j, uv_loop_t *loop, bool drops)
{
	int rc;

	j->fd = -1;
	j->is_open = true;
	(void)uv_timer_init(loop, &j->patience); /* can't fail */
	j->patience.data = j;
	rc = console_open_journal(&j->console, loop, take_records, j);
	j->console.drops = drops;
	return rc == 0 && !records_open(&j->records) ? -ENOMEM : rc;
}

bool journaling_turn(struct journaling *j)
{
	if (!j->is_open)
		return false;
	if (j->waits && j->instead[0]->words.len <= INSTEAD_MAX &&
		j->instead[1]->words.len <= INSTEAD_MAX) {
		j->waits = false;
		console_writable(&j->console, true);
	}
	return console_flush(&j->console);
}

bool journaling_is_idle(const struct journaling *j)
{
	return !j->is_open || console_is_idle(&j->console);
}

bool journaling_leave(struct journaling *j)
{
	if (!j->is_open || j->fd < 0 || !console_is_waiting(&j->console))
		return false;
	j->left = true;
	go_away(j, "it takes nothing");
	console_writable(&j->console, true);
	return true;
}

void journaling_done(struct journaling *j)
{
	if (!j->is_open)
		return;
	console_done(&j->console);
	fd_closep(&j->fd);
	records_done(&j->records);
	text_done(&j->entry);
	j->is_open = false;
}
