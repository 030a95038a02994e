/* say.c - see say.h */
#include "daemon/observe/say.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/patience.h"
#include "common/text.h"
#include "common/utc.h"
#include "daemon/observe/saying.h"
#include "daemon/os/rehearsal.h"
#include "daemon/os/replace.h"

/* How this process speaks: it has one stderr. */
static struct {
	bool json, mid_line, given_up;
	int64_t patience_ms;
	_Atomic int64_t node; /* known while the output thread speaks, too; -1: not yet */
	void (*write)(void *owner, const char *bytes, size_t len);
	void *owner;
	bool (*first)(void *owner, const char *bytes, size_t len);
	void *first_owner;
} voice = { .patience_ms = PATIENCE_MOST_MS, .node = -1 };

static struct saying saying_now(void)
{
	int64_t node = voice.node;

	return (struct saying){
		.wall_ns = utc_now_ns(),
		.node_known = node >= 0,
		.node = node >= 0 ? (unsigned)node : 0,
	};
}

static int write_patiently(int fd, const char *at, size_t len)
{
	char path[PATH_MAX];

	return file_is_far(fd, path) ? far_write(fd, at, len, voice.patience_ms) :
				       patience_write(fd, at, len, voice.patience_ms);
}

/* A terminal that is stopped, a pipe without a reader, or a file system that hangs, holds up
 * neither start nor end. */
static void write_out(const char *at, size_t len)
{
	if (!voice.given_up)
		voice.given_up = write_patiently(STDERR_FILENO, at, len) < 0;
}

/* Half a line of JSON is none: what memory has not sufficed for is not said. */
static void utter(struct text *lines)
{
	if (lines->len > 0 && !(voice.json && lines->failed) &&
		!(voice.first && voice.first(voice.first_owner, text_string(lines), lines->len))) {
		if (voice.mid_line) { /* set when no other thread speaks any more */
			write_out("\n", 1);
			voice.mid_line = false;
		}
		if (voice.write)
			voice.write(voice.owner, text_string(lines), lines->len);
		else
			write_out(text_string(lines), lines->len);
	}
	text_done(lines);
}

void say_text(struct text *lines)
{
	const struct saying now = saying_now();
	struct text json = { 0 };

	if (!voice.json) {
		utter(lines);
		return;
	}
	saying_add_lines(&json, &now, text_string(lines), lines->len);
	text_done(lines);
	utter(&json);
}

void say(const char *level, const char *line)
{
	const struct saying now = saying_now();
	struct text whole = { 0 };

	if (voice.json)
		saying_add(&whole, &now, level, line);
	else
		text_printf(&whole, "launchd: %s: %s\n", level, line);
	utter(&whole);
}

void say_patience(int64_t ms)
{
	voice.patience_ms = ms;
	voice.given_up = ms == 0;
}

void say_raw(const char *at, size_t len)
{
	write_out(at, len);
}

void say_mid_line(void)
{
	voice.mid_line = true;
}

void say_json(void)
{
	voice.json = true;
}

void say_node(unsigned node_rank)
{
	voice.node = node_rank;
}

void say_through(void (*write)(void *owner, const char *bytes, size_t len), void *owner)
{
	voice.write = write;
	voice.owner = owner;
}

void say_first_to(bool (*first)(void *owner, const char *bytes, size_t len), void *owner)
{
	voice.first = first;
	voice.first_owner = owner;
}

int print_text(struct text *out)
{
	int rc = out->failed ? 1 : fd_write_all(STDOUT_FILENO, text_string(out), out->len) < 0;

	if (rc)
		say("error", out->failed ? "out of memory" : "can't write to standard output");
	text_done(out);
	return rc;
}
