/* test_node_check.c - memory, disks and clock; what the kernel says is played here. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include "daemon/check/finding.h"
#include "daemon/check/node_check.h"
#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"

enum { BLOCK = 4096, MIB_OF_BLOCKS = (1 << 20) / BLOCK };

static struct plain {
	uint64_t free_mib;
	bool no_inode, no_blocks;
	int error;        /* of statvfs(), for the path itself */
	const char *only; /* the one path that is there; NULL: all are */
	rlim_t memlock;
	bool ib;
	struct timex clock;
	int clock_error;
} kernel;

static struct findings found;
static struct settings_fixture b;

int __wrap_statvfs64(const char *path, struct statvfs *ret);
int __wrap_getrlimit64(int which, struct rlimit *ret);
int __wrap_adjtimex(struct timex *ret);
bool __wrap_ib_is_there(const struct quick_input *in);

int __wrap_statvfs64(const char *path, struct statvfs *ret)
{
	errno = kernel.error ? kernel.error : ENOENT;
	if (kernel.error || (kernel.only && strcmp(path, kernel.only) != 0))
		return -1;
	*ret = (struct statvfs){ .f_bsize = BLOCK,
		.f_frsize = BLOCK,
		.f_blocks = kernel.no_blocks ? 0 : 1 << 28,
		.f_bavail = kernel.free_mib * MIB_OF_BLOCKS,
		.f_files = 100,
		.f_favail = kernel.no_inode ? 0 : 50 };
	return 0;
}

int __wrap_getrlimit64(int which, struct rlimit *ret)
{
	assert_int_equal(which, RLIMIT_MEMLOCK);
	*ret = (struct rlimit){ kernel.memlock, RLIM_INFINITY };
	return 0;
}

int __wrap_adjtimex(struct timex *ret)
{
	assert_int_equal(ret->modes, 0); /* nothing is set */
	*ret = kernel.clock;
	errno = kernel.clock_error;
	return kernel.clock_error ? -1 : TIME_OK;
}

bool __wrap_ib_is_there(const struct quick_input *in)
{
	(void)in;
	return kernel.ib;
}

struct given {
	enum setting_id id;
	const char *text;
};

static const struct node_row {
	const char *says;
	struct plain kernel;
	unsigned gpus;
	struct given given;
	const char *check;
	enum health health;
	const char *text;
} rows[] = {
#define FREE(mib) \
	{ \
		.free_mib = mib, .memlock = RLIM_INFINITY \
	}
#define LOCK(bytes, there) \
	{ \
		.free_mib = 1, .memlock = bytes, .ib = there \
	}
#define CLOCK(is, off) \
	{ \
		.free_mib = 1, .memlock = RLIM_INFINITY, .clock = {.status = is, .offset = off } \
	}
#define NOTHING \
	{ \
		SET_CHECK_DISK, "256M" \
	}
	{ "/dev/shm as Docker makes it, for a worker", FREE(64), 1, NOTHING, "shm", HEALTH_GOOD,
		"64 MiB of 1 TiB are free" },
	{ "/dev/shm as Docker makes it, for several GPUs", FREE(64), 8, NOTHING, "shm", HEALTH_BAD,
		"64 MiB of 1 TiB are free: there have to be 1 GiB (for Docker, --shm-size or "
		"--ipc=host)" },
	{ "/dev/shm that is large enough", FREE(1024), 8, NOTHING, "shm", HEALTH_GOOD,
		"1 GiB of 1 TiB are free" },
	{ "/dev/shm that is to be larger", FREE(1024), 1, { SET_CHECK_SHM, "2G" }, "shm",
		HEALTH_BAD,
		"1 GiB of 1 TiB are free: there have to be 2 GiB (for Docker, --shm-size or "
		"--ipc=host)" },
	{ "no /dev/shm, and nobody asks for it", { .error = ENOENT }, 0, NOTHING, "shm",
		HEALTH_UNKNOWN, "No such file or directory" },
	{ "no /dev/shm for several GPUs", { .error = ENOENT }, 2, NOTHING, "shm", HEALTH_BAD,
		"No such file or directory" },
	{ "a disk with room", FREE(256), 0, NOTHING, "disk", HEALTH_GOOD, "256 MiB are free" },
	{ "a disk without", FREE(255), 0, NOTHING, "disk", HEALTH_BAD,
		"255 MiB are free: there have to be 256 MiB" },
	{ "a disk that may be full", FREE(0), 0, { SET_CHECK_DISK, "0" }, "disk", HEALTH_GOOD,
		"0 bytes are free" },
	{ "no inode", { .free_mib = 9999, .no_inode = true }, 0, NOTHING, "disk", HEALTH_BAD,
		"no inode is free" },
	{ "a file system without blocks", { .no_blocks = true }, 0, NOTHING, "disk", HEALTH_UNKNOWN,
		"its file system does not tell" },
	{ "a directory that will be made", { .free_mib = 300, .only = "/var" }, 0, NOTHING, "disk",
		HEALTH_GOOD, "300 MiB are free" },
	{ "... on the root's disk", { .free_mib = 300, .only = "/" }, 0, NOTHING, "disk",
		HEALTH_GOOD, "300 MiB are free" },
	{ "a disk that may not be looked at", { .error = EACCES }, 0, NOTHING, "disk",
		HEALTH_UNKNOWN, "Permission denied" },
	{ "a disk that fails", { .error = EIO }, 0, NOTHING, "disk", HEALTH_BAD,
		"Input/output error" },
	{ "all memory may be locked", LOCK(RLIM_INFINITY, true), 0, NOTHING, "memlock", HEALTH_GOOD,
		"without a limit" },
	{ "a clock that is kept right", CLOCK(0, 900000), 0, NOTHING, "clock", HEALTH_GOOD,
		"synchronised" },
	{ "one that is off, in microseconds", CLOCK(0, -2500000), 0, NOTHING, "clock", HEALTH_BAD,
		"2.5 s off: at most 1 s are allowed" },
	{ "or in nanoseconds", CLOCK(STA_NANO, 2500000000), 0, NOTHING, "clock", HEALTH_BAD,
		"2.5 s off: at most 1 s are allowed" },
	{ "as much as is allowed", CLOCK(STA_NANO, 2500000000), 0, { SET_CHECK_CLOCK, "3" },
		"clock", HEALTH_GOOD, "synchronised" },
	{ "one that nobody is known to set", CLOCK(STA_UNSYNC, 0), 0, NOTHING, "clock",
		HEALTH_UNKNOWN, "the kernel does not know that anybody keeps it right" },
	{ "a sandbox that does not tell", { .clock_error = EPERM }, 0, NOTHING, "clock",
		HEALTH_UNKNOWN, "adjtimex: Operation not permitted" },
};

static void look(const struct node_row *row)
{
	struct quick_input in = { .settings = &b.s, .log_dir = "/var/log/deep/er" };
	struct tasks *all = calloc(1, sizeof *all);

	assert_non_null(all);
	assert_int_equal(tasks_init(all), 0);
	memset(&found, 0, sizeof found);
	kernel = row->kernel;
	node_check_add(&in, all);
	shm_check_add(&in, all, row->gpus);
	tasks_run(all, &found);
	tasks_done(all);
	free(all);
}

static void put(const struct given *g)
{
	settings_fixture_make(&b, false);
	settings_fixture_put_at(&b, g->id, g->text, LEVEL_FILE, "job.ini:1");
}

static void test_node(void **state)
{
	const struct node_row *row = *state;
	const struct finding *f;

	put(&row->given);
	look(row);
	assert_int_equal(found.count, 4);
	f = findings_find(&found, row->check, NULL);
	assert_non_null(f);
	assert_string_equal(f->text, row->text);
	assert_int_equal(f->health, row->health);
	settings_fixture_done(&b);
}

/* Root may lock all in any case. */
static void test_memlock(void **state)
{
	static const struct {
		rlim_t limit;
		bool ib;
		struct given given;
		enum health health;
	} cases[] = {
		{ 8 << 20, false, { SET_CHECK_DISK, "0" }, HEALTH_GOOD },
		{ 8 << 20, true, { SET_CHECK_DISK, "0" }, HEALTH_BAD },
		{ 1 << 30, true, { SET_CHECK_DISK, "0" }, HEALTH_GOOD },
		{ 8 << 20, true, { SET_CHECK_MEMLOCK, "8M" }, HEALTH_GOOD },
		{ 8 << 20, false, { SET_CHECK_MEMLOCK, "9M" }, HEALTH_BAD },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct node_row row = {
			.kernel = { .free_mib = 1, .memlock = cases[i].limit, .ib = cases[i].ib }
		};
		const struct finding *f;

		put(&cases[i].given);
		look(&row);
		f = findings_find(&found, "memlock", "");
		assert_non_null(f);
		if (!strstr(f->text, "CAP_IPC_LOCK"))
			assert_int_equal(f->health, cases[i].health);
		settings_fixture_done(&b);
	}
}

TESTS(node_check)
{
	static struct suite s;

	SUITE_ROWS(&s, test_node, rows);
	suite_add(&s, "memory that may be locked, where there is InfiniBand", test_memlock, NULL,
		NULL);
	return suite_run(&s);
}
