/* utc.c - see utc.h */
#include "common/utc.h"

#include <stdio.h>
#include <time.h>

#include "common/text.h"

void utc_add(struct text *t, int64_t wall_ns, unsigned digits)
{
	enum { NS = 1000000000, MOST = 9 };
	int64_t ns = wall_ns % NS;
	time_t s = (time_t)(wall_ns / NS);
	struct tm tm = { 0 };
	char fraction[MOST + 1];

	if (ns < 0) { /* before 1970 the fraction still counts forwards */
		ns += NS;
		s--;
	}
	(void)gmtime_r(&s, &tm); /* 64 bits of ns are 292 years, which fit */
	text_printf(t, "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
		tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
	(void)snprintf(fraction, sizeof fraction, "%09u", (unsigned)ns);
	if (digits > 0)
		text_printf(t, ".%.*s", (int)(digits < MOST ? digits : MOST), fraction);
	text_add(t, "Z");
}
