/* json.h - a strict reader of JSON (RFC 8259), written apart from the writer that it judges. */
#ifndef LAUNCHD_TESTS_UNIT_JSON_H
#define LAUNCHD_TESTS_UNIT_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the len bytes are one JSON value in valid UTF-8 with nothing but blanks around it.
 * Control characters inside strings, DEL too, must be escaped. */
bool json_is_valid(const char *bytes, size_t len);

/* The text of the JSON string at `bytes` (its quotes included), with escapes below U+0080 undone,
 * into ret of `size` bytes. -1: it is none, or does not fit. Other escapes stay as written. */
long json_unquote(const char *bytes, size_t len, char *ret, size_t size);

#endif
