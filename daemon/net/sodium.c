/* sodium.c - see sodium.h */
#include "daemon/net/sodium.h"

#include <dlfcn.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "common/failure.h"

/* Who uses them needs no header of the library; that the types are its own is looked at here. */
#define SAME_TYPE(member, function) \
	_Static_assert(__builtin_types_compatible_p( \
			       __typeof__(((struct sodium *)0)->member), __typeof__(&(function))), \
		#function " has another type")
SAME_TYPE(generichash, crypto_generichash);
SAME_TYPE(memcmp, sodium_memcmp);

int sodium_load_from(const char *name, struct sodium *ret, struct failure *why)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	void *init_at, *hash, *compare;
	int (*init)(void);

	if (!library)
		return failure_set(why, -ENOSYS,
			"%s is not here: a key needs it, Debian's package is libsodium23", name);
	init_at = dlsym(library, "sodium_init");
	hash = dlsym(library, "crypto_generichash");
	compare = dlsym(library, "sodium_memcmp");
	/* POSIX has dlsym() return functions as void *; memcpy() is the conversion ISO C allows */
	memcpy(&init, &init_at, sizeof init);
	if (!init || !hash || !compare || init() < 0) {
		(void)dlclose(library);
		return failure_set(why, -ENOSYS, "%s is not libsodium, or can't start", name);
	}
	memcpy(&ret->generichash, &hash, sizeof hash);
	memcpy(&ret->memcmp, &compare, sizeof compare);
	return 0;
}

int sodium_load(struct sodium *ret, struct failure *why)
{
	return sodium_load_from(SODIUM_LIBRARY, ret, why);
}
