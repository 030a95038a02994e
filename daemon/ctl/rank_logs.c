/* rank_logs.c - see rank_logs.h */
#include "daemon/ctl/rank_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "daemon/control/protocol.h"
#include "daemon/ctl/ctl_command.h"
#include "daemon/ctl/ctl_link.h"
#include "daemon/ctl/print.h"

enum {
	LOOK_MS = 250,
	CHUNK = 65536,
	RANKS_MAX = CONTROL_LINE_MAX - 128, /* bytes of a list of ranks in a request */
};

/* A log file that is followed. */
struct followed {
	struct followed *next;
	const char *path;
	unsigned rank, stream; /* 0: stdout, 1: stderr */
	int fd;                /* -1: not there yet */
	struct text line;      /* what is not a whole one */
};

struct logs_view {
	struct ctl_link *link;
	const struct ctl_command *command;
	struct arena memory;
	struct followed *files;
	unsigned attempt;  /* in which they are, */
	const char *dir;   /* there; */
	const char *next;  /* where the next one's would be, or NULL */
	bool many;         /* ranks: each line says whose it is */
	bool streams;      /* what goes into no file the launcher tells, */
	struct text told;  /* which is yet to be printed; */
	double lost;       /* lines that it had to leave out, which is yet to be said; */
	bool ended;        /* it has told all, */
	bool cut;          /* or is gone, which it did not tell; */
	char refusal[256]; /* it does not, for that reason */
	struct failure *why;
};

static bool is_wanted(const struct ctl_command *c, unsigned rank)
{
	for (size_t i = 0; i < c->rank_count; i++)
		if (c->ranks[i] == rank)
			return true;
	return c->rank_count == 0;
}

/* Whole lines, each with its rank before it where there are several. */
static void add_lines(
	const struct logs_view *v, unsigned rank, const char *text, size_t len, struct text *out)
{
	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		if (v->many)
			text_printf(out, "[%u] ", rank);
		text_add_bytes(out, text, n);
		text_add(out, "\n");
		text += n + (end != NULL);
		len -= n + (end != NULL);
	}
}

static int print_tail(struct logs_view *v, unsigned rank)
{
	char members[64];
	struct text out = { 0 };
	struct failure why = { 0 };
	const cJSON *result;
	const char *text;
	cJSON *root;
	int rc;

	if (v->command->lines > 0)
		(void)snprintf(members, sizeof members, ",\"rank\":%u,\"lines\":%u", rank,
			v->command->lines);
	else
		(void)snprintf(members, sizeof members, ",\"rank\":%u", rank);
	rc = ctl_link_ask(v->link, "tail", members, &root, &result, &why);
	if (rc == -EREMOTEIO && v->streams && !*v->refusal)
		return 0; /* it has written nothing yet */
	if (rc < 0)
		return failure_set(v->why, rc, "%s", *v->refusal ? v->refusal : why.text);
	text = member_text(v->link->cjson, result, "text");
	if (text)
		add_lines(v, rank, text, strlen(text), &out);
	rc = print_done(&out, v->why);
	v->link->cjson->free(root);
	return rc;
}

static const char *const stream_names[] = { "stdout", "stderr" };

static bool has_file(const struct logs_view *v, unsigned rank, const char *stream)
{
	for (const struct followed *f = v->files; f; f = f->next)
		if (f->rank == rank && strcmp(stream_names[f->stream], stream) == 0)
			return true;
	return false;
}

static void add_told(struct logs_view *v, const cJSON *event)
{
	const char *stream = member_text(v->link->cjson, event, "stream");
	const char *line = member_text(v->link->cjson, event, "line");
	double rank;

	if (!stream || !line || !member_number(v->link->cjson, event, "rank", &rank) ||
		!is_wanted(v->command, (unsigned)rank) || has_file(v, (unsigned)rank, stream))
		return;
	if (v->many)
		text_printf(&v->told, "[%u] ", (unsigned)rank);
	text_printf(&v->told, "%s\n", line);
}

/* A line of the stream, or why there is none. */
static void on_event(void *owner, const cJSON *root)
{
	struct logs_view *v = owner;
	const struct cjson *cjson = v->link->cjson;
	const cJSON *event = member_object(cjson, root, "event");
	const cJSON *error = member_object(cjson, root, "error");
	const char *why = error ? member_text(cjson, error, "text") : NULL;
	double lost;

	if (event)
		add_told(v, event);
	else if (member_number(cjson, root, "lost", &lost))
		v->lost += lost;
	else if (error)
		(void)snprintf(v->refusal, sizeof v->refusal, "%s", why ? why : "it was refused");
	else
		v->ended = true;
}

/* What does not go into files; before the last lines are asked for, as of files. */
static int follow_stream(struct logs_view *v)
{
	const struct ctl_command *c = v->command;
	struct text members = { 0 };
	int rc;

	for (size_t i = 0; i < c->rank_count; i++)
		text_printf(&members, "%s%u", i ? "," : ",\"ranks\":[", c->ranks[i]);
	text_add(&members, c->rank_count ? "]" : "");
	v->link->on_event = on_event;
	v->link->owner = v;
	/* of too many ranks all are told, and these are chosen here */
	rc = ctl_link_follow(
		v->link, "logs", members.len < RANKS_MAX ? text_string(&members) : "", v->why);
	text_done(&members);
	return rc;
}

static int open_at_end(struct followed *f)
{
	f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd >= 0 && lseek(f->fd, 0, SEEK_END) < 0)
		fd_closep(&f->fd);
	return f->fd;
}

/* Before its last lines are asked for: what is written meanwhile is better told twice than never.
 */
static void follow_files(struct logs_view *v, const cJSON *worker, unsigned rank)
{
	for (unsigned i = 0; i < 2; i++) {
		const char *path = member_text(v->link->cjson, worker, stream_names[i]);
		struct followed *f = path ? arena_alloc(&v->memory, sizeof *f) : NULL;

		v->streams = v->streams || !f;
		if (!f)
			continue;
		*f = (struct followed){
			.path = arena_strdup(&v->memory, path), .rank = rank, .stream = i
		};
		(void)open_at_end(f);
		f->next = v->files;
		v->files = f;
	}
}

/* Moved away, and made anew: launchctl reopen, --log-max-size. */
static bool was_replaced(const struct followed *f)
{
	struct stat named, open_one;

	return stat(f->path, &named) == 0 && fstat(f->fd, &open_one) == 0 &&
		(named.st_ino != open_one.st_ino || named.st_dev != open_one.st_dev);
}

static int read_more(struct logs_view *v, struct followed *f, struct text *out)
{
	char bytes[CHUNK];
	ssize_t n;

	if (f->fd < 0)
		f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	while (f->fd >= 0 && (n = read(f->fd, bytes, sizeof bytes)) > 0) {
		const char *last = memrchr(bytes, '\n', (size_t)n);
		size_t whole = last ? (size_t)(last + 1 - bytes) : 0;

		if (whole > 0) {
			text_add_bytes(&f->line, bytes, whole);
			add_lines(v, f->rank, text_string(&f->line), f->line.len, out);
			text_done(&f->line);
		}
		text_add_bytes(&f->line, bytes + whole, (size_t)n - whole);
	}
	if (f->fd >= 0 && was_replaced(f))
		fd_closep(&f->fd);
	return f->line.failed ? failure_oom(v->why) : 0;
}

static void enter_attempt(struct logs_view *v, const char *dir, unsigned attempt)
{
	const char *slash = dir ? strrchr(dir, '/') : NULL;

	v->dir = dir;
	v->attempt = attempt;
	v->next = slash ?
		arena_printf(&v->memory, "%.*s/attempt_%u", (int)(slash - dir), dir, attempt + 1) :
		NULL;
}

/* The workers of this attempt have ended: what they began and did not end is a line, too. */
static int leave_attempt(struct logs_view *v, struct text *out)
{
	const size_t len = strlen(v->dir);

	for (struct followed *f = v->files; f; f = f->next) {
		add_lines(v, f->rank, text_string(&f->line), f->line.len, out);
		text_done(&f->line);
		fd_closep(&f->fd);
		if (strncmp(f->path, v->dir, len) == 0)
			f->path = arena_printf(&v->memory, "%s%s", v->next, f->path + len);
	}
	enter_attempt(v, v->next, v->attempt + 1);
	return arena_failed(&v->memory) ? failure_oom(v->why) : 0;
}

/* A restart has made new files. */
static bool is_restarted(const struct logs_view *v)
{
	struct stat st;

	return v->files && v->next && stat(v->next, &st) == 0;
}

static int print_news(struct logs_view *v)
{
	struct text out = { 0 };
	bool more = true;
	int rc = 0;

	while (more && rc == 0) {
		more = is_restarted(v); /* before the last look at the files so far */
		for (struct followed *f = v->files; f && rc == 0; f = f->next)
			rc = read_more(v, f, &out);
		if (more && rc == 0)
			rc = leave_attempt(v, &out);
	}
	if (rc == 0 && out.len > 0)
		rc = print_done(&out, v->why);
	return rc;
}

static int print_held(struct logs_view *v)
{
	if (v->lost > 0)
		(void)dprintf(STDERR_FILENO,
			"launchctl: warning: %.0f lines are left out: they came faster than they "
			"were read\n",
			v->lost);
	v->lost = 0;
	if (v->cut)
		(void)dprintf(STDERR_FILENO,
			"launchctl: warning: the last lines may be missing: the launcher is gone, or "
			"was not read from in time\n");
	v->cut = false;
	return v->told.len > 0 || v->told.failed ? print_done(&v->told, v->why) : 0;
}

/* What the launcher has told by now. */
static int print_told(struct logs_view *v)
{
	struct failure why = { 0 };
	int rc = 1;

	while (rc == 1 && v->told.len < CHUNK && ctl_link_wait(v->link, 0, &why) > 0) {
		cJSON *root;

		rc = ctl_link_next(v->link, &root, &why);
		if (rc != 1)
			break;
		on_event(v, root);
		v->link->cjson->free(root);
	}
	v->cut = !v->ended && rc == -ECONNRESET;
	v->ended = v->ended || rc == 0 || rc == -ECONNRESET;
	if (rc < 0 && !v->ended)
		return failure_copy(v->why, &why);
	return print_held(v);
}

/* The launcher ends the stream, or closes the connection, when the job has ended. */
static int follow(struct logs_view *v)
{
	int rc = 0;

	if (*v->refusal && !v->files)
		return failure_set(v->why, -ENODATA, "%s", v->refusal);
	v->streams = v->streams && !*v->refusal;
	while (rc == 0 && !v->ended) {
		int said = v->told.len > 0 ?
			1 :
			ctl_link_wait(v->link, v->files ? LOOK_MS : -1, v->why);

		if (said < 0)
			return said;
		if (said > 0 && v->streams)
			rc = print_told(v);
		else
			v->ended = said > 0;
		if (rc == 0)
			rc = print_news(v);
	}
	if (rc == 0)
		rc = print_held(v);
	for (const struct followed *f = v->files; f && rc == 0; f = f->next) {
		struct text out = { 0 };

		add_lines(v, f->rank, text_string(&f->line), f->line.len, &out);
		rc = print_done(&out, v->why);
	}
	return rc;
}

/* The workers that are meant, from the status; their files are opened. */
static int choose(struct logs_view *v, struct text *ranks)
{
	const cJSON *status, *workers;
	const char *dir;
	cJSON *root;
	double attempt;
	unsigned count = 0;
	int rc = ctl_link_ask(v->link, "status", "", &root, &status, v->why);

	if (rc < 0)
		return rc;
	workers = member_object(v->link->cjson, status, "workers");
	dir = member_text(v->link->cjson, status, "log_dir");
	if (member_number(v->link->cjson, status, "attempt", &attempt) && dir)
		enter_attempt(v, arena_strdup(&v->memory, dir), (unsigned)attempt);
	for (const cJSON *w = workers ? workers->child : NULL; w; w = w->next) {
		double rank;

		if (!member_number(v->link->cjson, w, "rank", &rank) ||
			!is_wanted(v->command, (unsigned)rank))
			continue;
		count++;
		text_add_bytes(
			ranks, (const char *)&(unsigned){ (unsigned)rank }, sizeof(unsigned));
		if (v->command->follow)
			follow_files(v, w, (unsigned)rank);
	}
	v->link->cjson->free(root);
	v->many = count > 1 || (count == 0 && v->command->rank_count != 1);
	v->streams = v->command->follow && (v->streams || count == 0);
	if (count < v->command->rank_count || ranks->failed) { /* the launcher says why */
		text_done(ranks);
		text_add_bytes(ranks, (const char *)v->command->ranks,
			v->command->rank_count * sizeof(unsigned));
	}
	return ranks->failed ? failure_oom(v->why) : 0;
}

int rank_logs(struct ctl_link *l, const struct ctl_command *c, struct failure *why)
{
	struct logs_view v = { .link = l, .command = c, .why = why };
	struct text ranks = { 0 };
	int rc = choose(&v, &ranks);

	if (rc == 0 && v.streams)
		rc = follow_stream(&v);
	for (size_t i = 0; i < ranks.len && rc == 0; i += sizeof(unsigned)) {
		unsigned rank;

		memcpy(&rank, ranks.at + i, sizeof rank);
		rc = print_tail(&v, rank);
	}
	if (rc == 0 && c->follow)
		rc = follow(&v);
	for (struct followed *f = v.files; f; f = f->next) {
		fd_closep(&f->fd);
		text_done(&f->line);
	}
	text_done(&ranks);
	text_done(&v.told);
	arena_done(&v.memory);
	return rc;
}
