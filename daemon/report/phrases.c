/* phrases.c - see phrases.h */
#include "daemon/report/phrases.h"

#include <stdio.h>
#include <time.h>

#include "common/text.h"
#include "daemon/report/ending.h"

enum { NS_PER_MS = 1000000, MS_PER_S = 1000, RANGES_SHOWN = 16 };

void span_format(uint64_t ns, char ret[SPAN_SIZE])
{
	uint64_t ms = ns / NS_PER_MS;

	if (ms < 10000)
		(void)snprintf(ret, SPAN_SIZE, "%.2f s", (double)ms / MS_PER_S);
	else if (ms < 600000)
		(void)snprintf(ret, SPAN_SIZE, "%.1f s", (double)ms / MS_PER_S);
	else if (ms < 36000000)
		(void)snprintf(ret, SPAN_SIZE, "%u min %02u s", (unsigned)(ms / 60000),
			(unsigned)(ms / 1000 % 60));
	else
		(void)snprintf(ret, SPAN_SIZE, "%u h %02u min", (unsigned)(ms / 3600000),
			(unsigned)(ms / 60000 % 60));
}

void span_add(struct text *out, uint64_t from_ns, uint64_t to_ns)
{
	char span[SPAN_SIZE];

	span_format(to_ns > from_ns ? to_ns - from_ns : 0, span);
	text_add(out, span);
}

bool moment_add(struct text *out, const struct result *r, uint64_t at_ns, bool iso)
{
	int64_t ms = (r->started_wall_ns + (int64_t)(at_ns - r->started_ns)) / NS_PER_MS;
	time_t seconds = (time_t)(ms / MS_PER_S);
	char when[32], zone[8];
	struct tm tm;

	if (r->started_wall_ns <= 0 || at_ns == 0 || ms < 0 || !localtime_r(&seconds, &tm))
		return false;
	(void)strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
	(void)strftime(zone, sizeof zone, "%z", &tm);
	if (iso)
		text_printf(out, "%.10sT%s.%03d%.3s:%s", when, when + 11, (int)(ms % MS_PER_S),
			zone, zone + 3);
	else
		text_printf(out, "%s.%03d %s", when, (int)(ms % MS_PER_S), zone);
	return true;
}

uint64_t cause_ns(const struct result *r)
{
	bool ended = r->cause.kind == CAUSE_FAILURE && r->culprit->ended_ns;

	return ended ? r->culprit->ended_ns : r->cause.at_ns;
}

/* The i-th number of a list of any kind. */
typedef unsigned number_at(const void *list, size_t i);

static void ranges_add(
	struct text *out, const char *noun, number_at *at, const void *list, size_t count)
{
	size_t ranges = 0, last;

	text_printf(out, "%s%s ", noun, count == 1 ? "" : "s");
	for (size_t i = 0; i < count; i = last + 1) {
		last = i;
		while (last + 1 < count && at(list, last + 1) == at(list, last) + 1)
			last++;
		text_add(out, i ? ", " : "");
		if (ranges++ == RANGES_SHOWN) {
			text_printf(out, "... (%zu in all)", count);
			return;
		}
		text_printf(out, "%u", at(list, i));
		if (last > i)
			text_printf(out, last > i + 1 ? "-%u" : ", %u", at(list, last));
	}
}

static unsigned plain_at(const void *list, size_t i)
{
	return ((const unsigned *)list)[i];
}

static unsigned rank_at(const void *list, size_t i)
{
	return ((const struct outcome *const *)list)[i]->rank;
}

void numbers_add(struct text *out, const char *noun, const unsigned *list, size_t count)
{
	ranges_add(out, noun, plain_at, list, count);
}

void ranks_add(struct text *out, const struct outcome *const *list, size_t count)
{
	ranges_add(out, "rank", rank_at, list, count);
}

void worker_add(struct text *out, const struct outcome *o)
{
	text_printf(out, "rank %u (local rank %u", o->rank, o->local_rank);
	if (o->pid)
		text_printf(out, ", pid %d", (int)o->pid);
	text_add(out, ")");
}

void outcome_add(struct text *out, const struct outcome *o)
{
	static const char *const words[] = {
		[OOM_NO] = "",
		[OOM_LIKELY] = " (likely ended by the kernel for want of memory: OOM)",
		[OOM_YES] = " (ended by the kernel for want of memory: OOM)",
	};

	ending_describe(&o->end, out);
	text_add(out, words[o->oom]);
}
