/* step_source.c - see step_source.h */
#include "daemon/plan/step_source.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "common/failure.h"
#include "common/text.h"

static const char file_prefix[] = "file:";

static bool is_path(const char *text)
{
	return *text == '/' || strncmp(text, "./", 2) == 0 || strncmp(text, "../", 3) == 0;
}

/* glibc knows them though POSIX's extended expressions don't, and may take ages with them. */
static bool has_back_reference(const char *expression)
{
	for (const char *p = expression; *p; p++)
		if (*p == '\\' && *++p >= '1' && *p <= '9')
			return true;
		else if (!*p)
			return false;
	return false;
}

/* A backslash and a letter, which POSIX takes for two characters in brackets. */
static bool is_class(const char *at)
{
	return at[0] == '\\' && isalpha((unsigned char)at[1]);
}

/* Adds the expression as POSIX has it: who knows Python's writes \d, which is the letter d there.
 * False: it has a class in brackets that can't be said so. */
static bool add_posix(const char *expression, struct text *out)
{
	const char *bracket = NULL; /* what is in it begins here */

	for (const char *p = expression; *p; p++) {
		if (is_class(p) && (p[1] == 'd' || (p[1] == 'D' && !bracket))) {
			text_add(out, bracket ? "0-9" : p[1] == 'd' ? "[0-9]" : "[^0-9]");
			p++;
		} else if (bracket && is_class(p)) {
			return false;
		} else if (bracket && strncmp(p, "[:", 2) == 0 && strstr(p, ":]")) {
			size_t len = (size_t)(strstr(p, ":]") + 2 - p); /* [:alpha:] */

			text_add_bytes(out, p, len);
			p += len - 1;
		} else {
			if (!bracket && *p == '[')
				bracket = p + (p[1] == '^' ? 2 : 1);
			else if (*p == ']' && p != bracket)
				bracket = NULL;
			text_add_bytes(out, p, 1);
			if (!bracket && *p == '\\' && p[1])
				text_add_bytes(out, ++p, 1);
		}
	}
	return true;
}

int progress_compile(const char *expression, const char *where, regex_t *ret, struct failure *why)
{
	struct text posix = { 0 };
	char text[128];
	size_t groups;
	int rc;

	if (has_back_reference(expression))
		return failure_usage(why,
			"%s: \"%s\" has a back-reference, which can't be used here", where,
			expression);
	if (!add_posix(expression, &posix)) {
		text_done(&posix);
		return failure_usage(why, "%s: \"%s\": in [ ] of all classes only \\d can be used",
			where, expression);
	}
	rc = posix.failed ? REG_ESPACE : regcomp(ret, text_string(&posix), REG_EXTENDED);
	text_done(&posix);
	if (rc == REG_ESPACE)
		return failure_oom(why);
	if (rc != 0) {
		(void)regerror(rc, ret, text, sizeof text);
		return failure_usage(why,
			"%s: \"%s\" is no extended regular expression (%s); a file is given as "
			"file:PATH",
			where, expression, text);
	}
	groups = ret->re_nsub;
	if (groups == 1)
		return 0;
	regfree(ret);
	return failure_usage(why,
		"%s: \"%s\" has %zu groups: it must have one, ( ), which the step's number is in, as "
		"in \"step ([0-9]+)\"; a file is given as file:PATH",
		where, expression, groups);
}

int progress_parse(
	const char *text, const char *where, struct progress_plan *ret, struct failure *why)
{
	const size_t prefix = sizeof file_prefix - 1;
	regex_t expression;
	int rc;

	if (strcmp(text, "none") == 0) {
		*ret = (struct progress_plan){ PROGRESS_NONE, NULL };
	} else if (strcmp(text, "notify") == 0) {
		*ret = (struct progress_plan){ PROGRESS_NOTIFY, NULL };
	} else if (strncmp(text, file_prefix, prefix) == 0 || is_path(text)) {
		const char *path = is_path(text) ? text : text + prefix;

		if (!*path)
			return failure_usage(why, "%s: \"%s\" has no path", where, text);
		*ret = (struct progress_plan){ PROGRESS_FILE, path };
	} else {
		rc = progress_compile(text, where, &expression, why);
		if (rc < 0)
			return rc;
		regfree(&expression);
		*ret = (struct progress_plan){ PROGRESS_LINES, text };
	}
	return 0;
}

/* Digits alone, all of these; false: none, or too many. */
static bool number(const char *at, size_t len, uint64_t *ret)
{
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (at[i] < '0' || at[i] > '9' || n > (INT64_MAX - 9) / 10)
			return false;
		n = n * 10 + (uint64_t)(at[i] - '0');
	}
	if (len > 0)
		*ret = n;
	return len > 0;
}

bool progress_in_line(const regex_t *expression, const char *line, uint64_t *ret)
{
	regmatch_t m[2];

	return regexec(expression, line, 2, m, 0) == 0 && m[1].rm_so >= 0 &&
		number(line + m[1].rm_so, (size_t)(m[1].rm_eo - m[1].rm_so), ret);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool progress_in_file(const char *at, size_t len, uint64_t *ret)
{
	size_t begin = 0, end;

	while (begin < len && !is_digit(at[begin]))
		begin++;
	for (end = begin; end < len && is_digit(at[end]);)
		end++;
	return number(at + begin, end - begin, ret);
}

enum progress_news progress_in_datagram(const char *at, size_t len, uint64_t *ret_step)
{
	static const char step[] = "STEP=", alive[] = "WATCHDOG=1";
	enum progress_news news = PROGRESS_NO_NEWS;
	const char *end = at + len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t line = (size_t)((newline ? newline : end) - at);

		if (line > sizeof step - 1 && memcmp(at, step, sizeof step - 1) == 0 &&
			number(at + sizeof step - 1, line - (sizeof step - 1), ret_step))
			return PROGRESS_STEP;
		if (line == sizeof alive - 1 && memcmp(at, alive, line) == 0)
			news = PROGRESS_ALIVE;
		at += line + 1;
	}
	return news;
}
