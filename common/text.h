/* text.h - a text that grows: reports, plans, help. Pure: whoever made it writes it out.
 *
 * Failure is sticky: out of memory stops the text where it is, text_failed() tells. */
#ifndef LAUNCHD_COMMON_TEXT_H
#define LAUNCHD_COMMON_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct text {
	char *at; /* NUL-terminated; NULL while empty: see text_string() */
	size_t len, room;
	bool failed;
};

void text_add(struct text *t, const char *s);
void text_add_bytes(struct text *t, const char *s, size_t len);
__attribute__((format(printf, 2, 3))) void text_printf(struct text *t, const char *fmt, ...);
__attribute__((format(printf, 2, 0))) void text_vprintf(
	struct text *t, const char *fmt, va_list ap);

/* Adds s so that a POSIX shell reads it back as one word; plain words stay plain. Control
 * characters are written as $'\n' writes them, so that a word never breaks a line. */
void text_add_shell(struct text *t, const char *s);

/* Adds len bytes of s so that a terminal shows them and obeys none: a tab as blanks, other control
 * characters and bytes that are not UTF-8 as \x1b. A last character that is cut is dropped. */
void text_add_shown(struct text *t, const char *s, size_t len);

/* Adds s as a JSON string with its quotes (RFC 8259). Bytes that are not UTF-8 become U+FFFD:
 * JSON has no way to carry them. NULL becomes null. */
void text_add_json(struct text *t, const char *s);

/* Adds s as a label's value of Prometheus' text format, with its quotes: of that a backslash, a
 * quote and a newline are escaped, and nothing else is. Bytes that are not UTF-8 become U+FFFD. */
void text_add_label(struct text *t, const char *s);

/* Adds s word by word, breaking lines before column `width`; every line but the first begins with
 * `indent` blanks. `column` is where the first word begins. */
void text_add_wrapped(struct text *t, const char *s, size_t column, size_t indent, size_t width);

/* How many of the first len bytes of s are whole characters (UTF-8); s has more than len. */
size_t text_whole(const char *s, size_t len);

/* Copies s to ret, which has room for that many bytes with its NUL. Of one that is too long the
 * middle is left out, in whole characters: "/scratch/a...z/logs". room: at least 16. */
void text_fit(char *ret, size_t room, const char *s);

/* Takes the first len bytes away. */
void text_drop(struct text *t, size_t len);

/* Never NULL; valid until the next addition. */
const char *text_string(const struct text *t);

/* Frees the text; it is empty again. */
void text_done(struct text *t);

#endif
