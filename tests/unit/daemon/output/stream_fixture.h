/* stream_fixture.h - workers' pipes, a console and the loop between them: what the tests of streams
 * share. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_OUTPUT_STREAM_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_OUTPUT_STREAM_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "common/text.h"
#include "daemon/output/stream.h"
#include "daemon/output/tail.h"

enum { FIXTURE_STREAMS = 3, KB = 1024 };

/* When the console's reader reads. */
enum reader { READER_FAST, READER_SLOW, READER_LATE };

/* One worker's end of a pipe, and what it has to write. */
struct writer {
	struct stream stream;
	struct tail tail;
	struct fixture *fixture;
	int end; /* the worker's; -1: closed */
	const char *text;
	size_t len, sent;
	bool stays; /* does not close its end when all is written */
	bool got_epipe;
	unsigned ended, finished;
};

struct fixture {
	uv_loop_t loop;
	uv_check_t turn;
	uv_idle_t again;
	uv_timer_t tick, guard, bars;
	unsigned bars_awaited;
	struct console console;
	struct stream_host host;
	struct filer filer;
	struct busy busy;
	struct tally tally;
	struct filter filter;
	int console_end[2];
	bool reads;           /* the console's reader */
	size_t reads_at_most; /* a tick; 0: all there is */
	struct text got;      /* by it */
	struct text said;     /* by launchd */
	struct writer writers[FIXTURE_STREAMS];
	unsigned count;
	size_t most_kept;                   /* in any backlog, ever */
	unsigned max_open;                  /* old files that a stream holds, ever */
	void (*on_tick)(struct fixture *g); /* NULL: none */
};

/* A console that is read. */
void stream_fixture_make(struct fixture *g);

/* A stream from a worker that writes this and ends; style NULL: no file. To be set up further
 * before stream_fixture_begin(). */
struct writer *fixture_add(
	struct fixture *g, const char *text, size_t len, const struct logfile_style *style);

/* Gives it a prefix. */
void writer_prefix(struct writer *p, const char *prefix);

/* Lines with one of these texts, for the streams that have the fixture's filter, go to "filtered".
 */
void fixture_set_filter(struct fixture *g, const char **texts, size_t count);

void stream_fixture_begin(struct fixture *g);

/* Late: not before the test says so. */
void fixture_set_reader(struct fixture *g, enum reader reader);

/* Runs until that holds; aborts when it takes too long. */
void fixture_run(struct fixture *g, bool (*until)(const struct fixture *g));

/* All was read from the workers' pipes. */
bool fixture_all_ended(const struct fixture *g);

/* And all is where it goes to, and the console's reader has it. */
bool fixture_all_finished(const struct fixture *g);

/* Everything that can be written without a reader is. */
bool fixture_stands(const struct fixture *g);

bool fixture_ended_or_stands(const struct fixture *g);
bool fixture_half_sent(const struct fixture *g);

/* Runs for that many ticks. */
void fixture_ticks(struct fixture *g, unsigned n);

void stream_fixture_done(struct fixture *g);

/* Lines that begin with their stream's letter, shorter than that; the last one may have no end. */
struct text lines_of(unsigned stream, size_t size, size_t line, bool unended);

/* What was shown is the streams' lines, each whole and in its stream's order. */
void assert_shown(const struct fixture *g, const char *prefix);

/* That is what the writer's file and those before it hold, without stamps. */
void assert_files(const struct writer *p, const char *name, bool stamps);

#endif
