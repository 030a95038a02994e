/* test_user_command.c - a command of the user's: how it ended, and what is kept of its words. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/text.h"
#include "daemon/os/user_command.h"

/* A shell reads from descriptor 3 what the test holds open until it has seen the answer. */
static const struct row {
	const char *says, *script, *out, *err;
	const char *end;   /* as command_end_add() has it */
	const char *words; /* as command_words_add() has it */
} rows[] = {
	{ "it goes well", "echo 30; echo 40", "30\n40\n", "", "it exited with code 0", "" },
	{ "it fails, and says why", "echo; echo no space >&2; echo more >&2; exit 3", "\n",
		"no space\nmore\n", "it exited with code 3", "; it printed: no space" },
	{ "it is killed", "kill -SEGV $$", "", "", "it was killed by SIGSEGV", "" },
	{ "it does something to terminals", "printf '\\n\\033[31mred\\r' >&2; exit 1", "",
		"\n\x1b[31mred\r", "it exited with code 1", "; it printed: \\x1b[31mred" },
	{ "it closes its streams and goes on", "echo a; exec >&- 2>&-; true; exit 4", "a\n", "",
		"it exited with code 4", "" },
	{ "what it has left behind holds the streams", "echo a; cat <&3 & exit 0", "a\n", "",
		"it exited with code 0", "" },
	{ "its last words, which it does not end with a line", "printf 7", "7", "",
		"it exited with code 0", "" },
};

/* In a process of its own, as helpers have one: the wait for SIGCHLD is for the whole of it. */
static struct command_said run(const char *const *argv, int held)
{
	struct command_said *shared = mmap(
		NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct command_said said;
	int status;
	pid_t pid;

	assert_true(shared != MAP_FAILED);
	pid = fork();
	if (pid == 0) {
		const char *what;

		if (held == 3 && fcntl(held, F_SETFD, 0) < 0)
			_exit(2); /* dup2() would leave it to be closed */
		if (held >= 0 && dup2(held, 3) < 0)
			_exit(2);
		(void)alarm(60); /* one that never returns fails */
		_exit(command_run(argv, shared, &what) == 0 ? 0 : 1);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	said = command_copy(shared);
	assert_int_equal(munmap(shared, sizeof *shared), 0);
	return said;
}

static void assert_told(const struct command_said *s,
	void (*add)(const struct command_said *, struct text *), const char *expected)
{
	struct text t = { 0 };

	add(s, &t);
	assert_string_equal(text_string(&t), expected);
	text_done(&t);
}

static void test_row(void **state)
{
	const struct row *row = *state;
	struct command_said said;
	int held[2];

	assert_int_equal(pipe2(held, O_CLOEXEC), 0);
	said = run((const char *const[]){ "/bin/sh", "-c", row->script, NULL }, held[0]);
	(void)close(held[0]);
	(void)close(held[1]); /* what it has left behind ends */
	assert_string_equal(said.said[0], row->out);
	assert_string_equal(said.said[1], row->err);
	assert_told(&said, command_end_add, row->end);
	assert_told(&said, command_words_add, row->words);
	assert_int_equal(command_succeeded(&said), strcmp(row->end, "it exited with code 0") == 0);
}

/* More than a pipe holds is read to its end, and dropped; there is a NUL behind what is kept. */
static void test_much(void **state)
{
	const struct command_said said =
		run((const char *const[]){ "/bin/sh", "-c", "yes | head -c 3000000; exit 5", NULL },
			-1);

	(void)state;
	assert_int_equal(strlen(said.said[0]), COMMAND_SAID_BYTES - 1);
	assert_memory_equal(said.said[0], "y\ny\ny\n", 6);
	assert_told(&said, command_end_add, "it exited with code 5");
}

static void test_missing(void **state)
{
	const struct command_said said = run((const char *const[]){ "/nowhere/x", NULL }, -1);

	(void)state;
	assert_told(&said, command_end_add, "it exited with code 127");
	assert_false(command_succeeded(&said));
}

/* Whatever lies in the memory that was shared. */
static void test_copy(void **state)
{
	struct command_said odd;

	(void)state;
	memset(&odd, 'x', sizeof odd);
	odd = command_copy(&odd);
	assert_int_equal(strlen(odd.said[0]), COMMAND_SAID_BYTES - 1);
	assert_int_equal(strlen(odd.said[1]), COMMAND_SAID_BYTES - 1);
}

TESTS(user_command)
{
	static struct suite s;

	SUITE_ROWS(&s, test_row, rows);
	suite_add(&s, "it says too much", test_much, NULL, NULL);
	suite_add(&s, "there is no such program", test_missing, NULL, NULL);
	suite_add(&s, "a copy ends", test_copy, NULL, NULL);
	return suite_run(&s);
}
