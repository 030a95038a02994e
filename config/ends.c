/* ends.c - see ends.h */
#include "config/ends.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/num.h"
#include "common/signame.h"
#include "common/words.h"

enum { EXIT_CODE_MAX = 255 };

/* One entry; of a signal first and last are the same. */
struct ends {
	bool is_signal;
	int first, last;
};

static int code_parse(const char *text, size_t len, int min, int *ret)
{
	char word[8];
	uint64_t n;
	int rc;

	if (len >= sizeof word)
		return -EINVAL;
	memcpy(word, text, len);
	word[len] = '\0';
	rc = num_parse(word, (uint64_t)min, EXIT_CODE_MAX, &n);
	if (rc == 0)
		*ret = (int)n;
	return rc;
}

static int entry_parse(const char *word, size_t len, struct ends *ret)
{
	const char *dash = memchr(word, '-', len);
	size_t first = dash ? (size_t)(dash - word) : len;

	if (len > 0 && !isdigit((unsigned char)*word)) {
		ret->is_signal = true;
		ret->first = ret->last = signal_number(word, len);
		return ret->first < 0 ? -EINVAL : 0;
	}
	*ret = (struct ends){ .is_signal = false };
	if (code_parse(word, first, 1, &ret->first) < 0)
		return -EINVAL;
	ret->last = ret->first;
	return dash && code_parse(dash + 1, len - first - 1, ret->first, &ret->last) < 0 ? -EINVAL :
											   0;
}

/* The next entry of a list; *at is NULL behind the last. */
static int entry_next(const char **at, struct ends *ret)
{
	/* an empty entry behind the last comma is one, too */
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
		if (entry_next(&list, &e) == 0 && e.is_signal == is_signal && value >= e.first &&
			value <= e.last)
			return true;
	return false;
}

bool ends_overlap(const char *one, const char *other, bool *ret_is_signal, int *ret_value)
{
	struct ends e;

	while (one) {
		if (entry_next(&one, &e) < 0)
			continue;
		for (int value = e.first; value <= e.last; value++) {
			if (!ends_contain(other, e.is_signal, value))
				continue;
			*ret_is_signal = e.is_signal;
			*ret_value = value;
			return true;
		}
	}
	return false;
}
