/* test_machine_read.c - what hwloc tells of machines: real ones in tests/topologies, made-up ones,
 * this one. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "daemon/facts/machine.h"
#include "daemon/facts/machine_read.h"

extern char **environ;

static struct machine read_from(const char *variable, const char *value, struct arena *arena)
{
	struct failure why = { 0 };
	struct machine m;
	int rc;

	assert_int_equal(setenv(variable, value, 1), 0);
	rc = machine_read(true, arena, &m, &why);
	assert_int_equal(unsetenv(variable), 0);
	assert_outcome(rc, 0, &why, NULL);
	assert_false(m.is_this);
	assert_contains(m.from, value);
	return m;
}

static struct machine read_topology(const char *file, struct arena *arena)
{
	const char *dir = getenv("LAUNCHD_TOPOLOGIES");

	needs(dir != NULL, "needs LAUNCHD_TOPOLOGIES, which meson test sets");
	return read_from("HWLOC_XMLFILE", arena_printf(arena, "%s/%s", dir, file), arena);
}

static void add_counts(const struct machine *m, struct text *out)
{
	unsigned usable = 0;

	for (size_t i = 0; i < m->cpu_count; i++)
		usable += m->cpus[i].usable;
	text_printf(out, "%u packages, %u L3, %u cores, %zu CPUs, %u usable;", m->package_count,
		m->l3_count, m->core_count, m->cpu_count, usable);
	for (size_t i = 0; i < m->numa_count; i++)
		text_printf(out, " %u@%d%s%s", m->numas[i].number, m->numas[i].package,
			m->numas[i].has_cpus ? "" : " no CPUs",
			m->numas[i].usable ? "" : " barred");
}

/* "2: 0000:16:00.0 at 2, mlx5_2": index, bus, NUMA node's number, the nearest InfiniBand */
static void add_gpus(const struct machine *m, struct text *out)
{
	for (size_t i = 0; i < m->gpu_count; i++) {
		const struct machine_gpu *gpu = &m->gpus[i];
		const char *nearest = "none";
		unsigned least = UINT32_MAX;

		for (size_t k = 0; k < m->nic_count; k++) {
			unsigned far = m->gpu_nic_distance[i * m->nic_count + k];

			if (m->nics[k].device && far < least) {
				least = far;
				nearest = m->nics[k].device;
			}
		}
		text_printf(out, "%s%u: %s at %d, %s", i ? "; " : "", gpu->index, gpu->bus,
			gpu->numa == MACHINE_NOWHERE ? -1 : (int)m->numas[gpu->numa].number,
			nearest);
	}
}

static const struct machine_row {
	const char *says, *file, *counts, *gpus;
} rows[] = {
	{ "8 NUMA nodes and a GPU with its own InfiniBand at some", "turin-4gpu.xml",
		"2 packages, 16 L3, 128 cores, 256 CPUs, 256 usable; 0@0 1@0 2@0 3@0 4@1 5@1 6@1 7@1",
		"0: 0000:06:00.0 at 1, mlx5_0; 1: 0000:16:00.0 at 2, mlx5_3; 2: 0000:96:00.0 at 6, mlx5_4; 3: 0000:e6:00.0 at 7, mlx5_5" },
	{ "16 GPUs behind switches", "dgx2.xml",
		"2 packages, 2 L3, 4 cores, 4 CPUs, 4 usable; 0@0 1@1",
		"0: 0000:34:00.0 at 0, none; 1: 0000:36:00.0 at 0, none; 2: 0000:39:00.0 at 0, none; 3: 0000:3b:00.0 at 0, none; 4: 0000:57:00.0 at 0, none; 5: 0000:59:00.0 at 0, none; 6: 0000:5c:00.0 at 0, none; 7: 0000:5e:00.0 at 0, none; 8: 0000:b7:00.0 at 1, none; 9: 0000:b9:00.0 at 1, none; 10: 0000:bc:00.0 at 1, none; 11: 0000:be:00.0 at 1, none; 12: 0000:e0:00.0 at 1, none; 13: 0000:e2:00.0 at 1, none; 14: 0000:e5:00.0 at 1, none; 15: 0000:e7:00.0 at 1, none" },
	{ "memory of GPUs", "power9-gpu-memory.xml",
		"2 packages, 4 L3, 8 cores, 32 CPUs, 32 usable; 0@0 253@0 no CPUs 254@0 no CPUs 255@0 no CPUs 8@1 250@1 no CPUs 251@1 no CPUs 252@1 no CPUs",
		"" },
	{ "a cpuset", "opteron-cpuset.xml",
		"6 packages, 0 L3, 10 cores, 10 CPUs, 10 usable; 1@-1 2@-1 3@-1 5@-1 no CPUs 4@-1 no CPUs",
		"" },
	{ "a NUMA node whose memory is offline", "offline-node.xml",
		"2 packages, 2 L3, 17 cores, 17 CPUs, 17 usable; 1@1", "" },
	{ "CPUs that are offline", "offline-cpus.xml",
		"4 packages, 4 L3, 7 cores, 12 CPUs, 12 usable; 0@-1", "" },
};

static void test_real(void **state)
{
	const struct machine_row *row = *state;
	struct text counts = { 0 }, gpus = { 0 };
	struct arena arena = { 0 };
	struct machine m = read_topology(row->file, &arena);

	add_counts(&m, &counts);
	add_gpus(&m, &gpus);
	assert_string_equal(text_string(&counts), row->counts);
	assert_string_equal(text_string(&gpus), row->gpus);
	text_done(&counts);
	text_done(&gpus);
	arena_done(&arena);
}

/* Numbers within the machine, and those of the kernel, of one whose numbers differ. */
static void test_numbers(void **state)
{
	struct arena arena = { 0 };
	struct machine m = read_from(
		"HWLOC_SYNTHETIC", "pack:2 numa:2 l3:2 core:2 pu:2(indexes=1*8:2*2)", &arena);

	(void)state;
	assert_int_equal(m.cpu_count, 32);
	assert_int_equal(m.core_count, 16);
	assert_int_equal(m.l3_count, 8);
	for (int i = 0; i < 32; i++) {
		assert_int_equal(m.cpus[i].core, i / 2);
		assert_int_equal(m.cpus[i].l3, i / 4);
		assert_int_equal(m.cpus[i].numa, i / 8);
		assert_int_equal(m.cpus[i].package, i / 16);
		assert_true(m.cpus[i].usable);
	}
	assert_int_equal(m.numa_count, 4);
	assert_int_equal(m.gpu_count, 0);
	assert_int_equal(m.quota, 0);
	arena_done(&arena);
}

static void test_nics(void **state)
{
	struct arena arena = { 0 };
	struct machine m = read_topology("turin-4gpu.xml", &arena);
	struct text out = { 0 };

	(void)state;
	for (size_t i = 0; i < m.nic_count; i++)
		text_printf(&out, "%s%s/%u/%s at %d%s", i ? "; " : "",
			m.nics[i].device ? m.nics[i].device : "-", m.nics[i].port,
			m.nics[i].net ? m.nics[i].net : "-",
			m.nics[i].numa == MACHINE_NOWHERE ? -1 :
							    (int)m.numas[m.nics[i].numa].number,
			m.nics[i].up ? "" : " down");
	assert_string_equal(text_string(&out),
		"mlx5_0/1/ib3x at 1 down; mlx5_3/1/ib2x at 2 down; -/0/eno6 at 0; mlx5_1/1/eno4np0 at 3 down; mlx5_2/1/eno5np1 at 3 down; mlx5_4/1/ib1x at 6; mlx5_5/1/ib0 at 7");
	text_done(&out);
	arena_done(&arena);
}

/* SLIT's, by the machine's numbers. */
static void test_distances(void **state)
{
	struct arena arena = { 0 };
	struct machine m = read_topology("turin-4gpu.xml", &arena);

	(void)state;
	assert_non_null(m.numa_distance);
	assert_int_equal(m.numa_distance[0], 10);
	assert_true(m.numa_distance[1] < m.numa_distance[7]);
	assert_int_equal(m.numa_distance[7], m.numa_distance[7 * 8]);
	arena_done(&arena);
}

/* This machine: the mask counts, and the environment is as it was. */
static void test_here(void **state)
{
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct machine m;
	cpu_set_t before, one;
	size_t usable = 0, variables = 0, after = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	CPU_ZERO(&one);
	for (unsigned i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &before))
			CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	while (environ[variables])
		variables++;
	assert_int_equal(machine_read(false, &arena, &m, &why), 0);
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
	while (environ[after])
		after++;
	assert_int_equal(variables, after);
	assert_null(getenv("HWLOC_PLUGINS_PATH"));
	assert_true(m.is_this);
	assert_int_equal(strncmp(m.from, "hwloc 2.", 8), 0);
	assert_int_equal(m.cpu_count, sysconf(_SC_NPROCESSORS_ONLN));
	for (size_t i = 0; i < m.cpu_count; i++) {
		usable += m.cpus[i].usable;
		assert_true(!m.cpus[i].usable || CPU_ISSET(m.cpus[i].number, &one));
		assert_true(m.cpus[i].core >= 0 && (unsigned)m.cpus[i].core < m.core_count);
	}
	assert_int_equal(usable, 1);
	assert_true(m.numa_count >= 1);
	arena_done(&arena);
}

/* Who doesn't need them doesn't wait for them. */
static void test_no_devices(void **state)
{
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct machine with = read_topology("turin-4gpu.xml", &arena), m;
	int rc;

	(void)state;
	assert_int_equal(setenv("HWLOC_XMLFILE", strstr(with.from, "/"), 1), 0);
	rc = machine_read(false, &arena, &m, &why);
	assert_int_equal(unsetenv("HWLOC_XMLFILE"), 0);
	assert_outcome(rc, 0, &why, NULL);
	assert_int_equal(with.gpu_count, 4);
	assert_int_equal(m.gpu_count, 0);
	assert_int_equal(m.nic_count, 0);
	assert_int_equal(m.cpu_count, with.cpu_count);
	arena_done(&arena);
}

static void test_no_machine(void **state)
{
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct machine m;
	int rc;

	(void)state;
	assert_int_equal(setenv("HWLOC_XMLFILE", "/dev/null", 1), 0);
	rc = machine_read(true, &arena, &m, &why);
	assert_int_equal(unsetenv("HWLOC_XMLFILE"), 0);
	assert_outcome(rc, -EIO, &why, "hwloc can't read HWLOC_XMLFILE=/dev/null: ");
	arena_done(&arena);
}

/* --- who asks for it --- */

static const struct need_row {
	const char *says;
	struct {
		enum setting_id id;
		const char *text;
	} given[2];
	const char *by; /* NULL: nobody */
	bool devices;
} needed[] = {
	{ "nothing is asked", { { SET_NPROC_PER_NODE, "4" }, { SET_ROLE, "x" } }, NULL, false },
	{ "a bind", { { SET_BIND, "core" }, { SET_ROLE, "x" } }, "--bind", false },
	{ "a bind to GPUs", { { SET_BIND, "gpu" }, { SET_ROLE, "x" } }, "--bind", true },
	{ "... or perhaps", { { SET_BIND, "auto" }, { SET_ROLE, "x" } }, "--bind", true },
	{ "none", { { SET_BIND, "none" }, { SET_MEMBIND, "none" } }, NULL, false },
	{ "torchrun's", { { SET_NUMA_BINDING, "node" }, { SET_ROLE, "x" } }, "--numa-binding",
		true },
	{ "memory", { { SET_MEMBIND, "local" }, { SET_ROLE, "x" } }, "--membind", false },
	{ "cores", { { SET_CPUS_PER_WORKER, "2" }, { SET_ROLE, "x" } }, "--cpus-per-worker", true },
	{ "threads by cores", { { SET_OMP_THREADS, "auto" }, { SET_ROLE, "x" } }, "--omp-threads",
		false },
	{ "threads by number", { { SET_OMP_THREADS, "4" }, { SET_ROLE, "x" } }, NULL, false },
	{ "others place the workers", { { SET_BIND, "core" }, { SET_NODE_ENV, "1" } }, NULL,
		false },
	{ "... who need threads", { { SET_OMP_THREADS, "auto" }, { SET_PER_PROCESS, "1" } },
		"--omp-threads", false },
};

static void test_needed(void **state)
{
	const struct need_row *row = *state;
	struct settings_fixture b;
	const char *by;

	settings_fixture_make(&b, false);
	for (size_t i = 0; i < 2; i++)
		settings_fixture_put(&b, row->given[i].id, row->given[i].text,
			arena_printf(&b.arena, "--%s", setting_rows[row->given[i].id].flag));
	by = machine_is_needed(&b.s);
	assert_int_equal(machine_devices_are_needed(&b.s), row->devices);
	if (row->by)
		assert_string_equal(by, row->by);
	else
		assert_null(by);
	settings_fixture_done(&b);
}

TESTS(machine_read)
{
	static struct suite s;

	SUITE_ROWS(&s, test_real, rows);
	SUITE_ROWS(&s, test_needed, needed);
	suite_add(&s, "numbers of a machine and of the kernel", test_numbers, NULL, NULL);
	suite_add(&s, "network devices", test_nics, NULL, NULL);
	suite_add(&s, "distances", test_distances, NULL, NULL);
	suite_add(&s, "this machine", test_here, NULL, NULL);
	suite_add(&s, "no devices", test_no_devices, NULL, NULL);
	suite_add(&s, "a file that is no machine", test_no_machine, NULL, NULL);
	return suite_run(&s);
}
