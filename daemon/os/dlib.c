/* dlib.c - see dlib.h */
#include "daemon/os/dlib.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "common/failure.h"

/* POSIX has dlsym() return functions as void *; ISO C allows this conversion. */
static void fill(void *ret, const struct dlib_symbol *s, const void *function)
{
	memcpy((char *)ret + s->at, function, sizeof s->linked);
}

static int load(
	const struct dlib *d, const char *name, void *ret, void **ret_library, struct failure *why)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL), *at;

	if (!library) /* dlerror() begins with the file's name */
		return failure_set(why, -ELIBACC, "%s: %s (%s)", d->name, dlerror(), d->hint);
	for (const struct dlib_symbol *s = d->symbols; s->name; s++)
		if (!dlsym(library, s->name)) {
			(void)dlclose(library);
			return failure_set(why, -ELIBBAD, "%s: %s has no %s (%s)", d->name, name,
				s->name, d->hint);
		}
	for (const struct dlib_symbol *s = d->symbols; s->name; s++) {
		at = dlsym(library, s->name);
		fill(ret, s, &at);
	}
	*ret_library = library;
	return 0;
}

int dlib_open(
	const struct dlib *d, const char *file, void *ret, void **ret_library, struct failure *why)
{
	if (file || !d->symbols->linked)
		return load(d, file ? file : d->file, ret, ret_library, why);
	for (const struct dlib_symbol *s = d->symbols; s->name; s++)
		fill(ret, s, &s->linked);
	*ret_library = NULL;
	return 0;
}
