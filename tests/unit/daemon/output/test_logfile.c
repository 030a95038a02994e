/* test_logfile.c - log files: appended to, rotated at ends of lines, opened again, and read back
 * byte for byte. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/output/logfile.h"
#include "tests/unit/daemon/output/scratch_dir.h"

#define STAMP "1970-01-01T00:00:00.000Z "

enum { PIECES = 6, FILES = 4, TEXT_LEN = 1500, KEEP_ALL = 1000 };

static const struct logfile_style plain, stamped = { .stamped = true };

static void make(struct logfile *f, const struct logfile_style *style)
{
	struct failure why = { 0 };

	scratch_clear();
	assert_int_equal(logfile_open(f, "log", style, &why), 0);
	f->reads_back = true;
}

static size_t say(struct logfile *f, const char *text)
{
	return logfile_write(f, text, strlen(text), 0).len;
}

static void put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

/* What is in which file when all is written. */
static const struct write_row {
	const char *says;
	struct logfile_style style;
	const char *pieces[PIECES];
	const char *files[FILES]; /* log, log.1, log.2, log.3 */
} writes[] = {
	{ "bytes are appended as they are", { 0 }, { "a\n\r", "b\xff" }, { "a\n\rb\xff" } },
	{ "a file of exactly the limit", { 6, 2, false }, { "ab\n", "cd\n" }, { "ab\ncd\n" } },
	{ "a line that would go beyond it", { 5, 2, false }, { "ab\n", "cd\n" },
		{ "cd\n", "ab\n" } },
	{ "several rotations in one write", { 3, 2, false }, { "ab\ncd\nef\n" },
		{ "ef\n", "cd\n", "ab\n" } },
	{ "only some stay", { 3, 2, false }, { "ab\ncd\nef\ngh\n" }, { "gh\n", "ef\n", "cd\n" } },
	{ "only one stays", { 3, 1, false }, { "ab\ncd\nef\ngh\n" }, { "gh\n", "ef\n" } },
	{ "a line longer than a file has one alone", { 4, 3, false }, { "ab\nlonger\ncd\n" },
		{ "cd\n", "longer\n", "ab\n" } },
	{ "a line longer than a file is the first", { 4, 3, false }, { "longer\ncd\n" },
		{ "cd\n", "longer\n" } },
	{ "a line in pieces is not divided", { 4, 3, false }, { "ab", "cd", "ef", "\ngh\n" },
		{ "gh\n", "abcdef\n" } },
	{ "nor one that began in time", { 6, 3, false }, { "abc\nd", "efghi", "\nx" },
		{ "x", "abc\ndefghi\n" } },
	{ "a progress bar is, where it goes back", { 4, 3, false },
		{ "a 1", "\ra 2", "\ra 3\n", "b\n" }, { "b\n", "\ra 3\n", "a 1\ra 2" } },
	{ "or has gone back", { 4, 3, false }, { "a 1\r", "a 2\r", "\nb\n" },
		{ "b\n", "a 2\r\n", "a 1\r" } },
	{ "in the middle of a piece", { 4, 3, false }, { "a 1b 1", "c 2\rd 3\n" },
		{ "\rd 3\n", "a 1b 1c 2" } },
	{ "only the line that has begun", { 4, 3, false }, { "abcde", "x\nfoo\nb\rz\n" },
		{ "b\rz\n", "foo\n", "abcdex\n" } },
	{ "an end of line is not", { 4, 3, false }, { "ab", "cdef", "gh\r\n", "x" },
		{ "x", "abcdefgh\r\n" } },
	{ "empty lines", { 2, 3, false }, { "\n\n\n\n\n" }, { "\n", "\n\n", "\n\n" } },
	{ "a last line without an end", { 4, 3, false }, { "ab\ncd" }, { "cd", "ab\n" } },
	{ "lines with stamps", { .stamped = true }, { "a\nb", "c\n", "\n", "d" },
		{ STAMP "a\n" STAMP "bc\n" STAMP "\n" STAMP "d" } },
	{ "stamps count", { 53, 2, true }, { "a\nb\n" }, { STAMP "b\n", STAMP "a\n" } },
	{ "stamps just fit", { 54, 2, true }, { "a\nb\n" }, { STAMP "a\n" STAMP "b\n" } },
	{ "a stamped line in pieces is not divided", { 30, 2, true }, { "abc", "defg", "h\ni" },
		{ STAMP "i", STAMP "abcdefgh\n" } },
};

static void test_write(void **state)
{
	static const char *const names[FILES] = { "log", "log.1", "log.2", "log.3" };
	const struct write_row *row = *state;
	struct logfile f;

	make(&f, &row->style);
	for (size_t i = 0; i < PIECES && row->pieces[i]; i++)
		assert_int_equal(say(&f, row->pieces[i]), strlen(row->pieces[i]));
	logfile_close(&f);
	for (size_t i = 0; i < FILES; i++)
		assert_file(names[i], row->files[i]);
}

/* A text of lines, and where each of its bytes is. */
struct page {
	char text[TEXT_LEN];
	struct logplace place[TEXT_LEN + 1];
};

static void write_page(struct logfile *f, struct page *p, uint64_t *seed, bool reopened)
{
	struct failure why = { 0 };
	unsigned moved = 0;

	for (size_t i = 0; i < TEXT_LEN; i++)
		p->text[i] = draw(seed, 12) == 0 ? '\n' : (char)('a' + draw(seed, 26));
	for (size_t done = 0; done < TEXT_LEN;) {
		size_t len = 1 + draw(seed, 90);
		struct logged w;
		char name[32];

		len = len < TEXT_LEN - done ? len : TEXT_LEN - done;
		w = logfile_write(f, p->text + done, len, (int64_t)draw(seed, 1000000) * 1000000);
		assert_int_equal(w.len, len);
		for (size_t i = 0; i <= len; i++)
			p->place[done + i] = logfile_place(f, &w, p->text + done, i);
		done += len;
		if (!reopened || draw(seed, 4) > 0)
			continue;
		(void)snprintf(name, sizeof name, "moved%u", moved++);
		assert_int_equal(rename("log", name), 0);
		assert_int_equal(logfile_reopen(f, &why), 0);
	}
}

/* Reads all that is behind a place, in pieces. */
static size_t read_all(const struct logfile *f, struct logplace place, char *ret, size_t piece)
{
	size_t len = 0;

	while (place.position < f->now.end) {
		uint64_t gone;
		ssize_t n = logfile_read(f, &place, ret + len, piece, &gone);

		assert_true(n >= 0 && gone == 0);
		len += (size_t)n;
	}
	return len;
}

static const struct read_row {
	const char *says;
	struct logfile_style style;
	bool reopened;
	size_t piece;
} reads[] = {
	{ "one file", { 0 }, false, TEXT_LEN },
	{ "one file, byte by byte", { 0 }, false, 1 },
	{ "over rotations", { 50, KEEP_ALL, false }, false, TEXT_LEN },
	{ "over files that were moved away", { 0 }, true, 17 },
	{ "with stamps", { .stamped = true }, false, TEXT_LEN },
	{ "with stamps, byte by byte", { .stamped = true }, false, 1 },
	{ "with stamps, over rotations", { 200, KEEP_ALL, true }, false, 40 },
	{ "with stamps, over files that were moved away", { .stamped = true }, true, TEXT_LEN },
	{ "with stamps, over both", { 300, KEEP_ALL, true }, true, 7 },
};

static void test_read(void **state)
{
	const struct read_row *row = *state;
	uint64_t seed = 20261121;
	static struct page p;
	static char is[4 * TEXT_LEN];
	struct logfile f;

	make(&f, &row->style);
	write_page(&f, &p, &seed, row->reopened);
	for (size_t i = 0; i <= TEXT_LEN; i++)
		assert_bytes(
			is, read_all(&f, p.place[i], is, row->piece), p.text + i, TEXT_LEN - i);
	logfile_close(&f);
}

static void test_forget(void **state)
{
	const struct logfile_style style = { 3, KEEP_ALL, false };
	size_t before = count_descriptors();
	struct logfile f;

	(void)state;
	make(&f, &style);
	assert_int_equal(say(&f, "ab\ncd\nef\ngh\n"), 12);
	assert_int_equal(count_descriptors(), before + 4);
	logfile_forget(&f, 5); /* somebody is still in the second one */
	assert_int_equal(count_descriptors(), before + 3);
	logfile_forget(&f, f.now.begin);
	assert_int_equal(count_descriptors(), before + 1);
	logfile_close(&f);
	logfile_close(&f);
	assert_int_equal(count_descriptors(), before);
}

static void test_no_reader(void **state)
{
	const struct logfile_style style = { 3, KEEP_ALL, false };
	size_t before = count_descriptors();
	struct logfile f;

	(void)state;
	make(&f, &style);
	f.reads_back = false;
	assert_int_equal(say(&f, "ab\ncd\nef\ngh\n"), 12);
	assert_int_equal(count_descriptors(), before + 1);
	logfile_close(&f);
}

/* More files were made and deleted than the reader has read. */
static void test_gone(void **state)
{
	const struct logfile_style style = { 3, 2, false };
	struct logplace place = { 1, 0, false };
	struct logfile f;
	char is[16];
	uint64_t gone;

	(void)state;
	make(&f, &style);
	assert_int_equal(say(&f, "ab\ncd\nef\ngh\nij\n"), 15);
	assert_int_equal(logfile_read(&f, &place, is, sizeof is, &gone), 0);
	assert_int_equal(gone, 5); /* "b\ncd\n" */
	assert_bytes(is, read_all(&f, place, is, sizeof is), "ef\ngh\nij\n", 9);
	logfile_close(&f);
}

/* logrotate's copytruncate. */
static const struct cut_row {
	const char *says;
	struct logfile_style style;
	const char *before, *after; /* written before the cut, and before the reader looks */
	uint64_t gone;
} cuts[] = {
	{ "the reader looks at once", { 0 }, "aaaa\nbbbb\n", "", 10 },
	{ "the reader looks when more is there", { 0 }, "aaaa\nbbbb\n", "cc\n", 10 },
	{ "the reader looks when all is there again", { 0 }, "aaaa\n", "bbbbbb\ncc\n", 5 },
	{ "a file with stamps, at once", { .stamped = true }, "aaaa\nbbbb\n", "", 60 },
	{ "a file with stamps, later", { .stamped = true }, "aaaa\n", "bbbbbb\ncc\n", 30 },
	{ "a file that is rotated, too", { 1000, 2, false }, "aaaa\nbbbb\n", "cc\n", 10 },
};

static void test_cut(void **state)
{
	const struct cut_row *row = *state;
	struct logplace place = { 0, 0, true };
	struct logfile f;
	uint64_t gone;
	char is[128];

	make(&f, &row->style);
	assert_int_equal(say(&f, row->before), strlen(row->before));
	assert_int_equal(truncate("log", 0), 0);
	assert_int_equal(say(&f, row->after), strlen(row->after));
	assert_int_equal(logfile_read(&f, &place, is, sizeof is, &gone), 0);
	assert_int_equal(gone, row->gone);
	assert_bytes(is, read_all(&f, place, is, sizeof is), row->after, strlen(row->after));
	place = (struct logplace){ f.now.end, 0, true };
	assert_int_equal(say(&f, "later\n"), 6);
	assert_bytes(is, read_all(&f, place, is, sizeof is), "later\n", 6);
	logfile_close(&f);
}

/* The size that counts for the rotation is the file's. */
static void test_cut_size(void **state)
{
	const struct logfile_style style = { 20, 2, false };
	struct logfile f;

	(void)state;
	make(&f, &style);
	assert_int_equal(say(&f, "aaaaaaaaaaaaaaaa\n"), 17);
	assert_int_equal(truncate("log", 0), 0);
	assert_int_equal(say(&f, "cc\n"), 3);
	assert_int_equal(say(&f, "ddddddddddddd\n"), 14);
	assert_int_equal(say(&f, "eeee\n"), 5);
	logfile_close(&f);
	assert_file("log", "eeee\n");
	assert_file("log.1", "cc\nddddddddddddd\n");
}

static void test_unreadable(void **state)
{
	struct logplace place = { 0, 0, true };
	struct failure why = { 0 };
	struct logfile f;
	uint64_t gone;
	char is[8];

	(void)state;
	scratch_clear();
	assert_int_equal(mkfifo("log", 0600), 0);
	assert_int_equal(logfile_open(&f, "log", &plain, &why), 0);
	assert_int_equal(say(&f, "abc\n"), 4);
	assert_int_equal(logfile_read(&f, &place, is, sizeof is, &gone), -ESPIPE);
	assert_int_equal(gone, 4);
	assert_int_equal(place.position, 4);
	logfile_close(&f);
}

/* The disk is full for the second of three writes. */
static const struct full_row {
	const char *says;
	struct logfile_style style;
	const char *first, *second;
	uint64_t limit;
	size_t in; /* of the second */
	const char *file;
} fulls[] = {
	{ "at the begin of a line", { 0 }, "a\n", "bc\n", 2, 0,
		"a\n[launchd: 3 bytes are missing here: File too large]\nend\n" },
	{ "in a line", { 0 }, "a\n", "bc\n", 3, 1,
		"a\nb\n[launchd: 2 bytes are missing here: File too large]\nend\n" },
	{ "in a line that had begun", { 0 }, "a", "bc\n", 1, 0,
		"a\n[launchd: 3 bytes are missing here: File too large]\nend\n" },
	{ "stamped lines are in whole, or not at all", { .stamped = true }, "a\n", "bc\n", 30, 0,
		STAMP "a\n" STAMP "[launchd: 3 bytes are missing here: File too large]\n" STAMP
		      "end\n" },
	{ "in a stamped line that had begun", { .stamped = true }, "a", "bc\n", 27, 0,
		STAMP "a\n" STAMP "[launchd: 3 bytes are missing here: File too large]\n" STAMP
		      "end\n" },
};

static void test_full(void **state)
{
	const struct full_row *row = *state;
	struct logfile f;
	size_t in;

	make(&f, &row->style);
	assert_int_equal(say(&f, row->first), strlen(row->first));
	limit_file_size(row->limit);
	in = say(&f, row->second);
	limit_file_size(0);
	assert_int_equal(in, row->in);
	assert_int_equal(f.missing, strlen(row->second) - in);
	assert_int_equal(f.error, EFBIG);
	assert_int_equal(say(&f, "end\n"), 4);
	assert_int_equal(f.missing, 0);
	assert_int_equal(f.error, 0);
	logfile_close(&f);
	assert_file("log", row->file);
}

/* Little room is not filled with pieces of what is said about it. */
static void test_full_for_words(void **state)
{
	struct logfile f;

	(void)state;
	make(&f, &plain);
	assert_int_equal(say(&f, "0123456789\n"), 11);
	limit_file_size(11);
	assert_int_equal(say(&f, "lost\n"), 0);
	limit_file_size(30);
	assert_int_equal(say(&f, "lost\n"), 0);
	assert_int_equal(say(&f, "lost\n"), 0);
	limit_file_size(0);
	assert_int_equal(f.missing, 15);
	assert_int_equal(say(&f, "end\n"), 4);
	logfile_close(&f);
	assert_file(
		"log", "0123456789\n[launchd: 15 bytes are missing here: File too large]\nend\n");
}

static void test_full_stays(void **state)
{
	struct failure why = { 0 };
	struct logfile f;

	(void)state;
	assert_int_equal(logfile_open(&f, "/dev/full", &plain, &why), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(say(&f, "lost\n"), 0);
		assert_int_equal(f.missing, 5 * i);
		assert_int_equal(f.error, ENOSPC);
	}
	logfile_close(&f);
}

static void test_no_rotation(void **state)
{
	const struct logfile_style style = { 3, 1, false };
	struct logplace place = { 0, 0, true };
	struct logfile f;
	char is[16];

	(void)state;
	make(&f, &style);
	assert_int_equal(mkdir("log.1", 0700), 0); /* no file can take its place, root's neither */
	assert_int_equal(say(&f, "ab\ncd\n"), 6);
	assert_int_equal(say(&f, "ef\n"), 3);
	assert_int_equal(f.missing, 0);
	assert_bytes(is, read_all(&f, place, is, sizeof is), "ab\ncd\nef\n", 9);
	assert_file("log", "ab\ncd\nef\n");
	assert_int_equal(rmdir("log.1"), 0);
	assert_int_equal(say(&f, "gh\n"), 3);
	logfile_close(&f);
	assert_file("log", "gh\n");
	assert_file("log.1", "ab\ncd\nef\n");
}

/* Without a descriptor for the new file no byte is lost. */
static void test_no_descriptor(void **state)
{
	const struct logfile_style style = { 3, 3, false };
	struct logfile f;
	struct text is = { 0 };
	size_t in = 0;

	(void)state;
	make(&f, &style);
	assert_int_equal(say(&f, "ab\n"), 3);
	limit_descriptors(0);
	in += say(&f, "cd\n");
	in += say(&f, "ef\n");
	free_descriptors();
	assert_int_equal(in, 6);
	assert_int_equal(f.missing, 0);
	assert_int_equal(say(&f, "gh\n"), 3);
	logfile_close(&f);
	for (int i = 3; i >= 0; i--) {
		static const char *const names[] = { "log", "log.1", "log.2", "log.3" };
		struct text one = { 0 };

		if (access(names[i], F_OK) == 0)
			one = scratch_read(names[i]);
		text_add_bytes(&is, text_string(&one), one.len);
		text_done(&one);
	}
	assert_string_equal(text_string(&is), "ab\ncd\nef\ngh\n");
	text_done(&is);
}

static void test_reopen(void **state)
{
	struct failure why = { 0 };
	struct logfile f;

	(void)state;
	make(&f, &plain);
	assert_int_equal(say(&f, "ab\n"), 3);
	assert_int_equal(rename("log", "moved"), 0);
	assert_int_equal(say(&f, "cd\n"), 3);
	assert_int_equal(logfile_reopen(&f, &why), 0);
	assert_int_equal(say(&f, "ef\n"), 3);
	assert_file("moved", "ab\ncd\n");
	assert_file("log", "ef\n");
	/* it can't be opened: the one in use stays */
	assert_int_equal(rename("log", "moved"), 0);
	assert_int_equal(mkdir("log", 0700), 0);
	assert_outcome(logfile_reopen(&f, &why), -EISDIR, &why, "can't open log");
	assert_int_equal(say(&f, "gh\n"), 3);
	logfile_close(&f);
	assert_file("moved", "ef\ngh\n");
}

static void test_old(void **state)
{
	const struct logfile_style style = { 10, 2, false };
	struct logplace place = { 0, 0, true };
	struct failure why = { 0 };
	struct logfile f;
	char is[16];

	(void)state;
	scratch_clear();
	put_file("log", "before\n");
	assert_int_equal(logfile_open(&f, "log", &style, &why), 0);
	f.reads_back = true;
	assert_int_equal(say(&f, "ab\n"), 3);
	assert_int_equal(say(&f, "cd\n"), 3);
	assert_bytes(is, read_all(&f, place, is, sizeof is), "ab\ncd\n", 6);
	logfile_close(&f);
	assert_file("log.1", "before\nab\n");
	assert_file("log", "cd\n");
}

static void test_no_file(void **state)
{
	size_t before = count_descriptors();
	struct failure why = { 0 };
	struct logfile f;

	(void)state;
	scratch_clear();
	assert_outcome(logfile_open(&f, "gone/log", &plain, &why), -ENOENT, &why,
		"can't open gone/log: No such file");
	logfile_close(&f);
	f = (struct logfile){ 0 };
	logfile_close(&f); /* 0 is somebody else's */
	assert_int_equal(count_descriptors(), before);
}

/* The file was stamped without a word about it: lines longer than what is put together at once. */
static void test_long_stamped(void **state)
{
	enum { LEN = 50000 };
	static char line[LEN + 2], is[2 * LEN];
	struct logplace place = { 0, 0, true };
	struct logfile f;
	struct text file;

	(void)state;
	make(&f, &stamped);
	memset(line, 'x', LEN);
	memcpy(line + LEN, "\n", 2);
	assert_int_equal(say(&f, line), LEN + 1);
	assert_int_equal(say(&f, "end\n"), 4);
	assert_int_equal(read_all(&f, place, is, 1000), LEN + 5);
	assert_memory_equal(is, line, LEN + 1);
	assert_memory_equal(is + LEN + 1, "end\n", 4);
	logfile_close(&f);
	file = scratch_read("log");
	assert_int_equal(file.len, 2 * strlen(STAMP) + LEN + 5);
	assert_memory_equal(file.at + strlen(STAMP), line, LEN + 1);
	text_done(&file);
}

static const struct last_row {
	const char *says, *text;
	size_t room;
	const char *is;
} lasts[] = {
	{ "an empty file", "", 4, "" },
	{ "a short file", "ab", 4, "ab" },
	{ "a file of that size", "abcd", 4, "abcd" },
	{ "a longer file", "abcdef", 4, "cdef" },
	{ "no room", "abc", 0, "" },
};

static void test_last(void **state)
{
	const struct last_row *row = *state;
	char is[16];
	ssize_t n;

	scratch_clear();
	put_file("log", row->text);
	n = logfile_last("log", is, row->room);
	assert_true(n >= 0);
	assert_bytes(is, (size_t)n, row->is, strlen(row->is));
}

static void test_last_of_none(void **state)
{
	char is[16];

	(void)state;
	scratch_clear();
	assert_int_equal(logfile_last("log", is, sizeof is), -ENOENT);
	assert_int_equal(mkfifo("log", 0600), 0);
	assert_int_equal(
		logfile_last("log", is, sizeof is), 0); /* and does not wait for a writer */
	assert_int_equal(logfile_last(".", is, sizeof is), 0);
}

TESTS(logfile)
{
	static struct suite s;
	int rc = scratch_make() < 0 ? 2 : 0;

	SUITE_ROWS(&s, test_write, writes);
	SUITE_ROWS(&s, test_read, reads);
	SUITE_ROWS(&s, test_cut, cuts);
	SUITE_ROWS(&s, test_full, fulls);
	SUITE_ROWS(&s, test_last, lasts);
	suite_add(&s, "what nobody reads any more is closed", test_forget, NULL, NULL);
	suite_add(&s, "without a reader no file is held", test_no_reader, NULL, NULL);
	suite_add(&s, "what a reader finds deleted is counted", test_gone, NULL, NULL);
	suite_add(&s, "a file that was cut has its own size", test_cut_size, NULL, NULL);
	suite_add(&s, "a file that can't be read", test_unreadable, NULL, NULL);
	suite_add(&s, "words about a full disk are whole", test_full_for_words, NULL, NULL);
	suite_add(&s, "a disk that stays full", test_full_stays, NULL, NULL);
	suite_add(&s, "a file that can't be rotated grows", test_no_rotation, NULL, NULL);
	suite_add(&s, "no descriptor for a new file", test_no_descriptor, NULL, NULL);
	suite_add(&s, "a file that was moved away", test_reopen, NULL, NULL);
	suite_add(&s, "a file that was there before", test_old, NULL, NULL);
	suite_add(&s, "a file that can't be opened", test_no_file, NULL, NULL);
	suite_add(&s, "a long line with a stamp", test_long_stamped, NULL, NULL);
	suite_add(&s, "the last bytes of what is no file", test_last_of_none, NULL, NULL);
	if (rc == 0)
		rc = suite_run(&s);
	return scratch_done() < 0 ? 2 : rc;
}
