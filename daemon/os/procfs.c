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

/* A directory's entry that is a number, or 0. */
static pid_t number_of(const char *name)
{
	char *end;
	long n = strtol(name, &end, 10);

	return *end == '\0' && n > 0 ? (pid_t)n : 0;
}

/* The first number behind a name in /proc/self/status is ours in /proc's own namespace; a second
 * one: in one below it. False: the line has another name. */
static bool is_ours(const char *line, const char *name, bool *ret)
{
	size_t len = strlen(name);
	char *end;

	if (strncmp(line, name, len) != 0)
		return false;
	*ret = strtol(line + len, &end, 10) == getpid() && *end == '\n';
	return true;
}

static enum proc read_status(FILE *f)
{
	char *line = NULL;
	size_t room = 0;
	bool ours = false;

	/* Tgid comes first, for those that have no NSpid: Linux before 4.1, gVisor */
	while (getline(&line, &room, f) >= 0 && !is_ours(line, "NSpid:", &ours))
		(void)is_ours(line, "Tgid:", &ours);
	free(line);
	return ours ? PROC_OURS : PROC_FOREIGN;
}

enum proc proc_look(void)
{
	static pid_t asked; /* who asked: a child may be in another namespace */
	static enum proc answer;
	struct statfs fs;
	FILE *f;

	if (asked == getpid())
		return answer;
	f = fopen("/proc/self/status", "re");
	if (!f && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return PROC_OURS; /* not known: another time */
	if (f)
		answer = read_status(f);
	else
		answer = statfs("/proc", &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC ? PROC_FOREIGN :
										      PROC_NONE;
	if (f)
		(void)fclose(f);
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
	long rc;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	rc = fd_read_file(path, text, sizeof text);
	if (rc < 0)
		return (int)rc;
	open = strchr(text, '(');
	close = strrchr(text, ')'); /* the name may hold anything, also ") R 1" */
	if (!open || !close || close < open ||
		sscanf(close + 1,
			" %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d"
			" %" SCNu64,
			&ret->state, &parent, &session, &ret->started) != 4)
		return -EINVAL;
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

void process_command(pid_t pid, char ret[16])
{
	struct process p;

	ret[0] = '\0';
	if (pid > 0 && proc_look() == PROC_OURS && read_stat(pid, &p) == 0)
		memcpy(ret, p.command, sizeof p.command);
}

/* One thread's list: numbers with a blank behind each. */
static int thread_children(pid_t pid, pid_t tid, void (*see)(pid_t child, void *to), void *to)
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
				see(number_of(at), to);
			at = blank + 1;
		}
		kept = strlen(at); /* a number that was cut */
		memmove(text, at, kept);
	}
}

/* Without the kernel's lists: everyone is asked who its parent is. */
static int scan_children(pid_t pid, void (*see)(pid_t child, void *to), void *to)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		pid_t child = number_of(entry->d_name);
		struct process p;

		if (child && process_read(child, &p) == 0 && p.parent == pid)
			see(child, to);
	}
	(void)closedir(dir);
	return 0;
}

static int listed_children(pid_t pid, void (*see)(pid_t child, void *to), void *to)
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

		if (tid && thread_children(pid, tid, see, to) == 0)
			listed = true;
	}
	(void)closedir(dir);
	return listed ? 0 : scan_children(pid, see, to);
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

static unsigned try_numbers(pid_t first, pid_t end, void (*see)(pid_t child, void *to), void *to)
{
	unsigned found = 0;
	siginfo_t si;

	for (pid_t pid = first; pid < end; pid++)
		if (wait_for(pid, &si) == 0) {
			see(pid, to);
			found++;
		}
	return found;
}

/* Whoever is above the newest number is found when nobody else is left. */
static int find_children(void (*see)(pid_t child, void *to), void *to)
{
	enum { PID_MAX_LIMIT = 4194304 }; /* Linux, include/linux/threads.h */
	siginfo_t si;
	pid_t end;

	if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return errno == ECHILD ? 0 : -errno;
	end = newest_pid() + 1;
	if (try_numbers(1, end, see, to) == 0)
		(void)try_numbers(end, PID_MAX_LIMIT, see, to);
	return 0;
}

int process_children(pid_t pid, void (*see)(pid_t child, void *to), void *to)
{
	int rc = proc_look() == PROC_OURS ? listed_children(pid, see, to) : -ENOENT;

	return rc < 0 && pid == getpid() ? find_children(see, to) : rc;
}

static void list_one(pid_t child, void *to)
{
	struct pids *list = to;

	if (list->count < PIDS_MAX)
		list->at[list->count++] = child;
}

void process_list_children(pid_t pid, struct pids *list)
{
	(void)process_children(pid, list_one, list); /* what can't be seen can't be listed */
}

bool process_variable(pid_t pid, const char *name, char *ret, size_t size)
{
	static char buffer[65536]; /* one thread; stdio's own is a page, and each read waits */
	size_t name_len = strlen(name), room = 0;
	char path[64], *entry = NULL;
	bool found = false;
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	f = proc_look() == PROC_OURS ? fopen(path, "re") : NULL;
	if (!f)
		return false;
	(void)setvbuf(f, buffer, _IOFBF, sizeof buffer); /* can't fail */
	while (!found && getdelim(&entry, &room, '\0', f) >= 0) {
		found = strncmp(entry, name, name_len) == 0 && entry[name_len] == '=';
		if (found)
			(void)snprintf(ret, size, "%s", entry + name_len + 1);
	}
	free(entry);
	(void)fclose(f);
	return found;
}
