/* test_journal_entry.c - entries as journald reads them, and records that come in pieces. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "common/journal_entry.h"

#define BYTES(s) s, sizeof(s) - 1

static const struct field_row {
	const char *says, *value;
	size_t len;
	const char *bytes;
	size_t size;
} fields[] = {
	{ "a text", BYTES("three words here"), BYTES("F=three words here\n") },
	{ "nothing", BYTES(""), BYTES("F=\n") },
	{ "bytes that are no text", BYTES("a\0b\xff="), BYTES("F=a\0b\xff=\n") },
	{ "two lines have their length", BYTES("a\nb"), BYTES("F\n\3\0\0\0\0\0\0\0a\nb\n") },
	{ "an end of line alone", BYTES("\n"), BYTES("F\n\1\0\0\0\0\0\0\0\n\n") },
};

static void test_field(void **state)
{
	const struct field_row *row = *state;
	struct text out = { 0 };

	entry_add(&out, "F", row->value, row->len);
	assert_int_equal(out.len, row->size);
	assert_memory_equal(out.at, row->bytes, row->size);
	text_done(&out);
}

static void test_no_field(void **state)
{
	struct text out = { 0 };

	(void)state;
	entry_add_string(&out, "F", NULL);
	entry_add_string(&out, "F", "");
	entry_add_number(&out, "N", -3);
	assert_string_equal(text_string(&out), "N=-3\n");
	text_done(&out);
}

/* One of each kind, as it was put: "kind|fields|label|text|fd|part". */
static void describe(const struct record *r, struct text *out)
{
	text_printf(out, "%d|", (int)r->kind);
	text_add_bytes(out, r->fields ? r->fields : "", r->fields_len);
	text_add(out, "|");
	text_add_bytes(out, r->label ? r->label : "", r->label_len);
	text_add(out, "|");
	if (r->text_len > 100)
		text_printf(out, "%zu bytes", r->text_len);
	else
		text_add_bytes(out, r->text, r->text_len);
	text_printf(out, "|%d|%u\n", r->fd, r->part);
}

static void put_line(struct text *to, int fd, const char *text, size_t len)
{
	assert_true(records_add_header(to, fd, "[3]: ", BYTES("RANK=3\n")));
	text_add_bytes(to, text, len);
	text_add(to, "\n");
}

static const struct pieces_row {
	const char *says;
	size_t piece;
} pieces[] = {
	{ "byte by byte", 1 },
	{ "in sevens", 7 },
	{ "in large pieces", 60000 },
	{ "all at once", SIZE_MAX },
};

static void test_pieces(void **state)
{
	const struct pieces_row *row = *state;
	struct text entry = { 0 }, all = { 0 }, seen = { 0 };
	struct records r = { .part = 0 };
	char *longest = malloc(2 * ENTRY_TEXT_MAX + 5);

	assert_non_null(longest);
	memset(longest, 'x', 2 * ENTRY_TEXT_MAX + 5);
	entry_add(&entry, "MESSAGE", BYTES("a\nb"));
	records_add_entry(&all, &entry, BYTES("launchd: a\n"));
	put_line(&all, 1, BYTES("one"));
	put_line(&all, 2, longest, 2 * ENTRY_TEXT_MAX + 5);
	put_line(&all, 2, longest, ENTRY_TEXT_MAX);
	put_line(&all, 2, BYTES(""));
	put_line(&all, 2, BYTES("\1\2"));
	text_add(&all, "plain words\n");
	records_add_entry(&all, &entry, "", 0);
	assert_true(records_open(&r));
	for (size_t done = 0; done < all.len;) {
		size_t n = all.len - done < row->piece ? all.len - done : row->piece;
		bool is_whole;

		n = records_take(&r, all.at + done, n, &is_whole);
		assert_true(n > 0);
		if (is_whole && n > 1) { /* not now: the end comes again */
			records_untake(&r, n);
			n = records_take(&r, all.at + done, n, &is_whole);
			assert_true(is_whole);
		}
		done += n;
		if (is_whole) {
			const struct record now = records_now(&r);

			describe(&now, &seen);
			records_next(&r);
		}
	}
	assert_int_equal(r.pending.len, 0);
	assert_int_equal(seen.len,
		sizeof("0|MESSAGE\n01234567a\nb\n||launchd: a\n|2|0\n"
		       "1|RANK=3\n|[3]: |one|1|0\n"
		       "1|RANK=3\n|[3]: |49153 bytes|2|1\n"
		       "1|RANK=3\n|[3]: |49153 bytes|2|2\n"
		       "1|RANK=3\n|[3]: |xxx|2|3\n"
		       "1|RANK=3\n|[3]: |49152 bytes|2|0\n"
		       "1|RANK=3\n|[3]: ||2|0\n"
		       "1|RANK=3\n|[3]: |\1\2|2|0\n"
		       "2|||plain words|2|0\n"
		       "0|MESSAGE\n01234567a\nb\n|||2|0\n") -
			1);
	assert_contains(seen.at + strlen("0|MESSAGE\n") + 8,
		"1|RANK=3\n|[3]: |49153 bytes|2|1\n"
		"1|RANK=3\n|[3]: |49153 bytes|2|2\n"
		"1|RANK=3\n|[3]: |xxx|2|3\n"
		"1|RANK=3\n|[3]: |49152 bytes|2|0\n"
		"1|RANK=3\n|[3]: ||2|0\n"
		"1|RANK=3\n|[3]: |\1\2|2|0\n"
		"2|||plain words|2|0\n");
	records_done(&r);
	text_done(&entry);
	text_done(&all);
	text_done(&seen);
	free(longest);
}

/* It would not fit into what is kept of a record. */
static void test_too_large(void **state)
{
	struct text entry = { 0 }, all = { 0 };
	char *large = calloc(1, RECORDS_ROOM);

	(void)state;
	assert_non_null(large);
	entry_add(&entry, "MESSAGE", large, RECORDS_ROOM);
	records_add_entry(&all, &entry, "", 0);
	assert_int_equal(all.len, 0);
	assert_false(records_add_header(&all, 1, "", large, UINT16_MAX + 1));
	text_done(&entry);
	text_done(&all);
	free(large);
}

TESTS(journal_entry)
{
	struct suite s = { .count = 0 };

	SUITE_ROWS(&s, test_field, fields);
	suite_add(&s, "what is not there is no field", test_no_field, NULL, NULL);
	SUITE_ROWS(&s, test_pieces, pieces);
	suite_add(&s, "a record has a limit", test_too_large, NULL, NULL);
	return suite_run(&s);
}
