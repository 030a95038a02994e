/* gpu_check.c - see gpu_check.h */
#include "daemon/check/gpu_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/failure.h"
#include "common/num.h"
#include "common/words.h"
#include "daemon/check/finding.h"
#include "daemon/check/gpu_facts.h"
#include "daemon/check/gpu_shown.h"
#include "daemon/check/node_check.h"
#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"
#include "daemon/check/xid_check.h"
#include "daemon/facts/devices.h"
#include "daemon/os/nvidia.h"

enum { GPUS_MAX = 64 };

/* What the driver's task finds. */
struct driver {
	unsigned present; /* GPUs of this node, by NVML */
	bool answered;
	bool mixed; /* numbers in CUDA_VISIBLE_DEVICES are not NVML's */
	struct nvidia_seen bus;
};

/* What a GPU's does. */
struct gpu_identity {
	char name[NVML_NAME_SIZE], uuid[NVML_UUID_SIZE];
	struct pci_place place;
	bool placed;    /* its place is known */
	unsigned shown; /* by so many entries of CUDA_VISIBLE_DEVICES; 0: CUDA doesn't show it */
};

_Static_assert(sizeof(struct driver) <= sizeof((struct task_answer *)0)->more &&
		sizeof(struct gpu_identity) <= sizeof((struct task_answer *)0)->more,
	"a task's own answer has no room");

static const char gpu_driver[] = "gpu_driver";

/* --- in the children --- */

/* NVML sees no GPU: of those on the bus that are this machine's to use, and that have device files
 * here, it would. Without any the finding is left out. */
static void say_none_seen(
	const struct quick_input *in, struct task_answer *a, const char *why, bool asked)
{
	struct driver *d = (struct driver *)a->more;
	unsigned usable, there = d->bus.present;

	d->answered = true;
	task_step(a, "opening the GPUs' device files");
	usable = asked && there > 0 ? nvidia_usable(in->sys_root, &d->bus) : 0;
	if (usable > 0)
		findings_add(&a->findings, HEALTH_BAD, gpu_driver, "",
			"%s, but %u of NVIDIA's GPUs %s its driver, and their device files are here",
			why, usable, usable == 1 ? "has" : "have");
	else if (there > 0)
		findings_add(&a->findings, HEALTH_UNKNOWN, gpu_driver, "",
			"%s; %u of NVIDIA's GPUs %s on the PCI bus, but not for this node's or container's "
			"programs",
			why, there, there == 1 ? "is" : "are");
}

/* Loads NVML and begins. An enum nvml_return; negative errno: it can't be loaded. */
static int begin(struct task_answer *a, struct nvml_api *ret, struct failure *why)
{
	int rc;

	task_step(a, "loading NVML");
	rc = nvml_load(ret, why);
	if (rc < 0)
		return rc;
	task_step(a, "nvmlInit");
	return ret->init();
}

/* False: the finding is added. */
static bool begin_driver(const struct quick_input *in, struct task_answer *a, struct nvml_api *ret)
{
	struct failure why = { 0 };
	int rc = begin(a, ret, &why);

	if (rc == -ELIBACC)
		say_none_seen(in, a, "NVML's library is not here", false);
	else if (rc < 0)
		findings_add(&a->findings, HEALTH_UNKNOWN, gpu_driver, "", "%s", why.text);
	else if (nvml_is_absent(rc))
		say_none_seen(in, a, nvml_words(rc), true);
	else if (rc != NVML_OK)
		findings_add(&a->findings,
			nvml_is_bad(rc) || rc == NVML_UNKNOWN_ERROR ? HEALTH_BAD : HEALTH_UNKNOWN,
			gpu_driver, "", "nvmlInit: %s", nvml_words(rc));
	return rc == NVML_OK;
}

/* A GPU that nothing holds open (nvidia-persistenced) sleeps, and the driver wakes one after the
 * other: the children that ask would wait for one another, and those who come last too long. */
static void wake_gpus(const struct nvml_api *nvml, unsigned count, struct task_answer *a)
{
	for (unsigned i = 0; i < count; i++) {
		void *device;

		task_step(a, "nvmlDeviceGetHandleByIndex of GPU %u", i);
		(void)nvml->device(i, &device); /* what it says, the GPU's own child will */
	}
}

static void ask_driver(const struct task *t, struct task_answer *a)
{
	const struct quick_input *in = t->owner;
	struct driver *d = (struct driver *)a->more;
	struct findings *f = &a->findings;
	char version[NVML_VERSION_SIZE] = "";
	struct nvml_api nvml;
	int rc;

	task_step(a, "the PCI bus");
	nvidia_look(in->sys_root, &d->bus);
	if (!begin_driver(in, a, &nvml))
		return;
	task_step(a, "nvmlDeviceGetCount");
	rc = nvml.device_count(&d->present);
	if (rc != NVML_OK) {
		findings_add(
			f, HEALTH_BAD, gpu_driver, "", "nvmlDeviceGetCount: %s", nvml_words(rc));
		return;
	}
	task_step(a, "nvmlSystemGetDriverVersion");
	if (nvml.driver_version && nvml.driver_version(version, sizeof version) == NVML_OK)
		findings_add(f, HEALTH_GOOD, "driver_version", "", "%s", version);
	d->answered = true;
	if (d->present == 0) {
		say_none_seen(in, a, "NVML shows no GPU", true);
		return;
	}
	wake_gpus(&nvml, d->present, a);
	d->mixed = !nvml_numbers_are_cudas(&nvml, in->visible);
	findings_add(f, HEALTH_GOOD, gpu_driver, "", "it answers");
	task_ready(a);
}

/* Its place on the bus, and which GPU of the job's it is. An enum nvml_return: what one that is
 * lost says. */
static int identify(struct gpu *g, const struct task *t, struct gpu_identity *ret)
{
	const struct gpu_listed listed = { &g->nvml, !t->mixed, g->device, t->number, t->count,
		ret->uuid };
	struct nvml_pci pci;
	int rc = NVML_OK;

	task_step(g->answer, "nvmlDeviceGetUUID");
	if (g->nvml.uuid)
		rc = g->nvml.uuid(g->device, ret->uuid, sizeof ret->uuid);
	if (nvml_is_bad(rc))
		return rc;
	task_step(g->answer, "nvmlDeviceGetName");
	if (g->nvml.name && g->nvml.name(g->device, ret->name, sizeof ret->name) == NVML_OK)
		memcpy(g->name, ret->name, sizeof g->name);
	task_step(g->answer, "nvmlDeviceGetPciInfo");
	if (g->nvml.pci && g->nvml.pci(g->device, &pci) == NVML_OK) {
		ret->place =
			(struct pci_place){ pci.domain, (uint8_t)pci.bus, (uint8_t)pci.device };
		ret->placed = true;
	}
	ret->shown = gpu_shown(g->in->visible, &listed, &g->part);
	return NVML_OK;
}

/* Whether other GPUs, which answer, are all that the job uses. */
static bool is_anothers(const struct gpu *g, const struct task *t)
{
	unsigned shown = 0;

	for (unsigned i = 0; i < t->count && g->visible > 0; i++) {
		char uuid[NVML_UUID_SIZE] = "";
		struct gpu_listed other = { &g->nvml, !t->mixed, NULL, i, t->count, uuid };
		bool part;

		if (i == t->number || g->nvml.device(i, &other.device) != NVML_OK)
			continue;
		if (g->nvml.uuid)
			(void)g->nvml.uuid(other.device, uuid, sizeof uuid);
		shown += gpu_shown(g->in->visible, &other, &part);
	}
	return g->in->visible && shown == g->visible;
}

static void ask_gpu(const struct task *t, struct task_answer *a)
{
	struct gpu_identity *id = (struct gpu_identity *)a->more;
	struct gpu g = { .in = t->owner, .answer = a };
	struct failure why = { 0 };
	int rc;

	memcpy(g.subject, t->subject, sizeof g.subject);
	g.visible = devices_visible(g.in->visible, t->count);
	id->shown = gpu_shown(g.in->visible,
		&(struct gpu_listed){ NULL, !t->mixed, NULL, t->number, t->count, id->uuid },
		&g.part);
	if (begin(a, &g.nvml, &why) != NVML_OK) {
		findings_add(&a->findings, HEALTH_UNKNOWN, gpu_driver, t->subject,
			"NVML, which just answered, does not begin once more");
		return;
	}
	task_step(a, "nvmlDeviceGetHandleByIndex");
	rc = g.nvml.device((unsigned)t->number, &g.device);
	if (rc == NVML_OK)
		rc = identify(&g, t, id);
	if (rc != NVML_OK) {
		bool hidden = rc == NVML_NO_PERMISSION; /* by the container's cgroup */

		if (is_anothers(&g, t))
			return;
		findings_add(&a->findings, hidden ? HEALTH_UNKNOWN : HEALTH_BAD, gpu_driver,
			t->subject, "%s: %s", a->step, nvml_words(rc));
		return;
	}
	if (id->shown > 0)
		gpu_facts(&g);
}

/* --- in the parent --- */

static void add_gpus(struct tasks *all, const struct task *driver)
{
	const struct driver *d = (const struct driver *)driver->answer->more;
	unsigned count = d->present < GPUS_MAX ? d->present : GPUS_MAX;

	shm_check_add(driver->owner, all, d->answered ? d->present : 0);
	if (!driver->answer->done && !d->answered && d->bus.bound > 0)
		xid_check_add(driver->owner, all); /* it may say why nothing answers */
	if (!d->answered || count == 0)
		return;
	all->left_out += d->present - count;
	for (unsigned i = 0; i < count; i++) {
		struct task t = {
			.work = ask_gpu,
			.owner = driver->owner,
			.number = i,
			.count = d->present,
			.mixed = d->mixed,
			.check = gpu_driver,
			.limit_ms = GPU_LIMIT_MS,
		};

		(void)snprintf(t.subject, sizeof t.subject, "GPU %u", i);
		tasks_add(all, &t);
	}
	xid_check_add(driver->owner, all);
}

void gpu_check_add(const struct quick_input *in, struct tasks *all)
{
	const struct task t = {
		.work = ask_driver,
		.then = add_gpus,
		.owner = in,
		.check = gpu_driver,
		.limit_ms = DRIVER_LIMIT_MS,
	};

	tasks_add(all, &t);
}

static const struct task *driver_task(const struct tasks *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->at[i].work == ask_driver)
			return &all->at[i];
	return NULL;
}

/* Whoever looked did not get to all. */
static void add_unasked(const struct task *t, struct findings *ret)
{
	const struct finding *answers = findings_find(ret, gpu_driver, t->subject);
	const char *why = answers && answers->health == HEALTH_BAD ?
		"it was not asked, as this GPU had stopped answering" :
		"it was not asked, as this GPU could not be looked at to the end";

	for (size_t i = 0; i < GPU_FACTS; i++)
		if (!findings_find(ret, gpu_fact_check(i), t->subject))
			findings_add(ret, HEALTH_UNKNOWN, gpu_fact_check(i), t->subject, "%s", why);
}

/* "8 x NVIDIA H100 80GB HBM3", of one that a child may have written. */
static void add_models(const struct tasks *all, struct findings *ret)
{
	const struct gpu_identity *first = NULL;
	unsigned alike = 0, other = 0;

	for (size_t i = 0; i < all->count; i++) {
		const struct gpu_identity *id =
			(const struct gpu_identity *)all->at[i].answer->more;

		if (all->at[i].work != ask_gpu || id->shown == 0 || !*id->name)
			continue;
		first = first ? first : id;
		if (strncmp(first->name, id->name, sizeof id->name) == 0)
			alike++;
		else
			other++;
	}
	if (first)
		findings_add(ret, HEALTH_GOOD, "gpu_model", "", "%u x %.*s%s", alike,
			(int)sizeof first->name - 1, first->name,
			other ? ", and others beside" : "");
}

/* Where GPUs are of several models, CUDA's numbers are not NVML's; and a name may be no GPU's that
 * NVML can place. */
static void add_unsure_models(
	const struct quick_input *in, const struct tasks *all, struct findings *ret)
{
	unsigned there = 0, shown = 0;

	for (size_t i = 0; i < all->count; i++)
		if (all->at[i].work == ask_gpu) {
			const struct gpu_identity *id =
				(const struct gpu_identity *)all->at[i].answer->more;

			there++;
			shown += id->shown;
		}
	if (there == 0 || shown > 0 || devices_visible(in->visible, there) == 0)
		return;
	if (((const struct driver *)driver_task(all)->answer->more)->mixed)
		findings_add(ret, HEALTH_UNKNOWN, "gpu_model", "",
			"GPUs of several models, or some that may not be opened, which CUDA does not number as "
			"NVML: " CUDA_DEVICES
			"=%.40s does not show which are meant; give UUIDs, or " CUDA_ORDER
			"=PCI_BUS_ID",
			in->visible);
	else
		findings_add(ret, HEALTH_UNKNOWN, "gpu_model", "",
			CUDA_DEVICES "=%s names no GPU that NVML shows here", in->visible);
}

static void check_uuids(const struct quick_input *in, const struct tasks *all, struct findings *ret)
{
	const char *list = in->gpu_uuids, *entry;
	unsigned missing = 0;
	size_t len;

	while (list && (len = list_next(&list, &entry)) > 0) {
		bool found = false;

		for (size_t i = 0; i < all->count && !found; i++) {
			const struct gpu_identity *id =
				(const struct gpu_identity *)all->at[i].answer->more;

			found = all->at[i].work == ask_gpu && len < sizeof id->uuid &&
				strncmp(id->uuid, entry, len) == 0;
		}
		if (!found)
			findings_add(ret, HEALTH_BAD, "gpu_uuid", "", "%.*s is not here", (int)len,
				entry);
		missing += !found;
	}
	if (in->gpu_uuids && missing == 0)
		findings_add(ret, HEALTH_GOOD, "gpu_uuid", "", "all that were named are here");
}

/* GPUs that a virtual machine or another driver has are no one's loss here. */
static unsigned count_missing(const struct quick_input *in, const struct driver *d)
{
	unsigned there = d->bus.bound + d->bus.idle;

	return in->visible || in->gpus_given || d->present >= there ? 0 : there - d->present;
}

/* Without a GPU the finding is left out, unless a number is given. */
static void check_count(const struct quick_input *in, const struct driver *d, struct findings *ret)
{
	unsigned there = devices_visible(in->visible, d->present);
	const char *s = there == 1 ? "" : "s";
	const char *here = there == d->present ? "" : ", by CUDA_VISIBLE_DEVICES";

	if (!d->answered)
		findings_add(ret, HEALTH_UNKNOWN, "gpu_count", "", "the driver did not tell");
	else if (in->gpus_given && there != in->gpus)
		findings_add(ret, HEALTH_BAD, "gpu_count", "", "%u GPU%s%s: there have to be %u",
			there, s, here, in->gpus);
	else if (there == 0 && in->gpus_given)
		findings_add(ret, HEALTH_GOOD, "gpu_count", "", "none, which is right");
	else if (there == 0 && d->present == 0 && d->bus.present > 0)
		findings_add(ret, HEALTH_UNKNOWN, "gpu_count", "",
			"none here, and %u on the PCI bus", d->bus.present);
	else if (there > 0 && count_missing(in, d) > 0)
		findings_add(ret, HEALTH_UNKNOWN, "gpu_count", "",
			"%u GPU%s: NVML does not show %u more that %s on the PCI bus", there, s,
			count_missing(in, d), count_missing(in, d) == 1 ? "is" : "are");
	else if (there > 0)
		findings_add(ret, HEALTH_GOOD, "gpu_count", "", "%u GPU%s%s", there, s, here);
}

/* Collects what the check of Xids needs about the GPUs. */
static void sum_up_xids(const struct quick_input *in, const struct driver *d,
	const struct tasks *all, struct findings *ret)
{
	struct xid_gpus gpus = { .shown = devices_visible(
					 in->visible, d->answered ? d->present : d->bus.bound) };

	for (size_t i = 0; i < all->count; i++) {
		const struct task *t = &all->at[i];
		const struct gpu_identity *id = (const struct gpu_identity *)t->answer->more;
		const struct finding *wants = findings_find(ret, "gpu_recovery", t->subject);

		if (t->work == ask_gpu && gpus.count < sizeof gpus.at / sizeof *gpus.at)
			gpus.at[gpus.count++] = (struct xid_gpu){ t->number, id->placed, id->place,
				id->shown, wants && wants->health == HEALTH_GOOD };
	}
	xid_check_sum_up(in, all, &gpus, ret);
}

void gpu_check_sum_up(const struct quick_input *in, const struct tasks *all, struct findings *ret)
{
	const struct task *driver = driver_task(all);
	const struct driver *d;

	if (!driver)
		return;
	d = (const struct driver *)driver->answer->more;
	check_count(in, d, ret);
	add_models(all, ret);
	add_unsure_models(in, all, ret);
	if (d->answered)
		check_uuids(in, all, ret);
	/* where findings were left out, one that is not there was perhaps made */
	for (size_t i = 0; ret->left_out == 0 && i < all->count; i++) {
		const struct gpu_identity *id =
			(const struct gpu_identity *)all->at[i].answer->more;

		if (all->at[i].work == ask_gpu && id->shown > 0)
			add_unasked(&all->at[i], ret);
	}
	sum_up_xids(in, d, all, ret);
}
