/* ends.c - see ends.h */
#include "config/ends.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "common/signame.h"
#include "common/words.h"
#include "config/ranks.h"

enum { EXIT_CODE_MAX = 255 };

/* One entry; of a signal first and last are the same. */
struct ends {
	bool is_signal;
	struct range range;
};

static int entry_parse(const char *word, size_t len, struct ends *ret)
{
	int signal;

	ret->is_signal = len > 0 && !isdigit((unsigned char)*word);
	if (!ret->is_signal)
		return range_parse(word, len, 1, EXIT_CODE_MAX, &ret->range) < 0 ? -EINVAL : 0;
	signal = signal_number(word, len);
	ret->range = (struct range){ (uint64_t)signal, (uint64_t)signal };
	return signal < 0 ? -EINVAL : 0;
}

/* The next entry of a list; *at is NULL after the last one. */
static int entry_next(const char **at, struct ends *ret)
{
	/* an empty entry after the last comma counts, too */
	bool more = strchr(*at, ',') != NULL;
	const char *word;
	size_t len = list_next(at, &word);

	if (!more)
		*at = NULL;
	return entry_parse(word, len, ret);
}

int ends_check(const char *text)
{
	struct ends e;
	int rc = 0;

	while (text && rc == 0)
		rc = entry_next(&text, &e);
	return rc;
}

bool ends_contain(const char *list, bool is_signal, int value)
{
	struct ends e;

	while (list)
		if (entry_next(&list, &e) == 0 && e.is_signal == is_signal &&
			range_has(&e.range, (uint64_t)value))
			return true;
	return false;
}

bool ends_overlap(const char *one, const char *other, bool *ret_is_signal, int *ret_value)
{
	struct ends e;

	while (one) {
		if (entry_next(&one, &e) < 0)
			continue;
		for (uint64_t n = e.range.first; n <= e.range.last; n++) {
			if (!ends_contain(other, e.is_signal, (int)n))
				continue;
			*ret_is_signal = e.is_signal;
			*ret_value = (int)n;
			return true;
		}
	}
	return false;
}
