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

enum { STAGE_STREAMS = 3, KB = 1024 };

/* When the console's reader reads. */
enum reader { READER_FAST, READER_SLOW, READER_LATE };

/* One worker's end of a pipe, and what it has to write. */
struct player {
	struct stream stream;
	struct tail tail;
	struct stage *stage;
	int end; /* the worker's; -1: closed */
	const char *text;
	size_t len, sent;
	bool stays; /* does not close its end when all is written */
	bool got_epipe;
	unsigned ended, finished;
};

struct stage {
	uv_loop_t loop;
	uv_check_t turn;
	uv_idle_t again;
	uv_timer_t tick, guard;
	struct console console;
	struct stream_host host;
	struct filer filer;
	struct busy busy;
	struct filter filter;
	int console_end[2];
	bool reads;           /* the console's reader */
	size_t reads_at_most; /* a tick; 0: all there is */
	struct text got;      /* by it */
	struct text said;     /* by launchd */
	struct player players[STAGE_STREAMS];
	unsigned count;
	size_t most_kept;                 /* in any backlog, ever */
	unsigned max_open;                /* old files that a stream holds, ever */
	void (*on_tick)(struct stage *g); /* NULL: none */
};

/* A console that is read. */
void stage_make(struct stage *g);

/* A stream from a worker that writes this and ends; style NULL: no file. To be set up further
 * before stage_begin(). */
struct player *stage_add(
	struct stage *g, const char *text, size_t len, const struct logfile_style *style);

/* Gives it a prefix. */
void player_prefix(struct player *p, const char *prefix);

/* Lines with one of these texts, for the streams that have the stage's filter, go to "filtered". */
void stage_set_filter(struct stage *g, const char **texts, size_t count);

void stage_begin(struct stage *g);

/* Late: not before the test says so. */
void stage_set_reader(struct stage *g, enum reader reader);

/* Runs until that holds; aborts when it takes too long. */
void stage_run(struct stage *g, bool (*until)(const struct stage *g));

/* All was read from the workers' pipes. */
bool stage_all_ended(const struct stage *g);

/* And all is where it goes to, and the console's reader has it. */
bool stage_all_finished(const struct stage *g);

/* Everything that can be written without a reader is. */
bool stage_stands(const struct stage *g);

bool stage_ended_or_stands(const struct stage *g);
bool stage_half_sent(const struct stage *g);

/* Runs for that many ticks. */
void stage_ticks(struct stage *g, unsigned n);

void stage_done(struct stage *g);

/* Lines that begin with their stream's letter, shorter than that; the last one may have no end. */
struct text lines_of(unsigned stream, size_t size, size_t line, bool unended);

/* What was shown is the streams' lines, each whole and in its stream's order. */
void assert_shown(const struct stage *g, const char *prefix);

/* That is what the player's file and those before it hold, without stamps. */
void assert_files(const struct player *p, const char *name, bool stamps);

#endif
