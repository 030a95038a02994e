/* test_misnamed.c - what is said of a file that can't be run, and of a program's first line. */
#include "tests/unit/daemon/output/scratch_dir.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/facts/misnamed.h"

#define LETTERS_50 "llllllllllllllllllllllllllllllllllllllllllllllllll"
#define LETTERS    LETTERS_50 LETTERS_50 LETTERS_50 LETTERS_50

/* The tests' working directory has them; modes are what matters. */
static const struct entry {
	const char *path;
	mode_t mode; /* 0: a directory */
	const char *text;
} tree[] = {
	{ "src", 0, NULL },
	{ "src/train.py", 0600, "" },
	{ "src/run2.py", 0600, "" },
	{ "src/run10.py", 0600, "" },
	{ "src/.eval.py", 0600, "" },
	{ "src/ab.c", 0600, "" },
	{ "prepare.sh", 0600, "" },
	{ "tool", 0700, "" },
	{ "one", 0700, "#!/bin/sh -e\nexit 0\n" },
	{ "only", 0700, "#!/bin/sh" },
	{ "bare", 0700, "#!" },
	{ "hash", 0700, "#" },
	{ "comment", 0700, "# !/bin/sh\n" },
	{ "long", 0700, "#!/" LETTERS LETTERS_50 "bcdefgh\n" },
	{ "read", 0700, "#!/" LETTERS LETTERS_50 "b\n" },
	{ "return", 0700, "#!\r\n" },
};

static int make_tree(void)
{
	for (size_t i = 0; i < sizeof tree / sizeof *tree; i++) {
		autoclose fd = -1;

		if (!tree[i].mode) {
			if (mkdir(tree[i].path, 0700) < 0)
				return -1;
			continue;
		}
		fd = open(tree[i].path, O_CREAT | O_WRONLY | O_CLOEXEC, tree[i].mode);
		if (fd < 0 || fd_write_all(fd, tree[i].text, strlen(tree[i].text)) < 0)
			return -1;
	}
	return mkfifo("pipe", 0700);
}

static const struct misnamed_row {
	const char *says, *name;
	enum run_by by;
	int rc, code;
	const char *sentence; /* all of it, but for what it begins with */
} rows[] = {
	{ "two letters in the wrong order", "src/trian.py", RUN_BY_PYTHON, -ENOENT, -ENOENT,
		"src/trian.py: no such file; did you mean src/train.py?" },
	{ "two letters are missing", "src/trn.py", RUN_BY_PYTHON, -ENOENT, -ENOENT,
		"src/trn.py: no such file; did you mean src/train.py?" },
	{ "three letters are missing", "src/tr.py", RUN_BY_PYTHON, -ENOENT, -ENOENT,
		"src/tr.py: no such file" },
	{ "one of two letters differs", "src/ax.c", RUN_BY_PYTHON, -ENOENT, -ENOENT,
		"src/ax.c: no such file; did you mean src/ab.c?" },
	{ "half of the letters differ", "src/xy.c", RUN_BY_PYTHON, -ENOENT, -ENOENT,
		"src/xy.c: no such file" },
	{ "two are as near, and their numbers tell which is first", "src/run20.py", RUN_BY_PYTHON,
		-ENOENT, -ENOENT, "src/run20.py: no such file; did you mean src/run2.py?" },
	{ "the nearer one counts, whichever is first", "src/run210.py", RUN_BY_PYTHON, -ENOENT,
		-ENOENT, "src/run210.py: no such file; did you mean src/run10.py?" },
	{ "a hidden file is not meant", "src/eval.py", RUN_BY_PYTHON, -ENOENT, -ENOENT,
		"src/eval.py: no such file" },
	{ "in this directory", "prepare.hs", RUN_BY_EXEC, -ENOENT, -ENOENT,
		"prepare.hs: no such file; did you mean prepare.sh?" },
	{ "no such directory", "gone/train.py", RUN_BY_PYTHON, -ENOENT, -ENOENT,
		"gone/train.py: no such file" },
	{ "a file in a directory's place", "tool/train.py", RUN_BY_EXEC, -ENOTDIR, -ENOENT,
		"tool/train.py: no such file" },
	{ "an option", "-u", RUN_BY_PYTHON, -ENOENT, -ENOENT,
		"-u: no such file; \"--\" ends the options, so what follows it is the script" },

	{ "a program of nearly that name need not be on PATH", "tol", RUN_BY_EXEC_PATH, -ENOENT,
		-ENOENT, "tol: no such file on PATH" },
	{ "a program that is here, and not on PATH", "tool", RUN_BY_EXEC_PATH, -ENOENT, -ENOENT,
		"tool is not on PATH; for the one in this directory write ./tool" },
	{ "a directory of that name is no program", "src", RUN_BY_EXEC_PATH, -ENOENT, -ENOENT,
		"src: no such file on PATH" },

	{ "a program without its x", "prepare.sh", RUN_BY_EXEC, -EACCES, -EACCES,
		"prepare.sh: Permission denied: it is not executable (chmod +x prepare.sh)" },
	{ "a script without its x, as others have", "prepare.sh", RUN_BY_PYTHON, -EACCES, -EACCES,
		"prepare.sh: Permission denied" },
	{ "a program with its x", "tool", RUN_BY_EXEC, -EACCES, -EACCES,
		"tool: Permission denied" },
	{ "a directory", "src", RUN_BY_EXEC, -EACCES, -EACCES, "src: Permission denied" },
	{ "whatever else is wrong", "tool", RUN_BY_EXEC, -ELOOP, -EACCES,
		"tool: Too many levels of symbolic links" },
};

static void test_misnamed(void **state)
{
	const struct misnamed_row *row = *state;
	struct arena arena = { 0 };
	struct failure why = { 0 };

	assert_int_equal(
		misnamed(&why, "--wrap: ", row->name, row->by, row->rc, &arena), row->code);
	assert_memory_equal(why.text, "--wrap: ", strlen("--wrap: "));
	assert_string_equal(why.text + strlen("--wrap: "), row->sentence);
	arena_done(&arena);
}

static const struct line_row {
	const char *says, *path;
	const char *line; /* NULL: it has none */
} lines[] = {
	{ "the first of several", "one", "#!/bin/sh -e" },
	{ "without a newline", "only", "#!/bin/sh" },
	{ "nothing behind it", "bare", "#!" },
	{ "the kernel reads no more of it", "long", "#!/" LETTERS LETTERS_50 "bc" },
	{ "one letter", "hash", NULL },
	{ "a comment", "comment", NULL },
	{ "an empty file", "tool", NULL },
	{ "no file", "gone", NULL },
	{ "a directory", "src", NULL },
	{ "a pipe, which nobody waits for", "pipe", NULL },
};

static void test_line(void **state)
{
	const struct line_row *row = *state;
	struct arena arena = { 0 };
	const char *line;
	char text[1024];

	file_begin(row->path, text, sizeof text);
	line = first_line(text, &arena);
	if (row->line) {
		assert_non_null(line);
		assert_string_equal(line, row->line);
	} else {
		assert_null(line);
	}
	arena_done(&arena);
}

/* What test_program.c has no row for. */
static const struct check_row {
	const char *says, *path;
	int code;
	const char *part;
} checks[] = {
	{ "no first line", "tool", 0, NULL },
	{ "an interpreter that is there", "one", 0, NULL },
	{ "the longest name that the kernel reads to its end", "read", -ENOENT,
		"names an interpreter that doesn't exist: fix that line, or install /lll" },
	{ "one that it doesn't", "long", 0, NULL },
	{ "no interpreter but a carriage return", "return", -ENOENT,
		"--wrap: return: its first line, #!, ends with a carriage return" },
};

static void test_check(void **state)
{
	const struct check_row *row = *state;
	struct arena arena = { 0 };
	struct failure why = { 0 };

	assert_outcome(
		first_line_check("--wrap: ", row->path, &arena, &why), row->code, &why, row->part);
	arena_done(&arena);
}

TESTS(misnamed)
{
	static struct suite s;
	int rc;

	SUITE_ROWS(&s, test_misnamed, rows);
	SUITE_ROWS(&s, test_line, lines);
	SUITE_ROWS(&s, test_check, checks);
	if (scratch_make() < 0)
		return 2;
	rc = make_tree() < 0 ? 2 : suite_run(&s);
	return scratch_done() < 0 ? 2 : rc;
}
