/* test_completion.c - the shells' completion scripts. tests/process runs them in their shells. */
#include "tests/unit/unit.h"

#include <string.h>

#include "common/text.h"
#include "config/help.h"
#include "config/table.h"

static const struct row {
	const char *says;
	void (*print)(struct text *out);
	const char *part;
	bool absent;
} rows[] = {
	{ "bash: a choice's words", help_bash,
		"\t\t--log_format|--log-format)\n\t\t\tCOMPREPLY=($(compgen -W \"text json\" ",
		false },
	{ "bash: both spellings of a flag that has a value", help_bash,
		"|--max_restarts|--max-restarts|", false },
	{ "bash: a letter beside its flag", help_bash, "|--redirects|-r|", false },
	{ "bash: files for a setting that is one", help_bash,
		"--mpirun_hostfile|--mpirun-hostfile|--key_file|--key-file|--python|--", false },
	{ "bash: a flag takes no word behind it", help_bash, "|--standalone|", true },
	{ "bash: a value that may be left out is no word behind it", help_bash, "--dry-run|",
		true },
	{ "bash: nor one where it may stand in the next word", help_bash, "|--explain|", false },
	{ "bash: and the next word is a file", help_bash, "|--explain)\n\t\t\tcompopt", false },
	{ "bash: all flags for a dash", help_bash, "compgen -W \"--nproc_per_node --nnodes ",
		false },
	{ "zsh: a flag with its description", help_zsh,
		"\t'--standalone[Run a job on this node alone, whatever mpirun", false },
	{ "zsh: the first part of the help", help_zsh,
		"\t'--max-restarts=[How many times to restart a failed job, on all nodes together]"
		":max-restarts:' \\\n",
		false },
	{ "zsh: words of a choice", help_zsh, "]:log-format:(text json)' \\\n", false },
	{ "zsh: a value that may be left out", help_zsh, "\t'--dry-run=-[Print every value",
		false },
	{ "zsh: ... in the next word", help_zsh, "::explain:_files' \\\n", false },
	{ "zsh: a file", help_zsh, "]:key-file:_files' \\\n", false },
	{ "zsh: an option that may be repeated", help_zsh, "\t'*--env=[", false },
	{ "zsh: an apostrophe ends no word", help_zsh, "This node'\\''s rank", false },
	{ "zsh: the script comes last", help_zsh, "'1:script:_files'", false },
};

static void test_part(void **state)
{
	const struct row *row = *state;
	struct text out = { 0 };

	row->print(&out);
	assert_false(out.failed);
	if (row->absent)
		assert_null(strstr(text_string(&out), row->part));
	else
		assert_contains(text_string(&out), row->part);
	text_done(&out);
}

/* A setting that is new is completed without further work. */
static void test_all(void **state)
{
	struct text bash = { 0 }, zsh = { 0 };

	(void)state;
	help_bash(&bash);
	help_zsh(&zsh);
	for (int id = 0; id < SETTING_COUNT; id++) {
		char flag[64] = "--";

		if (setting_rows[id].only_key)
			continue;
		(void)strncat(flag, setting_rows[id].flag, sizeof flag - 3);
		assert_contains(text_string(&bash), flag);
		assert_contains(text_string(&zsh), flag);
	}
	text_done(&bash);
	text_done(&zsh);
}

TESTS(completion)
{
	static struct suite s;

	SUITE_ROWS(&s, test_part, rows);
	suite_add(&s, "every setting is in both", test_all, NULL, NULL);
	return suite_run(&s);
}
