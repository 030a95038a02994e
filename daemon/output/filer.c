/* filer.c - see filer.h */
#include "daemon/output/filer.h"

#include <errno.h>
#include <stdlib.h>

static unsigned buffer_of(const struct filer *f, const char *at)
{
	unsigned i = 0;

	while (i + 1 < FILER_BUFFERS && f->buffers[i] != at)
		i++;
	return i;
}

static void thread_main(void *arg)
{
	struct filer *f = arg;

	uv_mutex_lock(&f->lock);
	for (;;) {
		struct filer_job *job = &f->jobs[f->first];
		struct logged w;

		while (f->count == 0 && !f->ending)
			uv_cond_wait(&f->posted, &f->lock);
		if (f->count == 0)
			break;
		uv_mutex_unlock(&f->lock);
		w = logfile_write(job->file, job->at, job->len, job->wall_ns);
		uv_mutex_lock(&f->lock);
		*job->ret = w;
		f->taken[buffer_of(f, job->at)] = false;
		job->file = NULL;
		f->first = (f->first + 1) % FILER_BUFFERS;
		f->count--;
		uv_cond_signal(&f->done);
	}
	uv_mutex_unlock(&f->lock);
}

int filer_init(struct filer *f)
{
	*f = (struct filer){ .made = false };
	if (uv_mutex_init(&f->lock) < 0)
		return -ENOMEM;
	if (uv_cond_init(&f->posted) < 0) {
		uv_mutex_destroy(&f->lock);
		return -ENOMEM;
	}
	if (uv_cond_init(&f->done) < 0) {
		uv_cond_destroy(&f->posted);
		uv_mutex_destroy(&f->lock);
		return -ENOMEM;
	}
	f->made = true;
	return 0;
}

/* The first one that is free: few are made where few are needed. */
static char *free_buffer(struct filer *f)
{
	for (unsigned i = 0; i < FILER_BUFFERS; i++) {
		if (f->taken[i])
			continue;
		if (!f->buffers[i])
			f->buffers[i] = malloc(FILER_PIECE);
		if (f->buffers[i])
			return f->buffers[i];
	}
	return NULL;
}

char *filer_buffer(struct filer *f)
{
	char *at;

	uv_mutex_lock(&f->lock);
	while (!(at = free_buffer(f)) && f->count > 0)
		uv_cond_wait(&f->done, &f->lock);
	uv_mutex_unlock(&f->lock);
	return at;
}

static bool start(struct filer *f)
{
	const uv_thread_options_t options = { UV_THREAD_HAS_STACK_SIZE, 128 * 1024 };

	if (!f->running)
		f->running = uv_thread_create_ex(&f->thread, &options, thread_main, f) == 0;
	return f->running;
}

bool filer_write(struct filer *f, struct logfile *file, const char *at, size_t len, int64_t wall_ns,
	struct logged *ret)
{
	if (!start(f))
		return false;
	uv_mutex_lock(&f->lock);
	f->jobs[(f->first + f->count) % FILER_BUFFERS] =
		(struct filer_job){ file, ret, at, len, wall_ns };
	f->taken[buffer_of(f, at)] = true; /* so there is room for a job */
	f->count++;
	uv_cond_signal(&f->posted);
	uv_mutex_unlock(&f->lock);
	return true;
}

static bool is_in_job(const struct filer *f, const struct logfile *file)
{
	for (unsigned i = 0; i < f->count; i++)
		if (f->jobs[(f->first + i) % FILER_BUFFERS].file == file)
			return true;
	return false;
}

bool filer_has(struct filer *f, const struct logfile *file)
{
	bool has;

	uv_mutex_lock(&f->lock);
	has = is_in_job(f, file);
	uv_mutex_unlock(&f->lock);
	return has;
}

void filer_wait(struct filer *f, const struct logfile *file)
{
	uv_mutex_lock(&f->lock);
	while (is_in_job(f, file))
		uv_cond_wait(&f->done, &f->lock);
	uv_mutex_unlock(&f->lock);
}

void filer_done(struct filer *f)
{
	if (!f->made)
		return;
	if (f->running) {
		uv_mutex_lock(&f->lock);
		f->ending = true;
		uv_cond_signal(&f->posted);
		uv_mutex_unlock(&f->lock);
		(void)uv_thread_join(&f->thread);
	}
	for (unsigned i = 0; i < FILER_BUFFERS; i++)
		free(f->buffers[i]);
	uv_cond_destroy(&f->done);
	uv_cond_destroy(&f->posted);
	uv_mutex_destroy(&f->lock);
	*f = (struct filer){ .made = false };
}
