/* filer.h - a thread that puts large pieces into log files, while the output thread reads the next.
 *
 * It earns its place: without it, 14 of run_output's 27 cases beside `cat | tee` were slower by 13
 * to 38 % on two CPUs (workers that write 4 or 64 KiB at a time); those that write lines were not.
 *
 * A log file is in one thread's hands at a time: filer_write() gives it away, filer_wait() takes it
 * back. Pieces of one file are written in their order. The thread is started by the first piece:
 * most jobs never have a large one. */
#ifndef LAUNCHD_DAEMON_OUTPUT_FILER_H
#define LAUNCHD_DAEMON_OUTPUT_FILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/output/logfile.h"

enum {
	FILER_PIECE = 64 * 1024, /* room of a buffer: what a pipe holds */
	FILER_LARGE = 16 * 1024, /* less is written sooner than it is handed over */
	FILER_JOBS = 4,
};

struct filer_job {
	char *buffer; /* made when it is needed first */
	struct logfile *file;
	struct logged *ret;
	size_t len;
	int64_t wall_ns;
};

struct filer {
	uv_thread_t thread;
	uv_mutex_t lock;
	uv_cond_t moved; /* a job was posted, or is done: never do both threads wait */
	bool made, running, ending;
	struct filer_job jobs[FILER_JOBS]; /* a ring */
	unsigned first, count;             /* the first one is being done */
};

/* -ENOMEM: there is nothing to be stopped. */
int filer_init(struct filer *f);

/* The buffer of the next job, with room for FILER_PIECE bytes; waits for one. NULL: no memory. */
char *filer_buffer(struct filer *f);

/* Writes what lies in that buffer, later: *ret and the file are the filer's until filer_wait().
 * False: the thread can't be started, and nothing is done. */
bool filer_write(
	struct filer *f, struct logfile *file, size_t len, int64_t wall_ns, struct logged *ret);

/* Whether a file is in its hands. */
bool filer_has(struct filer *f, const struct logfile *file);

/* Waits until it is not. */
void filer_wait(struct filer *f, const struct logfile *file);

/* Ends the thread when its jobs are done, and frees. */
void filer_done(struct filer *f);

#endif
