/* writer.c - writes random lines of known value to stdout and stderr, and dies at a random place.
 *
 * Each stream's bytes follow from SEED, KINDS and LINES and from its rank and number alone, however
 * they are cut and mixed; `writer RANK FD` prints one. KINDS is a text of letters, one of which
 * each line takes: s short, e empty, b a bar with \r, u UTF-8 of 2 to 4 bytes, x any byte, l beyond
 * 64 KB, m megabytes. All but the empty ones end with their name " {rank.fd#line}"; the last of a
 * stream may have no newline.
 *
 * END: "exit:N" when all is written; "cut:N" and "kill" at a random byte, by exit and by SIGKILL to
 * itself; "helper:N" by exit, while a child keeps both streams open. COUNTS: a directory; RANK in
 * it holds per stream, as two 64-bit numbers, how many bytes were written and, at most, may have
 * been: they differ where somebody else killed it. Each variable also as NAME_<rank>. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>

#include "worker.h"

enum { LONGEST = 3 << 20, CHUNK_MAX = 64 << 10 };

struct stream {
	uint64_t random;
	const char *kinds;
	long rank, lines, made; /* made: lines so far */
	int fd;
	size_t len, at; /* of the line; what of it is taken */
	char line[LONGEST];
};

struct count {
	volatile int64_t written, at_most;
};

/* splitmix64 */
static uint64_t next(uint64_t *random)
{
	uint64_t x = *random += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static uint64_t from_to(uint64_t *random, uint64_t least, uint64_t most)
{
	return least + next(random) % (most - least + 1);
}

/* As often below 10 as from 10 to 99, and so on. */
static size_t any_size(uint64_t *random, size_t most)
{
	uint64_t top = from_to(random, 1, 63 - (unsigned)__builtin_clzll(most));

	return from_to(random, 1, 1ull << top);
}

static void put_ascii(struct stream *s, size_t count)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	uint64_t bits = 0;

	for (size_t i = 0; i < count; i++, bits >>= 6) {
		if (i % 10 == 0)
			bits = next(&s->random);
		s->line[s->len++] = letters[bits % (sizeof letters - 1)];
	}
}

static void put_bar(struct stream *s)
{
	for (uint64_t states = from_to(&s->random, 1, 30); states > 0; states--) {
		s->line[s->len++] = '\r';
		put_ascii(s, from_to(&s->random, 0, 60));
		if (from_to(&s->random, 0, 3) == 0)
			s->line[s->len++] = '\r';
	}
}

static void put_utf8(struct stream *s)
{
	static const char *const letters[] = { "é", "ß", "€", "語", "𝄞", "🙂" };

	for (uint64_t count = from_to(&s->random, 1, 80); count > 0; count--) {
		const char *letter = letters[from_to(&s->random, 0, 5)];

		memcpy(s->line + s->len, letter, strlen(letter));
		s->len += strlen(letter);
	}
}

static void put_any(struct stream *s)
{
	for (uint64_t count = from_to(&s->random, 0, 200); count > 0; count--) {
		char byte = (char)next(&s->random);

		s->line[s->len++] = byte == '\n' || byte == '\r' ? '\0' : byte;
	}
}

/* Makes the next line; false: there is none. */
static int make_line(struct stream *s)
{
	char kind;

	if (s->made == s->lines)
		return 0;
	s->made++;
	s->len = s->at = 0;
	kind = s->kinds[from_to(&s->random, 0, strlen(s->kinds) - 1)];
	switch (kind) {
	case 'e':
		break;
	case 'b':
		put_bar(s);
		break;
	case 'u':
		put_utf8(s);
		break;
	case 'x':
		put_any(s);
		break;
	case 'l':
		put_ascii(s, from_to(&s->random, 60 << 10, 300 << 10));
		break;
	case 'm':
		put_ascii(s, from_to(&s->random, 1 << 20, LONGEST - 100));
		break;
	default:
		put_ascii(s, from_to(&s->random, 0, 120));
	}
	if (kind != 'e')
		s->len += (size_t)sprintf(
			s->line + s->len, " {%ld.%d#%ld}", s->rank, s->fd, s->made - 1);
	if (s->made < s->lines || from_to(&s->random, 0, 2) > 0)
		s->line[s->len++] = '\n';
	return 1;
}

/* Sets *ret to what comes next, at most `most` bytes of it; 0: nothing does. */
static size_t take(struct stream *s, size_t most, const char **ret)
{
	size_t left;

	while (s->at == s->len)
		if (!make_line(s))
			return 0;
	*ret = s->line + s->at;
	left = s->len - s->at;
	left = left < most ? left : most;
	s->at += left;
	return left;
}

static struct stream *open_stream(long rank, int fd)
{
	struct stream *s = calloc(1, sizeof *s);

	if (!s)
		exit(99);
	s->random = strtoull(mine("SEED", "1"), NULL, 0) + (uint64_t)rank * 1000003 +
		(uint64_t)fd * 7919;
	(void)next(&s->random); /* neighbours do not share what they begin with */
	s->random = next(&s->random);
	s->kinds = mine("KINDS", "s");
	s->lines = atol(mine("LINES", "100"));
	s->rank = rank;
	s->fd = fd;
	return s;
}

static int64_t size_of(long rank, int fd)
{
	struct stream *s = open_stream(rank, fd);
	const char *bytes;
	int64_t size = 0;
	size_t got;

	while ((got = take(s, SIZE_MAX, &bytes)) > 0)
		size += (int64_t)got;
	free(s);
	return size;
}

static void write_all(int fd, const char *bytes, size_t len, struct count *count)
{
	count->at_most += (int64_t)len;
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			_exit(98);
		count->written += n;
		bytes += n;
		len -= (size_t)n;
	}
}

static int print(long rank, int fd)
{
	struct stream *s = open_stream(rank, fd);
	struct count count = { 0, 0 };
	const char *bytes;
	size_t got;

	while ((got = take(s, SIZE_MAX, &bytes)) > 0)
		write_all(STDOUT_FILENO, bytes, got, &count);
	free(s);
	return 0;
}

static struct count *map_counts(long rank)
{
	static struct count unasked[2];
	const char *directory = getenv("COUNTS");
	char path[4096];
	void *at;
	int fd;

	if (!directory)
		return unasked;
	(void)snprintf(path, sizeof path, "%s/%ld", directory, rank);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof unasked) != 0)
		exit(99);
	at = mmap(NULL, sizeof unasked, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		exit(99);
	(void)close(fd);
	return at;
}

/* Writes both streams, at most `most` bytes, in pieces that the seed has nothing to say of. */
static void write_both(long rank, int64_t most, struct count *counts)
{
	struct stream *streams[2] = { open_stream(rank, 1), open_stream(rank, 2) };
	uint64_t random = streams[0]->random ^ 0x5eed;
	int open = 3;

	while (most > 0 && open) {
		size_t i = from_to(&random, 0, 1), size = any_size(&random, CHUNK_MAX);
		const char *bytes = NULL;

		size = take(streams[i], size < (size_t)most ? size : (size_t)most, &bytes);
		if (size == 0)
			open &= ~(1 << i);
		write_all(streams[i]->fd, bytes, size, &counts[i]);
		most -= (int64_t)size;
	}
	free(streams[0]);
	free(streams[1]);
}

/* A child that keeps what we have, until somebody ends it. */
static void leave_helper(void)
{
	pid_t pid = fork();

	if (pid < 0)
		exit(99);
	if (pid > 0)
		return;
	(void)alarm(120);
	for (;;)
		(void)pause();
}

int main(int argc, char **argv)
{
	const char *rank_text = getenv("RANK"), *end = mine("END", "exit:0"), *code;
	long rank = rank_text ? atol(rank_text) : 0;
	int64_t most;
	uint64_t random;

	if (argc == 3) {
		(void)setenv("RANK", argv[1], 1);
		return print(atol(argv[1]), atoi(argv[2]));
	}
	(void)alarm(300);
	if (strcmp(mine("ON_TERM", ""), "ignore") == 0)
		(void)signal(SIGTERM, SIG_IGN);
	most = size_of(rank, 1) + size_of(rank, 2);
	if (strncmp(end, "kill", 4) == 0 || strncmp(end, "cut", 3) == 0) {
		random = strtoull(mine("SEED", "1"), NULL, 0) * 31 + (uint64_t)rank;
		most = (int64_t)from_to(&random, 0, (uint64_t)most);
	}
	tell("ready");
	wait_for_go();
	write_both(rank, most, map_counts(rank));
	tell("written");
	if (strcmp(end, "kill") == 0)
		(void)raise(SIGKILL);
	if (strncmp(end, "helper", 6) == 0)
		leave_helper();
	code = strchr(end, ':');
	return code ? atoi(code + 1) : 0;
}
