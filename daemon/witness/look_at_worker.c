/* look_at_worker.c - see look_at_worker.h */
#include "daemon/witness/look_at_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/os/procfs.h"

enum {
	BUSY_MS = 80,           /* of CPU time: worth a look at the memory that it touches */
	WALK_MAX_BYTES_GIB = 8, /* of its memory: to walk through more takes too long */
	KIDS_LOOKED_AT = 512,
	KIB = 1024,
};

/* What of /proc/PID/stat is needed. */
struct stat_line {
	char state;
	uint64_t faults, cpu_ms, resident_bytes;
};

static long read_of(pid_t pid, const char *file, char *ret, size_t room)
{
	char path[64];
	long n;

	(void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	n = fd_read_file(path, ret, room);
	if (n < 0)
		*ret = '\0';
	return n;
}

static int read_stat_line(pid_t pid, struct stat_line *ret)
{
	char text[1024];
	const char *after;
	uint64_t faults, user, system, pages;
	long n = read_of(pid, "stat", text, sizeof text);
	long tick = sysconf(_SC_CLK_TCK);
	char state;

	if (n < 0)
		return (int)n;
	after = strrchr(text, ')'); /* the name may hold anything */
	if (!after ||
		sscanf(after + 1,
			" %c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %*u %*u %" SCNu64 " %" SCNu64
			" %*d %*d %*d %*d %*d %*d %*u %*u %" SCNu64,
			&state, &faults, &user, &system, &pages) != 5)
		return -EPROTO;
	*ret = (struct stat_line){ state, faults, (user + system) * 1000 / (uint64_t)tick,
		pages * (uint64_t)sysconf(_SC_PAGESIZE) };
	return 0;
}

/* The number behind a name at the beginning of a line; 0: there is none. */
static uint64_t number_of_line(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void read_waits(pid_t pid, struct worker_sample *s)
{
	char name[64];

	if (read_of(pid, "wchan", name, sizeof name) < 0)
		*name = '\0';
	s->waits = s->state == 'R' ? WAIT_RUNS : waiting_of(name);
	if (s->waits == WAIT_RUNS && s->state != 'R') /* it says 0 where it may not be read */
		s->waits = WAIT_UNKNOWN;
}

static void read_counters(pid_t pid, struct worker_sample *s)
{
	char text[4096];

	if (read_of(pid, "io", text, sizeof text) > 0)
		s->io_bytes = number_of_line(text, "rchar: ") + number_of_line(text, "wchar: ");
	if (read_of(pid, "status", text, sizeof text) > 0) {
		s->switches = number_of_line(text, "\nvoluntary_ctxt_switches:") +
			number_of_line(text, "\nnonvoluntary_ctxt_switches:");
		s->traced = number_of_line(text, "\nTracerPid:") > 0;
	}
}

static void add_kid(pid_t pid, struct worker_sample *s)
{
	struct stat_line line;
	char text[1024];

	if (read_stat_line(pid, &line) < 0)
		return;
	s->kids++;
	s->kid_cpu_ms += line.cpu_ms;
	s->dead += line.state == 'Z';
	s->stuck += line.state == 'D' || line.state == 'T' || line.state == 't';
	if (read_of(pid, "io", text, sizeof text) > 0)
		s->io_bytes += number_of_line(text, "rchar: ") + number_of_line(text, "wchar: ");
}

/* All processes below it: a child is found with its parent, and is looked for below then. */
static void look_at_kids(pid_t pid, struct worker_sample *s)
{
	static struct pids below; /* one thread; what is not used costs nothing */

	below.count = 0;
	(void)process_children(pid, &below);
	for (size_t i = 0; i < below.count && i < KIDS_LOOKED_AT; i++) {
		add_kid(below.at[i], s);
		(void)process_children(below.at[i], &below);
	}
}

static void clear_marks(struct looked *w)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/clear_refs", (int)w->pid);
	autoclose fd = open(path, O_WRONLY | O_CLOEXEC);
	w->cleared = fd >= 0 && write(fd, "1", 1) == 1;
}

/* A line of /proc/PID/smaps that begins a mapping: whether what the process touches there is its
 * own. Pages of code and constants count as touched when any other process has, as workers all have
 * the same libraries: measured, up to 5 MB a second of a loop that touches nothing. */
static bool begins_mapping(const char *line, bool *ret_own)
{
	char perms[8];
	unsigned long inode;

	if (sscanf(line, "%*x-%*x %7s %*x %*s %lu", perms, &inode) != 2)
		return false;
	*ret_own = inode == 0 || strchr(perms, 'w') || strchr(perms, 's');
	return true;
}

/* Since the marks were cleared. */
static int64_t touched_bytes(pid_t pid)
{
	static const char name[] = "Referenced:";
	char path[64], line[PATH_MAX + 128];
	bool own = false;
	int64_t sum = 0;
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%d/smaps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return WORKING_SET_UNKNOWN;
	while (fgets(line, sizeof line, f))
		if (!begins_mapping(line, &own) && own && strncmp(line, name, sizeof name - 1) == 0)
			sum += (int64_t)number_of_line(line, name) * KIB;
	(void)fclose(f);
	return sum;
}

/* A loop that waits touches next to no memory; garbage collection and a computation do. To walk
 * through its memory holds its lock for as long: that is done at the first look, so that the next
 * one knows, and of one that uses CPU time. */
static void look_at_memory(struct looked *w, const struct stat_line *line, struct worker_sample *s)
{
	const uint64_t max = (uint64_t)WALK_MAX_BYTES_GIB << 30;
	bool busy = w->looked && line->cpu_ms - w->cpu_ms >= BUSY_MS;

	if (line->resident_bytes > max) {
		w->cleared = false;
		return;
	}
	if (busy && w->cleared)
		s->working_set = touched_bytes(w->pid);
	if (busy || !w->cleared)
		clear_marks(w);
}

void look_at_worker(struct looked *w, uint64_t now_ms, struct worker_sample *ret)
{
	struct worker_sample s = {
		.rank = w->rank, .at_ms = now_ms, .state = '?', .working_set = WORKING_SET_UNKNOWN
	};
	struct stat_line line;

	if (read_stat_line(w->pid, &line) == 0) {
		s.state = line.state;
		s.cpu_ms = line.cpu_ms;
		s.faults = line.faults;
		read_waits(w->pid, &s);
		read_counters(w->pid, &s);
		look_at_kids(w->pid, &s);
		look_at_memory(w, &line, &s);
		w->cpu_ms = line.cpu_ms;
		w->looked = true;
	}
	*ret = s;
}
