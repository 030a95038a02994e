/* journal_entry.h - entries of systemd's journal, and how they travel to the thread that sends
 * them. Pure.
 *
 * An entry is what the journal's native protocol has in one datagram: "NAME=value\n" for each
 * field, or "NAME\n", the length in 64 bits, the bytes and '\n', so that a value may hold any byte.
 *
 * The way to the output thread is a stream of records, each a whole entry with the line that stderr
 * gets where the journal can't be reached; a line of a worker, whose stream's header is put before
 * it as a prefix; or a plain line of launchd's own. The first byte tells them apart. */
#ifndef LAUNCHD_COMMON_JOURNAL_ENTRY_H
#define LAUNCHD_COMMON_JOURNAL_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "common/text.h"

/* As syslog(3) numbers them. */
enum priority { PRIORITY_ERROR = 3, PRIORITY_WARNING = 4, PRIORITY_NOTICE = 5, PRIORITY_INFO = 6 };

enum {
	ENTRY_TEXT_MAX = 48 * 1024, /* of MESSAGE: longer lines are several entries; journald's
				     * own limit for a line of a stream */
	RECORDS_ROOM = 128 * 1024,  /* more than any record takes */
};

/* Adds a field whose value may hold any byte. */
void entry_add(struct text *out, const char *name, const char *value, size_t len);

/* The same of a string; NULL or "": no field. Of a number. */
void entry_add_string(struct text *out, const char *name, const char *value);
void entry_add_number(struct text *out, const char *name, long long value);

/* Adds a record of an entry; line: what stderr gets instead, whole lines; "": nothing. */
void records_add_entry(struct text *out, const struct text *entry, const char *line, size_t len);

/* Adds what is to stand before each line of a worker's stream (fd 1 or 2): fields go into each
 * entry, label before the line where it goes to the console. False: they are too long. */
bool records_add_header(
	struct text *out, int fd, const char *label, const char *fields, size_t len);

enum record_kind { RECORD_ENTRY, RECORD_LINE, RECORD_PLAIN };

/* One record, or one part of a long line; what it points to is the reader's until records_next().
 */
struct record {
	enum record_kind kind;
	const char *fields; /* ENTRY: the entry; LINE: its stream's */
	size_t fields_len;
	const char *text; /* ENTRY: for stderr; else the line without its '\n' */
	size_t text_len;
	const char *label; /* LINE */
	size_t label_len;
	int fd;        /* where it goes to without the journal: 1 or 2 */
	unsigned part; /* of a line that is longer than ENTRY_TEXT_MAX: 1, 2, ...; 0: all of it */
};

/* Reads them from bytes that come in pieces. { 0 } is a new one, without memory. */
struct records {
	struct text pending; /* the record that is not whole yet */
	unsigned part;       /* how many parts of this line are out */
};

/* Takes memory for any record. False: there is none. */
bool records_open(struct records *r);

/* Takes bytes up to the end of a record: how many. *ret_whole: records_now() has it. */
size_t records_take(struct records *r, const char *at, size_t len, bool *ret_whole);

/* Gives the last n bytes back: they come again. */
void records_untake(struct records *r, size_t n);

/* The record that is whole. */
struct record records_now(const struct records *r);

/* It is where it goes to. */
void records_next(struct records *r);

void records_done(struct records *r);

#endif
