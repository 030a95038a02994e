/* ask_ras.c - see ask_ras.h */
#include "daemon/blackbox/ask_ras.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "daemon/blackbox/answer_file.h"
#include "daemon/blackbox/ras_ask.h"
#include "daemon/blackbox/ras_talk.h"
#include "daemon/blackbox/source.h"
#include "daemon/check/task.h"
#include "daemon/os/nvidia.h"

enum {
	ASK_MS = 4000, /* less than the task's limit, so that what has come is kept */
	RAS_MAX = 1 << 20,
};

/* NCCL itself is told to wait less than we do for processes that don't answer. */
static const char question[] = "TIMEOUT 3\nVERBOSE STATUS\n";

static const char *short_of(int rc)
{
	return rc == -ETIMEDOUT ? "; it had not ended after 4 s" :
		rc == -EMSGSIZE ? "; it was longer than 1 MB" :
		rc < 0          ? "; it was cut off" :
				  "";
}

static void say(const char *address, int rc, const struct text *answer, struct task_answer *a)
{
	struct text line = { 0 };
	enum ras_says says;

	if (answer->len == 0 && rc == -ECONNREFUSED) {
		if (nvidia_gpus_here())
			findings_add(&a->findings, HEALTH_UNKNOWN, "nccl_ras", address,
				"nobody listens: no communicator, NCCL before 2.24, or its RAS is "
				"off");
		return;
	}
	if (answer->len == 0) {
		findings_add(&a->findings, HEALTH_UNKNOWN, "nccl_ras", address, "no answer: %s",
			rc == -EINVAL   ? "it is no HOST:PORT" :
				rc == 0 ? "the connection was closed" :
					  strerror(-rc));
		return;
	}
	says = ras_talk_read(answer->at, answer->len, &line);
	findings_add(&a->findings,
		says == RAS_ERRORS                    ? HEALTH_BAD :
			says == RAS_UNCLEAR || rc < 0 ? HEALTH_UNKNOWN :
							HEALTH_GOOD,
		"nccl_ras", address, "%.170s%s (nccl-ras.txt)", text_string(&line), short_of(rc));
	text_done(&line);
}

void ask_ras(const struct source_input *in, struct task_answer *a)
{
	struct text answer = { 0 };
	char address[RAS_ADDRESS_SIZE] = "";
	int rc;

	/* all workers of a node have the same, by whomever it was set */
	for (size_t i = 0; i < in->count; i++) {
		rc = ras_address_of(in->workers[i].pid, address);
		if (rc < 0)
			return;
		if (rc > 0)
			break;
	}
	if (!*address) /* at NCCL's own port another job might answer */
		return;
	task_step(a, "NCCL RAS at %.40s", address);
	rc = ras_ask(address, question, ASK_MS, RAS_MAX, &answer);
	if (answer.len > 0)
		(void)answer_file_write(in, "nccl-ras.txt", &answer);
	say(address, rc, &answer, a);
	text_done(&answer);
}
