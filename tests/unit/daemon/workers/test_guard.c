/* test_guard.c - two processes: each ends the workers if the other one is killed. The part's own
 * process is the guard. */
#include "tests/unit/daemon/workers/process_fixture.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/plan/plan.h"
#include "daemon/workers/guard.h"
#include "daemon/workers/signals.h"

static struct plan plan;
static struct guard guard;
static struct failure why;

/* Everything before the fork. */
static int begin(void)
{
	sigset_t none;

	sigemptyset(&none);
	(void)signal(SIGPIPE, SIG_IGN);
	plan = (struct plan){ .nproc = 1 };
	plan.reactions.of[SIGTERM].kind = REACTION_END;
	plan.reactions.of[SIGUSR1].kind = REACTION_FORWARD;
	plan.reactions.of[SIGTSTP].kind = REACTION_SUSPEND;
	plan.reactions.of[SIGCONT].kind = REACTION_RESUME;
	why = (struct failure){ 0 };
	return guard_init(&guard, &plan, &none, &why);
}

/* The guard's part from the fork on; `supervisor` must not return. */
static int go_on(void (*supervisor)(void))
{
	pid_t pid = guard_fork(&guard, &why);

	if (pid == 0) {
		if (guard_await_run_dir(&guard, &why, &why) < 0 || !guard_run_dir(&guard, &why))
			_exit(99);
		supervisor();
	}
	return pid < 0 ? pid : guard_wait(&guard, &why);
}

static int play(void (*supervisor)(void))
{
	int rc = begin();

	return rc < 0 ? rc : go_on(supervisor);
}

/* Of a supervisor: what the guard relays next; false: the guard is gone. */
static bool next(struct relayed *ret)
{
	struct pollfd p = { .fd = guard.relay, .events = POLLIN };

	return poll(&p, 1, -1) == 1 && read(guard.relay, ret, sizeof *ret) == (ssize_t)sizeof *ret;
}

static void look_around(void)
{
	int death = 0, adopts = 0;
	sigset_t blocked;

	(void)prctl(PR_GET_PDEATHSIG, &death);
	(void)prctl(PR_GET_CHILD_SUBREAPER, &adopts);
	(void)sigprocmask(SIG_BLOCK, NULL, &blocked);
	shared_numbers[0] = getsid(0) == getpid();
	shared_numbers[1] = death;
	shared_numbers[2] = adopts;
	shared_numbers[3] = getppid() == guard.guard;
	shared_numbers[4] = sigismember(&blocked, SIGTERM) == 1 &&
		sigismember(&blocked, SIGUSR1) == 1 && sigismember(&blocked, SIGUSR2) == 0;
	_exit(42);
}

static const char *part_supervisor(void)
{
	int adopts = 0;
	sigset_t blocked;

	HOLDS(play(look_around) == 42 && why.code == 0, "its exit code is the guard's");
	HOLDS(shared_numbers[0], "it has a session of its own");
	HOLDS(shared_numbers[1] == SIGCONT, "the guard's death wakes it");
	HOLDS(shared_numbers[2] == 1, "it adopts orphans");
	HOLDS(shared_numbers[3], "it is the guard's child");
	HOLDS(shared_numbers[4], "what is taken is blocked, and nothing else");
	(void)prctl(PR_GET_CHILD_SUBREAPER, &adopts);
	HOLDS(adopts == 1, "the guard adopts orphans");
	(void)sigprocmask(SIG_BLOCK, NULL, &blocked);
	HOLDS(sigismember(&blocked, SIGTERM) == 1, "no signal takes the exit code's place");
	return NULL;
}

static bool is_there(const char *path)
{
	struct stat st;

	return *path && stat(path, &st) == 0;
}

static void use_run_dir(void)
{
	const char *path = guard.shared->run_dir.path;

	shared_numbers[0] = is_there(path);
	guard_end_run_dir(&guard);
	while (!guard.shared->run_dir_removed)
		(void)usleep(1000);
	shared_numbers[1] = !is_there(path);
	_exit(-guard_remove_run_dir(&guard, &why));
}

static void remove_run_dir(void)
{
	_exit(guard_remove_run_dir(&guard, &why) == 0 && !is_there(guard.shared->run_dir.path) ? 0 :
												 1);
}

static void leave_run_dir(void)
{
	guard.shared->run_dir_taken = 1;
	_exit(guard_remove_run_dir(&guard, &why) == 0 && is_there(guard.shared->run_dir.path) ? 0 :
												1);
}

static const char *part_run_dir(void)
{
	HOLDS(play(use_run_dir) == 0, "whose removal is no failure where the guard was first");
	HOLDS(shared_numbers[0], "it is there before anything is started");
	HOLDS(shared_numbers[1], "the guard removes it when it is not needed any more");
	HOLDS(play(remove_run_dir) == 0, "or the supervisor does");
	HOLDS(play(look_around) == 42 && !is_there(guard.shared->run_dir.path),
		"or the guard at the end");
	HOLDS(play(leave_run_dir) == 0, "the supervisor leaves it to a guard that has begun");
	return NULL;
}

static void be_told(void)
{
	struct relayed got;

	(void)kill(guard.guard, SIGUSR1);
	shared_numbers[0] = next(&got) && got.signal == SIGUSR1 && got.code == SI_USER &&
		got.pid == getpid() && got.uid == getuid();
	(void)kill(guard.guard, SIGTERM);
	shared_numbers[1] = next(&got) && got.signal == SIGTERM && got.pid == getpid();
	_exit(0);
}

static const char *part_relay(void)
{
	HOLDS(play(be_told) == 0, "it has heard both");
	HOLDS(shared_numbers[0], "with their senders");
	HOLDS(shared_numbers[1], "one after the other");
	return NULL;
}

/* A CONT that came after the signal would come at any time of the end, also when a debugger or
 * LeakSanitizer has just attached. */
static void be_woken_first(void)
{
	enum { ROUNDS = 100 };
	struct relayed got;
	sigset_t wake, waiting;
	int first = 0;

	sigemptyset(&wake);
	sigaddset(&wake, SIGCONT);
	for (int i = 0; i < ROUNDS; i++) {
		(void)kill(guard.guard, SIGTERM);
		while (read(guard.relay, &got, sizeof got) < 0 && errno == EAGAIN)
			; /* poll() would wake too late to see the wrong order */
		first += sigpending(&waiting) == 0 && sigismember(&waiting, SIGCONT) == 1;
		(void)sigwaitinfo(&wake, NULL);
	}
	_exit(first == ROUNDS ? 0 : 1);
}

static const char *part_relay_order(void)
{
	HOLDS(play(be_woken_first) == 0, "it is woken before it is told");
	return NULL;
}

/* Of a process that was there before the guard: shared_numbers[0] is the supervisor. */
static void await_supervisor(char state)
{
	actor_ready();
	actor_await_number(0);
	if (state)
		actor_await(shared_numbers[0], state);
}

static void wake_by_term(void)
{
	await_supervisor('T');
	(void)kill(getppid(), SIGTERM);
}

static void wake_by_cont(void)
{
	await_supervisor('T');
	(void)kill(getppid(), SIGCONT);
}

static void stop(void)
{
	shared_numbers[0] = getpid();
	(void)raise(SIGSTOP);
	_exit(7);
}

static const char *part_wakes(void)
{
	(void)actor_start(ACTOR_CHILD, wake_by_term);
	HOLDS(play(stop) == 7, "by what ends the job");
	shared_numbers[0] = 0;
	(void)actor_start(ACTOR_CHILD, wake_by_cont);
	HOLDS(play(stop) == 7, "by CONT");
	return NULL;
}

static void await_term(void)
{
	struct relayed got;

	(void)kill(guard.guard, SIGTERM);
	if (!next(&got) || got.signal != SIGTERM)
		_exit(1);
}

static void stop_a_little(void)
{
	await_term();
	for (int i = 0; i < 3; i++)
		(void)raise(SIGSTOP);
	_exit(7);
}

static void stop_for_ever(void)
{
	await_term();
	for (;;)
		(void)raise(SIGSTOP);
}

static const char *part_stands_still(void)
{
	HOLDS(play(stop_a_little) == 7 && why.code == 0, "it goes on at once, as the job ends");
	HOLDS(play(stop_for_ever) == 128 + SIGKILL, "but not for ever");
	HOLDS(strstr(why.text, "stopped again and again"), "and that is said");
	return NULL;
}

static void stop_the_guard(void)
{
	await_supervisor(0);
	(void)kill(getppid(), SIGTSTP);
	actor_await(getppid(), 'T');
	shared_numbers[1] = 1;
	(void)kill(getppid(), SIGCONT);
}

static void wake_the_guard(void)
{
	struct relayed got;

	guard_wake(&guard);
	(void)kill(guard.guard, SIGUSR1);
	_exit(next(&got) && got.signal == SIGUSR1 ? 4 : 1);
}

static void stop_the_guard_first(void)
{
	(void)kill(guard.guard, SIGSTOP);
	actor_await(guard.guard, 'T');
	wake_the_guard();
}

static const char *part_wake(void)
{
	HOLDS(play(wake_the_guard) == 4, "nothing comes back, such as a CONT for workers");
	return NULL;
}

/* Not in one process with the one above: a guard that has ended may have its CONT still to take. */
static const char *part_wake_stopped(void)
{
	HOLDS(play(stop_the_guard_first) == 4, "it ends with the supervisor");
	return NULL;
}

static void be_suspended(void)
{
	struct relayed got;

	shared_numbers[0] = getpid();
	if (!next(&got) || got.signal != SIGTSTP || !next(&got) || got.signal != SIGCONT)
		_exit(1);
	_exit(0);
}

static const char *part_suspend(void)
{
	(void)actor_start(ACTOR_CHILD, stop_the_guard);
	HOLDS(play(be_suspended) == 0, "the supervisor hears of both");
	HOLDS(shared_numbers[1], "the guard has stopped between them");
	return NULL;
}

static void term_the_guard(void)
{
	await_supervisor(0);
	(void)kill(getppid(), SIGTERM);
}

static void take_directly(void)
{
	siginfo_t si = { 0 };
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	shared_numbers[0] = getpid();
	_exit(sigwaitinfo(&term, &si) == SIGTERM && si.si_pid == guard.guard ? 5 : 1);
}

static const char *part_full_pipe(void)
{
	const struct relayed usr1 = { .signal = SIGUSR1 };
	pid_t pid;

	(void)actor_start(ACTOR_CHILD, term_the_guard);
	HOLDS(begin() == 0, "set-up");
	pid = guard_fork(&guard, &why);
	if (pid == 0)
		take_directly();
	while (write(guard.relay, &usr1, sizeof usr1) > 0)
		;
	HOLDS(errno == EAGAIN, "the pipe is full");
	HOLDS(guard_wait(&guard, &why) == 5, "TERM comes without it");
	return NULL;
}

static void last_words(void)
{
	(void)close(guard.relay);
	signals_release(&guard.taken);
	shared_numbers[0] = getpid();
	for (;;)
		(void)pause();
}

static const char *part_last_words(void)
{
	(void)actor_start(ACTOR_CHILD, term_the_guard);
	HOLDS(play(last_words) == 128 + SIGTERM, "it ends as the signal says");
	HOLDS(why.code == 0, "there is nothing to say: nobody reads it");
	return NULL;
}

static void die_among_many(void)
{
	for (int i = 1; i <= 8; i++)
		shared_numbers[i] = actor_start((unsigned)i % 4, i < 5 ? act_stay : act_wait);
	(void)kill(shared_numbers[1], SIGSTOP);
	(void)raise(SIGKILL);
}

static void die_with_a_code(void)
{
	guard_set_code_if_killed(&guard, 125, true);
	(void)raise(SIGKILL);
}

static const char *part_code_if_killed(void)
{
	HOLDS(begin() == 0, "set-up");
	HOLDS(go_on(die_with_a_code) == 125, "the exit code is that of the other nodes");
	HOLDS(strstr(why.text, "SIGKILL"), "the sentence is the same");
	return NULL;
}

static bool tell(void *told, int signal)
{
	*(int *)told += signal;
	return true;
}

static const char *part_told(void)
{
	int told = 0;

	HOLDS(begin() == 0, "set-up");
	guard.on_killed = (struct killed_hook){ tell, &told };
	HOLDS(go_on(die_with_a_code) == 128 + SIGKILL, "they have heard of it: it is the signal's");
	HOLDS(told == SIGKILL, "they were told once, and of which one it was");
	return NULL;
}

static void die_decided(void)
{
	guard_set_code_if_killed(&guard, 125, true);
	guard_set_code_if_killed(&guard, 7, false);
	(void)raise(SIGKILL);
}

static const char *part_decided(void)
{
	int told = 0;

	HOLDS(begin() == 0, "set-up");
	guard.on_killed = (struct killed_hook){ tell, &told };
	HOLDS(go_on(die_decided) == 7, "what the job ends for already is its exit code");
	HOLDS(told == SIGKILL, "they are told, and need not wait for it");
	return NULL;
}

static const char *part_killed(void)
{
	pid_t before = actor_start(ACTOR_SESSION, act_wait);
	sigset_t blocked;
	int rc;

	HOLDS(begin() == 0, "set-up");
	rc = go_on(die_among_many);
	HOLDS(!is_there(guard.shared->run_dir.path), "the run's directory is removed");
	HOLDS(rc == 128 + SIGKILL, "the exit code tells the signal");
	HOLDS(why.code == -EOWNERDEAD && strstr(why.text, "SIGKILL"), "so does a sentence");
	(void)sigprocmask(SIG_BLOCK, NULL, &blocked);
	HOLDS(sigismember(&blocked, SIGTERM) == 1, "no signal takes the exit code's place");
	for (int i = 1; i <= 8; i++)
		HOLDS(shared_numbers[i] > 0 && !actor_lives(shared_numbers[i]), "all are killed");
	HOLDS(actor_lives(before), "who was there before lives");
	return NULL;
}

static void outlive(void)
{
	struct relayed got;

	shared_numbers[1] = getpid();
	(void)raise(SIGSTOP);
	shared_numbers[2] = !next(&got) ? 1 : -1;
	_exit(-guard_remove_run_dir(&guard, &why)); /* the guard can't */
}

static void be_guard(void)
{
	actor_ready();
	shared_numbers[0] = play(outlive);
}

static const char *part_guard_killed(void)
{
	pid_t pid = actor_start(ACTOR_SESSION, be_guard);

	actor_await_number(1);
	actor_await(shared_numbers[1], 'T');
	(void)kill(pid, SIGKILL);
	HOLDS(actor_reap(pid) == 128 + SIGKILL, "the guard is gone");
	HOLDS(actor_reap(shared_numbers[1]) == 0, "a stopped supervisor wakes");
	HOLDS(shared_numbers[2] == 1, "and finds the pipe's end");
	return NULL;
}

static void wake_nobody(void)
{
	sigset_t come;

	shared_numbers[2] = guard_await_run_dir(&guard, &why, &why) < 0 && guard.gone;
	guard_wake(&guard);
	shared_numbers[1] = getpid();
	actor_await_number(3);
	(void)sigpending(&come);
	shared_numbers[4] = sigismember(&come, SIGCONT) == 0;
	_exit(-guard_remove_run_dir(&guard, &why));
}

/* What a process does that dies: it closes its files, and is there for a moment more. */
static void be_dying_guard(void)
{
	pid_t pid = begin() < 0 ? -1 : guard_fork(&guard, &why);

	if (pid == 0 && guard_await_run_dir(&guard, &why, &why) == 0)
		wake_nobody();
	(void)close(guard.relay);
	act_wait();
}

static const char *part_guard_dies_slowly(void)
{
	pid_t pid = actor_start(ACTOR_SESSION, be_dying_guard);

	actor_await_number(1);
	HOLDS(shared_numbers[2], "a supervisor that waits for it learns that it is gone");
	(void)kill(pid, SIGKILL);
	HOLDS(actor_reap(pid) == 128 + SIGKILL, "the guard is gone");
	shared_numbers[3] = 1;
	HOLDS(actor_reap(shared_numbers[1]) == 0, "the supervisor ends");
	HOLDS(shared_numbers[4], "and no CONT has come at its end");
	return NULL;
}

static const char *part_too_many(void)
{
	for (int i = 0; i <= SPARED_MAX; i++)
		(void)actor_start(ACTOR_CHILD, act_wait);
	HOLDS(begin() == -E2BIG && why.text[0] != '\0', "it is refused with a sentence");
	return NULL;
}

static const char *part_reaps(void)
{
	pid_t before = actor_start(ACTOR_CHILD, act_end);

	actor_await(before, 'Z');
	HOLDS(play(look_around) == 42, "it is not taken for the supervisor");
	HOLDS(actor_reap(before) == -ECHILD, "it is reaped");
	return NULL;
}

static const struct process_row rows[] = {
	{ "two processes, each prepared for the other's death", part_supervisor, false },
	{ "a directory of the run, which the guard makes and removes", part_run_dir, false },
	{ "signals are relayed with their senders", part_relay, false },
	{ "and after a CONT, not before it", part_relay_order, false },
	{ "a stopped supervisor is woken", part_wakes, false },
	{ "a supervisor that is stopped while the job ends", part_stands_still, false },
	{ "TSTP stops the guard, and CONT wakes it", part_suspend, false },
	{ "a supervisor that has done its work wakes the guard", part_wake, false },
	{ "... also one that is stopped", part_wake_stopped, false },
	{ "a full pipe does not lose what ends the job", part_full_pipe, false },
	{ "at its last words the supervisor can be ended", part_last_words, false },
	{ "a killed supervisor is followed by all that it has left", part_killed, false },
	{ "a killed supervisor of several nodes", part_code_if_killed, false },
	{ "one that the others are told of", part_told, false },
	{ "one that dies when the job ends for something else", part_decided, false },
	{ "a killed guard wakes the supervisor", part_guard_killed, false },
	{ "a guard that dies slowly wakes nobody at the end", part_guard_dies_slowly, false },
	{ "more children than can be spared are refused", part_too_many, false },
	{ "a child of before our time may end", part_reaps, false },
};

TESTS(guard)
{
	static struct suite s;

	process_suite_add(&s, rows, sizeof rows / sizeof *rows);
	return suite_run(&s);
}
