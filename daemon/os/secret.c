/* secret.c - see secret.h */
#include "daemon/os/secret.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/failure.h"

int secret_draw(void *ret, size_t len, struct failure *why)
{
	long n;

	do {
		n = syscall(SYS_getrandom, ret, len, 0); /* so few bytes are given whole */
	} while (n < 0 && errno == EINTR);
	return n == (long)len ? 0 : failure_set(why, -EIO, "getrandom: %s", strerror(errno));
}

void secret_wipe(void *at, size_t len)
{
	memset(at, 0, len);
	__asm__ __volatile__("" : : "r"(at) : "memory"); /* or the compiler leaves it out */
}
