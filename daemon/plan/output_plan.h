/* output_plan.h - what becomes of the workers' output, decided before any of it is written. Pure.
 */
#ifndef LAUNCHD_DAEMON_PLAN_OUTPUT_PLAN_H
#define LAUNCHD_DAEMON_PLAN_OUTPUT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/vec.h"

enum stream_way {
	STREAM_INHERIT, /* the launcher's own descriptor: a terminal */
	STREAM_DIRECT,  /* the worker has its log file itself */
	STREAM_PIPE,    /* the launcher reads it */
};

/* A stream is a worker's stdout or stderr. */
struct stream_plan {
	enum stream_way way;
	bool file, console; /* where it goes, the console may be the journal; a pipe that goes to
			       neither has its last lines kept */
	const char *prefix; /* template of what stands before a line on the console; NULL: none */
	bool filtered; /* lines with one of the filters' texts also go to a file of their own */
};

/* What goes to systemd's journal, with fields. */
enum journal_use {
	JOURNAL_NONE,
	JOURNAL_MESSAGES, /* launchd's own */
	JOURNAL_ALL,      /* and what of the workers' lines would be on the console */
};

struct output_plan {
	const char *log_dir; /* as given; NULL: not given */
	bool tree; /* there is a tree of log files; log_dir NULL: in a temporary directory that
		      stays */
	const char *redirects, *tee; /* for streams_of() */
	const char *ranks_filter;    /* for ranks_contain(): who is on the console; NULL: all */
	bool log_all;                /* a file for every stream */
	const char *prefix;          /* explicit template; NULL: none */
	struct vec out_filters, err_filters;
	uint64_t max_size_bytes; /* of a log file; 0: no limit */
	unsigned keep, tail_lines;
	bool timestamps, drop, merge, json;
	bool joined;      /* what started launchd shows all nodes' consoles as one */
	bool reopen;      /* a signal opens log files anew, so no worker may have one itself */
	bool terminal[3]; /* launchd's own stream is a terminal of ours: isatty, and no launcher */
	bool foreground;  /* stderr is such a terminal, and launchd its foreground job */
	enum journal_use journal;
	bool stderr_is_journal;  /* launchd's own: a message needn't go both ways */
	const char *events_path; /* NULL: none */
	int events_fd;           /* -1: none */
};

/* Whether -r or -t names the stream. A tee'd stream is a redirected one that is shown as well. */
bool output_is_redirected(const struct output_plan *o, unsigned local_rank, int fd);

#endif
