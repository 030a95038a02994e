/* secret.h - bytes that nobody can guess, and how they are forgotten: what getrandom(3) and
 * explicit_bzero(3) do, which the C library has since glibc 2.25 only. */
#ifndef LAUNCHD_DAEMON_OS_SECRET_H
#define LAUNCHD_DAEMON_OS_SECRET_H

#include <stddef.h>

struct failure;

/* Up to 256 bytes. Blocks for the kernel's first entropy at most. 0 or -EIO. */
int secret_draw(void *ret, size_t len, struct failure *why);

/* Writes zeros, whether or not anybody reads them. */
void secret_wipe(void *at, size_t len);

#endif
