/* pmix.c - see pmix.h */
#include "daemon/meet/pmix.h"

#include <errno.h>
#include <limits.h>
#include <pmix.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "common/failure.h"
#include "common/monotonic.h"
#include "common/text.h"
#include "daemon/meet/pmi.h"
#include "daemon/os/dlib.h"
#include "daemon/os/pmix_leave.h"

/* One value of each launcher; PMIx keeps names that begin so for itself: "pmix". */
#define KEY "launchd.card"

enum { FINALIZE_MS = 2000 }; /* beyond the fence's own limit */

enum step {
	STEP_START,
	STEP_LOAD,
	STEP_INIT,
	STEP_PUT,
	STEP_FENCE,
	STEP_GET,
	STEP_LEAVE, /* waiting until all have got it */
	STEP_FINALIZE,
	STEP_DONE,
	STEPS,
};

static const char *const step_words[STEPS] = {
	[STEP_START] = "its start",
	[STEP_LOAD] = "loading its library",
	[STEP_INIT] = "PMIx_Init",
	[STEP_PUT] = "PMIx_Put",
	[STEP_FENCE] = "PMIx_Fence",
	[STEP_GET] = "PMIx_Get",
	[STEP_LEAVE] = "the second PMIx_Fence",
	[STEP_FINALIZE] = "PMIx_Finalize",
	[STEP_DONE] = "its end",
};

static const char *const pmi_words[STEPS] = {
	[STEP_START] = "its start",
	[STEP_INIT] = "init",
	[STEP_PUT] = "put",
	[STEP_FENCE] = "barrier_in",
	[STEP_GET] = "get",
	[STEP_FINALIZE] = "finalize",
	[STEP_DONE] = "its end",
};

struct pmix_answer {
	struct helper_answer head;
	volatile uint32_t timed_out; /* the fence was left, as its time was over */
	volatile uint32_t len;       /* of the bytes; counts at STEP_DONE only */
	unsigned char bytes[PMIX_BYTES_MAX];
};

/* --- the child --- */

struct pmix_client {
	struct helper *helper;
	struct pmix_answer *answer;
	uint64_t deadline_ns; /* of the fences */
	struct {
		__typeof__(PMIx_Init) *init;
		__typeof__(PMIx_Put) *put;
		__typeof__(PMIx_Commit) *commit;
		__typeof__(PMIx_Fence_nb) *fence;
		__typeof__(PMIx_Get) *get;
		__typeof__(PMIx_Finalize) *finalize;
		__typeof__(PMIx_Error_string) *error_string;
	} pmix;
};

/* The fence's end, told by PMIx's own thread. Static: PMIx may tell it after we have left. */
static struct {
	int event;
	volatile pmix_status_t status;
} fence;

/* The step stands in the answer before it is taken, so that it is known whatever becomes of the
 * child. */
static void enter(const struct pmix_client *c, enum step step)
{
	c->answer->head.step = step;
}

static const struct dlib_symbol symbols[] = {
	{ "PMIx_Init", offsetof(struct pmix_client, pmix.init), NULL },
	{ "PMIx_Put", offsetof(struct pmix_client, pmix.put), NULL },
	{ "PMIx_Commit", offsetof(struct pmix_client, pmix.commit), NULL },
	{ "PMIx_Fence_nb", offsetof(struct pmix_client, pmix.fence), NULL },
	{ "PMIx_Get", offsetof(struct pmix_client, pmix.get), NULL },
	{ "PMIx_Finalize", offsetof(struct pmix_client, pmix.finalize), NULL },
	{ "PMIx_Error_string", offsetof(struct pmix_client, pmix.error_string), NULL },
	{ NULL, 0, NULL },
};

const struct dlib pmix_library = {
	PMIX_LIBRARY,
	.symbols = symbols,
	.adds = "under mpirun and srun, nodes meet without an address",
	.version = { "PMIx_Get_version", 0, NULL },
};

static void load(struct pmix_client *c)
{
	struct failure why = { 0 };
	void *stays;

	if (dlib_open(&pmix_library, NULL, c, &stays, &why) < 0)
		helper_fail(c->helper, "%s", why.text);
}

/* After a failed PMIx_Init, PMIx_Finalize crashes; after any other failure mpirun wants it, or
 * takes the launcher's exit code 0 for a failure. */
static void check(const struct pmix_client *c, const char *what, pmix_status_t status)
{
	char detail[128];

	if (status == PMIX_SUCCESS)
		return;
	(void)snprintf(detail, sizeof detail, "%s (%d)", c->pmix.error_string(status), status);
	if (c->answer->head.step > STEP_INIT)
		(void)pmix_leave(c->pmix.finalize);
	helper_fail(c->helper, "%s: %s", what, detail);
}

static void on_fence(pmix_status_t status, void *data)
{
	(void)data;
	fence.status = status;
	(void)eventfd_write(fence.event, 1);
}

static int remaining_ms(uint64_t deadline_ns)
{
	uint64_t now = uv_hrtime(), ms;

	if (now >= deadline_ns)
		return 0;
	ms = (deadline_ns - now) / 1000000 + 1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* PMIx's own limit for a fence is ignored by servers; one that is left by Finalize does no harm. */
static pmix_status_t wait_for_all(const struct pmix_client *c, const pmix_proc_t *all)
{
	pmix_info_t collect = { .value = { .type = PMIX_BOOL, .data.flag = true } };
	struct pollfd done = { .events = POLLIN };
	pmix_status_t status;
	int n;

	memcpy(collect.key, PMIX_COLLECT_DATA, sizeof PMIX_COLLECT_DATA);
	fence.event = eventfd(0, EFD_CLOEXEC);
	if (fence.event < 0)
		return PMIX_ERR_OUT_OF_RESOURCE;
	status = c->pmix.fence(all, 1, &collect, 1, on_fence, NULL);
	if (status == PMIX_OPERATION_SUCCEEDED)
		return PMIX_SUCCESS;
	if (status != PMIX_SUCCESS)
		return status;
	done.fd = fence.event;
	do {
		n = poll(&done, 1, remaining_ms(c->deadline_ns));
	} while (n < 0 && errno == EINTR);
	return n > 0 ? fence.status : PMIX_ERR_TIMEOUT;
}

static void put(const struct pmix_client *c, const void *mine, size_t len)
{
	pmix_value_t value = { .type = PMIX_BYTE_OBJECT };
	char *copy = malloc(len + 1);

	if (!copy)
		helper_fail(c->helper, "PMIx_Put: out of memory");
	memcpy(copy, mine, len);
	value.data.bo.bytes = copy;
	value.data.bo.size = len;
	check(c, "PMIx_Put", c->pmix.put(PMIX_GLOBAL, KEY, &value));
	free(copy);
	check(c, "PMIx_Commit", c->pmix.commit());
}

static void get(const struct pmix_client *c, pmix_proc_t *of)
{
	pmix_value_t *value = NULL;

	of->rank = 0;
	check(c, "PMIx_Get", c->pmix.get(of, KEY, NULL, 0, &value));
	if (!value || value->type != PMIX_BYTE_OBJECT || value->data.bo.size > PMIX_BYTES_MAX)
		check(c, "PMIx_Get", PMIX_ERR_TYPE_MISMATCH);
	memcpy(c->answer->bytes, value->data.bo.bytes, value->data.bo.size);
	c->answer->len = (uint32_t)value->data.bo.size;
}

static void meet(struct helper *h)
{
	const struct pmix_exchange *x = h->owner;
	struct pmix_client c = { .helper = h,
		.answer = (struct pmix_answer *)h->answer,
		.deadline_ns = uv_hrtime() + x->timeout_ms * UINT64_C(1000000) };
	pmix_status_t status;
	pmix_proc_t me, all;

	enter(&c, STEP_LOAD);
	load(&c);
	enter(&c, STEP_INIT);
	check(&c, "PMIx_Init", c.pmix.init(&me, NULL, 0));
	enter(&c, STEP_PUT);
	all = me;
	all.rank = PMIX_RANK_WILDCARD;
	put(&c, x->mine, x->len);
	enter(&c, STEP_FENCE);
	status = wait_for_all(&c, &all);
	c.answer->timed_out = status == PMIX_ERR_TIMEOUT;
	/* Under prterun a launcher was a client before, to ask for the size (facts/pmix_task.h),
	 * whose end the server may notice during another one's fence: 11 of 40 starts with four
	 * launchers. */
	if (status != PMIX_ERR_PARTIAL_SUCCESS)
		check(&c, "PMIx_Fence", status);
	enter(&c, STEP_GET);
	get(&c, &me);
	/* Where libraries of PMIx 4 and 5 meet, a fence does not always bring the data along: then
	 * rank 0 is asked, who must not have left (3 of 8 jobs hung in PMIx_Get without this). If
	 * somebody could not get it that is his to tell. */
	enter(&c, STEP_LEAVE);
	(void)wait_for_all(&c, &all);
	enter(&c, STEP_FINALIZE);
	status = pmix_leave(c.pmix.finalize);
	if (status != PMIX_SUCCESS)
		helper_fail(h, "PMIx_Finalize: %s", c.pmix.error_string(status));
	enter(&c, STEP_DONE);
}

/* --- the child that speaks PMI-1, by its standard input --- */

static void enter_pmi(void *owner, enum pmi_step step)
{
	static const enum step steps[PMI_STEPS] = {
		[PMI_INIT] = STEP_INIT,
		[PMI_PUT] = STEP_PUT,
		[PMI_BARRIER] = STEP_FENCE,
		[PMI_GET] = STEP_GET,
		[PMI_FINALIZE] = STEP_FINALIZE,
	};
	struct helper_answer *answer = owner;

	answer->step = steps[step];
}

static void meet_by_pmi(struct helper *h)
{
	const struct pmix_exchange *x = h->owner;
	struct pmix_answer *a = (struct pmix_answer *)h->answer;
	struct pmi p = { .fd = 0,
		.until_ms = monotonic_ms() + (int64_t)x->timeout_ms,
		.enter = enter_pmi,
		.owner = &a->head };
	long len = pmi_exchange(&p, x->mine, x->len, a->bytes, sizeof a->bytes);

	a->timed_out = len == -ETIMEDOUT;
	if (len < 0)
		helper_fail(h, "%s: %.200s", pmi_words[a->head.step], p.line);
	a->len = (uint32_t)len;
	a->head.step = STEP_DONE;
}

/* --- the parent --- */

static void on_end(struct helper *h, bool succeeded)
{
	const struct pmix_answer *a = (const struct pmix_answer *)h->answer;
	struct pmix_exchange *x = h->owner;
	/* the child wrote it, whose memory may have been anything */
	enum step step = a->head.step < STEPS ? a->head.step : STEP_START;
	const char *by = x->pmi_fd ? "PMI" : "PMIx";
	const char *word = (x->pmi_fd ? pmi_words : step_words)[step];
	struct text t = { 0 };

	if (succeeded && step == STEP_DONE && a->len <= PMIX_BYTES_MAX) {
		x->on_done(x, a->bytes, a->len);
		return;
	}
	x->unfinished = x->pmi_fd && a->timed_out;
	if (a->timed_out || (h->timed_out && step == STEP_FENCE)) {
		text_printf(&t, "not all launchers of this job reached %s within %.3g s", word,
			(double)x->timeout_ms / 1000);
	} else {
		text_printf(&t, "the launchers of this job can't meet by %s: ", by);
		helper_explain(h, word ? word : "its start", &t);
	}
	x->on_failed(x, text_string(&t), step <= STEP_INIT);
	text_done(&t);
}

int pmix_start(struct pmix_exchange *x, uv_loop_t *loop, const void *mine, size_t len,
	uint64_t timeout_ms, struct failure *why)
{
	int rc = len <= PMIX_BYTES_MAX ? 0 : -EMSGSIZE;

	x->mine = mine;
	x->len = len;
	x->timeout_ms = timeout_ms;
	x->helper = (struct helper){
		.work = x->pmi_fd ? meet_by_pmi : meet,
		.input = x->pmi_fd,
		.on_end = on_end,
		.owner = x,
		.name = "rank-pmix",
		.argv = x->argv,
	};
	if (rc == 0)
		rc = helper_start(
			&x->helper, loop, sizeof(struct pmix_answer), timeout_ms + FINALIZE_MS);
	return rc < 0 ? failure_not_started(why, rc, "a process to meet the other launchers") : 0;
}

void pmix_finish(struct pmix_exchange *x)
{
	if (x->unfinished)
		pmi_finish(x->pmi_fd);
	x->unfinished = false;
}

void pmix_close(struct pmix_exchange *x)
{
	helper_close(&x->helper);
}
