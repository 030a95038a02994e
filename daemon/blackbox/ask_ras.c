/* ask_ras.c - see ask_ras.h */
#include "daemon/blackbox/ask_ras.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/monotonic.h"
#include "common/text.h"
#include "daemon/blackbox/answer_file.h"
#include "daemon/blackbox/gpus_here.h"
#include "daemon/blackbox/ras_talk.h"
#include "daemon/blackbox/source.h"
#include "daemon/check/task.h"
#include "daemon/os/procfs.h"

enum {
	ASK_MS = 4000, /* less than the task's limit, so that what has come is kept */
	RAS_MAX = 1 << 20,
};

/* NCCL itself is told to wait less than we do for processes that don't answer. */
static const char question[] = "TIMEOUT 3\nVERBOSE STATUS\n";

static int wait_for(int fd, short what, int64_t until_ms)
{
	struct pollfd p = { fd, what, 0 };
	int n = poll(&p, 1, monotonic_left_ms(until_ms));

	return n < 0 ? -errno : n == 0 ? -ETIMEDOUT : 0;
}

static int connect_one(const struct addrinfo *at, int64_t until_ms)
{
	autoclose fd = socket(
		at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
	int error = 0, rc;
	socklen_t len = sizeof error;

	if (fd < 0)
		return -errno;
	if (connect(fd, at->ai_addr, at->ai_addrlen) < 0) {
		if (errno != EINPROGRESS)
			return -errno;
		rc = wait_for(fd, POLLOUT, until_ms);
		if (rc < 0)
			return rc;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
			return -errno;
	}
	return error ? -error : fd_take(&fd);
}

static int connect_any(const char *host, const char *port, int64_t until_ms)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *all;
	int fd = -EHOSTUNREACH;

	if (getaddrinfo(host, port, &hints, &all) != 0)
		return -EHOSTUNREACH;
	for (const struct addrinfo *at = all; at && fd < 0; at = at->ai_next)
		fd = connect_one(at, until_ms);
	freeaddrinfo(all);
	return fd;
}

/* Until it ends the connection. -ETIMEDOUT, -EMSGSIZE, an error of read(2): what had come is
 * there. */
static int hear(int fd, int64_t until_ms, struct text *answer)
{
	char bytes[16384];

	while (answer->len < RAS_MAX) {
		ssize_t n = read(fd, bytes, sizeof bytes);

		if (n == 0)
			return 0;
		if (n > 0) {
			text_add_bytes(answer, bytes, (size_t)n);
		} else if (errno == EAGAIN) {
			int rc = wait_for(fd, POLLIN, until_ms);

			if (rc < 0 && rc != -EINTR)
				return rc;
		} else if (errno != EINTR) {
			return -errno;
		}
		if (monotonic_left_ms(until_ms) == 0)
			return -ETIMEDOUT;
	}
	return -EMSGSIZE;
}

static int talk(const char *address, struct text *answer)
{
	int64_t until_ms = monotonic_ms() + ASK_MS;
	char host[128], port[16];

	if (!ras_talk_address(address, host, sizeof host, port, sizeof port))
		return -EINVAL;
	autoclose fd = connect_any(host, port, until_ms);

	if (fd < 0)
		return fd == -ETIMEDOUT ? -EHOSTUNREACH : fd;
	if (write(fd, question, sizeof question - 1) != (ssize_t)sizeof question - 1)
		return -EIO;
	return hear(fd, until_ms, answer);
}

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
		if (gpus_here())
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
	char address[64] = RAS_ADDRESS, word[8];
	int rc;

	/* all workers of a node have the same, by whomever it was set */
	for (size_t i = 0; i < in->count; i++) {
		if (process_variable(in->workers[i].pid, "NCCL_RAS_ENABLE", word, sizeof word) &&
			strcmp(word, "0") == 0)
			return;
		if (process_variable(in->workers[i].pid, "NCCL_RAS_ADDR", address, sizeof address))
			break;
	}
	task_step(a, "NCCL RAS at %.40s", address);
	rc = talk(address, &answer);
	if (answer.len > 0)
		(void)answer_file_write(in, "nccl-ras.txt", &answer);
	say(address, rc, &answer, a);
	text_done(&answer);
}
