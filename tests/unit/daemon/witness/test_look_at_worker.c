/* test_look_at_worker.c - see look_at_worker.h: children of ours, looked at. */
#include "daemon/witness/look_at_worker.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/monotonic.h"
#include "tests/unit/unit.h"

enum { BIG = 24 << 20, LITTLE = 512 << 10, PAGE = 4096, BUSY_ENOUGH_MS = 80 };

static void pause_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* A file of BIG bytes that has no name any more. */
static int make_file(void)
{
	char name[] = "/tmp/look-XXXXXX";
	static char zeros[1 << 20];
	int fd = mkstemp(name);

	assert_true(fd >= 0 && unlink(name) == 0);
	for (size_t done = 0; done < BIG; done += sizeof zeros)
		assert_int_equal(write(fd, zeros, sizeof zeros), sizeof zeros);
	return fd;
}

static void touch(volatile char *at, bool writes)
{
	for (size_t i = 0; i < BIG; i += PAGE)
		if (writes)
			at[i] = 1;
		else
			(void)at[i];
}

/* What the child does. */
static void spin(int fd)
{
	const char *code = mmap(NULL, BIG, PROT_READ, MAP_PRIVATE, fd, 0);

	if (code != MAP_FAILED)
		touch((volatile char *)code, false);
	for (volatile unsigned turns = 0;; turns++)
		;
}

static void compute(int fd)
{
	char *own = malloc(BIG);

	(void)fd;
	while (own)
		touch(own, true);
}

static void compute_on_file(int fd)
{
	const char *data = mmap(NULL, BIG, PROT_READ, MAP_SHARED, fd, 0);

	while (data != MAP_FAILED)
		touch((volatile char *)data, false);
}

static const struct row {
	const char *says;
	void (*does)(int fd);
	int64_t least, most;
} rows[] = {
	{ "a loop that others' use of its code does not count for", spin, 0, LITTLE },
	{ "it computes", compute, BIG, INT64_MAX },
	{ "it computes on a file that it shares", compute_on_file, BIG, INT64_MAX },
};

static pid_t start(const struct row *row, int fd)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		row->does(fd);
		_exit(1);
	}
	assert_true(pid > 0);
	return pid;
}

/* As others that run the same code: the kernel marks pages as used that are read twice. */
static void read_twice(int fd)
{
	static char room[1 << 20];

	for (int i = 0; i < 2; i++)
		for (off_t at = 0; at < BIG; at += (off_t)sizeof room)
			assert_int_equal(pread(fd, room, sizeof room, at), sizeof room);
}

static void test_touched(void **state)
{
	const struct row *row = *state;
	int fd;
	struct worker_sample s = { .working_set = WORKING_SET_UNKNOWN };
	struct looked w = { .rank = 3 };
	uint64_t before_ms;

	needs(access("/proc/self/clear_refs", W_OK) == 0, "needs /proc/PID/clear_refs");
	fd = make_file();
	w.pid = start(row, fd);

	look_at_worker(&w, (uint64_t)monotonic_ms(), MEMORY_WATCHED, &s);
	before_ms = s.main_cpu_ms;
	assert_true(s.working_set == WORKING_SET_UNKNOWN);
	for (int i = 0; i < 20 && s.main_cpu_ms < before_ms + BUSY_ENOUGH_MS; i++) {
		pause_ms(500 * (i + 1)); /* longer on a busy machine */
		read_twice(fd);
		before_ms = s.main_cpu_ms;
		look_at_worker(&w, (uint64_t)monotonic_ms(), MEMORY_WATCHED, &s);
	}
	assert_int_equal(s.rank, 3);
	assert_true(s.main_cpu_ms > 0);
	assert_true(s.working_set >= row->least && s.working_set <= row->most);
	assert_int_equal(kill(w.pid, SIGKILL), 0);
	assert_int_equal(waitpid(w.pid, NULL, 0), w.pid);
	(void)close(fd);
}

/* A thread and a child that has ended do much, and the main thread waits. */
static void *work_beside(void *unused)
{
	pid_t pid;

	(void)unused;
	for (;;) {
		int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
		char text[512];

		while (read(fd, text, sizeof text) > 0)
			;
		(void)close(fd);
		pid = fork();
		if (pid == 0) {
			for (volatile unsigned turns = 0; turns < 20000000; turns++)
				;
			_exit(0);
		}
		(void)waitpid(pid, NULL, 0);
	}
	return NULL;
}

static void test_main_thread(void **state)
{
	struct looked w = { .rank = 1 };
	struct worker_sample first, s;
	pthread_t thread;

	(void)state;
	w.pid = fork();
	if (w.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)pthread_create(&thread, NULL, work_beside, NULL);
		(void)pthread_join(thread, NULL);
		_exit(1);
	}
	for (int i = 0; i < 100; i++) { /* until it has begun */
		pause_ms(50);
		look_at_worker(&w, (uint64_t)monotonic_ms(), MEMORY_LEFT, &first);
		if (first.kid_cpu_ms > 0 && first.read_bytes > 0)
			break;
	}
	s = first;
	for (int i = 0; i < 100 && (s.kid_cpu_ms < first.kid_cpu_ms + 50 || s.kids == 0); i++) {
		pause_ms(50);
		look_at_worker(&w, (uint64_t)monotonic_ms(), MEMORY_LEFT, &s);
	}
	assert_true(s.kid_cpu_ms >= first.kid_cpu_ms + 50);
	assert_true(s.rest_cpu_ms >= s.kid_cpu_ms);
	assert_true(s.read_bytes > first.read_bytes && s.reads > first.reads);
	assert_true(s.main_cpu_ms == first.main_cpu_ms);
	assert_true(s.main_bytes == first.main_bytes && s.main_faults == first.main_faults);
	assert_int_equal(s.waits, WAIT_FUTEX);
	assert_int_equal(kill(w.pid, SIGKILL), 0);
	assert_int_equal(waitpid(w.pid, NULL, 0), w.pid);
}

/* A file that the kernel doesn't have in its memory. */
static const char *map_cold(int fd)
{
	const char *data = mmap(NULL, BIG, PROT_READ, MAP_SHARED, fd, 0);
	static unsigned char in_memory[BIG / PAGE];

	assert_true(data != MAP_FAILED);
	(void)fsync(fd);
	(void)posix_fadvise(fd, 0, BIG, POSIX_FADV_DONTNEED);
	assert_int_equal(mincore((void *)(uintptr_t)data, BIG, in_memory), 0);
	needs(!(in_memory[0] & 1), "needs a file system on a disk");
	return data;
}

/* What it reads from a disk through its memory, by no call. */
static void look_at_mapped(bool by_child)
{
	struct looked w = { .rank = 1 };
	struct worker_sample first, s;
	int begins[2], fd = make_file();
	const char *data = map_cold(fd);
	char byte;

	assert_int_equal(pipe(begins), 0);
	w.pid = fork();
	if (w.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!by_child || fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)read(begins[0], &byte, 1);
			touch((volatile char *)(uintptr_t)data, false);
		}
		for (;;)
			(void)pause();
	}
	for (int i = 0; i < 100; i++) { /* until the child is there */
		look_at_worker(&w, (uint64_t)monotonic_ms(), MEMORY_LEFT, &first);
		if (first.kids == (unsigned)by_child)
			break;
		pause_ms(50);
	}
	assert_int_equal(write(begins[1], "", 1), 1);
	s = first;
	for (int i = 0; i < 100; i++) {
		uint64_t main = s.main_bytes - first.main_bytes;
		uint64_t rest = s.read_bytes - first.read_bytes;

		if ((by_child ? rest : main) >= LITTLE)
			break;
		pause_ms(50);
		look_at_worker(&w, (uint64_t)monotonic_ms(), MEMORY_LEFT, &s);
	}
	assert_true((by_child ? s.read_bytes - first.read_bytes :
				s.main_bytes - first.main_bytes) >= LITTLE);
	if (s.kids > 0)
		(void)kill(w.kids[0].pid, SIGKILL);
	assert_int_equal(kill(w.pid, SIGKILL), 0);
	assert_int_equal(waitpid(w.pid, NULL, 0), w.pid);
	(void)munmap((void *)(uintptr_t)data, BIG);
	(void)close(fd);
	(void)close(begins[0]);
	(void)close(begins[1]);
}

static void test_mapped(void **state)
{
	(void)state;
	look_at_mapped(false);
}

static void test_mapped_by_child(void **state)
{
	(void)state;
	look_at_mapped(true);
}

static void test_nobody(void **state)
{
	struct worker_sample s;
	struct looked w = { .pid = 0, .rank = 1 };

	(void)state;
	look_at_worker(&w, 7, MEMORY_WATCHED, &s);
	assert_int_equal(s.state, '?');
	assert_true(s.at_ms == 7 && s.working_set == WORKING_SET_UNKNOWN);
}

/* A thread of it is in state D, as vfork(2) waits so for the child. */
static void *wait_in_kernel(void *pause)
{
	pid_t child = vfork();

	if (child == 0) {
		(void)nanosleep(pause, NULL);
		_exit(0);
	}
	return NULL;
}

static void wait_for_thread(bool in_kernel)
{
	static struct timespec pause = { .tv_sec = 1000 };
	autoclose nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	pthread_t thread;

	(void)write(nowhere, "it writes", sizeof "it writes");
	(void)pthread_create(&thread, NULL, wait_in_kernel, in_kernel ? &pause : NULL);
	for (;;)
		(void)sleep(1000);
}

/* A look at it did not finish. */
static void look_at_wary(bool in_kernel)
{
	struct worker_sample s = { .state = '?' };
	struct looked w = { .rank = 3, .pid = fork() };

	if (w.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)setpgid(0, 0);
		wait_for_thread(in_kernel);
	}
	(void)setpgid(w.pid, w.pid);
	/* the thread comes to it; one that begins may be in state D for a moment */
	for (int i = 0; i == 0 || (i < 100 && (s.state == 'D') != in_kernel); i++) {
		pause_ms(in_kernel ? 20 : 1);
		w.wary_looks = 2;
		look_at_worker(&w, 7, MEMORY_WATCHED, &s);
	}
	assert_int_equal(w.wary_looks, 1);
	assert_true(s.main_bytes >= sizeof "it writes");
	assert_int_equal(s.state, in_kernel ? 'D' : '?');
	assert_int_equal(s.stuck, in_kernel);
	assert_true(s.main_faults > 0);
	w.wary_looks = 0;
	/* a slow machine may let it begin only now */
	for (int i = 0; i == 0 || (i < 1000 && s.state == 'R'); i++) {
		pause_ms(i == 0 ? 0 : 10);
		look_at_worker(&w, 8, MEMORY_WATCHED, &s);
	}
	assert_int_equal(s.state, 'S');
	assert_int_equal(kill(-w.pid, SIGKILL), 0);
	assert_int_equal(waitpid(w.pid, NULL, 0), w.pid);
}

static void test_wary_stuck(void **state)
{
	(void)state;
	look_at_wary(true);
}

static void test_wary_well(void **state)
{
	(void)state;
	look_at_wary(false);
}

TESTS(look_at_worker)
{
	static struct suite s;

	SUITE_ROWS(&s, test_touched, rows);
	suite_add(&s, "its main thread waits, beside others", test_main_thread, NULL, NULL);
	suite_add(&s, "it reads what it has mapped", test_mapped, NULL, NULL);
	suite_add(&s, "its child does", test_mapped_by_child, NULL, NULL);
	suite_add(&s, "there is no such process", test_nobody, NULL, NULL);
	suite_add(&s, "a look did not finish, and a thread is stuck", test_wary_stuck, NULL, NULL);
	suite_add(&s, "a look did not finish, and no thread is", test_wary_well, NULL, NULL);
	return suite_run(&s);
}
