/* test_spawn.c - one process, as the outside sees it: its streams, its end, and what is left of one
 * that can't be started. What it finds inside: test_child.c. */
#include "tests/unit/daemon/workers/spawn_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

static void test_pipes(void **state)
{
	struct bench *b = *state;
	char text[64];

	b->stdio[0].how = b->stdio[2].how = STDIO_PIPE;
	assert_outcome(bench_spawn(b, NULL, "cat", NULL), 0, &b->why, NULL);
	for (int fd = 0; fd < 3; fd++) {
		assert_true(b->p.pipe[fd] > 2);
		assert_true(fcntl(b->p.pipe[fd], F_GETFD) & FD_CLOEXEC);
		assert_true(fcntl(b->p.pipe[fd], F_GETFL) & O_NONBLOCK);
	}
	assert_int_equal(fd_write_all(b->p.pipe[0], "through", 7), 0);
	fd_closep(&b->p.pipe[0]);
	b->p.pipe[0] = -1;
	read_all(b->p.pipe[1], text, sizeof text);
	assert_string_equal(text, "through");
	read_all(b->p.pipe[2], text, sizeof text);
	assert_string_equal(text, "");
	assert_int_equal(bench_ending(b).si_status, 0);
}

static void test_files(void **state)
{
	struct bench *b = *state;
	char path[128], text[512];

	(void)snprintf(path, sizeof path, "%s/file", b->dir);
	b->extra = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all(b->extra, "before ", 7), 0);
	b->stdio[0] = (struct stdio){ .how = STDIO_FILE, .path = "/dev/null" };
	b->stdio[1] = (struct stdio){ .how = STDIO_FILE, .path = path };
	assert_outcome(bench_spawn(b, NULL, "facts", NULL), 0, &b->why, NULL);
	assert_int_equal(b->p.pipe[1], -1);
	assert_int_equal(bench_ending(b).si_status, 0);
	assert_true(fd_read_file(path, text, sizeof text) > 0);
	assert_int_equal(strncmp(text, "before leader=", 14), 0); /* appended */
}

static void test_inherited(void **state)
{
	struct bench *b = *state;
	char text[512];
	int pair[2], saved, rc;

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	b->extra = pair[0];
	b->stdio[1].how = STDIO_INHERIT;
	(void)fflush(stdout);
	(void)dup2(pair[1], STDOUT_FILENO);
	(void)close(pair[1]);
	rc = bench_spawn(b, NULL, "facts", NULL);
	(void)dup2(saved, STDOUT_FILENO); /* before anything can fail: the results go there */
	(void)close(saved);
	assert_outcome(rc, 0, &b->why, NULL);
	assert_int_equal(b->p.pipe[1], -1);
	read_all(b->extra, text, sizeof text);
	assert_int_equal(strncmp(text, "leader=1 ", 9), 0);
}

static void test_pidfd(void **state)
{
	struct bench *b = *state;
	struct pollfd p;
	siginfo_t si;

	b->stdio[0].how = STDIO_PIPE;
	assert_outcome(bench_spawn(b, NULL, "cat", NULL), 0, &b->why, NULL);
	assert_true(fcntl(b->p.pidfd, F_GETFD) & FD_CLOEXEC);
	p = (struct pollfd){ .fd = b->p.pidfd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 0), 0); /* it waits for its input */
	fd_closep(&b->p.pipe[0]);
	b->p.pipe[0] = -1;
	si = bench_ending(b);
	assert_int_equal(si.si_code, CLD_EXITED);
	assert_int_equal(si.si_status, 0);
}

/* From here on streams go by low descriptors, which must not keep the pipes open. */
static void test_sealed(void **state)
{
	struct bench *b = *state;
	int before;

	assert_int_equal(spawn_seal_descriptors(), 0);
	assert_int_equal(spawn_seal_descriptors(), 0); /* for a second attempt: takes no more */
	b->stdio[0].how = b->stdio[2].how = STDIO_PIPE;
	before = count_descriptors();
	assert_int_equal(bench_spawn(b, "/nowhere/at/all", "facts", NULL), -ENOENT);
	assert_int_equal(count_descriptors(), before);
	b->why = (struct failure){ 0 };
	test_pipes(state);
}

static const struct end_row {
	const char *says, *act, *arg;
	int code, status;
} ends[] = {
	{ "an exit code", "exit", "42", CLD_EXITED, 42 },
	{ "a signal", "signal", "15", CLD_KILLED, SIGTERM },
	{ "a signal whose number is high", "signal", "40", CLD_KILLED, 40 },
};

static void test_end(void **state)
{
	const struct end_row *row = *state;
	void *bench;
	siginfo_t si = { 0 };

	assert_int_equal(bench_make(&bench), 0);
	assert_outcome(bench_spawn(bench, NULL, row->act, row->arg), 0,
		&((struct bench *)bench)->why, NULL);
	si = bench_ending(bench);
	assert_int_equal(si.si_code, row->code);
	assert_int_equal(si.si_status, row->status);
}

static const struct failing_row {
	const char *says, *program; /* program: "%" is the test's own directory */
	int rc;
	const char *words;
} failing[] = {
	{ "a program that is not there", "/nowhere/at/all", -ENOENT, "No such file" },
	{ "a directory", "/", -EACCES, "is not executable" },
	{ "a file that may not be executed", "%/plain", -EACCES, "is not executable" },
	{ "a file that is no program", "%/text", -ENOEXEC, "no #! line" },
	{ "a script whose interpreter is not there", "%/script", -ENOENT, "interpreter" },
	{ "a script whose interpreter is a directory", "%/root", -EACCES, "interpreter" },
	{ "a script that is its own interpreter", "%/circle", -ELOOP, "form a loop" },
	{ "a program that is being written", "%/open", -ETXTBSY, "open for writing" },
	{ "a file where a directory should be", "/dev/null/x", -ENOTDIR, "Not a directory" },
};

static void make_file(const struct bench *b, const char *name, mode_t mode, const char *text)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof path, "%s/%s", b->dir, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	(void)close(fd);
}

static void test_failing(void **state)
{
	const struct failing_row *row = *state;
	void *bench;
	struct bench *b;
	char program[128], text[160];
	int before, after, rc;

	assert_int_equal(bench_make(&bench), 0);
	b = bench;
	(void)snprintf(text, sizeof text, "#!%s/circle\n", b->dir);
	make_file(b, "circle", 0700, text);
	make_file(b, "root", 0700, "#!/\n");
	make_file(b, "open", 0700, "\x01\x02");
	(void)snprintf(program, sizeof program, "%s/open", b->dir);
	b->extra = open(program, O_WRONLY | O_CLOEXEC);
	make_file(b, "plain", 0600, "\x01\x02");
	make_file(b, "text", 0700, "\x01\x02");
	make_file(b, "script", 0700, "#!/nowhere/at/all\n");
	(void)snprintf(program, sizeof program, "%s%s", *row->program == '%' ? b->dir : "",
		row->program + (*row->program == '%'));
	b->stdio[0].how = b->stdio[2].how = STDIO_PIPE;
	before = count_descriptors();
	rc = bench_spawn(b, program, "facts", NULL);
	after = count_descriptors();
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* not even a zombie */
	assert_int_equal(errno, ECHILD);
	assert_int_equal(b->p.pid, -1); /* untouched */
	assert_int_equal(before, after);
	assert_outcome(rc, row->rc, &b->why, program);
	assert_true(b->p.refused);
	assert_contains(b->why.text, "execve");
	assert_contains(b->why.text, row->words);
}

static void test_no_stream(void **state)
{
	struct bench *b = *state;
	int before = count_descriptors();

	b->stdio[0].how = STDIO_PIPE;
	b->stdio[2] = (struct stdio){ .how = STDIO_FILE, .path = "/nowhere/at/all" };
	assert_outcome(bench_spawn(b, NULL, "facts", NULL), -EIO, &b->why, "/nowhere/at/all");
	assert_int_equal(count_descriptors(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_false(b->p.refused); /* it is not the program that can't be executed */
}

/* It may be dead before we run again, and whoever dies of it, too: nothing of ours comes between
 * its birth and the epoll. */
static void test_watched(void **state)
{
	struct bench *b = *state;
	struct epoll_event e = { 0 };
	siginfo_t si;

	assert_int_equal(spawn_seal_descriptors(), 0);
	b->extra = b->epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_outcome(bench_spawn(b, NULL, "exit", "3"), 0, &b->why, NULL);
	assert_true(b->p.watched);
	assert_int_equal(waitid(P_PID, (id_t)b->p.pid, &si, WEXITED | WNOWAIT), 0);
	assert_int_equal(epoll_wait(b->epoll, &e, 1, 0), 1);
	assert_ptr_equal(e.data.ptr, b);
	assert_int_equal(epoll_wait(b->epoll, &e, 1, 0), 0);
}

/* Text that is longer than the kernel takes. */
static void test_too_long(void **state)
{
	struct bench *b = *state;
	static char text[256 * 1024];

	memset(text, 'x', sizeof text - 1);
	assert_outcome(bench_spawn(b, NULL, "exit", text), -E2BIG, &b->why, "128 KB");
	assert_true(b->p.refused);
}

TESTS(spawn)
{
	static struct suite s;

	if (!bench_find_probe())
		return 2;
#define TEST(says, test) suite_add(&s, says, test, bench_make, bench_done)
	TEST("streams by pipes, whose other ends are ours", test_pipes);
	TEST("streams by pipes, in a table of files of its own", test_sealed);
	TEST("streams by files, appended to", test_files);
	TEST("streams that are inherited", test_inherited);
	TEST("the pidfd is readable once it has ended, and not before", test_pidfd);
	TEST("its end is seen by an epoll that it has joined itself", test_watched);
	TEST("an argument that is too long", test_too_long);
	TEST("a stream that can't be opened leaves nothing behind", test_no_stream);
	/* these make their bench themselves, as their state is the row */
	suite_add_rows(&s, test_end, bench_done, ends, sizeof ends / sizeof *ends, sizeof *ends);
	suite_add_rows(&s, test_failing, bench_done, failing, sizeof failing / sizeof *failing,
		sizeof *failing);
	return suite_run(&s);
}
