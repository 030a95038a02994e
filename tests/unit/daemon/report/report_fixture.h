/* report_fixture.h - what the tests of the report share: short words for stories, and their report.
 */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_REPORT_REPORT_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_REPORT_REPORT_FIXTURE_H

#include "daemon/job/evidence.h"
#include "daemon/report/report.h"

struct error_record;
struct result;
struct text;

#define S(seconds)     ((uint64_t)((seconds)*1e9))
#define FAILURE        .cause = { .kind = CAUSE_FAILURE }
#define HEAD(who, how) "launchd: error: root cause: rank " who " on host (node 2): " how "\n"
#define COMMAND        "launchd: error: command: ./train 'a b' --lr=1\n"

/* One worker's story; what a row does not say is 0. */
#define WORKER(n, ...) \
	{ \
		.rank = 4 + (n), .local_rank = (n), .pid = 10 + (n), __VA_ARGS__ \
	}
#define UNSTARTED(n) \
	{ \
		.rank = 4 + (n), .local_rank = (n) \
	}
#define UNSTARTABLE(n, error) \
	{ \
		.rank = 4 + (n), .local_rank = (n), .end = { ENDED_UNSTARTED, (error), false } \
	}
#define BY_EXIT(code)       .end = { ENDED_EXIT, (code), false }
#define BY_SIGNAL(signal)   .end = { ENDED_SIGNAL, (signal), false }
#define RAN(from, to)       .started_ns = S(from), .ended_ns = S(to)
#define STOPPED(signal, at) .asked = ASKED_TO_STOP, .asked_signal = (signal), .asked_ns = S(at)
#define KILLED(signal, at)  .asked = ASKED_KILLED, .asked_signal = (signal), .asked_ns = S(at)

/* "a b", "--lr=1" */
extern const char *const arguments[];

/* The report of a result, of which start_count workers from local rank start_first are wanted; to
 * be freed. Its program is ./train, on node 2, which is called host, by uid 500. */
char *report_of(const struct result *r, const struct error_record *record, const char *const *args,
	unsigned start_first, unsigned start_count);

/* What `make` makes of it; to be freed. What is not set is as above, but on node 0. */
char *report_made(struct report_input in, void (*make)(const struct report_input *, struct text *));

/* Local time is one hour and a half ahead of UTC from here on, wherever the test runs. */
void set_time_zone(void);

#endif
