/* test_tree.c - the processes below this one, and never anything else. */
#include "tests/unit/daemon/workers/process_fixture.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/job/ending.h"
#include "daemon/os/helper.h"
#include "daemon/os/procfs.h"
#include "daemon/workers/tree.h"

enum { NOBODY = 65534 };

static const char *part_adopt(void)
{
	pid_t orphan;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 0);
	HOLDS(tree_adopt_orphans() == 0, "it can be done");
	orphan = actor_start(ACTOR_ORPHAN | ACTOR_SESSION, act_end);
	HOLDS(actor_reap(orphan) == 0, "an orphan is this process's child");
	return NULL;
}

static bool has(pid_t pid)
{
	struct descendant d;

	if (tree_open(pid, &d) < 0)
		return false;
	tree_close(&d);
	return true;
}

static const char *part_has(void)
{
	pid_t child = actor_start(ACTOR_CHILD, act_parent);
	pid_t orphan = actor_start(ACTOR_ORPHAN | ACTOR_SESSION, act_wait);
	pid_t gone = actor_start(ACTOR_CHILD, act_end);

	(void)actor_reap(gone);
	HOLDS(has(child) && has(orphan), "children are below this process");
	HOLDS(has(shared_numbers[0]), "a grandchild in another session is");
	HOLDS(!has(getpid()), "this process itself is not");
	HOLDS(!has(getppid()) && !has(1), "what is above it is not");
	HOLDS(!has(gone), "a process that is gone is not");
	HOLDS(!has(0) && !has(-1), "what is no process is not");
	return NULL;
}

static const char *part_signal(void)
{
	pid_t root = actor_start(ACTOR_CHILD, act_parent), below = shared_numbers[0];
	pid_t other = actor_start(ACTOR_CHILD, act_wait);

	HOLDS(tree_signal(root, SIGTERM) == 2, "two get it");
	actor_await(below, 'Z');
	HOLDS(actor_reap(root) == 128 + SIGTERM, "the root gets it");
	HOLDS(actor_reap(below) == 128 + SIGTERM, "what is below it gets it, in its own session");
	HOLDS(actor_lives(other), "its sibling does not");
	return NULL;
}

/* Asks for what is not its own. */
static void ask_for_others(void)
{
	shared_numbers[2] = (int)tree_signal(shared_numbers[1], SIGKILL);
	shared_numbers[3] = (int)tree_signal(getppid(), SIGKILL);
	shared_numbers[4] = (int)tree_signal(getpid(), SIGKILL);
	actor_ready();
}

static const char *part_others(void)
{
	pid_t child = actor_start(ACTOR_CHILD, act_wait), asks;
	pid_t gone = actor_start(ACTOR_CHILD, act_end);

	(void)actor_reap(gone);
	HOLDS(tree_signal(gone, SIGKILL) == 0, "nobody has a number that is gone");
	shared_numbers[1] = child;
	asks = actor_start(ACTOR_CHILD, ask_for_others);
	HOLDS(actor_reap(asks) == 0, "it lives");
	HOLDS(shared_numbers[2] == 0 && actor_lives(child), "a sibling is not below it");
	HOLDS(shared_numbers[3] == 0, "nor is its parent, nor what is below that one");
	HOLDS(shared_numbers[4] == 0, "nor is it below itself");
	return NULL;
}

static void with_zombie(void)
{
	shared_numbers[0] = actor_start(ACTOR_CHILD, act_end);
	actor_await(shared_numbers[0], 'Z');
	act_wait();
}

static const char *part_zombies(void)
{
	pid_t root = actor_start(ACTOR_CHILD, with_zombie);

	HOLDS(tree_signal(root, SIGTERM) == 1, "who has ended does not count");
	return NULL;
}

static void leader(void)
{
	(void)setpgid(0, 0);
	shared_numbers[0] = actor_start(ACTOR_CHILD, act_stay);
	shared_numbers[1] = actor_start(ACTOR_SESSION, act_stay);
	act_wait();
}

static const char *part_kill_child(void)
{
	pid_t child = actor_start(ACTOR_SESSION, leader);
	struct killed_groups done = { { 0 } };

	tree_kill_child(child, &done);
	HOLDS(actor_reap(child) == 128 + SIGKILL, "the child");
	HOLDS(actor_reap(shared_numbers[0]) == 128 + SIGKILL, "its group");
	HOLDS(actor_lives(shared_numbers[1]), "not its other sessions: they come to this process");
	return NULL;
}

/* A group in this process's session may be this process's own. */
static const char *part_kill_near(void)
{
	pid_t child = actor_start(ACTOR_CHILD, act_wait);
	pid_t other = actor_start(ACTOR_CHILD, act_wait);
	struct killed_groups done = { { 0 } };

	tree_kill_child(child, &done);
	HOLDS(actor_reap(child) == 128 + SIGKILL, "the child");
	HOLDS(actor_lives(other), "nobody else in this process's group");
	return NULL;
}

static const char *end_all(struct spared *spared, unsigned expected)
{
	struct survivor left[SURVIVORS_MAX];
	unsigned count = 4711;

	HOLDS(tree_end_all(spared, NULL, left, &count) >= expected, "all are reaped");
	HOLDS(count == 0, "nobody survives");
	return NULL;
}

static const char *part_end_none(void)
{
	return end_all(NULL, 0);
}

static const char *part_end_all(void)
{
	pid_t stopped = actor_start(ACTOR_SESSION, act_stay);
	const char *broken;

	(void)actor_start(ACTOR_CHILD, act_parent);
	(void)actor_start(ACTOR_SESSION, act_stay);
	(void)actor_start(ACTOR_ORPHAN, act_stay);
	(void)actor_start(ACTOR_ORPHAN | ACTOR_SESSION, leader);
	(void)actor_start(ACTOR_CHILD, act_end);
	(void)kill(stopped, SIGSTOP);
	actor_await(stopped, 'T');
	broken = end_all(NULL, 9);
	HOLDS(!broken, broken);
	HOLDS(waitpid(-1, NULL, __WALL) < 0 && errno == ECHILD, "no child is left");
	return NULL;
}

static const char *part_end_many(void)
{
	enum { MANY = 300 };

	for (unsigned i = 0; i < MANY; i++)
		(void)actor_start(i % 4, act_stay);
	return end_all(NULL, MANY);
}

static void hang(struct helper *h)
{
	(void)h;
	for (;;)
		(void)pause();
}

static void on_helper_end(struct helper *h, bool succeeded)
{
	(void)succeeded;
	helper_close(h);
}

static unsigned listed(void)
{
	static struct pids all;

	tree_children(&all);
	return (unsigned)all.count;
}

static bool never_reap(void *owner, const siginfo_t *si)
{
	(void)owner, (void)si;
	return false;
}

static const char *part_end_but_lasting(void)
{
	struct helper lasting = { .work = hang,
		.on_end = on_helper_end,
		.name = "lasting",
		.group = true,
		.lasting = true };
	const struct reap_hook hook = { .on_reaped = never_reap };
	const char *broken;
	pid_t child, helper;
	uv_loop_t loop;

	HOLDS(uv_loop_init(&loop) == 0 &&
			helper_start(&lasting, &loop, sizeof(struct helper_answer), 0) == 0,
		"it starts");
	helper = lasting.child;
	HOLDS(!tree_reap(&hook), "nobody else is left");
	child = actor_start(ACTOR_CHILD, act_wait);
	HOLDS(tree_reap(&hook) && listed() == 1, "one is");
	broken = end_all(NULL, 1);
	HOLDS(!broken, broken);
	HOLDS(!actor_lives(child) && actor_lives(helper) && listed() == 0, "the other is ended");
	HOLDS(kill(helper, SIGKILL) == 0 &&
			waitid(P_PID, (id_t)helper, &(siginfo_t){ 0 }, WEXITED | WNOWAIT) == 0,
		"it dies by itself");
	HOLDS(!tree_reap(&hook) && lasting.state == HELPER_CLOSING, "which its owner is told");
	HOLDS(uv_run(&loop, UV_RUN_DEFAULT) == 0 && uv_loop_close(&loop) == 0,
		"and nothing is left");
	return NULL;
}

static const char *part_spare(void)
{
	struct spared s;
	pid_t child, session;

	HOLDS(tree_spare(&s) == 0 && s.count == 0, "there is none");
	child = actor_start(ACTOR_CHILD, act_wait);
	session = actor_start(ACTOR_SESSION, act_wait);
	HOLDS(tree_spare(&s) == 0 && s.count == 2, "there are two");
	HOLDS(s.child[0] == child && s.session[0] == getsid(0), "one in our session");
	HOLDS(s.child[1] == session && s.session[1] == session, "one in its own");
	tree_forget(&s, child);
	HOLDS(s.child[0] == 0 && s.child[1] == session && s.count == 2, "one is forgotten");
	for (int i = 2; i < SPARED_MAX; i++)
		(void)actor_start(ACTOR_CHILD, act_wait);
	HOLDS(tree_spare(&s) == 0 && s.count == SPARED_MAX, "as many as there is room for");
	(void)actor_start(ACTOR_CHILD, act_wait);
	HOLDS(tree_spare(&s) == -E2BIG && s.count == 0, "more are refused");
	return NULL;
}

static const char *part_end_spared(void)
{
	pid_t before = actor_start(ACTOR_CHILD, act_parent), below = shared_numbers[0];
	pid_t leader_of = actor_start(ACTOR_SESSION, leader), member = shared_numbers[0];
	pid_t ours;
	struct spared s;
	const char *broken;

	HOLDS(tree_spare(&s) == 0 && s.count == 2, "two are there before");
	ours = actor_start(ACTOR_SESSION, act_stay);
	(void)kill(leader_of, SIGKILL); /* its group becomes this process's, but is not ours */
	actor_await(leader_of, 'Z');
	broken = end_all(&s, 2);
	HOLDS(!broken, broken);
	HOLDS(!actor_lives(ours), "what was started since is ended");
	HOLDS(actor_lives(before) && actor_lives(below), "what was there before lives");
	HOLDS(actor_lives(member), "so does the session that it has left");
	HOLDS(s.child[0] == before && s.child[1] == 0, "who was reaped is forgotten");
	return NULL;
}

static void become_nobody(void)
{
	if (setresuid(0, 0, 0) == 0)
		act_wait();
}

/* Root's process can't be signalled by nobody. */
static const char *part_survivors(void)
{
	struct survivor left[SURVIVORS_MAX];
	unsigned count = 0;
	pid_t child = actor_start(ACTOR_SESSION, become_nobody);

	(void)prctl(PR_SET_NAME, "not this one");
	HOLDS(setresuid(NOBODY, NOBODY, NOBODY) == 0, "it becomes nobody");
	(void)actor_start(ACTOR_SESSION, act_stay);
	HOLDS(tree_end_all(NULL, NULL, left, &count) == 1, "its own are ended");
	HOLDS(count == 1 && left[0].pid == child, "the other is named");
	HOLDS(left[0].uid == 0 && (left[0].state == 'S' || left[0].state == 'R') &&
			strncmp(left[0].command, "unit_workers", 12) == 0,
		"with what is known of it");
	return NULL;
}

/* What is below its children shows when these have ended. */
static const char *without_proc(void)
{
	pid_t root = actor_start(ACTOR_CHILD, act_parent), below = shared_numbers[0];
	pid_t other = actor_start(ACTOR_SESSION | ACTOR_ORPHAN, act_stay);

	HOLDS(has(root) && has(other) && !has(below), "its children are below it");
	HOLDS(tree_signal(getppid(), SIGKILL) == 0, "its parent gets nothing");
	HOLDS(tree_signal(root, SIGTERM) == 1, "a child gets it");
	HOLDS(actor_reap(root) == 128 + SIGTERM, "and ends");
	HOLDS(has(below), "what it has left comes to this process");
	HOLDS(tree_signal(below, SIGTERM) == 1 && actor_reap(below) == 128 + SIGTERM, "as well");
	(void)actor_start(ACTOR_SESSION, leader);
	return end_all(NULL, 4);
}

static const char *part_foreign(void)
{
	return play_without_proc(true, without_proc);
}

static const char *spare_without_proc(void)
{
	pid_t before = actor_start(ACTOR_SESSION | ACTOR_ORPHAN, act_wait);
	const char *broken;
	struct spared s;

	HOLDS(tree_spare(&s) == 0 && s.count == 1 && s.child[0] == before, "one is there before");
	(void)actor_start(ACTOR_SESSION, leader);
	broken = end_all(&s, 3);
	HOLDS(!broken, broken);
	HOLDS(actor_lives(before), "and is spared");
	return NULL;
}

static const char *part_foreign_spare(void)
{
	return play_without_proc(true, spare_without_proc);
}

static const struct process_row rows[] = {
	{ "orphans come to whoever adopts them", part_adopt, false },
	{ "below is what has this process among its ancestors", part_has, false },
	{ "a signal to a tree reaches all of it", part_signal, false },
	{ "a signal reaches nobody who is not below", part_others, false },
	{ "the dead are not counted", part_zombies, false },
	{ "SIGKILL to a child is for its group, too", part_kill_child, false },
	{ "SIGKILL to a child in our own group is for it alone", part_kill_near, false },
	{ "there may be nothing to end", part_end_none, false },
	{ "all kinds of children are ended and reaped", part_end_all, false },
	{ "many are", part_end_many, false },
	{ "a lasting helper stays", part_end_but_lasting, false },
	{ "who is there before is remembered", part_spare, false },
	{ "who was there before is spared, with its session", part_end_spared, false },
	{ "who can't be ended is named", part_survivors, true },
	{ "/proc of another pid namespace names nobody to be ended", part_foreign, false },
	{ "there, too, who was there before is spared", part_foreign_spare, false },
};

TESTS(tree)
{
	static struct suite s;

	process_suite_add(&s, rows, sizeof rows / sizeof *rows);
	return suite_run(&s);
}
