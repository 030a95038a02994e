/* test_leftovers.c - whose an orphan is, and what becomes of it. */
#include "tests/unit/daemon/workers/process_fixture.h"

#include <fcntl.h>
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/job/ending.h"
#include "daemon/workers/leftovers.h"
#include "daemon/workers/tree.h"

#define RUN_DIR "/nowhere/launchd_abc"

enum { WORKERS = 2, FIRST_LOCAL_RANK = 4, LONG_MS = 600000, SHORT_MS = 300 };

static struct worker workers[WORKERS];
static struct leftovers left;
static void (*orphan_acts)(void);
static const char *error_file;

static void make(uint64_t grace_ms)
{
	for (unsigned i = 0; i < WORKERS; i++) {
		worker_init(&workers[i]);
		workers[i].outcome.local_rank = FIRST_LOCAL_RANK + i;
	}
	left = (struct leftovers){ .workers = workers,
		.count = WORKERS,
		.run_dir = RUN_DIR,
		.grace_ns = grace_ms * 1000000 };
}

static void with_orphan(void)
{
	shared_numbers[0] = actor_start(ACTOR_ORPHAN, orphan_acts);
	act_wait();
}

/* A worker that runs, and an orphan in its session, whose pid is returned. */
static pid_t start_worker(unsigned i, void (*acts)(void))
{
	orphan_acts = acts;
	workers[i].outcome.pid = actor_start(ACTOR_SESSION, with_orphan);
	workers[i].state = WORKER_RUNNING;
	return shared_numbers[0];
}

/* One whose orphan has ended, too. */
static void start_lonely(unsigned i)
{
	(void)actor_reap(start_worker(i, act_end));
}

/* As the pool does it. */
static int reap(pid_t pid)
{
	siginfo_t si = { .si_pid = 0 };

	(void)waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT);
	(void)leftovers_reaped(&left, &si);
	return actor_reap(pid);
}

static bool counts(const struct leftover *of, unsigned count, unsigned forced)
{
	return of->count == count && of->forced == forced;
}

static void end_worker(unsigned i)
{
	(void)kill(workers[i].outcome.pid, SIGKILL);
	(void)actor_reap(workers[i].outcome.pid);
	workers[i].state = WORKER_ENDED;
}

/* Executes a program whose environment has the path of an error file. */
static void with_error_file(void)
{
	static char variable[4200], word[] = "wait";
	char *argv[] = { getenv("LAUNCHD_PROBE"), word, NULL }, *env[] = { variable, NULL };
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)snprintf(variable, sizeof variable, "TORCHELASTIC_ERROR_FILE=%s", error_file);
	(void)dup2(nowhere, STDOUT_FILENO);
	actor_ready();
	(void)execve(argv[0], argv, env);
	_exit(99);
}

static bool is_executed(pid_t pid)
{
	char text[8] = "";
	char path[64];
	int fd;

	(void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	(void)!read(fd, text, 5);
	(void)close(fd);
	return text[0] == 'T' && text[1] == 'O' && text[4] == 'H';
}

static pid_t start_daemon(const char *path)
{
	pid_t pid;

	error_file = path;
	pid = actor_start(ACTOR_ORPHAN | ACTOR_SESSION, with_error_file);
	while (!is_executed(pid))
		(void)usleep(1000);
	return pid;
}

static const char *part_by_session(void)
{
	pid_t orphan;
	uint64_t next;

	make(LONG_MS);
	orphan = start_worker(0, act_wait);
	end_worker(0);
	next = leftovers_look(&left, false);
	HOLDS(reap(orphan) == 128 + SIGTERM, "it is asked");
	HOLDS(counts(&workers[0].left, 1, 0), "it counts");
	HOLDS(workers[1].left.count == 0 && left.nobodys.count == 0, "for its worker");
	HOLDS(next > LONG_MS - 60000 && next <= LONG_MS + 1, "its grace has an end");
	HOLDS(leftovers_look(&left, false) == 0, "there is no more");
	return NULL;
}

static const char *part_stopped(void)
{
	pid_t orphan;

	make(LONG_MS);
	orphan = start_worker(0, act_wait);
	(void)kill(orphan, SIGSTOP);
	actor_await(orphan, 'T');
	end_worker(0);
	(void)leftovers_look(&left, false);
	HOLDS(actor_reap(orphan) == 128 + SIGTERM, "it wakes to end");
	return NULL;
}

static const char *part_living(void)
{
	pid_t orphan, own;

	make(0);
	orphan = start_worker(0, act_wait);
	own = start_daemon(RUN_DIR "/attempt_0_local_rank_4_error.json");
	HOLDS(leftovers_look(&left, false) == 0, "there is nothing to do");
	HOLDS(actor_lives(orphan) && actor_lives(own), "nobody is touched");
	HOLDS(counts(&workers[0].left, 0, 0) && !workers[0].left.deadline_ns, "nobody counts");
	return NULL;
}

static const char *part_by_error_file(void)
{
	pid_t first, second;

	make(LONG_MS);
	(void)start_worker(0, act_wait);
	start_lonely(1);
	first = start_daemon(RUN_DIR "/attempt_0_local_rank_4_error.json");
	second = start_daemon(RUN_DIR "/attempt_12_local_rank_5_error.json");
	end_worker(1);
	(void)leftovers_look(&left, false);
	HOLDS(actor_reap(second) == 128 + SIGTERM, "the ended worker's");
	HOLDS(actor_lives(first), "not the living one's");
	HOLDS(workers[1].left.count == 1 && workers[0].left.count == 0, "each counts for its own");
	left.run_dir = NULL;
	second = start_daemon("/nowhere/attempt_12_local_rank_5_error.json");
	(void)leftovers_look(&left, false);
	HOLDS(actor_lives(second), "without a directory for them it is nobody's");
	return NULL;
}

static const char *part_nobodys(void)
{
	static const char *const paths[] = {
		"/nowhere/launchd_xyz/attempt_0_local_rank_4_error.json",
		RUN_DIR "/attempt_0_local_rank_7_error.json",
		RUN_DIR "/attempt_x_local_rank_4_error.json",
		RUN_DIR,
		"",
	};
	enum { COUNT = sizeof paths / sizeof *paths };
	pid_t pids[COUNT];

	make(LONG_MS);
	start_lonely(0);
	start_lonely(1);
	end_worker(0);
	for (size_t i = 0; i < COUNT; i++)
		pids[i] = start_daemon(paths[i]);
	HOLDS(leftovers_look(&left, false) == 0, "while a worker lives it may be that one's");
	for (size_t i = 0; i < COUNT; i++)
		HOLDS(actor_lives(pids[i]), "and is not touched");
	end_worker(1);
	HOLDS(leftovers_look(&left, true) > 0, "then it is not");
	for (size_t i = 0; i < COUNT; i++)
		HOLDS(actor_reap(pids[i]) == 128 + SIGTERM, "and is asked");
	HOLDS(left.nobodys.count == COUNT, "it counts for nobody");
	HOLDS(workers[0].left.count == 0 && workers[1].left.count == 0, "of the workers");
	return NULL;
}

static const char *part_grace(void)
{
	pid_t orphan;
	uint64_t next;

	make(SHORT_MS);
	orphan = start_worker(0, act_stay);
	end_worker(0);
	do {
		next = leftovers_look(&left, false);
		HOLDS(next > 0 && next <= SHORT_MS + 1, "there is a time to look again");
		HOLDS(workers[0].left.count == 1, "it is asked once");
		(void)usleep((useconds_t)next * 1000);
	} while (!workers[0].left.killed);
	HOLDS(reap(orphan) == 128 + SIGKILL, "it is killed");
	HOLDS(counts(&workers[0].left, 1, 1), "that counts");
	HOLDS(leftovers_look(&left, false) == 0, "there is no more");
	HOLDS(counts(&workers[0].left, 1, 1), "it counts once");
	return NULL;
}

static const char *part_before_the_end(void)
{
	pid_t orphan;

	make(LONG_MS);
	orphan = start_worker(0, act_stay);
	end_worker(0);
	for (int i = 0; i < 3; i++)
		HOLDS(leftovers_look(&left, i > 0) > 0, "it is still there");
	HOLDS(actor_lives(orphan), "it has its time");
	HOLDS(workers[0].left.forced == 0, "it is not killed");
	return NULL;
}

static const char *part_nearest(void)
{
	make(1000);
	(void)start_worker(0, act_stay);
	(void)start_worker(1, act_stay);
	end_worker(0);
	(void)leftovers_look(&left, false);
	(void)usleep(500000);
	end_worker(1);
	HOLDS(leftovers_look(&left, true) <= 501, "the first one's grace ends first");
	return NULL;
}

static const char *part_no_grace(void)
{
	pid_t first, second;

	make(0);
	first = start_worker(0, act_stay);
	second = start_worker(1, act_stay);
	end_worker(0);
	end_worker(1);
	HOLDS(leftovers_look(&left, false) > 0, "what they orphan must be found");
	HOLDS(reap(first) == 128 + SIGKILL && reap(second) == 128 + SIGKILL, "they are killed");
	HOLDS(counts(&workers[0].left, 1, 1), "the first counts");
	HOLDS(counts(&workers[1].left, 1, 1), "so does the second");
	return NULL;
}

static void with_child(void)
{
	shared_numbers[1] = actor_start(ACTOR_SESSION, act_wait);
	act_wait();
}

static const char *part_tree(void)
{
	pid_t orphan, below;

	make(LONG_MS);
	orphan = start_worker(0, with_child);
	below = shared_numbers[1];
	end_worker(0);
	(void)leftovers_look(&left, false);
	HOLDS(actor_reap(orphan) == 128 + SIGTERM, "the orphan is asked");
	HOLDS(actor_reap(below) == 128 + SIGTERM, "so is what is below it");
	HOLDS(workers[0].left.count == 2, "both count");
	return NULL;
}

static void with_stubborn_child(void)
{
	shared_numbers[1] = actor_start(ACTOR_SESSION, act_stay);
	act_wait();
}

static volatile sig_atomic_t asked;

static void on_term(int signal)
{
	(void)signal;
	asked = 1;
}

/* Starts another one when it is asked to end. */
static void multiply(void)
{
	const struct sigaction noting = { .sa_handler = on_term };
	sigset_t term, before;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &term, &before);
	(void)sigaction(SIGTERM, &noting, NULL);
	actor_ready();
	while (!asked)
		(void)sigsuspend(&before);
	shared_numbers[2] = actor_start(ACTOR_CHILD, act_stay);
	for (;;)
		(void)pause();
}

static const char *part_born_late(void)
{
	pid_t orphan;

	make(LONG_MS);
	orphan = start_worker(0, multiply);
	end_worker(0);
	(void)leftovers_look(&left, true);
	actor_await_number(2);
	leftovers_kill(&left);
	HOLDS(reap(orphan) == 128 + SIGKILL, "it is killed");
	HOLDS(reap(shared_numbers[2]) == 128 + SIGKILL, "so is what it has started since");
	HOLDS(counts(&workers[0].left, 2, 2), "both count as left and killed");
	return NULL;
}

static const char *part_kill(void)
{
	pid_t ended, living, nobodys;

	make(LONG_MS);
	ended = start_worker(0, act_stay);
	living = start_worker(1, act_stay);
	nobodys = actor_start(ACTOR_ORPHAN | ACTOR_SESSION, act_stay);
	end_worker(0);
	(void)leftovers_look(&left, false);
	leftovers_kill(&left);
	HOLDS(reap(ended) == 128 + SIGKILL, "an ended worker's orphan");
	HOLDS(reap(living) == 128 + SIGKILL, "a living one's");
	HOLDS(reap(nobodys) == 128 + SIGKILL, "nobody's");
	HOLDS(counts(&workers[0].left, 1, 1) && counts(&workers[1].left, 1, 1), "each counts");
	HOLDS(counts(&left.nobodys, 1, 1), "once");
	return NULL;
}

static const char *part_kill_workers(void)
{
	make(LONG_MS);
	start_lonely(0);
	leftovers_kill(&left);
	(void)kill(workers[0].outcome.pid, SIGTERM);
	HOLDS(actor_reap(workers[0].outcome.pid) == 128 + SIGTERM, "it has had no SIGKILL");
	return NULL;
}

/* Their pidfds tell of them in the order of their deaths, and their ends are fetched then. */
static const char *part_workers_end(void)
{
	const struct reap_hook hook = { leftovers_reaped, &left };
	pid_t orphan;

	make(LONG_MS);
	orphan = start_worker(0, act_wait);
	(void)kill(workers[0].outcome.pid, SIGKILL);
	actor_await(workers[0].outcome.pid, 'Z');
	HOLDS(tree_reap(&hook), "there are children");
	HOLDS(actor_reap(workers[0].outcome.pid) == 128 + SIGKILL, "its end is still to be had");
	workers[0].state = WORKER_ENDED;
	(void)kill(orphan, SIGKILL);
	actor_await(orphan, 'Z');
	HOLDS(!tree_reap(&hook), "its orphan is reaped, and nobody is left");
	HOLDS(counts(&workers[0].left, 0, 0) && counts(&left.nobodys, 0, 0), "nobody counts");
	return NULL;
}

static void stay_as_daemon(void)
{
	(void)signal(SIGTERM, SIG_IGN); /* which an executed program inherits */
	with_error_file();
}

/* Known by its environment when it is asked, and by nothing when it is killed. */
static const char *part_counts_once(void)
{
	pid_t own;

	make(LONG_MS);
	start_lonely(0);
	start_lonely(1);
	error_file = RUN_DIR "/attempt_0_local_rank_5_error.json";
	own = actor_start(ACTOR_ORPHAN | ACTOR_SESSION, stay_as_daemon);
	while (!is_executed(own))
		(void)usleep(1000);
	end_worker(0);
	end_worker(1);
	for (int i = 0; i < 2; i++)
		HOLDS(leftovers_look(&left, true) > 0, "it is there");
	leftovers_kill(&left);
	leftovers_kill(&left);
	HOLDS(reap(own) == 128 + SIGKILL, "it is killed");
	HOLDS(counts(&workers[1].left, 1, 1), "it counts for its worker, once");
	HOLDS(counts(&workers[0].left, 0, 0) && counts(&left.nobodys, 0, 0), "and nobody else");
	return NULL;
}

/* Below another one when it is asked, and this process's own child when it is killed. */
static const char *part_counts_once_below(void)
{
	pid_t orphan, below;

	make(LONG_MS);
	orphan = start_worker(0, with_stubborn_child);
	below = shared_numbers[1];
	end_worker(0);
	(void)leftovers_look(&left, true);
	HOLDS(reap(orphan) == 128 + SIGTERM, "its parent ends");
	(void)leftovers_look(&left, true);
	HOLDS(counts(&workers[0].left, 2, 0), "two were left");
	leftovers_kill(&left);
	HOLDS(reap(below) == 128 + SIGKILL, "it is killed");
	HOLDS(counts(&workers[0].left, 2, 1), "one of them was killed");
	return NULL;
}

/* Who ends by somebody else's SIGKILL was not killed by us. */
static const char *part_anothers_kill(void)
{
	pid_t orphan;

	make(LONG_MS);
	orphan = start_worker(0, act_stay);
	end_worker(0);
	(void)leftovers_look(&left, false);
	(void)kill(orphan, SIGKILL);
	HOLDS(reap(orphan) == 128 + SIGKILL, "it ends");
	HOLDS(counts(&workers[0].left, 1, 0), "as one that was left");
	return NULL;
}

enum { CROWD = SANITIZED ? 300 : 5000 }; /* more than were once looked for */

static void start_crowd(void)
{
	(void)signal(SIGTERM, SIG_IGN);
	for (pid_t pid; shared_numbers[1] < CROWD && (pid = fork()) >= 0; shared_numbers[1]++)
		if (pid == 0)
			for (;;)
				(void)pause();
	act_wait();
}

static const char *part_crowd(void)
{
	const struct reap_hook hook = { leftovers_reaped, &left };
	struct survivor alive[SURVIVORS_MAX];
	unsigned count, reaped, crowd;

	make(LONG_MS);
	workers[0].outcome.pid = actor_start(ACTOR_SESSION, start_crowd);
	workers[0].state = WORKER_RUNNING;
	crowd = (unsigned)shared_numbers[1]; /* fewer, where no more may be started */
	end_worker(0);
	for (int i = 0; i < 2; i++)
		(void)leftovers_look(&left, true);
	HOLDS(counts(&workers[0].left, crowd, 0), "all are asked, and count");
	leftovers_kill(&left);
	reaped = tree_end_all(NULL, &hook, alive, &count);
	HOLDS(reaped == crowd && count == 0, "all end");
	HOLDS(counts(&workers[0].left, crowd, crowd), "each counts once");
	return NULL;
}

/* Has the pid of one that was reaped; ends with whether it was asked to, once SIGUSR1 has come. */
static pid_t start_namesake(pid_t pid)
{
	const struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1
	};
	sigset_t both, pending;
	long rc;
	int got;

	sigemptyset(&both);
	sigaddset(&both, SIGTERM);
	sigaddset(&both, SIGUSR1);
	(void)sigprocmask(SIG_BLOCK, &both, NULL);
	rc = syscall(SYS_clone3, &args, sizeof args);
	if (rc != 0)
		return rc > 0 ? pid : -errno;
	sigdelset(&both, SIGTERM);
	(void)sigwait(&both, &got);
	(void)sigpending(&pending);
	_exit(sigismember(&pending, SIGTERM));
}

/* Whose number was given again, once it was reaped: by us, or by another one. */
static const char *number_given_again(int (*reaps)(pid_t))
{
	pid_t orphan, namesake;

	make(LONG_MS);
	orphan = start_worker(0, act_wait);
	(void)start_worker(1, act_wait);
	end_worker(0);
	(void)leftovers_look(&left, false);
	(void)usleep(20000); /* its number in proc(5) has ticks of 10 ms */
	HOLDS(reaps(orphan) == 128 + SIGTERM, "the first one is asked");
	namesake = start_namesake(orphan);
	if (namesake < 0)
		return NEEDS "a kernel and the right to give a pid again";
	HOLDS(leftovers_look(&left, false) == 0, "of the second nothing is known");
	HOLDS(counts(&workers[0].left, 1, 0), "it was not left by the first one's worker");
	(void)kill(namesake, SIGUSR1);
	HOLDS(reap(namesake) == 0, "and is not asked");
	return NULL;
}

static const char *part_reaped(void)
{
	return number_given_again(reap);
}

static const char *part_gone(void)
{
	return number_given_again(actor_reap);
}

static const char *part_none(void)
{
	make(LONG_MS);
	HOLDS(leftovers_look(&left, false) == 0 && leftovers_look(&left, true) == 0, "nothing");
	leftovers_kill(&left);
	HOLDS(counts(&left.nobodys, 0, 0), "counts");
	return NULL;
}

static const struct process_row rows[] = {
	{ "an orphan is known by its session", part_by_session, false },
	{ "a stopped one is woken", part_stopped, false },
	{ "a living worker's own are not touched", part_living, false },
	{ "in a session of its own it is known by the error file of its worker", part_by_error_file,
		false },
	{ "what shows no worker is nobody's, and ends when all have ended", part_nobodys, false },
	{ "what stays is killed when its grace is over", part_grace, false },
	{ "and not before", part_before_the_end, false },
	{ "the nearest end of a grace is the time to look again", part_nearest, false },
	{ "without a grace all are killed at first sight", part_no_grace, false },
	{ "what is below an orphan goes with it", part_tree, false },
	{ "what was born in the grace counts, too", part_born_late, false },
	{ "a kill is for all orphans, whosever they are", part_kill, false },
	{ "it is not for workers", part_kill_workers, false },
	{ "a worker's end is not for who reaps orphans", part_workers_end, false },
	{ "one that is known by its environment counts once", part_counts_once, false },
	{ "one that comes to this process later counts once", part_counts_once_below, false },
	{ "one that somebody else kills was not killed by launchd", part_anothers_kill, false },
	{ "each of a crowd is found and counts", part_crowd, false },
	{ "a number that is given again once it was reaped", part_reaped, false },
	{ "a number that is given again after who knows what", part_gone, false },
	{ "nothing may be left", part_none, false },
};

TESTS(leftovers)
{
	static struct suite s;

	process_suite_add(&s, rows, sizeof rows / sizeof *rows);
	return suite_run(&s);
}
