/* taking.c - see taking.h */
#include "daemon/blackbox/taking.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/failure.h"
#include "common/fd.h"
#include "daemon/blackbox/keep.h"
#include "daemon/check/task.h"

static const uint64_t look_limit_ns = 100000000;

/* In the child of a child: one task has no other owner, so this process has one of these. */
static struct {
	struct source_input input;
	struct source_finds *taken;
} asked;

size_t taken_size(size_t workers)
{
	return sizeof(struct source_finds) + workers * sizeof(struct quick_look);
}

struct quick_look *taken_later(const struct source_finds *t)
{
	return (struct quick_look *)(t + 1);
}

static void ask_node(const struct task *t, struct task_answer *a)
{
	blackbox_sources[t->number].of_node(&asked.input, a);
}

static void ask_worker(const struct task *t, struct task_answer *a)
{
	blackbox_sources[t->number].of_worker(&asked.input, t->owner, a);
}

static void on_answer(struct tasks *all, const struct task *t)
{
	struct source_finds *taken = asked.taken;

	(void)all;
	findings_merge(&taken->findings, &t->answer->findings);
	taken->of[t->number].answered++;
}

static void add_task(struct tasks *all, unsigned row, const struct source_worker *w)
{
	const struct blackbox_source *s = &blackbox_sources[row];
	struct task t = {
		.work = w ? ask_worker : ask_node,
		.then = on_answer,
		.owner = w,
		.number = row,
		.check = s->name,
		.limit_ms = s->limit_ms,
	};

	if (w)
		(void)snprintf(t.subject, sizeof t.subject, "rank %u", w->rank);
	tasks_add(all, &t);
	asked.taken->of[row].asked++;
}

static void add_tasks(struct tasks *all)
{
	const struct source_input *in = &asked.input;

	for (unsigned row = 0; blackbox_sources[row].name && row < TAKING_SOURCES; row++) {
		const struct blackbox_source *s = &blackbox_sources[row];

		if (s->is_wanted && !s->is_wanted(in))
			continue;
		if (s->of_node)
			add_task(all, row, NULL);
		for (size_t i = 0; s->of_worker && i < in->count; i++)
			add_task(all, row, &in->workers[i]);
	}
}

/* What they used since the first look. */
static void look_again(const struct taking *t, struct source_finds *ret)
{
	struct quick_look *later = taken_later(ret);

	for (size_t i = 0; i < t->input.count; i++)
		later[i].pid = t->input.workers[i].pid;
	(void)quick_look(later, t->input.count, look_limit_ns);
	ret->looked = true;
}

/* 40 KB, and one for each child. */
static struct tasks all_tasks;

static void ask_all(struct source_finds *ret)
{
	struct findings unused = { 0 };
	int rc = tasks_init(&all_tasks);

	if (rc < 0) {
		findings_add(&ret->findings, HEALTH_UNKNOWN, "sources", "",
			"there is no memory to ask them");
		return;
	}
	add_tasks(&all_tasks);
	tasks_run(&all_tasks, &unused);
	if (all_tasks.left_out)
		findings_add(&ret->findings, HEALTH_UNKNOWN, "sources", "",
			"%u more were not asked: there are too many workers here",
			all_tasks.left_out);
	tasks_done(&all_tasks);
}

void taking_do(const struct taking *t, struct source_finds *ret)
{
	char path[PATH_MAX];
	struct failure why = { 0 };
	autoclose failure_fd = keep_open_failure(t->dir, t->name, &why);
	autoclose fd = failure_fd < 0 ? -1 : keep_open_node(failure_fd, t->node, &why);

	look_again(t, ret);
	if (fd < 0 || keep_path(fd, path, sizeof path) < 0)
		return; /* whoever writes the bundle says so */
	asked.input = t->input;
	asked.input.dir = path; /* a task has no open files */
	asked.taken = ret;
	ask_all(ret);
	look_again(t, ret);
	(void)keep_within(fd, KEEP_MAX_BYTES);
}

void taken_unanswered(const struct source_finds *t, const char *because, struct findings *ret)
{
	for (unsigned row = 0; blackbox_sources[row].name && row < TAKING_SOURCES; row++) {
		unsigned answered = t->of[row].answered, all = t->of[row].asked;

		if (answered >= all || all > TASKS_MAX)
			continue;
		if (all == 1)
			findings_add(ret, HEALTH_UNKNOWN, blackbox_sources[row].name, "",
				"it had not answered %s", because);
		else
			findings_add(ret, HEALTH_UNKNOWN, blackbox_sources[row].name, "",
				"%u of %u had not answered %s", all - answered, all, because);
	}
}
