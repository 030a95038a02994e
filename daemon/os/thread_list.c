/* thread_list.c - see thread_list.h */
#include "daemon/os/thread_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/fd.h"
#include "common/text.h"

enum { FILE_MAX = 8192 };

/* /proc/PID/task/TID/NAME without its last newline; -1: it can't be read. */
static long read_of(pid_t pid, const char *task, const char *name, char ret[FILE_MAX])
{
	char path[96];
	long n;

	(void)snprintf(path, sizeof path, "/proc/%d/task/%s/%s", (int)pid, task, name);
	n = fd_read_file(path, ret, FILE_MAX);
	while (n > 0 && ret[n - 1] == '\n')
		ret[--n] = '\0';
	return n;
}

static void count_wait(struct thread_waits *w, const char *where)
{
	for (unsigned i = 0; i < w->kinds; i++)
		if (strncmp(w->at[i].where, where, sizeof w->at[i].where - 1) == 0) {
			w->at[i].threads++;
			return;
		}
	if (w->kinds == WAITS_COUNTED)
		return;
	(void)snprintf(w->at[w->kinds].where, sizeof w->at->where, "%.*s",
		(int)sizeof w->at->where - 1, where);
	w->at[w->kinds++].threads = 1;
}

/* "S (sleeping)" of /proc/PID/status. */
static void add_state(char *status, struct text *out, struct thread_waits *w)
{
	char *line = strstr(status, "\nState:"), *end;

	if (!line)
		return;
	line += strlen("\nState:");
	line += strspn(line, " \t");
	end = strchr(line, '\n');
	text_add_bytes(out, line, end ? (size_t)(end - line) : strlen(line));
	w->running += *line == 'R';
	w->stuck += *line == 'D';
}

static void add_thread(pid_t pid, const char *task, struct text *out, struct thread_waits *w)
{
	char of[FILE_MAX];
	long n = read_of(pid, task, "comm", of);

	text_printf(out, "thread %s ", task);
	if (n > 0)
		text_add_shown(out, of, (size_t)n);
	text_add(out, ": ");
	if (read_of(pid, task, "status", of) > 0)
		add_state(of, out, w);
	n = read_of(pid, task, "wchan", of);
	if (n > 0 && strcmp(of, "0") != 0) {
		text_printf(out, ", waits in %s", of);
		count_wait(w, of);
	}
	n = read_of(pid, task, "syscall", of);
	if (n > 0)
		text_printf(out, ", system call %.*s", (int)strcspn(of, " "), of);
	text_add(out, "\n");
	n = read_of(pid, task, "stack", of);
	for (char *line = n > 0 ? strtok(of, "\n") : NULL; line; line = strtok(NULL, "\n"))
		text_printf(out, "    %s\n", line);
}

int thread_list_add(pid_t pid, struct text *out, struct thread_waits *waits)
{
	struct thread_waits unused = { 0 }, *w = waits ? waits : &unused;
	char path[64];
	const struct dirent *entry;
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && ++w->threads <= THREADS_SHOWN)
			add_thread(pid, entry->d_name, out, w);
	(void)closedir(dir);
	if (w->threads > THREADS_SHOWN)
		text_printf(out, "%u threads more\n", w->threads - THREADS_SHOWN);
	return 0;
}
