/* test_picture.c - machines and their workers as text and JSON. Pictures of real machines are
 * golden files of tests/process/test_picture.py. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/bits.h"
#include "common/json.h"
#include "common/text.h"
#include "common/vec.h"
#include "daemon/place/picture.h"
#include "daemon/place/placing.h"
#include "tests/unit/daemon/place/machine_fixture.h"
#include "tests/unit/json.h"

struct drawn {
	struct arena a;
	struct machine m;
	struct placement placement;
	int gpus_of[16];
	struct picture p;
};

static struct bits bits_of(struct arena *a, const char *text)
{
	struct bits b = { 0 };

	assert_int_equal(bits_parse(text, strlen(text), a, &b), 0);
	return b;
}

/* cpus of each worker; NULL: not bound. Its GPU has its number. */
static void place(struct drawn *d, unsigned count, const char *const *cpus)
{
	d->placement.of = arena_alloc(&d->a, count * sizeof *d->placement.of);
	d->placement.count = count;
	for (unsigned i = 0; i < count; i++) {
		struct worker_place *w = &d->placement.of[i];

		*w = (struct worker_place){ .gpu = MACHINE_NOWHERE, .nic = MACHINE_NOWHERE };
		w->why = arena_printf(&d->a, "why of %u", i);
		if (cpus[i])
			w->cpus = bits_of(&d->a, cpus[i]);
		d->gpus_of[i] = i < d->m.gpu_count ? (int)i : MACHINE_NOWHERE;
	}
	d->p = (struct picture){ .machine = &d->m,
		.placement = &d->placement,
		.gpus_of = d->gpus_of,
		.per_worker = 1,
		.first_rank = 8,
		.ranks_known = true,
		.start_count = count };
}

/* expected: ends with NULL */
static void assert_lines(struct drawn *d, const char *const *expected)
{
	struct vec lines = { 0 };
	struct text json = { 0 };
	struct json j = { .out = &json };

	picture_lines(&d->p, &d->a, &lines);
	for (size_t i = 0; expected[i]; i++) {
		assert_true(i < lines.count);
		assert_string_equal(lines.at[i], expected[i]);
	}
	for (size_t i = 0; i < lines.count; i++) {
		assert_non_null(expected[i]);
		assert_true(strlen(lines.at[i]) <= PICTURE_WIDTH);
	}
	json_object_begin(&j, NULL);
	picture_json(&d->p, &d->a, &j);
	json_object_end(&j);
	assert_true(json_is_valid(json.at, json.len));
	assert_contains(json.at, expected[0]);
	text_done(&json);
	arena_done(&d->a);
}

static void add_eight(struct drawn *d)
{
	static const char *const buses[] = { "0000:1b:00.0", "0000:43:00.0", "0000:52:00.0",
		"0000:61:00.0", "0000:9d:00.0", "0000:c3:00.0", "0000:d1:00.0", "0000:df:00.0" };

	for (int i = 0; i < 8; i++) {
		machine_add_gpu(&d->m, &d->a, i / 4, buses[i]);
		machine_add_nic(&d->m, &d->a, i / 4, buses[i], arena_printf(&d->a, "mlx5_%d", i),
			arena_printf(&d->a, "ib%d", i), i != 6);
	}
	machine_add_nic(&d->m, &d->a, 0, "0000:01:00.0", NULL, "eno1", true);
}

/* 2 x 64 cores x 8 GPUs: no line for each core. */
static void test_large(void **state)
{
	static const char *const cpus[] = { "0-15,128-143", "16-31,144-159", "32-47,160-175",
		"48-63,176-191", "64-79,192-207", "80-95,208-223", "96-111,224-239",
		"112-127,240-255" };
	static const char *const expected[] = {
		"2 sockets, 2 NUMA nodes, 128 cores with 2 CPUs each, 8 GPUs, 9 NICs (a model)",
		"socket 0", "  NUMA node 0: 64 cores, CPUs 0-63,128-191, 64 GiB",
		"      GPU 0  0000:1b:00.0  NVIDIA H100 80GB HBM3  NIC mlx5_0:1  rank 8",
		"      GPU 1  0000:43:00.0  NVIDIA H100 80GB HBM3  NIC mlx5_1:1  rank 9",
		"      GPU 2  0000:52:00.0  NVIDIA H100 80GB HBM3  NIC mlx5_2:1  rank 10",
		"      GPU 3  0000:61:00.0  NVIDIA H100 80GB HBM3  NIC mlx5_3:1  rank 11",
		"      NICs mlx5_0:1 (ib0), mlx5_1:1 (ib1), mlx5_2:1 (ib2), mlx5_3:1 (ib3), eno1",
		"      rank 8   CPUs 0-15,128-143   memory prefer 0  GPU 0  why of 0",
		"      rank 9   CPUs 16-31,144-159  memory prefer 0  GPU 1  why of 1",
		"      rank 10  CPUs 32-47,160-175  memory prefer 0  GPU 2  why of 2",
		"      rank 11  CPUs 48-63,176-191  memory prefer 0  GPU 3  why of 3", "socket 1",
		"  NUMA node 1: 64 cores, CPUs 64-127,192-255, 64 GiB",
		"      GPU 4  0000:9d:00.0  NVIDIA H100 80GB HBM3  NIC mlx5_4:1  rank 12",
		"      GPU 5  0000:c3:00.0  NVIDIA H100 80GB HBM3  NIC mlx5_5:1  rank 13",
		"      GPU 6  0000:d1:00.0  NVIDIA H100 80GB HBM3  NIC mlx5_4:1  rank 14",
		"      GPU 7  0000:df:00.0  NVIDIA H100 80GB HBM3  NIC mlx5_7:1  rank 15",
		"      NICs mlx5_4:1 (ib4), mlx5_5:1 (ib5), mlx5_6:1 (ib6, down), mlx5_7:1 (ib7)",
		"      rank 12  CPUs 64-79,192-207    memory prefer 1  GPU 4  why of 4",
		"      rank 13  CPUs 80-95,208-223    memory prefer 1  GPU 5  why of 5",
		"      rank 14  CPUs 96-111,224-239   memory prefer 1  GPU 6  why of 6",
		"      rank 15  CPUs 112-127,240-255  memory prefer 1  GPU 7  why of 7",
		"A GPU's NIC is the closest port that is up: NCCL's likely choice, and --nic gpu's.",
		NULL
	};
	struct drawn d = { 0 };

	(void)state;
	d.m = machine_make(&d.a, 2, 1, 64, 2);
	add_eight(&d);
	place(&d, 8, cpus);
	for (unsigned i = 0; i < 8; i++) {
		d.placement.of[i].memory = MEMORY_PREFER;
		d.placement.of[i].nodes = bits_of(&d.a, i < 4 ? "0" : "1");
	}
	assert_lines(&d, expected);
}

/* A virtual machine. */
static void test_small(void **state)
{
	static const char *const cpus[] = { "0", NULL };
	static const char *const expected[] = { "0 sockets, 1 NUMA node, 2 cores (a model)",
		"  NUMA node 0: 2 cores, CPUs 0-1, memory unknown", "      rank 8  CPU 0  why of 0",
		"not bound to CPUs", "  rank 9  any CPU", NULL };
	struct drawn d = { 0 };

	(void)state;
	d.m = machine_make(&d.a, 1, 1, 2, 1);
	d.m.package_count = 0;
	d.m.numas[0].package = MACHINE_NOWHERE;
	d.m.numas[0].memory_bytes = 0;
	d.m.devices_read = false;
	place(&d, 2, cpus);
	assert_lines(&d, expected);
}

/* A cpuset, a quota, ranks that nobody knows yet, shared GPUs, and one worker over two nodes. */
static void test_limited(void **state)
{
	static const char *const cpus[] = { "2-3", "2-5", NULL, NULL };
	static const char *const expected[] = {
		"1 socket, 3 NUMA nodes, 12 cores, 2 GPUs, 0 NICs (a model); the cgroup allows 2.5 CPUs",
		"socket 0", "  NUMA node 0: 4 cores, CPUs 0-3, of which 2-3 for this job, 64 GiB",
		"      GPU 0  0000:01:00.0  NVIDIA H100 80GB HBM3  local ranks 0,2",
		"      local rank 0  CPUs 2-3  memory bind 0  GPU 0  why of 0",
		"  NUMA node 1: 4 cores, CPUs 4-7, 64 GiB",
		"  NUMA node 2: 4 cores, CPUs 8-11, not for this job, 64 GiB",
		"without a NUMA node", "  GPU 1  0000:02:00.0  NVIDIA H100 80GB HBM3  local rank 1",
		"on several NUMA nodes", "  local rank 1  CPUs 2-5  GPU 1  why of 1",
		"not bound to CPUs", "  local rank 2  any CPU  GPU 0", NULL
	};
	struct drawn d = { 0 };

	(void)state;
	d.m = machine_make(&d.a, 1, 3, 4, 1);
	d.m.quota = 2500;
	machine_add_gpu(&d.m, &d.a, 0, "0000:01:00.0");
	machine_add_gpu(&d.m, &d.a, MACHINE_NOWHERE, "0000:02:00.0");
	for (unsigned i = 0; i < 12; i++)
		d.m.cpus[i].usable = i > 1 && i < 8;
	place(&d, 4, cpus);
	d.p.ranks_known = false;
	d.p.start_count = 3; /* the fourth runs elsewhere */
	d.gpus_of[2] = 0;
	d.placement.of[0].memory = MEMORY_BIND;
	d.placement.of[0].nodes = bits_of(&d.a, "0");
	assert_lines(&d, expected);
}

/* Grace: memory of GPUs as NUMA nodes; GPUs of two makers; two for a worker. */
static void test_grace(void **state)
{
	static const char *const cpus[] = { "0-71" };
	static const char *const expected[] = {
		"1 socket, 4 NUMA nodes, 72 cores, 3 GPUs, 0 NICs (a model)", "socket 0",
		"  NUMA node 0: 72 cores, CPUs 0-71, 64 GiB",
		"      GPU 0        0009:01:00.0  NVIDIA H100 80GB HBM3  rank 8",
		"      GPU 1        0019:01:00.0  NVIDIA H100 80GB HBM3  rank 8",
		"      Intel GPU 0  0029:01:00.0",
		"      rank 8  CPUs 0-71  memory local  GPU 0, GPU 1  why of 0",
		"  NUMA node 1: no CPUs, 96 GiB", "  NUMA nodes 2-3: no CPUs, no memory", NULL
	};
	struct drawn d = { 0 };

	(void)state;
	d.m = machine_make(&d.a, 1, 1, 72, 1);
	d.m.numas[1] = (struct machine_numa){ 1, 0, 96ull << 30, true, false };
	d.m.numas[2] = (struct machine_numa){ 2, 0, 0, true, false };
	d.m.numas[3] = (struct machine_numa){ 3, 0, 0, true, false };
	d.m.numa_count = 4;
	machine_add_gpu(&d.m, &d.a, 0, "0009:01:00.0");
	machine_add_gpu(&d.m, &d.a, 0, "0019:01:00.0");
	machine_add_gpu(&d.m, &d.a, 0, "0029:01:00.0");
	d.m.gpus[2] = (struct machine_gpu){ GPU_INTEL, 0, "0029:01:00.0", NULL, NULL, 0 };
	place(&d, 1, cpus);
	d.p.per_worker = 2;
	d.gpus_of[1] = 1;
	d.placement.of[0].memory = MEMORY_LOCAL;
	assert_lines(&d, expected);
}

/* A reason that is too long for its line stands below it; so does what a line of NICs has no room
 * for. */
static void test_wide(void **state)
{
	static const char *const cpus[] = { "0-1" };
	static const char *const expected[] = {
		"1 socket, 1 NUMA node, 2 cores, 0 GPUs, 12 NICs (a model)", "socket 0",
		"  NUMA node 0: 2 cores, CPUs 0-1, 64 GiB",
		"      NICs bnxt_re0:1 (ens0), bnxt_re1:1 (ens1), bnxt_re2:1 (ens2), bnxt_re3:1 (ens3),",
		"           bnxt_re4:1 (ens4), bnxt_re5:1 (ens5), bnxt_re6:1 (ens6), bnxt_re7:1 (ens7),",
		"           bnxt_re8:1 (ens8), bnxt_re9:1 (ens9), bnxt_re10:1 (ens10), bnxt_re11:1 (ens11)",
		"      rank 8  CPUs 0-1",
		"          a reason as long as this one, which needs more than what is left of a line of a hundred",
		NULL
	};
	struct drawn d = { 0 };

	(void)state;
	d.m = machine_make(&d.a, 1, 1, 2, 1);
	for (int i = 0; i < 12; i++)
		machine_add_nic(&d.m, &d.a, 0, "x", arena_printf(&d.a, "bnxt_re%d", i),
			arena_printf(&d.a, "ens%d", i), true);
	place(&d, 1, cpus);
	d.placement.of[0].why =
		"a reason as long as this one, which needs more than what is left of a line of a hundred";
	assert_lines(&d, expected);
}

static const struct cpus_row {
	const char *says, *cpus, *shown;
} cpus_rows[] = {
	{ "a short list is whole", "0-3,8,10", "0-3,8,10" },
	{ "every second one", "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32",
		"0-32 in steps of 2" },
	{ "no steps", "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,33",
		"0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,... (17 CPUs)" },
	{ "two are no steps", "0,2", "0,2" },
};

static void test_cpus(void **state)
{
	const struct cpus_row *row = *state;
	struct arena a = { 0 };
	struct bits b = bits_of(&a, row->cpus);

	assert_string_equal(picture_cpus(&b, &a), row->shown);
	arena_done(&a);
}

static void test_json(void **state)
{
	static const char *const cpus[] = { "0", NULL };
	struct drawn d = { 0 };
	struct text out = { 0 };
	struct json j = { .out = &out };

	(void)state;
	d.m = machine_make(&d.a, 1, 1, 2, 1);
	machine_add_gpu(&d.m, &d.a, 0, "0000:01:00.0");
	machine_add_nic(&d.m, &d.a, 0, "0000:02:00.0", "mlx5_0", "ib0", true);
	place(&d, 2, cpus);
	d.placement.of[0].nic = 0;
	json_object_begin(&j, NULL);
	picture_json(&d.p, &d.a, &j);
	json_object_end(&j);
	assert_contains(out.at,
		"{\"machine\":{\"from\":\"a model\",\"sockets\":1,\"cores\":2,\"cpus\":2,\"cpu_quota\":null,"
		"\"numa_nodes\":[{\"number\":0,\"socket\":0,\"memory_bytes\":68719476736,"
		"\"cpus\":\"0-1\",\"usable_cpus\":\"0-1\"}],"
		"\"gpus\":[{\"maker\":\"NVIDIA\",\"index\":0,\"bus\":\"0000:01:00.0\","
		"\"name\":\"NVIDIA H100 80GB HBM3\",\"uuid\":null,\"numa_node\":0,\"nic\":\"mlx5_0:1\"}],"
		"\"nics\":[{\"name\":\"mlx5_0:1\",\"interface\":\"ib0\",\"bus\":\"0000:02:00.0\","
		"\"numa_node\":0,\"up\":true}]},"
		"\"workers\":[{\"rank\":8,\"local_rank\":0,\"cpus\":\"0\",\"memory\":null,"
		"\"memory_nodes\":null,\"gpus\":[0],\"nic\":\"mlx5_0:1\",\"why\":\"why of 0\"},"
		"{\"rank\":9,\"local_rank\":1,\"cpus\":null,\"memory\":null,\"memory_nodes\":null,"
		"\"gpus\":[],\"nic\":null,\"why\":\"why of 1\"}],\"picture\":[\"1 socket, ");
	text_done(&out);
	arena_done(&d.a);
}

TESTS(picture)
{
	static struct suite s;

	suite_add(&s, "a large machine", test_large, NULL, NULL);
	suite_add(&s, "a virtual machine", test_small, NULL, NULL);
	suite_add(&s, "what limits workers", test_limited, NULL, NULL);
	suite_add(&s, "memory without CPUs", test_grace, NULL, NULL);
	suite_add(&s, "what is too long for a line", test_wide, NULL, NULL);
	SUITE_ROWS(&s, test_cpus, cpus_rows);
	suite_add(&s, "as JSON", test_json, NULL, NULL);
	return suite_run(&s);
}
