/* probe.c - a worker for the unit tests: says what it found, or does one small thing.
 *
 * probe facts     one line of key=value; probe cat: input to output; probe exit N; probe signal N;
 * probe wait: until a signal ends it, after a line "ready". */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* The hexadecimal mask behind a key of /proc/self/status. */
static unsigned long long status_mask(const char *key)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	unsigned long long mask = ~0ull;

	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0)
			mask = strtoull(line + strlen(key), NULL, 16);
	if (f)
		(void)fclose(f);
	return mask;
}

/* How many descriptors are open, and the highest of them, but for the one that looks. */
static void descriptors(int *ret_count, int *ret_highest)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	*ret_count = *ret_highest = 0;
	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || fd == dirfd(dir))
			continue;
		++*ret_count;
		*ret_highest = fd > *ret_highest ? fd : *ret_highest;
	}
	if (dir)
		(void)closedir(dir);
}

/* But for 32 and 33, the C library's own: ignored in what make starts by posix_spawn(). */
static unsigned long long ignored_mask(void)
{
	return status_mask("SigIgn:") & ~(3ull << 31);
}

/* The policy of what is touched first, as /proc/self/numa_maps has it; "?": it isn't there. */
static const char *memory_policy(void)
{
	static char policy[64] = "?";
	FILE *f = fopen("/proc/self/numa_maps", "re");

	if (f) {
		if (fscanf(f, "%*s %63s", policy) != 1)
			policy[0] = '\0';
		(void)fclose(f);
	}
	return policy;
}

static int facts(void)
{
	cpu_set_t cpus;
	struct rlimit nofile = { 0, 0 };
	int death = -1, count, highest;
	const char *mark = getenv("PROBE_MARK");

	descriptors(&count, &highest);
	(void)prctl(PR_GET_PDEATHSIG, &death);
	(void)getrlimit(RLIMIT_NOFILE, &nofile);
	if (sched_getaffinity(0, sizeof cpus, &cpus) < 0)
		CPU_ZERO(&cpus);
	printf("leader=%d group=%d death=%d blocked=%llx ignored=%llx fds=%d highest=%d "
	       "soft=%llu hard=%llu cpus=%d memory=%s mark=%s\n",
		getsid(0) == getpid(), getpgid(0) == getpid(), death, status_mask("SigBlk:"),
		ignored_mask(), count, highest, (unsigned long long)nofile.rlim_cur,
		(unsigned long long)nofile.rlim_max, CPU_COUNT(&cpus), memory_policy(),
		mark ? mark : "none");
	return 0;
}

static int cat(void)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(STDIN_FILENO, bytes, sizeof bytes)) > 0)
		if (write(STDOUT_FILENO, bytes, (size_t)n) != n)
			return 1;
	return n == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *act = argc > 1 ? argv[1] : "";
	int number = argc > 2 ? atoi(argv[2]) : 0;

	if (strcmp(act, "facts") == 0)
		return facts();
	if (strcmp(act, "cat") == 0)
		return cat();
	if (strcmp(act, "exit") == 0)
		return number;
	if (strcmp(act, "signal") == 0)
		return raise(number);
	if (strcmp(act, "wait") == 0) {
		puts("ready");
		(void)fflush(stdout);
		for (;;)
			(void)pause();
	}
	return 2;
}
