/* job_find.c - see job_find.h */
#include "daemon/ctl/job_find.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "common/vec.h"

static bool has(const struct vec *v, const char *path)
{
	for (size_t i = 0; i < v->count; i++)
		if (strcmp(v->at[i], path) == 0)
			return true;
	return false;
}

static void add_matches(const char *pattern, struct arena *arena, struct vec *ret)
{
	glob_t found;

	if (glob(pattern, 0, NULL, &found) != 0)
		return; /* none, or a directory that is not ours */
	for (size_t i = 0; i < found.gl_pathc; i++)
		if (!has(ret, found.gl_pathv[i]))
			vec_add(arena, ret, arena_strdup(arena, found.gl_pathv[i]));
	globfree(&found);
}

/* A directory of the environment's, whose name may have letters that glob(7) knows. */
static void add_in(const char *dir, const char *rest, struct arena *arena, struct vec *ret)
{
	struct text pattern = { 0 };

	for (const char *p = dir; *p; p++) {
		if (strchr("*?[\\", *p))
			text_add(&pattern, "\\");
		text_add_bytes(&pattern, p, 1);
	}
	text_add(&pattern, rest);
	if (*dir == '/' && !pattern.failed)
		add_matches(text_string(&pattern), arena, ret);
	text_done(&pattern);
}

void job_sockets(const char *const *env, struct arena *arena, struct vec *ret)
{
	const char *user = env_get(env, "XDG_RUNTIME_DIR");

	if (user)
		add_in(user, "/launchd/[0-9]*.sock", arena, ret);
	add_matches("/run/launchd/*/[0-9]*.sock", arena, ret); /* of the unit launchd@.service */
	if (geteuid() == 0) {
		add_matches("/run/user/*/launchd/[0-9]*.sock", arena, ret);
		add_matches("/tmp/launchd-*/[0-9]*.sock", arena, ret);
	} else {
		add_matches(arena_printf(arena, "/tmp/launchd-%u/[0-9]*.sock", (unsigned)geteuid()),
			arena, ret);
	}
}

pid_t job_guard(const char *path)
{
	const char *slash = strrchr(path, '/');

	return (pid_t)strtol(slash ? slash + 1 : path, NULL, 10);
}

/* What a launcher says of its job; false: it can't say. */
static bool describe(struct ctl_link *l, struct text *name, struct text *run_id)
{
	struct failure none = { 0 };
	const cJSON *status;
	cJSON *root;
	const char *text;

	if (ctl_link_ask(l, "status", "", &root, &status, &none) < 0)
		return false;
	text = member_text(l->cjson, status, "name");
	text_add(name, text ? text : "");
	text = member_text(l->cjson, status, "run_id");
	text_add(run_id, text ? text : "");
	l->cjson->free(root);
	return true;
}

/* Sockets of services lie in a directory of the job's name: this is known without an answer. */
static bool is_services(const char *path, const char *job)
{
	static const char top[] = "/run/launchd/";
	size_t len = strlen(job);

	return strncmp(path, top, sizeof top - 1) == 0 &&
		strncmp(path + sizeof top - 1, job, len) == 0 && path[sizeof top - 1 + len] == '/';
}

static bool is_named(struct ctl_link *l, const char *job, bool *ret_silent)
{
	struct text name = { 0 }, run_id = { 0 };
	bool known = describe(l, &name, &run_id);
	bool is = known &&
		(strcmp(text_string(&name), job) == 0 || strcmp(text_string(&run_id), job) == 0);

	*ret_silent = !known;
	text_done(&name);
	text_done(&run_id);
	return is;
}

/* "train (pid 811), eval (pid 900)" */
static int several_found(const struct cjson *cjson, const struct vec *paths, struct failure *why)
{
	struct text list = { 0 };
	int rc;

	for (size_t i = 0; i < paths->count; i++) {
		struct text name = { 0 }, run_id = { 0 };
		struct failure none = { 0 };
		struct ctl_link l;

		if (ctl_link_open(cjson, paths->at[i], &l, &none) < 0)
			continue; /* it has just ended */
		text_printf(&list, "%s%s (pid %d)", list.len > 0 ? ", " : "",
			describe(&l, &name, &run_id) ? text_string(&name) :
						       "one that does not answer",
			(int)job_guard(paths->at[i]));
		text_done(&name);
		text_done(&run_id);
		ctl_link_close(&l);
	}
	rc = failure_set(why, -ENOTUNIQ, "%zu jobs match: %s; name one by --job PID", paths->count,
		text_string(&list));
	text_done(&list);
	return rc;
}

/* silent: a launcher that does not answer; 0: all do */
static int none_found(const char *job, pid_t silent, struct failure *why)
{
	const char *others =
		geteuid() == 0 ? "" : "; root can ask the jobs of others, such as services";

	if (silent > 0)
		return failure_set(why, -ETIMEDOUT,
			"no job \"%s\" was found, but the launcher with pid %d does not answer: it "
			"may be that job's; ask it by --job %d",
			job, (int)silent, (int)silent);
	if (job)
		return failure_set(why, -ESRCH,
			"no job \"%s\" runs on this host%s; launchctl list shows those that do",
			job, others);
	return failure_set(why, -ESRCH, "no job runs on this host%s", others);
}

/* Whether that socket is the job's; NULL: of any. *silent: a launcher that can't say. */
static bool is_meant(const struct cjson *cjson, const char *path, const char *job, pid_t *silent)
{
	struct failure stale = { 0 };
	struct ctl_link l;
	char pid[24];
	bool is, is_silent = false;

	if (ctl_link_open(cjson, path, &l, &stale) < 0)
		return false;
	(void)snprintf(pid, sizeof pid, "%d", (int)job_guard(path));
	is = !job || strcmp(job, pid) == 0 || is_services(path, job) ||
		is_named(&l, job, &is_silent);
	if (is_silent)
		*silent = job_guard(path);
	ctl_link_close(&l);
	return is;
}

int job_find(const char *const *env, const char *job, const struct cjson *cjson,
	struct ctl_link *ret, struct failure *why)
{
	struct arena memory = { 0 };
	struct vec all = { 0 }, meant = { 0 };
	pid_t silent = 0;
	int rc;

	job_sockets(env, &memory, &all);
	for (size_t i = 0; i < all.count; i++)
		if (is_meant(cjson, all.at[i], job, &silent))
			vec_add(&memory, &meant, all.at[i]);
	if (arena_failed(&memory))
		rc = failure_oom(why);
	else if (meant.count == 0)
		rc = none_found(job, silent, why);
	else if (meant.count > 1)
		rc = several_found(cjson, &meant, why);
	else
		rc = ctl_link_open(cjson, meant.at[0], ret, why);
	arena_done(&memory);
	return rc;
}
