/* test_program.c - what workers will execute, found before any is started. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "daemon/facts/facts.h"
#include "daemon/facts/program.h"

#define SLASHES "////////////////////////////////////////////////////////////////"
#define BLANKS  "                                                                "

/* The tree that all rows look at; modes are what matters. */
static char scratch[] = "/tmp/launchd_test_program_XXXXXX";

static const struct entry {
	const char *path;
	mode_t mode; /* 0: a directory */
	const char *text;
} tree[] = {
	{ "bin", 0, NULL },
	{ "bin/python3", 0700, NULL },
	{ "bin/python", 0700, NULL },
	{ "bin/tool", 0700, NULL },
	{ "old", 0, NULL },
	{ "old/python", 0700, NULL },
	{ "locked", 0, NULL },
	{ "locked/python3", 0600, NULL },
	{ "locked/tool", 0600, NULL },
	{ "empty", 0, NULL },
	{ "t.py", 0600, NULL },
	{ "package", 0, NULL },
	{ "package/__main__.py", 0600, NULL },
	{ "crlf", 0700, "#!/bin/sh -e\r\nexit 0\r\n" },
	{ "gone", 0700, "#!\t/nowhere/sh -e\n" },
	{ "below", 0700, "#!/bin/sh/x\n" },
	{ "nox", 0700, "#!/etc/passwd\n" },
	{ "naked", 0700, "#! \n" },
	{ "cut", 0700, "#!/" SLASHES SLASHES SLASHES SLASHES "nowhere\n" },
	{ "spaced", 0700, "#! /bin/sh" BLANKS BLANKS BLANKS BLANKS "\n" },
	{ "unix", 0700, "#!/bin/sh -e\nexit 0\r\n" },
	{ "shell", 0600, "#!/bin/sh -e\r\nexit 0\r\n" },
	{ "pip.py", 0600, "#!/usr/bin/python3.11\n" },
	{ "tf.py", 0600, "#!/usr/bin/python3\n# a\nimport os\nimport tensorflow as tf\n" },
	{ "keras.py", 0600, "from tensorflow.keras import layers\n" },
	{ "plain.py", 0600, "import tensorflow" },
	{ "data.py", 0600, "import tensorflow\nimport torch\n" },
	{ "summary.py", 0600, "from torch.utils import x\n\nimport tensorflow, os\n" },
	{ "hub.py", 0600, "import tensorflow_hub\nfrom my import tensorflow\n" },
	{ "block.py", 0600, "try:\n    import tensorflow\n" },
	{ "itself.py", 0600, "import tensorflow\nos.environ['TF_CONFIG'] = ''\n" },
	{ "slurm.py", 0600, "import tensorflow as tf\ntf.distribute.cluster_resolver.X\n" },
	{ "long.py", 0600, "import tensorflow\n" }, /* behind comments */
	{ "jax.py", 0600, "import os\nimport jax.numpy as jnp\n" },
	{ "jaxdist.py", 0600, "import torch\nimport jax\njax.distributed.initialize()\n" },
	{ "jaxtorch.py", 0600, "import jax\nimport torch\n" },
	{ "tcp.py", 0600, "import torch\ninit_process_group('gloo', init_method='tcp://h:1')\n" },
	{ "port.py", 0600, "os.environ['MASTER_PORT'] = '12355'\n" },
	{ "port2.py", 0600, "os.environ[\"MASTER_PORT\"]='12355'\n" },
	{ "reads.py", 0600, "# is_master_process\nif os.environ['MASTER_PORT'] == '1':\n" },
	{ "store.py", 0600, "import torch\nTCPStore('h', 1, is_master=True)\n" },
	{ "store2.py", 0600, "import torch\nTCPStore('h', 1, 2, is_master = (rank == 0))\n" },
	{ "client.py", 0600, "import torch\nTCPStore('h', 1, is_master=False)\n" },
	{ "src", 0, NULL },
	{ "src/train.py", 0600, NULL },
	{ "src/train2.py", 0600, NULL },
	{ "src/package.py", 0600, NULL },
	{ "src/package", 0, NULL },
};

static const struct program_row {
	const char *says;
	const char *path;   /* PATH; '%' is that directory; NULL: not set */
	const char *python; /* --python; NULL: not given */
	bool no_python, module;
	const char *script, *args[3];
	int rc;
	const char *program; /* or part of the sentence */
	const char *from;
} rows[] = {
	{ "python3 on PATH", "%/empty:%/bin", NULL, false, false, "%/t.py", { NULL }, 0,
		"%/bin/python3", "PATH" },
	{ "python where there is no python3", "%/old", NULL, false, false, "%/t.py", { NULL }, 0,
		"%/old/python", "PATH" },
	{ "a file that may not be executed is passed over", "%/locked:%/bin", NULL, false, false,
		"%/t.py", { NULL }, 0, "%/bin/python3", "PATH" },
	{ "the Python that is named, by its path", "%/bin", "%/old/python", false, false, "%/t.py",
		{ NULL }, 0, "%/old/python", "--python" },
	{ "the Python that is named, on PATH", "%/bin", "python", false, false, "%/t.py", { NULL },
		0, "%/bin/python", "--python" },
	{ "a module need not be a file", "%/bin", NULL, false, true, "pkg.train", { NULL }, 0,
		"%/bin/python3", "PATH" },
	{ "a package is a script", "%/bin", NULL, false, false, "%/package", { NULL }, 0,
		"%/bin/python3", "PATH" },
	{ "standard input is a script", "%/bin", NULL, false, false, "-", { NULL }, 0,
		"%/bin/python3", "PATH" },
	{ "a program by its path", "%/bin", NULL, true, false, "%/bin/tool", { NULL }, 0,
		"%/bin/tool", "script" },
	{ "a program on PATH", "%/bin", NULL, true, false, "tool", { NULL }, 0, "%/bin/tool",
		"script" },
	{ "python as a program is no mistake", "%/bin", NULL, true, false, "python3",
		{ "t.py", NULL }, 0, "%/bin/python3", "script" },

	{ "no Python at all", "%/empty", NULL, false, false, "%/t.py", { NULL }, -ENOENT,
		"--python", NULL },
	{ "the Python that is named is not there", "%/bin", "%/none", false, false, "%/t.py",
		{ NULL }, -ENOENT, "--python: %/none: no such file", NULL },
	{ "the Python that is named may not be executed", "%/bin", "%/locked/python3", false, false,
		"%/t.py", { NULL }, -EACCES, "%/locked/python3", NULL },
	{ "a script that is not there", "%/bin", NULL, false, false, "%/none.py", { NULL }, -ENOENT,
		"%/none.py: no such file", NULL },
	{ "a directory without __main__.py", "%/bin", NULL, false, false, "%/empty", { NULL },
		-EACCES, "__main__.py", NULL },
	{ "a program that is not there", "%/bin", NULL, true, false, "none", { NULL }, -ENOENT,
		"none", NULL },
	{ "a program that may not be executed", "%/locked", NULL, true, false, "tool", { NULL },
		-EACCES, "tool", NULL },
	{ "a directory is no program", "%/bin", NULL, true, false, "%/empty", { NULL }, -EACCES,
		"%/empty", NULL },
	{ "an empty name is no program", "%/bin", NULL, true, false, "", { NULL }, -ENOENT, "",
		NULL },
	{ "a script of nearly that name", "%/bin", NULL, false, false, "%/src/trian.py", { NULL },
		-ENOENT, "%/src/trian.py: no such file; did you mean %/src/train.py?", NULL },
	{ "the first of several of nearly that name", "%/bin", NULL, false, false,
		"%/src/train3.py", { NULL }, -ENOENT, "did you mean %/src/train.py?", NULL },
	{ "a name that is too short to be nearly another", "%/bin", NULL, false, false, "%/x.y",
		{ NULL }, -ENOENT, "%/x.y: no such file", NULL },
	{ "a directory that is not there", "%/bin", NULL, false, false, "%/none/train.py", { NULL },
		-ENOENT, "%/none/train.py: no such file", NULL },
	{ "an option behind \"--\"", "%/bin", NULL, false, false, "--use_env", { NULL }, -ENOENT,
		"--use_env: no such file; \"--\" ends the options", NULL },
	{ "a program without its x", "%/bin", NULL, true, false, "%/t.py", { NULL }, -EACCES,
		"%/t.py: Permission denied: it is not executable (chmod +x %/t.py)", NULL },
	{ "a program that is not on PATH", "%/bin", NULL, true, false, "none", { NULL }, -ENOENT,
		"none: no such file on PATH", NULL },
	{ "Windows line ends", "%/bin", NULL, true, false, "%/crlf", { NULL }, -ENOENT,
		"%/crlf: its first line, #!/bin/sh -e, ends with a carriage return (Windows line endings): run dos2unix %/crlf",
		NULL },
	{ "... but in the first line", "%/bin", NULL, true, false, "%/unix", { NULL }, 0, "%/unix",
		"script" },
	{ "... of the Python", "%/bin", "%/crlf", false, false, "%/t.py", { NULL }, -ENOENT,
		"--python: %/crlf: its first line", NULL },
	{ "an interpreter that is not there", "%/bin", NULL, true, false, "%/gone", { NULL },
		-ENOENT,
		"%/gone: its first line, #!?/nowhere/sh -e, names an interpreter that doesn't exist: fix that line, or install /nowhere/sh",
		NULL },
	{ "... below a file", "%/bin", NULL, true, false, "%/below", { NULL }, -ENOENT,
		"install /bin/sh/x", NULL },
	{ "... of the Python", "%/bin", "%/gone", false, false, "%/t.py", { NULL }, -ENOENT,
		"--python: %/gone: its first line", NULL },
	{ "an interpreter that is no program", "%/bin", NULL, true, false, "%/nox", { NULL },
		-EACCES, "names an interpreter that can't be executed: Permission denied", NULL },
	{ "no interpreter: execve(2) says that", "%/bin", NULL, true, false, "%/naked", { NULL }, 0,
		"%/naked", "script" },
	{ "one whose name the kernel cuts: it says that, too", "%/bin", NULL, true, false, "%/cut",
		{ NULL }, 0, "%/cut", "script" },
	{ "a first line that is long behind the name", "%/bin", NULL, true, false, "%/spaced",
		{ NULL }, 0, "%/spaced", "script" },
	{ "a file as a module", "%/bin", NULL, false, true, "%/src/train.py", { NULL }, -EINVAL,
		"takes the name of a module, but %/src/train.py is a file: leave out", NULL },
	{ "a package that may have a module py", "%/bin", NULL, false, true, "%/src/package.py",
		{ NULL }, 0, "%/bin/python3", "PATH" },
	{ "python before the script", "%/bin", NULL, false, false, "python",
		{ "%/t.py", "x", NULL }, -EINVAL, "drop that word", NULL },
	{ "python3 for a module", "%/bin", NULL, false, false, "python3", { "-m", "train", NULL },
		-EINVAL, "\"python3\": launchd starts Python itself, so drop that word", NULL },
	{ "python3.11 with an option before the script", "%/bin", NULL, false, false,
		"/usr/bin/python3.11", { "-u", "t.py", NULL }, -EINVAL, "drop that word", NULL },
};

static int make_scratch(void **state)
{
	(void)state;
	if (!mkdtemp(scratch))
		return -1;
	for (size_t i = 0; i < sizeof tree / sizeof *tree; i++) {
		char path[128];
		int fd;

		(void)snprintf(path, sizeof path, "%s/%s", scratch, tree[i].path);
		if (!tree[i].mode) {
			if (mkdir(path, 0700) < 0)
				return -1;
			continue;
		}
		fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, tree[i].mode);
		if (fd < 0)
			return -1;
		for (unsigned n = 0; n < 128 && strcmp(tree[i].path, "long.py") == 0; n++)
			if (fd_write_all(fd, "#" SLASHES "\n", sizeof SLASHES + 1) < 0)
				return -1;
		if (tree[i].text && fd_write_all(fd, tree[i].text, strlen(tree[i].text)) < 0)
			return -1;
		(void)close(fd);
	}
	return 0;
}

static int remove_scratch(void **state)
{
	(void)state;
	for (size_t i = sizeof tree / sizeof *tree; i-- > 0;) {
		char path[128];

		(void)snprintf(path, sizeof path, "%s/%s", scratch, tree[i].path);
		(void)remove(path);
	}
	return rmdir(scratch);
}

/* text with that directory for each '%'. */
static const char *in_scratch(struct arena *a, const char *text)
{
	const char *out = "";

	for (; text && *text; text++)
		out = *text == '%' ? arena_printf(a, "%s%s", out, scratch) :
				     arena_printf(a, "%s%c", out, *text);
	return text ? out : NULL;
}

static void test_program(void **state)
{
	const struct program_row *row = *state;
	const struct origin here = { LEVEL_COMMAND_LINE, "--python" };
	struct program program = { .foreign_line = "of another script" };
	const char *env[2] = { NULL };
	struct settings_fixture b;
	int rc;

	settings_fixture_make(&b, false);
	env[0] = arena_printf(&b.arena, "PATH=%s", in_scratch(&b.arena, row->path));
	if (row->python)
		(void)settings_put(
			&b.s, SET_PYTHON, in_scratch(&b.arena, row->python), here, &b.why);
	(void)settings_put(&b.s, SET_NO_PYTHON, row->no_python ? "1" : "0", here, &b.why);
	(void)settings_put(&b.s, SET_MODULE, row->module ? "1" : "0", here, &b.why);
	b.s.script = in_scratch(&b.arena, row->script);
	for (size_t i = 0; i < 3 && row->args[i]; i++)
		vec_add(&b.arena, &b.s.args, in_scratch(&b.arena, row->args[i]));
	rc = program_find(&b.s, env, &b.arena, &program, &b.why);
	assert_outcome(rc, row->rc, &b.why, rc ? in_scratch(&b.arena, row->program) : NULL);
	if (rc == 0) {
		assert_string_equal(program.path, in_scratch(&b.arena, row->program));
		assert_string_equal(program.from, row->from);
		assert_null(program.foreign_line);
	}
	settings_fixture_done(&b);
}

static const struct foreign_row {
	const char *says, *script, *line; /* NULL: Python's own */
} foreign[] = {
	{ "a shell's script for Python", "%/shell", "#!/bin/sh -e" },
	{ "a script of Python's", "%/pip.py", NULL },
	{ "a script without a first line", "%/t.py", NULL },
	{ "a package", "%/package", NULL },
};

static void test_foreign(void **state)
{
	const struct foreign_row *row = *state;
	struct program program = { 0 };
	const char *env[2] = { NULL };
	struct settings_fixture b;

	settings_fixture_make(&b, false);
	env[0] = arena_printf(&b.arena, "PATH=%s/bin", scratch);
	b.s.script = in_scratch(&b.arena, row->script);
	assert_outcome(program_find(&b.s, env, &b.arena, &program, &b.why), 0, &b.why, NULL);
	assert_true((program.foreign_line == NULL) == (row->line == NULL));
	if (row->line)
		assert_string_equal(program.foreign_line, row->line);
	settings_fixture_done(&b);
}

static const struct imports_row {
	const char *says, *script;
	bool module, tf_config, tensorflow;
	const char *own_port; /* NULL: nothing */
} imports[] = {
	{ "JAX", "%/jax.py", false, false, false, "the script's JAX" },
	{ "JAX beside torch", "%/jaxdist.py", false, false, false,
		"jax.distributed in the script" },
	{ "JAX beside torch, of which no word is said", "%/jaxtorch.py", false, false, false,
		NULL },
	{ "torch at a port of its own", "%/tcp.py", false, false, false, "tcp:// in the script" },
	{ "a port that it sets", "%/port.py", false, false, false, "the script's own MASTER_PORT" },
	{ "... in other quotes", "%/port2.py", false, false, false,
		"the script's own MASTER_PORT" },
	{ "... of rank 0's", "%/store2.py", false, false, false, "is_master in the script" },
	{ "a client of one", "%/client.py", false, false, false, NULL },
	{ "a port that it reads", "%/reads.py", false, false, false, NULL },
	{ "a store of its own", "%/store.py", false, false, false, "is_master in the script" },
	{ "import", "%/tf.py", false, false, true, NULL },
	{ "from a package of it", "%/keras.py", false, false, true, NULL },
	{ "a script's last line", "%/plain.py", false, false, true, NULL },
	{ "beside torch", "%/data.py", false, false, false, NULL },
	{ "torch before it", "%/summary.py", false, false, false, NULL },
	{ "what begins so, or is another's", "%/hub.py", false, false, false, NULL },
	{ "where it is a choice", "%/block.py", false, false, false, NULL },
	{ "a script that sets TF_CONFIG", "%/itself.py", false, false, false, NULL },
	{ "a script that has a resolver", "%/slurm.py", false, false, false, NULL },
	{ "beyond what is read", "%/long.py", false, false, false, NULL },
	{ "where it is told anyway", "%/tf.py", false, true, false, NULL },
	{ "a module's file isn't looked for", "tf", true, false, false, NULL },
	{ "a package", "%/package", false, false, false, NULL },
	{ "an empty script", "%/t.py", false, false, false, NULL },
	{ "standard input", "-", false, false, false, NULL },
};

static void test_imports(void **state)
{
	const struct origin here = { LEVEL_COMMAND_LINE, "here" };
	const struct imports_row *row = *state;
	struct program program = { 0 };
	const char *env[2] = { NULL };
	struct settings_fixture b;

	settings_fixture_make(&b, false);
	env[0] = arena_printf(&b.arena, "PATH=%s/bin", scratch);
	(void)settings_put(&b.s, SET_MODULE, row->module ? "1" : "0", here, &b.why);
	(void)settings_put(&b.s, SET_TF_CONFIG, row->tf_config ? "1" : "0", here, &b.why);
	b.s.script = in_scratch(&b.arena, row->script);
	assert_outcome(program_find(&b.s, env, &b.arena, &program, &b.why), 0, &b.why, NULL);
	assert_int_equal(program.tensorflow, row->tensorflow);
	if (row->own_port)
		assert_string_equal(program.own_port ? program.own_port : "none", row->own_port);
	else
		assert_null(program.own_port);
	settings_fixture_done(&b);
}

static const struct wrapper_row {
	const char *says;
	const char *wrap; /* NULL: not given */
	int rc;
	const char *words; /* each with a blank behind it; or part of the sentence */
	const char *path;  /* NULL: not found */
	int found;         /* the code of `why` */
	const char *sentence;
} wrappers[] = {
	{ "no wrapper", NULL, 0, "", NULL, 0, NULL },
	{ "a wrapper on PATH", "tool -x 'a b'", 0, "tool -x a b ", "%/bin/tool", 0, NULL },
	{ "a wrapper by its path", "%/bin/tool", 0, "%/bin/tool ", "%/bin/tool", 0, NULL },
	{ "a wrapper that is not there is remembered", "none -x", 0, "none -x ", NULL, -ENOENT,
		"--wrap: none: no such file" },
	{ "a wrapper that may not be executed, too", "%/locked/tool", 0, "%/locked/tool ", NULL,
		-EACCES, "--wrap: %/locked/tool: Permission denied" },
	{ "a directory is no wrapper", "%/empty", 0, "%/empty ", NULL, -EACCES, "%/empty" },
	{ "a wrapper with Windows line ends", "%/crlf -x", 0, "%/crlf -x ", "%/crlf", -ENOENT,
		"--wrap: %/crlf: its first line" },
	{ "an empty word is no wrapper", "'' x", 0, " x ", NULL, -ENOENT, "--wrap: : no" },
	{ "a wrapper of blanks", " \t ", -EINVAL, "--wrap: it contains no command", NULL, 0, NULL },
	{ "a wrapper with an open quote", "tool 'a", -EINVAL,
		"--wrap: \"tool 'a\" is not a command: unmatched '", NULL, 0, NULL },
};

static void test_wrapper(void **state)
{
	const struct wrapper_row *row = *state;
	struct wrapper w = { 0 };
	const char *env[2] = { NULL }, *joined = "";
	struct settings_fixture b;
	int rc;

	settings_fixture_make(&b, false);
	env[0] = arena_printf(&b.arena, "PATH=%s/bin", scratch);
	if (row->wrap)
		settings_fixture_put(&b, SET_WRAP, in_scratch(&b.arena, row->wrap), "--wrap");
	rc = wrapper_find(&b.s, SET_WRAP, env, &b.arena, &w, &b.why);
	assert_outcome(rc, row->rc, &b.why, rc ? row->words : NULL);
	if (rc == 0) {
		for (size_t i = 0; i < w.words.count; i++)
			joined = arena_printf(&b.arena, "%s%s ", joined, w.words.at[i]);
		assert_string_equal(joined, in_scratch(&b.arena, row->words));
		assert_true((w.path == NULL) == (row->path == NULL));
		if (w.path)
			assert_string_equal(w.path, in_scratch(&b.arena, row->path));
		assert_outcome(w.why.code, row->found, &w.why, in_scratch(&b.arena, row->sentence));
	}
	settings_fixture_done(&b);
}

TESTS(program)
{
	static struct suite s;
	int rc = make_scratch(NULL) < 0 ? 2 : 0;

	SUITE_ROWS(&s, test_program, rows);
	SUITE_ROWS(&s, test_foreign, foreign);
	SUITE_ROWS(&s, test_imports, imports);
	SUITE_ROWS(&s, test_wrapper, wrappers);
	if (rc == 0)
		rc = suite_run(&s);
	return remove_scratch(NULL) < 0 ? 2 : rc;
}
