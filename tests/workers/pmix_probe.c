/* pmix_probe.c - a launcher that does nothing but meet the others: pmix_probe TIMEOUT_MS [TEXT]
 *
 * As launchd does, it has two processes, and PMIx is a third one's. One line says what came of it:
 *
 *   met RANK TEXT-OF-RANK-0 MILLISECONDS           exit code 0
 *   unavailable WHY | failed WHY                   exit code 3
 *
 * and another one that the meeting left a file, thread or child behind. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "common/failure.h"
#include "daemon/meet/pmix.h"
#include "daemon/plan/topology.h"

extern char **environ;

static int result = 3;
static uint64_t began_ns;

static unsigned count(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		(void)closedir(dir);
	return n;
}

static void on_done(struct pmix_exchange *x, const void *of_rank0, size_t len)
{
	const char *rank = getenv("PMIX_RANK");

	printf("met %s %.*s %.1f\n", rank ? rank : "?", (int)len, (const char *)of_rank0,
		(double)(uv_hrtime() - began_ns) / 1e6);
	result = 0;
	pmix_close(x);
}

static void on_failed(struct pmix_exchange *x, const char *why, bool unavailable)
{
	printf("%s %s\n", unavailable ? "unavailable" : "failed", why);
	pmix_close(x);
}

static int meet(char **argv, uint64_t timeout_ms, const char *text)
{
	struct pmix_exchange x = { .on_done = on_done, .on_failed = on_failed, .argv = argv };
	unsigned files, threads;
	struct failure why = { 0 };
	uv_loop_t loop;

	(void)uv_loop_init(&loop); /* the first one leaves a pipe for signals */
	(void)uv_loop_close(&loop);
	files = count("/proc/self/fd");
	threads = count("/proc/self/task");
	(void)uv_loop_init(&loop);
	began_ns = uv_hrtime();
	if (pmix_start(&x, &loop, text, strlen(text), timeout_ms, &why) < 0) {
		printf("not started: %s\n", why.text);
		return 3;
	}
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&loop);
	if (files != count("/proc/self/fd") || threads != count("/proc/self/task") ||
		waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD)
		printf("something is left behind\n");
	return result;
}

int main(int argc, char **argv)
{
	char host[64] = "", text[128];
	pid_t supervisor;
	sigset_t taken;
	int status;

	(void)gethostname(host, sizeof host - 1);
	(void)snprintf(text, sizeof text, "%s/%s", argc > 2 ? argv[2] : "card", host);
	if (argc < 2 || !pmix_is_offered((const char *const *)environ)) {
		printf("not offered\n");
		return 2;
	}
	sigemptyset(&taken);
	sigaddset(&taken, SIGCHLD);
	sigaddset(&taken, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &taken, NULL);
	supervisor = fork();
	if (supervisor == 0) {
		(void)setsid();
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		status = meet(argv, strtoull(argv[1], NULL, 10), text);
		(void)fflush(stdout);
		_exit(status);
	}
	if (waitpid(supervisor, &status, 0) != supervisor || !WIFEXITED(status))
		return 4;
	return WEXITSTATUS(status);
}
