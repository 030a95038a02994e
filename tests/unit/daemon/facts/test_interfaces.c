/* test_interfaces.c - the addresses that the kernel lists. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <string.h>

#include "daemon/facts/interfaces.h"

/* Every machine has it, be it up or, in a new network namespace, without an address. */
static void test_loopback(void **state)
{
	struct arena arena = { 0 };
	struct failure why = { 0 };
	struct interfaces all;
	bool loopback = false;

	(void)state;
	assert_outcome(interfaces_read(&arena, &all, &why), 0, &why, NULL);
	for (size_t i = 0; i < all.count; i++) {
		unsigned char bytes[16];

		assert_true(*all.at[i].name != '\0');
		assert_true(inet_pton(AF_INET, all.at[i].address, bytes) == 1 ||
			inet_pton(AF_INET6, all.at[i].address, bytes) == 1);
		if (strcmp(all.at[i].address, "127.0.0.1") == 0) {
			loopback = true;
			assert_true(all.at[i].loopback);
			assert_true(all.at[i].up);
		}
	}
	assert_true(loopback || all.count == 0);
	arena_done(&arena);
}

TESTS(interfaces)
{
	static struct suite s;

	suite_add(&s, "loopback is among them", test_loopback, NULL, NULL);
	return suite_run(&s);
}
