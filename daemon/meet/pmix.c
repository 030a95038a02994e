/* pmix.c - see pmix.h */
#include "daemon/meet/pmix.h"

#include <errno.h>
#include <limits.h>
#include <pmix.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "common/failure.h"
#include "common/text.h"
#include "daemon/os/dlib.h"

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
	.name = "libpmix",
	.file = "libpmix.so.2",
	.hint = "Debian's package is libpmix2; PMIx 3 or newer is needed",
	.symbols = symbols,
	.adds = "under mpirun and srun, nodes meet without an address",
	.version = { "PMIx_Get_version", 0, NULL },
	/* Open MPI 5 that lies in a directory of its own has its own PMIx there, and says where. It
	 * is to be preferred: it is of the server's version. */
	.home = "OPAL_PREFIX",
};

static void load(struct pmix_client *c)
{
	struct failure why = { 0 };
	void *stays;

	if (dlib_open(&pmix_library, NULL, c, &stays, &why) < 0)
		helper_fail(c->helper, "%s", why.text);
}

/* A server (PMIx 4.2 to 6 in Open MPI 4.1; op_cbfunc2() there) answers PMIx_Finalize in one thread
 * and notes only then, in another one, that this client leaves in good order. If the connection
 * ends before that, the client counts as lost, its node as one without processes, and no later
 * fence of the job ends: a second launchd under the same mpirun would wait for ever (seen in 1 of
 * 6, 4 nodes on 2 cores). So PMIx hears of the answer at the second tick after it came, where the
 * kernel lets it wait for more bytes than that (Linux 4.18). */
enum {
	TICK_US = 10000,
	MORE_THAN_THE_ANSWER = 4096,
	FILES_OF_PMIX = 256, /* eight, in Open MPI 4.1 */
};

static struct {
	int server;
	bool answered;
} farewell;

static void hear_from_server_at(int bytes)
{
	(void)setsockopt(farewell.server, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

static void on_tick(int signal)
{
	int error = errno;
	char byte;

	(void)signal;
	if (farewell.answered)
		hear_from_server_at(1);
	else
		farewell.answered = recv(farewell.server, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
	errno = error;
}

/* Nothing else in this process has a socket of the internet's, or any file above the three. */
static int find_server(void)
{
	for (int fd = 3; fd < FILES_OF_PMIX; fd++) {
		int domain = 0;
		socklen_t len = sizeof domain;

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
			(domain == AF_INET || domain == AF_INET6))
			return fd;
	}
	return -1;
}

static pmix_status_t leave(const struct pmix_client *c)
{
	const struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
	const struct itimerval ticks = { { .tv_usec = TICK_US }, { .tv_usec = TICK_US } };

	farewell.server = find_server();
	if (farewell.server >= 0 && sigaction(SIGALRM, &action, NULL) == 0 &&
		setitimer(ITIMER_REAL, &ticks, NULL) == 0)
		hear_from_server_at(MORE_THAN_THE_ANSWER);
	return c->pmix.finalize(NULL, 0);
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
		(void)leave(c);
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
	check(&c, "PMIx_Fence", status);
	enter(&c, STEP_GET);
	get(&c, &me);
	/* Where libraries of PMIx 4 and 5 meet, a fence does not always bring the data along: then
	 * rank 0 is asked, who must not have left (3 of 8 jobs hung in PMIx_Get without this). If
	 * somebody could not get it that is his to tell. */
	enter(&c, STEP_LEAVE);
	(void)wait_for_all(&c, &all);
	enter(&c, STEP_FINALIZE);
	status = leave(&c);
	if (status != PMIX_SUCCESS)
		helper_fail(h, "PMIx_Finalize: %s", c.pmix.error_string(status));
	enter(&c, STEP_DONE);
}

/* --- the parent --- */

static void on_end(struct helper *h, bool succeeded)
{
	const struct pmix_answer *a = (const struct pmix_answer *)h->answer;
	struct pmix_exchange *x = h->owner;
	/* the child wrote it, whose memory may have been anything */
	enum step step = a->head.step < STEPS ? a->head.step : STEP_START;
	struct text t = { 0 };

	if (succeeded && step == STEP_DONE && a->len <= PMIX_BYTES_MAX) {
		x->on_done(x, a->bytes, a->len);
		return;
	}
	if (a->timed_out || (h->timed_out && step == STEP_FENCE)) {
		text_printf(&t, "not all launchers of this job reached PMIx_Fence within %.3g s",
			(double)x->timeout_ms / 1000);
	} else {
		text_add(&t, "the launchers of this job can't meet by PMIx: ");
		helper_explain(h, step_words[step], &t);
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
		.work = meet, .on_end = on_end, .owner = x, .name = "rank-pmix", .argv = x->argv
	};
	if (rc == 0)
		rc = helper_start(
			&x->helper, loop, sizeof(struct pmix_answer), timeout_ms + FINALIZE_MS);
	return rc < 0 ? failure_not_started(why, rc, "a process to meet by PMIx") : 0;
}

void pmix_close(struct pmix_exchange *x)
{
	helper_close(&x->helper);
}
