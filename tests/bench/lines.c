/* lines.c - a worker that prints: lines BYTES CHUNK writes lines of 93 bytes, BYTES in all, to its
 * stdout, CHUNK bytes at a time (the last of them less); line ends fall where they fall, as they do
 * for a program with buffers of that size. CHUNK 0: each line by itself, as unbuffered Python does.
 * Its pid and what it has had of a CPU, in ns, are appended to the file $LINES_USAGE, one line a
 * worker: what else a run has used is its launcher's. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LINE_BYTES = 93, CHUNK_MAX = 1 << 20 };

static char text[CHUNK_MAX + LINE_BYTES]; /* any chunk of the output is somewhere in it */

static void fill(void)
{
	static const char line[LINE_BYTES + 1] = "step 001234: loss 2.345678, grad norm 0.987654, "
						 "lr 3.0000e-04, 12345 tokens/s, 456.7 TFLOP/s\n";

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = line[i % LINE_BYTES];
}

static int write_whole(int fd, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno != EINTR)
			return -1;
		bytes += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int tell_usage(const char *path)
{
	struct rusage used;
	char said[48];
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600), size;
	int64_t us;

	if (fd < 0 || getrusage(RUSAGE_SELF, &used) < 0)
		return -1;
	us = ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
		used.ru_utime.tv_usec + used.ru_stime.tv_usec;
	size = snprintf(said, sizeof said, "%d %" PRId64 "\n", (int)getpid(), us * 1000);
	return write(fd, said, (size_t)size) == size ? close(fd) : -1;
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? strtoul(argv[1], NULL, 10) : 0, done = 0;
	size_t chunk = argc == 3 ? strtoul(argv[2], NULL, 10) : CHUNK_MAX + 1;
	const char *usage = getenv("LINES_USAGE");

	if (chunk > CHUNK_MAX) {
		(void)fprintf(
			stderr, "usage: lines BYTES CHUNK (at most %d, 0: a line)\n", CHUNK_MAX);
		return 2;
	}
	chunk = chunk > 0 ? chunk : LINE_BYTES;
	fill();
	while (done < bytes) {
		size_t size = bytes - done < chunk ? bytes - done : chunk;

		if (write_whole(STDOUT_FILENO, text + done % LINE_BYTES, size) < 0) {
			(void)fprintf(stderr, "lines: write: %s\n", strerror(errno));
			return 1;
		}
		done += size;
	}
	if (usage && tell_usage(usage) < 0) {
		(void)fprintf(stderr, "lines: %s: %s\n", usage, strerror(errno));
		return 1;
	}
	return 0;
}
