/* dump.c - writes what a worker finds when it starts to $DUMP_DIR/$RANK.json: its arguments,
 * environment, descriptors, signals, session, limits and CPUs. Then it tells "ready", waits for
 * the test's word if there is a $GO, and ends with $EXIT_<rank>. */
#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>

#include "worker.h"

extern char **environ;

static void put(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(f, "\\u%04x", (unsigned)*s);
		else
			fputc(*s, f);
	}
	fputc('"', f);
}

static void put_list(FILE *f, const char *name, char **list)
{
	fprintf(f, "\"%s\":[", name);
	for (char **p = list; *p; p++) {
		fputs(p == list ? "" : ",", f);
		put(f, *p);
	}
	fputs("],\n", f);
}

/* What each open descriptor is, but for the one that reads the directory and `own`. */
static void put_descriptors(FILE *f, int own)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	const char *comma = "";

	fputs("\"fds\":{", f);
	while (dir && (e = readdir(dir))) {
		char target[4096];
		int fd = atoi(e->d_name);
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof target - 1);

		if (n < 0 || fd == dirfd(dir) || fd == own)
			continue;
		target[n] = '\0';
		fprintf(f, "%s\"%d\":", comma, fd);
		put(f, target);
		comma = ",";
	}
	fputs("},\n", f);
	if (dir)
		(void)closedir(dir);
}

/* SigBlk, SigIgn and SigCgt as the kernel has them. */
static void put_signals(FILE *f)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256], name[16], mask[32];

	while (status && fgets(line, sizeof line, status))
		if (sscanf(line, "%15[^:]: %31s", name, mask) == 2 &&
			strncmp(name, "Sig", 3) == 0 && strcmp(name, "SigQ") != 0)
			fprintf(f, "\"%s\":\"%s\",\n", name, mask);
	if (status)
		(void)fclose(status);
}

/* Where it may run, "0-3,8", and the policy of its memory, "prefer:0", as the kernel has them. */
static void put_place(FILE *f)
{
	FILE *status = fopen("/proc/self/status", "re"),
	     *maps = fopen("/proc/self/numa_maps", "re");
	char line[256], list[128] = "", policy[64] = "";

	while (status && fgets(line, sizeof line, status))
		if (sscanf(line, "Cpus_allowed_list: %127s", list) == 1)
			break;
	if (maps && fgets(line, sizeof line, maps))
		(void)sscanf(line, "%*s %63s", policy);
	fprintf(f, "\"cpu_list\":\"%s\",\"memory\":\"%s\",\n", list, policy);
	if (status)
		(void)fclose(status);
	if (maps)
		(void)fclose(maps);
}

int main(int argc, char **argv)
{
	struct rlimit files = { 0, 0 };
	cpu_set_t cpus;
	char path[4096], part[4104], cwd[4096];
	FILE *f;

	(void)argc;
	(void)snprintf(path, sizeof path, "%s/%s.json", mine("DUMP_DIR", "."), mine("RANK", "-"));
	(void)snprintf(part, sizeof part, "%s.part", path);
	f = fopen(part, "we");
	if (!f || getrlimit(RLIMIT_NOFILE, &files) < 0 || !getcwd(cwd, sizeof cwd) ||
		sched_getaffinity(0, sizeof cpus, &cpus) < 0)
		return 99;
	fputs("{", f);
	put_list(f, "argv", argv);
	put_list(f, "environ", environ);
	put_descriptors(f, fileno(f));
	put_signals(f);
	put_place(f);
	fputs("\"cwd\":", f);
	put(f, cwd);
	fprintf(f, ",\n\"pid\":%d,\"ppid\":%d,\"sid\":%d,\"pgid\":%d,\n", (int)getpid(),
		(int)getppid(), (int)getsid(0), (int)getpgrp());
	fprintf(f, "\"nofile\":[%llu,%llu],\"cpus\":%d,\"tty\":%s}\n",
		(unsigned long long)files.rlim_cur, (unsigned long long)files.rlim_max,
		CPU_COUNT(&cpus), isatty(0) ? "true" : "false");
	if (fclose(f) != 0 || rename(part, path) < 0)
		return 99; /* whole or not at all, as it may be ended early */
	tell("ready");
	wait_for_go();
	return atoi(mine("EXIT", "0"));
}
