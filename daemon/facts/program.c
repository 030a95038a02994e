/* program.c - see program.h */
#include "daemon/facts/program.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/vec.h"
#include "common/words.h"
#include "config/settings.h"

/* 0 if path is a file that can be executed, else negative errno. */
static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return access(path, X_OK) < 0 ? -errno : 0;
}

/* A name without a slash is searched on PATH as execvp(3) does: a file that may not be executed is
 * passed over, but remembered. 0 or negative errno; *ret only for 0. */
static int search(struct arena *a, const char *const *env, const char *name, const char **ret)
{
	const char *path = env_get(env, "PATH");
	int rc = -ENOENT;

	if (strchr(name, '/')) {
		*ret = name;
		return executable(name);
	}
	for (path = path ? path : "/bin:/usr/bin"; *name; path++) {
		size_t len = strcspn(path, ":");
		const char *file = len ?
			arena_printf(a, "%.*s/%s", (int)len, path, name) :
			arena_printf(a, "./%s", name); /* an empty entry is this directory */
		int now = executable(file);

		if (now == 0) {
			*ret = file;
			return 0;
		}
		if (now == -EACCES)
			rc = now;
		path += len;
		if (!*path)
			break;
	}
	return rc;
}

static int refuse(struct failure *why, const char *what, const char *name, int rc)
{
	bool absent = rc == -ENOENT || rc == -ENOTDIR;

	return failure_set(why, absent ? -ENOENT : -EACCES, "%s%s: %s", what, name,
		absent ? "no such file" : strerror(-rc));
}

static int find_python(const struct settings *s, const char *const *env, struct arena *a,
	struct program *ret, struct failure *why)
{
	const char *given = settings_text(s, SET_PYTHON);
	int rc;

	if (given) {
		ret->from = settings_where(s, SET_PYTHON);
		rc = search(a, env, given, &ret->path);
		return rc == 0 ? 0 : refuse(why, arena_printf(a, "%s: ", ret->from), given, rc);
	}
	ret->from = "PATH";
	if (search(a, env, "python3", &ret->path) == 0 || search(a, env, "python", &ret->path) == 0)
		return 0;
	return failure_set(
		why, -ENOENT, "neither python3 nor python is on PATH; --python names another one");
}

/* Python runs a file, and a directory or archive that has a __main__.py. */
static int check_script(struct arena *a, const char *script, struct failure *why)
{
	struct stat st;

	if (strcmp(script, "-") == 0)
		return 0;
	if (stat(script, &st) < 0)
		return refuse(why, "", script, -errno);
	if (S_ISDIR(st.st_mode) && access(arena_printf(a, "%s/__main__.py", script), R_OK) < 0)
		return failure_set(why, -EACCES, "%s: a directory without a __main__.py", script);
	return access(script, R_OK) < 0 ? refuse(why, "", script, -errno) : 0;
}

/* "launchd python -u train.py", "launchd python -m train" would run the program python by Python.
 */
static bool is_python_before_script(const struct settings *s)
{
	const char *slash = strrchr(s->script, '/');
	const char *name = slash ? slash + 1 : s->script;

	if (strncmp(name, "python", 6) != 0 || name[6 + strspn(name + 6, "0123456789.")])
		return false;
	if (s->args.count > 0 && strcmp(s->args.at[0], "-m") == 0)
		return true;
	for (size_t i = 0; i < s->args.count; i++) {
		size_t len = strlen(s->args.at[i]);

		if (len > 3 && strcmp(s->args.at[i] + len - 3, ".py") == 0)
			return true;
	}
	return false;
}

int program_find(const struct settings *s, const char *const *env, struct arena *arena,
	struct program *ret, struct failure *why)
{
	int rc;

	if (settings_flag(s, SET_NO_PYTHON)) {
		ret->from = "script";
		rc = search(arena, env, s->script, &ret->path);
		return rc == 0 ? 0 : refuse(why, "", s->script, rc);
	}
	if (!settings_flag(s, SET_MODULE) && is_python_before_script(s))
		return failure_set(why, -EINVAL,
			"the script is \"%s\": launchd starts Python itself, so drop that word (or "
			"keep it and add --no_python --use_env)",
			s->script);
	if (!settings_flag(s, SET_MODULE)) {
		rc = check_script(arena, s->script, why);
		if (rc < 0)
			return rc;
	}
	return find_python(s, env, arena, ret, why);
}

int wrapper_find(const struct settings *s, const char *const *env, struct arena *arena,
	struct wrapper *ret, struct failure *why)
{
	const char *text = settings_text(s, SET_WRAP);
	const char *where = settings_where(s, SET_WRAP);
	struct wrapper w = { 0 };
	const char *fault;
	int rc;

	*ret = w;
	if (!text)
		return 0;
	if (words_split(text, arena, &w.words, &fault) < 0)
		return failure_set(
			why, -EINVAL, "%s: \"%s\" is not a command: %s", where, text, fault);
	if (w.words.count == 0)
		return arena_failed(arena) ?
			failure_oom(why) :
			failure_set(why, -EINVAL, "%s: there is no command in it", where);
	rc = search(arena, env, w.words.at[0], &w.path);
	if (rc < 0) {
		w.path = NULL;
		(void)refuse(&w.why, arena_printf(arena, "%s: ", where), w.words.at[0], rc);
	}
	*ret = w;
	return 0;
}
