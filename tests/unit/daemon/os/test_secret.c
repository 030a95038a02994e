/* test_secret.c - bytes that nobody can guess. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/os/secret.h"

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
	struct failure why = { 0 };

	(void)state;
	assert_outcome(secret_draw(NULL, 32, &why), -EIO, &why, "getrandom: Bad address");
}

static void test_wipe(void **state)
{
	char text[] = "a secret, and more";

	(void)state;
	secret_wipe(text, strlen("a secret"));
	assert_memory_equal(text, "\0\0\0\0\0\0\0\0, and more", sizeof text);
}

int main(void)
{
	static struct suite s;

	suite_add(&s, "random bytes differ", test_draw, NULL, NULL);
	suite_add(&s, "there are none", test_draw_fails, NULL, NULL);
	suite_add(&s, "they are overwritten, and no more", test_wipe, NULL, NULL);
	return suite_run(&s);
}
