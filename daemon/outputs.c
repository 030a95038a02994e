/* outputs.c - see outputs.h */
#include "daemon/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/vec.h"
#include "config/settings.h"
#include "daemon/facts/outfile.h"
#include "daemon/os/rehearsal.h"
#include "daemon/output/log_tree.h"
#include "daemon/plan/plan.h"

struct outputs {
	const struct settings *s;
	const struct plan *p;
};

static int outputs_look(const struct settings *s, const struct plan *p, struct failure *why)
{
	const struct output_plan *o = &p->output;
	int rc = 0;

	if (p->report_path)
		rc = outfile_check(p->report_path, settings_where(s, SET_REPORT), why);
	if (failure_go_on(rc, why) && p->metrics_path)
		rc = outfile_check(p->metrics_path, settings_where(s, SET_METRICS_FILE), why);
	if (failure_go_on(rc, why) && o->tree && o->log_dir)
		rc = outdir_check(o->log_dir, settings_where(s, SET_LOG_DIR), why);
	if (failure_go_on(rc, why) && p->progress.by == PROGRESS_FILE)
		rc = outfile_directory_check(
			p->progress.what, settings_where(s, SET_PROGRESS), why);
	if (failure_go_on(rc, why) && p->hang_trace_path && p->node_rank == 0)
		rc = outfile_check(p->hang_trace_path, settings_where(s, SET_HANG_TRACE), why);
	if (failure_go_on(rc, why) && o->events_path)
		rc = outfile_check(o->events_path, settings_where(s, SET_EVENTS), why);
	if (failure_go_on(rc, why) && o->events_fd >= 0)
		rc = outfd_check(o->events_fd, settings_where(s, SET_EVENTS), why);
	return failure_go_on(rc, why) ? 0 : why->code;
}

static void outputs_rehearse_look(const void *how)
{
	const struct outputs *o = how;
	struct failure ignored = { 0 };

	(void)outputs_look(o->s, o->p, &ignored);
}

int outputs_check(const struct settings *s, const struct plan *p, struct failure *why)
{
	const struct outputs o = { s, p };
	bool far = path_is_far(p->report_path) || path_is_far(p->metrics_path) ||
		path_is_far(p->hang_trace_path) || path_is_far(p->output.events_path) ||
		(p->output.tree && path_is_far(p->output.log_dir)) ||
		(p->progress.by == PROGRESS_FILE && path_is_far(p->progress.what));

	if (far && rehearse(outputs_rehearse_look, &o, why) < 0)
		return why->code;
	return outputs_look(s, p, why);
}

/* The variables that name a directory in which something is made: by the guard for the run, by the
 * event loop for the control socket. */
static const char *const directory_variables[] = { "TMPDIR", "RUNTIME_DIRECTORY",
	"XDG_RUNTIME_DIR" };
enum { DIRECTORIES = sizeof directory_variables / sizeof *directory_variables };

static void rehearse_directory(const char *variable, const char *dir)
{
	char path[PATH_MAX];

	rehearsal_path(variable, dir);
	if (snprintf(path, sizeof path, "%s/launchd_XXXXXX", dir) < (int)sizeof path &&
		mkdtemp(path))
		(void)rmdir(path);
}

/* Neither a FIFO, whose other end would see it, nor a device. */
static void rehearse_events(const char *where, const char *path)
{
	enum { FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };
	struct stat st;
	int rc, fd = -1;

	rehearsal_path(where, path);
	rc = stat(path, &st);
	if ((rc == 0 && S_ISREG(st.st_mode)) || (rc < 0 && errno == ENOENT))
		fd = open(path, FLAGS, 0644);
	fd_closep(&fd);
}

static void outputs_rehearse_making(const void *how)
{
	const struct outputs *o = how;
	const struct output_plan *output = &o->p->output;
	struct failure ignored = { 0 };

	if (output->tree && output->log_dir) {
		rehearsal_path(settings_where(o->s, SET_LOG_DIR), output->log_dir);
		(void)tree_make_base(output->log_dir, settings_where(o->s, SET_LOG_DIR), &ignored);
	}
	if (output->events_path)
		rehearse_events(settings_where(o->s, SET_EVENTS), output->events_path);
	for (size_t i = 0; i < DIRECTORIES; i++) {
		const char *dir = env_get(o->p->env, directory_variables[i]);

		if (path_is_far(dir))
			rehearse_directory(directory_variables[i], dir);
	}
}

int outputs_prepare(const struct settings *s, const struct plan *p, struct failure *why)
{
	const char *log_dir = p->output.tree ? p->output.log_dir : NULL;
	bool far = path_is_far(log_dir) || path_is_far(p->output.events_path);
	const struct outputs o = { s, p };

	for (size_t i = 0; i < DIRECTORIES; i++)
		far = far || path_is_far(env_get(p->env, directory_variables[i]));
	if (far && rehearse(outputs_rehearse_making, &o, why) < 0)
		return why->code;
	return log_dir ? tree_make_base(log_dir, settings_where(s, SET_LOG_DIR), why) : 0;
}
