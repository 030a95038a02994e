/* member.c - a worker that meets the others in shared memory: member FILE COUNT ACT
 *
 * FILE is a row of 64-bit words: how many are there, whether all are, when the culprit died, and
 * for each rank when SIGTERM came (CLOCK_MONOTONIC in ns). Once all COUNT are there, meet     each
 * ends with 0; stay     each waits for SIGTERM, notes its time and ends with 0; RANK     this one
 * notes the time and dies with 3, the others stay. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct meeting {
	_Atomic uint64_t there;
	_Atomic uint32_t all, unused; /* all: the futex */
	uint64_t died_ns;
	uint64_t term_ns[];
};

/* Long enough that everything sleeps again after the start. */
static const struct timespec settle = { .tv_nsec = 20000000 };

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct meeting *map(const char *path, size_t count)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *at;

	if (fd < 0)
		return NULL;
	at = mmap(NULL, sizeof(struct meeting) + count * sizeof(uint64_t), PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, 0);
	(void)close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static void arrive(struct meeting *m, uint64_t count)
{
	if (atomic_fetch_add(&m->there, 1) + 1 == count) {
		atomic_store(&m->all, 1);
		(void)syscall(SYS_futex, &m->all, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
}

static void wait_for_all(struct meeting *m)
{
	while (!atomic_load(&m->all))
		(void)syscall(SYS_futex, &m->all, FUTEX_WAIT, 0, NULL, NULL, 0);
}

int main(int argc, char **argv)
{
	const char *rank_text = getenv("RANK") ? getenv("RANK") : getenv("OMPI_COMM_WORLD_RANK");
	unsigned long count = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long rank = rank_text ? strtoul(rank_text, NULL, 10) : ULONG_MAX;
	struct meeting *m = rank < count ? map(argv[1], count) : NULL;
	sigset_t term;

	if (!m)
		return 99;
	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &term, NULL);
	arrive(m, count);
	if (strcmp(argv[3], "meet") == 0) {
		wait_for_all(m);
		return 0;
	}
	if (strcmp(argv[3], "stay") != 0 && strtoul(argv[3], NULL, 10) == rank) {
		wait_for_all(m);
		(void)nanosleep(&settle, NULL);
		m->died_ns = now_ns();
		_exit(3);
	}
	while (sigwaitinfo(&term, NULL) < 0)
		if (errno != EINTR)
			return 99;
	m->term_ns[rank] = now_ns();
	return 0;
}
