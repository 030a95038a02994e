/* test_answer_file.c - what sources leave in a bundle: bounded, and never through a link. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "daemon/blackbox/answer_file.h"
#include "daemon/blackbox/source.h"

static char dir[] = "/tmp/launchd-unit-XXXXXX";
static const struct source_input input = { .dir = dir };

static const char *path_of(const char *name)
{
	static char path[PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static int make_dir(void **state)
{
	(void)state;
	(void)strcpy(strrchr(dir, '-'), "-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	static const char *const names[] = { "a", "b", "link" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		(void)unlink(path_of(names[i]));
	return rmdir(dir);
}

static off_t size_of(const char *name)
{
	struct stat st;

	assert_int_equal(stat(path_of(name), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	return st.st_size;
}

static void test_write(void **state)
{
	struct text t = { 0 };

	(void)state;
	text_add(&t, "what it found\n");
	assert_int_equal(answer_file_write(&input, "a", &t), 0);
	assert_int_equal(size_of("a"), t.len);
	while (t.len <= ANSWER_MAX)
		text_add(&t, "and more than that, line after line, as nobody has stopped it\n");
	assert_int_equal(answer_file_write(&input, "a", &t), 0);
	assert_int_equal(size_of("a"), ANSWER_MAX);
	text_done(&t);
}

static void test_copy(void **state)
{
	struct text t = { 0 };
	char bytes[16];

	(void)state;
	text_add(&t, "0123456789");
	assert_int_equal(answer_file_write(&input, "a", &t), 0);
	assert_int_equal(answer_file_copy(&input, "b", path_of("a"), 100), 0);
	assert_int_equal(fd_read_file(path_of("b"), bytes, sizeof bytes), 10);
	assert_int_equal(answer_file_copy(&input, "b", path_of("a"), 4), 0);
	assert_int_equal(fd_read_file(path_of("b"), bytes, sizeof bytes), 4);
	assert_string_equal(bytes, "6789");
	text_done(&t);
}

static void test_what_is_no_file(void **state)
{
	struct text t = { 0 };

	(void)state;
	assert_int_equal(answer_file_copy(&input, "b", path_of("a"), 100), -ENOENT);
	assert_int_equal(answer_file_copy(&input, "b", dir, 100), -ENOENT);
	assert_int_equal(symlink("/dev/null", path_of("link")), 0);
	assert_int_equal(answer_file_copy(&input, "b", path_of("link"), 100), -ELOOP);
	assert_int_equal(answer_file_write(&input, "link", &t), -ELOOP);
	assert_int_equal(access(path_of("b"), F_OK), -1);
}

TESTS(answer_file)
{
	static struct suite s;

	suite_add(&s, "what is written is cut", test_write, make_dir, remove_dir);
	suite_add(&s, "the end of what is copied", test_copy, make_dir, remove_dir);
	suite_add(&s, "links, directories, nothing", test_what_is_no_file, make_dir, remove_dir);
	return suite_run(&s);
}
