/* json.h - one JSON value (RFC 8259), written member by member. Pure.
 *
 * The writer puts the commas, quotes and escapes, and asserts the nesting: what one forgets by hand
 * is in no other place, and a test of valid JSON finds it only where that member is written. */
#ifndef LAUNCHD_COMMON_JSON_H
#define LAUNCHD_COMMON_JSON_H

#include <stdbool.h>
#include <stdint.h>

struct text;
struct vec;

struct json {
	struct text *out;
	unsigned depth;  /* of open objects and arrays */
	uint32_t arrays; /* bit n: the one at depth n + 1 is an array */
	bool filled;     /* the innermost one has a member already, or the value is whole */
	bool new_line;   /* before the next member */
	bool lines;      /* before each object, and each member of the outermost one */
};

/* In all of these key is NULL for an element of an array and for the outermost value. */

void json_object_begin(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array_begin(struct json *j, const char *key);
void json_array_end(struct json *j);

/* Bytes that are not UTF-8 become U+FFFD, as JSON has no way to carry them. NULL is null. */
void json_string(struct json *j, const char *key, const char *value);
void json_bool(struct json *j, const char *key, bool value);
void json_number(struct json *j, const char *key, long long value);

/* A value that is JSON already. */
void json_raw(struct json *j, const char *key, const char *value);

/* A number, or null where it is not known. */
void json_number_if(struct json *j, const char *key, bool known, long long value);

/* value / 10^digits, with so many decimals: 1500 with 3 digits is 1.500. */
void json_decimal(struct json *j, const char *key, uint64_t value, unsigned digits);

/* An array of strings. */
void json_strings(struct json *j, const char *key, const struct vec *list);

/* Begins the next member on a new line, whatever `lines` says. */
void json_line(struct json *j);

#endif
