/* evidence_reader.h - what the failed workers of an attempt say of themselves: their error files,
 * read when the last of them has ended, and what they wrote last. */
#ifndef LAUNCHD_DAEMON_WORKERS_EVIDENCE_READER_H
#define LAUNCHD_DAEMON_WORKERS_EVIDENCE_READER_H

#include <stddef.h>

#include "daemon/job/evidence.h"

struct arena;
struct attempt;
struct failure;
struct left_words;
struct outcome;
struct plan;

enum {
	EVIDENCE_READ = 64, /* error files that are looked at */
	EVIDENCE_MAX = 8,   /* that are kept: the culprit's is among them */
};

/* Reads the error files of those that failed, first those that nobody had asked to end, in order of
 * their deaths; sets their outcomes' `blames`, by what they wrote last where there is no error
 * file; and keeps what the likeliest culprits say. words: one for each outcome; NULL: nothing is
 * known. Returns how many are in ret. Everything is the arena's. why: the first file that could not
 * be read. */
size_t evidence_collect(const struct plan *plan, const struct attempt *attempt,
	struct outcome *outcomes, const struct left_words *words, size_t count, struct arena *arena,
	struct evidence ret[EVIDENCE_MAX], struct failure *why);

#endif
