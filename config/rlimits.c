/* rlimits.c - see rlimits.h */
#include "config/rlimits.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/name.h"
#include "common/num.h"
#include "common/text.h"
#include "common/words.h"

#define NAMES \
	"as, core, cpu, data, fsize, locks, memlock, msgqueue, nice, nofile, nproc, rss, rtprio, rttime, sigpending, stack"

static const struct resource {
	const char *name;
	unsigned number;
	bool in_bytes;
} resources[] = {
	{ "as", RLIMIT_AS, true },
	{ "core", RLIMIT_CORE, true },
	{ "cpu", RLIMIT_CPU, false }, /* seconds */
	{ "data", RLIMIT_DATA, true },
	{ "fsize", RLIMIT_FSIZE, true },
	{ "locks", RLIMIT_LOCKS, false },
	{ "memlock", RLIMIT_MEMLOCK, true },
	{ "msgqueue", RLIMIT_MSGQUEUE, true },
	{ "nice", RLIMIT_NICE, false },
	{ "nofile", RLIMIT_NOFILE, false },
	{ "nproc", RLIMIT_NPROC, false },
	{ "rss", RLIMIT_RSS, true },
	{ "rtprio", RLIMIT_RTPRIO, false },
	{ "rttime", RLIMIT_RTTIME, false }, /* microseconds */
	{ "sigpending", RLIMIT_SIGPENDING, false },
	{ "stack", RLIMIT_STACK, true },
};

enum { RESOURCES = sizeof resources / sizeof *resources };

/* NULL: none has that name. */
static const struct resource *resource_of(const char *name, size_t len)
{
	static const char prefix[] = "RLIMIT_";
	size_t skip = sizeof prefix - 1;

	if (len > skip && strncasecmp(name, prefix, skip) == 0) {
		name += skip;
		len -= skip;
	}
	for (size_t i = 0; i < RESOURCES; i++)
		if (strlen(resources[i].name) == len &&
			strncasecmp(resources[i].name, name, len) == 0)
			return &resources[i];
	return NULL;
}

static int refuse_name(const char *where, const char *name, size_t len, struct failure *why)
{
	const char *nearest = NULL;
	size_t best = 3;

	for (size_t i = 0; i < RESOURCES; i++) {
		size_t distance = name_distance(resources[i].name, name, len, 2);

		if (distance < best && distance < len) {
			best = distance;
			nearest = resources[i].name;
		}
	}
	if (nearest)
		return failure_usage(why, "%s: \"%.*s\" is not a resource limit; did you mean %s?",
			where, (int)len, name, nearest);
	return failure_usage(why,
		"%s: \"%.*s\" is not a resource limit, as in nofile=65536: " NAMES, where, (int)len,
		name);
}

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(word, text, len) == 0;
}

/* A number, "unlimited", or as others write that. */
static int value_of(const struct resource *r, const char *text, size_t len, rlim_t *ret)
{
	static const char units[] = "KMGT";
	char last = len > 1 ? (char)toupper((unsigned char)text[len - 1]) : '\0';
	const char *unit = r->in_bytes && last ? strchr(units, last) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	uint64_t n;
	int rc;

	if (is_word(text, len, "unlimited") || is_word(text, len, "infinity") ||
		is_word(text, len, "-1")) {
		*ret = RLIM_INFINITY;
		return 0;
	}
	rc = num_parse_len(text, len - (unit != NULL), 0, (uint64_t)INT64_MAX >> shift, &n);
	if (rc == 0)
		*ret = (rlim_t)(n << shift);
	return rc;
}

/* NAME=VALUE or NAME=SOFT:HARD */
static int parse_one(const char *entry, size_t len, const char *where, struct rlimit_asked *ret,
	struct failure *why)
{
	const char *equals = memchr(entry, '=', len);
	size_t name_len = equals ? (size_t)(equals - entry) : len;
	const struct resource *r = resource_of(entry, name_len);
	const char *soft = equals ? equals + 1 : entry + len, *end = entry + len;
	const char *colon = memchr(soft, ':', (size_t)(end - soft));
	const char *hard = colon ? colon + 1 : soft;

	if (!r)
		return refuse_name(where, entry, name_len, why);
	if (!equals ||
		value_of(r, soft, (size_t)((colon ? colon : end) - soft), &ret->value.rlim_cur) <
			0 ||
		value_of(r, hard, (size_t)(end - hard), &ret->value.rlim_max) < 0)
		return failure_usage(why,
			"%s: \"%.*s\" is not %s=N, %s=SOFT:HARD or %s=unlimited, where N is a whole number%s",
			where, (int)len, entry, r->name, r->name, r->name,
			r->in_bytes ? " of bytes, or one with K, M, G or T" : "");
	if (ret->value.rlim_cur > ret->value.rlim_max)
		return failure_usage(why,
			"%s: \"%.*s\" has a soft limit above the hard one; it is %s=SOFT:HARD",
			where, (int)len, entry, r->name);
	ret->resource = r->number;
	ret->name = r->name;
	return 0;
}

int rlimits_parse(const char *text, const char *where, struct arena *arena, struct rlimits *ret,
	struct failure *why)
{
	struct rlimits found = { .at = arena_alloc(arena, RESOURCES * sizeof *found.at) };
	const char *entry;

	if (!found.at)
		return failure_oom(why);
	while (*text) {
		size_t len = list_next(&text, &entry);
		struct rlimit_asked one = { 0 };

		if (parse_one(entry, len, where, &one, why) < 0)
			return why->code;
		for (size_t i = 0; i < found.count; i++)
			if (found.at[i].resource == one.resource)
				return failure_usage(why, "%s: %s is there twice", where, one.name);
		found.at[found.count++] = one;
	}
	*ret = found;
	return 0;
}

void rlimits_add_value(rlim_t value, struct text *out)
{
	if (value == RLIM_INFINITY)
		text_add(out, "unlimited");
	else
		text_printf(out, "%llu", (unsigned long long)value);
}

void rlimits_add(const struct rlimit_asked *l, struct text *out)
{
	text_printf(out, "%s=", l->name);
	rlimits_add_value(l->value.rlim_cur, out);
	if (l->value.rlim_max != l->value.rlim_cur) {
		text_add(out, ":");
		rlimits_add_value(l->value.rlim_max, out);
	}
}
