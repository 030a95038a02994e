/* bare.c - the floor under every launcher: bare COUNT PROGRAM [ARGUMENTS] starts COUNT processes by
 * posix_spawn(3), which is vfork inside, waits for all, and ends the others with SIGTERM when one
 * fails. Exit code 1 if one did. It tells them their $RANK, and nothing else. */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

static int start(pid_t *ret, long rank, char **argv)
{
	char text[32];
	int error;

	(void)snprintf(text, sizeof text, "%ld", rank);
	if (setenv("RANK", text, 1) < 0)
		return -1;
	error = posix_spawn(ret, argv[0], NULL, NULL, argv, environ);
	if (error) {
		(void)fprintf(stderr, "bare: %s: %s\n", argv[0], strerror(error));
		return -1;
	}
	return 0;
}

/* Waits for all that were started. 1 if one failed. */
static int wait_for_all(pid_t *pids, long count)
{
	int failed = 0, status;

	for (pid_t pid; (pid = wait(&status)) > 0;) {
		for (long i = 0; i < count; i++)
			if (pids[i] == pid)
				pids[i] = 0;
		if (status == 0 || failed)
			continue;
		failed = 1;
		for (long i = 0; i < count; i++)
			if (pids[i])
				(void)kill(pids[i], SIGTERM);
	}
	return failed;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? strtol(argv[1], NULL, 10) : 0, started = 0;
	pid_t *pids = count > 0 ? calloc((size_t)count, sizeof *pids) : NULL;
	int failed;

	if (!pids) {
		(void)fputs("usage: bare COUNT PROGRAM [ARGUMENTS]\n", stderr);
		return 2;
	}
	while (started < count && start(&pids[started], started, argv + 2) == 0)
		started++;
	failed = wait_for_all(pids, started);
	free(pids);
	return failed || started < count;
}
