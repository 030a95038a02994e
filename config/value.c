/* value.c - see value.h */
#include "config/value.h"

#include <errno.h>
#include <string.h>

#include "common/arena.h"
#include "common/bits.h"
#include "common/name.h"
#include "common/num.h"
#include "config/lists.h"
#include "config/table.h"

int choice_index(const char *choices, const char *text)
{
	size_t len = strlen(text);

	for (int i = 0;; i++) {
		size_t n = strcspn(choices, "|");

		if (n == len && strncmp(choices, text, n) == 0)
			return i;
		if (!choices[n])
			return -1;
		choices += n + 1;
	}
}

static unsigned choice_count(const char *choices)
{
	unsigned count = 1;

	for (; *choices; choices++)
		count += *choices == '|';
	return count;
}

const char *choice_nearest(struct arena *a, const char *choices, const char *text)
{
	size_t len = strlen(text), limit = len > 4 ? 2 : 1, best = limit + 1;
	const char *nearest = NULL;

	while (*choices) {
		size_t n = strcspn(choices, "|");
		const char *one = arena_strndup(a, choices, n);
		size_t distance = name_distance(one, text, len, limit);

		if (distance < best && distance < len) {
			best = distance;
			nearest = one;
		}
		choices += n;
		choices += *choices == '|';
	}
	return nearest;
}

/* The words of "true" that INI files and PET_* variables use. -EINVAL: none of them. */
static int flag_parse(const struct setting_row *row, const char *text, uint64_t *ret)
{
	int i = choice_index("0|1|false|true|False|True|no|yes|off|on", text);
	int more = i < 0 && row->choices ? choice_index(row->choices, text) : -1;

	if (more >= 0) {
		*ret = 2 + (uint64_t)more;
		return 0;
	}
	if (i < 0)
		return -EINVAL;
	*ret = (uint64_t)i % 2;
	return 0;
}

/* N or N:N, as torchrun has it (parse_min_max_nnodes); MIN < MAX is -EINVAL like any other text. */
static int nnodes_parse(const struct setting_row *row, const char *text, uint64_t *ret)
{
	size_t len = strcspn(text, ":");
	uint64_t max;
	int rc = num_parse_len(text, len, row->min, row->max, ret);

	if (rc < 0 || !text[len])
		return rc;
	rc = num_parse(text + len + 1, row->min, row->max, &max);
	return rc == 0 && max != *ret ? -EINVAL : rc;
}

static int seconds_parse(const struct setting_row *row, const char *text, uint64_t *ret)
{
	int rc = num_parse_seconds(text, row->max, ret);

	return rc == 0 && *ret < row->min * 1000 ? -ERANGE : rc;
}

/* N, NK, NM, NG */
static int size_parse(const struct setting_row *row, const char *text, uint64_t *ret)
{
	static const char units[] = "KMG";
	size_t digits = strspn(text, "0123456789");
	const char *unit = text[digits] ? strchr(units, text[digits]) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	int rc;

	if (text[digits] && (!unit || text[digits + 1]))
		return -EINVAL;
	rc = num_parse_len(text, digits, 0, row->max >> shift, ret);
	if (rc == 0)
		*ret <<= shift;
	return rc;
}

static int cpus_parse(const struct setting_row *row, const char *text, uint64_t *ret)
{
	int rc = num_parse_thousandths(text, row->max, ret);

	return rc == 0 && *ret > 0 && *ret < CPUS_LEAST ? -ERANGE : rc;
}

static size_t without_blanks(const char **text, size_t len)
{
	while (len > 0 && (**text == ' ' || **text == '\t'))
		++*text, len--;
	while (len > 0 && ((*text)[len - 1] == ' ' || (*text)[len - 1] == '\t'))
		len--;
	return len;
}

size_t conf_bare(const char **text)
{
	size_t len = without_blanks(text, strlen(*text));

	if (len < 2 || (**text != '"' && **text != '\'') || (*text)[len - 1] != **text)
		return len;
	++*text;
	return without_blanks(text, len - 2);
}

/* Both bounds are signed, too. */
static int signed_parse(const struct setting_row *row, const char *text, uint64_t *ret)
{
	int64_t least = (int64_t)row->min, most = (int64_t)row->max, value;
	bool negative = *text == '-';
	uint64_t n;
	int rc = num_parse(text + negative, 0, INT32_MAX, &n);

	if (rc < 0)
		return rc;
	value = negative ? -(int64_t)n : (int64_t)n;
	if (value < least || value > most)
		return -ERANGE;
	*ret = (uint64_t)value;
	return 0;
}

/* torchrun's k=v,k=v: every key needs a value. */
static int conf_check(const char *text)
{
	size_t rest = conf_bare(&text);

	while (rest > 0) {
		const char *comma = memchr(text, ',', rest);
		size_t len = comma ? (size_t)(comma - text) : rest, key, value;
		const char *equals = memchr(text, '=', len), *name = text, *said;

		if (!equals)
			return -EINVAL;
		said = equals + 1;
		key = without_blanks(&name, (size_t)(equals - text));
		value = without_blanks(&said, (size_t)(text + len - said));
		if (key == 0 || value == 0)
			return -EINVAL;
		text += len + (comma != NULL);
		rest -= len + (comma != NULL);
	}
	return 0;
}

int value_parse(const struct setting_row *row, const char *text, uint64_t *ret)
{
	int i;

	switch (row->kind) {
	case KIND_FLAG:
		return flag_parse(row, text, ret);
	case KIND_COUNT:
		return num_parse(text, row->min, row->max, ret);
	case KIND_NPROC:
		*ret = 0;
		return choice_index(row->choices, text) >= 0 ?
			0 :
			num_parse(text, row->min, row->max, ret);
	case KIND_NNODES:
		return nnodes_parse(row, text, ret);
	case KIND_SECONDS:
		return seconds_parse(row, text, ret);
	case KIND_CHOICE:
		i = choice_index(row->choices, text);
		*ret = (uint64_t)i;
		return i < 0 ? -EINVAL : 0;
	case KIND_LISTS:
		i = choice_index(row->choices, text);
		*ret = i < 0 ? choice_count(row->choices) : (uint64_t)i;
		return i >= 0 || bits_lists(text) > 0 ? 0 : -EINVAL;
	case KIND_CONF:
		return conf_check(text);
	case KIND_TEXT:
	case KIND_HOSTS: /* settings_put() looks further */
	case KIND_RLIMITS:
	case KIND_HOSTS_SLOTS:
		return *text ? 0 : -EINVAL;
	case KIND_RANKS:
		return !*text && row->by_default ? 0 : ranks_check(text);
	case KIND_STREAMS:
		return streams_check(text);
	case KIND_SIZE:
		return size_parse(row, text, ret);
	case KIND_CPUS:
		return cpus_parse(row, text, ret);
	case KIND_RATE:
		return num_parse_thousandths(text, row->max, ret);
	case KIND_ENDS:
		return ends_check(text);
	case KIND_ENDS_OR_REPEAT:
		return ends_or_repeat_check(text);
	case KIND_SIGNED:
		return signed_parse(row, text, ret);
	case KIND_DEVICES:
		return gpus_check(text);
	case KIND_TEXT_OR_NONE:
	case KIND_ENV:
	case KIND_UNSET:
	case KIND_ARGS:
		return 0;
	}
	return -EINVAL;
}

const char *value_wanted(struct arena *a, const struct setting_row *row)
{
	switch (row->kind) {
	case KIND_FLAG:
		return row->choices ? arena_printf(a, "0 or 1, no or yes, or %s", row->choices) :
				      "0 or 1, false or true, no or yes, off or on";
	case KIND_COUNT:
	case KIND_NNODES:
		return arena_printf(a, "a whole number from %llu to %llu",
			(unsigned long long)row->min, (unsigned long long)row->max);
	case KIND_NPROC:
		return arena_printf(a, "a whole number from %llu to %llu%s",
			(unsigned long long)row->min, (unsigned long long)row->max,
			strchr(row->choices, '|') ? ", auto, cpu or gpu" : " or auto");
	case KIND_SECONDS:
		return arena_printf(a,
			"a time from %llu to %llu seconds, such as 90, %llu.5, 90s, 5m, 1h30m or 2d",
			(unsigned long long)row->min, (unsigned long long)row->max,
			(unsigned long long)row->min);
	case KIND_CHOICE:
		return arena_printf(a, "one of %s", row->choices);
	case KIND_LISTS:
		return arena_printf(a,
			"one of %s, or a list of numbers up to %d for each worker, as in 0-3,8:4-7",
			row->choices, BITS_MAX - 1);
	case KIND_CONF:
		return "a list of key=value, separated by commas";
	case KIND_RANKS:
		return "a list of ranks and ranges, as in 0,4-7";
	case KIND_STREAMS:
		return "a number from 0 to 3 (1 is stdout, 2 stderr, 3 both) or a list of them by "
		       "local rank, as in 0:1,4-7:3";
	case KIND_SIZE:
		return "a whole number of bytes, or one with K, M or G, as in 64M";
	case KIND_CPUS:
		return arena_printf(a, "a number of CPUs from 0.01 to %llu, such as 1.5, or 0",
			(unsigned long long)row->max);
	case KIND_RATE:
		return arena_printf(a, "a number from 0 to %llu, such as 400 or 18.5",
			(unsigned long long)row->max);
	case KIND_ENDS:
		return "a list of exit codes from 1 to 255, ranges of them and names of signals, as "
		       "in 1,64-77,SIGSEGV";
	case KIND_ENDS_OR_REPEAT:
		return "a list of exit codes from 1 to 255, ranges of them, names of signals and the "
		       "word repeat, as in 1,64-77,SIGSEGV,repeat";
	case KIND_SIGNED:
		return arena_printf(a, "a whole number from %lld to %lld", (long long)row->min,
			(long long)row->max);
	case KIND_RLIMITS:
		return "a list of resource limits, as in nofile=65536,memlock=unlimited";
	case KIND_DEVICES:
		return "all, a list of GPUs and ranges of them, each once, as in 0,2,4-7, or names of "
		       "GPUs, as in GPU-8f3a2c10,MIG-5c21";
	case KIND_HOSTS:
		return "names or addresses of hosts, as in n0,gpu[01-16]";
	case KIND_HOSTS_SLOTS:
		return "names or addresses of hosts, as in n0,gpu[01-16] or n0:8,n1:8";
	case KIND_TEXT:
	case KIND_TEXT_OR_NONE:
	case KIND_ENV:
	case KIND_UNSET:
	case KIND_ARGS:
		break;
	}
	return "a value";
}
