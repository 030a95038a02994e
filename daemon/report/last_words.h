/* last_words.h - what a failed worker wrote last, and where all that it wrote is. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_LAST_WORDS_H
#define LAUNCHD_DAEMON_REPORT_LAST_WORDS_H

struct record_text;

enum {
	LAST_LINES_BYTES = 8192, /* of more the end counts */
	LOG_BYTES = 512,         /* of `log`, where another node is told: a longer one is not */
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

#endif
