/* xid_check.c - see xid_check.h */
#include "daemon/check/xid_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/check/finding.h"
#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"
#include "daemon/check/xid.h"

enum { XID_OFF_THE_BUS = 79 };

static const char gpu_xid[] = "gpu_xid";
static const char in_log[] = "in the kernel's log", watched[] = "since launchd has watched";

_Static_assert(sizeof(struct xid_log) <= sizeof((struct task_answer *)0)->more,
	"a task's own answer has no room");

/* What becomes of a fatal Xid. */
enum xid_fate {
	FATE_BAD,
	FATE_STARTED_SINCE,
	FATE_RECOVERED,
	FATE_ELSEWHERE,
	FATE_UNSURE, /* whether its GPU is the job's isn't known */
	FATES
};

/* What a source has told, judged. */
struct xid_sum {
	unsigned fates[FATES], others, applications;
};

struct xid_judging {
	const struct xid_log *log;
	const struct xids *xids;
	const struct xid_gpus *gpus;
	bool all_known; /* of each GPU that is the job's its place is known */
	bool unsure;    /* and of these not even which they are */
	struct findings *ret;
};

/* --- the child --- */

static void look_log(const struct task *t, struct task_answer *a)
{
	const struct quick_input *in = t->owner;
	struct xid_log *log = (struct xid_log *)a->more;

	if (in->kmsg)
		xid_log_read(in->kmsg, log);
	else
		log->rc = -ENOENT;
}

void xid_check_add(const struct quick_input *in, struct tasks *all)
{
	const struct task t = {
		.work = look_log, .owner = in, .check = gpu_xid, .limit_ms = NODE_LIMIT_MS
	};

	tasks_add(all, &t);
}

/* --- the parent --- */

static const struct xid_gpu *gpu_of_place(
	const struct xid_gpus *gpus, const struct pci_place *place)
{
	for (unsigned i = 0; i < gpus->count; i++)
		if (gpus->at[i].placed && pci_place_same(&gpus->at[i].place, place))
			return &gpus->at[i];
	return NULL;
}

static const struct xid_gpu *gpu_numbered(const struct xid_gpus *gpus, unsigned number)
{
	for (unsigned i = 0; i < gpus->count; i++)
		if (gpus->at[i].number == number)
			return &gpus->at[i];
	return NULL;
}

static bool all_are_known(const struct quick_input *in, const struct xid_gpus *gpus)
{
	unsigned shown = 0;

	for (unsigned i = 0; i < gpus->count; i++)
		shown += gpus->at[i].placed ? gpus->at[i].shown : 0;
	return in->visible && shown == gpus->shown;
}

/* A GPU that no entry shows is not the job's, unless there is an entry that shows none: a number
 * among GPUs of several models, a MIG device that NVML can't place. UUIDs tell. */
static bool are_unsure(const struct quick_input *in, const struct xid_gpus *gpus)
{
	unsigned shown = 0;

	for (unsigned i = 0; i < gpus->count; i++)
		shown += gpus->at[i].shown;
	return in->visible && strncmp(in->visible, "GPU-", 4) != 0 && shown < gpus->shown;
}

static enum xid_fate fate_of_logged(const struct xid_judging *j, const struct xid_logged *x)
{
	const struct xid_gpu *gpu = gpu_of_place(j->gpus, &x->place);
	bool hidden = gpu ? gpu->shown == 0 : j->all_known;

	if (hidden && !j->unsure)
		return FATE_ELSEWHERE;
	if (x->since == XID_STARTED_SINCE)
		return FATE_STARTED_SINCE;
	if (x->since == XID_RECOVERED_SINCE || (gpu && gpu->sound))
		return FATE_RECOVERED;
	return hidden ? FATE_UNSURE : FATE_BAD;
}

/* A GPU that fell off the bus while the job ran, and answers all the same, is not trusted. */
static enum xid_fate fate_of_seen(const struct xid_judging *j, const struct xid_seen *x)
{
	const struct xid_gpu *gpu = gpu_numbered(j->gpus, x->gpu);
	bool hidden = gpu && gpu->shown == 0;

	if (hidden && !j->unsure)
		return FATE_ELSEWHERE;
	for (unsigned i = 0; gpu && gpu->placed && i < j->log->count; i++)
		if (j->log->at[i].xid == x->xid && j->log->at[i].since == XID_STARTED_SINCE &&
			pci_place_same(&j->log->at[i].place, &gpu->place))
			return FATE_STARTED_SINCE;
	if (gpu && gpu->sound && x->xid != XID_OFF_THE_BUS)
		return FATE_RECOVERED;
	return hidden ? FATE_UNSURE : FATE_BAD;
}

static void say_fate(const struct xid_judging *j, enum xid_fate fate, const char *where,
	uint64_t xid, const char *source)
{
	static const char *const words[FATES] = {
		[FATE_BAD] = "",
		[FATE_STARTED_SINCE] = ", before this GPU was last initialised",
		[FATE_RECOVERED] = ", but its driver asks for no recovery",
		[FATE_UNSURE] = ": whether the job uses this GPU isn't known",
	};
	static const enum health health[FATES] = { [FATE_BAD] = HEALTH_BAD,
		[FATE_STARTED_SINCE] = HEALTH_GOOD,
		[FATE_RECOVERED] = HEALTH_GOOD,
		[FATE_UNSURE] = HEALTH_UNKNOWN };

	if (words[fate])
		findings_add(j->ret, health[fate], gpu_xid, where, "Xid %llu %s%s",
			(unsigned long long)xid, source, words[fate]);
}

static void say_sum(const struct xid_judging *j, const struct xid_sum *s, const char *source)
{
	unsigned over = s->fates[FATE_STARTED_SINCE] + s->fates[FATE_RECOVERED];
	char more[96] = "", elsewhere[64] = "";

	if (s->fates[FATE_BAD] + s->fates[FATE_UNSURE] > 0)
		return;
	if (s->applications + s->others > 0)
		(void)snprintf(more, sizeof more, "; %u of applications, %u others",
			s->applications, s->others);
	if (s->fates[FATE_ELSEWHERE] > 0)
		(void)snprintf(elsewhere, sizeof elsewhere,
			"; %u of GPUs that the job does not use", s->fates[FATE_ELSEWHERE]);
	findings_add(j->ret, HEALTH_GOOD, gpu_xid, "", "none that is %s %s%s%s",
		over > 0 ? "fatal and still counts" : "fatal", source, more, elsewhere);
}

static struct xid_sum sum_of_log(const struct xid_judging *j)
{
	struct xid_sum s = { .applications = j->log->applications, .others = j->log->others };

	for (unsigned i = 0; i < j->log->count; i++)
		s.fates[fate_of_logged(j, &j->log->at[i])]++;
	return s;
}

static void say_log(const struct xid_judging *j, const struct xid_sum *s)
{
	for (unsigned i = 0; i < j->log->count; i++) {
		const struct xid_logged *x = &j->log->at[i];

		say_fate(j, fate_of_logged(j, x), x->where, x->xid, in_log);
	}
	say_sum(j, s, in_log);
}

/* Whether it is the first fatal one of its kind and GPU. */
static bool is_first_seen(const struct xids *x, unsigned at)
{
	for (unsigned i = 0; i < at; i++)
		if (x->at[i].gpu == x->at[at].gpu && x->at[i].xid == x->at[at].xid)
			return false;
	return xid_kind(x->at[at].xid) == XID_FATAL;
}

static unsigned count_seen(const struct xids *x)
{
	unsigned count = x ? __atomic_load_n(&x->count, __ATOMIC_ACQUIRE) : 0;

	return count < XIDS_MAX ? count : XIDS_MAX;
}

static struct xid_sum sum_of_seen(const struct xid_judging *j)
{
	struct xid_sum s = { .others = 0 };

	for (unsigned i = 0; i < count_seen(j->xids); i++) {
		enum xid_kind kind = xid_kind(j->xids->at[i].xid);

		s.others += kind == XID_OTHER;
		s.applications += kind == XID_APPLICATION;
		if (is_first_seen(j->xids, i))
			s.fates[fate_of_seen(j, &j->xids->at[i])]++;
	}
	return s;
}

static void say_seen(const struct xid_judging *j, const struct xid_sum *s)
{
	for (unsigned i = 0; i < count_seen(j->xids); i++) {
		const struct xid_seen *x = &j->xids->at[i];
		char where[XID_WHERE_SIZE];

		xid_seen_where(x, where);
		if (is_first_seen(j->xids, i))
			say_fate(j, fate_of_seen(j, x), where, x->xid, watched);
	}
	say_sum(j, s, watched);
}

static void say_unknown(const struct xid_judging *j)
{
	const char *why = strerror(-j->log->rc);
	const struct xids *x = j->xids;

	if (!x)
		findings_add(j->ret, HEALTH_UNKNOWN, gpu_xid, "",
			"the kernel's log can't be read: %s", why);
	else if (x->state == XIDS_FAILED)
		findings_add(j->ret, HEALTH_UNKNOWN, gpu_xid, "",
			"the kernel's log can't be read (%s), and nobody watched: %.*s", why,
			(int)sizeof x->text - 1, x->text);
	else
		findings_add(j->ret, HEALTH_UNKNOWN, gpu_xid, "",
			"the kernel's log can't be read (%s), and NVML has not begun to watch",
			why);
}

static const struct task *task_of(const struct tasks *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->at[i].work == look_log)
			return all->at[i].answer->done ? &all->at[i] : NULL;
	return NULL;
}

/* A child has written it. */
static void copy_log(const struct task *t, struct xid_log *ret)
{
	memcpy(ret, t->answer->more, sizeof *ret);
	ret->count = ret->count < XID_LOG_MAX ? ret->count : XID_LOG_MAX;
	for (unsigned i = 0; i < ret->count; i++)
		ret->at[i].where[sizeof ret->at[i].where - 1] = '\0';
}

/* The log has it all, but older lines are overwritten; a GPU has another name there, so that one
 * source is told, not both. */
void xid_check_sum_up(const struct quick_input *in, const struct tasks *all,
	const struct xid_gpus *gpus, struct findings *ret)
{
	const struct task *t = task_of(all);
	struct xid_log log;
	struct xid_judging j = { .log = &log,
		.xids = in->xids,
		.gpus = gpus,
		.all_known = all_are_known(in, gpus),
		.unsure = are_unsure(in, gpus),
		.ret = ret };
	struct xid_sum logged, seen;

	if (!t) /* the finding says why */
		return;
	copy_log(t, &log);
	logged = sum_of_log(&j);
	seen = sum_of_seen(&j);
	if (logged.fates[FATE_BAD] > 0 || (log.rc == 0 && seen.fates[FATE_BAD] == 0))
		say_log(&j, &logged);
	else if (seen.fates[FATE_BAD] + seen.fates[FATE_UNSURE] > 0 ||
		(in->xids && in->xids->state == XIDS_WATCHING))
		say_seen(&j, &seen);
	else
		say_unknown(&j);
}

bool xid_was_checked(const struct findings *found)
{
	return findings_find(found, gpu_xid, NULL) && findings_find(found, "driver_version", NULL);
}
