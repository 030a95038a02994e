/* ask_gpus.c - see ask_gpus.h */
#include "daemon/blackbox/ask_gpus.h"

#include <stdio.h>
#include <string.h>

#include "common/failure.h"
#include "common/text.h"
#include "daemon/blackbox/answer_file.h"
#include "daemon/blackbox/source.h"
#include "daemon/check/gpu_shown.h"
#include "daemon/check/nvml.h"
#include "daemon/check/task.h"
#include "daemon/check/xid.h"
#include "daemon/os/nvidia.h"
#include "daemon/os/procfs.h"

enum { GPUS_MAX = 64, MW = 1000 };

/* One GPU. */
struct gpu_asked {
	const struct source_input *in;
	const struct nvml_api *nvml;
	struct task_answer *a;
	void *device;
	char subject[32];
	struct text *file, *line; /* all, and what is told in a line */
	bool bad;
	unsigned failed; /* calls */
};

/* Before a call, which may never return. */
static void at(const struct gpu_asked *g, const char *function)
{
	task_step(g->a, "%s of %s", function, g->subject);
}

/* False: it has no answer, and the file says why. */
static bool is_told(struct gpu_asked *g, int rc)
{
	if (rc == NVML_OK)
		return true;
	text_printf(g->file, "  %s: %s\n", g->a->step, nvml_words(rc));
	if (nvml_is_bad(rc)) {
		g->bad = true;
		text_printf(g->line, "%s%s", g->line->len ? ", " : "", nvml_words(rc));
	}
	g->failed++;
	return false;
}

__attribute__((format(printf, 2, 3))) static void tell(struct gpu_asked *g, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (g->line->len)
		text_add(g->line, ", ");
	text_vprintf(g->line, fmt, ap);
	va_end(ap);
}

static void ask_names(struct gpu_asked *g)
{
	char word[NVML_UUID_SIZE];

	at(g, "nvmlDeviceGetName");
	if (g->nvml->name && is_told(g, g->nvml->name(g->device, word, sizeof word)))
		text_printf(g->file, "  %s\n", word);
	at(g, "nvmlDeviceGetUUID");
	if (g->nvml->uuid && is_told(g, g->nvml->uuid(g->device, word, sizeof word)))
		text_printf(g->file, "  %s\n", word);
}

static void ask_memory_of(struct gpu_asked *g)
{
	struct nvml_memory m;

	at(g, "nvmlDeviceGetMemoryInfo");
	if (!g->nvml->memory || !is_told(g, g->nvml->memory(g->device, &m)))
		return;
	text_printf(g->file, "  memory: %llu of %llu MiB used\n", m.used >> 20, m.total >> 20);
	tell(g, "%.1f of %.1f GiB used", (double)m.used / (1 << 30), (double)m.total / (1 << 30));
}

/* Of the workers some may be in another namespace of pids, and are not known then. */
static const struct source_worker *worker_of(const struct source_input *in, unsigned pid)
{
	for (size_t i = 0; i < in->count; i++)
		if (in->workers[i].pid == (pid_t)pid)
			return &in->workers[i];
	return NULL;
}

static void ask_processes(struct gpu_asked *g)
{
	static struct nvml_process all[NVML_PROCESSES_MAX]; /* large; one thread */
	unsigned count = NVML_PROCESSES_MAX;

	at(g, "nvmlDeviceGetComputeRunningProcesses");
	if (!g->nvml->processes || !is_told(g, g->nvml->processes(g->device, &count, all)))
		return;
	for (unsigned i = 0; i < count && i < NVML_PROCESSES_MAX; i++) {
		const struct source_worker *w = worker_of(g->in, all[i].pid);
		char command[16];

		process_command((pid_t)all[i].pid, command);
		text_printf(g->file, "  pid %u: ", all[i].pid);
		if (all[i].used_bytes != NVML_NOT_TOLD)
			text_printf(g->file, "%llu MiB, ", all[i].used_bytes >> 20);
		if (w)
			text_printf(g->file, "rank %u", w->rank);
		else
			text_add_shown(g->file, *command ? command : "not seen here",
				strlen(*command ? command : "not seen here"));
		text_add(g->file, "\n");
	}
}

/* By its name of CUDA 12.8 on (driver 570), else by that which 13.0 calls deprecated. */
static void ask_temperature(struct gpu_asked *g)
{
	struct nvml_temperature now = { .version = NVML_TEMPERATURE_VERSION };
	unsigned value;

	at(g, "nvmlDeviceGetTemperatureV");
	if (g->nvml->temperature && g->nvml->temperature(g->device, &now) == NVML_OK) {
		text_printf(g->file, "  temperature: %d C\n", now.celsius);
		return;
	}
	at(g, "nvmlDeviceGetTemperature");
	if (g->nvml->temperature_before &&
		is_told(g, g->nvml->temperature_before(g->device, 0, &value)))
		text_printf(g->file, "  temperature: %u C\n", value);
}

static void ask_activity(struct gpu_asked *g)
{
	struct nvml_utilization busy;
	unsigned value;

	at(g, "nvmlDeviceGetPowerUsage");
	if (g->nvml->power && is_told(g, g->nvml->power(g->device, &value))) {
		text_printf(g->file, "  power: %u W\n", value / MW);
		tell(g, "%u W", value / MW);
	}
	at(g, "nvmlDeviceGetUtilizationRates");
	if (g->nvml->utilization && is_told(g, g->nvml->utilization(g->device, &busy)))
		text_printf(g->file,
			"  utilisation: %u %% (100 %% also in a hang), of memory %u %%\n", busy.gpu,
			busy.memory);
	ask_temperature(g);
}

/* By its name of CUDA 12.2 on (driver 535), else by that which 13.0 calls deprecated. False: it
 * does not tell. */
static bool find_reasons(struct gpu_asked *g, unsigned long long *ret)
{
	at(g, "nvmlDeviceGetCurrentClocksEventReasons");
	if (g->nvml->slowed && g->nvml->slowed(g->device, ret) == NVML_OK)
		return true;
	at(g, "nvmlDeviceGetCurrentClocksThrottleReasons");
	return g->nvml->slowed_before && is_told(g, g->nvml->slowed_before(g->device, ret));
}

/* nvmlClocksEventReason*: those that slow a GPU down though it has work. */
static void ask_clocks(struct gpu_asked *g)
{
	static const struct {
		unsigned long long bit;
		const char *words;
		bool bad;
	} reasons[] = {
		{ 0x4, "its power limit", false },
		{ 0x8, "the hardware: heat, power or an external brake", true },
		{ 0x20, "heat (software)", false },
		{ 0x40, "heat (hardware)", true },
		{ 0x80, "an external power brake", true },
	};
	unsigned long long mask;
	unsigned mhz;

	at(g, "nvmlDeviceGetClockInfo");
	if (g->nvml->clock && is_told(g, g->nvml->clock(g->device, NVML_SM_CLOCK, &mhz)))
		text_printf(g->file, "  SM clock: %u MHz\n", mhz);
	if (!find_reasons(g, &mask))
		return;
	text_printf(g->file, "  reasons of its clocks: 0x%llx\n", mask);
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (mask & reasons[i].bit) {
			text_printf(g->file, "  slowed down by %s\n", reasons[i].words);
			if (reasons[i].bad)
				tell(g, "slowed down by %s", reasons[i].words);
			g->bad |= reasons[i].bad;
		}
}

static void ask_errors(struct gpu_asked *g)
{
	struct nvml_field field = { .id = NVML_FIELD_RECOVERY_ACTION };
	unsigned corrected, uncorrected, pending, failed;
	unsigned long long errors;

	at(g, "nvmlDeviceGetTotalEccErrors");
	if (g->nvml->ecc_errors &&
		is_told(g,
			g->nvml->ecc_errors(g->device, NVML_UNCORRECTED, NVML_VOLATILE, &errors))) {
		text_printf(g->file, "  uncorrectable errors of memory: %llu\n", errors);
		if (errors)
			tell(g, "%llu uncorrectable errors of its memory", errors);
		g->bad |= errors > 0;
	}
	at(g, "nvmlDeviceGetRemappedRows");
	if (g->nvml->remapped_rows &&
		is_told(g,
			g->nvml->remapped_rows(
				g->device, &corrected, &uncorrected, &pending, &failed))) {
		text_printf(g->file, "  remapped rows: %u + %u, pending %u, failed %u\n", corrected,
			uncorrected, pending, failed);
		if (pending || failed)
			tell(g, "rows of its memory %s remapped",
				failed ? "could not be" : "wait to be");
		g->bad |= pending || failed;
	}
	at(g, "nvmlDeviceGetFieldValues");
	if (g->nvml->fields && is_told(g, g->nvml->fields(g->device, 1, &field)) &&
		is_told(g, field.status)) {
		text_printf(g->file, "  recovery action of the driver: %u\n", field.value.u);
		if (field.value.u != NVML_RECOVERY_NONE)
			tell(g, "the driver asks for a recovery (action %u)", field.value.u);
		g->bad |= field.value.u != NVML_RECOVERY_NONE;
	}
}

/* Another job's GPU is in the file alone. */
static void ask_one(const struct source_input *in, const struct nvml_api *nvml, unsigned index,
	unsigned count, struct text *file, struct task_answer *a)
{
	struct text line = { 0 };
	struct gpu_asked g = { .in = in, .nvml = nvml, .a = a, .file = file, .line = &line };
	bool is_ours;
	int rc;

	(void)snprintf(g.subject, sizeof g.subject, "GPU %u", index);
	at(&g, "nvmlDeviceGetHandleByIndex");
	rc = nvml->device(index, &g.device);
	is_ours =
		gpu_may_be_shown(in->visible, nvml, rc == NVML_OK ? g.device : NULL, index, count);
	text_printf(file, "--- %s%s\n", g.subject, is_ours ? "" : ", which is not the job's");
	if (is_told(&g, rc)) {
		ask_names(&g);
		ask_memory_of(&g);
		ask_processes(&g);
		ask_activity(&g);
		ask_clocks(&g);
		ask_errors(&g);
	}
	if (is_ours)
		findings_add(&a->findings,
			g.bad                         ? HEALTH_BAD :
				g.failed && !line.len ? HEALTH_UNKNOWN :
							HEALTH_GOOD,
			"nvml", g.subject, "%s",
			line.len ? text_string(&line) : "it tells nothing");
	/* what the next one has cost stays known if that never returns */
	(void)answer_file_write(in, "gpus.txt", file);
	text_done(&line);
}

void ask_gpus(const struct source_input *in, struct task_answer *a)
{
	struct failure why = { 0 };
	struct text file = { 0 };
	struct nvml_api nvml;
	unsigned count = 0;
	int rc;

	task_step(a, "NVML's library");
	if (nvml_load(&nvml, &why) < 0)
		return;
	task_step(a, "nvmlInit");
	rc = nvml.init();
	if (nvml_is_absent(rc) && !nvidia_gpus_here())
		return;
	if (rc == NVML_OK) {
		task_step(a, "nvmlDeviceGetCount");
		rc = nvml.device_count(&count);
	}
	if (rc != NVML_OK)
		findings_add(&a->findings, nvml_is_bad(rc) ? HEALTH_BAD : HEALTH_UNKNOWN, "nvml",
			"", "%s: %s", a->step, nvml_words(rc));
	for (unsigned i = 0; i < count && i < GPUS_MAX; i++)
		ask_one(in, &nvml, i, count, &file, a);
	text_done(&file);
}

bool has_xids(const struct source_input *in)
{
	return in->xids != NULL;
}

void ask_xids(const struct source_input *in, struct task_answer *a)
{
	const struct xids *x = in->xids;
	unsigned count = __atomic_load_n(&x->count, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < count && i < XIDS_MAX; i++) {
		enum xid_kind kind = xid_kind(x->at[i].xid);
		char subject[XID_WHERE_SIZE];

		xid_seen_where(&x->at[i], subject);
		findings_add(&a->findings, HEALTH_BAD, "xid", subject, "Xid %llu%s",
			(unsigned long long)x->at[i].xid,
			kind == XID_FATAL               ? ": the GPU needs a reset, or more" :
				kind == XID_APPLICATION ? ", which the application causes" :
							  "");
	}
	if (count > XIDS_MAX)
		findings_add(&a->findings, HEALTH_BAD, "xid", "", "%u more", count - XIDS_MAX);
	if (x->state == XIDS_FAILED && *x->text && count == 0 && nvidia_gpus_here())
		findings_add(&a->findings, HEALTH_UNKNOWN, "xid", "", "nobody watched: %.*s",
			(int)sizeof x->text - 1, x->text);
	else if (x->state == XIDS_WATCHING && count == 0)
		findings_add(&a->findings, HEALTH_GOOD, "xid", "", "none since the job began");
}
