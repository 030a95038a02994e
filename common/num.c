/* num.c - see num.h */
#include "common/num.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int num_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	if (!*text || text[strspn(text, "0123456789")])
		return -EINVAL;
	for (; *text; text++) {
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

int num_parse_seconds(const char *text, uint64_t max_seconds, uint64_t *ret_ms)
{
	static const uint64_t ms_of_digit[] = { 100, 10, 1 };
	size_t whole = strspn(text, "0123456789");
	char digits[24];
	uint64_t n, ms = 0;
	int rc;

	if (whole == 0 || whole >= sizeof digits)
		return -EINVAL;
	memcpy(digits, text, whole);
	digits[whole] = '\0';
	if (text[whole] == '.') {
		const char *decimals = text + whole + 1;
		size_t len = strspn(decimals, "0123456789");

		if (len == 0 || len > 3 || decimals[len])
			return -EINVAL;
		for (size_t i = 0; i < len; i++)
			ms += ms_of_digit[i] * (uint64_t)(decimals[i] - '0');
	} else if (text[whole]) {
		return -EINVAL;
	}
	rc = num_parse(digits, 0, max_seconds, &n);
	if (rc < 0)
		return rc;
	n = n * 1000 + ms;
	if (n > max_seconds * 1000)
		return -ERANGE;
	*ret_ms = n;
	return 0;
}

void num_print_seconds(uint64_t ms, char ret[NUM_SECONDS_SIZE])
{
	unsigned long long whole = ms / 1000;
	unsigned rest = (unsigned)(ms % 1000);
	int decimals = rest == 0 ? 0 : rest % 100 == 0 ? 1 : rest % 10 == 0 ? 2 : 3;

	for (int i = decimals; i < 3; i++)
		rest /= 10;
	if (decimals)
		(void)snprintf(ret, NUM_SECONDS_SIZE, "%llu.%0*u", whole, decimals, rest);
	else
		(void)snprintf(ret, NUM_SECONDS_SIZE, "%llu", whole);
}
