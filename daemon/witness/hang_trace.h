/* hang_trace.h - the file of --hang-trace: all that the detector was told, and when, so that the
 * same can be told to another one; with a report of a hang that was judged wrong it is what to
 * send. Pure.
 *
 *   t=81000 begin 4 600000        workers were started: how many ranks, --on-hang-after in ms
 *   t=83000 moved                 a line of output, a step, a change in the store
 *   rank=3 at=88234 state=S ...   a look at a worker, see sample.h
 *   stopped 3 19                  a worker was stopped by that signal
 *   awaits 1 default_pg/0//key    it waits in the store for that key: until the next "judge"
 *   late 2                        its monitor asks the store no more: until the next "judge"
 *   ops ras 5120                  NCCL's RAS has answered; what it said before is forgotten
 *   ops 3 b 41 42 8000            what it says of a rank, see ras_counts.h
 *   t=88500 judge                 that was all that was seen
 *   t=88500 suspect outside 3 rank 3 is outside what ...    what it made of that, if it is new
 *   t=90500 cleared
 *
 * A name of a key may hold anything: control characters are shown as text.h does. */
#ifndef LAUNCHD_DAEMON_WITNESS_HANG_TRACE_H
#define LAUNCHD_DAEMON_WITNESS_HANG_TRACE_H

#include "daemon/witness/detector.h"

enum trace_kind {
	TRACE_BEGIN,
	TRACE_MOVED,
	TRACE_SAMPLE,
	TRACE_STOPPED,
	TRACE_AWAITS,
	TRACE_LATE,
	TRACE_RAS,
	TRACE_OPS,
	TRACE_JUDGE,
	TRACE_NEWS,
};

/* One line. */
struct trace_step {
	enum trace_kind kind;
	uint64_t at_ms; /* BEGIN, MOVED, JUDGE, NEWS */
	unsigned ranks; /* BEGIN */
	uint64_t after_ms;
	unsigned rank; /* STOPPED, AWAITS, LATE, OPS */
	int stop_signal;
	char key[STORE_KEY_SHOWN + 1];
	uint32_t ras_bytes;
	struct rank_ops ops;
	struct worker_sample sample;
	/* NEWS; of the finding's reason a reader gets nothing */
	enum detector_news news;
	struct hang_finding finding;
};

/* Adds its line. */
void trace_add(struct text *out, const struct trace_step *s);

/* Reads a line of len bytes, without its newline. -EINVAL: it is none of these. */
int trace_read(const char *line, size_t len, struct trace_step *ret);

/* Tells it to a detector, which has room for the ranks of all steps; what a finding says is nothing
 * to tell. Returns what is new then. */
enum detector_news trace_play(struct detector *d, const struct trace_step *s);

/* Adds "awaits" and "late" for all that do and are, as a judgement is to come. */
void trace_add_awaits(struct text *out, const struct detector *d);

/* Adds the news of a detector, if they are some. */
void trace_add_news(
	struct text *out, const struct detector *d, enum detector_news news, uint64_t at_ms);

#endif
