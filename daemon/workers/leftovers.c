/* leftovers.c - see leftovers.h */
#include "daemon/workers/leftovers.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/workers/procfs.h"
#include "daemon/workers/tree.h"

enum {
	AGAIN_MS = 20, /* after a SIGKILL: what it has orphaned must be found */
	CROWD = 64,    /* orphans: more than that may be a storm of forks, which outruns us */
};

struct look {
	struct leftovers *l;
	bool all_ended;
	uint64_t now_ns, next_ms;
};

/* The worker whose local rank stands in the path of an error file of this run. */
static struct worker *by_error_file(const struct leftovers *l, pid_t pid)
{
	char path[4096];
	const char *dir = l->log_dir ? l->log_dir : l->run_dir;
	size_t len = strlen(dir);
	unsigned attempt, local_rank;

	if (!process_variable(pid, "TORCHELASTIC_ERROR_FILE", path, sizeof path) ||
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

/* The environment first: the number of a worker that has ended long ago may be that of a new
 * session by now. */
static struct worker *owner_of(const struct leftovers *l, pid_t orphan)
{
	struct worker *owner = by_error_file(l, orphan);

	return owner ? owner : by_session(l, orphan);
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

/* An orphan whose worker has ended. The pass in which `told` becomes true is the one in which its
 * worker's orphans are all asked: see settle(). */
static void deal_with(struct look *look, struct leftover *left, pid_t orphan)
{
	if (!left->told) {
		left->count += tree_signal(orphan, SIGTERM);
		(void)tree_signal(orphan, SIGCONT);
		left->deadline_ns = look->now_ns + look->l->grace_ns;
	}
	if (look->now_ns >= left->deadline_ns) {
		unsigned reached = tree_signal(orphan, SIGKILL);

		tree_kill_child(orphan);
		left->forced += left->killed ? 0 : reached;
		again_in(look, AGAIN_MS);
		return;
	}
	again_in(look, (left->deadline_ns - look->now_ns) / 1000000 + 1);
}

static void see_child(struct look *look, pid_t child)
{
	struct worker *owner;

	if (is_worker(look->l, child))
		return;
	owner = owner_of(look->l, child);
	if (owner && (look->all_ended || !worker_is_alive(owner)))
		deal_with(look, &owner->left, child);
	else if (!owner && look->all_ended)
		deal_with(look, &look->l->nobodys, child);
}

static void settle(struct leftover *left, uint64_t now_ns)
{
	left->told |= left->deadline_ns > 0;
	left->killed |= left->told && now_ns >= left->deadline_ns;
	if (left->count < left->forced) /* some were born in the grace */
		left->count = left->forced;
}

uint64_t leftovers_look(struct leftovers *l, bool all_ended)
{
	static struct pids children; /* one thread */
	struct look look = { .l = l, .all_ended = all_ended, .now_ns = uv_hrtime() };

	/* all of them first: what a signal orphans would turn up at the end of a list that is still
	 * read, and count twice */
	children.count = 0;
	process_list_children(getpid(), &children);
	if (all_ended && children.count > CROWD)
		tree_go_first();
	for (size_t i = 0; i < children.count; i++)
		see_child(&look, children.at[i]);
	for (unsigned i = 0; i < l->count; i++)
		settle(&l->workers[i].left, look.now_ns);
	settle(&l->nobodys, look.now_ns);
	return look.next_ms;
}

void leftovers_kill(struct leftovers *l)
{
	static struct pids children; /* one thread */

	children.count = 0;
	process_list_children(getpid(), &children);
	for (size_t i = 0; i < children.count; i++) {
		struct worker *owner;
		struct leftover *left;
		unsigned reached;

		if (is_worker(l, children.at[i]))
			continue;
		/* to read the environment of a process that forks waits for its memory */
		owner = by_session(l, children.at[i]);
		left = owner ? &owner->left : &l->nobodys;
		reached = children.count > CROWD ? 1 : tree_signal(children.at[i], SIGKILL);
		left->forced += left->killed ? 0 : reached;
		tree_kill_child(children.at[i]);
	}
	for (unsigned i = 0; i < l->count; i++)
		settle(&l->workers[i].left, UINT64_MAX);
	settle(&l->nobodys, UINT64_MAX);
}
