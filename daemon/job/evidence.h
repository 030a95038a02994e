/* evidence.h - what a failed worker says of itself: the error file that torch's @record writes, the
 * lines that it wrote last, and where all that it wrote is. Pure. */
#ifndef LAUNCHD_DAEMON_JOB_EVIDENCE_H
#define LAUNCHD_DAEMON_JOB_EVIDENCE_H

#include <stdint.h>

struct record_text;

enum {
	LAST_LINES_BYTES = 8192, /* of more the end counts */
	LOG_BYTES = 512,         /* of `log`, where another node is told: a longer one is not */
};

/* An error file's content. Strings may hold any byte but NUL. */
struct error_record {
	const char *message;   /* "ValueError: the teapot is empty"; NULL: none */
	const char *traceback; /* NULL: none */
	int64_t timestamp;     /* when it was written, in s since 1970; 0: not known */
	const char *raw;       /* the start of the file, where it can't be understood; else NULL */
	const char
		*raw_why; /* beside raw, why: "truncated, or not JSON" follows "its error file" */
};

/* Any bytes but NUL: they are the worker's. */
struct last_words {
	const char *lines; /* '\n' between them; NULL: not known */
	const char *log;   /* its log files, as a text for the user; NULL: there are none */
};

/* The same with its error file, where whoever reads log files has read that, too. */
struct left_words {
	struct last_words words;
	const struct record_text *error; /* NULL: not read */
};

/* All that one worker says. */
struct evidence {
	unsigned rank;
	const struct error_record *record; /* NULL: nothing */
	const char *command;               /* as a shell would have it */
	struct last_words words;
};

#endif
