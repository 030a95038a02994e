/* test_store_host.c - who hosts the store in which workers meet. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "daemon/facts/facts.h"
#include "daemon/plan/decide.h"
#include "daemon/plan/plan.h"

enum { RANK0 = STORE_RANK0, AGENT = STORE_AGENT };

static const struct store_row {
	const char *says;
	const char *store; /* NULL: not given */
	unsigned restarts;
	const char *torch; /* NULL: not known */
	bool no_python, only_rank;
	int rc;
	int host;
	enum note_level level;
	const char *part;   /* of the sentence, or of the note; NULL: no note */
	const char *python; /* NULL: /py */
} rows[] = {
	{ "no restarts", NULL, 0, "2.15.0+cu132", false, false, 0, RANK0, NOTE_INFO, NULL, NULL },
	{ "restarts, and torch of today", NULL, 3, "2.15.0+cu132", false, false, 0, AGENT,
		NOTE_INFO, NULL, NULL },
	{ "restarts, and torch 2.2", NULL, 3, "2.2.0", false, false, 0, AGENT, NOTE_INFO, NULL,
		NULL },
	{ "restarts, and torch 2.1", NULL, 3, "2.1.2", false, false, 0, AGENT, NOTE_INFO, NULL,
		NULL },
	{ "restarts, and torch 2.0", NULL, 3, "2.0.1", false, false, 0, AGENT, NOTE_INFO, NULL,
		NULL },
	{ "restarts, and Debian's torch", NULL, 3, "1.13.0a0", false, false, 0, AGENT, NOTE_INFO,
		NULL, NULL },
	{ "restarts, and torch 1.12", NULL, 3, "1.12.1", false, false, 0, RANK0, NOTE_INFO, NULL,
		NULL },
	{ "restarts, and torch 3", NULL, 3, "3.0", false, false, 0, AGENT, NOTE_INFO, NULL, NULL },
	{ "restarts, and no version of torch", NULL, 3, "main", false, false, 0, RANK0, NOTE_INFO,
		NULL, NULL },
	{ "restarts, and torch is not known", NULL, 3, NULL, false, false, 0, RANK0, NOTE_INFO,
		NULL, NULL },
	{ "restarts of a program", NULL, 3, "2.15.0", true, false, 0, RANK0, NOTE_INFO, NULL,
		NULL },
	{ "restarts of an only rank", NULL, 3, "2.15.0", false, true, 0, RANK0, NOTE_INFO, NULL,
		NULL },
	{ "given: worker 0", "rank0", 3, "2.15.0", false, false, 0, RANK0, NOTE_INFO, NULL, NULL },
	{ "given: the launcher", "agent", 0, "2.15.0", false, false, 0, AGENT, NOTE_INFO, NULL,
		NULL },
	{ "given: the launcher, and torch is not known", "agent", 0, NULL, false, false, 0, AGENT,
		NOTE_INFO, "serves 2.2 and later", NULL },
	{ "given: the launcher, and torch 2.1", "agent", 0, "2.1.0", false, false, 0, AGENT,
		NOTE_INFO, NULL, NULL },
	{ "given: the launcher, and torch 1.12", "agent", 0, "1.12.1", false, false, -EINVAL, 0,
		NOTE_INFO, "--store: launchd's store serves torch 1.13 and later, but /py has",
		NULL },
	{ "given: the launcher of a program", "agent", 0, NULL, true, false, 0, AGENT, NOTE_INFO,
		"launchd can't tell", NULL },
	{ "restarts, and a shim", NULL, 3, NULL, false, false, 0, RANK0, NOTE_INFO,
		"/home/user/.pyenv/shims/python3 is a shim", "/home/user/.pyenv/shims/python3" },
	{ "restarts, and a shim, with a torch by PYTHONPATH", NULL, 3, "2.2.0", false, false, 0,
		AGENT, NOTE_INFO, NULL, "/home/user/.pyenv/shims/python3" },
	{ "no restarts, and a shim", NULL, 0, NULL, false, false, 0, RANK0, NOTE_INFO, NULL,
		"/home/user/.pyenv/shims/python3" },
	{ "given: the launcher, and a shim", "agent", 0, NULL, false, false, 0, AGENT, NOTE_INFO,
		"no torch was found for /home/user/.pyenv/shims/python3, a shim",
		"/home/user/.pyenv/shims/python3" },
};

static void test_store(void **state)
{
	const struct store_row *row = *state;
	const struct facts facts = { .torch_version = row->torch,
		.program = { row->python ? row->python : "/py", "PATH", NULL, false } };
	struct plan p = { .max_restarts = row->restarts, .python = !row->no_python };
	struct settings_fixture b;
	int rc;
	const struct deciding d = { &b.s, &facts, &b.notes, &b.why };

	settings_fixture_make(&b, false);
	settings_fixture_put(&b, SET_STORE, row->store, "--store");
	if (row->no_python)
		settings_fixture_put(&b, SET_NO_PYTHON, "1", "--store");
	if (row->only_rank)
		settings_fixture_put(&b, SET_ONLY_RANK, "0", "--store");
	rc = decide_store(&d, &p);
	assert_outcome(rc, row->rc, &b.why, rc < 0 ? row->part : NULL);
	if (rc == 0) {
		assert_int_equal(p.store, row->host);
		assert_true(p.store_from && *p.store_from);
		assert_note(&b.notes, row->level, row->part);
	}
	settings_fixture_done(&b);
}

TESTS(store_host)
{
	static struct suite s;

	SUITE_ROWS(&s, test_store, rows);
	return suite_run(&s);
}
