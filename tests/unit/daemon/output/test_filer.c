/* test_filer.c - the thread that writes large pieces: each file's in their order, all of them. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "daemon/output/filer.h"
#include "tests/unit/daemon/output/scratch_dir.h"

enum { FILES = 3, PIECES = 40, LEN = 50000 };

struct fixture {
	struct filer filer;
	struct logfile files[FILES];
	struct logged logged[FILES];
};

static void make(struct fixture *b)
{
	static const struct logfile_style plain;
	struct failure why = { 0 };

	scratch_clear();
	assert_int_equal(filer_init(&b->filer), 0);
	for (unsigned i = 0; i < FILES; i++) {
		char path[16];

		(void)snprintf(path, sizeof path, "log%u", i);
		assert_int_equal(logfile_open(&b->files[i], path, &plain, &why), 0);
	}
}

static void post(struct fixture *b, unsigned file, char letter)
{
	char *at = filer_buffer(&b->filer);

	assert_non_null(at);
	memset(at, letter, LEN);
	assert_true(filer_write(&b->filer, &b->files[file], LEN, 0, &b->logged[file]));
}

static void assert_pieces(const char *path, size_t count)
{
	struct text is = scratch_read(path);

	assert_int_equal(is.len, count * LEN);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(is.at[i * LEN], 'a' + i % 26);
		assert_int_equal(is.at[i * LEN + LEN - 1], 'a' + i % 26);
	}
	text_done(&is);
}

static void close_files(struct fixture *b)
{
	for (unsigned i = 0; i < FILES; i++)
		logfile_close(&b->files[i]);
}

static void test_order(void **state)
{
	static struct fixture b;

	(void)state;
	make(&b);
	for (unsigned i = 0; i < PIECES; i++)
		for (unsigned file = 0; file < FILES; file++)
			post(&b, file, (char)('a' + i % 26));
	for (unsigned file = 0; file < FILES; file++) {
		filer_wait(&b.filer, &b.files[file]);
		assert_false(filer_has(&b.filer, &b.files[file]));
		assert_int_equal(b.logged[file].len, LEN);
		assert_int_equal(b.logged[file].place.position, (PIECES - 1) * LEN);
		assert_int_equal(b.files[file].now.end, PIECES * LEN);
	}
	filer_done(&b.filer);
	close_files(&b);
	assert_pieces("log0", PIECES);
	assert_pieces("log2", PIECES);
}

/* A file is the caller's again after each piece. */
static void test_turns(void **state)
{
	static struct fixture b;

	(void)state;
	make(&b);
	for (unsigned i = 0; i < PIECES; i++) {
		char piece[LEN];

		if (i % 2 == 0) {
			post(&b, 0, (char)('a' + i % 26));
			continue;
		}
		filer_wait(&b.filer, &b.files[0]);
		memset(piece, 'a' + (int)i % 26, LEN);
		assert_int_equal(logfile_write(&b.files[0], piece, LEN, 0).len, LEN);
	}
	filer_done(&b.filer);
	close_files(&b);
	assert_pieces("log0", PIECES);
}

/* What was posted is written, though nobody waits for it. */
static void test_end(void **state)
{
	static struct fixture b;

	(void)state;
	make(&b);
	for (unsigned i = 0; i < FILER_JOBS; i++)
		post(&b, 0, (char)('a' + i));
	filer_done(&b.filer);
	filer_done(&b.filer);
	close_files(&b);
	assert_pieces("log0", FILER_JOBS);
}

/* Without a large piece there is no thread. */
static void test_idle(void **state)
{
	static struct fixture b;
	char *at;

	(void)state;
	make(&b);
	at = filer_buffer(&b.filer);
	assert_non_null(at);
	assert_ptr_equal(filer_buffer(&b.filer), at); /* nobody has it */
	assert_false(filer_has(&b.filer, &b.files[0]));
	filer_wait(&b.filer, &b.files[0]);
	assert_false(b.filer.running);
	filer_done(&b.filer);
	close_files(&b);
}

/* A full disk is told by the file, as ever. */
static void test_full(void **state)
{
	static struct fixture b;

	(void)state;
	make(&b);
	limit_file_size(LEN + 10);
	post(&b, 0, 'a');
	post(&b, 0, 'b');
	filer_wait(&b.filer, &b.files[0]);
	limit_file_size(0);
	assert_int_equal(b.logged[0].len, 10);
	assert_int_equal(b.files[0].missing, LEN - 10);
	filer_done(&b.filer);
	close_files(&b);
}

TESTS(filer)
{
	static struct suite s;
	int rc = scratch_make() < 0 ? 2 : 0;

	suite_add(&s, "pieces of each file keep their order", test_order, NULL, NULL);
	suite_add(&s, "both write to one file in turns", test_turns, NULL, NULL);
	suite_add(&s, "an end writes what was posted", test_end, NULL, NULL);
	suite_add(&s, "no thread without a piece", test_idle, NULL, NULL);
	suite_add(&s, "a full disk", test_full, NULL, NULL);
	if (rc == 0)
		rc = suite_run(&s);
	return scratch_done() < 0 ? 2 : rc;
}
