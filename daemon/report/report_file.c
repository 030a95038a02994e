/* report_file.c - see report_file.h */
#include "daemon/report/report_file.h"

#include <string.h>

#include "common/failure.h"
#include "daemon/os/replace.h"

int report_write(const char *path, const char *bytes, size_t len, struct failure *why)
{
	int rc = file_replace(path, bytes, len, REPLACE_DURABLY);

	return rc < 0 ?
		failure_set(why, rc, "--report: %s can't be written: %s", path, strerror(-rc)) :
		0;
}
