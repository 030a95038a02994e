/* shown.h - what a console has shown last. Pure. */
#ifndef LAUNCHD_DAEMON_OUTPUT_CONSOLE_SHOWN_H
#define LAUNCHD_DAEMON_OUTPUT_CONSOLE_SHOWN_H

#include <stddef.h>

struct text;

enum { SHOWN_BYTES = 16 * 1024 };

/* Begins as { 0 }. */
struct console_end {
	size_t len;
	char at[SHOWN_BYTES];
};

/* So much was written; NULL is allowed. */
void shown_add(struct console_end *s, const char *at, size_t len);

/* Adds the last bytes of all. */
void shown_copy(const struct console_end *s, struct text *out);

#endif
