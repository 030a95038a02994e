/* job_find.c - see job_find.h */
#include "daemon/ctl/job_find.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/num.h"
#include "common/text.h"
#include "daemon/ctl/job_sockets.h"

/* How sure it is that a job is the one that was named; the surest counts. */
enum fit {
	FIT_NONE,
	FIT_OTHERS,  /* another user's says that it has the name */
	FIT_STRANGE, /* the pid is that of another user's guard in another pid namespace */
	FIT_OWN,     /* this user's says that it has the name */
	FIT_SERVICE, /* it has the service's directory */
	FIT_FOREIGN, /* the pid is that of this user's guard in another pid namespace */
	FIT_PID,     /* the pid is its guard's here, which nobody else can have */
};

static bool job_says(
	const struct jobs *jobs, const struct job_seen *j, const char *member, const char *job)
{
	const char *text = j->root ? member_text(jobs->cjson, j->status, member) : NULL;

	return text && strcmp(text, job) == 0;
}

/* 0: it is none. */
static pid_t pid_of_job(const char *job)
{
	uint64_t pid;

	return job && num_parse(job, 1, INT32_MAX, &pid) == 0 ? (pid_t)pid : 0;
}

/* Without an answer: by its socket's name and place. */
static enum fit fit_of_place(const struct job_seen *j, const char *job)
{
	pid_t pid = pid_of_job(job);

	if (pid > 0 && pid == j->here)
		return FIT_PID;
	if (pid > 0 && pid == j->guard)
		return j->uid == geteuid() ? FIT_FOREIGN : FIT_STRANGE;
	return j->place && strcmp(j->place, job) == 0 ? FIT_SERVICE : FIT_NONE;
}

static enum fit fit_of(const struct jobs *jobs, const struct job_seen *j, const char *job)
{
	enum fit fit = fit_of_place(j, job);

	if (fit == FIT_NONE && (job_says(jobs, j, "name", job) || job_says(jobs, j, "run_id", job)))
		fit = j->uid == geteuid() ? FIT_OWN : FIT_OTHERS;
	return fit;
}

/* Moves the jobs of the surest kind to the front. Returns the kind. */
static enum fit sort_out(struct jobs *jobs, const char *job, size_t *ret_count)
{
	enum fit best = FIT_NONE;

	*ret_count = 0;
	for (size_t i = 0; i < jobs->count; i++) {
		struct job_seen j = jobs->at[i];
		enum fit fit = fit_of(jobs, &j, job);

		if (fit == FIT_NONE || fit < best)
			continue;
		if (fit > best)
			*ret_count = 0;
		best = fit;
		jobs->at[i] = jobs->at[*ret_count];
		jobs->at[(*ret_count)++] = j;
	}
	return best;
}

static bool has_one(const struct jobs *jobs, const void *job)
{
	for (size_t i = 0; i < jobs->count; i++)
		if (fit_of(jobs, &jobs->at[i], job) != FIT_NONE)
			return true;
	return false;
}

/* "train (pid 811), eval (pid 900)" */
static int several_found(const struct jobs *jobs, size_t count, struct failure *why)
{
	struct text list = { 0 };
	int rc;

	for (size_t i = 0; i < count; i++) {
		const struct job_seen *j = &jobs->at[i];
		const char *name = j->root ? member_text(jobs->cjson, j->status, "name") : NULL;

		text_add(&list, list.len > 0 ? ", " : "");
		name = name ? name : j->root ? "" : "one that does not answer";
		text_add_shown(&list, name, strlen(name)); /* another user may have named it */
		text_printf(&list, " (pid %d", (int)(j->here > 0 ? j->here : j->guard));
		if (j->uid != geteuid())
			text_printf(&list, ", uid %u", (unsigned)j->uid);
		text_add(&list, ")");
	}
	rc = failure_set(why, -ENOTUNIQ, "%zu jobs match: %s; name one by --job PID", count,
		text_string(&list));
	text_done(&list);
	return rc;
}

/* One that has not answered may be the one that is meant. */
static int none_found(const struct jobs *jobs, const char *job, struct failure *why)
{
	const char *others =
		geteuid() == 0 ? "" : "; root can ask the jobs of others, such as services";

	for (size_t i = 0; i < jobs->count; i++) {
		const struct job_seen *j = &jobs->at[i];
		bool busy = j->why.code == -EBUSY;

		if (!j->root && j->why.code != -ECONNRESET)
			return failure_set(why, busy ? -EBUSY : -ETIMEDOUT,
				"no job %s%s%swas found, but the launcher with pid %d %s: it may "
				"be that job's; ask it by --job %d",
				job ? "\"" : "", job ? job : "", job ? "\" " : "", (int)j->guard,
				busy ? "is busy with other clients" : "does not answer",
				(int)j->guard);
	}
	if (jobs->cut)
		return failure_set(why, -ESRCH,
			"no such job was found, but a user has more sockets than are looked at; "
			"name the job by --job PID");
	if (job)
		return failure_set(why, -ESRCH,
			"no job \"%s\" runs on this host%s; launchctl list shows those that do",
			job, others);
	return failure_set(why, -ESRCH, "no job runs on this host%s", others);
}

/* The first of them. */
static int take_first(struct jobs *jobs, struct ctl_link *ret, struct failure *why)
{
	struct job_seen *j = &jobs->at[0];

	if (j->link.fd < 0)
		return failure_set(why, -EBUSY,
			"the launcher with pid %d is busy: too many connections wait for it",
			(int)j->guard);
	*ret = j->link;
	j->link.fd = -1;
	j->link.in = (struct text){ 0 };
	return 0;
}

static int find_named(struct jobs *jobs, const char *job, struct ctl_link *ret, struct failure *why)
{
	size_t count;

	if (sort_out(jobs, job, &count) < FIT_SERVICE) {
		jobs_ask(jobs, has_one, job);
		(void)sort_out(jobs, job, &count);
	}
	if (count == 0)
		return none_found(jobs, job, why);
	return count > 1 ? several_found(jobs, count, why) : take_first(jobs, ret, why);
}

/* Another user's that doesn't answer keeps nobody from the only one that does. */
static int find_only(struct jobs *jobs, struct ctl_link *ret, struct failure *why)
{
	size_t count = 0;

	if (jobs->count > 1)
		jobs_ask(jobs, jobs_own_answered, NULL);
	for (size_t i = 0; i < jobs->count; i++) {
		struct job_seen j = jobs->at[i];

		if (jobs->count > 1 && !j.root && (j.uid != geteuid() || j.why.code == -ECONNRESET))
			continue;
		jobs->at[i] = jobs->at[count];
		jobs->at[count++] = j;
	}
	if (count == 0)
		return none_found(jobs, NULL, why);
	return count > 1 ? several_found(jobs, count, why) : take_first(jobs, ret, why);
}

/* By the pid alone, so that no crowd is in the way. False: there is none that is so sure. */
static bool find_guard(const char *const *env, const char *job, struct jobs *jobs,
	struct ctl_link *ret, int *ret_rc, struct failure *why)
{
	size_t count;
	bool found;

	jobs_open(jobs, env, pid_of_job(job), jobs->cjson, jobs->arena);
	found = sort_out(jobs, job, &count) == FIT_PID;
	if (found)
		*ret_rc = take_first(jobs, ret, why);
	jobs_close(jobs);
	return found;
}

int job_find(const char *const *env, const char *job, const struct cjson *cjson,
	struct ctl_link *ret, struct failure *why)
{
	struct arena memory = { 0 };
	struct jobs jobs = { .cjson = cjson, .arena = &memory };
	int rc;

	if (pid_of_job(job) > 0 && find_guard(env, job, &jobs, ret, &rc, why)) {
		arena_done(&memory);
		return rc;
	}
	jobs_open(&jobs, env, 0, cjson, &memory);
	if (arena_failed(&memory))
		rc = failure_oom(why);
	else
		rc = job ? find_named(&jobs, job, ret, why) : find_only(&jobs, ret, why);
	jobs_close(&jobs);
	arena_done(&memory);
	return rc;
}
