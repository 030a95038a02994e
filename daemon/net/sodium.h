/* sodium.h - the functions of libsodium that are needed, loaded where a job has a key: one node
 * alone never pays for it. */
#ifndef LAUNCHD_DAEMON_NET_SODIUM_H
#define LAUNCHD_DAEMON_NET_SODIUM_H

#include <stddef.h>

struct dlib;
struct failure;

extern const struct dlib sodium_library;

/* Each returns 0 for success; memcmp, which takes the same time whatever the bytes are, for
 * equality. */
struct sodium {
	int (*generichash)(unsigned char *out, size_t outlen, const unsigned char *in,
		unsigned long long inlen, const unsigned char *key, size_t keylen);
	int (*memcmp)(const void *a, const void *b, size_t len);
};

/* Loads the library and makes it ready. It stays loaded until the process ends. Errors of
 * dlib_open(); -ELIBBAD also where it can't start. */
int sodium_load(struct sodium *ret, struct failure *why);

/* The same, from another file. */
int sodium_load_from(const char *file, struct sodium *ret, struct failure *why);

#endif
