/* fuzz_ini.c - INI files. A reader of its own, written apart from config/ini.c, says for each value
 * what its line holds, and a list's what the lines that go on with it hold: nothing may be cut,
 * joined, or taken from another line. Where all failures
 * are wanted, the first of them is the one that else ends the reading. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/name.h"
#include "config/sources.h"

struct span {
	const char *at;
	size_t len;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct span trimmed(struct span s)
{
	while (s.len > 0 && is_blank(s.at[s.len - 1]))
		s.len--;
	while (s.len > 0 && is_blank(*s.at)) {
		s.at++;
		s.len--;
	}
	return s;
}

/* Line n, from 1, without its end and the blanks around. */
static struct span line_of(const char *bytes, size_t len, unsigned n)
{
	const char *end = bytes + len;
	struct span s;

	if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
		bytes += 3;
	while (n > 1) {
		bytes = memchr(bytes, '\n', (size_t)(end - bytes));
		PROMISE(bytes != NULL);
		bytes++;
		n--;
	}
	s.at = bytes;
	s.len = (size_t)(end - bytes);
	if (memchr(s.at, '\n', s.len))
		s.len = (size_t)((const char *)memchr(s.at, '\n', s.len) - s.at);
	while (s.len > 0 && (s.at[s.len - 1] == '\r' || is_blank(s.at[s.len - 1])))
		s.len--;
	return trimmed(s);
}

/* The two sides of a line's first '='. */
static void sides(struct span line, struct span *ret_key, struct span *ret_value)
{
	const char *equals = memchr(line.at, '=', line.len);
	struct span value;

	PROMISE(equals != NULL);
	*ret_key = trimmed((struct span){ line.at, (size_t)(equals - line.at) });
	value.at = equals + 1;
	value.len = line.len - (size_t)(equals + 1 - line.at);
	for (size_t i = 0; i < value.len; i++) /* a comment */
		if (value.at[i] == ';' && (i > 0 && is_blank(value.at[i - 1]))) {
			value.len = i;
			break;
		}
	*ret_value = trimmed(value);
}

static bool equals_span(const char *text, struct span s)
{
	return strlen(text) == s.len && memcmp(text, s.at, s.len) == 0;
}

static unsigned line_number(const char *where)
{
	unsigned n = 0;

	const char *last = strchr(where, '-'); /* of several lines, the last one is the text */

	if (last)
		PROMISE(sscanf(last, "-%u", &n) == 1 && n > 0);
	else
		PROMISE(sscanf(where, "f.ini:%u", &n) == 1 && n > 0);
	return n;
}

/* Without the blanks that the reader may have put between the parts of a list. */
static bool equals_parts(const char *text, const char *parts)
{
	while (*text || *parts) {
		text += strspn(text, " \t");
		parts += strspn(parts, " \t");
		if (*text != *parts)
			return false;
		text += *text != '\0';
		parts += *parts != '\0';
	}
	return true;
}

/* Whether line n, of a file that was taken, goes on with a list before it. */
static bool goes_on(const char *bytes, size_t len, unsigned n)
{
	struct span line = line_of(bytes, len, n);

	return line.len > 0 && line.at > bytes && is_blank(line.at[-1]) && *line.at != ';' &&
		*line.at != '#' && (*line.at == '-' || !memchr(line.at, '=', line.len)) &&
		(*line.at != '[' || memchr(line.at, ':', line.len));
}

/* Whether the value is what line n and those that go on with it say. */
static bool equals_lines(const char *text, struct span value, const char *bytes, size_t len,
	unsigned n, unsigned lines)
{
	char *parts = malloc(len + 1);
	size_t had = value.len;
	bool equal;

	PROMISE(parts != NULL);
	memcpy(parts, value.at, had);
	for (n++; n <= lines; n++) {
		struct span line = line_of(bytes, len, n);

		if (line.len == 0 || *line.at == ';' || *line.at == '#')
			continue;
		if (!goes_on(bytes, len, n))
			break;
		for (size_t i = 0; i < line.len; i++) {
			if (i > 0 && line.at[i] == ';' && is_blank(line.at[i - 1]))
				break;
			parts[had++] = line.at[i];
		}
	}
	parts[had] = '\0';
	equal = equals_parts(text, parts);
	free(parts);
	return equal;
}

static unsigned lines_of(const char *bytes, size_t len)
{
	unsigned lines = 1;

	for (size_t i = 0; i < len; i++)
		lines += bytes[i] == '\n';
	return lines;
}

/* Every value is what its line says. */
static void check_lines(const struct reading *r, const char *bytes, size_t len)
{
	struct span key, value;

	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct value *v = &r->s.value[id];

		if (v->from.level != LEVEL_FILE)
			continue;
		sides(line_of(bytes, len, line_number(v->from.where)), &key, &value);
		PROMISE(name_equal(settings_key(&setting_rows[id]), key.at, key.len));
		PROMISE(equals_span(v->text, value) ||
			equals_lines(v->text, value, bytes, len, line_number(v->from.where),
				lines_of(bytes, len)));
	}
	for (const struct env_change *c = r->s.env; c; c = c->next) {
		sides(line_of(bytes, len, line_number(c->from.where)), &key, &value);
		if (!c->value) {
			PROMISE(name_equal("unset-env", key.at, key.len));
			continue;
		}
		PROMISE(equals_span(c->name, key));
		PROMISE(equals_span(c->value, value));
	}
}

/* Whether something was read from line n, as the readings tell. */
static bool is_source(const struct reading *r, unsigned n)
{
	char where[32];

	(void)snprintf(where, sizeof where, "f.ini:%u", n);
	for (int id = 0; id < SETTING_COUNT; id++)
		if (r->s.value[id].from.where && strcmp(r->s.value[id].from.where, where) == 0)
			return true;
	for (const struct env_change *c = r->s.env; c; c = c->next)
		if (strcmp(c->from.where, where) == 0)
			return true;
	return false;
}

/* No line that says something is passed over. What unset-env and [env] say of one name replaces
 * each other, and several lines args have one place: files with such are left out. */
static void check_none_lost(const struct reading *r, const char *bytes, size_t len)
{
	for (const struct env_change *c = r->s.env; c; c = c->next)
		if (!c->value)
			return;
	if (r->s.value[SET_ARGS].text && strchr(settings_where(&r->s, SET_ARGS), '-'))
		return;
	for (unsigned n = 1; n <= lines_of(bytes, len); n++) {
		struct span line = line_of(bytes, len, n);

		if (line.len > 0 && !strchr(";#[", *line.at) && !goes_on(bytes, len, n))
			PROMISE(is_source(r, n));
	}
}

static void read_copy(struct reading *r, const char *bytes, size_t len)
{
	char *copy = malloc(len + (len == 0)); /* no NUL behind, no byte too many */

	PROMISE(copy != NULL);
	if (len > 0)
		memcpy(copy, bytes, len);
	r->rc = settings_read_ini(&r->s, copy, len, "f.ini", LEVEL_FILE, &r->why);
	free(copy);
	reading_check(r);
}

/* The number of the line that a failure is about; 0: it is about the whole file. */
static unsigned line_of_failure(const char *text)
{
	unsigned n;

	return sscanf(text, "f.ini:%u:", &n) == 1 ? n : 0;
}

static void check_all(const struct reading *first, const char *bytes, size_t len)
{
	struct failures all = { 0 };
	struct reading r;
	unsigned line = 0;

	reading_init(&r, false);
	all.arena = &r.arena;
	r.why.all = &all;
	read_copy(&r, bytes, len);
	PROMISE(failure_go_on(r.rc, &r.why) || all.texts.count == FAILURES_MAX);
	PROMISE((all.texts.count > 0) == (first->rc < 0));
	PROMISE(all.texts.count == 0 || strcmp(all.texts.at[0], first->why.text) == 0);
	for (size_t i = 0; i < all.texts.count; i++) {
		unsigned n = line_of_failure(all.texts.at[i]);

		PROMISE(n > line || (n == 0 && all.texts.count == 1));
		line = n;
	}
	reading_done(&r);
}

static void read_bytes(struct reading *r, const char *bytes, size_t len)
{
	reading_init(r, false);
	read_copy(r, bytes, len);
	PROMISE(r->rc == 0 || strncmp(r->why.text, "f.ini:", 6) == 0);
	if (r->rc == 0) {
		check_lines(r, bytes, len);
		check_none_lost(r, bytes, len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct reading first, second;

	read_bytes(&first, (const char *)bytes, len);
	read_bytes(&second, (const char *)bytes, len);
	reading_compare(&first, &second);
	check_all(&first, (const char *)bytes, len);
	reading_done(&first);
	reading_done(&second);
	return 0;
}
