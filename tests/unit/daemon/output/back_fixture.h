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

struct scene {
	struct plan plan;
	const char *env[2];
	char tmpdir[64];
	struct output *output;
	uv_loop_t loop;
	unsigned prepared, drained, status_over;
	int rc;
	char why[512];
	uv_mutex_t lock;
	struct text said, told; /* by the thread */
	int ends[WORKERS][3];   /* the workers' */
	int own[3];             /* this process's stdout and stderr */
	int reader;             /* of stdout, where that is a pipe */
	bool closed, mid_line;
};

/* Aborts: of the stage, not of what is tested. */
void must(bool holds);

/* stdout is a file "out" or a pipe, stderr a file "err". */
void scene_begin(struct scene *s, bool piped);

void scene_redirect(int fd, const char *path);
void scene_open(struct scene *s);
void scene_prepare(struct scene *s, unsigned attempt);

/* What pool and starter do for two workers. */
void scene_start(struct scene *s);

void scene_put(const struct scene *s, unsigned i, int fd, const char *text);

/* 10000 lines of 102 bytes by the first worker, each with its number behind the letter. */
void scene_put_many(const struct scene *s, char letter);

void scene_end_workers(struct scene *s);
void scene_drain(struct scene *s);

/* Puts this process's own back. */
void scene_restore(struct scene *s);

/* And ends the thread. */
void scene_close(struct scene *s, bool hurry);

void scene_done(struct scene *s);

/* What the thread says, as output_host has it. */
void scene_say(void *owner, bool warning, const char *text);

/* A file of the only run below that directory. */
void scene_find_file(const char *dir, const char *name, char *ret, size_t size);

void scene_assert_log(const char *dir, const char *name, const char *expected);

#endif
