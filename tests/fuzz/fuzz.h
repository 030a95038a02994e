/* fuzz.h - what the fuzz targets share. A target is one function, called with any bytes; it aborts
 * when a promise of the code does not hold. libFuzzer calls it, and so does replay.c. */
#ifndef LAUNCHD_TESTS_FUZZ_FUZZ_H
#define LAUNCHD_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "common/vec.h"
#include "config/settings.h"

/* Inputs that were read, and not refused: a target counts them whose corpus is to stay readable. */
extern unsigned fuzz_taken;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Aborts with the sentence that does not hold. */
#define PROMISE(holds) fuzz_promise((holds) ? NULL : #holds, __FILE__, __LINE__)
void fuzz_promise(const char *broken, const char *file, int line);

/* Words of the input: divided by NULs, or, where it has none (the hand-written seeds), by newlines.
 * Each lies in memory of its own size, so that a byte too far is seen. */
struct words {
	char **at; /* ends with NULL */
	size_t count;
};

struct words words_make(const uint8_t *bytes, size_t len);
void words_done(struct words *w);

/* One reading of settings. */
struct reading {
	struct arena arena;
	struct settings s;
	struct notes notes;
	struct failure why;
	int rc;
};

void reading_init(struct reading *r, bool as_torchrun);
void reading_done(struct reading *r);

/* What holds for any reading: a refusal is -EINVAL with a sentence, values are within their bounds
 * and know their source. */
void reading_check(const struct reading *r);

/* Two readings of the same input say the same. */
void reading_compare(const struct reading *a, const struct reading *b);

#endif
