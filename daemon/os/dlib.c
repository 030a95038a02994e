/* dlib.c - see dlib.h */
#include "daemon/os/dlib.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "common/text.h"

typedef void function_t(void);

/* POSIX has dlsym() return functions as void *; ISO C allows this conversion. */
static function_t *find(void *library, const char *name)
{
	void *at = name ? dlsym(library, name) : NULL;
	function_t *function;

	memcpy(&function, &at, sizeof function);
	return function;
}

/* With all that is wanted of it. */
static int load_file(
	const struct dlib *d, const char *name, void **ret_library, struct failure *why)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!library) /* dlerror() begins with the file's name */
		return failure_set(why, -ELIBACC, "%s: %s (%s)", d->name, dlerror(), d->hint);
	for (const struct dlib_symbol *s = d->symbols; s->name; s++)
		if (!dlsym(library, s->name)) {
			(void)dlclose(library);
			return failure_set(why, -ELIBBAD, "%s: %s has no %s (%s)", d->name, name,
				s->name, d->hint);
		}
	*ret_library = library;
	return 0;
}

static int load(const struct dlib *d, const char *file, void **ret_library, struct failure *why)
{
	static const char *const places[] = { "lib", "lib/openmpi", "lib64" };
	const char *home = !file && d->home ? getenv(d->home) : NULL;
	char path[PATH_MAX];

	for (size_t i = 0; home && i < sizeof places / sizeof *places; i++) {
		struct failure unused = { 0 };

		(void)snprintf(path, sizeof path, "%s/%s/%s", home, places[i], d->file);
		if (load_file(d, path, ret_library, &unused) == 0)
			return 0;
	}
	return load_file(d, file ? file : d->file, ret_library, why);
}

static void fill_in(const struct dlib_symbol *symbols, bool linked, void *library, void *ret)
{
	for (const struct dlib_symbol *s = symbols; s->name; s++) {
		function_t *function = linked ? s->linked : find(library, s->name);

		memcpy((char *)ret + s->at, &function, sizeof function);
	}
}

int dlib_open(
	const struct dlib *d, const char *file, void *ret, void **ret_library, struct failure *why)
{
	bool linked = !file && d->symbols->linked;
	void *library = NULL;
	int rc = linked ? 0 : load(d, file, &library, why);

	if (rc < 0)
		return rc;
	fill_in(d->symbols, linked, library, ret);
	if (d->optional)
		fill_in(d->optional, linked, library, ret);
	*ret_library = library;
	return 0;
}

const char *dlib_place(void (*function)(void))
{
	static const char here_too;
	Dl_info there, here;
	void *at;

	memcpy(&at, &function, sizeof at);
	if (dladdr(at, &there) == 0 || dladdr(&here_too, &here) == 0)
		return "at an unknown place";
	return there.dli_fbase == here.dli_fbase ? "linked in" : there.dli_fname;
}

int dlib_describe(const struct dlib *d, struct text *out, struct failure *why)
{
	bool linked = d->symbols->linked;
	function_t *first = d->symbols->linked, *version = d->version.linked;
	void *library = NULL;
	int rc = linked ? 0 : load(d, NULL, &library, why);

	if (rc < 0)
		return rc;
	if (library) {
		first = find(library, d->symbols->name);
		version = find(library, d->version.name);
	}
	if (version) { /* "OpenPMIx 4.2.2 (PMIx Standard: 4.2, Stable ABI: 0.0)" */
		const char *said = ((const char *(*)(void))version)();
		const char *more = strstr(said, " (");

		text_add_bytes(out, said, more ? (size_t)(more - said) : strcspn(said, ","));
		text_add(out, ", ");
	}
	text_add(out, dlib_place(first));
	if (library)
		(void)dlclose(library);
	return 0;
}
