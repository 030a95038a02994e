/* json.c - see json.h */
#include "common/json.h"

#include <assert.h>

#include "common/text.h"
#include "common/vec.h"

enum { DEPTH_MAX = 32 };

static bool in_array(const struct json *j)
{
	return j->depth > 0 && (j->arrays >> (j->depth - 1) & 1) != 0;
}

/* What comes before a value: a comma, a new line, its key. A key that is missing or too much is a
 * slip of ours, whatever the values are: any test that gets here shows it. */
static void begin(struct json *j, const char *key)
{
	assert(key ? j->depth > 0 && !in_array(j) : j->depth == 0 || in_array(j));
	assert(j->depth > 0 || !j->filled);
	if (j->filled)
		text_add(j->out, ",");
	if (j->new_line || (j->lines && j->depth == 1))
		text_printf(j->out, "\n%*s", (int)j->depth, "");
	j->filled = true;
	j->new_line = false;
	if (key) {
		text_add_json(j->out, key);
		text_add(j->out, ":");
	}
}

static void open(struct json *j, const char *key, bool array)
{
	j->new_line |= j->lines && !array && j->depth > 0;
	begin(j, key);
	assert(j->depth < DEPTH_MAX);
	text_add(j->out, array ? "[" : "{");
	j->arrays = (j->arrays & ~(1u << j->depth)) | (uint32_t)array << j->depth;
	j->depth++;
	j->filled = false;
}

static void close(struct json *j, bool array)
{
	assert(j->depth > 0 && in_array(j) == array);
	text_add(j->out, array ? "]" : "}");
	j->depth--;
	j->filled = true;
	j->new_line = false;
}

void json_object_begin(struct json *j, const char *key)
{
	open(j, key, false);
}

void json_object_end(struct json *j)
{
	close(j, false);
}

void json_array_begin(struct json *j, const char *key)
{
	open(j, key, true);
}

void json_array_end(struct json *j)
{
	close(j, true);
}

void json_string(struct json *j, const char *key, const char *value)
{
	begin(j, key);
	text_add_json(j->out, value);
}

void json_raw(struct json *j, const char *key, const char *value)
{
	begin(j, key);
	text_add(j->out, value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	text_add(j->out, value ? "true" : "false");
}

void json_number(struct json *j, const char *key, long long value)
{
	begin(j, key);
	text_printf(j->out, "%lld", value);
}

void json_number_if(struct json *j, const char *key, bool known, long long value)
{
	if (known)
		json_number(j, key, value);
	else
		json_string(j, key, NULL);
}

void json_decimal(struct json *j, const char *key, uint64_t value, unsigned digits)
{
	uint64_t unit = 1;

	for (unsigned i = 0; i < digits; i++)
		unit *= 10;
	begin(j, key);
	text_printf(j->out, "%llu.%0*llu", (unsigned long long)(value / unit), (int)digits,
		(unsigned long long)(value % unit));
}

void json_strings(struct json *j, const char *key, const struct vec *list)
{
	json_array_begin(j, key);
	for (size_t i = 0; i < list->count; i++)
		json_string(j, NULL, list->at[i]);
	json_array_end(j);
}

void json_line(struct json *j)
{
	j->new_line = true;
}
