/* filer.c - see filer.h */
#include "daemon/output/filer.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/os/lock.h"

static void thread_main(void *arg)
{
	struct filer *f = arg;
	autolock held = lock_take(&f->lock);

	while (f->count > 0 || !f->ending) {
		struct filer_job *job = &f->jobs[f->first];
		struct logged w;

		if (f->count == 0) {
			uv_cond_wait(&f->moved, &f->lock);
			continue;
		}
		uv_mutex_unlock(&f->lock);
		w = logfile_write(job->file, job->buffer, job->len, job->wall_ns);
		uv_mutex_lock(&f->lock);
		*job->ret = w;
		f->count--;
		f->first = (f->first + 1) % FILER_JOBS;
		uv_cond_signal(&f->moved);
	}
}

int filer_init(struct filer *f)
{
	*f = (struct filer){ .made = false };
	if (uv_mutex_init(&f->lock) < 0)
		return -ENOMEM;
	f->made = uv_cond_init(&f->moved) == 0;
	if (!f->made)
		uv_mutex_destroy(&f->lock);
	return f->made ? 0 : -ENOMEM;
}

/* The job behind those that were posted, whichever of these have been done meanwhile. */
static struct filer_job *next_job(struct filer *f)
{
	return &f->jobs[(f->first + f->count) % FILER_JOBS];
}

/* NULL: all are posted, or there is no memory. */
static char *next_buffer(struct filer *f)
{
	struct filer_job *job;

	if (f->count == FILER_JOBS)
		return NULL;
	if (f->count == 0)
		f->first = 0; /* few buffers are made where few are needed */
	job = next_job(f);
	if (!job->buffer)
		job->buffer = malloc(FILER_PIECE);
	return job->buffer;
}

char *filer_buffer(struct filer *f)
{
	autolock held = lock_take(&f->lock);
	char *at;

	while (!(at = next_buffer(f)) && f->count > 0)
		uv_cond_wait(&f->moved, &f->lock);
	return at;
}

static bool start(struct filer *f)
{
	const uv_thread_options_t options = { UV_THREAD_HAS_STACK_SIZE, 128 * 1024 };

	if (!f->running)
		f->running = uv_thread_create_ex(&f->thread, &options, thread_main, f) == 0;
	return f->running;
}

bool filer_write(
	struct filer *f, struct logfile *file, size_t len, int64_t wall_ns, struct logged *ret)
{
	autolock held = lock_take(&f->lock);
	struct filer_job *job = next_job(f);

	if (!start(f))
		return false;
	*job = (struct filer_job){ job->buffer, file, ret, len, wall_ns };
	f->count++;
	uv_cond_signal(&f->moved);
	return true;
}

static bool is_in_job(const struct filer *f, const struct logfile *file)
{
	for (unsigned i = 0; i < f->count; i++)
		if (f->jobs[(f->first + i) % FILER_JOBS].file == file)
			return true;
	return false;
}

bool filer_has(struct filer *f, const struct logfile *file)
{
	autolock held = lock_take(&f->lock);

	return is_in_job(f, file);
}

void filer_wait(struct filer *f, const struct logfile *file)
{
	autolock held = lock_take(&f->lock);

	while (is_in_job(f, file))
		uv_cond_wait(&f->moved, &f->lock);
}

void filer_done(struct filer *f)
{
	if (!f->made)
		return;
	if (f->running) {
		uv_mutex_lock(&f->lock);
		f->ending = true;
		uv_cond_signal(&f->moved);
		uv_mutex_unlock(&f->lock);
		(void)uv_thread_join(&f->thread);
	}
	for (unsigned i = 0; i < FILER_JOBS; i++)
		free(f->jobs[i].buffer);
	uv_cond_destroy(&f->moved);
	uv_mutex_destroy(&f->lock);
	*f = (struct filer){ .made = false };
}
