/* worker.h - what the test workers share: the FIFOs by which they meet the test.
 *
 * $TELL: a worker writes "RANK PID TEXT" lines to it. $GO or $GO_<rank>: it waits there for one
 * byte. The test holds both open for reading and writing, so that no open() waits. */
#ifndef LAUNCHD_TESTS_WORKERS_WORKER_H
#define LAUNCHD_TESTS_WORKERS_WORKER_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NAME_<rank>, else NAME, else `absent`. */
static inline const char *mine(const char *name, const char *absent)
{
	const char *rank = getenv("RANK"), *value;
	char full[128];

	(void)snprintf(full, sizeof full, "%s_%s", name, rank ? rank : "");
	value = getenv(full);
	value = value ? value : getenv(name);
	return value ? value : absent;
}

static inline void tell(const char *text)
{
	const char *rank = getenv("RANK"), *path = getenv("TELL");
	char line[256];
	int len, fd;

	if (!path)
		return;
	len = snprintf(line, sizeof line, "%s %d %s\n", rank ? rank : "-", (int)getpid(), text);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	/* below PIPE_BUF: lines of several workers do not mix */
	if (fd < 0 || write(fd, line, (size_t)len) != len)
		exit(99);
	(void)close(fd);
}

static inline void wait_for_go(void)
{
	const char *path = mine("GO", NULL);
	char byte;
	int fd;

	if (!path)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &byte, 1) != 1)
		exit(99);
	(void)close(fd);
}

#endif
