/* console_fixture.h - a console, its reader, and what is shown there: what the tests of consoles
 * share.
 */
#ifndef LAUNCHD_TESTS_UNIT_DAEMON_OUTPUT_CONSOLE_FIXTURE_H
#define LAUNCHD_TESTS_UNIT_DAEMON_OUTPUT_CONSOLE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "common/text.h"
#include "daemon/output/console/console.h"

enum { FEED_LINE = 1000 };

/* A source whose lines are "NAME0...\n", "NAME1...\n" and so on. */
struct feed {
	struct source source;
	char name;
	unsigned lines, done; /* to show, and shown */
	unsigned pulls, cuts;
	bool begun; /* it has a line open, by hand */
};

struct fixture {
	uv_loop_t loop;
	uv_timer_t guard;
	struct console c;
	int write_end, read_end;
	struct text got;
};

enum fixture_kind { KIND_PIPE, KIND_SOCKET, KIND_PTY, KIND_FILE };

/* The loop without the console; it aborts when the test hangs. */
void fixture_loop(struct fixture *b);

/* A console of that kind, and who could read it. */
void console_fixture_make(struct fixture *b, enum fixture_kind kind);

/* A console that is this file; to be set up before. */
void console_fixture_open(struct fixture *b, int fd);

void console_fixture_done(struct fixture *b);

/* Adds what is there to read now. */
void fixture_read(struct fixture *b);

/* Reads what is there, and compares all that was. */
void fixture_assert_got(struct fixture *b, const char *expected);

/* Without a reader. */
void fixture_flush(struct fixture *b);

/* Reads until all is written. */
void fixture_read_all(struct fixture *b);

/* Fills the pipe, which nobody reads. Returns how much went in. */
size_t fixture_fill(struct fixture *b, struct feed *f);

struct feed feed_of(char name, unsigned lines);

/* Puts that text; false: the console has no room for this source. */
bool feed_put(struct fixture *b, struct feed *f, const char *text, bool open);

void outbuf_add(struct outbuf *out, const char *text);

#endif
