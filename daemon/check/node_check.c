/* node_check.c - see node_check.h */
#include "daemon/check/node_check.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include "common/num.h"
#include "common/text.h"
#include "config/settings.h"
#include "daemon/check/finding.h"
#include "daemon/check/ib_check.h"
#include "daemon/check/quick_input.h"
#include "daemon/check/task.h"
#include "daemon/os/procfs.h"

enum {
	/* What NVIDIA's guide to NCCL asks for in containers, where Docker gives 64 MB. */
	SHM_OF_GPUS = 1 << 30,
	/* Without a limit is what its guide asks for; 8 MB, as distributions have it, is what
	   fails. */
	MEMLOCK_OF_IB = 1 << 30,
	CAP_IPC_LOCK_BIT = 14, /* linux/capability.h */
};

uint64_t bytes_free(const struct statvfs *fs)
{
	return (uint64_t)fs->f_bavail * fs->f_frsize;
}

/* --- /dev/shm --- */

static void look_shm(const struct task *t, struct task_answer *a)
{
	const struct quick_input *in = t->owner;
	bool given = settings_given(in->settings, SET_CHECK_SHM);
	uint64_t want = given ? settings_number(in->settings, SET_CHECK_SHM) :
		t->count > 1  ? (uint64_t)SHM_OF_GPUS :
				0;
	struct statvfs fs;

	if (statvfs(t->subject, &fs) < 0)
		findings_add(&a->findings, want && errno == ENOENT ? HEALTH_BAD : HEALTH_UNKNOWN,
			t->check, t->subject, "%s", strerror(errno));
	else if (bytes_free(&fs) < want)
		findings_add(&a->findings, HEALTH_BAD, t->check, t->subject,
			"%s of %s are free: there have to be %s (for Docker, --shm-size or "
			"--ipc=host)",
			num_size(bytes_free(&fs)).text,
			num_size((uint64_t)fs.f_blocks * fs.f_frsize).text, num_size(want).text);
	else
		findings_add(&a->findings, HEALTH_GOOD, t->check, t->subject, "%s of %s are free",
			num_size(bytes_free(&fs)).text,
			num_size((uint64_t)fs.f_blocks * fs.f_frsize).text);
}

void shm_check_add(const struct quick_input *in, struct tasks *all, unsigned gpus)
{
	const struct task t = { .work = look_shm,
		.owner = in,
		.count = gpus,
		.check = "shm",
		.subject = "/dev/shm",
		.limit_ms = NODE_LIMIT_MS };

	tasks_add(all, &t);
}

/* --- memory that may be locked --- */

/* Whether the limit doesn't count for this process. */
static bool may_lock_all(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	bool may = false;

	while (status && fgets(line, sizeof line, status))
		if (strncmp(line, "CapEff:", 7) == 0)
			may = strtoull(line + 7, NULL, 16) >> CAP_IPC_LOCK_BIT & 1;
	if (status)
		(void)fclose(status);
	return may;
}

static void look_memlock(const struct task *t, struct task_answer *a)
{
	const struct quick_input *in = t->owner;
	uint64_t want = settings_given(in->settings, SET_CHECK_MEMLOCK) ?
		settings_number(in->settings, SET_CHECK_MEMLOCK) :
		ib_is_there(in) ? (uint64_t)MEMLOCK_OF_IB :
				  0;
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		findings_add(&a->findings, HEALTH_UNKNOWN, t->check, "", "%s", strerror(errno));
	else if (limit.rlim_cur == RLIM_INFINITY)
		findings_add(&a->findings, HEALTH_GOOD, t->check, "", "without a limit");
	else if (may_lock_all())
		findings_add(&a->findings, HEALTH_GOOD, t->check, "",
			"without a limit, by CAP_IPC_LOCK");
	else
		findings_add(&a->findings, limit.rlim_cur < want ? HEALTH_BAD : HEALTH_GOOD,
			t->check, "", "%s%s%s%s", num_size(limit.rlim_cur).text,
			limit.rlim_cur < want ? ": there have to be " : "",
			limit.rlim_cur < want ? num_size(want).text : "",
			limit.rlim_cur < want ? " (ulimit -l, --ulimit memlock=-1 for Docker)" :
						"");
}

/* --- disks --- */

int statvfs_above(const char *path, struct statvfs *ret)
{
	char at[PATH_MAX];
	char *slash;

	if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
		return -ENAMETOOLONG;
	while (statvfs(at, ret) < 0) {
		if (errno != ENOENT || strcmp(at, "/") == 0 || strcmp(at, ".") == 0)
			return -errno;
		slash = strrchr(at, '/');
		if (slash)
			slash[slash == at] = '\0';
		else
			(void)strcpy(at, ".");
	}
	return 0;
}

static void look_disk(const struct task *t, struct task_answer *a)
{
	const struct quick_input *in = t->owner;
	const char *const dirs[] = { in->log_dir, in->tmp_dir, in->work_dir };
	uint64_t want = settings_number(in->settings, SET_CHECK_DISK);
	struct statvfs fs;
	int rc;

	task_step(a, "statvfs");
	rc = statvfs_above(dirs[t->number], &fs);
	if (rc < 0)
		findings_add(&a->findings, rc == -EACCES ? HEALTH_UNKNOWN : HEALTH_BAD, t->check,
			t->subject, "%s", strerror(-rc));
	else if (fs.f_files > 0 && fs.f_favail == 0)
		findings_add(&a->findings, HEALTH_BAD, t->check, t->subject, "no inode is free");
	else if (fs.f_blocks == 0) /* what has no blocks to count */
		findings_add(&a->findings, HEALTH_UNKNOWN, t->check, t->subject,
			"its file system does not tell");
	else if (bytes_free(&fs) < want)
		findings_add(&a->findings, HEALTH_BAD, t->check, t->subject,
			"%s are free: there have to be %s", num_size(bytes_free(&fs)).text,
			num_size(want).text);
	else
		findings_add(&a->findings, HEALTH_GOOD, t->check, t->subject, "%s are free",
			num_size(bytes_free(&fs)).text);
}

static void add_disks(const struct quick_input *in, struct tasks *all)
{
	const char *const dirs[] = { in->log_dir, in->tmp_dir, in->work_dir };

	for (unsigned i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		struct task t = { .work = look_disk,
			.owner = in,
			.number = i,
			.check = "disk",
			.limit_ms = NODE_LIMIT_MS,
			.asks = true };
		bool again = false;

		for (unsigned before = 0; dirs[i] && before < i; before++)
			again |= dirs[before] && strcmp(dirs[before], dirs[i]) == 0;
		if (!dirs[i] || again)
			continue;
		text_fit(t.subject, sizeof t.subject, dirs[i]);
		tasks_add(all, &t);
	}
}

/* --- clock --- */

/* Who sets a clock from outside, as a host does its virtual machines' or PTP, need not tell the
 * kernel: that it doesn't know of anyone proves nothing. */
static void look_clock(const struct task *t, struct task_answer *a)
{
	const struct quick_input *in = t->owner;
	uint64_t most_ms = settings_number(in->settings, SET_CHECK_CLOCK);
	struct timex clock = { 0 };
	long long us;

	if (adjtimex(&clock) < 0) {
		findings_add(&a->findings, HEALTH_UNKNOWN, t->check, "", "adjtimex: %s",
			strerror(errno));
		return;
	}
	us = llabs(clock.status & STA_NANO ? clock.offset / 1000 : clock.offset);
	if (clock.status & STA_UNSYNC)
		findings_add(&a->findings, HEALTH_UNKNOWN, t->check, "",
			"the kernel does not know that anybody keeps it right");
	else if (us / 1000 > (long long)most_ms)
		findings_add(&a->findings, HEALTH_BAD, t->check, "",
			"%s s off: at most %s s are allowed", num_seconds((uint64_t)us / 1000).text,
			num_seconds(most_ms).text);
	else
		findings_add(&a->findings, HEALTH_GOOD, t->check, "", "synchronised");
}

void node_check_add(const struct quick_input *in, struct tasks *all)
{
	const struct task memlock = {
		.work = look_memlock, .owner = in, .check = "memlock", .limit_ms = NODE_LIMIT_MS
	};
	const struct task clock = {
		.work = look_clock, .owner = in, .check = "clock", .limit_ms = NODE_LIMIT_MS
	};

	tasks_add(all, &memlock);
	add_disks(in, all);
	tasks_add(all, &clock);
}
