/* test_kernel.c - what is said of newer kernels' features, and what this one answers. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/os/kernel.h"

/* Each is there from the kernel on that its row names; nothing is left of the question. */
static void test_asked(void **state)
{
	unsigned major, minor, since_major, since_minor;
	struct utsname u;

	(void)state;
	assert_int_equal(uname(&u), 0);
	assert_int_equal(sscanf(u.release, "%u.%u", &major, &minor), 2);
	for (unsigned f = 0; f < KERNEL_FEATURES; f++) {
		const struct kernel_row *row = kernel_row((enum kernel_feature)f);
		int error = kernel_ask((enum kernel_feature)f);

		assert_int_equal(sscanf(row->since, "%u.%u", &since_major, &since_minor), 2);
		if (major < since_major || (major == since_major && minor < since_minor))
			assert_true(error > 0);
		/* an old kernel, a sandbox, or no cgroup of version 2 */
		assert_true(error == 0 || kernel_refuses(error) || error == ENOENT);
		assert_true(row->name && row->instead);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void test_refuses(void **state)
{
	(void)state;
	assert_true(kernel_refuses(ENOSYS) && kernel_refuses(EPERM) && kernel_refuses(EINVAL));
	assert_false(kernel_refuses(ESRCH) || kernel_refuses(EMFILE) || kernel_refuses(EAGAIN));
}

TESTS(kernel)
{
	static struct suite s;

	suite_add(&s, "each feature is there from its kernel on", test_asked, NULL, NULL);
	suite_add(
		&s, "no process and no descriptor left is no old kernel", test_refuses, NULL, NULL);
	return suite_run(&s);
}
