/* sodium.c - see sodium.h */
#include "daemon/net/sodium.h"

#include <errno.h>
#include <sodium.h>

#include "common/failure.h"
#include "daemon/os/dlib.h"

/* Who uses them needs no header of the library; that the types are its own is looked at here. */
#define SAME_TYPE(member, function) \
	_Static_assert(__builtin_types_compatible_p( \
			       __typeof__(((struct sodium *)0)->member), __typeof__(&(function))), \
		#function " has another type")
SAME_TYPE(generichash, crypto_generichash);
SAME_TYPE(memcmp, sodium_memcmp);

struct loaded {
	int (*init)(void);
	struct sodium functions;
};

static const struct dlib_symbol symbols[] = {
	{ "sodium_init", offsetof(struct loaded, init), DLIB_LINKED(sodium_init) },
	{ "crypto_generichash", offsetof(struct loaded, functions.generichash),
		DLIB_LINKED(crypto_generichash) },
	{ "sodium_memcmp", offsetof(struct loaded, functions.memcmp), DLIB_LINKED(sodium_memcmp) },
	{ NULL, 0, NULL },
};

const struct dlib sodium_library = {
	.name = "libsodium",
	.file = "libsodium.so.23",
	.hint = "a key needs it; Debian's package is libsodium23",
	.symbols = symbols,
	.adds = "keys, by which launchers authenticate one another",
	.version = { "sodium_version_string", 0, DLIB_LINKED(sodium_version_string) },
};

int sodium_load_from(const char *file, struct sodium *ret, struct failure *why)
{
	struct loaded l;
	void *stays;
	int rc = dlib_open(&sodium_library, file, &l, &stays, why);

	if (rc < 0)
		return rc;
	if (l.init() < 0)
		return failure_set(why, -ELIBBAD, "libsodium: sodium_init failed");
	*ret = l.functions;
	return 0;
}

int sodium_load(struct sodium *ret, struct failure *why)
{
	return sodium_load_from(NULL, ret, why);
}
