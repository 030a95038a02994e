/* hang_gpus.c - see hang_gpus.h */
#include "daemon/run/hang_gpus.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/num.h"
#include "daemon/check/nvml.h"
#include "daemon/plan/plan.h"
#include "daemon/run/gpu_watch.h"
#include "daemon/witness/gpu_work.h"

enum { GPUS_MAX = 64, STALE_MS = 5000 };

/* Shared with the child. */
struct gpus_seen {
	struct helper_answer helper;
	_Atomic unsigned moves;  /* the parent counts */
	_Atomic uint64_t at_ms;  /* of the last look; 0: there was none */
	_Atomic uint8_t tells[]; /* enum gpu_activity, of each worker */
};

/* In the child: a GPU of the machine. */
struct asked_gpu {
	void *device; /* NULL: it can't be asked */
	char uuid[NVML_UUID_SIZE];
	enum gpu_activity tells;
	struct gpu_work work;
	void *samples[2]; /* NULL: it counts no work of its tensor units */
	unsigned sampled;
};

struct power_asking {
	struct nvml_api nvml;
	struct asked_gpu *gpus;
	unsigned count;
	bool numbered;      /* as CUDA numbers them */
	struct arena names; /* of devices, for one look */
};

static uint64_t now_ms(void)
{
	return uv_hrtime() / 1000000;
}

static struct gpus_seen *seen_of(const struct hang_gpus *g)
{
	return (struct gpus_seen *)g->helper.answer;
}

/* --- in the child --- */

/* Those of NVIDIA's metrics that count, from Hopper on. */
static void prepare_samples(const struct nvml_api *nvml, struct asked_gpu *gpu)
{
	struct nvml_metrics_support has = { .version = NVML_METRICS_VERSION };

	if (!gpu->device || !nvml->metrics_support || !nvml->sample_new || !nvml->sample_take ||
		!nvml->metrics || nvml->metrics_support(gpu->device, &has) != NVML_OK ||
		!has.supported)
		return;
	if (nvml->sample_new(&gpu->samples[0]) != NVML_OK ||
		nvml->sample_new(&gpu->samples[1]) != NVML_OK)
		gpu->samples[0] = NULL;
}

static void begin(const struct helper *h, struct power_asking *a)
{
	const struct visible *v = &((const struct hang_gpus *)h->owner)->plan->visible;
	struct failure why = { 0 };
	int rc;

	if (nvml_load(&a->nvml, &why) < 0)
		helper_fail(h, "%s", why.text);
	rc = a->nvml.init();
	if (rc == NVML_OK)
		rc = a->nvml.device_count(&a->count);
	if (rc != NVML_OK)
		helper_fail(h, "%s", nvml_words(rc));
	a->count = a->count < GPUS_MAX ? a->count : GPUS_MAX;
	a->numbered = nvml_numbers_are_cudas(
		&a->nvml, v->known ? visible_all(v, &a->names) : "0,4294967295");
	a->gpus = calloc(a->count + 1, sizeof *a->gpus);
	if (!a->gpus)
		helper_fail(h, "out of memory");
	for (unsigned i = 0; i < a->count; i++) {
		struct asked_gpu *gpu = &a->gpus[i];

		if (a->nvml.device(i, &gpu->device) != NVML_OK)
			gpu->device = NULL;
		if (!gpu->device || !a->nvml.uuid ||
			a->nvml.uuid(gpu->device, gpu->uuid, sizeof gpu->uuid) != NVML_OK)
			*gpu->uuid = '\0';
		prepare_samples(&a->nvml, gpu);
	}
}

/* How much its tensor units have worked since the last look. */
static int tensor_permille(const struct nvml_api *nvml, struct asked_gpu *gpu)
{
	static struct nvml_metrics m; /* large; one thread */
	unsigned turn = gpu->sampled % 2;

	if (!gpu->samples[0])
		return TENSOR_UNKNOWN;
	if (nvml->sample_take(gpu->device, gpu->samples[turn]) != NVML_OK) {
		gpu->sampled = 0;
		return TENSOR_UNKNOWN;
	}
	if (gpu->sampled++ == 0)
		return TENSOR_UNKNOWN;
	m.version = NVML_METRICS_VERSION;
	m.count = 1;
	m.from = gpu->samples[1 - turn];
	m.to = gpu->samples[turn];
	m.at[0] = (struct nvml_metric){ .id = NVML_TENSOR_WORK };
	if (nvml->metrics(&m) != NVML_OK || m.at[0].status != NVML_OK ||
		!(m.at[0].value >= 0 && m.at[0].value <= 100))
		return TENSOR_UNKNOWN;
	return (int)(m.at[0].value * 10);
}

/* A part of a GPU (MIG) tells neither power nor utilization. */
static enum gpu_activity ask(const struct nvml_api *nvml, struct asked_gpu *gpu)
{
	struct nvml_utilization busy;
	unsigned mw;

	if (!gpu->device || !nvml->power || !nvml->utilization ||
		nvml->power(gpu->device, &mw) != NVML_OK ||
		nvml->utilization(gpu->device, &busy) != NVML_OK)
		return GPU_UNKNOWN;
	gpu_work_see(&gpu->work, mw, busy.gpu > 0, tensor_permille(nvml, gpu));
	return gpu_work_tells(&gpu->work);
}

/* What the GPU does that CUDA_VISIBLE_DEVICES names so. */
static enum gpu_activity tells_of(const struct power_asking *a, const char *device)
{
	enum gpu_activity found = GPU_NONE;
	uint64_t n;

	if (num_parse(device, 0, UINT32_MAX, &n) == 0)
		return n >= a->count ? GPU_NONE : a->numbered ? a->gpus[n].tells : GPU_UNKNOWN;
	for (unsigned i = 0; i < a->count; i++)
		if (strncmp(a->gpus[i].uuid, device, strlen(device)) == 0)
			return a->gpus[i].tells;
	for (unsigned i = 0; i < a->count; i++) /* MIG, or a name that nobody knows */
		found = a->gpus[i].tells == GPU_NONE ? found : GPU_UNKNOWN;
	return found;
}

static void tell(struct hang_gpus *g, struct power_asking *a)
{
	const struct visible *v = &g->plan->visible;
	struct gpus_seen *s = seen_of(g);

	for (unsigned i = 0; i < g->plan->start_count; i++) {
		enum gpu_activity tells = GPU_NONE;

		for (unsigned n = 0; n < v->per_worker; n++)
			tells = gpu_activity_of_both(tells,
				tells_of(a,
					visible_device(v, g->plan->start_first + i, n, &a->names)));
		atomic_store(&s->tells[i], (uint8_t)tells);
	}
	arena_done(&a->names);
	atomic_store(&s->at_ms, now_ms());
}

/* Until it is killed. */
static void work(struct helper *h)
{
	struct hang_gpus *g = h->owner;
	struct power_asking a = { .count = 0 };
	struct timespec due;
	unsigned moves = 0;

	begin(h, &a);
	(void)clock_gettime(CLOCK_MONOTONIC, &due);
	while (a.count > 0) {
		unsigned moved = atomic_load(&seen_of(g)->moves);

		for (unsigned i = 0; i < a.count; i++) {
			if (moved != moves)
				gpu_work_moved(&a.gpus[i].work);
			a.gpus[i].tells = ask(&a.nvml, &a.gpus[i]);
		}
		moves = moved;
		tell(g, &a);
		due.tv_sec++;
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
	}
	free(a.gpus);
}

/* --- in the supervisor --- */

/* It succeeds where NVML knows of no GPU. */
static void on_end(struct helper *h, bool succeeded)
{
	struct hang_gpus *g = h->owner;

	g->expected = !succeeded;
	helper_close(h);
}

void hang_gpus_expect(struct hang_gpus *g, const struct plan *plan)
{
	g->expected = gpu_watch_may_see(plan);
}

void hang_gpus_start(struct hang_gpus *g, uv_loop_t *loop, const struct plan *plan, char **argv)
{
	if (g->plan)
		return;
	hang_gpus_expect(g, plan);
	if (!g->expected)
		return;
	g->plan = plan;
	g->helper = (struct helper){
		.work = work,
		.on_end = on_end,
		.owner = g,
		.name = "hang-gpus",
		.argv = argv,
		.group = true,
		.lasting = true,
	};
	(void)helper_start(&g->helper, loop,
		sizeof(struct gpus_seen) + plan->start_count * sizeof(_Atomic uint8_t), 0);
}

void hang_gpus_moved(struct hang_gpus *g)
{
	if (g->helper.state == HELPER_RUNNING)
		atomic_fetch_add(&seen_of(g)->moves, 1);
}

enum gpu_activity hang_gpus_tell(const struct hang_gpus *g, unsigned worker)
{
	const struct gpus_seen *s = g->helper.state == HELPER_RUNNING ? seen_of(g) : NULL;
	uint64_t at_ms = s ? atomic_load(&s->at_ms) : 0;

	if (at_ms == 0 || now_ms() - at_ms > STALE_MS)
		return g->expected ? GPU_UNKNOWN : GPU_NONE;
	return (enum gpu_activity)atomic_load(&s->tells[worker]);
}

void hang_gpus_stop(struct hang_gpus *g)
{
	helper_close(&g->helper);
}
