/* dialect.c - see dialect.h */
#include "daemon/store/dialect.h"

#include <errno.h>
#include <stdlib.h>

/* "2.15" as 2015, so that releases compare; -EINVAL. */
static int release(const char *version, unsigned long *ret)
{
	unsigned long major, minor;
	char *end;

	if (*version < '0' || *version > '9')
		return -EINVAL;
	major = strtoul(version, &end, 10);
	if (*end != '.' || end[1] < '0' || end[1] > '9')
		return -EINVAL;
	minor = strtoul(end + 1, NULL, 10);
	if (major > 1000 || minor > 999)
		return -EINVAL;
	*ret = major * 1000 + minor;
	return 0;
}

/* Versions before 2.2 are served because they are in use: Debian 12 has torch 1.13, and images that
 * were built around 2.0 and 2.1 are still run. They cost some 170 of the store's lines, most of
 * them for WATCH_KEY, which 2.1 dropped. */
int store_dialect_of(const char *version, enum store_dialect *ret)
{
	static const struct {
		unsigned long from;
		enum store_dialect dialect;
	} since[] = {
		{ 2002, STORE_DIALECT_NONE },
		{ 2001, STORE_DIALECT_C },
		{ 1013, STORE_DIALECT_A },
	};
	unsigned long number;
	int rc = release(version, &number);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < sizeof since / sizeof *since; i++)
		if (number >= since[i].from) {
			*ret = since[i].dialect;
			return 0;
		}
	return -ENOTSUP;
}
