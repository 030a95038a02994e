/* journal_entry.c - see journal_entry.h */
#include "common/journal_entry.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum { MARK_ENTRY = 1, MARK_LINE = 2 };

/* What stands before a record; the lengths are this machine's. */
struct entry_head {
	uint32_t entry, line;
};

struct line_head {
	uint16_t label, fields, fd;
};

void entry_add(struct text *out, const char *name, const char *value, size_t len)
{
	uint64_t size = htole64(len);

	text_add(out, name);
	if (memchr(value, '\n', len)) {
		text_add(out, "\n");
		text_add_bytes(out, (const char *)&size, sizeof size);
	} else {
		text_add(out, "=");
	}
	text_add_bytes(out, value, len);
	text_add(out, "\n");
}

void entry_add_string(struct text *out, const char *name, const char *value)
{
	if (value && *value)
		entry_add(out, name, value, strlen(value));
}

void entry_add_number(struct text *out, const char *name, long long value)
{
	text_printf(out, "%s=%lld\n", name, value);
}

void records_add_entry(struct text *out, const struct text *entry, const char *line, size_t len)
{
	const struct entry_head head = { (uint32_t)entry->len, (uint32_t)len };
	const char mark = MARK_ENTRY;
	size_t size = sizeof mark + sizeof head + entry->len + len;

	if (entry->failed || size > RECORDS_ROOM)
		return;
	text_add_bytes(out, &mark, sizeof mark);
	text_add_bytes(out, (const char *)&head, sizeof head);
	text_add_bytes(out, text_string(entry), entry->len);
	text_add_bytes(out, line, len);
}

bool records_add_header(struct text *out, int fd, const char *label, const char *fields, size_t len)
{
	size_t label_len = strlen(label);
	const struct line_head head = { (uint16_t)label_len, (uint16_t)len, (uint16_t)fd };
	const char mark = MARK_LINE;

	if (label_len > UINT16_MAX || len > UINT16_MAX)
		return false;
	text_add_bytes(out, &mark, sizeof mark);
	text_add_bytes(out, (const char *)&head, sizeof head);
	text_add_bytes(out, label, label_len);
	text_add_bytes(out, fields, len);
	return !out->failed;
}

bool records_open(struct records *r)
{
	static const char zeros[4096];

	while (r->pending.len < RECORDS_ROOM && !r->pending.failed)
		text_add_bytes(&r->pending, zeros, sizeof zeros);
	r->pending.len = 0;
	return !r->pending.failed;
}

static struct entry_head entry_head(const struct records *r)
{
	struct entry_head head;

	memcpy(&head, r->pending.at + 1, sizeof head);
	return head;
}

static struct line_head line_head(const struct records *r)
{
	struct line_head head;

	memcpy(&head, r->pending.at + 1, sizeof head);
	return head;
}

static enum record_kind kind_of(const struct records *r)
{
	return r->pending.at[0] == MARK_ENTRY ? RECORD_ENTRY :
		r->pending.at[0] == MARK_LINE ? RECORD_LINE :
						RECORD_PLAIN;
}

/* As many of the record's first bytes as are known to be there: of an entry, in the end, all; of a
 * line those before its text. */
static size_t fixed(const struct records *r)
{
	size_t has = r->pending.len;

	if (has == 0)
		return 1;
	switch (kind_of(r)) {
	case RECORD_ENTRY:
		if (has < 1 + sizeof(struct entry_head))
			return 1 + sizeof(struct entry_head);
		return 1 + sizeof(struct entry_head) + (size_t)entry_head(r).entry +
			entry_head(r).line;
	case RECORD_LINE:
		if (has < 1 + sizeof(struct line_head))
			return 1 + sizeof(struct line_head);
		return 1 + sizeof(struct line_head) + (size_t)line_head(r).label +
			line_head(r).fields;
	case RECORD_PLAIN:
		break;
	}
	return 0;
}

static bool has_end(const struct records *r)
{
	return r->pending.len > 0 && r->pending.at[r->pending.len - 1] == '\n';
}

/* A line's text is as long as one entry may be. */
static size_t room(const struct records *r)
{
	return ENTRY_TEXT_MAX + 1 - (r->pending.len - fixed(r));
}

static bool is_whole(const struct records *r)
{
	size_t first = fixed(r);

	if (r->pending.len < first || r->pending.len == 0)
		return false;
	if (kind_of(r) == RECORD_ENTRY)
		return r->pending.len >= 1 + sizeof(struct entry_head);
	return (r->pending.len > first && has_end(r)) || room(r) == 0;
}

size_t records_take(struct records *r, const char *at, size_t len, bool *ret_whole)
{
	size_t taken = 0;

	*ret_whole = false;
	while (taken < len && !*ret_whole) {
		size_t first = fixed(r), n = len - taken;
		const char *newline;

		if (r->pending.len < first) {
			n = n < first - r->pending.len ? n : first - r->pending.len;
		} else {
			n = n < room(r) ? n : room(r);
			newline = memchr(at + taken, '\n', n);
			n = newline ? (size_t)(newline + 1 - (at + taken)) : n;
		}
		text_add_bytes(&r->pending, at + taken, n);
		taken += n;
		*ret_whole = is_whole(r);
	}
	return taken;
}

void records_untake(struct records *r, size_t n)
{
	r->pending.len -= n;
}

struct record records_now(const struct records *r)
{
	const char *at = r->pending.at;
	size_t first = fixed(r);
	struct record ret = { .kind = kind_of(r), .fd = 2 };

	if (ret.kind == RECORD_ENTRY) {
		ret.fields = at + 1 + sizeof(struct entry_head);
		ret.fields_len = entry_head(r).entry;
		ret.text = ret.fields + ret.fields_len;
		ret.text_len = entry_head(r).line;
		return ret;
	}
	ret.text = at + first;
	ret.text_len = r->pending.len - first - has_end(r);
	if (ret.kind == RECORD_LINE) {
		ret.fd = line_head(r).fd;
		ret.label = at + 1 + sizeof(struct line_head);
		ret.label_len = line_head(r).label;
		ret.fields = ret.label + ret.label_len;
		ret.fields_len = line_head(r).fields;
		ret.part = has_end(r) && r->part == 0 ? 0 : r->part + 1;
	}
	return ret;
}

void records_next(struct records *r)
{
	bool goes_on = kind_of(r) == RECORD_LINE && !has_end(r);

	r->part = goes_on ? r->part + 1 : 0;
	r->pending.len = goes_on ? fixed(r) : 0;
}

void records_done(struct records *r)
{
	text_done(&r->pending);
	r->part = 0;
}
