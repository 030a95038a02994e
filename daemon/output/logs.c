/* logs.c - see logs.h */
#include "daemon/output/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/output/journaling.h"
#include "daemon/output/log_tree.h"
#include "daemon/plan/prefix.h"
#include "daemon/report/error_file.h"

static const char *const names[2] = { "stdout", "stderr" };

static const char *path_of(struct logs *l, unsigned local_rank, int stream)
{
	return tree_log_path(l->dir, local_rank, stream + 1, &l->memory);
}

static void render(struct stream *s, int64_t wall_ns)
{
	const struct logs *l = s->owner;
	struct worker_rank where = plan_rank(l->plan, s->local_rank);
	const struct prefix_values values = {
		.role_name = l->plan->role,
		.hostname = l->hostname,
		.local_rank = where.local_rank,
		.rank = where.rank,
		.node_rank = where.node_rank,
		.fd = s->fd,
		.wall_ns = wall_ns,
	};

	(void)prefix_render(s->prefix_template, &values, &s->prefix); /* no memory: no prefix */
}

static void on_ended(struct stream *s)
{
	struct logs *l = s->owner;

	if (--l->going == 0 && l->on_ended)
		l->on_ended(l);
}

static void on_finished(struct stream *s)
{
	struct logs *l = s->owner;

	l->open--;
}

static int open_filter(struct logs *l, int stream, struct failure *why)
{
	const struct output_plan *p = &l->plan->output;
	const struct logfile_style plain = { .max_size_bytes = 0 };
	struct filter *f = &l->filters[stream];
	int rc;

	f->texts = stream == 0 ? p->out_filters : p->err_filters;
	if (f->open)
		return 0;
	rc = logfile_open(&f->file,
		arena_printf(&l->memory, "%s/filtered_%s.log", l->dir, names[stream]), &plain, why);
	f->open = rc == 0;
	return rc;
}

/* A file for the worker itself. */
static int open_direct(struct logs *l, unsigned local_rank, int stream, struct failure *why)
{
	const char *path = path_of(l, local_rank, stream);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	if (fd < 0)
		return failure_set(why, -errno, "can't open %s: %s", path, strerror(errno));
	l->of[local_rank - l->plan->start_first].direct[stream] = fd;
	return 0;
}

/* A pipe, whose bytes go to its file and to the console. */
static int init_pipe(struct stream *s, struct logs *l, const struct stream_plan *how,
	struct console *console, struct failure *why)
{
	const struct output_plan *p = &l->plan->output;
	const struct logfile_style style = { p->max_size_bytes, p->keep, p->timestamps };
	int rc = 0;

	s->host = l->host;
	s->pipe = -1;
	s->owner = l;
	s->on_ended = on_ended;
	s->on_finished = on_finished;
	s->console = how->console ? console : NULL;
	s->prefix_template = how->prefix;
	if (how->prefix)
		render(s, 0);
	if (how->prefix && prefix_has_time(how->prefix))
		s->render = render;
	if (how->file) {
		rc = logfile_open(&s->file, path_of(l, s->local_rank, s->fd - 1), &style, why);
		s->has_file = true;
		s->file.reads_back = s->console != NULL;
		s->file.written = &l->host->tally->log_bytes[s->fd - 1];
	}
	if (rc < 0 || !how->filtered)
		return rc;
	s->filter = &l->filters[s->fd - 1];
	return open_filter(l, s->fd - 1, why);
}

static int init_stream(
	struct logs *l, unsigned i, int stream, struct console *console, struct failure *why)
{
	unsigned local_rank = l->plan->start_first + i;
	struct worker_logs *w = &l->of[i];
	struct stream *s = &w->stream[stream];

	w->how[stream] = plan_stream(l->plan, local_rank, stream + 1);
	switch (w->how[stream].way) {
	case STREAM_DIRECT:
		return open_direct(l, local_rank, stream, why);
	case STREAM_PIPE:
		s->local_rank = local_rank;
		s->rank = plan_rank(l->plan, local_rank).rank;
		s->fd = stream + 1;
		s->tail = &w->tail;
		return init_pipe(s, l, &w->how[stream], console, why);
	case STREAM_INHERIT:
		break;
	}
	return 0;
}

/* What logs_new() made, also half of it. */
void logs_free(struct logs *l)
{
	for (unsigned i = 0; l && l->of && i < l->plan->start_count; i++) {
		for (int stream = 0; stream < 2; stream++) {
			fd_closep(&l->of[i].direct[stream]);
			fd_closep(&l->of[i].pipe[stream]);
			stream_done(&l->of[i].stream[stream]);
		}
		tail_done(&l->of[i].tail);
	}
	for (int stream = 0; l && stream < 2; stream++)
		if (l->filters[stream].open)
			logfile_close(&l->filters[stream].file);
	if (l)
		arena_done(&l->memory);
	free(l);
}

/* A stream of each worker, as its plan has it. */
static int init_streams(struct logs *l, struct console *const consoles[2], struct failure *why)
{
	int rc = 0;

	l->of = arena_alloc(&l->memory, l->plan->start_count * sizeof *l->of);
	if (!l->of)
		return failure_oom(why);
	for (unsigned i = 0; i < l->plan->start_count; i++)
		for (int stream = 0; stream < 2; stream++)
			l->of[i].direct[stream] = l->of[i].pipe[stream] = -1;
	for (unsigned i = 0; rc == 0 && i < l->plan->start_count; i++)
		for (int stream = 0; stream < 2 && rc == 0; stream++)
			rc = init_stream(l, i, stream, consoles[stream], why);
	return rc;
}

int logs_new(const struct plan *plan, unsigned attempt, const char *run_dir, const char *hostname,
	const struct stream_host *host, struct console *const consoles[2], struct logs **ret,
	struct failure *why)
{
	struct logs *l = calloc(1, sizeof *l);
	int rc = 0;

	if (!l)
		return failure_oom(why);
	l->plan = plan;
	l->hostname = hostname;
	l->attempt = attempt;
	l->host = host;
	if (run_dir)
		rc = tree_make_attempt(run_dir, attempt, plan->start_first, plan->start_count,
			&l->memory, &l->dir, why);
	if (rc == 0)
		rc = init_streams(l, consoles, why);
	if (rc < 0) {
		logs_free(l);
		return rc;
	}
	*ret = l;
	return 0;
}

/* What tells the journal whose line it is. */
static void put_header(struct logs *l, unsigned i, int stream)
{
	struct worker_logs *w = &l->of[i];
	struct stream *s = &w->stream[stream];

	if (s->console && l->plan->output.journal == JOURNAL_ALL &&
		!journaling_header(
			l->plan, s->local_rank, l->attempt, stream + 1, w->pid, &s->prefix))
		s->console = NULL; /* no memory: a line without it would be taken for a record */
}

void logs_start(struct logs *l)
{
	for (unsigned i = 0; i < l->plan->start_count; i++) {
		struct worker_logs *w = &l->of[i];

		for (int stream = 0; stream < 2; stream++) {
			fd_closep(&w->direct[stream]); /* the worker has it */
			if (w->pipe[stream] < 0)
				continue;
			put_header(l, i, stream);
			if (stream_start(&w->stream[stream], fd_take(&w->pipe[stream])) < 0)
				continue;
			l->going++;
			l->open++;
		}
	}
}

static void each(struct logs *l, void (*act)(struct stream *s))
{
	for (unsigned i = 0; i < l->plan->start_count; i++)
		for (int stream = 0; stream < 2; stream++)
			act(&l->of[i].stream[stream]);
}

void logs_drain(struct logs *l)
{
	each(l, stream_drain);
}

void logs_end(struct logs *l)
{
	each(l, stream_end);
}

void logs_show_bars(struct logs *l)
{
	each(l, stream_show_bar);
}

void logs_unfollow(struct logs *l)
{
	each(l, stream_unfollow);
}

/* The end of what a worker has written into its file itself. */
static void read_last(const struct logs *l, unsigned i, int stream, struct tail *ret)
{
	struct arena scratch = { 0 };
	char buf[TAIL_BYTES];
	const char *path = tree_log_path(l->dir, l->plan->start_first + i, stream + 1, &scratch);
	ssize_t n = logfile_last(path, buf, sizeof buf);

	if (n > 0)
		tail_add(ret, stream + 1, buf, (size_t)n);
	arena_done(&scratch);
}

/* Where it is the worker's alone, until the worker has ended. */
static void read_direct(struct logs *l, unsigned i)
{
	for (int stream = 0; stream < 2; stream++) {
		struct stat st;

		if (l->of[i].how[stream].way != STREAM_DIRECT)
			continue;
		if (stat(path_of(l, l->plan->start_first + i, stream), &st) == 0)
			tally_add(&l->host->tally->log_bytes[stream], (uint64_t)st.st_size);
		read_last(l, i, stream, &l->of[i].tail);
	}
}

static const char *text_so_far(
	const struct logs *l, unsigned i, unsigned lines, struct arena *memory)
{
	const struct worker_logs *w = &l->of[i];
	bool out = w->how[0].way == STREAM_DIRECT, err = w->how[1].way == STREAM_DIRECT;
	struct tail so_far = { 0 };
	const char *text;

	if (l->collected || (!out && !err))
		return tail_text(&w->tail, lines, memory);
	if (out)
		read_last(l, i, 0, &so_far);
	if (err)
		read_last(l, i, 1, &so_far);
	text = tail_text(&so_far, lines, memory);
	tail_done(&so_far);
	return *text ? text : tail_text(&w->tail, lines, memory);
}

struct tails *logs_tails(struct logs *l, unsigned lines)
{
	struct tails *t = tails_new(l->plan->start_count, lines);

	for (unsigned i = 0; t && i < t->count; i++) {
		t->of[i] = text_so_far(l, i, lines, &t->memory);
		t->bytes[i] = l->of[i].tail.bytes[0] + l->of[i].tail.bytes[1];
	}
	if (!t || !arena_failed(&t->memory))
		return t;
	tails_free(t);
	return NULL;
}

/* Where the worker's files are: the one there is, or the directory of both. */
static const char *place_of(struct logs *l, unsigned i)
{
	const struct worker_logs *w = &l->of[i];
	unsigned local_rank = l->plan->start_first + i;
	bool out = w->how[0].file, err = w->how[1].file;

	if (out && err)
		return arena_printf(&l->memory, "%s/%u", l->dir, local_rank);
	return out || err ? path_of(l, local_rank, err) : NULL;
}

static const struct record_text *read_error(struct logs *l, unsigned i)
{
	const struct attempt attempt = { .log_dir = l->dir };
	struct record_text *text = l->dir ? arena_alloc(&l->memory, sizeof *text) : NULL;

	if (text)
		record_read(plan_error_file(&attempt, l->plan->start_first + i, &l->memory),
			&l->memory, text);
	return text;
}

/* More than the report shows: a verdict is found in them, too. */
static unsigned lines_kept(const struct logs *l)
{
	enum { JUDGED_LINES = 200 };
	unsigned shown = l->plan->output.tail_lines;

	return shown > JUDGED_LINES ? shown : JUDGED_LINES;
}

void logs_collect(struct logs *l)
{
	l->collected = true;
	for (unsigned i = 0; i < l->plan->start_count; i++) {
		struct worker_logs *w = &l->of[i];
		const char *lines;

		read_direct(l, i);
		lines = tail_text(&w->tail, lines_kept(l), &l->memory);
		w->words.words.lines = *lines ? lines : NULL;
		w->words.words.log = place_of(l, i);
		w->words.error = read_error(l, i);
	}
}

static void reopen(const struct logs *l, struct logfile *f)
{
	struct failure why = { 0 };

	filer_wait(l->host->filer, f);
	if (logfile_reopen(f, &why) < 0)
		l->host->say(l->host->owner, true, why.text);
}

void logs_reopen(struct logs *l)
{
	unsigned direct = 0;
	char text[160];

	for (unsigned i = 0; i < l->plan->start_count; i++)
		for (int stream = 0; stream < 2; stream++) {
			struct stream *s = &l->of[i].stream[stream];

			direct += l->of[i].how[stream].way == STREAM_DIRECT;
			if (s->has_file && s->state != STREAM_FINISHED)
				reopen(l, &s->file);
		}
	for (int stream = 0; stream < 2; stream++)
		if (l->filters[stream].open)
			reopen(l, &l->filters[stream].file);
	if (direct == 0)
		return;
	(void)snprintf(text, sizeof text,
		"%u log files are written by the workers themselves and can't be reopened; with "
		"--log-max-size launchd writes them",
		direct);
	l->host->say(l->host->owner, true, text);
}
