/* dlib.c - see dlib.h */
#include "daemon/os/dlib.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "common/failure.h"

int dlib_open(
	const struct dlib *d, const char *file, void *ret, void **ret_library, struct failure *why)
{
	const char *name = file ? file : d->file;
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
		/* POSIX has dlsym() return functions as void *; ISO C allows this conversion */
		memcpy((char *)ret + s->at, &at, sizeof at);
	}
	*ret_library = library;
	return 0;
}
