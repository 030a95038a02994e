/* hang_recorder.h - --hang-trace on node rank 0: what the detector is told becomes lines of a file,
 * see witness/hang_trace.h. The output thread writes them. Without that setting nothing happens
 * here. */
#ifndef LAUNCHD_DAEMON_RUN_HANG_RECORDER_H
#define LAUNCHD_DAEMON_RUN_HANG_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/text.h"
#include "daemon/witness/hang_trace.h"

struct output;

/* Begins as { 0 }. */
struct hang_recorder {
	/* the owner's */
	bool on;
	struct output *output;

	/* private */
	struct text lines; /* since the last flush */
	size_t bytes;      /* of the file, so far */
	uint64_t moved_ms; /* of the last one */
	bool full;
};

/* What moves twice in one millisecond has one line. Each second that moves has one, as what is
 * learned of a job is its longest time without. */
void hang_record(struct hang_recorder *r, const struct trace_step *s);

/* A judgement is to come; it was made, and this is new. */
void hang_record_judgement(struct hang_recorder *r, const struct detector *d, uint64_t at_ms);
void hang_record_news(
	struct hang_recorder *r, const struct detector *d, enum detector_news news, uint64_t at_ms);

/* Hands it on; once a second, and at the end. */
void hang_recorder_flush(struct hang_recorder *r);

#endif
