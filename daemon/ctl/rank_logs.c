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
#include "daemon/ctl/ctl_command.h"
#include "daemon/ctl/ctl_link.h"
#include "daemon/ctl/print.h"

enum { LOOK_MS = 250, CHUNK = 65536 };

/* A log file that is followed. */
struct followed {
	struct followed *next;
	const char *path;
	unsigned rank;
	int fd;           /* -1: not there yet */
	struct text line; /* what is not a whole one */
};

struct logs_view {
	struct ctl_link *link;
	const struct ctl_command *command;
	struct arena memory;
	struct followed *files;
	bool many; /* ranks: each line says whose it is */
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
	const cJSON *result;
	const char *text;
	cJSON *root;
	int rc;

	if (v->command->lines > 0)
		(void)snprintf(members, sizeof members, ",\"rank\":%u,\"lines\":%u", rank,
			v->command->lines);
	else
		(void)snprintf(members, sizeof members, ",\"rank\":%u", rank);
	rc = ctl_link_ask(v->link, "tail", members, &root, &result, v->why);
	if (rc < 0)
		return rc;
	text = member_text(v->link->cjson, result, "text");
	if (text)
		add_lines(v, rank, text, strlen(text), &out);
	rc = print_done(&out, v->why);
	v->link->cjson->free(root);
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
	static const char *const names[] = { "stdout", "stderr" };

	for (unsigned i = 0; i < 2; i++) {
		const char *path = member_text(v->link->cjson, worker, names[i]);
		struct followed *f = path ? arena_alloc(&v->memory, sizeof *f) : NULL;

		if (!f)
			continue;
		*f = (struct followed){ .path = arena_strdup(&v->memory, path), .rank = rank };
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

static int print_news(struct logs_view *v)
{
	struct text out = { 0 };
	int rc = 0;

	for (struct followed *f = v->files; f && rc == 0; f = f->next)
		rc = read_more(v, f, &out);
	if (rc == 0 && out.len > 0)
		rc = print_done(&out, v->why);
	return rc;
}

/* The launcher closes the connection when the job has ended. */
static int follow(struct logs_view *v)
{
	int ended, rc;

	do {
		ended = ctl_link_wait(v->link, LOOK_MS, v->why);
		rc = ended < 0 ? ended : print_news(v);
	} while (!ended && rc == 0);
	for (const struct followed *f = v->files; f && rc == 0; f = f->next) {
		struct text out = { 0 };

		add_lines(v, f->rank, text_string(&f->line), f->line.len, &out);
		rc = print_done(&out, v->why);
	}
	return rc;
}

static int check_files(const struct logs_view *v)
{
	if (!v->command->follow || v->files)
		return 0;
	return failure_set(v->why, -ENODATA,
		"there is no log file to be followed: launchd writes them where --log-dir and "
		"--redirects or --tee say so");
}

/* The workers that are meant, from the status; their files are opened. */
static int choose(struct logs_view *v, struct text *ranks)
{
	const cJSON *status, *workers;
	cJSON *root;
	unsigned count = 0;
	int rc = ctl_link_ask(v->link, "status", "", &root, &status, v->why);

	if (rc < 0)
		return rc;
	workers = member_object(v->link->cjson, status, "workers");
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
	v->many = count > 1;
	if (count < v->command->rank_count || ranks->failed) { /* the launcher says why */
		text_done(ranks);
		text_add_bytes(ranks, (const char *)v->command->ranks,
			v->command->rank_count * sizeof(unsigned));
	}
	return ranks->failed ? failure_oom(v->why) : check_files(v);
}

int rank_logs(struct ctl_link *l, const struct ctl_command *c, struct failure *why)
{
	struct logs_view v = { .link = l, .command = c, .why = why };
	struct text ranks = { 0 };
	int rc = choose(&v, &ranks);

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
	arena_done(&v.memory);
	return rc;
}
