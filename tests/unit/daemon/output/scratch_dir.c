/* scratch_dir.c - see scratch_dir.h */
#include "tests/unit/daemon/output/scratch_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/fd.h"
#include "tests/unit/unit.h"

static char scratch[] = "/tmp/launchd_test_scratch_XXXXXX";
static struct rlimit descriptors;

int scratch_make(void)
{
	return mkdtemp(scratch) && chdir(scratch) == 0 ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type;
	return where->level == 0 ? 0 : remove(path);
}

void scratch_clear(void)
{
	assert_int_equal(nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

int scratch_done(void)
{
	return chdir("/") < 0 ? -1 : scratch_remove(scratch);
}

int scratch_remove(const char *root)
{
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0 ? rmdir(root) : -1;
}

struct text scratch_read(const char *path)
{
	autoclose fd = open(path, O_RDONLY | O_CLOEXEC);
	struct text ret = { 0 };
	static char buf[65536];
	ssize_t n;

	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	while ((n = read(fd, buf, sizeof buf)) > 0)
		text_add_bytes(&ret, buf, (size_t)n);
	assert_int_equal(n, 0);
	assert_false(ret.failed);
	return ret;
}

void assert_file(const char *path, const char *expected)
{
	struct text is;

	if (!expected) {
		assert_int_equal(access(path, F_OK), -1);
		return;
	}
	is = scratch_read(path);
	assert_string_equal(text_string(&is), expected);
	text_done(&is);
}

void assert_bytes(const char *at, size_t len, const char *expected, size_t expected_len)
{
	size_t same = 0;

	while (same < len && same < expected_len && at[same] == expected[same])
		same++;
	if (same < len || same < expected_len)
		fail_msg("%zu bytes, not %zu; they differ from byte %zu on: \"%.*s\", not \"%.*s\"",
			len, expected_len, same, (int)(len - same < 60 ? len - same : 60),
			len ? at + same : "",
			(int)(expected_len - same < 60 ? expected_len - same : 60),
			expected + same);
}

size_t count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count - 3; /* ".", "..", and its own */
}

void limit_descriptors(unsigned n)
{
	struct rlimit less;
	int next = fcntl(0, F_DUPFD_CLOEXEC, 3);

	assert_true(next >= 0 && close(next) == 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
	less = (struct rlimit){ (rlim_t)next + n, descriptors.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
}

void free_descriptors(void)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
}

void limit_file_size(uint64_t bytes)
{
	struct rlimit limit;

	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}
