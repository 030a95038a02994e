/* pmix_task.c - see pmix_task.h */
#include "daemon/facts/pmix_task.h"

#include <pmix.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/vec.h"
#include "daemon/launchers/launchers.h"
#include "daemon/os/dlib.h"
#include "daemon/os/pmix_leave.h"
#include "daemon/os/question.h"

enum { LIMIT_MS = 10000 };

struct task_client {
	__typeof__(PMIx_Init) *init;
	__typeof__(PMIx_Get) *get;
	__typeof__(PMIx_Finalize) *finalize;
	__typeof__(PMIx_Error_string) *error_string;
};

static const struct dlib_symbol symbols[] = {
	{ "PMIx_Init", offsetof(struct task_client, init), NULL },
	{ "PMIx_Get", offsetof(struct task_client, get), NULL },
	{ "PMIx_Finalize", offsetof(struct task_client, finalize), NULL },
	{ "PMIx_Error_string", offsetof(struct task_client, error_string), NULL },
	{ NULL, 0, NULL },
};

static const struct dlib library = { PMIX_LIBRARY, .symbols = symbols };

/* What the child tells. */
struct told_task {
	unsigned size, local_rank, local_size;
	char why[sizeof((struct failure *)0)->text];
};

static unsigned task_get(const struct task_client *c, const pmix_proc_t *of, const char *key)
{
	pmix_value_t *value = NULL;

	if (c->get(of, key, NULL, 0, &value) != PMIX_SUCCESS || !value)
		return 0;
	return value->type == PMIX_UINT32  ? value->data.uint32 :
		value->type == PMIX_UINT16 ? value->data.uint16 :
					     0;
}

static void task_ask(const void *how, void *answer)
{
	struct told_task *told = answer;
	struct failure why = { 0 };
	struct task_client c;
	pmix_proc_t me, all;
	pmix_status_t status;
	void *stays;

	(void)how;
	if (dlib_open(&library, NULL, &c, &stays, &why) < 0) {
		memcpy(told->why, why.text, sizeof told->why);
		return;
	}
	status = c.init(&me, NULL, 0);
	if (status != PMIX_SUCCESS) { /* nothing of PMIx may be called after that */
		(void)failure_set(&why, -1, "PMIx_Init: %s (%d)", c.error_string(status), status);
		memcpy(told->why, why.text, sizeof told->why);
		return;
	}
	all = me;
	all.rank = PMIX_RANK_WILDCARD;
	told->size = task_get(&c, &all, PMIX_JOB_SIZE);
	told->local_size = task_get(&c, &all, PMIX_LOCAL_SIZE);
	told->local_rank = task_get(&c, &me, PMIX_LOCAL_RANK);
	(void)pmix_leave(c.finalize);
}

struct task_facts pmix_task_read(const char *const *env, struct arena *arena)
{
	const struct question pmix = {
		.work = task_ask, .whom = "PMIx's server", .hint = "", .limit_ms = LIMIT_MS
	};
	static struct told_task told;
	struct task_facts ret = { 0 };
	struct failure why = { 0 };

	if (!launcher_of(env)->pmix_size)
		return ret;
	if (!env_has_prefix(env, "PMIX_SERVER_URI"))
		ret.why = "PMIX_SERVER_URI is not set";
	else if (question_ask(&pmix, &told, sizeof told, &why) < 0)
		ret.why = arena_strdup(arena, why.text);
	else if (told.size == 0)
		ret.why = arena_strdup(arena, *told.why ? told.why : "its server knows no size");
	else
		ret = (struct task_facts){ told.size, told.local_rank, told.local_size, NULL };
	return ret;
}
