/* journal_ids.c - see journal_ids.h */
#include "daemon/service/journal_ids.h"

#include "daemon/job/job_end.h"

#define ROW(name, number, word) { number, word },
static const struct {
	const char *number, *word;
} ids[JOURNAL_ID_COUNT] = { JOURNAL_IDS(ROW) };
#undef ROW

const char *journal_id_number(enum journal_id id)
{
	return ids[id].number;
}

const char *journal_id_word(enum journal_id id)
{
	return ids[id].word;
}

static enum journal_id id_of_failure(const struct outcome *culprit)
{
	if (culprit->oom != OOM_NO)
		return JOURNAL_ID_BY_OOM;
	if (ending_is_unstarted(&culprit->end))
		return JOURNAL_ID_BY_START;
	return culprit->end.how == ENDED_SIGNAL ? JOURNAL_ID_BY_SIGNAL : JOURNAL_ID_BY_EXIT;
}

enum journal_id journal_id_of_end(const struct run_end *end)
{
	const struct verdict *v = end ? &end->job.verdict : NULL;

	if (!v)
		return JOURNAL_ID_NOT_RUN;
	switch (v->cause.kind) {
	case CAUSE_NONE:
		return v->well ? JOURNAL_ID_ENDED_WELL : JOURNAL_ID_NOT_RUN;
	case CAUSE_FAILURE:
		return id_of_failure(&v->cause.culprit);
	case CAUSE_SIGNAL:
	case CAUSE_RESTART: /* that came to nothing, as a stop came with it */
		return JOURNAL_ID_BY_REQUEST;
	case CAUSE_MAX_RUNTIME:
		return JOURNAL_ID_BY_MAX_RUNTIME;
	case CAUSE_GUARD:
		return JOURNAL_ID_BY_GUARD;
	case CAUSE_LAUNCHER:
	case CAUSE_HANGUP:
		return JOURNAL_ID_BY_LAUNCHER;
	case CAUSE_NODE_LOST:
		return JOURNAL_ID_BY_NODE_LOST;
	case CAUSE_BAD_NODE:
		return JOURNAL_ID_BY_BAD_NODE;
	case CAUSE_HANG:
		return JOURNAL_ID_BY_HANG;
	case CAUSE_PREEMPTED:
		return JOURNAL_ID_BY_PREEMPTION;
	case CAUSE_TIMEOUT:
		return JOURNAL_ID_BY_TIMEOUT;
	}
	__builtin_unreachable();
}
