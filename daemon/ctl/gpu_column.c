/* gpu_column.c - see gpu_column.h */
#include "daemon/ctl/gpu_column.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <uv.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "daemon/ctl/job_view.h"
#include "daemon/facts/gpu_memory.h"
#include "daemon/os/helper.h"
#include "daemon/os/procfs.h"

enum { LIMIT_MS = 5000, USES_MAX = 4096, DEPTH_MAX = 64 };

enum gpu_step { STEP_ASKING, STEP_NONE, STEP_DONE };

struct gpu_answer {
	struct helper_answer head;
	size_t count;
	struct gpu_use uses[USES_MAX];
};

/* One question, until the child has ended. */
struct gpu_asking {
	uv_loop_t loop;
	uv_signal_t child;
	struct helper helper;
	const pid_t *workers;
	size_t count;
	struct gpu_bytes *sums;
	bool known;
	struct text *said;
};

/* In the child. */
static void ask(struct helper *h)
{
	struct gpu_answer *a = (struct gpu_answer *)h->answer;
	struct failure why = { 0 };
	int rc = gpu_memory_read(a->uses, USES_MAX, &a->count, &why);

	if (rc < 0 && rc != -ELIBACC)
		helper_fail(h, "%s", why.text);
	a->head.step = rc < 0 ? STEP_NONE : STEP_DONE;
}

/* The worker that a process is, or is below of; count: it is nobody's. */
static size_t whose(const struct gpu_asking *a, pid_t pid)
{
	struct process p;

	for (unsigned depth = 0; pid > 1 && depth < DEPTH_MAX; depth++) {
		for (size_t i = 0; i < a->count; i++)
			if (a->workers[i] == pid)
				return i;
		if (process_read(pid, &p) < 0)
			break;
		pid = p.parent;
	}
	return a->count;
}

static void add_up(struct gpu_asking *a, const struct gpu_answer *answer)
{
	size_t count = answer->count < USES_MAX ? answer->count : USES_MAX;

	a->known = true;
	for (size_t i = 0; i < count; i++) {
		size_t worker = whose(a, answer->uses[i].pid);

		if (worker < a->count)
			a->sums[worker].bytes += answer->uses[i].bytes;
	}
}

static void on_end(struct helper *h, bool succeeded)
{
	const struct gpu_answer *answer = (const struct gpu_answer *)h->answer;
	struct gpu_asking *a = h->owner;

	if (succeeded && answer->head.step == STEP_DONE) {
		add_up(a, answer);
	} else if (!succeeded) {
		text_add(a->said, "GPU memory is not known: ");
		helper_explain(h, "NVML", a->said);
	}
	helper_close(h);
	uv_close((uv_handle_t *)&a->child, NULL);
}

/* Where there are no pidfds, nothing else tells. */
static void on_child(uv_signal_t *s, int signal)
{
	(void)s, (void)signal;
	helper_on_child();
}

static int run(struct gpu_asking *a)
{
	int rc = uv_loop_init(&a->loop);

	if (rc < 0)
		return rc;
	rc = uv_signal_init(&a->loop, &a->child);
	if (rc == 0) {
		rc = uv_signal_start(&a->child, on_child, SIGCHLD);
		if (rc == 0)
			rc = helper_start(
				&a->helper, &a->loop, sizeof(struct gpu_answer), LIMIT_MS);
		if (rc < 0)
			uv_close((uv_handle_t *)&a->child, NULL);
	}
	(void)uv_run(&a->loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&a->loop);
	return rc;
}

struct gpu_bytes *gpu_column(
	const pid_t *workers, size_t count, struct arena *arena, struct text *said)
{
	struct gpu_asking a = {
		.helper = { .work = ask, .on_end = on_end, .owner = &a, .name = "launchctl-nvml" },
		.workers = workers,
		.count = count,
		.sums = arena_alloc(arena, (count + 1) * sizeof *a.sums),
		.said = said,
	};
	int rc;

	if (!a.sums)
		return NULL;
	for (size_t i = 0; i < count; i++)
		a.sums[i] = (struct gpu_bytes){ .worker = workers[i] };
	rc = run(&a);
	if (rc < 0)
		text_printf(said, "GPU memory is not known: %s", strerror(-rc));
	return a.known ? a.sums : NULL;
}
