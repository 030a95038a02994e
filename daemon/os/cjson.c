/* cjson.c - see cjson.h */
#include "daemon/os/cjson.h"

#include <dlfcn.h>

#include "daemon/os/dlib.h"

static const struct dlib_symbol symbols[] = {
	{ "cJSON_ParseWithLength", offsetof(struct cjson, parse),
		DLIB_LINKED(cJSON_ParseWithLength) },
	{ "cJSON_ParseWithLengthOpts", offsetof(struct cjson, parse_to_end),
		DLIB_LINKED(cJSON_ParseWithLengthOpts) },
	{ "cJSON_GetObjectItemCaseSensitive", offsetof(struct cjson, item),
		DLIB_LINKED(cJSON_GetObjectItemCaseSensitive) },
	{ "cJSON_Delete", offsetof(struct cjson, free), DLIB_LINKED(cJSON_Delete) },
	{ NULL, 0, NULL },
};

const struct dlib cjson_library = {
	.name = "libcjson",
	.file = "libcjson.so.1",
	.hint = "Debian's package is libcjson1; 1.7.13 or newer is needed",
	.symbols = symbols,
	.adds = "a worker's exception in the report, launchctl",
	.version = { "cJSON_Version", 0, DLIB_LINKED(cJSON_Version) },
};

int cjson_open(const char *file, struct cjson *ret, struct failure *why)
{
	return dlib_open(&cjson_library, file, ret, &ret->library, why);
}

void cjson_close(struct cjson *c)
{
	if (c->library)
		(void)dlclose(c->library);
	*c = (struct cjson){ 0 };
}
