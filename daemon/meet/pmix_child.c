/* pmix_child.c - see pmix_child.h */
#include "daemon/meet/pmix_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pmix.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include <uv.h>

#include "common/failure.h"
#include "daemon/os/dlib.h"
#include "daemon/os/process.h"

/* One value of each launcher; PMIx keeps names that begin so for itself: "pmix". */
#define KEY "launchd.card"

struct pmix {
	__typeof__(PMIx_Init) *init;
	__typeof__(PMIx_Put) *put;
	__typeof__(PMIx_Commit) *commit;
	__typeof__(PMIx_Fence_nb) *fence;
	__typeof__(PMIx_Get) *get;
	__typeof__(PMIx_Finalize) *finalize;
	__typeof__(PMIx_Error_string) *error_string;
};

/* The fence's end, told by PMIx's own thread. Static: PMIx may tell it after we have left. */
static struct {
	int event;
	volatile pmix_status_t status;
} fence;

__attribute__((format(printf, 2, 3))) static _Noreturn void fail(
	const struct pmix_child *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(c->answer->text, sizeof c->answer->text, fmt, ap);
	va_end(ap);
	_exit(1);
}

static void enter(const struct pmix_child *c, enum pmix_stage stage)
{
	c->answer->stage = stage;
}

static int close_others(void)
{
	DIR *dir;
	struct dirent *entry;

	if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0) /* Linux 5.9 */
		return 0;
	dir = opendir("/proc/self/fd");
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		long fd = strtol(entry->d_name, NULL, 10); /* 0 for "." and ".." */

		if (fd > 2 && fd != dirfd(dir))
			(void)close((int)fd);
	}
	(void)closedir(dir);
	return 0;
}

/* A process like any other: PMIx must not find the launcher's mask, nor a file of the job's. */
static void be_born(const struct pmix_child *c)
{
	const struct rlimit no_core = { 0 };
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_DFL); /* KILL, STOP and the C library's own can't be */
	(void)signal(SIGPIPE, SIG_IGN);   /* a server that has gone is an error, no reason to die */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		fail(c, "prctl: %s", strerror(errno));
	if (getppid() != c->parent)
		_exit(1);
	if (null < 0 || dup2(null, 0) < 0 || dup2(c->chatter, 1) < 0 || dup2(c->chatter, 2) < 0)
		fail(c, "/dev/null: %s", strerror(errno));
	(void)setrlimit(RLIMIT_CORE, &no_core); /* nobody looks for PMIx's core by his script */
	if (close_others() < 0)
		fail(c, "/proc/self/fd: %s", strerror(errno));
	if (c->argv)
		process_rename(c->argv, "rank-pmix");
	else
		(void)prctl(PR_SET_NAME, "rank-pmix");
}

/* Open MPI 5 that lies in a directory of its own has its own PMIx there, and says where. It is to
 * be preferred: it is of the server's version. */
static void load(const struct pmix_child *c, struct pmix *ret)
{
	static const char *const places[] = { "lib", "lib/openmpi", "lib64" };
	static const struct dlib_symbol symbols[] = {
		{ "PMIx_Init", offsetof(struct pmix, init) },
		{ "PMIx_Put", offsetof(struct pmix, put) },
		{ "PMIx_Commit", offsetof(struct pmix, commit) },
		{ "PMIx_Fence_nb", offsetof(struct pmix, fence) },
		{ "PMIx_Get", offsetof(struct pmix, get) },
		{ "PMIx_Finalize", offsetof(struct pmix, finalize) },
		{ "PMIx_Error_string", offsetof(struct pmix, error_string) },
		{ NULL, 0 },
	};
	static const struct dlib library = { "libpmix", "libpmix.so.2",
		"Debian's package is libpmix2; PMIx 3 or newer is needed", symbols };
	const char *prefix = getenv("OPAL_PREFIX");
	struct failure why = { 0 }, unused;
	char path[PATH_MAX];
	void *stays;

	for (size_t i = 0; prefix && i < sizeof places / sizeof *places; i++) {
		(void)snprintf(path, sizeof path, "%s/%s/%s", prefix, places[i], library.file);
		unused = (struct failure){ 0 };
		if (dlib_open(&library, path, ret, &stays, &unused) == 0)
			return;
	}
	if (dlib_open(&library, NULL, ret, &stays, &why) < 0)
		fail(c, "%s", why.text);
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

static pmix_status_t leave(const struct pmix *p)
{
	const struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
	const struct itimerval ticks = { { .tv_usec = TICK_US }, { .tv_usec = TICK_US } };

	farewell.server = find_server();
	if (farewell.server >= 0 && sigaction(SIGALRM, &action, NULL) == 0 &&
		setitimer(ITIMER_REAL, &ticks, NULL) == 0)
		hear_from_server_at(MORE_THAN_THE_ANSWER);
	return p->finalize(NULL, 0);
}

/* After a failed PMIx_Init, PMIx_Finalize crashes; after any other failure mpirun wants it, or
 * takes the launcher's exit code 0 for a failure. */
static void check(
	const struct pmix_child *c, const struct pmix *p, const char *what, pmix_status_t status)
{
	char detail[128];

	if (status == PMIX_SUCCESS)
		return;
	(void)snprintf(detail, sizeof detail, "%s (%d)", p->error_string(status), status);
	if (c->answer->stage > PMIX_STAGE_INIT)
		(void)leave(p);
	fail(c, "%s: %s", what, detail);
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
static pmix_status_t wait_for_all(
	const struct pmix *p, const pmix_proc_t *all, uint64_t deadline_ns)
{
	pmix_info_t collect = { .value = { .type = PMIX_BOOL, .data.flag = true } };
	struct pollfd done = { .events = POLLIN };
	pmix_status_t status;
	int n;

	memcpy(collect.key, PMIX_COLLECT_DATA, sizeof PMIX_COLLECT_DATA);
	fence.event = eventfd(0, EFD_CLOEXEC);
	if (fence.event < 0)
		return PMIX_ERR_OUT_OF_RESOURCE;
	status = p->fence(all, 1, &collect, 1, on_fence, NULL);
	if (status == PMIX_OPERATION_SUCCEEDED)
		return PMIX_SUCCESS;
	if (status != PMIX_SUCCESS)
		return status;
	done.fd = fence.event;
	do {
		n = poll(&done, 1, remaining_ms(deadline_ns));
	} while (n < 0 && errno == EINTR);
	return n > 0 ? fence.status : PMIX_ERR_TIMEOUT;
}

static void put(const struct pmix_child *c, const struct pmix *p)
{
	pmix_value_t value = { .type = PMIX_BYTE_OBJECT };
	char *copy = malloc(c->len + 1);

	if (!copy)
		fail(c, "PMIx_Put: out of memory");
	memcpy(copy, c->mine, c->len);
	value.data.bo.bytes = copy;
	value.data.bo.size = c->len;
	check(c, p, "PMIx_Put", p->put(PMIX_GLOBAL, KEY, &value));
	free(copy);
	check(c, p, "PMIx_Commit", p->commit());
}

static void get(const struct pmix_child *c, const struct pmix *p, pmix_proc_t *of)
{
	pmix_value_t *value = NULL;

	of->rank = 0;
	check(c, p, "PMIx_Get", p->get(of, KEY, NULL, 0, &value));
	if (!value || value->type != PMIX_BYTE_OBJECT || value->data.bo.size > PMIX_BYTES_MAX)
		check(c, p, "PMIx_Get", PMIX_ERR_TYPE_MISMATCH);
	memcpy(c->answer->bytes, value->data.bo.bytes, value->data.bo.size);
	c->answer->len = (uint32_t)value->data.bo.size;
}

static void get_size(const struct pmix_child *c, const struct pmix *p, const pmix_proc_t *all)
{
	pmix_value_t *value = NULL;

	if (p->get(all, PMIX_JOB_SIZE, NULL, 0, &value) == PMIX_SUCCESS && value &&
		value->type == PMIX_UINT32)
		c->answer->size = value->data.uint32;
}

void pmix_child_main(const struct pmix_child *c)
{
	uint64_t deadline_ns = uv_hrtime() + c->timeout_ms * UINT64_C(1000000);
	pmix_status_t status;
	pmix_proc_t me, all;
	struct pmix p;

	be_born(c);
	enter(c, PMIX_STAGE_LOAD);
	load(c, &p);
	enter(c, PMIX_STAGE_INIT);
	check(c, &p, "PMIx_Init", p.init(&me, NULL, 0));
	enter(c, PMIX_STAGE_PUT);
	c->answer->rank = me.rank;
	all = me;
	all.rank = PMIX_RANK_WILDCARD;
	get_size(c, &p, &all);
	put(c, &p);
	enter(c, PMIX_STAGE_FENCE);
	status = wait_for_all(&p, &all, deadline_ns);
	c->answer->timed_out = status == PMIX_ERR_TIMEOUT;
	check(c, &p, "PMIx_Fence", status);
	enter(c, PMIX_STAGE_GET);
	get(c, &p, &me);
	/* Where libraries of PMIx 4 and 5 meet, a fence does not always bring the data along: then
	 * rank 0 is asked, who must not have left (3 of 8 jobs hung in PMIx_Get without this). If
	 * somebody could not get it that is his to tell. */
	enter(c, PMIX_STAGE_LEAVE);
	(void)wait_for_all(&p, &all, deadline_ns);
	enter(c, PMIX_STAGE_FINALIZE);
	status = leave(&p);
	if (status != PMIX_SUCCESS)
		fail(c, "PMIx_Finalize: %s", p.error_string(status));
	enter(c, PMIX_STAGE_DONE);
	_exit(0);
}
