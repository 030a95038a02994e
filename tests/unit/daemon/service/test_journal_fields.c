/* test_journal_fields.c - what of launchd's own words and of events is in the journal, field by
 * field. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <string.h>

#include "common/journal_entry.h"
#include "daemon/job/job_end.h"
#include "daemon/observe/event.h"
#include "daemon/plan/plan.h"
#include "daemon/service/journal_fields.h"
#include "daemon/service/journal_ids.h"

static const struct journal_frame frame = {
	.job_name = "bert", .run_id = "r7", .node_known = true, .node = 1, .attempt = 2
};

#define FRAME "SYSLOG_IDENTIFIER=launchd\nJOB=bert\nRUN_ID=r7\nNODE_RANK=1\nATTEMPT=2\n"

/* All entries one after another, each with what stderr gets behind it. */
static void read_all(const struct text *records, struct text *out)
{
	struct records r = { .part = 0 };
	size_t done = 0;

	while (done < records->len) {
		bool is_whole;

		done += records_take(&r, records->at + done, records->len - done, &is_whole);
		assert_true(is_whole);
		text_add_bytes(out, records_now(&r).fields, records_now(&r).fields_len);
		text_add(out, ">");
		text_add_bytes(out, records_now(&r).text, records_now(&r).text_len);
		text_add(out, "\n");
		records_next(&r);
	}
	records_done(&r);
}

static const struct line_row {
	const char *says, *lines;
	bool to_stderr;
	const char *entries;
} lines[] = {
	{ "a note", "launchd: note: hello\n", true,
		"PRIORITY=6\n" FRAME "MESSAGE=hello\n>launchd: note: hello\n\n" },
	{ "a warning that stderr has anyhow", "launchd: warning: well\n", false,
		"PRIORITY=4\n" FRAME "MESSAGE=well\n>\n" },
	{ "a report, whose lines have the level of those before",
		"launchd: error: root cause\nlast line:\n    bang\nlaunchd: note: rank 1\n", false,
		"PRIORITY=3\n" FRAME "MESSAGE=root cause\n>\n"
		"PRIORITY=3\n" FRAME "MESSAGE=last line:\n>\n"
		"PRIORITY=3\n" FRAME "MESSAGE=    bang\n>\n"
		"PRIORITY=6\n" FRAME "MESSAGE=rank 1\n>\n" },
	{ "JSON stays whole", "{\"v\":1,\"level\":\"error\",\"text\":\"x\"}\n", false,
		"PRIORITY=3\n" FRAME "MESSAGE={\"v\":1,\"level\":\"error\",\"text\":\"x\"}\n>\n" },
};

static void test_lines(void **state)
{
	const struct line_row *row = *state;
	struct text records = { 0 }, entries = { 0 };

	journal_add_lines(&records, &frame, row->lines, strlen(row->lines), row->to_stderr);
	read_all(&records, &entries);
	assert_string_equal(text_string(&entries), row->entries);
	text_done(&records);
	text_done(&entries);
}

static void test_before_all(void **state)
{
	static const struct journal_frame early = { .attempt = -1 };
	struct text records = { 0 }, entries = { 0 };

	(void)state;
	journal_add_lines(&records, &early, "x\n", 2, false);
	read_all(&records, &entries);
	assert_string_equal(
		text_string(&entries), "PRIORITY=6\nSYSLOG_IDENTIFIER=launchd\nMESSAGE=x\n>\n");
	text_done(&records);
	text_done(&entries);
}

static const struct plan plan = {
	.job_name = "bert", .node_rank = 1, .nnodes = 2, .start_count = 8, .world_size = 16
};
static const struct outcome failed = {
	.rank = 9, .local_rank = 1, .pid = 44, .end = { ENDED_EXIT, 3, false }
};
static const struct outcome shot = {
	.rank = 9, .local_rank = 1, .pid = 44, .end = { ENDED_SIGNAL, 9, false }, .oom = OOM_YES
};
static const struct outcome loaded = {
	.rank = 9, .local_rank = 1, .pid = 44, .end = { ENDED_EXIT, 3, false }, .oom = OOM_CHILD
};
static const struct outcome asked = {
	.rank = 9, .end = { ENDED_SIGNAL, 15, false }, .asked = ASKED_TO_STOP
};
static const struct outcome good = { .rank = 9, .end = { ENDED_EXIT, 0, false } };
static const struct cause stop = { .kind = CAUSE_SIGNAL, .signal = 15 };
static const struct job_end again = { .verdict = {
					      .cause = { .kind = CAUSE_FAILURE,
						      .culprit = { .rank = 9,
							      .local_rank = 1,
							      .pid = 44,
							      .end = { ENDED_EXIT, 3, false } } },
					      .text = "root cause: rank 9" } };
static const struct run_end stopped = {
	.job.verdict = { .cause = { .kind = CAUSE_SIGNAL, .signal = 15 }, .text = "got SIGTERM" }
};
static const struct run_end lost = {
	.job.verdict = { .cause = { .kind = CAUSE_NODE_LOST, .node = 3 }, .text = "node 3" }
};
static const struct run_end bad = {
	.job.verdict = { .cause = { .kind = CAUSE_BAD_NODE, .node = 3, .exclude = "gpu03,gpu05" },
		.text = "node 3" }
};
static const struct run_end well = { .job.verdict = { .well = true } };

#define WORKER "RANK=9\nLOCAL_RANK=1\nWORKER_PID=44\n"

static const struct event_row {
	const char *says;
	struct event e;
	int priority;
	const char *message; /* NULL: it is not there */
	enum journal_id id;
	const char *more;
} events[] = {
	{ "the job has started", { .kind = EVENT_JOB_STARTED, .job_started.plan = &plan }, 6,
		"job bert: 8 of 16 workers run here (node 1 of 2)", JOURNAL_ID_JOB_STARTED, "" },
	{ "an attempt", { .kind = EVENT_ATTEMPT_STARTED, .attempt_started = { 2, "n0", 29500 } }, 6,
		"attempt 2 starts, master n0 port 29500", JOURNAL_ID_ATTEMPT_STARTED, "" },
	{ "a worker whose child the kernel has ended",
		{ .kind = EVENT_WORKER_ENDED, .worker = &loaded }, 3,
		"rank 9 (local rank 1, pid 44): exit code 3, and a process that it had started ran out "
		"of memory",
		JOURNAL_ID_WORKER_FAILED, WORKER "EXIT_CODE=3\n" },
	{ "a worker that fails", { .kind = EVENT_WORKER_ENDED, .worker = &failed }, 3,
		"rank 9 (local rank 1, pid 44): exit code 3", JOURNAL_ID_WORKER_FAILED,
		WORKER "EXIT_CODE=3\n" },
	{ "one without memory", { .kind = EVENT_WORKER_ENDED, .worker = &shot }, 3,
		"rank 9 (local rank 1, pid 44): killed by SIGKILL, out of memory",
		JOURNAL_ID_WORKER_FAILED, WORKER "SIGNAL=SIGKILL\n" },
	{ "one that was asked to end", { .kind = EVENT_WORKER_ENDED, .worker = &asked }, 0, NULL, 0,
		NULL },
	{ "one that ends well", { .kind = EVENT_WORKER_ENDED, .worker = &good }, 0, NULL, 0, NULL },
	{ "one that starts", { .kind = EVENT_WORKER_STARTED, .worker = &good }, 0, NULL, 0, NULL },
	{ "a stop", { .kind = EVENT_STOP, .stop = { &stop, EVENT_STOP_STOP, 15, 2500 } }, 5,
		"stopping this node's workers by SIGTERM, and by SIGKILL after 2.5 s",
		JOURNAL_ID_STOP, "SIGNAL=SIGTERM\n" },
	{ "a stop of nobody", { .kind = EVENT_STOP, .stop = { &stop, EVENT_STOP_KILL, 0, 0 } }, 5,
		"stopping what this node's workers left behind", JOURNAL_ID_STOP, "" },
	{ "a stop without a grace",
		{ .kind = EVENT_STOP, .stop = { &stop, EVENT_STOP_KILL, SIGKILL, 0 } }, 5,
		"stopping this node's workers by SIGKILL", JOURNAL_ID_STOP, "SIGNAL=SIGKILL\n" },
	{ "a lost node", { .kind = EVENT_NODE_LOST, .other = { 3, "n3", "it is silent" } }, 3,
		"node 3 (n3) is lost: it is silent", JOURNAL_ID_NODE_LOST, "LOST_NODE_RANK=3\n" },
	{ "another attempt follows", { .kind = EVENT_RESTART, .restart = { 3, 0, &again } }, 4,
		"restarting all workers as attempt 3: root cause: rank 9", JOURNAL_ID_RESTART,
		WORKER "EXIT_CODE=3\nNEXT_ATTEMPT=3\n" },
	{ "it was stopped", { .kind = EVENT_JOB_ENDED, .job_ended = { 143, &stopped } }, 5,
		"the job has ended with exit code 143: got SIGTERM", JOURNAL_ID_BY_REQUEST,
		"JOB_EXIT_CODE=143\nSIGNAL=SIGTERM\n" },
	{ "nodes are bad", { .kind = EVENT_JOB_ENDED, .job_ended = { 122, &bad } }, 3,
		"the job has ended with exit code 122: node 3", JOURNAL_ID_BY_BAD_NODE,
		"JOB_EXIT_CODE=122\nEXCLUDE_HOSTS=gpu03,gpu05\n" },
	{ "it lost a node", { .kind = EVENT_JOB_ENDED, .job_ended = { 125, &lost } }, 3,
		"the job has ended with exit code 125: node 3", JOURNAL_ID_BY_NODE_LOST,
		"JOB_EXIT_CODE=125\nLOST_NODE_RANK=3\n" },
	{ "all is well", { .kind = EVENT_JOB_ENDED, .job_ended = { 0, &well } }, 6,
		"the job has ended with exit code 0", JOURNAL_ID_ENDED_WELL, "JOB_EXIT_CODE=0\n" },
	{ "no job was run", { .kind = EVENT_JOB_ENDED, .job_ended = { 1, NULL } }, 3,
		"no job was run here: launchd ends with exit code 1", JOURNAL_ID_NOT_RUN,
		"JOB_EXIT_CODE=1\n" },
};

static void test_event(void **state)
{
	const struct event_row *row = *state;
	struct text records = { 0 }, entries = { 0 }, expected = { 0 };

	journal_add_event(&records, &frame, &row->e);
	read_all(&records, &entries);
	if (row->message)
		text_printf(&expected,
			"PRIORITY=%d\n" FRAME "MESSAGE=%s\nMESSAGE_ID=%s\nEVENT=%s\n%s>\n",
			row->priority, row->message, journal_id_number(row->id),
			journal_id_word(row->id), row->more);
	assert_string_equal(text_string(&entries), text_string(&expected));
	text_done(&records);
	text_done(&entries);
	text_done(&expected);
}

TESTS(journal_fields)
{
	struct suite s = { .count = 0 };

	SUITE_ROWS(&s, test_lines, lines);
	suite_add(&s, "what is not known yet is no field", test_before_all, NULL, NULL);
	SUITE_ROWS(&s, test_event, events);
	return suite_run(&s);
}
