/* host_lookup.c - see host_lookup.h */
#include "daemon/facts/host_lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/address.h"
#include "common/arena.h"
#include "common/failure.h"
#include "common/fd.h"
#include "common/monotonic.h"
#include "config/hosts.h"

/* What the child writes, whole: it is shorter than PIPE_BUF. */
struct answer {
	enum { IS_OWN, IS_UNKNOWN, IS_ALL } kind;
	int error;    /* IS_UNKNOWN: getaddrinfo(3)'s */
	size_t index; /* but for IS_ALL, the last one */
};

/* --- in the child --- */

struct asking {
	const struct hosts *hosts;
	const struct vec *addresses;
	bool *wanted; /* what is still to be asked; the child's own copy of the memory */
	int answers;  /* where they are written */
	int error;    /* of the first name that has no answer for the moment; 0: none so far */
	size_t index; /* of that name */
};

static void tell(const struct asking *a, struct answer answer)
{
	if (fd_write_all(a->answers, (const char *)&answer, sizeof answer) < 0)
		_exit(1); /* the parent has gone */
}

static void ask(struct asking *a, size_t i)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	int rc = getaddrinfo(a->hosts->at[i].name, NULL, &hints, &list);

	if (rc == EAI_AGAIN) {
		a->error = rc;
		a->index = i;
		return;
	}
	a->wanted[i] = false;
	if (rc != 0) {
		tell(a, (struct answer){ IS_UNKNOWN, rc, i });
		return;
	}
	for (const struct addrinfo *one = list; one; one = one->ai_next) {
		const struct address address = address_of(one->ai_addr);

		if (!own_host_has(a->addresses, &address))
			continue;
		tell(a, (struct answer){ IS_OWN, 0, i });
		break;
	}
	freeaddrinfo(list);
}

static _Noreturn void ask_all(struct asking *a, pid_t parent)
{
	const struct timespec pause = { .tv_sec = 1 };
	bool told = false;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	do {
		a->error = 0;
		for (size_t i = 0; i < a->hosts->count; i++)
			if (a->wanted[i])
				ask(a, i);
		if (a->error && !told)
			tell(a, (struct answer){ IS_UNKNOWN, a->error, a->index });
		told = told || a->error;
	} while (a->error && nanosleep(&pause, NULL) == 0);
	tell(a, (struct answer){ IS_ALL, 0, 0 });
	_exit(0);
}

/* --- in the parent --- */

/* The next answer. False: there is none, or not in time. */
static bool next(int fd, int64_t deadline_ms, struct answer *ret)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n = -1;

	while (n < 0) {
		int left = monotonic_left_ms(deadline_ms);
		int ready = left > 0 ? poll(&p, 1, left) : 0;

		if (ready == 0 || (ready < 0 && errno != EINTR))
			return false;
		if (ready > 0)
			n = read(fd, ret, sizeof *ret);
		if (n < 0 && ready > 0 && errno != EINTR)
			return false;
	}
	return n == (ssize_t)sizeof *ret;
}

static void hear(int fd, int64_t deadline_ms, const struct hosts *hosts, struct arena *arena,
	struct host_answers *ret)
{
	struct answer a;

	while (!ret->is_final && next(fd, deadline_ms, &a)) {
		if (a.kind == IS_OWN)
			own_host_add(&ret->own, a.index);
		if (a.kind == IS_UNKNOWN && !ret->unknown)
			ret->unknown = arena_printf(
				arena, "%s: %s", hosts->at[a.index].name, gai_strerror(a.error));
		ret->is_final = a.kind == IS_ALL;
	}
}

int host_lookup(const struct hosts *hosts, const bool *wanted, const struct vec *addresses,
	uint64_t limit_ms, struct arena *arena, struct host_answers *ret, struct failure *why)
{
	int64_t deadline_ms = monotonic_ms() + (int64_t)limit_ms;
	bool *left = arena_alloc(arena, hosts->count * sizeof *left);
	struct host_answers answers = { .own.certain = true };
	pid_t parent = getpid(), child;
	int pipe_fds[2];

	if (!left)
		return failure_oom(why);
	memcpy(left, wanted, hosts->count * sizeof *left);
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return failure_set(why, -errno, "cannot make a pipe: %s", strerror(errno));
	child = fork();
	if (child == 0) {
		struct asking a = { hosts, addresses, left, pipe_fds[1], 0, 0 };

		(void)close(pipe_fds[0]);
		ask_all(&a, parent);
	}
	if (child < 0)
		(void)failure_not_started(why, -errno, "a process that looks up names");
	fd_closep(&pipe_fds[1]);
	if (child > 0) {
		hear(pipe_fds[0], deadline_ms, hosts, arena, &answers);
		(void)kill(child, SIGKILL);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		*ret = answers;
	}
	fd_closep(&pipe_fds[0]);
	return child < 0 ? why->code : arena_failed(arena) ? failure_oom(why) : 0;
}
