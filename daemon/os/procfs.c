/* procfs.c - see procfs.h */
#include "daemon/os/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"

/* PF_EXITING of include/linux/sched.h. The kernel sets it before it closes the files. */
enum { FLAG_EXITING = 4 };

/* A directory's entry that is a number, or 0. */
static pid_t number_of(const char *name)
{
	char *end;
	long n = strtol(name, &end, 10);

	return *end == '\0' && n > 0 ? (pid_t)n : 0;
}

/* One thread. Stdio's own buffer is a page, and each read of an environment waits. */
static char contents[65536];

/* As much as there is room for: the list of groups may be longer than that. */
static long read_status(void)
{
	autoclose fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	long n = fd < 0 ? -errno : fd_read_up_to(fd, contents, sizeof contents - 1);

	contents[n < 0 ? 0 : n] = '\0';
	return n;
}

/* The first number of NSpid in /proc/self/status is ours in /proc's own namespace; a second one: in
 * one below it. Linux before 4.1 and gVisor have only Tgid, which comes before the groups. */
static bool is_ours(const char *status)
{
	const char *line = strstr(status, "\nNSpid:");
	char *end;

	line = line ? line : strstr(status, "\nTgid:");
	return line && strtol(strchr(line, ':') + 1, &end, 10) == getpid() && *end == '\n';
}

enum proc proc_look(void)
{
	static pid_t asked; /* who asked: a child may be in another namespace */
	static enum proc answer;
	struct statfs fs;
	long n;

	if (asked == getpid())
		return answer;
	n = read_status();
	if (n == -EMFILE || n == -ENFILE || n == -ENOMEM)
		return PROC_OURS; /* not known: another time */
	if (n >= 0)
		answer = is_ours(contents) ? PROC_OURS : PROC_FOREIGN;
	else
		answer = statfs("/proc", &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC ? PROC_FOREIGN :
										      PROC_NONE;
	asked = getpid();
	return answer;
}

/* Whether a number is a child's, which waitid(2) alone tells; before Linux 5.14 that goes through
 * all children, so who is not there at all is asked for first. */
static int wait_for(pid_t pid, siginfo_t *ret)
{
	*ret = (siginfo_t){ .si_pid = 0 };
	if (getpgid(pid) < 0 && errno == ESRCH)
		return -ESRCH;
	return waitid(P_PID, (id_t)pid, ret, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 ? -ESRCH : 0;
}

/* Without /proc. */
static int read_child(pid_t pid, struct process *ret)
{
	siginfo_t si;
	int rc = pid > 0 ? wait_for(pid, &si) : -ESRCH;

	if (rc < 0)
		return rc;
	*ret = (struct process){
		.parent = getpid(),
		.session = getsid(pid),
		.uid = kill(pid, 0) < 0 ? (uid_t)-1 : geteuid(),
		.state = si.si_pid == pid ? 'Z' : '?',
		.exiting = si.si_pid == pid,
		.command = "?",
	};
	return 0;
}

static int read_stat(pid_t pid, struct process *ret)
{
	char path[64], text[1024];
	struct stat st;
	const char *open, *close;
	size_t len;
	int parent, session;
	unsigned flags;
	long rc;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	rc = fd_read_file(path, text, sizeof text);
	if (rc < 0)
		return (int)rc;
	open = strchr(text, '(');
	close = strrchr(text, ')'); /* the name may hold anything, also ") R 1" */
	if (!open || !close || close < open ||
		sscanf(close + 1,
			" %c %d %*d %d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d"
			" %" SCNu64,
			&ret->state, &parent, &session, &flags, &ret->started) != 5)
		return -EINVAL;
	ret->exiting = (flags & FLAG_EXITING) || ret->state == 'Z';
	len = (size_t)(close - open - 1);
	len = len < sizeof ret->command - 1 ? len : sizeof ret->command - 1;
	memcpy(ret->command, open + 1, len);
	ret->command[len] = '\0';
	ret->parent = parent;
	ret->session = session;
	(void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
	if (stat(path, &st) < 0)
		return -errno;
	ret->uid = st.st_uid;
	return 0;
}

int process_read(pid_t pid, struct process *ret)
{
	return proc_look() == PROC_OURS ? read_stat(pid, ret) : read_child(pid, ret);
}

pid_t process_innermost_pid(pid_t pid)
{
	char path[64], text[4096], *line, *last;

	(void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (proc_look() != PROC_OURS || fd_read_file(path, text, sizeof text) < 0)
		return 0;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return 0;
	line[1 + strcspn(line + 1, "\n")] = '\0';
	last = strrchr(line, '\t');
	return last ? (pid_t)strtol(last, NULL, 10) : 0;
}

int process_usage(pid_t pid, struct usage *ret)
{
	uint64_t user, kernel, ticks = (uint64_t)sysconf(_SC_CLK_TCK);
	char path[64], text[1024];
	const char *close;
	long long pages;
	long rc;

	if (proc_look() != PROC_OURS)
		return -ENOSYS;
	(void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	rc = fd_read_file(path, text, sizeof text);
	if (rc < 0)
		return (int)rc;
	close = strrchr(text, ')');
	if (!close ||
		sscanf(close + 1,
			" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			" %*d %*d %*d %*d %*d %*d %*u %*u %lld",
			&user, &kernel, &pages) != 3)
		return -EINVAL;
	ret->cpu_ms = (user + kernel) * 1000 / ticks;
	ret->memory_bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}

void process_command(pid_t pid, char ret[16])
{
	struct process p;

	ret[0] = '\0';
	if (pid > 0 && proc_look() == PROC_OURS && read_stat(pid, &p) == 0)
		memcpy(ret, p.command, sizeof p.command);
}

static void list_add(struct pids *list, pid_t pid)
{
	if (list->count < PIDS_MAX)
		list->at[list->count++] = pid;
}

/* One thread's list: numbers with a blank behind each. */
static int thread_children(pid_t pid, pid_t tid, struct pids *list)
{
	char path[64], text[4096];
	size_t kept = 0;
	autoclose fd = -1;

	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(fd, text + kept, sizeof text - kept - 1);
		char *at = text, *blank;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		text[kept + (size_t)n] = '\0';
		while ((blank = strchr(at, ' '))) {
			*blank = '\0';
			if (number_of(at))
				list_add(list, number_of(at));
			at = blank + 1;
		}
		kept = strlen(at); /* a number that was cut */
		memmove(text, at, kept);
	}
}

/* Without the kernel's lists: everyone is asked who its parent is. */
static int scan_children(pid_t pid, struct pids *list)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		pid_t child = number_of(entry->d_name);
		struct process p;

		if (child && process_read(child, &p) == 0 && p.parent == pid)
			list_add(list, child);
	}
	(void)closedir(dir);
	return 0;
}

static int listed_children(pid_t pid, struct pids *list)
{
	char path[64];
	struct dirent *entry;
	bool listed = false;
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		pid_t tid = number_of(entry->d_name);

		if (tid && thread_children(pid, tid, list) == 0)
			listed = true;
	}
	(void)closedir(dir);
	return listed ? 0 : scan_children(pid, list);
}

/* The number that is given next: none is above it, unless they have begun anew. 0: not known. */
static pid_t newest_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid > 0 ? pid : 0;
}

static void try_numbers(pid_t first, pid_t end, struct pids *list)
{
	siginfo_t si;

	for (pid_t pid = first; pid < end; pid++)
		if (wait_for(pid, &si) == 0)
			list_add(list, pid);
}

/* Whoever is above the newest number is found when nobody else is left. */
static int find_children(struct pids *list)
{
	enum { PID_MAX_LIMIT = 4194304 }; /* Linux, include/linux/threads.h */
	size_t before = list->count;
	siginfo_t si;
	pid_t end;

	if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return errno == ECHILD ? 0 : -errno;
	end = newest_pid() + 1;
	try_numbers(1, end, list);
	if (list->count == before)
		try_numbers(end, PID_MAX_LIMIT, list);
	return 0;
}

int process_children(pid_t pid, struct pids *list)
{
	int rc = proc_look() == PROC_OURS ? listed_children(pid, list) : -ENOENT;

	return rc < 0 && pid == getpid() ? find_children(list) : rc;
}

bool process_variable(pid_t pid, const char *name, char *ret, size_t size)
{
	size_t name_len = strlen(name), room = 0;
	char path[64], *entry = NULL;
	bool found = false;
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	f = proc_look() == PROC_OURS ? fopen(path, "re") : NULL;
	if (!f)
		return false;
	(void)setvbuf(f, contents, _IOFBF, sizeof contents); /* can't fail */
	while (!found && getdelim(&entry, &room, '\0', f) >= 0) {
		found = strncmp(entry, name, name_len) == 0 && entry[name_len] == '=';
		if (found)
			(void)snprintf(ret, size, "%s", entry + name_len + 1);
	}
	free(entry);
	(void)fclose(f);
	return found;
}
