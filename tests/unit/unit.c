/* unit.c - see unit.h */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/sm.h"
#include "common/text.h"
#include "daemon/launchers/launchers.h"

static struct unit_file *unit_files;

void unit_file_register(struct unit_file *f)
{
	f->next = unit_files;
	unit_files = f;
}

int main(int argc, char **argv)
{
	for (const struct unit_file *f = unit_files; f && argc == 2; f = f->next)
		if (strcmp(argv[1], f->name) == 0)
			return f->run();
	(void)fprintf(stderr, "usage: %s FILE, where FILE is one of:\n", argv[0]);
	for (const struct unit_file *f = unit_files; f; f = f->next)
		(void)fprintf(stderr, "  %s\n", f->name);
	return 2;
}

void suite_add_rows(struct suite *s, CMUnitTestFunction test, CMFixtureFunction teardown,
	const void *rows, size_t count, size_t stride)
{
	for (size_t i = 0; i < count; i++) {
		const char *row = (const char *)rows + i * stride;
		const char *says;

		assert_true(s->count < SUITE_MAX);
		memcpy(&says, row, sizeof says);
		s->at[s->count++] = (struct CMUnitTest){ .name = says,
			.test_func = test,
			.teardown_func = teardown,
			/* cmocka hands it over as void *; no test writes to its row */
			.initial_state = (void *)(uintptr_t)row };
	}
}

void suite_add(struct suite *s, const char *says, CMUnitTestFunction test, CMFixtureFunction setup,
	CMFixtureFunction teardown)
{
	assert_true(s->count < SUITE_MAX);
	s->at[s->count++] = (struct CMUnitTest){
		.name = says, .test_func = test, .setup_func = setup, .teardown_func = teardown
	};
}

/* cmocka up to 1.1.5 says "not ok" of a test that is skipped: for meson that is one that failed. */
static ssize_t write_lines(void *to, const char *text, size_t size)
{
	static const char negation[] = "not ";
	size_t left = size;

	(void)to;
	if (left > 4 && strncmp(text, negation, 4) == 0 && memmem(text, size, "# SKIP ", 7))
		left -= 4;
	text += size - left;
	while (left > 0) {
		ssize_t n = write(STDOUT_FILENO, text, left);

		if (n < 0)
			return 0;
		text += n;
		left -= (size_t)n;
	}
	return (ssize_t)size;
}

int suite_run(const struct suite *s)
{
	/* Not by a print_message() of ours: Ubuntu links cmocka so that it calls its own. */
	FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = write_lines });

	if (!out || setvbuf(out, NULL, _IOLBF, 0) != 0)
		return 1;
	stdout = out;
	/* the function below cmocka's macro, which wants an array of a fixed size */
	return _cmocka_run_group_tests("unit", s->at, s->count, NULL, NULL) == 0 ? 0 : 1;
}

void needs(bool there, const char *what)
{
	if (there)
		return;
	(void)printf("# skipped: needs %s\n", what);
	(void)fflush(stdout);
	skip();
}

void settings_fixture_make(struct settings_fixture *b, bool as_torchrun)
{
	memset(b, 0, sizeof *b);
	b->notes.arena = &b->arena;
	settings_init(&b->s, &b->arena, as_torchrun);
}

void settings_fixture_done(struct settings_fixture *b)
{
	arena_done(&b->arena);
}

void settings_fixture_put_at(struct settings_fixture *b, enum setting_id id, const char *text,
	enum level level, const char *where)
{
	if (text && settings_put(&b->s, id, text, (struct origin){ level, where }, &b->why) < 0)
		fail_msg("%s", b->why.text);
}

void settings_fixture_put(
	struct settings_fixture *b, enum setting_id id, const char *text, const char *where)
{
	settings_fixture_put_at(b, id, text, LEVEL_COMMAND_LINE, where);
}

void settings_fixture_put_all(
	struct settings_fixture *b, const struct setting_given *given, size_t max)
{
	for (size_t i = 0; i < max && given[i].text; i++)
		settings_fixture_put_at(b, given[i].id, given[i].text, given[i].level, "given");
}

void assert_contains(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("\"%s\" does not contain \"%s\"", text ? text : "(null)", part);
}

void assert_outcome(int rc, int expected, const struct failure *why, const char *part)
{
	if (rc != expected)
		fail_msg("returned %d, not %d: %s", rc, expected, why->text);
	assert_int_equal(why->code, expected);
	assert_true((why->text[0] != '\0') == (expected != 0));
	assert_null(strchr(why->text, '\n'));
	if (part)
		assert_contains(why->text, part);
}

void settings_fixture_want_all(struct settings_fixture *b, struct failures *all)
{
	*all = (struct failures){ .arena = &b->arena };
	b->why.all = all;
}

void assert_failures(const struct failures *all, const char *const *begins, size_t max)
{
	size_t n = 0;

	for (; n < max && begins[n]; n++)
		if (n >= all->texts.count ||
			strncmp(all->texts.at[n], begins[n], strlen(begins[n])) != 0)
			fail_msg("\"%s\" does not begin with \"%s\"",
				n < all->texts.count ? all->texts.at[n] : "(none)", begins[n]);
	if (n < all->texts.count)
		fail_msg("unexpected: %s", all->texts.at[n]);
}

void assert_note(const struct notes *n, enum note_level level, const char *part)
{
	for (const struct note *note = n->first; note; note = note->next) {
		if (part && note->level == level && strstr(note->text, part))
			return;
		if (!part && note->level >= level)
			fail_msg("unexpected note: %s", note->text);
	}
	if (part)
		fail_msg("no note contains \"%s\"", part);
}

void assert_settings(const struct settings *s, const struct expected *e, size_t max)
{
	for (size_t i = 0; i < max && e[i].text; i++) {
		const char *text = settings_text(s, e[i].id);

		if (!text || strcmp(text, e[i].text) != 0)
			fail_msg("%s is \"%s\", not \"%s\"", setting_rows[e[i].id].flag,
				text ? text : "(not set)", e[i].text);
		if (e[i].where)
			assert_string_equal(settings_where(s, e[i].id), e[i].where);
	}
}

void assert_life(const struct sm *life, const char *const *lines)
{
	for (unsigned from = 0; from < life->count; from++) {
		struct text line = { 0 };

		text_printf(&line, "%s:", life->states[from].name);
		for (unsigned to = 0; to < life->count; to++)
			if (sm_may_go(life, from, to))
				text_printf(&line, " %s", life->states[to].name);
		assert_non_null(lines[from]);
		assert_string_equal(text_string(&line), lines[from]);
		text_done(&line);
	}
	assert_null(lines[life->count]);
}

const struct launcher *unit_launcher(const char *name)
{
	static const struct {
		const char *name, *env[3];
	} known[] = {
		{ "mpirun", { "OMPI_COMM_WORLD_RANK=0", NULL, NULL } },
		{ "mpirun 5", { "OMPI_COMM_WORLD_RANK=0", "PRTE_LAUNCHED=1", NULL } },
		{ "mpiexec", { "PMI_RANK=0", NULL, NULL } },
		{ "srun", { "SLURM_PROCID=0", "SLURM_STEP_ID=0", NULL } },
	};

	for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].name, name) == 0)
			return launcher_of(known[i].env);
	assert_null(name);
	return launcher_anyone();
}
