/* xid.c - see xid.h */
#include "daemon/check/xid.h"

#include <stdio.h>

#include "common/failure.h"
#include "daemon/check/gpu_facts.h"
#include "daemon/check/gpu_shown.h"
#include "daemon/check/nvml.h"
#include "daemon/facts/devices.h"

enum { WATCHED_MAX = 64 };

/* --- what they mean --- */

/* From NVIDIA's Xid catalogue: those whose immediate action is RESET_GPU, RESTART_BM (79) or
 * RESTART_VM (151), and those whose workflow ends there: 48 and 74, and 144 to 150 of Blackwell's
 * NVLinks, unless the line in the log says Nonfatal. 63 and 94 are not among them: a row that will
 * be remapped is gpu_remap's, and an error that was contained ended the process that had met it;
 * nor is 154, which repeats what gpu_recovery asks. */
static const uint16_t fatal[] = { 46, 48, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143,
	144, 145, 146, 147, 148, 149, 150, 151, 155, 156, 158 };
/* Those after which it asks to look at the application: CHECK_APP/CUDA, or a workflow that begins
 * there. */
static const uint16_t application[] = { 11, 13, 25, 31, 32, 43, 45, 68, 69, 80 };

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

void xid_seen_where(const struct xid_seen *x, char ret[XID_WHERE_SIZE])
{
	if (x->gpu == XID_GPU_UNKNOWN)
		(void)snprintf(ret, XID_WHERE_SIZE, "a GPU");
	else
		(void)snprintf(ret, XID_WHERE_SIZE, "GPU %u", x->gpu);
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

/* One set of events for all GPUs of the job. */
static int register_all(struct xid_watching *w, struct xids *x, const char *visible)
{
	const struct nvml_api *n = &w->nvml;
	unsigned count = 0, registered = 0;
	int rc = n->device_count(&count);

	if (rc != NVML_OK)
		return fail(x, "nvmlDeviceGetCount", rc);
	if (visible && devices_visible(visible, count) == 0) {
		xids_end(x, "the job uses no GPU");
		return -1;
	}
	rc = n->event_set(&w->set);
	if (rc != NVML_OK)
		return fail(x, "nvmlEventSetCreate", rc);
	for (unsigned i = 0; i < count && i < WATCHED_MAX; i++) {
		void *device = NULL;

		rc = n->device(i, &device);
		if (rc == NVML_OK && !gpu_may_be_shown(visible, n, device, i, count))
			continue;
		if (rc == NVML_OK)
			rc = n->event_register(device, NVML_EVENT_XID, w->set);
		if (rc == NVML_OK)
			w->handles[i] = device;
		registered += rc == NVML_OK;
	}
	if (registered == 0 && rc == NVML_OK)
		xids_end(x, "the job uses none of these GPUs");
	else if (registered == 0)
		(void)fail(x, "nvmlDeviceRegisterEvents", rc);
	return registered ? 0 : -1;
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

void xid_watch(struct xids *x, const char *visible)
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
	if (register_all(&w, x, visible) < 0)
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
