/* explain_bundle.c - see explain_bundle.h. The files may be anybody's: sizes are looked at before
 * they are read, and no FIFO or device is. */
#include "daemon/blackbox/explain_bundle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/text.h"
#include "daemon/blackbox/bundle.h"
#include "daemon/blackbox/newest_bundle.h"
#include "daemon/blackbox/story.h"
#include "daemon/os/cjson.h"

enum { NODES_READ = 1024 };

struct explained_parts {
	const struct cjson *c;
	struct arena *arena;
	struct failure *why;
	bool has_index;
	struct bundle_index index;
	struct bundle *nodes; /* NODES_READ of them */
	size_t count;
	struct text unread;   /* a line for each file that is there and says nothing */
	struct failure first; /* of them */
};

static int refuse(struct explained_parts *f, const char *path, const char *what)
{
	return failure_usage(f->why, "--explain: %s: %s", path, what);
}

/* The whole file with a NUL behind it; NULL: why. */
static char *load(struct explained_parts *f, const char *path, size_t *ret_len)
{
	autoclose fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char *text;
	long len;

	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)refuse(f, path, strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		(void)refuse(f, path, "it is not a regular file");
		return NULL;
	}
	if (st.st_size > BUNDLE_FILE_MAX) {
		(void)refuse(f, path, "it is larger than 4 MiB, which none that launchd writes is");
		return NULL;
	}
	text = arena_alloc(f->arena, (size_t)st.st_size + 1);
	if (!text) {
		(void)failure_oom(f->why);
		return NULL;
	}
	len = fd_read_up_to(fd, text, (size_t)st.st_size);
	if (len < 0) {
		(void)refuse(f, path, strerror((int)-len));
		return NULL;
	}
	if (memchr(text, '\0', (size_t)len)) {
		(void)refuse(f, path, "it is not JSON: there is a NUL byte in it");
		return NULL;
	}
	*ret_len = (size_t)len;
	return text;
}

static int read_index(struct explained_parts *f, const char *path)
{
	size_t len = 0;
	const char *where = arena_printf(f->arena, "--explain: %s", path);
	const char *text = load(f, path, &len);

	if (!text || index_parse(f->c, where, text, len, f->arena, &f->index, f->why) < 0)
		return f->why->code;
	f->has_index = true;
	return 0;
}

static int read_part(struct explained_parts *f, const char *path)
{
	size_t len = 0;
	const char *where = arena_printf(f->arena, "--explain: %s", path);
	const char *text = f->count < NODES_READ ? load(f, path, &len) : "";

	if (f->count == NODES_READ)
		return 0;
	if (!text ||
		bundle_parse(f->c, where, text, len, f->arena, &f->nodes[f->count], f->why) < 0)
		return f->why->code;
	f->count++;
	return 0;
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static int compare(const void *a, const void *b)
{
	const struct bundle *x = a, *y = b;

	return x->node < y->node ? -1 : x->node > y->node;
}

/* One file that a full disk, or a node that was lost, has left half written does not cost the story
 * of all others: what is wrong with it is told behind that. */
static int spare(struct explained_parts *f, int rc)
{
	static const char prefix[] = "--explain: ";
	const char *what = f->why->text;

	if (rc != -EINVAL)
		return rc;
	if (f->first.code == 0)
		f->first = *f->why;
	if (strncmp(what, prefix, strlen(prefix)) == 0)
		what += strlen(prefix);
	text_add(&f->unread, "  ");
	text_add_shown(&f->unread, what, strlen(what));
	text_add(&f->unread, "\n");
	*f->why = (struct failure){ .all = f->why->all };
	return 0;
}

/* The parts of all nodes that are in a failure's directory. */
static int read_parts(struct explained_parts *f, const char *path)
{
	DIR *dir = opendir(path);
	int rc = 0;

	if (!dir)
		return refuse(f, path, strerror(errno));
	for (const struct dirent *e = readdir(dir); e && rc == 0; e = readdir(dir)) {
		const char *part;

		if (strncmp(e->d_name, "node-", 5) != 0)
			continue;
		part = arena_printf(f->arena, "%s/%s/" BUNDLE_JSON, path, e->d_name);
		if (is_there(part))
			rc = spare(f, read_part(f, part));
	}
	(void)closedir(dir);
	if (f->count > 0)
		qsort(f->nodes, f->count, sizeof *f->nodes, compare);
	return rc;
}

static int read_directory(struct explained_parts *f, const char *path)
{
	const char *index = arena_printf(f->arena, "%s/" BUNDLE_INDEX, path);
	const char *part = arena_printf(f->arena, "%s/" BUNDLE_JSON, path);
	int rc = 0;

	if (is_there(part))
		return read_part(f, part);
	if (is_there(index))
		rc = spare(f, read_index(f, index));
	if (rc == 0)
		rc = read_parts(f, path);
	if (rc == 0 && !f->has_index && f->count == 0 && f->first.code < 0) {
		*f->why = f->first;
		return f->why->code;
	}
	return rc;
}

/* Those below it; the newest counts. */
static int read_newest(
	struct explained_parts *f, const char *path, const char *chosen_by, struct text *out)
{
	const char *reason = chosen_by ? chosen_by : "";
	struct newest_bundle newest;
	int rc = newest_bundle_find(path, &newest);

	if (rc < 0)
		return failure_usage(f->why, "--explain: %s%s: %s", path, reason, strerror(-rc));
	if (newest.count == 0)
		return failure_usage(f->why,
			"--explain: %s%s: there is neither " BUNDLE_INDEX
			" nor a node's " BUNDLE_JSON
			" in it, nor in a directory below it: it is no failure that --blackbox has "
			"kept%s",
			path, reason,
			chosen_by ? "; name one, or the directory of --blackbox: --explain DIR" :
				    ", or one whose node was lost meanwhile");
	text_add_shown(out, newest.path, strlen(newest.path));
	if (newest.count == 1)
		text_add(out, " (the only failure below ");
	else
		text_printf(out, " (the newest of %u failures below ", newest.count);
	text_add_shown(out, path, strlen(path));
	text_printf(out, "%s)\n\n", reason);
	return read_directory(f, arena_strdup(f->arena, newest.path));
}

static int read_file(struct explained_parts *f, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (strcmp(name, BUNDLE_INDEX) != 0)
		return read_part(f, path);
	if (read_index(f, path) < 0)
		return f->why->code;
	return read_parts(
		f, slash ? arena_strndup(f->arena, path, (size_t)(slash - path) + 1) : ".");
}

int explain_bundle(const char *path, const char *chosen_by, struct arena *arena, struct text *out,
	struct failure *why)
{
	struct cjson c = { 0 };
	struct explained_parts f = { .c = &c, .arena = arena, .why = why };
	struct stat st;
	int rc = cjson_open(NULL, &c, why);

	if (rc < 0)
		return rc;
	f.nodes = arena_alloc(arena, NODES_READ * sizeof *f.nodes);
	if (!f.nodes)
		rc = failure_oom(why);
	else if (stat(path, &st) < 0)
		rc = failure_usage(why, "--explain: %s%s: %s", path, chosen_by ? chosen_by : "",
			strerror(errno));
	else if (S_ISDIR(st.st_mode))
		rc = read_directory(&f, path);
	else
		rc = read_file(&f, path);
	if (rc == 0 && !f.has_index && f.count == 0)
		rc = read_newest(&f, path, chosen_by, out);
	if (rc == 0)
		story_add(f.has_index ? &f.index : NULL, f.nodes, f.count, out);
	if (rc == 0 && f.unread.len > 0) {
		text_add(out, "\nWhat can't be read\n");
		text_add(out, text_string(&f.unread));
	}
	text_done(&f.unread);
	cjson_close(&c);
	return rc < 0 ? rc : arena_failed(arena) || out->failed ? failure_oom(why) : 0;
}
