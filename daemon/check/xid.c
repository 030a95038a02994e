/* xid.c - see xid.h */
#include "daemon/check/xid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/check/finding.h"
#include "daemon/check/gpu_facts.h"
#include "daemon/check/nvml.h"
#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"

enum { RECORD_MAX = 16384, TOLD_MAX = 16, WATCHED_MAX = 64 };

static const char gpu_xid[] = "gpu_xid";

/* --- what they mean --- */

/* From NVIDIA's Xid catalogue: those after which GPU or node needs a reset, or more. 63 and 94 are
 * not among them: a row that will be remapped is gpu_remap's, and an error that was contained ended
 * the process that had met it. */
static const uint16_t fatal[] = { 46, 48, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, 155,
	156, 158 };
static const uint16_t application[] = { 13, 31, 43, 45, 68, 109 };

static bool is_among(uint64_t xid, const uint16_t *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == xid)
			return true;
	return false;
}

enum xid_kind xid_kind(uint64_t xid)
{
	return is_among(xid, application, sizeof application / sizeof *application) ?
		XID_APPLICATION :
		is_among(xid, fatal, sizeof fatal / sizeof *fatal) ? XID_FATAL :
								     XID_OTHER;
}

/* --- a child that watches --- */

void xids_end(struct xids *x, const char *why)
{
	if (x->state == XIDS_FAILED)
		return;
	(void)snprintf(x->text, sizeof x->text, "%s", why);
	x->state = XIDS_FAILED;
}

static int fail(struct xids *x, const char *what, int error)
{
	(void)snprintf(x->text, sizeof x->text, "%s: %s", what, nvml_words(error));
	x->state = XIDS_FAILED;
	return -1;
}

uint64_t xids_level(const struct xids *x, unsigned gpu)
{
	unsigned count = x ? __atomic_load_n(&x->levels, __ATOMIC_ACQUIRE) : 0;

	return gpu < count && gpu < LEVELS_MAX ? x->level[gpu] : 0;
}

/* What can't be read is 0, as what isn't known. */
static void read_levels(const struct nvml_api *n, struct xids *x)
{
	unsigned count;

	if (n->device_count(&count) != NVML_OK)
		return;
	for (unsigned i = 0; i < count && i < LEVELS_MAX; i++) {
		uint64_t used = 0;
		void *device;

		if (n->device(i, &device) == NVML_OK &&
			gpu_memory_used(n, device, &used) == NVML_OK)
			x->level[i] = used;
	}
	__atomic_store_n(&x->levels, count, __ATOMIC_RELEASE);
}

/* What is watched. An event has a handle, whose number NVML doesn't tell when the GPU is lost. */
struct xid_watching {
	struct nvml_api nvml;
	void *set;
	void *handles[WATCHED_MAX]; /* by number; NULL: it can't be watched */
};

/* One set of events for all GPUs. */
static int register_all(struct xid_watching *w, struct xids *x)
{
	const struct nvml_api *n = &w->nvml;
	unsigned count = 0, registered = 0;
	int rc = n->device_count(&count);

	if (rc != NVML_OK)
		return fail(x, "nvmlDeviceGetCount", rc);
	rc = n->event_set(&w->set);
	if (rc != NVML_OK)
		return fail(x, "nvmlEventSetCreate", rc);
	for (unsigned i = 0; i < count && i < WATCHED_MAX; i++) {
		void *device = NULL;

		rc = n->device(i, &device);
		if (rc == NVML_OK)
			rc = n->event_register(device, NVML_EVENT_XID, w->set);
		if (rc == NVML_OK)
			w->handles[i] = device;
		registered += rc == NVML_OK;
	}
	return registered ? 0 : fail(x, "nvmlDeviceRegisterEvents", rc);
}

static unsigned gpu_of_event(const struct xid_watching *w, const struct nvml_event *e)
{
	unsigned gpu = 0;

	while (gpu < WATCHED_MAX && (!w->handles[gpu] || w->handles[gpu] != e->device))
		gpu++;
	return gpu < WATCHED_MAX ? gpu : XID_GPU_UNKNOWN;
}

static void keep(const struct xid_watching *w, struct xids *x, const struct nvml_event *e)
{
	unsigned at = x->count, gpu = gpu_of_event(w, e);

	if (e->type != NVML_EVENT_XID)
		return;
	if (at < XIDS_MAX)
		x->at[at] = (struct xid_seen){ gpu, e->data };
	__atomic_store_n(&x->count, at + 1, __ATOMIC_RELEASE);
}

void xid_watch(struct xids *x)
{
	enum { WAIT_MS = 3600000 }; /* which NVML's versions limit differently */
	struct xid_watching w = { .set = NULL };
	const struct nvml_api *n = &w.nvml;
	struct failure why = { 0 };
	int rc = nvml_load(&w.nvml, &why);

	if (rc < 0) {
		(void)snprintf(x->text, sizeof x->text, "%.*s", (int)sizeof x->text - 1, why.text);
		x->state = XIDS_FAILED;
		return;
	}
	rc = n->init();
	if (rc != NVML_OK) {
		(void)fail(x, "nvmlInit", rc);
		return;
	}
	read_levels(n, x);
	if (!n->event_set || !n->event_register || !n->event_wait) {
		(void)fail(x, "nvmlEventSetWait", NVML_NOT_SUPPORTED);
		return;
	}
	if (register_all(&w, x) < 0)
		return;
	x->state = XIDS_WATCHING;
	for (;;) {
		struct nvml_event e = { 0 };

		rc = n->event_wait(w.set, &e, WAIT_MS);
		if (rc == NVML_OK)
			keep(&w, x, &e);
		else if (rc != NVML_TIMEOUT)
			break; /* a GPU that is lost may say so again and again */
	}
	(void)fail(x, "nvmlEventSetWait", rc);
}

/* --- the check --- */

/* One that was found, and where. */
struct sighting {
	char where[64];
	uint64_t xid;
};

struct sightings {
	struct sighting at[TOLD_MAX]; /* fatal ones, each once */
	unsigned count, others, applications;
};

static void sight(struct sightings *s, const char *where, uint64_t xid)
{
	enum xid_kind kind = xid_kind(xid);

	s->others += kind == XID_OTHER;
	s->applications += kind == XID_APPLICATION;
	if (kind != XID_FATAL || s->count == TOLD_MAX)
		return;
	for (unsigned i = 0; i < s->count; i++)
		if (s->at[i].xid == xid && strcmp(s->at[i].where, where) == 0)
			return;
	(void)snprintf(s->at[s->count].where, sizeof s->at->where, "%s", where);
	s->at[s->count++].xid = xid;
}

/* "NVRM: Xid (PCI:0000:cb:00): 79, pid=1234, GPU has fallen off the bus." behind "6,1,2,-;" */
static void read_line(struct sightings *s, const char *line)
{
	const char *at = strstr(line, "NVRM: Xid (");
	char where[64], *end;
	unsigned long long xid;

	if (!at)
		return;
	at += strlen("NVRM: Xid (");
	(void)snprintf(where, sizeof where, "%.*s", (int)strcspn(at, ")"), at);
	at = strchr(at, ')');
	if (!at || at[1] != ':')
		return;
	errno = 0;
	xid = strtoull(at + 2, &end, 10);
	if (end != at + 2 && errno == 0)
		sight(s, where, xid);
}

/* The kernel's log gives a record with each read; a file of the tests', several lines. 0 or
 * negative errno. */
static int read_log(const char *path, struct sightings *s)
{
	autoclose fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	static char record[RECORD_MAX];
	size_t kept = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, record + kept, sizeof record - 1 - kept);
		char *line = record, *next;

		if (n < 0 && (errno == EINTR || errno == EPIPE)) /* overwritten meanwhile: go on */
			continue;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n <= 0)
			return 0;
		record[kept + (size_t)n] = '\0';
		for (; (next = strchr(line, '\n')) != NULL; line = next + 1) {
			*next = '\0';
			read_line(s, line);
		}
		kept = strlen(line) < sizeof record / 2 ? strlen(line) : 0;
		memmove(record, line, kept + 1);
	}
}

void xid_seen_where(const struct xid_seen *x, char ret[XID_WHERE_SIZE])
{
	if (x->gpu == XID_GPU_UNKNOWN)
		(void)snprintf(ret, XID_WHERE_SIZE, "a GPU");
	else
		(void)snprintf(ret, XID_WHERE_SIZE, "GPU %u", x->gpu);
}

static void read_watched(const struct xids *x, struct sightings *s)
{
	unsigned count = __atomic_load_n(&x->count, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < count && i < XIDS_MAX; i++) {
		char where[XID_WHERE_SIZE];

		xid_seen_where(&x->at[i], where);
		sight(s, where, x->at[i].xid);
	}
}

static void say(const struct sightings *s, const char *since, struct findings *f)
{
	char more[96] = "";

	for (unsigned i = 0; i < s->count; i++)
		findings_add(f, HEALTH_BAD, gpu_xid, s->at[i].where, "Xid %llu %s",
			(unsigned long long)s->at[i].xid, since);
	if (s->applications + s->others > 0)
		(void)snprintf(more, sizeof more, "; %u of applications, %u others",
			s->applications, s->others);
	if (s->count == 0)
		findings_add(f, HEALTH_GOOD, gpu_xid, "", "none that is fatal %s%s", since, more);
}

static void say_unknown(const struct xids *x, int log, struct findings *f)
{
	if (!x)
		findings_add(f, HEALTH_UNKNOWN, gpu_xid, "", "the kernel's log can't be read: %s",
			strerror(-log));
	else if (x->state == XIDS_FAILED)
		findings_add(f, HEALTH_UNKNOWN, gpu_xid, "",
			"the kernel's log can't be read (%s), and nobody watched: %.*s",
			strerror(-log), (int)sizeof x->text - 1, x->text);
	else
		findings_add(f, HEALTH_UNKNOWN, gpu_xid, "",
			"the kernel's log can't be read (%s), and NVML has not begun to watch",
			strerror(-log));
}

/* The log has it all, but older lines are overwritten; a GPU has another name there, so that one
 * source is told, not both. */
static void look(const struct task *t, struct task_answer *a)
{
	const struct quick_input *in = t->owner;
	struct sightings in_log = { 0 }, watched = { 0 };
	int log = in->kmsg ? read_log(in->kmsg, &in_log) : -ENOENT;

	if (in->xids)
		read_watched(in->xids, &watched);
	if (in_log.count > 0 || (log == 0 && watched.count == 0))
		say(&in_log, "in the kernel's log", &a->findings);
	else if (watched.count > 0 || (in->xids && in->xids->state == XIDS_WATCHING))
		say(&watched, "since launchd has watched", &a->findings);
	else
		say_unknown(in->xids, log, &a->findings);
}

void xid_check_add(const struct quick_input *in, struct tasks *all)
{
	const struct task t = {
		.work = look, .owner = in, .check = gpu_xid, .limit_ms = NODE_LIMIT_MS
	};

	tasks_add(all, &t);
}

bool xid_was_checked(const struct findings *found)
{
	for (unsigned i = 0; i < found->count; i++)
		if (strcmp(found->at[i].check, gpu_xid) == 0)
			return true;
	return false;
}
