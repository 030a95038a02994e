/* gpu_facts.c - see gpu_facts.h */
#include "daemon/check/gpu_facts.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/num.h"
#include "config/settings.h"
#include "daemon/check/finding.h"
#include "daemon/check/gpu_models.h"
#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"
#include "daemon/os/procfs.h"

#define SAY(g, health, check, ...) \
	findings_add(&(g)->answer->findings, health, check, (g)->subject, __VA_ARGS__)

/* Before a call: what hangs is named. False, and said: this driver's library has no such function.
 */
static bool may_ask(struct gpu *g, const char *check, bool there, const char *function)
{
	task_step(g->answer, "%s", function);
	if (!there)
		SAY(g, HEALTH_UNKNOWN, check, "this driver has no %s", function);
	return there;
}

/* After one that said neither yes nor that it isn't supported. */
static void say_failed(struct gpu *g, const char *check, int error)
{
	SAY(g, nvml_is_bad(error) ? HEALTH_BAD : HEALTH_UNKNOWN, check, "%s: %s", g->answer->step,
		nvml_words(error));
}

static uint64_t limit_of(const struct gpu *g, enum setting_id id)
{
	return settings_of_model(g->in->settings, id, g->name)->number;
}

/* --- what the driver itself asks for --- */

static void look_recovery(struct gpu *g, const char *check)
{
	static const char *const wants[NVML_RECOVERIES] = {
		[NVML_RECOVERY_GPU_RESET] = "a reset of this GPU",
		[NVML_RECOVERY_NODE_REBOOT] = "a reboot of the node",
		[NVML_RECOVERY_DRAIN_P2P] = "an end of all traffic between GPUs",
		[NVML_RECOVERY_DRAIN_AND_RESET] = "no more work, and a reset of this GPU",
		[NVML_RECOVERY_IMEX_DOMAIN] = "a recovery of the IMEX domain",
		[NVML_RECOVERY_BUS_RESET] = "a reset of this GPU's PCIe bus",
		[NVML_RECOVERY_SYSTEM_REBOOT] = "a reboot of the system",
	};
	struct nvml_field field = { .id = NVML_FIELD_RECOVERY_ACTION };
	int rc;

	if (!may_ask(g, check, g->nvml.fields, "nvmlDeviceGetFieldValues"))
		return;
	rc = g->nvml.fields(g->device, 1, &field);
	rc = rc == NVML_OK ? field.status : rc;
	if (rc != NVML_OK && !nvml_is_bad(rc)) /* older drivers say so in several ways */
		SAY(g, HEALTH_UNKNOWN, check,
			"the driver does not tell: it has to be 570 or newer");
	else if (rc != NVML_OK)
		say_failed(g, check, rc);
	else if (field.value.u == NVML_RECOVERY_NONE)
		SAY(g, HEALTH_GOOD, check, "none is needed");
	else
		SAY(g, HEALTH_BAD, check, "the driver asks for %s",
			field.value.u < NVML_RECOVERIES ? wants[field.value.u] :
							  "an action that is not known here");
}

/* --- memory that errs --- */

static void look_ecc(struct gpu *g, const char *check)
{
	unsigned long long errors;
	int rc;

	if (!may_ask(g, check, g->nvml.ecc_errors, "nvmlDeviceGetTotalEccErrors"))
		return;
	rc = g->nvml.ecc_errors(g->device, NVML_UNCORRECTED, NVML_VOLATILE, &errors);
	if (rc == NVML_NOT_SUPPORTED)
		SAY(g, HEALTH_UNKNOWN, check, "ECC is off, or this GPU has none");
	else if (rc != NVML_OK)
		say_failed(g, check, rc);
	else if (errors == 0)
		SAY(g, HEALTH_GOOD, check, "no uncorrectable errors");
	else
		SAY(g, errors > limit_of(g, SET_CHECK_ECC_ERRORS) ? HEALTH_BAD : HEALTH_GOOD, check,
			"%llu uncorrectable error%s since the driver was loaded", errors,
			errors == 1 ? "" : "s");
}

/* GPUs before Ampere retire pages. */
static void look_retired(struct gpu *g, const char *check)
{
	int pending, rc;

	if (!may_ask(g, check, g->nvml.retired_pending, "nvmlDeviceGetRetiredPagesPendingStatus"))
		return;
	rc = g->nvml.retired_pending(g->device, &pending);
	if (rc == NVML_NOT_SUPPORTED)
		SAY(g, HEALTH_UNKNOWN, check,
			"this GPU, or the way in which it is divided, does not tell");
	else if (rc != NVML_OK)
		say_failed(g, check, rc);
	else if (pending == NVML_ENABLED)
		SAY(g, HEALTH_BAD, check, "pages wait to be retired: it needs a reset");
	else
		SAY(g, HEALTH_GOOD, check, "no page waits to be retired");
}

static void look_remap(struct gpu *g, const char *check)
{
	unsigned corrected, uncorrected, pending, failed;
	int rc = NVML_NOT_SUPPORTED;

	if (g->nvml.remapped_rows) {
		task_step(g->answer, "nvmlDeviceGetRemappedRows");
		rc = g->nvml.remapped_rows(g->device, &corrected, &uncorrected, &pending, &failed);
	}
	if (rc == NVML_NOT_SUPPORTED)
		look_retired(g, check);
	else if (rc != NVML_OK)
		say_failed(g, check, rc);
	else if (failed)
		SAY(g, HEALTH_BAD, check,
			"a row of its memory could not be remapped: it has to be replaced");
	else if (pending)
		SAY(g, HEALTH_BAD, check,
			"rows of its memory wait to be remapped: it needs a reset");
	else
		SAY(g, HEALTH_GOOD, check, "nothing pending or failed");
}

/* --- links --- */

struct links {
	unsigned there, up;
	char down[64]; /* "5,11" */
};

static void add_down(struct links *l, unsigned link)
{
	size_t len = strlen(l->down);

	(void)snprintf(l->down + len, sizeof l->down - len, "%s%u", len ? "," : "", link);
}

/* Negative: the finding is added. */
static int count_links(struct gpu *g, const char *check, struct links *ret)
{
	if (!may_ask(g, check, g->nvml.nvlink_state, "nvmlDeviceGetNvLinkState"))
		return -1;
	for (unsigned link = 0; link < NVML_LINKS_MAX; link++) {
		int active, rc = g->nvml.nvlink_state(g->device, link, &active);

		if (rc == NVML_INVALID_ARGUMENT || rc == NVML_NOT_SUPPORTED)
			continue; /* one that this model doesn't have */
		if (rc != NVML_OK) {
			say_failed(g, check, rc);
			return -1;
		}
		ret->there++;
		ret->up += active == NVML_ENABLED;
		if (active != NVML_ENABLED)
			add_down(ret, link);
	}
	return 0;
}

/* A100's links are off then; those of later GPUs are not used (NVIDIA's guide of Fabric Manager).
 */
static bool is_divided(struct gpu *g)
{
	unsigned mode = 0, pending;

	task_step(g->answer, "nvmlDeviceGetMigMode");
	return g->nvml.mig_mode && g->nvml.mig_mode(g->device, &mode, &pending) == NVML_OK &&
		mode == NVML_ENABLED;
}

/* Where nobody says how many, a model's own number counts on a node of several GPUs: one that a
 * cloud sells singly has its links off. Of any other, some that are down beside some that are up
 * are bad. */
static void look_nvlink(struct gpu *g, const char *check)
{
	const struct value *given = settings_of_model(g->in->settings, SET_CHECK_NVLINKS, g->name);
	struct links l = { 0 };
	unsigned want;

	if (count_links(g, check, &l) < 0)
		return;
	if (given->text)
		want = (unsigned)given->number;
	else if (g->visible > 1 && gpu_model_nvlinks(g->name) > 0)
		want = gpu_model_nvlinks(g->name);
	else
		want = l.up > 0 ? l.there : 0;
	if (l.up < want && !given->text && is_divided(g))
		SAY(g, HEALTH_UNKNOWN, check,
			"MIG divides this GPU, which then has no use for links");
	else if (l.up < want)
		SAY(g, HEALTH_BAD, check, "%u of %u links are up%s%s", l.up, want,
			*l.down ? "; down: " : "", l.down);
	else if (l.up == 0)
		SAY(g, HEALTH_GOOD, check, "none here%s", l.there ? " is in use" : "");
	else
		SAY(g, HEALTH_GOOD, check, "%u links are up", l.up);
}

/* NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_*: 0: the GPU doesn't tell, 1: it is right.
 */
static const char *fabric_config_fault(unsigned mask)
{
	static const char *const faults[] = {
		[2] = "its fabric is not configured right: the system's GUID",
		[3] = "its fabric is not configured right: the serial number of its chassis",
		[4] = "its fabric is not configured right: it is in no partition",
		[5] = "its fabric is not configured right: too few NVLinks",
		[6] = "its fabric is not configured right: the GPU's firmware does not go with it",
		[7] = "its fabric is not configured right: the GPU's place",
		[8] = "its fabric is not configured right: the GPU's state",
	};
	unsigned config = mask >> NVML_FABRIC_CONFIG_SHIFT & NVML_FABRIC_CONFIG_BITS;

	if (config <= NVML_FABRIC_CONFIG_RIGHT)
		return NULL;
	return config < sizeof faults / sizeof *faults ? faults[config] :
							 "its fabric is not configured right";
}

/* What is wrong by the mask; NULL: nothing. */
static const char *fabric_fault(unsigned mask)
{
	static const struct {
		unsigned shift;
		const char *words;
	} faults[] = {
		{ NVML_FABRIC_UNHEALTHY_SHIFT, "a route is unhealthy" },
		{ NVML_FABRIC_DEGRADED_SHIFT, "its bandwidth is degraded" },
		{ NVML_FABRIC_RECOVERING_SHIFT, "a route is being recovered" },
		{ NVML_FABRIC_TIMEOUT_SHIFT, "it recovers from an access that timed out" },
	};

	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		if ((mask >> faults[i].shift & NVML_FABRIC_BITS) == NVML_FABRIC_TRUE)
			return faults[i].words;
	return fabric_config_fault(mask);
}

static void look_fabric(struct gpu *g, const char *check)
{
	struct nvml_fabric f = { .version = NVML_FABRIC_VERSION };
	const char *fault;
	int rc;

	if (!may_ask(g, check, g->nvml.fabric, "nvmlDeviceGetGpuFabricInfoV"))
		return;
	rc = g->nvml.fabric(g->device, &f);
	fault = fabric_fault(f.health_mask);
	if (rc == NVML_NOT_SUPPORTED || (rc == NVML_OK && f.state == NVML_FABRIC_NOT_SUPPORTED))
		SAY(g, HEALTH_GOOD, check, "none here");
	else if (rc != NVML_OK)
		say_failed(g, check, rc);
	else if (f.state != NVML_FABRIC_COMPLETED) /* a single GPU may be used without */
		SAY(g, g->visible > 1 ? HEALTH_BAD : HEALTH_UNKNOWN, check,
			"it has not %s its fabric: does Fabric Manager run?",
			f.state == NVML_FABRIC_NOT_STARTED ? "begun to join" : "joined");
	else if (f.status != NVML_OK)
		SAY(g, HEALTH_BAD, check, "it could not join its fabric: %s", nvml_words(f.status));
	else if (fault)
		SAY(g, HEALTH_BAD, check, "%s", fault);
	else
		SAY(g, HEALTH_GOOD, check, "joined");
}

/* Whether it works right now: a link that an idle GPU has narrowed is wide again then. */
static bool is_busy(struct gpu *g)
{
	struct nvml_utilization busy;

	task_step(g->answer, "nvmlDeviceGetUtilizationRates");
	return g->nvml.utilization && g->nvml.utilization(g->device, &busy) == NVML_OK &&
		busy.gpu > 0;
}

/* Both generation and width may fall where a GPU is idle. */
static void look_pcie(struct gpu *g, const char *check)
{
	const struct value *given =
		settings_of_model(g->in->settings, SET_CHECK_PCIE_WIDTH, g->name);
	unsigned width = 0, most = 0, want;
	int rc;

	if (!may_ask(g, check, g->nvml.pcie_width && g->nvml.pcie_width_max,
		    "nvmlDeviceGetCurrPcieLinkWidth"))
		return;
	rc = g->nvml.pcie_width(g->device, &width);
	if (rc == NVML_OK)
		rc = g->nvml.pcie_width_max(g->device, &most);
	want = given->text ? (unsigned)given->number : most;
	if (rc == NVML_OK && width > 0 && width < want && !given->text && !is_busy(g))
		SAY(g, HEALTH_UNKNOWN, check,
			"x%u of x%u, which an idle GPU may fall to: pcie-width sets the least",
			width, want);
	else if (rc == NVML_NOT_SUPPORTED || (rc == NVML_OK && width == 0))
		SAY(g, HEALTH_UNKNOWN, check, "this GPU, or the virtual machine, does not tell");
	else if (rc != NVML_OK)
		say_failed(g, check, rc);
	else
		SAY(g, width < want ? HEALTH_BAD : HEALTH_GOOD, check, "x%u of x%u", width,
			width < want ? want : most);
}

/* --- who is there already --- */

/* It serves others, and holds next to nothing. */
static bool is_server(const char *command)
{
	return strncmp(command, "nvidia-cuda-mps", 15) == 0;
}

unsigned gpu_processes(struct gpu *g, unsigned *ret_pid, char ret_command[16])
{
	static struct nvml_process found[NVML_PROCESSES_MAX]; /* large; one thread */
	unsigned n = NVML_PROCESSES_MAX, count = 0;
	char command[16];

	if (!g->nvml.processes)
		return 0;
	task_step(g->answer, "nvmlDeviceGetComputeRunningProcesses");
	if (g->nvml.processes(g->device, &n, found) != NVML_OK)
		return 0;
	for (unsigned i = 0; i < n && i < NVML_PROCESSES_MAX; i++) {
		process_command((pid_t)found[i].pid, command);
		if (is_server(command))
			continue;
		if (count++ == 0) {
			*ret_pid = found[i].pid;
			memcpy(ret_command, command, sizeof command);
		}
	}
	return count;
}

/* False: there is none that can be seen. */
static bool say_processes(struct gpu *g, const char *check)
{
	unsigned first = 0, count;
	char name[16] = "";

	count = gpu_processes(g, &first, name);
	if (count > 0)
		SAY(g, HEALTH_BAD, check, "process %u%s%s%s%s it already", first, *name ? " (" : "",
			name, *name ? ")" : "", count > 1 ? " and others use" : " uses");
	return count > 0;
}

bool gpu_is_numa(struct gpu *g)
{
	unsigned node;

	if (gpu_model_is_numa(g->name))
		return true;
	task_step(g->answer, "nvmlDeviceGetNumaNodeId");
	return g->nvml.numa_node && g->nvml.numa_node(g->device, &node) == NVML_OK;
}

int gpu_memory_used(const struct nvml_api *nvml, void *device, uint64_t *ret)
{
	struct nvml_memory_v2 v2 = { .version = NVML_MEMORY_VERSION };
	struct nvml_memory v1 = { 0 };
	int rc = NVML_NOT_SUPPORTED;

	if (nvml->memory_v2)
		rc = nvml->memory_v2(device, &v2);
	*ret = v2.used;
	if (rc != NVML_OK && !nvml_is_bad(rc) && nvml->memory) {
		rc = nvml->memory(device, &v1);
		*ret = v1.used; /* with some 0.5 GB of the driver's own */
	}
	return rc;
}

/* Processes of another pid namespace can't be seen: then their memory alone tells. */
static void look_use(struct gpu *g, const char *check)
{
	uint64_t most = limit_of(g, SET_CHECK_GPU_MEMORY), used;
	int rc;

	if (g->in->restart || most == 0 || g->part) {
		SAY(g, HEALTH_UNKNOWN, check, "%s",
			most == 0       ? "it may be in use" :
				g->part ? "others may use the rest of it (MIG)" :
					  "it isn't looked at before a restart");
		return;
	}
	if (say_processes(g, check))
		return;
	task_step(g->answer, "nvmlDeviceGetMemoryInfo");
	rc = gpu_memory_used(&g->nvml, g->device, &used);
	if (rc == NVML_NOT_SUPPORTED)
		SAY(g, HEALTH_UNKNOWN, check, "this GPU does not tell");
	else if (rc != NVML_OK)
		say_failed(g, check, rc);
	else if (used > most && gpu_is_numa(g))
		SAY(g, HEALTH_UNKNOWN, check,
			"%s of its memory are in use, which may be the operating system's: the GPU is a "
			"NUMA node",
			num_size(used & ~(uint64_t)0xfffff).text);
	else if (used > most)
		SAY(g, HEALTH_BAD, check, "%s of its memory are held, by whom can't be seen",
			num_size(used & ~(uint64_t)0xfffff).text);
	else
		SAY(g, HEALTH_GOOD, check, "free");
}

static const struct {
	const char *check;
	void (*look)(struct gpu *g, const char *check);
} facts[GPU_FACTS] = {
	{ "gpu_recovery", look_recovery },
	{ "gpu_ecc", look_ecc },
	{ "gpu_remap", look_remap },
	{ "nvlink", look_nvlink },
	{ "gpu_fabric", look_fabric },
	{ "gpu_pcie", look_pcie },
	{ "gpu_use", look_use },
};

const char *gpu_fact_check(size_t n)
{
	return facts[n].check;
}

void gpu_facts(struct gpu *g)
{
	for (size_t i = 0; i < GPU_FACTS; i++)
		facts[i].look(g, facts[i].check);
}
