/* num.c - see num.h */
#include "common/num.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int num_parse_len(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	if (len == 0)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
	for (; len > 0; text++, len--) {
		uint64_t digit = (uint64_t)(*text - '0');

		if (n > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		n = n * 10 + digit;
	}
	if (n < min || n > max)
		return -ERANGE;
	*ret = n;
	return 0;
}

int num_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	return num_parse_len(text, strlen(text), min, max, ret);
}

/* The unit that the len bytes at name are, in milliseconds; 0: an unknown one. */
static uint64_t ms_of_unit(const char *name, size_t len)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = { { "", 1000 }, { "s", 1000 }, { "ms", 1 }, { "m", 60000 }, { "min", 60000 },
		{ "h", 3600000 }, { "d", 86400000 } };

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strlen(units[i].name) == len && memcmp(units[i].name, name, len) == 0)
			return units[i].ms;
	return 0;
}

/* Not by strtod(3), which takes "1e3", "inf" and hexadecimals, and reads the decimal point as the
 * locale has it. ".5": thousandths, and how many bytes they take; -EINVAL: no digit, or too many.
 */
static int parse_decimals(const char *text, uint64_t *ret, size_t *ret_len)
{
	static const uint64_t of_digit[] = { 100, 10, 1 };
	size_t len = *text == '.' ? strspn(text + 1, "0123456789") : 0;

	*ret = 0;
	*ret_len = 0;
	if (*text != '.')
		return 0;
	if (len == 0 || len > sizeof of_digit / sizeof *of_digit)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		*ret += of_digit[i] * (uint64_t)(text[1 + i] - '0');
	*ret_len = len + 1;
	return 0;
}

int num_parse_thousandths(const char *text, uint64_t max, uint64_t *ret)
{
	size_t whole = strspn(text, "0123456789"), rest;
	uint64_t n, thousandths;
	int rc = parse_decimals(text + whole, &thousandths, &rest);

	if (rc < 0 || text[whole + rest])
		return -EINVAL;
	rc = num_parse_len(text, whole, 0, max, &n);
	if (rc < 0)
		return rc;
	if (n == max && thousandths > 0)
		return -ERANGE;
	*ret = n * 1000 + thousandths;
	return 0;
}

/* One number with its unit ("1.5h") at *text, which is moved behind it; the unit is 0 where there
 * is none, and then the text is at its end. -EINVAL, -ERANGE. */
static int parse_term(const char **text, uint64_t max_ms, uint64_t *ret_ms, uint64_t *ret_unit)
{
	size_t whole = strspn(*text, "0123456789"), rest, name;
	enum { DIGITS_MAX = 20 }; /* of any 64 bits */
	uint64_t n, thousandths, unit;
	int rc;

	if (whole == 0 || whole > DIGITS_MAX ||
		parse_decimals(*text + whole, &thousandths, &rest) < 0)
		return -EINVAL;
	name = strcspn(*text + whole + rest, "0123456789");
	unit = ms_of_unit(*text + whole + rest, name);
	if (unit == 0 || thousandths * unit % 1000 != 0)
		return -EINVAL;
	rc = num_parse_len(*text, whole, 0, max_ms / unit, &n);
	if (rc < 0)
		return rc;
	*ret_ms = n * unit + thousandths * unit / 1000;
	*ret_unit = name > 0 ? unit : 0;
	*text += whole + rest + name;
	return 0;
}

int num_parse_seconds(const char *text, uint64_t max_seconds, uint64_t *ret_ms)
{
	uint64_t max_ms = max_seconds * 1000, sum = 0, term, unit, before = UINT64_MAX;

	do {
		int rc = parse_term(&text, max_ms, &term, &unit);

		if (rc < 0)
			return rc;
		/* without a unit it stands alone: "1h30" may mean minutes or seconds */
		if (unit >= before || (unit == 0 && before != UINT64_MAX))
			return -EINVAL;
		if (term > max_ms - sum)
			return -ERANGE;
		sum += term;
		before = unit;
	} while (*text);
	*ret_ms = sum;
	return 0;
}

struct num_text num_seconds(uint64_t ms)
{
	struct num_text ret;
	unsigned long long whole = ms / 1000;
	unsigned rest = (unsigned)(ms % 1000);
	int decimals = rest == 0 ? 0 : rest % 100 == 0 ? 1 : rest % 10 == 0 ? 2 : 3;

	for (int i = decimals; i < 3; i++)
		rest /= 10;
	if (decimals)
		(void)snprintf(ret.text, sizeof ret.text, "%llu.%0*u", whole, decimals, rest);
	else
		(void)snprintf(ret.text, sizeof ret.text, "%llu", whole);
	return ret;
}

struct num_text num_size(uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	struct num_text ret;
	int unit = -1;

	for (uint64_t left = bytes; left >= 1024; left /= 1024)
		unit++;
	if (unit < 0) {
		(void)snprintf(ret.text, sizeof ret.text, "%u byte%s", (unsigned)bytes,
			bytes == 1 ? "" : "s");
	} else {
		unsigned shift = 10 * (unsigned)(unit + 1);
		uint64_t part = bytes & ((UINT64_C(1) << shift) - 1);
		/* thousandths of what may be 60 bits: not all of its bits are needed */
		uint64_t rest = ((part >> (shift - 10)) * 1000 + 512) >> 10;

		(void)snprintf(ret.text, sizeof ret.text, "%.12s %ciB",
			num_seconds((bytes >> shift) * 1000 + rest).text, units[unit]);
	}
	return ret;
}
