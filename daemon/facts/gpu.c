/* gpu.c - see gpu.h */
#include "daemon/facts/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "daemon/os/dlib.h"
#include "daemon/os/nvidia.h"
#include "daemon/os/nvml_error.h"
#include "daemon/os/question.h"

/* nvmlPciInfo_t of nvml.h. */
struct pci_info {
	char bus_legacy[16];
	unsigned domain, bus, device, device_id, subsystem_id;
	char bus_id[32]; /* "00000000:3B:00.0" */
};

/* By their ABI names (nvml.h, stable since NVML 4). Each returns 0 for success. */
struct nvml {
	int (*init)(void);
	int (*device_count)(unsigned *);
};

struct nvml_ids {
	int (*device)(unsigned index, void **ret);
	int (*uuid)(void *device, char *ret, unsigned room);
	int (*pci)(void *device, struct pci_info *ret);
	int (*name)(void *device, char *ret, unsigned room);
};

static const struct dlib_symbol symbols[] = {
	{ "nvmlInit_v2", offsetof(struct nvml, init), NULL },
	{ "nvmlDeviceGetCount_v2", offsetof(struct nvml, device_count), NULL },
	{ NULL, 0, NULL },
};

const struct dlib nvml_library = {
	.name = "NVML",
	.file = "libnvidia-ml.so.1",
	.hint = "it comes with NVIDIA's driver",
	.symbols = symbols,
	.adds = "the number of GPUs, for --nproc_per_node gpu and auto",
};

static const struct dlib_symbol id_symbols[] = {
	{ "nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml_ids, device), NULL },
	{ "nvmlDeviceGetUUID", offsetof(struct nvml_ids, uuid), NULL },
	{ "nvmlDeviceGetPciInfo_v3", offsetof(struct nvml_ids, pci), NULL },
	{ "nvmlDeviceGetName", offsetof(struct nvml_ids, name), NULL },
	{ NULL, 0, NULL },
};

static const struct dlib id_library = {
	.name = "NVML",
	.file = "libnvidia-ml.so.1",
	.hint = "it comes with NVIDIA's driver",
	.symbols = id_symbols,
	.adds = "the GPUs' names",
};

/* What the child tells. */
struct told {
	bool known, silent; /* silent: no library, or no driver for it: nothing may be here */
	bool loaded;        /* there is a library */
	unsigned count;
	char why[sizeof((struct failure *)0)->text];
	struct gpu_id at[GPUS_MAX];
};

/* One that doesn't say what it is has an empty name: that GPU is about to be found bad. */
static void ask_id(const struct nvml_ids *nvml, unsigned index, struct gpu_id *ret)
{
	struct pci_info pci = { 0 };
	void *device;

	if (nvml->device(index, &device) != 0)
		return;
	if (nvml->uuid(device, ret->uuid, sizeof ret->uuid) != 0)
		ret->uuid[0] = '\0';
	if (nvml->name(device, ret->name, sizeof ret->name) != 0)
		ret->name[0] = '\0';
	if (nvml->pci(device, &pci) == 0)
		(void)snprintf(ret->bus, sizeof ret->bus, "%04x:%02x:%02x.0", pci.domain,
			pci.bus & 0xff, pci.device & 0xff);
}

static int ask_ids(unsigned count, struct gpu_id *ret, struct failure *why)
{
	struct nvml_ids nvml;
	void *unused;
	int rc = dlib_open(&id_library, NULL, &nvml, &unused, why);

	for (unsigned i = 0; rc == 0 && i < count && i < GPUS_MAX; i++)
		ask_id(&nvml, i, &ret[i]);
	return rc;
}

/* Returns whether it has, and sets *why otherwise. */
static bool nvml_call_succeeds(int rc, const char *function, struct failure *why)
{
	return rc == NVML_OK ||
		failure_set(why, -EIO, "NVML: %s: %s", function, nvml_words(rc)) == 0;
}

/* ids: room for GPUS_MAX; NULL: only the number is wanted. The library is not told that this is the
 * end, which may hang: the child's own end does it. */
static void ask(struct told *told, struct gpu_id *ids, struct failure *why)
{
	struct nvml nvml;
	void *unused;
	int rc;

	nvidia_make_no_nodes();
	rc = dlib_open(&nvml_library, NULL, &nvml, &unused, why);
	told->silent = rc == -ELIBACC;
	if (rc < 0)
		return;
	told->loaded = true;
	rc = nvml.init();
	told->silent = nvml_is_absent(rc);
	told->known = nvml_call_succeeds(rc, "nvmlInit", why) &&
		nvml_call_succeeds(nvml.device_count(&told->count), "nvmlDeviceGetCount", why) &&
		(!ids || ask_ids(told->count, ids, why) == 0);
}

static void ask_for_all(const void *how, void *answer)
{
	const bool *with_ids = how;
	struct told *told = answer;
	struct failure why = { 0 };

	ask(told, *with_ids ? told->at : NULL, &why);
	memcpy(told->why, why.text, sizeof told->why);
}

/* Of several makers' NVIDIA's; all machines with a screen have Intel's file or AMD's other one
 * (/dev/dri), so that shows nothing. */
static enum gpu_maker maker_here(const struct nvidia_seen *seen, const struct told *told)
{
	bool nvidia = (seen->driver && seen->nodes) || (told->known && told->count > 0);

	return !nvidia && access("/dev/kfd", F_OK) == 0 ? GPU_AMD : GPU_NVIDIA;
}

/* Whether there may be GPUs that NVML doesn't count. A library that is installed is for the GPU
 * that no driver uses; one that is not is missed only where GPUs have device files. */
static bool are_uncounted(const struct nvidia_seen *seen, const struct told *told)
{
	if (told->known ? told->count > 0 : !told->silent)
		return !told->known;
	return (seen->driver && seen->nodes) || (told->loaded && seen->idle > 0);
}

static int keep(const struct told *told, bool with_ids, struct arena *arena, struct gpus *ret,
	struct failure *why)
{
	struct gpu_id *at = with_ids ? arena_alloc(arena, sizeof told->at) : NULL;
	struct nvidia_seen seen;

	nvidia_look("", &seen);
	*ret = (struct gpus){
		.known = told->known,
		.loaded = told->loaded,
		.count = told->count,
		.at = at,
		.maker = maker_here(&seen, told),
		.said = arena_strdup(
			arena, told->known && told->count == 0 ? "NVML counts none" : told->why),
	};
	ret->here = ret->maker == GPU_NVIDIA && are_uncounted(&seen, told);
	if ((with_ids && !at) || !ret->said)
		return failure_oom(why);
	if (at)
		memcpy(at, told->at, sizeof told->at);
	return 0;
}

int gpus_read(bool with_ids, uint64_t limit_ms, struct arena *arena, struct gpus *ret,
	struct failure *why)
{
	static struct told told;
	struct failure silence = { 0 };
	const struct question nvml = { .work = ask_for_all,
		.how = &with_ids,
		.whom = "NVML",
		.hint = ": NVIDIA's driver, or one of its GPUs, hangs",
		.limit_ms = limit_ms };

	if (question_ask(&nvml, &told, sizeof told, &silence) < 0) {
		told = (struct told){ .loaded = true };
		memcpy(told.why, silence.text, sizeof told.why);
	}
	return keep(&told, with_ids, arena, ret, why);
}

static struct machine_gpu *gpu_at(const struct machine *m, const char *bus)
{
	for (size_t i = 0; *bus && i < m->gpu_count; i++)
		if (m->gpus[i].bus && strcmp(m->gpus[i].bus, bus) == 0)
			return &m->gpus[i];
	return NULL;
}

void gpus_name(const struct gpus *gpus, struct machine *m)
{
	unsigned count = !gpus->at ? 0 : gpus->count < GPUS_MAX ? gpus->count : GPUS_MAX;
	bool found = false;

	for (unsigned i = 0; i < count; i++)
		found = found || gpu_at(m, gpus->at[i].bus);
	for (size_t i = 0; found && i < m->gpu_count; i++)
		if (m->gpus[i].maker == GPU_NVIDIA)
			m->gpus[i].index = GPU_HIDDEN;
	for (unsigned i = 0; i < count; i++) {
		const struct gpu_id *id = &gpus->at[i];
		struct machine_gpu *g = gpu_at(m, id->bus);

		if (!g)
			continue;
		g->index = i;
		g->name = *id->name ? id->name : g->name;
		g->uuid = *id->uuid ? id->uuid : g->uuid;
	}
}
