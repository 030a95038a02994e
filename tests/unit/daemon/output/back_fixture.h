/* back_fixture.h - an output thread, and two workers that write: what its tests share. Its consoles
 * are this process's own stdout and stderr, which are put back before anything is asserted. */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_OUTPUT_BACK_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_OUTPUT_BACK_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "common/text.h"
#include "daemon/output/front.h"

enum { WORKERS = 2 };

struct fixture {
	struct plan plan;
	const char *env[2];
	char tmpdir[64];
	struct output *output;
	uv_loop_t loop;
	unsigned prepared, drained, status_over;
	int rc;
	char why[768];
	uv_mutex_t lock;
	struct text said, told; /* by the thread */
	int ends[WORKERS][3];   /* the workers' */
	int own[3];             /* this process's stdout and stderr */
	int reader;             /* of stdout, where that is a pipe */
	bool closed, mid_line;
};

/* Aborts: the test's own set-up has failed, not what is tested. */
void must(bool holds);

/* stdout is a file "out" or a pipe, stderr a file "err". */
void back_fixture_begin(struct fixture *s, bool piped);

void fixture_redirect(int fd, const char *path);
void back_fixture_open(struct fixture *s);
void fixture_prepare(struct fixture *s, unsigned attempt);

/* What pool and starter do for two workers. */
void fixture_start(struct fixture *s);

void fixture_put(const struct fixture *s, unsigned i, int fd, const char *text);

/* 10000 lines of 102 bytes by the first worker, each with its number behind the letter. */
void fixture_put_many(const struct fixture *s, char letter);

void fixture_end_workers(struct fixture *s);
void fixture_drain(struct fixture *s);

/* Puts this process's own back. */
void fixture_restore(struct fixture *s);

/* And ends the thread. */
void fixture_close(struct fixture *s, bool hurry);

void back_fixture_done(struct fixture *s);

/* What the thread says, as output_host has it. */
void fixture_say(void *owner, bool warning, const char *text);

/* A file of the only run below that directory. */
void fixture_find_file(const char *dir, const char *name, char *ret, size_t size);

void fixture_assert_log(const char *dir, const char *name, const char *expected);

#endif
