/* part.c - see part.h
 *
 * The child's order is its option --part: "kind limit_ms number group rank ranks fd". It answers on
 * that descriptor in lines: "- what it does next", for who kills it there, and at last a sighting.
 */
#include "daemon/nodecheck/part.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/fd.h"
#include "common/monotonic.h"
#include "common/text.h"
#include "daemon/nodecheck/gpu_ops.h"
#include "daemon/nodecheck/gpu_probe.h"
#include "daemon/nodecheck/reduce_probe.h"
#include "daemon/os/kernel.h"
#include "daemon/store/visit.h"

enum { STORE_LIMIT_MS = 10000, ARGUMENTS_MAX = 64, UNKILLABLE_MS = 2000 };

/* --- the parent --- */

/* Of the child, between fork and exec; parent: our pid. */
static _Noreturn void exec_part(char *const *argv, enum step_kind kind, pid_t parent, int answer)
{
	/* only network cards are left: NVLink's switches and its links between nodes go as well */
	static const char *const nics[][2] = { { "NCCL_P2P_DISABLE", "1" },
		{ "NCCL_SHM_DISABLE", "1" }, { "NCCL_NVLS_ENABLE", "0" },
		{ "NCCL_MNNVL_ENABLE", "0" } };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ||
		fcntl(answer, F_SETFD, 0) < 0)
		_exit(127);
	/* NCCL writes its log to stdout, which is for the verdict */
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		_exit(127);
	for (size_t i = 0; kind == STEP_NICS && i < sizeof nics / sizeof *nics; i++)
		if (setenv(nics[i][0], nics[i][1], 1) < 0)
			_exit(127);
	(void)execv("/proc/self/exe", argv);
	_exit(127);
}

static pid_t start_part(
	char *const *argv, const struct step_part *p, unsigned number, int *ret_answer)
{
	char order[128], *words[ARGUMENTS_MAX + 3], option[] = "--part";
	int fds[2];
	pid_t self = getpid(), pid;
	size_t count = 0;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	(void)snprintf(order, sizeof order, "%u %llu %u %u %u %u %d", (unsigned)p->kind,
		(unsigned long long)p->limit_ms, number, p->group, p->rank, p->ranks, fds[1]);
	while (argv[count] && count < ARGUMENTS_MAX) {
		words[count] = argv[count];
		count++;
	}
	words[count++] = option;
	words[count++] = order;
	words[count] = NULL;
	pid = fork();
	if (pid == 0)
		exec_part(words, p->kind, self, fds[1]);
	(void)close(fds[1]);
	if (pid < 0)
		(void)close(fds[0]);
	else
		*ret_answer = fds[0];
	return pid;
}

/* Reads until the child has closed its end, or the time is over. */
static bool read_answer(int answer, int64_t until_ms, struct text *said)
{
	for (;;) {
		struct pollfd p = { .fd = answer, .events = POLLIN };
		int left = monotonic_left_ms(until_ms);
		char bytes[1024];
		ssize_t got;
		int rc = left > 0 ? poll(&p, 1, left) : 0;

		if (rc == 0)
			return false;
		if (rc < 0 && errno == EINTR)
			continue;
		got = rc < 0 ? -1 : read(answer, bytes, sizeof bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return true;
		text_add_bytes(said, bytes, (size_t)got);
	}
}

/* Ends it. A process that a driver holds in the kernel can't be killed: it is left behind, and dies
 * when it may. Returns false then. */
static bool end_part(pid_t pid, int *ret_status)
{
	struct pollfd gone = { .fd = kernel_pidfd_open(pid), .events = POLLIN };
	int64_t until_ms = monotonic_ms() + UNKILLABLE_MS;
	int rc = 1;

	(void)kill(pid, SIGKILL);
	while (gone.fd >= 0) { /* an old kernel has none, and we trust it to kill */
		rc = poll(&gone, 1, monotonic_left_ms(until_ms));
		if (rc >= 0 || errno != EINTR)
			break;
	}
	fd_closep(&gone.fd);
	return rc > 0 && waitpid(pid, ret_status, 0) == pid;
}

/* The last line that is a sighting; and what it did last. */
static bool find_sighting(struct text *said, struct gpu_sight *ret, const char **ret_doing)
{
	char *rest = said->at, *line;
	bool found = false;

	*ret_doing = "starting";
	while (rest && (line = strsep(&rest, "\n")))
		if (strncmp(line, "- ", 2) == 0)
			*ret_doing = line + 2;
		else if (*line)
			found = sighting_read(line, ret) == 0;
	return found;
}

static void explain_end(struct gpu_sight *s, bool in_time, bool ended, int status,
	const char *doing, uint64_t limit_ms)
{
	if (!in_time) {
		s->what = SIGHT_HUNG;
		(void)snprintf(s->text, sizeof s->text, "%llu s were over while %s%s",
			(unsigned long long)(limit_ms / 1000), doing,
			ended ? "" : ", and its process can't be killed");
	} else if (ended && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
		s->what = SIGHT_FAILED;
		(void)snprintf(s->text, sizeof s->text,
			"its process died of signal %d (%s) while %s", WTERMSIG(status),
			strsignal(WTERMSIG(status)), doing);
	} else {
		s->what = SIGHT_FAILED;
		(void)snprintf(s->text, sizeof s->text, "its process ended without a word while %s",
			doing);
	}
}

void part_run(char *const *argv, const struct step_part *p, unsigned number, struct gpu_sight *ret)
{
	int64_t until_ms = monotonic_ms() + (int64_t)p->limit_ms + PART_GRACE_MS;
	struct text said = { 0 };
	const char *doing;
	int answer, status = 0;
	bool in_time, ended;
	pid_t pid = start_part(argv, p, number, &answer);

	*ret = (struct gpu_sight){ 0 };
	if (pid < 0) {
		ret->what = SIGHT_FAILED;
		(void)snprintf(ret->text, sizeof ret->text, "its process can't be started: %s",
			strerror(errno));
		return;
	}
	in_time = read_answer(answer, until_ms, &said);
	(void)close(answer);
	ended = end_part(pid, &status);
	if (!find_sighting(&said, ret, &doing))
		explain_end(ret, in_time, ended, status, doing, p->limit_ms);
	text_done(&said);
}

/* --- the child --- */

static int answer_fd = -1;

static void say_line(const char *begin, const char *line)
{
	struct text t = { 0 };

	text_printf(&t, "%s%s\n", begin, line);
	(void)fd_write_all(answer_fd, text_string(&t), t.len);
	text_done(&t);
}

static void tell(const char *doing)
{
	say_line("- ", doing);
}

static void see(const struct gpu_sight *s)
{
	struct text line = { 0 };

	sighting_write(s, &line);
	say_line("", text_string(&line));
	text_done(&line);
}

static int read_order(const char *text, struct step_part *ret, unsigned *ret_number)
{
	unsigned kind;
	unsigned long long limit;

	if (sscanf(text, "%u %llu %u %u %u %u %d", &kind, &limit, ret_number, &ret->group,
		    &ret->rank, &ret->ranks, &answer_fd) != 7 ||
		kind >= STEP_KINDS)
		return -EINVAL;
	ret->kind = (enum step_kind)kind;
	ret->limit_ms = limit;
	return 0;
}

/* NCCL takes ranks of one host on one GPU for a mistake. */
static void stand_alone(const struct check_place *place)
{
	char id[64];

	(void)snprintf(id, sizeof id, "nodecheck-%u", place->rank);
	(void)setenv("NCCL_HOSTID", id, 1);
}

/* All that the child knows. */
struct part_child {
	const struct check_options *o;
	const struct check_place *place;
	const struct gpu_ops *gpu;
	const struct collective_ops *collective;
	struct step_part part;
	unsigned number;
	int64_t until_ms;
	struct gpu_about about;
	struct gpu_sight s;
};

/* "0": the launcher shows each worker its own GPU alone. */
static bool one_is_shown(void)
{
	const char *shown = getenv("CUDA_VISIBLE_DEVICES");

	return shown && !strchr(shown, ',');
}

/* Which GPU is this rank's: the one of its number, or the only one that it is shown. */
static int choose_gpu(
	struct part_child *c, unsigned *ret_device, unsigned *ret_sharing, struct failure *why)
{
	unsigned count = 0, local = c->place->local_rank;
	int rc;

	tell("asking the driver for its GPUs");
	rc = c->gpu->count(&count, why);
	*ret_sharing = 1;
	*ret_device = local < count ? local : 0;
	if (rc < 0)
		return rc;
	if (count == 0) {
		c->s.what = SIGHT_NO_GPU;
		(void)snprintf(
			c->s.text, sizeof c->s.text, "%.*s", (int)sizeof c->s.text - 1, why->text);
		return -EBADMSG;
	}
	if (c->o->share_gpu) {
		*ret_device = local % count;
		*ret_sharing = (c->place->local_ranks + count - 1) / count;
		return 0;
	}
	if (local < count || (count == 1 && one_is_shown()))
		return 0;
	return failure_set(why, -ENODEV,
		"there are %u GPUs for %u ranks: --share-gpu lets them share", count,
		c->place->local_ranks);
}

static int open_gpu(struct part_child *c, struct failure *why)
{
	unsigned device, sharing;
	int rc = choose_gpu(c, &device, &sharing, why);

	if (rc == 0) {
		tell("opening its GPU");
		rc = c->gpu->open(device, &c->about, why);
	}
	if (rc < 0)
		return rc;
	c->about.free_bytes /= sharing;
	(void)snprintf(c->s.gpu, sizeof c->s.gpu, "%s", c->about.name);
	(void)snprintf(c->s.bus, sizeof c->s.bus, "%s", c->about.bus);
	return 0;
}

/* With what came of opening the GPU: the others are told where there is none. */
static void reduce_with_group(struct part_child *c, int rc, struct failure *why)
{
	struct visit store = { .fd = -1 };
	char keys[160];
	struct reduce_group g = {
		.gpu = c->gpu,
		.collective = c->collective,
		.store = &store,
		.keys = keys,
		.rank = c->part.rank,
		.ranks = c->part.ranks,
		.bytes_max = c->o->message_bytes,
		.until_ms = c->until_ms,
		.tell = tell,
		.see = see,
	};

	(void)snprintf(keys, sizeof keys, "%s%u/%u/", c->o->keys, c->number, c->part.group);
	if (rc == 0)
		rc = c->collective->load(why);
	if (visit_open(&store, c->place->host, c->place->port, STORE_LIMIT_MS, why) < 0)
		rc = why->code;
	else if (rc == 0)
		reduce_probe(&g, &c->about, &c->s);
	else
		reduce_decline(&g);
	visit_close(&store);
	if (rc < 0 && rc != -EBADMSG)
		sighting_of_failure(&c->s, rc, why);
}

int part_main(const struct check_options *o, const struct check_place *place,
	const struct gpu_ops *gpu, const struct collective_ops *collective)
{
	struct part_child c = { .o = o, .place = place, .gpu = gpu, .collective = collective };
	struct failure why = { 0 };
	int rc = read_order(o->part, &c.part, &c.number);

	if (rc < 0)
		return 2;
	(void)prctl(PR_SET_NAME, "nodecheck-part"); /* else it is "exe", as it was executed */
	c.until_ms = monotonic_ms() + (int64_t)c.part.limit_ms;
	if (o->share_gpu)
		stand_alone(place);
	rc = open_gpu(&c, &why);
	if (c.part.kind != STEP_GPU)
		reduce_with_group(&c, rc, &why);
	else if (rc == 0)
		gpu_probe(gpu, &c.about, o->memory_percent, tell, &c.s);
	else if (rc != -EBADMSG)
		sighting_of_failure(&c.s, rc, &why);
	see(&c.s);
	_exit(0); /* no clean-up of a library whose GPU or peers may be gone */
}
