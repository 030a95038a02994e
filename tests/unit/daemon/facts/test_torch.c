/* test_torch.c - which torch a Python would import, from trees as installations have them. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/facts/torch.h"

static char scratch[] = "/tmp/launchd_test_torch_XXXXXX";

#define TORCH(version) "__version__ = '" version "'\n"

/* Directories are made as they are needed. */
static const struct entry {
	const char *path, *text; /* text NULL: see link; "/": a directory, "|": a FIFO */
	const char *link;
} tree[] = {
	/* built from source, or a conda */
	{ "opt/bin/python3.11", "", NULL },
	{ "opt/bin/python3", NULL, "python3.11" },
	{ "opt/lib/python3.11/site-packages/torch/version.py", TORCH("2.5.1"), NULL },
	{ "opt/lib/python3.12/site-packages/torch/version.py", TORCH("2.9.9"), NULL },
	/* Debian, with a Python built below local, whose packages are not Debian's */
	{ "deb/bin/python3.11", "", NULL },
	{ "deb/bin/python3", NULL, "python3.11" },
	{ "deb/lib/python3/dist-packages/torch/version.py", TORCH("1.13.0a0"), NULL },
	{ "deb/local/lib/python3.11/site-packages/torch/version.py", TORCH("2.9.9"), NULL },
	/* Debian, with a torch by pip */
	{ "pip/bin/python3.11", "", NULL },
	{ "pip/lib/python3/dist-packages/torch/version.py", TORCH("1.13.0a0"), NULL },
	{ "pip/local/lib/python3.11/dist-packages/torch/version.py", TORCH("2.3.0"), NULL },
	/* Fedora */
	{ "fed/bin/python3.11", "", NULL },
	{ "fed/lib64/python3.11/site-packages/torch/version.py", TORCH("2.4.1"), NULL },
	{ "fedpip/bin/python3.11", "", NULL },
	{ "fedpip/local/lib64/python3.11/site-packages/torch/version.py", TORCH("2.6.0"), NULL },
	/* virtual environments: its own, none, the system's */
	{ "venv/pyvenv.cfg", "home = /x\ninclude-system-site-packages = false\n", NULL },
	{ "venv/bin/python3", NULL, "../../opt/bin/python3.11" },
	{ "venv/bin/python", NULL, "python3" },
	{ "venv/lib/python3.11/site-packages/torch/version.py", TORCH("2.15.0+cu132"), NULL },
	{ "bare/pyvenv.cfg", "include-system-site-packages=false\n", NULL },
	{ "bare/bin/python3", NULL, "../../opt/bin/python3.11" },
	{ "bare/lib/python3.11/site-packages", "/", NULL },
	{ "open/pyvenv.cfg", "version = 3.11.2\r\ninclude-system-site-packages = True \r\n", NULL },
	{ "open/bin/python3", NULL, "../../opt/bin/python3.11" },
	{ "open/lib/python3.11/site-packages", "/", NULL },
	/* interpreters whose names say no version */
	{ "one/bin/python", "", NULL },
	{ "one/lib/python3.10/site-packages/torch/version.py", TORCH("2.0.1"), NULL },
	{ "one/lib/python3", "/", NULL },
	{ "two/bin/python", "", NULL },
	{ "two/lib/python3.10/site-packages/torch/version.py", TORCH("2.0.1"), NULL },
	{ "two/lib/python3.11/site-packages/torch/version.py", TORCH("2.0.1"), NULL },
	{ "shims/python3", "#!/bin/sh\n", NULL },
	/* the user's own */
	{ "home/.local/lib/python3.11/site-packages/torch/version.py", TORCH("2.7.0"), NULL },
	{ "base/lib/python3.11/site-packages/torch/version.py", TORCH("2.7.1"), NULL },
	{ "path/torch/version.py", TORCH("2.8.0"), NULL },
	{ "other/torch/version.py", TORCH("2.8.1"), NULL },
	{ "none/torch/version.py", "no version\n", NULL },
	{ "fifo/torch/version.py", "|", NULL },
	{ "dir/torch/version.py", "/", NULL },
};

static const struct torch_row {
	const char *says, *python, *env[4]; /* '%' is that directory */
	const char *version;                /* NULL: none */
} rows[] = {
	{ "an installation", "%/opt/bin/python3.11", { NULL }, "2.5.1" },
	{ "by a link", "%/opt/bin/python3", { NULL }, "2.5.1" },
	{ "Debian's package", "%/deb/bin/python3", { NULL }, "1.13.0a0" },
	{ "by pip on Debian", "%/pip/bin/python3.11", { NULL }, "2.3.0" },
	{ "Fedora's package", "%/fed/bin/python3.11", { NULL }, "2.4.1" },
	{ "by pip on Fedora", "%/fedpip/bin/python3.11", { NULL }, "2.6.0" },
	{ "a virtual environment", "%/venv/bin/python", { NULL }, "2.15.0+cu132" },
	{ "one without torch", "%/bare/bin/python3", { "HOME=%/home" }, NULL },
	{ "one that sees the system's", "%/open/bin/python3", { NULL }, "2.5.1" },
	{ "one that sees the user's", "%/open/bin/python3", { "HOME=%/home" }, "2.7.0" },
	{ "the only version there", "%/one/bin/python", { NULL }, "2.0.1" },
	{ "one of two versions there", "%/two/bin/python", { NULL }, NULL },
	{ "a script in the place of Python", "%/shims/python3", { "HOME=%/home" }, NULL },
	{ "the user's before the system's", "%/opt/bin/python3", { "HOME=%/home" }, "2.7.0" },
	{ "the user's elsewhere", "%/opt/bin/python3", { "HOME=%/home", "PYTHONUSERBASE=%/base" },
		"2.7.1" },
	{ "the user's switched off", "%/opt/bin/python3", { "HOME=%/home", "PYTHONNOUSERSITE=1" },
		"2.5.1" },
	{ "the user's in a virtual environment", "%/venv/bin/python", { "HOME=%/home" },
		"2.15.0+cu132" },
	{ "PYTHONPATH before all", "%/venv/bin/python", { "PYTHONPATH=%/path:%/other" }, "2.8.0" },
	{ "the second of PYTHONPATH", "%/opt/bin/python3", { "PYTHONPATH=:%/empty:%/other:" },
		"2.8.1" },
	{ "PYTHONPATH whatever the interpreter is", "%/shims/python3", { "PYTHONPATH=%/path" },
		"2.8.0" },
	{ "PYTHONHOME", "%/opt/bin/python3.11", { "PYTHONHOME=%/fed" }, "2.4.1" },
	{ "a file without a version is passed over", "%/opt/bin/python3", { "PYTHONPATH=%/none" },
		"2.5.1" },
	{ "a FIFO is not waited for", "%/opt/bin/python3", { "PYTHONPATH=%/fifo" }, "2.5.1" },
	{ "a directory is no file", "%/opt/bin/python3", { "PYTHONPATH=%/dir" }, "2.5.1" },
	{ "no interpreter", "%/opt/bin/python2", { NULL }, NULL },
};

/* '%' as that directory; the arena's. */
static const char *in_scratch(struct arena *a, const char *text)
{
	const char *done = "";

	for (; *text; text++)
		done = *text == '%' ? arena_printf(a, "%s%s", done, scratch) :
				      arena_printf(a, "%s%c", done, *text);
	return done;
}

static void test_torch(void **state)
{
	const struct torch_row *row = *state;
	const char *env[5] = { NULL }, *found;
	struct arena a = { 0 };

	for (size_t i = 0; i < 4 && row->env[i]; i++)
		env[i] = in_scratch(&a, row->env[i]);
	found = torch_version_read(env, in_scratch(&a, row->python), &a);
	if ((found == NULL) != (row->version == NULL))
		fail_msg(
			"%s, not %s", found ? found : "none", row->version ? row->version : "none");
	if (found)
		assert_string_equal(found, row->version);
	arena_done(&a);
}

static const struct ask_row {
	const char *says, *script, *version; /* version NULL: none */
	const char *why;                     /* NULL: nothing went wrong */
} asks[] = {
	{ "a shim is asked", "#!/bin/sh\necho \"__version__ = '2.4.0'\"\n", "2.4.0", NULL },
	{ "one of a Python without torch", "#!/bin/sh\nexit 0\n", NULL, NULL },
	{ "one that fails", "#!/bin/sh\nexit 3\n", NULL, "python3 ended with exit code 3" },
	{ "one that can't be run", "#!/nowhere/sh\n", NULL, "python3 ended with exit code 127" },
	{ "one whose child keeps stdout open",
		"#!/bin/sh\nsleep 600 &\necho \"__version__ = '2.4.0'\"\n", "2.4.0", NULL },
	{ "one that says too much", "#!/bin/sh\nyes | head -c 100000\n", NULL, NULL },
	{ "one that says it on stderr", "#!/bin/sh\necho \"__version__ = '2.4.0'\" >&2\n", NULL,
		NULL },
	{ "one that waits for input", "#!/bin/sh\nread x\necho \"__version__ = '2.4.0'\"\n",
		"2.4.0", NULL },
	{ "one that hangs, with a child", "#!/bin/sh\nsleep 600 &\nwait\n", NULL,
		"python3 has not ended within 5 s" },
	{ "an interpreter is not", "\177ELF\n", NULL, NULL },
};

static void test_ask(void **state)
{
	const struct ask_row *row = *state;
	const char *env[] = { "PATH=/usr/bin:/bin", NULL }, *python, *found, *why = NULL;
	struct arena a = { 0 };
	int fd;

	python = arena_printf(&a, "%s/asked_python3", scratch);
	fd = open(python, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, row->script, strlen(row->script)), 0);
	(void)close(fd);
	found = torch_version_ask(env, python, &a, &why);
	if (row->version)
		assert_string_equal(found ? found : "none", row->version);
	else
		assert_null(found);
	if (row->why)
		assert_contains(why ? why : "nothing", row->why);
	else
		assert_null(why);
	arena_done(&a);
}

static void make_directories(struct arena *a, const char *path)
{
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/'))
		(void)mkdir(arena_strndup(a, path, (size_t)(slash - path)), 0700);
}

static void make_entry(struct arena *a, const struct entry *e)
{
	const char *path = arena_printf(a, "%s/%s", scratch, e->path);

	make_directories(a, path);
	if (e->link) {
		assert_int_equal(symlink(e->link, path), 0);
	} else if (strcmp(e->text, "/") == 0) {
		assert_int_equal(mkdir(path, 0700), 0);
	} else if (strcmp(e->text, "|") == 0) {
		assert_int_equal(mkfifo(path, 0600), 0);
	} else {
		autoclose fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

		assert_true(fd >= 0);
		assert_int_equal(fd_write_all(fd, e->text, strlen(e->text)), 0);
	}
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

TESTS(torch)
{
	static struct suite s;
	struct arena a = { 0 };
	int rc;

	if (!mkdtemp(scratch))
		return 1;
	for (size_t i = 0; i < sizeof tree / sizeof *tree; i++)
		make_entry(&a, &tree[i]);
	arena_done(&a);
	SUITE_ROWS(&s, test_torch, rows);
	SUITE_ROWS(&s, test_ask, asks);
	rc = suite_run(&s);
	(void)nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return rc;
}
