/* filer.h - a thread that puts large pieces into log files, while the output thread reads the next.
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
	FILER_BUFFERS = 4,
};

struct filer_job {
	struct logfile *file;
	struct logged *ret;
	const char *at;
	size_t len;
	int64_t wall_ns;
};

struct filer {
	uv_thread_t thread;
	uv_mutex_t lock;
	uv_cond_t posted, done;
	bool made, running, ending;
	char *buffers[FILER_BUFFERS]; /* made when they are needed */
	bool taken[FILER_BUFFERS];    /* by a job */
	struct filer_job jobs[FILER_BUFFERS];
	unsigned first, count; /* of the jobs, in a ring; the first one is being done */
};

/* -ENOMEM: there is nothing to be stopped. */
int filer_init(struct filer *f);

/* A buffer that no job has, with room for FILER_PIECE bytes; waits for one. NULL: no memory. */
char *filer_buffer(struct filer *f);

/* Writes a piece that lies in such a buffer, later: *ret and the file are the filer's until
 * filer_wait(). False: there is no thread to be had, and nothing is done. */
bool filer_write(struct filer *f, struct logfile *file, const char *at, size_t len, int64_t wall_ns,
	struct logged *ret);

/* Whether a file is in its hands. */
bool filer_has(struct filer *f, const struct logfile *file);

/* Waits until it is. */
void filer_wait(struct filer *f, const struct logfile *file);

/* Ends the thread when its jobs are done, and frees. */
void filer_done(struct filer *f);

#endif
