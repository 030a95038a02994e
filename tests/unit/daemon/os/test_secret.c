/* test_secret.c - bytes that nobody can guess. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/os/secret.h"

long __real_syscall(long number, void *ret, size_t len, unsigned flags);
long __wrap_syscall(long number, void *ret, size_t len, unsigned flags);

static const int *failing; /* errors of the next calls, up to 0 */

long __wrap_syscall(long number, void *ret, size_t len, unsigned flags)
{
	if (!failing || !*failing)
		return __real_syscall(number, ret, len, flags);
	errno = *failing++;
	return -1;
}

static void test_draw(void **state)
{
	unsigned char a[32] = { 0 }, b[32] = { 0 };
	struct failure why = { 0 };

	(void)state;
	assert_outcome(secret_draw(a, sizeof a, &why), 0, &why, NULL);
	assert_outcome(secret_draw(b, sizeof b, &why), 0, &why, NULL);
	assert_true(memcmp(a, b, sizeof a) != 0);
}

static void test_draw_fails(void **state)
{
	static const int interrupted[] = { EINTR, EINTR, 0 }, none[] = { ENOSYS, 0 };
	unsigned char bytes[32];
	struct failure why = { 0 };

	(void)state;
	failing = interrupted;
	assert_outcome(secret_draw(bytes, sizeof bytes, &why), 0, &why, NULL);
	assert_int_equal(*failing, 0);
	failing = none;
	assert_outcome(secret_draw(bytes, sizeof bytes, &why), -EIO, &why,
		"getrandom: Function not implemented");
}

static void test_wipe(void **state)
{
	char text[] = "a secret, and more";

	(void)state;
	secret_wipe(text, strlen("a secret"));
	assert_memory_equal(text, "\0\0\0\0\0\0\0\0, and more", sizeof text);
}

TESTS(secret)
{
	static struct suite s;

	suite_add(&s, "random bytes differ", test_draw, NULL, NULL);
	suite_add(
		&s, "a signal may come in between; there may be none", test_draw_fails, NULL, NULL);
	suite_add(&s, "they are overwritten, and no more", test_wipe, NULL, NULL);
	return suite_run(&s);
}
