/* ask_threads.c - see ask_threads.h */
#include "daemon/blackbox/ask_threads.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "daemon/blackbox/answer_file.h"
#include "daemon/blackbox/source.h"
#include "daemon/check/task.h"
#include "daemon/os/thread_list.h"

enum { WAITS_TOLD = 3 };

/* "12 threads: 9 in futex_wait_queue, 2 in ep_poll, 1 runs" */
static void add_waits(struct thread_waits *w, struct text *out)
{
	text_printf(out, "%u thread%s", w->threads, w->threads == 1 ? "" : "s");
	for (unsigned told = 0; told < WAITS_TOLD; told++) {
		unsigned most = 0;

		for (unsigned i = 1; i < w->kinds; i++)
			if (w->at[i].threads > w->at[most].threads)
				most = i;
		if (most >= w->kinds || w->at[most].threads == 0)
			break;
		text_printf(out, "%s%u in %s", told ? ", " : ": ", w->at[most].threads,
			w->at[most].where);
		w->at[most].threads = 0;
	}
	if (w->running)
		text_printf(out, "; %u run%s", w->running, w->running == 1 ? "s" : "");
	if (w->stuck)
		text_printf(out, "; %u in state D (a disk, a file server or a driver)", w->stuck);
}

void ask_threads(
	const struct source_input *in, const struct source_worker *w, struct task_answer *a)
{
	struct thread_waits waits = { 0 };
	struct text list = { 0 }, line = { 0 };
	char subject[32], file[48];
	int rc;

	(void)snprintf(subject, sizeof subject, "rank %u", w->rank);
	(void)snprintf(file, sizeof file, "threads.rank-%u.txt", w->rank);
	rc = thread_list_add(w->pid, &list, &waits);
	if (rc == 0 && waits.threads > 0)
		rc = answer_file_write(in, file, &list);
	else if (rc == 0)
		rc = -ENOENT;
	if (rc == 0) {
		add_waits(&waits, &line);
		findings_add(&a->findings, HEALTH_GOOD, "threads", subject, "%s (%s)",
			text_string(&line), file);
	} else {
		findings_add(&a->findings, HEALTH_UNKNOWN, "threads", subject, "%s",
			rc == -ENOENT || rc == -ESRCH ? "it had ended before it was looked at" :
							strerror(-rc));
	}
	text_done(&list);
	text_done(&line);
}
