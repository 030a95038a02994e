/* lists.c - see lists.h */
#include "config/lists.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/num.h"
#include "common/signame.h"
#include "common/words.h"

/* More digits than any rank has are a slip, even where the first are zeros. */
static int parse(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret)
{
	enum { DIGITS_MAX = 10 };

	return len > DIGITS_MAX ? -EINVAL : num_parse_len(text, len, min, max, ret);
}

int range_parse(const char *text, size_t len, uint64_t min, uint64_t max, struct range *ret)
{
	const char *dash = memchr(text, '-', len);
	size_t first = dash ? (size_t)(dash - text) : len;
	int rc = parse(text, first, min, max, &ret->first);

	if (rc < 0)
		return rc;
	ret->last = ret->first;
	return dash ? parse(dash + 1, len - first - 1, ret->first, max, &ret->last) : 0;
}

struct entry {
	struct range range;
	unsigned what; /* of streams: which; of ends: enum end_kind */
};

/* A list on the way through its entries. */
struct list {
	const char *at; /* NULL: behind the last entry */
	int (*parse)(const char *text, size_t len, struct entry *ret);
	int rc; /* below 0: the last entry was malformed */
};

static bool next(struct list *l, struct entry *ret)
{
	size_t len;

	if (!l->at || l->rc < 0)
		return false;
	*ret = (struct entry){ 0 };
	len = strcspn(l->at, ",");
	l->rc = l->parse(l->at, len, ret);
	l->at = l->at[len] ? l->at + len + 1 : NULL;
	return l->rc == 0;
}

static int check(struct list l)
{
	struct entry e;

	while (next(&l, &e))
		;
	return l.rc;
}

static uint64_t last(struct list l)
{
	uint64_t highest = 0;
	struct entry e;

	while (next(&l, &e))
		highest = e.range.last > highest ? e.range.last : highest;
	return highest;
}

static bool is_in(const struct entry *e, uint64_t n)
{
	return n >= e->range.first && n <= e->range.last;
}

static bool contains(struct list l, unsigned what, uint64_t n)
{
	struct entry e;

	while (next(&l, &e))
		if (e.what == what && is_in(&e, n))
			return true;
	return false;
}

/* --- ranks --- */

static int parse_ranks(const char *text, size_t len, struct entry *ret)
{
	return range_parse(text, len, 0, INT_MAX, &ret->range);
}

static struct list ranks_of(const char *text)
{
	return (struct list){ text, parse_ranks, 0 };
}

int ranks_check(const char *text)
{
	return check(ranks_of(text));
}

bool ranks_contain(const char *ranks, unsigned rank)
{
	return contains(ranks_of(ranks), 0, rank);
}

uint64_t ranks_last(const char *ranks)
{
	return last(ranks_of(ranks));
}

/* --- streams --- */

static bool is_stream(char c)
{
	return c >= '0' && c <= '3';
}

/* RANK[-RANK]:VALUE */
static int parse_streams(const char *text, size_t len, struct entry *ret)
{
	if (len < 2 || text[len - 2] != ':' || !is_stream(text[len - 1]) ||
		range_parse(text, len - 2, 0, INT_MAX, &ret->range) < 0)
		return -EINVAL;
	ret->what = (unsigned)(text[len - 1] - '0');
	return 0;
}

/* A value for all workers has no entries. */
static bool is_for_all(const char *text)
{
	return is_stream(text[0]) && !text[1];
}

static struct list streams_in(const char *text)
{
	return (struct list){ is_for_all(text) ? NULL : text, parse_streams, 0 };
}

int streams_check(const char *text)
{
	return check(streams_in(text));
}

unsigned streams_of(const char *streams, unsigned local_rank)
{
	unsigned ret = is_for_all(streams) ? (unsigned)(*streams - '0') : STREAMS_NONE;
	struct list l = streams_in(streams);
	struct entry e;

	while (next(&l, &e))
		ret = is_in(&e, local_rank) ? e.what : ret;
	return ret;
}

uint64_t streams_last(const char *streams)
{
	return last(streams_in(streams));
}

/* --- gpus --- */

enum { GPUS_MOST = 4095 }; /* the highest number that is one */

static bool begins(const char *text, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len > n && strncmp(text, with, n) == 0;
}

/* "0.1", "0.1.2" */
static bool is_part(const char *text, size_t len)
{
	return len > 2 && memchr(text, '.', len) && text[0] != '.' && text[len - 1] != '.' &&
		strspn(text, "0123456789.") >= len;
}

static bool is_gpu_name(const char *text, size_t len)
{
	return begins(text, len, "GPU-") || begins(text, len, "MIG-");
}

int gpus_next(const char **at, struct range *ret, const char **ret_name, size_t *ret_len)
{
	size_t len;

	if (!**at)
		return 0;
	len = list_next(at, ret_name);
	*ret_len = len;
	if (is_gpu_name(*ret_name, len) || is_part(*ret_name, len))
		return 2;
	return range_parse(*ret_name, len, 0, GPUS_MOST, ret) < 0 ? -EINVAL : 1;
}

/* Whether what `rest` begins with is in `list` before it. */
static bool is_listed(const char *list, const char *rest, int kind, const struct range *range,
	const char *name, size_t len)
{
	const char *other_name = NULL;
	struct range other = { 0 };
	size_t other_len = 0;

	while (list < rest) {
		int k = gpus_next(&list, &other, &other_name, &other_len);

		if (other_name == name)
			break;
		if (k != kind)
			return true; /* numbers and names: one of them is too many */
		if (kind == 1 ? range->first <= other.last && other.first <= range->last :
				other_len == len && strncmp(other_name, name, len) == 0)
			return true;
	}
	return false;
}

int gpus_check(const char *text)
{
	const char *at = text, *name;
	struct range range;
	size_t len;
	int kind;

	if (strcmp(text, "all") == 0)
		return 0;
	while ((kind = gpus_next(&at, &range, &name, &len)) > 0)
		if (is_listed(text, at, kind, &range, name, len))
			return -EINVAL;
	return kind < 0 || !*text ? -EINVAL : 0;
}

/* --- ends --- */

enum end_kind { END_CODE, END_SIGNAL, END_REPEAT };

static int parse_ends(const char *text, size_t len, struct entry *ret)
{
	enum { EXIT_CODE_MAX = 255 };
	const char *word;
	int signal;

	len = list_next(&text, &word); /* without the blanks around it */
	if (len == 0 || isdigit((unsigned char)*word))
		return range_parse(word, len, 1, EXIT_CODE_MAX, &ret->range) < 0 ? -EINVAL : 0;
	if (len == strlen("repeat") && strncmp(word, "repeat", len) == 0) {
		ret->what = END_REPEAT;
		return 0;
	}
	signal = signal_number(word, len);
	*ret = (struct entry){ { (uint64_t)signal, (uint64_t)signal }, END_SIGNAL };
	return signal < 0 ? -EINVAL : 0;
}

static struct list ends_in(const char *text)
{
	return (struct list){ text, parse_ends, 0 };
}

int ends_check(const char *text)
{
	return ends_have_repeat(text) ? -EINVAL : ends_or_repeat_check(text);
}

int ends_or_repeat_check(const char *text)
{
	return check(ends_in(text));
}

bool ends_have_repeat(const char *ends)
{
	return contains(ends_in(ends), END_REPEAT, 0);
}

bool ends_contain(const char *ends, bool is_signal, int value)
{
	return contains(ends_in(ends), is_signal ? END_SIGNAL : END_CODE, (uint64_t)value);
}

bool ends_overlap(const char *one, const char *other, bool *ret_is_signal, int *ret_value)
{
	struct list l = ends_in(one);
	struct entry e;

	while (next(&l, &e))
		for (uint64_t n = e.range.first; n <= e.range.last; n++)
			if (contains(ends_in(other), e.what, n)) {
				*ret_is_signal = e.what == END_SIGNAL;
				*ret_value = (int)n;
				return true;
			}
	return false;
}
