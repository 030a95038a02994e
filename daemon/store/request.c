/* request.c - see request.h */
#include "daemon/store/request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/failure.h"

/* What a client of torch 2.2 or later says first: VALIDATE and a number that proves it. As a SET of
 * an older one it would have a key of 1 GB. */
static const uint8_t validate[] = { 0x00, 0xce, 0xf7, 0x85, 0x3c };

/* Arguments: k key, v value, i 8 bytes, u 4 bytes; # how often what stands behind it comes. */
static const struct {
	const char *name, *shape;
} queries[QUERIES] = {
	[QUERY_NONE] = { "", "" },
	[QUERY_VALIDATE] = { "VALIDATE", "u" },
	[QUERY_SET] = { "SET", "kv" },
	[QUERY_COMPARE_SET] = { "COMPARE_SET", "kvv" },
	[QUERY_GET] = { "GET", "k" },
	[QUERY_ADD] = { "ADD", "ki" },
	[QUERY_CHECK] = { "CHECK", "#k" },
	[QUERY_WAIT] = { "WAIT", "#k" },
	[QUERY_GETNUMKEYS] = { "GETNUMKEYS", "" },
	[QUERY_WATCH_KEY] = { "WATCH_KEY", "k" },
	[QUERY_DELETE_KEY] = { "DELETE_KEY", "k" },
	[QUERY_APPEND] = { "APPEND", "kv" },
	[QUERY_MULTI_GET] = { "MULTI_GET", "#k" },
	[QUERY_MULTI_SET] = { "MULTI_SET", "#kv" },
	[QUERY_CANCEL_WAIT] = { "CANCEL_WAIT", "" },
	[QUERY_PING] = { "PING", "u" },
	[QUERY_QUEUE_PUSH] = { "QUEUE_PUSH", "kv" },
	[QUERY_QUEUE_POP] = { "QUEUE_POP", "k" },
	[QUERY_QUEUE_LEN] = { "QUEUE_LEN", "k" },
	[QUERY_LIST_KEYS] = { "LIST_KEYS", "" },
	[QUERY_BARRIER] = { "BARRIER", "ki" },
};

enum { NUMBERS = 19 };

/* The queries by their numbers. The last four of A are those of builds between 2.0 and 2.1. */
static const uint8_t numbers[][NUMBERS] = {
	[STORE_DIALECT_A] = { QUERY_SET, QUERY_COMPARE_SET, QUERY_GET, QUERY_ADD, QUERY_CHECK,
		QUERY_WAIT, QUERY_GETNUMKEYS, QUERY_WATCH_KEY, QUERY_DELETE_KEY, QUERY_APPEND,
		QUERY_MULTI_GET, QUERY_MULTI_SET, QUERY_CANCEL_WAIT },
	[STORE_DIALECT_C] = { QUERY_SET, QUERY_COMPARE_SET, QUERY_GET, QUERY_ADD, QUERY_CHECK,
		QUERY_WAIT, QUERY_GETNUMKEYS, QUERY_DELETE_KEY, QUERY_APPEND, QUERY_MULTI_GET,
		QUERY_MULTI_SET, QUERY_CANCEL_WAIT },
	[STORE_DIALECT_D] = { QUERY_VALIDATE, QUERY_SET, QUERY_COMPARE_SET, QUERY_GET, QUERY_ADD,
		QUERY_CHECK, QUERY_WAIT, QUERY_GETNUMKEYS, QUERY_DELETE_KEY, QUERY_APPEND,
		QUERY_MULTI_GET, QUERY_MULTI_SET, QUERY_CANCEL_WAIT, QUERY_PING, QUERY_QUEUE_PUSH,
		QUERY_QUEUE_POP, QUERY_QUEUE_LEN, QUERY_LIST_KEYS, QUERY_BARRIER },
};

const char *query_name(enum query q)
{
	return queries[q].name;
}

void scan_init(struct scan *s, enum store_dialect old)
{
	*s = (struct scan){ .old = old };
}

static uint64_t load(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof word);
	return word;
}

/* Which dialect it is: 1, 0 where more bytes must tell, or negative errno. */
static int tell_dialect(struct scan *s, const uint8_t *bytes, size_t len, struct failure *why)
{
	const size_t seen = len < sizeof validate ? len : sizeof validate;

	if (memcmp(bytes, validate, seen) != 0) {
		if (s->old == STORE_DIALECT_NONE)
			return failure_set(why, -EPROTO,
				"it does not begin as clients of torch 2.2 and later do");
		s->dialect = s->old;
		return 1;
	}
	if (seen < sizeof validate)
		return 0;
	s->dialect = STORE_DIALECT_D;
	return 1;
}

static int begin(struct scan *s, const uint8_t *bytes, size_t len, struct failure *why)
{
	const bool first = s->dialect == STORE_DIALECT_NONE;
	enum query q;
	int rc;

	if (len == 0)
		return 0;
	if (first && (rc = tell_dialect(s, bytes, len, why)) <= 0)
		return rc;
	q = bytes[0] < NUMBERS ? numbers[s->dialect][bytes[0]] : QUERY_NONE;
	if (q == QUERY_NONE || (q == QUERY_VALIDATE && !first))
		return failure_set(
			why, -EPROTO, "it sent an unknown query, %u", (unsigned)bytes[0]);
	s->query = q;
	s->step = s->again = queries[q].shape;
	s->count = s->left = 1;
	s->at = s->args = 1;
	return 1;
}

/* "its SET has a key of 9000 bytes, but the limit is 8192" */
static int too_much(enum query q, const char *what, uint64_t size, const char *unit, uint64_t max,
	struct failure *why)
{
	return failure_set(why, -EPROTO, "its %s has %s%" PRIu64 " %s, but the limit is %" PRIu64,
		queries[q].name, what, size, unit, max);
}

/* One argument's length, with the number that says it: 1, 0 or negative errno. */
static int argument(
	const struct scan *s, const uint8_t *at, size_t len, size_t *ret, struct failure *why)
{
	const bool key = *s->step == 'k';
	const uint64_t max = key ? STORE_KEY_MAX : STORE_VALUE_MAX;
	uint64_t size;

	if (*s->step == 'u' || *s->step == 'i') {
		*ret = *s->step == 'u' ? sizeof(uint32_t) : sizeof(uint64_t);
		return len >= *ret;
	}
	if (len < sizeof size)
		return 0;
	size = load(at);
	if (size > max)
		return too_much(
			s->query, key ? "a key of " : "a value of ", size, "bytes", max, why);
	*ret = sizeof size + (size_t)size;
	return len >= *ret;
}

/* How often what stands behind comes. */
static int repetitions(struct scan *s, const uint8_t *at, size_t len, struct failure *why)
{
	if (len < sizeof s->count)
		return 0;
	s->count = s->left = load(at);
	if (s->count > STORE_KEYS_MAX)
		return too_much(s->query, "", s->count, "keys", STORE_KEYS_MAX, why);
	s->at += sizeof s->count;
	s->args = s->at;
	s->again = s->step + 1;
	s->step = s->count > 0 ? s->again : "";
	return 1;
}

int scan_next(
	struct scan *s, const uint8_t *bytes, size_t len, struct request *ret, struct failure *why)
{
	int rc = s->query == QUERY_NONE ? begin(s, bytes, len, why) : 1;

	while (rc > 0 && *s->step) {
		size_t size = 0;

		if (*s->step == '#') {
			rc = repetitions(s, bytes + s->at, len - s->at, why);
			continue;
		}
		rc = argument(s, bytes + s->at, len - s->at, &size, why);
		if (rc <= 0)
			break;
		s->at += size;
		s->step++;
		if (!*s->step && s->left > 1) {
			s->left--;
			s->step = s->again;
		}
	}
	if (rc <= 0)
		return rc;
	*ret = (struct request){ s->query, s->dialect, s->count, bytes + s->args, s->at };
	s->query = QUERY_NONE;
	return 1;
}

struct span request_span(const uint8_t **at)
{
	struct span span = { *at + sizeof(uint64_t), (size_t)load(*at) };

	*at = span.at + span.len;
	return span;
}

int64_t request_number(const uint8_t **at)
{
	const uint64_t word = load(*at);

	*at += sizeof word;
	return (int64_t)word;
}
