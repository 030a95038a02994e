/* machine_read.c - see machine_read.h */
#include "daemon/facts/machine_read.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/failure.h"
#include "config/settings.h"
#include "daemon/facts/hwloc_calls.h"
#include "daemon/os/cgroup_paths.h"
#include "daemon/os/cpu_quota.h"
#include "daemon/os/dlib.h"

#define PLUGINS "HWLOC_PLUGINS_PATH"

enum {
	CPUS_MOST = 16384, /* more than any kernel of today is built for (CONFIG_NR_CPUS) */
	API_MAJOR = HWLOC_API_VERSION >> 16,
};

#define CALL(function, member) \
	{ \
#function, offsetof(struct hwloc_calls, member), DLIB_LINKED(function) \
	}

static const struct dlib_symbol symbols[] = {
	CALL(hwloc_get_api_version, api_version),
	CALL(hwloc_topology_init, init),
	CALL(hwloc_topology_set_components, set_components),
	CALL(hwloc_topology_set_type_filter, set_type_filter),
	CALL(hwloc_topology_set_icache_types_filter, set_icache_types_filter),
	CALL(hwloc_topology_set_io_types_filter, set_io_types_filter),
	CALL(hwloc_topology_set_flags, set_flags),
	CALL(hwloc_topology_load, load),
	CALL(hwloc_topology_destroy, destroy),
	CALL(hwloc_topology_is_thissystem, is_thissystem),
	CALL(hwloc_get_type_depth, type_depth),
	CALL(hwloc_get_nbobjs_by_depth, count),
	CALL(hwloc_get_obj_by_depth, object),
	CALL(hwloc_topology_get_allowed_cpuset, allowed_cpuset),
	CALL(hwloc_topology_get_allowed_nodeset, allowed_nodeset),
	CALL(hwloc_bitmap_isset, isset),
	CALL(hwloc_bitmap_weight, weight),
	CALL(hwloc_bitmap_first, first),
	CALL(hwloc_distances_get_by_name, distances),
	CALL(hwloc_distances_release, distances_release),
	{ NULL, 0, NULL },
};

const struct dlib hwloc_library = {
	.name = "hwloc",
	.file = "libhwloc.so.15",
	.hint = "version 2.1 or later: package libhwloc15 or hwloc-libs",
	.symbols = symbols,
	.adds = "placement: --bind, --numa-binding, --membind",
};

const char *machine_is_needed(const struct settings *s)
{
	static const enum setting_id ids[] = { SET_BIND, SET_NUMA_BINDING, SET_MEMBIND,
		SET_CPUS_PER_WORKER };
	bool placed_by_others = settings_flag(s, SET_NODE_ENV) || settings_flag(s, SET_PER_PROCESS);

	for (size_t i = 0; i < sizeof ids / sizeof *ids && !placed_by_others; i++)
		if (settings_given(s, ids[i]) && strcmp(settings_text(s, ids[i]), "none") != 0)
			return settings_label(s, ids[i]);
	if (settings_is(s, SET_NIC, "gpu") && !settings_flag(s, SET_NODE_ENV))
		return settings_label(s, SET_NIC);
	return settings_is(s, SET_OMP_THREADS, "auto") ? settings_label(s, SET_OMP_THREADS) : NULL;
}

bool machine_devices_are_needed(const struct settings *s)
{
	return settings_is(s, SET_BIND, "gpu") || settings_is(s, SET_BIND, "auto") ||
		settings_given(s, SET_NUMA_BINDING) || settings_given(s, SET_CPUS_PER_WORKER) ||
		settings_is(s, SET_NIC, "gpu") || settings_given(s, SET_DRY_RUN);
}

/* Without a change of anything: no policy has this number. A container's seccomp rules refuse the
 * call, or the kernel has none. */
static int memory_error(void)
{
	return syscall(SYS_set_mempolicy, -1, NULL, 0) == 0 || errno == EINVAL ? 0 : errno;
}

/* What isn't asked for isn't looked for. */
static int configure(const struct hwloc_calls *call, bool devices, hwloc_topology_t t)
{
	static const hwloc_obj_type_t unused[] = { HWLOC_OBJ_MISC, HWLOC_OBJ_MEMCACHE,
		HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE };
	int rc = call->set_icache_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE) |
		call->set_io_types_filter(t,
			devices ? HWLOC_TYPE_FILTER_KEEP_IMPORTANT : HWLOC_TYPE_FILTER_KEEP_NONE) |
		call->set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);

	/* it visits each CPU and asks it what Linux has told already; elsewhere there is none */
	(void)call->set_components(t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
	for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
		rc |= call->set_type_filter(t, unused[i], HWLOC_TYPE_FILTER_KEEP_NONE);
	return rc;
}

/* hwloc's plugins ask OpenCL, CUDA and NVML for GPUs: that takes seconds, and hangs where a GPU
 * does. The kernel alone knows what is needed here. Nothing else reads the environment meanwhile:
 * this is before any thread. */
static int load(const struct hwloc_calls *call, bool devices, hwloc_topology_t *ret)
{
	bool ours = !getenv(PLUGINS) && setenv(PLUGINS, "/dev/null", 1) == 0;
	hwloc_topology_t t;
	int rc = call->init(&t), error;

	if (rc == 0 && (configure(call, devices, t) < 0 || call->load(t) < 0)) {
		error = errno;
		call->destroy(t);
		errno = error;
		rc = -1;
	}
	error = errno;
	if (ours)
		(void)unsetenv(PLUGINS);
	errno = error;
	if (rc == 0)
		*ret = t;
	return rc;
}

static hwloc_obj_t ancestor(hwloc_obj_t o, hwloc_obj_type_t type)
{
	while (o && o->type != type)
		o = o->parent;
	return o;
}

static int number_of(hwloc_obj_t o)
{
	return o ? (int)o->logical_index : MACHINE_NOWHERE;
}

/* All objects of a type, in the order of the topology. */
static unsigned objects(const struct hwloc_machine *h, hwloc_obj_type_t type, int *ret_depth)
{
	*ret_depth = h->call->type_depth(h->topology, type);
	return *ret_depth == HWLOC_TYPE_DEPTH_UNKNOWN || *ret_depth == HWLOC_TYPE_DEPTH_MULTIPLE ?
		0 :
		h->call->count(h->topology, *ret_depth);
}

static void read_numas(const struct hwloc_machine *h)
{
	hwloc_const_nodeset_t allowed = h->call->allowed_nodeset(h->topology);
	struct machine *m = h->m;
	int depth;

	m->numa_count = objects(h, HWLOC_OBJ_NUMANODE, &depth);
	m->numas = arena_alloc(h->arena, (m->numa_count + 1) * sizeof *m->numas);
	for (unsigned i = 0; m->numas && i < m->numa_count; i++) {
		hwloc_obj_t o = h->call->object(h->topology, depth, i);
		uint64_t bytes = o->attr ? o->attr->numanode.local_memory : 0;

		m->numas[i] = (struct machine_numa){
			.number = o->os_index,
			.package = number_of(ancestor(o, HWLOC_OBJ_PACKAGE)),
			.memory_bytes = bytes,
			/* the kernel refuses a policy for a node without memory */
			.usable = h->call->isset(allowed, o->os_index) && (bytes || !m->is_this),
		};
	}
}

/* Of the nodes that lie at a CPU the one whose CPU it is for the kernel: memory of a GPU or a slow
 * kind is there for more CPUs, and comes later. */
static int numa_of_cpu(const struct hwloc_machine *h, hwloc_obj_t cpu)
{
	int depth, best = MACHINE_NOWHERE, best_weight = INT_MAX;
	unsigned count = objects(h, HWLOC_OBJ_NUMANODE, &depth), best_number = UINT_MAX;

	for (unsigned i = 0; i < count; i++) {
		hwloc_obj_t o = h->call->object(h->topology, depth, i);
		int weight = h->call->weight(o->cpuset);

		if (!h->call->isset(o->cpuset, cpu->os_index) || weight > best_weight ||
			(weight == best_weight && o->os_index > best_number))
			continue;
		best = (int)i;
		best_weight = weight;
		best_number = o->os_index;
	}
	return best;
}

/* The mask counts; the allowed ones are those of the cpuset. */
static bool is_usable(
	const struct hwloc_machine *h, const cpu_set_t *mask, size_t size, unsigned number)
{
	return h->m->is_this ? CPU_ISSET_S(number, size, mask) :
			       h->call->isset(h->call->allowed_cpuset(h->topology), number);
}

static void read_cpus(const struct hwloc_machine *h, const cpu_set_t *mask, size_t size)
{
	struct machine *m = h->m;
	int depth;

	m->cpu_count = objects(h, HWLOC_OBJ_PU, &depth);
	m->cpus = arena_alloc(h->arena, (m->cpu_count + 1) * sizeof *m->cpus);
	for (unsigned i = 0; m->cpus && i < m->cpu_count; i++) {
		hwloc_obj_t o = h->call->object(h->topology, depth, i);
		hwloc_obj_t core = ancestor(o, HWLOC_OBJ_CORE);
		struct machine_cpu *cpu = &m->cpus[i];

		*cpu = (struct machine_cpu){
			.number = o->os_index,
			.core = core ? (int)core->logical_index :
				       (int)i, /* some hypervisors tell none */
			.l3 = number_of(ancestor(o, HWLOC_OBJ_L3CACHE)),
			.numa = numa_of_cpu(h, o),
			.package = number_of(ancestor(o, HWLOC_OBJ_PACKAGE)),
			.usable = is_usable(h, mask, size, o->os_index),
		};
		if (cpu->numa != MACHINE_NOWHERE)
			m->numas[cpu->numa].has_cpus = true;
	}
	m->core_count = objects(h, HWLOC_OBJ_CORE, &depth);
	if (m->core_count == 0)
		m->core_count = (unsigned)m->cpu_count;
	m->l3_count = objects(h, HWLOC_OBJ_L3CACHE, &depth);
	m->package_count = objects(h, HWLOC_OBJ_PACKAGE, &depth);
}

/* As the firmware's SLIT has them. */
static void read_distances(const struct hwloc_machine *h)
{
	struct hwloc_distances_s *d = NULL;
	size_t n = h->m->numa_count;
	unsigned *far, count = 1;

	if (n < 2 || h->call->distances(h->topology, "NUMALatency", &count, &d, 0) < 0 ||
		count == 0 || !d)
		return;
	far = d->nbobjs == n ? arena_alloc(h->arena, n * n * sizeof *far) : NULL;
	for (unsigned i = 0; far && i < n; i++)
		for (unsigned k = 0; k < n; k++)
			far[d->objs[i]->logical_index * n + d->objs[k]->logical_index] =
				(unsigned)d->values[i * n + k];
	h->m->numa_distance = far;
	h->call->distances_release(h->topology, d);
}

/* The variable by which hwloc takes another machine, in its own order; NULL: it takes this one. */
static const char *foreign_source(void)
{
	static const char *const variables[] = { "HWLOC_XMLFILE", "HWLOC_SYNTHETIC",
		"HWLOC_CPUID_PATH", "HWLOC_FSROOT" };

	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		if (getenv(variables[i]))
			return variables[i];
	return NULL;
}

/* hwloc reads this machine where it can't read the other, and says nothing. */
static const char *source(const struct hwloc_machine *h)
{
	const char *variable = foreign_source(), *value = variable ? getenv(variable) : NULL;
	unsigned version = h->call->api_version();
	const char *name =
		arena_printf(h->arena, "hwloc %u.%u", version >> 16, version >> 8 & 0xff);

	if (!h->m->is_this)
		return arena_printf(h->arena, "%s, %s", name, value ? value : "another machine");
	if (!value || strncmp(variable, "HWLOC_FSROOT", 12) == 0 || getenv("HWLOC_THISSYSTEM"))
		return name;
	return arena_printf(h->arena, "%s, not %s=%s, which it can't read", name, variable, value);
}

static int read_all(const struct hwloc_machine *h, struct failure *why)
{
	static cpu_set_t mask[CPUS_MOST / CPU_SETSIZE];
	struct machine *m = h->m;
	struct cgroup_paths paths;

	m->is_this = h->call->is_thissystem(h->topology) == 1;
	m->from = source(h);
	if (sched_getaffinity(0, sizeof mask, mask) < 0)
		return failure_set(why, -EIO, "sched_getaffinity: %s", strerror(errno));
	read_numas(h);
	read_cpus(h, mask, sizeof mask);
	read_distances(h);
	machine_devices(h);
	m->memory_error = memory_error();
	if (m->is_this && cgroup_paths_read("", h->arena, &paths) == 0)
		m->quota = cpu_quota_read(&paths);
	if (arena_failed(h->arena))
		return failure_oom(why);
	return m->cpu_count > 0 ? 0 : failure_set(why, -EIO, "%s shows no CPU", m->from);
}

static int not_loaded(int error, struct failure *why)
{
	const char *variable = foreign_source();

	return failure_set(why, -EIO, "hwloc can't read %s%s%s: %s",
		variable ? variable : "the machine", variable ? "=" : "",
		variable ? getenv(variable) : "", strerror(error));
}

int machine_read(bool devices, struct arena *arena, struct machine *ret, struct failure *why)
{
	struct hwloc_calls call;
	struct machine m = { .devices_read = devices };
	struct hwloc_machine h = { .call = &call, .arena = arena, .m = &m };
	void *library;
	int rc = dlib_open(&hwloc_library, NULL, &call, &library, why);

	if (rc < 0)
		return rc;
	if (call.api_version() >> 16 != API_MAJOR)
		rc = failure_set(why, -ELIBBAD, "hwloc: %s has API version %u, not %d",
			hwloc_library.file, call.api_version() >> 16, API_MAJOR);
	else if (load(&call, devices, &h.topology) < 0)
		rc = not_loaded(errno, why);
	if (rc == 0) {
		rc = read_all(&h, why);
		call.destroy(h.topology);
	}
	if (library)
		(void)dlclose(library);
	if (rc == 0)
		*ret = m;
	return rc;
}
