/* cjson.h - the cJSON library, loaded where there is something to parse: a job that goes well never
 * pays for it. */
#ifndef LAUNCHD_DAEMON_OS_CJSON_H
#define LAUNCHD_DAEMON_OS_CJSON_H

#include <cjson/cJSON.h>

struct dlib;
struct failure;

extern const struct dlib cjson_library;

/* The functions that are needed, with the types that the header gives them. */
struct cjson {
	void *library; /* NULL: not open, or linked in */
	__typeof__(cJSON_ParseWithLength) *parse;
	__typeof__(cJSON_ParseWithLengthOpts) *parse_to_end;
	__typeof__(cJSON_GetObjectItemCaseSensitive) *item;
	__typeof__(cJSON_Delete) *free;
};

/* Loads the library; file is for tests, NULL for the usual one. Errors of dlib_open(). */
int cjson_open(const char *file, struct cjson *ret, struct failure *why);

/* Unloads it. Nothing that it made may be left. */
void cjson_close(struct cjson *c);

#endif
