/* siphash.h - SipHash-2-4 of Aumasson and Bernstein: a hash by a secret key, so that nobody who
 * does not know the key can choose inputs that collide. Pure. */
#ifndef LAUNCHD_COMMON_SIPHASH_H
#define LAUNCHD_COMMON_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

enum { SIPHASH_KEY_SIZE = 16 };

uint64_t siphash(const uint8_t key[SIPHASH_KEY_SIZE], const uint8_t *bytes, size_t len);

#endif
