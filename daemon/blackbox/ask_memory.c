/* ask_memory.c - see ask_memory.h */
#include "daemon/blackbox/ask_memory.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "common/arena.h"
#include "common/fd.h"
#include "common/num.h"
#include "common/text.h"
#include "daemon/blackbox/answer_file.h"
#include "daemon/blackbox/source.h"
#include "daemon/check/task.h"
#include "daemon/os/cgroup_paths.h"

enum {
	FILE_MAX = 16384,
	LEVELS_MAX = 16, /* of cgroups: deeper ones are cut at the top */
	FULL = 100,      /* one part in so many is left: full */
};

/* What counts of all levels, from the workers' own upwards. */
struct pressed {
	uint64_t used, limit; /* of the level with the least room; limit 0: none has one */
	uint64_t oom_kills;
};

/* The file's bytes; 0: it can't be read, or is empty. */
static long read_file(const char *path, char ret[FILE_MAX])
{
	long n = fd_read_file(path, ret, FILE_MAX);

	if (n <= 0)
		*ret = '\0';
	return n < 0 ? 0 : n;
}

static long add_file(struct text *out, const char *path, char bytes[FILE_MAX])
{
	long n = read_file(path, bytes);

	if (n > 0)
		text_printf(out, "--- %s\n%s%s", path, bytes, bytes[n - 1] == '\n' ? "" : "\n");
	return n;
}

/* "name 12" or "name: 12 kB" in a file of such lines; 0: it is not there. */
static uint64_t number_of(const char *bytes, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = bytes; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, len) == 0 && strchr(": ", line[len]))
			return strtoull(line + len + 1, NULL, 10);
	}
	return 0;
}

static void look_at_level(struct text *out, const char *dir, struct pressed *p)
{
	static const char *const files[] = { "memory.current", "memory.max", "memory.high",
		"memory.swap.current", "memory.events", "memory.pressure", "io.pressure",
		"cpu.pressure", "pids.current", "pids.max", "memory.usage_in_bytes",
		"memory.limit_in_bytes", "memory.oom_control" };
	char path[PATH_MAX], bytes[FILE_MAX];
	uint64_t used = 0, limit = 0;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (snprintf(path, sizeof path, "%s/%s", dir, files[i]) >= (int)sizeof path ||
			add_file(out, path, bytes) == 0)
			continue;
		if (strcmp(files[i], "memory.current") == 0)
			used = strtoull(bytes, NULL, 10);
		else if (strcmp(files[i], "memory.max") == 0)
			limit = strtoull(bytes, NULL, 10); /* "max": 0 */
		else if (strcmp(files[i], "memory.events") == 0 && p->oom_kills == 0)
			p->oom_kills = number_of(bytes, "oom_kill");
	}
	if (limit > 0 && (p->limit == 0 || limit - used < p->limit - p->used)) {
		p->used = used < limit ? used : limit;
		p->limit = limit;
	}
}

/* The worker's own place in a tree: "0::/a/b" of the unified one, "4:memory:/a/b". */
static bool place_of(pid_t pid, const char *controller, char ret[PATH_MAX])
{
	char path[64], bytes[FILE_MAX], mark[32];
	const char *at;

	(void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
	(void)snprintf(mark, sizeof mark, ":%s:/", controller);
	if (read_file(path, bytes) == 0)
		return false;
	at = strstr(bytes, mark);
	if (!at)
		return false;
	at += strlen(mark) - 1;
	(void)snprintf(ret, PATH_MAX, "%.*s", (int)strcspn(at, "\n"), at);
	return true;
}

static void look_at_tree(const struct source_input *in, const struct cgroup_place *tree,
	const char *controller, struct text *out, struct pressed *p)
{
	char place[PATH_MAX], dir[2 * PATH_MAX];
	int n;

	if (!tree->dir || in->count == 0 || !place_of(in->workers[0].pid, controller, place))
		return;
	n = snprintf(dir, sizeof dir, "%.*s%s", (int)tree->top, tree->dir, place);
	for (int level = 0; n > 0 && level < LEVELS_MAX && strlen(dir) >= tree->top; level++) {
		char *slash;

		while (strlen(dir) > tree->top && dir[strlen(dir) - 1] == '/')
			dir[strlen(dir) - 1] = '\0';
		look_at_level(out, dir, p);
		slash = strrchr(dir, '/');
		if (!slash || (size_t)(slash - dir) < tree->top)
			break;
		*slash = '\0';
	}
}

static void look_at_worker(const struct source_worker *w, struct text *out)
{
	static const char *const names[] = { "VmHWM", "VmRSS", "RssAnon", "RssShmem", "VmSwap",
		"Threads" };
	char path[64], bytes[FILE_MAX];

	(void)snprintf(path, sizeof path, "/proc/%d/status", (int)w->pid);
	if (read_file(path, bytes) == 0)
		return;
	text_printf(out, "rank %u, pid %d:", w->rank, (int)w->pid);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		text_printf(out, " %s %llu%s", names[i],
			(unsigned long long)number_of(bytes, names[i]),
			strcmp(names[i], "Threads") == 0 ? "" : " kB");
	(void)snprintf(path, sizeof path, "/proc/%d/oom_score", (int)w->pid);
	if (read_file(path, bytes) > 0)
		text_printf(out, " oom_score %.*s", (int)strcspn(bytes, "\n"), bytes);
	text_add(out, "\n");
}

static void look_at_machine(struct text *out, uint64_t *ret_all_kb, uint64_t *ret_free_kb)
{
	static const char *const files[] = { "/proc/loadavg", "/proc/pressure/memory",
		"/proc/pressure/io", "/proc/pressure/cpu", "/proc/meminfo" };
	char bytes[FILE_MAX] = "";

	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		(void)add_file(out, files[i], bytes);
	*ret_all_kb = number_of(bytes, "MemTotal");
	*ret_free_kb = number_of(bytes, "MemAvailable");
}

static double gib(uint64_t bytes)
{
	return (double)bytes / (double)(1 << 30);
}

static void judge(uint64_t all_kb, uint64_t free_kb, const struct pressed *p, struct task_answer *a)
{
	bool full = all_kb > 0 && free_kb < all_kb / FULL;
	bool cut = p->limit > 0 && p->limit - p->used < p->limit / FULL;
	struct text line = { 0 };

	text_printf(&line, "%.1f of %.1f GiB available", gib(free_kb << 10), gib(all_kb << 10));
	if (p->limit > 0)
		text_printf(&line, "; the workers' cgroup uses %.1f of %.1f GiB", gib(p->used),
			gib(p->limit));
	if (p->oom_kills > 0)
		text_printf(&line, "; the kernel's OOM killer has killed %llu of its processes",
			(unsigned long long)p->oom_kills);
	findings_add(&a->findings, full || cut || p->oom_kills ? HEALTH_BAD : HEALTH_GOOD, "memory",
		"", "%s (memory.txt)", text_string(&line));
	text_done(&line);
}

void ask_memory(const struct source_input *in, struct task_answer *a)
{
	struct cgroup_paths paths = { .unified = { NULL, 0 } };
	struct pressed pressed = { 0 };
	struct arena arena = { 0 };
	struct text out = { 0 };
	uint64_t all_kb, free_kb;

	task_step(a, "/proc");
	look_at_machine(&out, &all_kb, &free_kb);
	for (size_t i = 0; i < in->count; i++)
		look_at_worker(&in->workers[i], &out);
	task_step(a, "cgroups");
	if (cgroup_paths_read("", &arena, &paths) == 0) {
		look_at_tree(in, &paths.unified, "", &out, &pressed);
		look_at_tree(in, &paths.memory, "memory", &out, &pressed);
	}
	task_step(a, "memory.txt");
	(void)answer_file_write(in, "memory.txt", &out);
	judge(all_kb, free_kb, &pressed, a);
	text_done(&out);
	arena_done(&arena);
}

void ask_room(const struct source_input *in, struct task_answer *a)
{
	const char *const places[] = { "/dev/shm", in->run_dir, in->dir };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		struct statvfs fs;
		uint64_t all, left;

		if (!places[i])
			continue;
		task_step(a, "%.60s", places[i]);
		if (statvfs(places[i], &fs) < 0) {
			if (errno != ENOENT)
				findings_add(&a->findings, HEALTH_UNKNOWN, "room", places[i], "%s",
					strerror(errno));
			continue;
		}
		all = (uint64_t)fs.f_blocks * fs.f_frsize;
		left = (uint64_t)fs.f_bavail * fs.f_frsize;
		findings_add(&a->findings, left < all / FULL ? HEALTH_BAD : HEALTH_GOOD, "room",
			places[i], "%.1f of %.1f GiB are free%s", gib(left), gib(all),
			fs.f_files > 0 && fs.f_favail == 0 ? ", and no file more can be made" : "");
	}
}
