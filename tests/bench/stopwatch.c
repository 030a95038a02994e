/* stopwatch.c - times whole runs of commands in turn, so that a change of the machine's speed meets
 * all of them: stopwatch ROUNDS -- A... -- B... runs A B A B ..., and prints for each round one
 * line with the nanoseconds of each, from just before its start to just after it was reaped. The
 * first round warms up and is not counted. What the commands print goes to stderr. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { COMMANDS_MAX = 8, LIMIT_S = 20 };

static volatile sig_atomic_t running; /* the command's pid, for on_alarm; 0: none */
static volatile sig_atomic_t hung;

static void on_alarm(int signal)
{
	(void)signal;
	if (running > 0)
		(void)kill(running, SIGKILL);
	hung = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Runs one command to its end. -1, with a sentence on stderr, if it can't be run or fails. Not
 * reaped before `running` is taken back, the pid can't be another's. */
static int run_once(char **argv, const posix_spawn_file_actions_t *files, uint64_t *ret_ns)
{
	uint64_t begin = now_ns();
	siginfo_t si = { 0 };
	int error;
	pid_t pid;

	error = posix_spawnp(&pid, argv[0], files, NULL, argv, environ);
	if (error) {
		(void)fprintf(stderr, "stopwatch: %s: %s\n", argv[0], strerror(error));
		return -1;
	}
	running = pid;
	(void)alarm(LIMIT_S);
	while (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT) < 0)
		if (errno != EINTR) {
			(void)fprintf(stderr, "stopwatch: waitid: %s\n", strerror(errno));
			return -1;
		}
	(void)alarm(0);
	running = 0;
	(void)waitpid(pid, NULL, 0);
	*ret_ns = hung ? 0 : now_ns() - begin;
	if (!hung && si.si_status != 0) {
		(void)fprintf(stderr, "stopwatch: %s ended with %d\n", argv[0], si.si_status);
		return -1;
	}
	hung = 0;
	return 0;
}

/* Cuts argv at each "--"; returns how many commands there are, 0 if they make no sense. */
static int split(char **argv, char **ret[COMMANDS_MAX])
{
	int count = 0;

	for (; *argv; argv++) {
		if (strcmp(*argv, "--") != 0)
			continue;
		if (count == COMMANDS_MAX || !argv[1] || strcmp(argv[1], "--") == 0)
			return 0;
		*argv = NULL;
		ret[count++] = argv + 1;
	}
	return count;
}

int main(int argc, char **argv)
{
	long rounds = argc > 3 && strcmp(argv[2], "--") == 0 ? strtol(argv[1], NULL, 10) : 0;
	posix_spawn_file_actions_t files;
	char **commands[COMMANDS_MAX];
	int count = rounds > 0 ? split(argv + 2, commands) : 0;

	if (count == 0) {
		(void)fputs("usage: stopwatch ROUNDS -- COMMAND... [-- COMMAND...]\n", stderr);
		return 2;
	}
	(void)signal(SIGALRM, on_alarm);
	if (posix_spawn_file_actions_init(&files) != 0 ||
		posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) != 0 ||
		posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO) != 0)
		return 1;
	for (long round = 0; round <= rounds; round++) {
		uint64_t ns[COMMANDS_MAX];

		for (int i = 0; i < count; i++)
			if (run_once(commands[i], &files, &ns[i]) < 0)
				return 1;
		for (int i = 0; i < count && round > 0; i++)
			(void)printf("%" PRIu64 "%c", ns[i], i + 1 < count ? ' ' : '\n');
	}
	(void)posix_spawn_file_actions_destroy(&files);
	return fflush(stdout) == 0 ? 0 : 1;
}
