/* cjson.h - the cJSON library, loaded where there is something to parse: a job that goes well never
 * pays for it. */
#ifndef LAUNCHD_DAEMON_REPORT_CJSON_H
#define LAUNCHD_DAEMON_REPORT_CJSON_H

#include <cjson/cJSON.h>

struct failure;

#define CJSON_LIBRARY "libcjson.so.1"

/* The functions that are needed, with the types that the header gives them. */
struct cjson {
	void *library; /* NULL: not open */
	__typeof__(cJSON_ParseWithLength) *parse;
	__typeof__(cJSON_GetObjectItemCaseSensitive) *item;
	__typeof__(cJSON_Delete) *free;
};

/* Loads the library of that name. -ENOENT: it is not there, or lacks a function. */
int cjson_open(const char *name, struct cjson *ret, struct failure *why);

/* Unloads it. Nothing that it made may be left. */
void cjson_close(struct cjson *c);

#endif
