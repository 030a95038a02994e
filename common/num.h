/* num.h - strict numbers: the whole text must be the number, and in range.
 * strtoul(3) takes signs, blanks and "12abc"; a launcher that takes them starts the wrong job. */
#ifndef LAUNCHD_COMMON_NUM_H
#define LAUNCHD_COMMON_NUM_H

#include <stddef.h>
#include <stdint.h>

/* Decimal digits only. -EINVAL: not a number; -ERANGE: outside min..max. *ret is untouched then. */
int num_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* The same of the len bytes at text. */
int num_parse_len(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret);

/* A time with at most three decimals as milliseconds: seconds ("30", "0.5"), or another unit
 * ("500ms", "90s", "5m", "5min", "1.5h", "2d"), or several of them, the longest first ("1h30m"):
 * then each has its unit. Errors as num_parse(). */
int num_parse_seconds(const char *text, uint64_t max_seconds, uint64_t *ret_ms);

/* A number with at most three decimals ("2", "0.25") as thousandths. Errors as num_parse(). */
int num_parse_thousandths(const char *text, uint64_t max, uint64_t *ret);

/* The other way: "30", "0.25". To be used at once: num_seconds(ms).text in a printf's list. */
struct num_text {
	char text[24];
};
struct num_text num_seconds(uint64_t ms);

/* "512 bytes", "2 GiB", "1.5 GiB": rounded to three decimals. */
struct num_text num_size(uint64_t bytes);

#endif
