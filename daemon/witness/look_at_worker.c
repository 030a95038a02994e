/* look_at_worker.c - see look_at_worker.h */
#include "daemon/witness/look_at_worker.h"

#include <dirent.h>
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
	KIB = 1024,
};

/* What of stat is needed, of a process or of one of its threads. */
struct stat_line {
	char state;
	uint64_t faults, cpu_ms, reaped_ms, resident_bytes; /* reaped: by children that it reaped */
};

/* What of io is. */
struct io_counts {
	uint64_t read_bytes, written_bytes, reads, writes;
};

static long read_of(pid_t pid, const char *file, char *ret, size_t room)
{
	char path[96];
	long n;

	(void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	n = fd_read_file(path, ret, room);
	if (n < 0)
		*ret = '\0';
	return n;
}

static int read_stat_line(pid_t pid, const char *file, struct stat_line *ret)
{
	char text[1024];
	const char *after;
	uint64_t faults, user, system, reaped_user, reaped_system, pages;
	long n = read_of(pid, file, text, sizeof text);
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	char state;

	if (n < 0)
		return (int)n;
	after = strrchr(text, ')'); /* the name may hold anything */
	if (!after ||
		sscanf(after + 1,
			" %c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %*u %*u %" SCNu64 " %" SCNu64
			" %" SCNu64 " %" SCNu64 " %*d %*d %*d %*d %*u %*u %" SCNu64,
			&state, &faults, &user, &system, &reaped_user, &reaped_system, &pages) != 7)
		return -EPROTO;
	*ret = (struct stat_line){ state, faults, (user + system) * 1000 / ticks,
		(reaped_user + reaped_system) * 1000 / ticks,
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

/* By calls, and from a disk through mapped memory, by none: what calls read from a disk counts
 * twice, in habits as well. */
static struct io_counts read_io(pid_t pid, const char *file)
{
	char text[1024];

	if (read_of(pid, file, text, sizeof text) <= 0)
		return (struct io_counts){ 0 };
	return (struct io_counts){ number_of_line(text, "rchar: ") +
			number_of_line(text, "\nread_bytes: "),
		number_of_line(text, "wchar: "), number_of_line(text, "syscr: "),
		number_of_line(text, "syscw: ") };
}

static bool is_traced(pid_t pid)
{
	char text[4096];

	return read_of(pid, "status", text, sizeof text) > 0 &&
		number_of_line(text, "\nTracerPid:") > 0;
}

/* Adds to what the rest of a worker's tree has done. */
static void add_io(struct worker_sample *s, const struct io_counts *io)
{
	s->read_bytes += io->read_bytes;
	s->written_bytes += io->written_bytes;
	s->reads += io->reads;
	s->writes += io->writes;
}

/* What `all` has, and `part` of it hasn't; they are read one after the other. */
static uint64_t rest_of(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

/* Its main thread alone, and its other threads with all children that were reaped: the kernel adds
 * these to their parent. */
static void look_at_threads(pid_t pid, const struct stat_line *line, struct worker_sample *s)
{
	char stat[32], io[32];
	struct stat_line main = { .state = '?' };
	struct io_counts main_io, all;

	(void)snprintf(stat, sizeof stat, "task/%d/stat", (int)pid);
	(void)snprintf(io, sizeof io, "task/%d/io", (int)pid);
	(void)read_stat_line(pid, stat, &main);
	main_io = read_io(pid, io);
	all = read_io(pid, "io");
	s->main_cpu_ms = main.cpu_ms;
	s->main_faults = main.faults;
	s->main_bytes = main_io.read_bytes + main_io.written_bytes;
	s->rest_cpu_ms = rest_of(line->cpu_ms, main.cpu_ms) + line->reaped_ms;
	s->kid_cpu_ms = line->reaped_ms;
	add_io(s,
		&(struct io_counts){ rest_of(all.read_bytes, main_io.read_bytes),
			rest_of(all.written_bytes, main_io.written_bytes),
			rest_of(all.reads, main_io.reads), rest_of(all.writes, main_io.writes) });
}

/* --- what it has started --- */

/* At the last look; 0: it was not there. */
static unsigned cpu_before(const struct looked *w, pid_t pid)
{
	for (unsigned i = 0; i < w->kid_count; i++)
		if (w->kids[i].pid == pid)
			return w->kids[i].cpu_ms;
	return 0;
}

static void see_busiest(
	struct worker_sample *s, uint64_t used_ms, const struct looked *w, uint64_t now_ms)
{
	uint64_t ms = now_ms - w->at_ms;
	unsigned rate = (unsigned)(used_ms * 1000 / (ms > 0 ? ms : 1));

	if (w->at_ms > 0 && rate > s->kid_busiest_ms)
		s->kid_busiest_ms = rate;
}

static void add_kid(
	pid_t pid, const struct looked *w, struct kid_seen *ret, struct worker_sample *s)
{
	struct stat_line line;
	struct io_counts io;

	*ret = (struct kid_seen){ pid, 0 };
	if (read_stat_line(pid, "stat", &line) < 0)
		return;
	io = read_io(pid, "io");
	ret->cpu_ms = (unsigned)line.cpu_ms;
	s->kids++;
	s->kid_cpu_ms += line.cpu_ms + line.reaped_ms;
	s->rest_cpu_ms += line.cpu_ms + line.reaped_ms;
	s->dead += line.state == 'Z';
	s->stuck += line.state == 'D' || line.state == 'T' || line.state == 't';
	add_io(s, &io);
	see_busiest(s, rest_of(line.cpu_ms, cpu_before(w, pid)), w, s->at_ms);
}

/* All processes below it: a child is found with its parent, and is looked for below then. */
static void look_at_kids(struct looked *w, struct worker_sample *s)
{
	static struct pids below; /* one thread; what is not used costs nothing */
	static struct kid_seen seen[KIDS_LOOKED_AT];
	unsigned count = 0;

	below.count = 0;
	(void)process_children(w->pid, &below);
	for (; count < below.count && count < KIDS_LOOKED_AT; count++) {
		add_kid(below.at[count], w, &seen[count], s);
		(void)process_children(below.at[count], &below);
	}
	memcpy(w->kids, seen, count * sizeof *seen);
	w->kid_count = count;
}

/* --- its memory --- */

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
 * through its memory holds its lock for as long. */
static void look_at_memory(struct looked *w, const struct stat_line *line, enum memory_look memory,
	struct worker_sample *s)
{
	const uint64_t max = (uint64_t)WALK_MAX_BYTES_GIB << 30;
	bool busy = w->at_ms > 0 && line->cpu_ms - w->cpu_ms >= BUSY_MS;

	if (memory == MEMORY_LEFT || line->resident_bytes > max) {
		w->cleared = false;
		return;
	}
	busy |= memory == MEMORY_TRIED;
	if (busy && w->cleared)
		s->working_set = touched_bytes(w->pid);
	if (busy || !w->cleared)
		clear_marks(w);
}

static bool is_stuck_thread(pid_t pid, const char *thread)
{
	char file[64], text[1024];
	const char *after;

	(void)snprintf(file, sizeof file, "task/%.20s/stat", thread);
	after = read_of(pid, file, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
	return after && strncmp(after, ") D", 3) == 0;
}

static bool has_stuck_thread(pid_t pid)
{
	char path[64];
	const struct dirent *e;
	bool found = false;
	DIR *threads;

	(void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	threads = opendir(path);
	while (threads && !found && (e = readdir(threads)))
		found = *e->d_name != '.' && is_stuck_thread(pid, e->d_name);
	if (threads)
		(void)closedir(threads);
	return found;
}

/* A thread that is stuck while it holds the lock of the memory blocks all who read that. This names
 * the worker only if such a thread is seen; that the look before did not finish names nothing. */
static void look_warily(pid_t pid, struct worker_sample *s)
{
	struct stat_line line;
	struct io_counts io;

	if (read_stat_line(pid, "stat", &line) < 0)
		return;
	io = read_io(pid, "io");
	s->main_cpu_ms = line.cpu_ms; /* of all its threads: whatever works counts */
	s->main_faults = line.faults;
	s->main_bytes = io.read_bytes + io.written_bytes;
	if (has_stuck_thread(pid)) {
		s->state = 'D';
		s->waits = WAIT_DISK;
		s->stuck = 1;
	} else if (line.state == 'T' || line.state == 't') {
		s->state = line.state;
		s->waits = WAIT_SIGNAL;
	}
}

void look_at_worker(
	struct looked *w, uint64_t now_ms, enum memory_look memory, struct worker_sample *ret)
{
	struct worker_sample s = {
		.rank = w->rank, .at_ms = now_ms, .state = '?', .working_set = WORKING_SET_UNKNOWN
	};
	struct stat_line line;

	if (w->wary_looks > 0) {
		w->wary_looks--;
		look_warily(w->pid, &s);
	} else if (read_stat_line(w->pid, "stat", &line) == 0) {
		s.state = line.state;
		s.traced = is_traced(w->pid);
		read_waits(w->pid, &s);
		look_at_threads(w->pid, &line, &s);
		look_at_kids(w, &s);
		look_at_memory(w, &line, memory, &s);
		w->cpu_ms = line.cpu_ms;
		w->at_ms = now_ms;
	}
	*ret = s;
}
