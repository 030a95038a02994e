/* log_tree.c - see log_tree.h */
#include "daemon/output/log_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "daemon/os/secret.h"

enum { RANDOM_LEN = 8, TRIES = 100 };

static int not_made(const char *path, struct failure *why)
{
	return failure_set(
		why, -errno, "can't create the log directory %s: %s", path, strerror(errno));
}

static int make(const char *path, struct failure *why)
{
	return mkdir(path, 0777) == 0 ? 0 : not_made(path, why);
}

/* mkdir -p; what is there already need not be ours to write to. */
static int make_all(char *path, struct failure *why)
{
	struct stat st;
	int rc = 0;

	for (char *slash = path + 1; rc == 0 && (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (stat(path, &st) < 0 && errno == ENOENT && mkdir(path, 0777) < 0 &&
			errno != EEXIST)
			rc = not_made(path, why);
		*slash = '/';
	}
	if (rc == 0 && mkdir(path, 0777) < 0 && errno != EEXIST)
		rc = not_made(path, why);
	return rc;
}

int tree_make_base(const char *log_dir, const char *where, struct failure *why)
{
	struct failure reason = { 0 };
	char *path = strdup(log_dir);
	int rc = path ? make_all(path, &reason) : failure_oom(why);

	free(path);
	if (rc == 0 && access(log_dir, W_OK | X_OK) < 0)
		rc = failure_set(&reason, -errno, "can't write to the log directory %s: %s",
			log_dir, strerror(errno));
	return rc < 0 ? failure_usage(why, "%s: %s", where, reason.text) : 0;
}

static int make_own_base(
	const char *const *env, struct arena *arena, struct log_tree *ret, struct failure *why)
{
	struct failure reason = { 0 };
	int rc;

	ret->own = arena_alloc(arena, sizeof *ret->own);
	if (!ret->own)
		return failure_oom(why);
	fd_closep(&ret->lock);
	rc = tmp_dir_make(env, "launchd_logs_", TMP_DIR_KEPT, ret->own, &ret->lock, &reason);
	if (rc < 0)
		return failure_set(why, rc,
			"can't create a log directory: %s; choose one with --log-dir DIR",
			reason.text);
	(void)failure_copy(why, &reason);
	return 0;
}

/* The base by its absolute path, as workers may change their directory. */
static int make_base(const char *log_dir, struct arena *arena, char **ret, struct failure *why)
{
	char *here = *log_dir == '/' ? NULL : get_current_dir_name();

	if (*log_dir != '/' && !here)
		return failure_set(why, -errno, "log directory %s: %s", log_dir, strerror(errno));
	*ret = here ? arena_printf(arena, "%s/%s", here, log_dir) : arena_strdup(arena, log_dir);
	free(here);
	return arena_failed(arena) ? failure_oom(why) : make_all(*ret, why);
}

/* Eight of the letters that Python's tempfile takes. */
static int random_name(char ret[RANDOM_LEN + 1], struct failure *why)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	unsigned char bytes[RANDOM_LEN];
	int rc = secret_draw(bytes, sizeof bytes, why);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < RANDOM_LEN; i++)
		ret[i] = letters[bytes[i] % (sizeof letters - 1)];
	ret[RANDOM_LEN] = '\0';
	return 0;
}

int tree_make_run(const char *log_dir, const char *run_id, const char *const *env,
	struct arena *arena, struct log_tree *ret, struct failure *why)
{
	char suffix[RANDOM_LEN + 1];
	char *base = NULL, *id = arena_strdup(arena, run_id);
	int rc = log_dir ? make_base(log_dir, arena, &base, why) :
			   make_own_base(env, arena, ret, why);

	if (rc < 0)
		return rc;
	if (!log_dir)
		base = ret->own->path;
	for (char *c = id; *c; c++)
		*c = *c == '/' ? '_' : *c; /* one directory, whatever the id is */
	for (int i = 0; i < TRIES; i++) {
		char *path;

		rc = random_name(suffix, why);
		if (rc < 0)
			return rc;
		path = arena_printf(arena, "%s/%s_%s", base, id, suffix);
		if (arena_failed(arena))
			return failure_oom(why);
		if (mkdir(path, 0777) == 0) {
			ret->run_dir = path;
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	return failure_set(why, -errno, "can't create anything in the log directory %s: %s", base,
		strerror(errno));
}

bool tree_is_there(const struct log_tree *t)
{
	struct stat st;

	return (!t->own || tmp_dir_is_there(t->own)) && stat(t->run_dir, &st) == 0 &&
		S_ISDIR(st.st_mode);
}

int tree_make_attempt(const char *run_dir, unsigned attempt, unsigned first, unsigned count,
	struct arena *arena, const char **ret, struct failure *why)
{
	const char *dir = arena_printf(arena, "%s/attempt_%u", run_dir, attempt);
	int rc = arena_failed(arena) ? failure_oom(why) : make(dir, why);

	for (unsigned i = first; i < first + count && rc == 0; i++) {
		struct arena_mark mark = arena_mark(arena);
		const char *path = arena_printf(arena, "%s/%u", dir, i);

		rc = arena_failed(arena) ? failure_oom(why) : make(path, why);
		arena_rewind(arena, mark);
	}
	if (rc == 0)
		*ret = dir;
	return rc;
}

const char *tree_log_path(const char *dir, unsigned local_rank, int fd, struct arena *arena)
{
	return arena_printf(arena, "%s/%u/%s.log", dir, local_rank, fd == 1 ? "stdout" : "stderr");
}
