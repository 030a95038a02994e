/* cjson.c - see cjson.h */
#include "daemon/report/cjson.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "common/failure.h"

int cjson_open(const char *name, struct cjson *ret, struct failure *why)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	void *parse, *item, *delete;

	if (!library)
		return failure_set(why, -ENOENT, "%s is not installed", name);
	parse = dlsym(library, "cJSON_ParseWithLength"); /* since 1.7.13 */
	item = dlsym(library, "cJSON_GetObjectItemCaseSensitive");
	delete = dlsym(library, "cJSON_Delete");
	if (!parse || !item || !delete) {
		(void)dlclose(library);
		return failure_set(why, -ENOENT, "%s is older than cJSON 1.7.13", name);
	}
	/* POSIX has dlsym() return functions as void *; memcpy() is the conversion ISO C allows */
	memcpy(&ret->parse, &parse, sizeof parse);
	memcpy(&ret->item, &item, sizeof item);
	memcpy(&ret->free, &delete, sizeof delete);
	ret->library = library;
	return 0;
}

void cjson_close(struct cjson *c)
{
	if (c->library)
		(void)dlclose(c->library);
	*c = (struct cjson){ 0 };
}
