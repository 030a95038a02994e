/* test_fd.c - descriptors, whole writes and small files. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"

static void test_autoclose(void **state)
{
	int kept, lost;

	(void)state;
	{
		autoclose a = open("/dev/null", O_RDONLY | O_CLOEXEC);
		autoclose b = open("/dev/null", O_RDONLY | O_CLOEXEC);

		assert_true(a >= 0 && b >= 0);
		lost = a;
		kept = fd_take(&b);
		assert_int_equal(b, -1);
	}
	assert_int_equal(fcntl(lost, F_GETFD), -1);
	assert_true(fcntl(kept, F_GETFD) >= 0);
	(void)close(kept);
}

/* What a pipe has at once is less than what is wanted of it; then its end, or enough. */
static void test_pieces(void **state)
{
	char ret[8] = "";
	int p[2];

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	autoclose reader = p[0];
	autoclose writer = p[1];
	assert_int_equal(fd_read_up_to(reader, ret, sizeof ret), -EAGAIN);
	assert_int_equal(fd_write_all(writer, "abc", 3), 0);
	assert_int_equal(fd_read_up_to(reader, ret, 2), 2);
	assert_int_equal(fd_write_all(writer, "de", 2), 0);
	fd_closep(&writer);
	assert_int_equal(fd_read_up_to(reader, ret + 2, sizeof ret - 2), 3);
	assert_int_equal(fd_read_up_to(reader, ret, sizeof ret), 0);
	assert_memory_equal(ret, "abcde", 5);
}

static const struct file_row {
	const char *says;
	size_t bytes, max;
	long rc;
} files[] = {
	{ "an empty file", 0, 10, 0 },
	{ "one byte below the room, which the NUL takes", 9, 10, 9 },
	{ "as long as the room", 10, 10, -EFBIG },
	{ "longer than the room", 11, 10, -EFBIG },
};

static void test_read(void **state)
{
	const struct file_row *row = *state;
	char path[] = "/tmp/launchd_test_fd_XXXXXX", bytes[12] = "xxxxxxxxxxx", ret[12];
	int fd = mkostemp(path, O_CLOEXEC);
	long got;
	int wrote;

	assert_true(fd >= 0);
	wrote = fd_write_all(fd, bytes, row->bytes);
	(void)close(fd);
	memset(ret, '?', sizeof ret);
	got = fd_read_file(path, ret, row->max);
	(void)unlink(path);
	assert_int_equal(wrote, 0);
	assert_int_equal(got, row->rc);
	if (got >= 0)
		assert_int_equal(ret[got], '\0');
	assert_int_equal(ret[row->max], '?');
}

static void test_errors(void **state)
{
	char ret[4];

	(void)state;
	assert_int_equal(fd_read_file("/nowhere/at/all", ret, sizeof ret), -ENOENT);
	assert_int_equal(fd_read_file("/", ret, sizeof ret), -EISDIR);
	assert_int_equal(fd_write_all(-1, "x", 1), -EBADF);
}

TESTS(fd)
{
	static struct suite s;

	suite_add(&s, "a scope closes what was not taken", test_autoclose, NULL, NULL);
	suite_add(&s, "a pipe is read in the pieces that it has", test_pieces, NULL, NULL);
	suite_add(&s, "errors are errno's", test_errors, NULL, NULL);
	SUITE_ROWS(&s, test_read, files);
	return suite_run(&s);
}
