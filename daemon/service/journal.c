/* journal.c - see journal.h */
#include "daemon/service/journal.h"

#include <unistd.h>

#include "common/fd.h"
#include "common/journal_entry.h"
#include "common/text.h"
#include "daemon/observe/bus.h"
#include "daemon/observe/say.h"
#include "daemon/os/journal_socket.h"
#include "daemon/output/front.h"
#include "daemon/plan/plan.h"
#include "daemon/service/journal_fields.h"

static struct journal_frame frame_of(struct journal *j)
{
	int node = atomic_load(&j->node);

	return (struct journal_frame){
		.job_name = j->plan->job_name,
		.run_id = j->plan->run_id,
		.node_known = node >= 0,
		.node = node >= 0 ? (unsigned)node : 0,
		.attempt = atomic_load(&j->attempt),
	};
}

/* One that takes nothing within a second, for all that is left to say, is given up. */
static bool send_one(struct journal *j, const struct record *r)
{
	enum { SECOND_MS = 1000 };

	if (j->given_up)
		return false;
	if (j->socket < 0)
		j->socket = journal_socket_open(j->path);
	j->given_up = j->socket < 0 ||
		journal_socket_send_within(j->socket, r->fields, r->fields_len, SECOND_MS) < 0;
	return !j->given_up;
}

/* From this thread, at the end, when the output thread is no more. */
static void send_all(struct journal *j, const struct text *records)
{
	struct records reader = { .part = 0 };
	size_t done = 0;
	bool is_whole = true;

	while (done < records->len && is_whole) {
		done += records_take(&reader, records->at + done, records->len - done, &is_whole);
		if (is_whole && !reader.pending.failed) {
			struct record r = records_now(&reader);

			if (!send_one(j, &r))
				say_raw(r.text, r.text_len);
			records_next(&reader);
		}
	}
	records_done(&reader);
}

/* Hands records over, and frees them. */
static void put(struct journal *j, struct text *records)
{
	if (records->len > 0 && !records->failed) {
		if (j->output)
			output_journal(j->output, records->at, records->len);
		else
			send_all(j, records);
	}
	text_done(records);
}

bool journal_say(void *owner, const char *lines, size_t len)
{
	struct journal *j = owner;
	const struct journal_frame frame = frame_of(j);
	struct text records = { 0 };
	bool failed;

	journal_add_lines(&records, &frame, lines, len, j->alone);
	failed = records.failed;
	put(j, &records);
	return j->alone && !failed;
}

static void on_event(void *owner, const struct event *e)
{
	struct journal *j = owner;
	const struct journal_frame frame = frame_of(j);
	struct text records = { 0 };

	journal_add_event(&records, &frame, e);
	put(j, &records);
}

static void on_job_started(void *owner, const struct event *e)
{
	struct journal *j = owner;

	atomic_store(&j->node, (int)e->job_started.plan->node_rank);
	on_event(owner, e);
}

static void on_attempt_started(void *owner, const struct event *e)
{
	struct journal *j = owner;

	atomic_store(&j->attempt, (int)e->attempt_started.attempt);
	on_event(owner, e);
}

static const struct observer journal = {
	.on = {
		[EVENT_JOB_STARTED] = on_job_started,
		[EVENT_ATTEMPT_STARTED] = on_attempt_started,
		[EVENT_WORKER_ENDED] = on_event,
		[EVENT_STOP] = on_event,
		[EVENT_NODE_LOST] = on_event,
		[EVENT_RESTART] = on_event,
		[EVENT_JOB_ENDED] = on_event,
	},
};

/* journald finds an entry's unit by its process, which may be gone by then, and remembers what it
 * has found. A line that comes by stderr brings the unit along; an empty one does so too, and is
 * nothing else (systemd's journald-stream.c). Without it `journalctl -u` may lack all that a
 * launcher says which ends at once. */
static void introduce(void)
{
	say_raw("\n", 1);
}

void journal_start(struct journal *j, const struct plan *plan, int node, struct bus *b)
{
	j->plan = plan;
	j->output = NULL;
	j->alone = plan->output.stderr_is_journal;
	atomic_init(&j->node, node);
	atomic_init(&j->attempt, -1);
	j->path = JOURNAL_SOCKET;
	j->socket = -1;
	j->given_up = false;
	if (plan->output.journal == JOURNAL_NONE)
		return;
	if (j->alone)
		introduce();
	bus_add(b, &journal, j);
	say_first_to(journal_say, j);
}

void journal_close(struct journal *j)
{
	say_first_to(NULL, NULL);
	fd_closep(&j->socket);
}
