/* dlib.h - libraries that are loaded at run time, where something needs them: who has no use for
 * one neither pays for it nor has to install it.
 *
 * Who describes one declares the functions in a struct of its own, with the types that the
 * library's header gives them ("__typeof__(cJSON_Delete) *free"), and names each in a table.
 *
 * A program that is built to run everywhere (-Dbundled=true) has the small ones linked in: their
 * tables say where, and nothing is loaded. */
#ifndef LAUNCHD_DAEMON_OS_DLIB_H
#define LAUNCHD_DAEMON_OS_DLIB_H

#include <stddef.h>

struct failure;
struct text;

struct dlib_symbol {
	const char *name;
	size_t at;            /* where the struct has the function's pointer */
	void (*linked)(void); /* DLIB_LINKED(the function) */
};

#ifdef LAUNCHD_BUNDLED
#define DLIB_LINKED(function) (void (*)(void))(function)
#else
#define DLIB_LINKED(function) NULL
#endif

struct dlib {
	const char *name;                   /* "libsodium", for sentences */
	const char *file;                   /* its soname */
	const char *hint;                   /* what it is for, or which package has it */
	const struct dlib_symbol *symbols;  /* up to one without a name */
	const struct dlib_symbol *optional; /* the same for those that an older one may lack, whose
					     * pointers are NULL then; NULL: none are */
	const char *adds;                   /* what launchd does with it: "keys" */
	struct dlib_symbol version; /* says its own: const char *(void); no name: none does */
	const char *home;           /* a variable: where to look for it first; NULL: none */
};

/* Loads the library from `file` (NULL: what is linked in, or d->file in a directory of what
 * d->home says, or where the loader looks) and fills in the struct.
 * *ret_library is for dlclose(3), who wants that; NULL: nothing was loaded. -ELIBACC: it can't be
 * loaded; -ELIBBAD: it lacks a function, and is closed again. On failure nothing is changed. */
int dlib_open(
	const struct dlib *d, const char *file, void *ret, void **ret_library, struct failure *why);

/* Says which one dlib_open() would take: "1.0.18, /usr/lib/libsodium.so.23", "1.0.18, linked in".
 * Loads and unloads it. Errors of dlib_open(). */
int dlib_describe(const struct dlib *d, struct text *out, struct failure *why);

/* Where a function lies: "linked in", or the path of a library. */
const char *dlib_place(void (*function)(void));

#endif
