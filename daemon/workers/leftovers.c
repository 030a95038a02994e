/* leftovers.c - see leftovers.h */
#include "daemon/workers/leftovers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/os/helper.h"
#include "daemon/os/procfs.h"
#include "daemon/workers/tree.h"

enum {
	AGAIN_MS = 20, /* after a SIGKILL: what it has orphaned must be found */
	CROWD = 64,    /* orphans: more than that may be a storm of forks, which outruns us */
};

/* Who it is: a pid alone may be another one's by now. */
struct seen {
	pid_t pid;
	bool gone; /* reaped */
	uint64_t started;
	struct leftover *of;
};

struct look {
	struct leftovers *l;
	bool all_ended;
	uint64_t now_ns, next_ms;
	struct killed_groups killed;
};

static int by_pid(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Not one that was noted since seen_sort(). NULL: nobody. */
static struct seen *seen_find(const struct leftovers *l, pid_t pid)
{
	const struct seen key = { .pid = pid };

	return l->sorted ? bsearch(&key, l->seen, l->sorted, sizeof key, by_pid) : NULL;
}

static void seen_sort(struct leftovers *l)
{
	if (l->sorted < l->seen_count)
		qsort(l->seen, l->seen_count, sizeof *l->seen, by_pid);
	l->sorted = l->seen_count;
}

/* NULL: there is no memory. */
static struct seen *seen_add(struct leftovers *l)
{
	if (l->seen_count == l->seen_room) {
		size_t room = l->seen_room ? 2 * l->seen_room : 64;
		struct seen *now = realloc(l->seen, room * sizeof *now);

		if (!now)
			return NULL;
		l->seen = now;
		l->seen_room = room;
	}
	return &l->seen[l->seen_count++];
}

/* Counts it, unless that has been done. True: it is new. */
static bool note(struct leftovers *l, pid_t pid, uint64_t started, struct leftover *of)
{
	struct seen *s = seen_find(l, pid);

	if (s && !s->gone && s->started == started)
		return false;
	if (!s)
		s = seen_add(l);
	if (s) { /* else it may count when it is reaped */
		*s = (struct seen){ .pid = pid, .started = started, .of = of };
		of->count++;
	}
	return true;
}

/* The worker whose local rank stands in the path of an error file of this run. */
static struct worker *by_error_file(const struct leftovers *l, pid_t pid)
{
	char path[4096];
	const char *dir = l->log_dir ? l->log_dir : l->run_dir;
	size_t len = dir ? strlen(dir) : 0;
	unsigned attempt, local_rank;

	if (!dir || !process_variable(pid, "TORCHELASTIC_ERROR_FILE", path, sizeof path) ||
		strncmp(path, dir, len) != 0 ||
		(l->log_dir ? sscanf(path + len, "/%u/", &local_rank) != 1 :
			      sscanf(path + len, "/attempt_%u_local_rank_%u_", &attempt,
				      &local_rank) != 2))
		return NULL;
	for (unsigned i = 0; i < l->count; i++)
		if (l->workers[i].outcome.local_rank == local_rank)
			return &l->workers[i];
	return NULL;
}

/* The worker whose session it is in. */
static struct worker *by_session(const struct leftovers *l, pid_t pid)
{
	pid_t session = getsid(pid);

	for (unsigned i = 0; i < l->count; i++)
		if (session > 0 && l->workers[i].outcome.pid == session)
			return &l->workers[i];
	return NULL;
}

/* Whom an orphan was left by; NULL: nobody knows. The environment before the session: the number of
 * a worker that has ended long ago may be that of a new session by now. */
static struct worker *owner_of(const struct leftovers *l, pid_t orphan)
{
	struct worker *owner = by_error_file(l, orphan);

	return owner ? owner : by_session(l, orphan);
}

const struct reaped *leftovers_gone(const struct leftovers *l, pid_t pid)
{
	for (size_t i = 0; i < REAPED_KEPT; i++)
		if (pid > 0 && l->reaped[i].pid == pid)
			return &l->reaped[i];
	return NULL;
}

struct worker *leftovers_owner(const struct leftovers *l, pid_t pid, pid_t session, pid_t branch)
{
	const struct reaped *gone = branch <= 0 ? leftovers_gone(l, pid) : NULL;
	struct worker *owner;

	for (unsigned i = 0; i < l->count; i++) {
		struct worker *w = &l->workers[i];
		pid_t its = w->outcome.pid;

		/* the number of one that has ended may be another process's by now, but that
		 * one would not be gone, too, and when it was looked up, no child of ours */
		if (its > 0 &&
			(worker_is_alive(w) ? pid == its || session == its || branch == its :
					      pid == its && (session <= 0 || branch == its)))
			return w;
	}
	if (!gone && (branch <= 0 || helper_is_lasting(branch)))
		return NULL;
	owner = gone ? gone->of : owner_of(l, branch);
	return owner || l->count > 1 ? owner : &l->workers[0]; /* a daemon that is ending already */
}

static bool is_worker(const struct leftovers *l, pid_t pid)
{
	for (unsigned i = 0; i < l->count; i++)
		if (l->workers[i].outcome.pid == pid && worker_is_alive(&l->workers[i]))
			return true;
	return false;
}

static void again_in(struct look *look, uint64_t ms)
{
	if (!look->next_ms || ms < look->next_ms)
		look->next_ms = ms ? ms : 1;
}

/* Whether it is the process that was seen, and not another one of its number. */
static bool is_same(const struct seen *s, pid_t pid)
{
	struct process p = { 0 };

	return !s->gone && process_read(pid, &p) == 0 && p.started == s->started;
}

/* Whose turn it is with an orphan; NULL: it is a living worker's, or may be. */
static struct leftover *left_by(const struct look *look, pid_t orphan)
{
	const struct seen *s = seen_find(look->l, orphan);
	struct worker *owner;

	if (s && is_same(s, orphan))
		return s->of;
	owner = owner_of(look->l, orphan);
	if (owner)
		return look->all_ended || !worker_is_alive(owner) ? &owner->left : NULL;
	return look->all_ended ? &look->l->nobodys : NULL;
}

/* One of those that were left, or of those below it. */
static void deal_with(struct look *look, struct leftover *left, pid_t pid)
{
	struct descendant d;
	bool lives, is_new;

	if (tree_open(pid, &d) < 0)
		return;
	lives = d.is.state != 'Z';
	is_new = lives && note(look->l, pid, d.is.started, left);
	if (lives && left->killed) {
		(void)tree_tell(&d, SIGKILL);
	} else if (is_new) {
		(void)tree_tell(&d, SIGTERM);
		(void)tree_tell(&d, SIGCONT);
	}
	tree_close(&d);
}

static void see_child(struct look *look, pid_t child)
{
	static struct pids tree; /* one thread */
	struct leftover *left = is_worker(look->l, child) ? NULL : left_by(look, child);

	if (!left)
		return;
	if (!left->deadline_ns)
		left->deadline_ns = look->now_ns + look->l->grace_ns;
	left->killed = look->now_ns >= left->deadline_ns;
	tree_list(child, &tree);
	for (size_t i = 0; i < tree.count; i++)
		deal_with(look, left, tree.at[i]);
	if (left->killed)
		tree_kill_child(child, &look->killed);
	again_in(look, left->killed ? AGAIN_MS : (left->deadline_ns - look->now_ns) / 1000000 + 1);
}

/* One thread. */
static struct pids children;

uint64_t leftovers_look(struct leftovers *l, bool all_ended)
{
	struct look look = { .l = l, .all_ended = all_ended, .now_ns = uv_hrtime() };

	/* all of them first: what a signal orphans would turn up at the end of a list that is still
	 * read */
	tree_children(&children);
	if (all_ended && children.count > CROWD)
		tree_go_first();
	for (size_t i = 0; i < children.count; i++)
		see_child(&look, children.at[i]);
	seen_sort(l);
	return look.next_ms;
}

void leftovers_kill(struct leftovers *l)
{
	struct killed_groups killed = { { 0 } };

	l->killing = true;
	tree_children(&children);
	for (size_t i = 0; i < children.count; i++) {
		if (is_worker(l, children.at[i]))
			continue;
		if (children.count <= CROWD)
			(void)tree_signal(children.at[i], SIGKILL);
		tree_kill_child(children.at[i], &killed);
	}
}

bool leftovers_reaped(void *leftovers, const siginfo_t *si)
{
	struct leftovers *l = leftovers;
	struct seen *s = seen_find(l, si->si_pid);
	struct worker *owner;
	struct leftover *left;

	if (is_worker(l, si->si_pid))
		return false;
	if (s && s->gone)
		s = NULL;
	owner = by_session(l, si->si_pid);
	l->reaped[l->reaped_count++ % REAPED_KEPT] = (struct reaped){ si->si_pid, owner };
	owner = s ? NULL : owner;
	left = s ? s->of : owner ? &owner->left : &l->nobodys;
	if (si->si_code != CLD_EXITED && si->si_status == SIGKILL && (l->killing || left->killed)) {
		left->count += s ? 0 : 1;
		left->forced++;
	}
	if (s)
		s->gone = true;
	return true;
}

void leftovers_done(struct leftovers *l)
{
	free(l->seen);
	l->seen = NULL;
	l->seen_count = l->seen_room = l->sorted = 0;
}
