/* unit.h - what the unit tests share: tables of sentences, and settings with all that they need.
 *
 * A row is any struct whose first member is `const char *says`; each becomes one cmocka test of
 * that name, so that a failure reads as the sentence that does not hold. */
#ifndef LAUNCHD_TESTS_UNIT_UNIT_H
#define LAUNCHD_TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/notes.h"
#include "config/settings.h"

/* Built with AddressSanitizer: a fork takes long, and memory is more. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif

/* Returns a random number below `below` and advances the seed (xorshift64; never 0). */
static inline uint64_t draw(uint64_t *seed, uint64_t below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed % below;
}

enum { SUITE_MAX = 400 };

struct suite {
	struct CMUnitTest at[SUITE_MAX];
	size_t count;
};

void suite_add_rows(struct suite *s, CMUnitTestFunction test, CMFixtureFunction teardown,
	const void *rows, size_t count, size_t stride);

/* One test for each row of an array; `test` finds the row in *state. */
#define SUITE_ROWS(s, test, rows) \
	suite_add_rows((s), (test), NULL, (rows), sizeof(rows) / sizeof *(rows), sizeof *(rows))

void suite_add(struct suite *s, const char *says, CMUnitTestFunction test, CMFixtureFunction setup,
	CMFixtureFunction teardown);

/* Runs them all; to be returned from TESTS(). */
int suite_run(const struct suite *s);

/* Registers a file's tests under this name; main() runs those that its argument names. The
 * function body follows and returns an exit code, as suite_run() does. */
#define TESTS(file) \
	static int tests_of_##file(void); \
	__attribute__((constructor)) static void register_tests_of_##file(void) \
	{ \
		static struct unit_file self = { #file, tests_of_##file, NULL }; \
\
		unit_file_register(&self); \
	} \
	static int tests_of_##file(void)

struct unit_file {
	const char *name;
	int (*run)(void);
	struct unit_file *next;
};

void unit_file_register(struct unit_file *f);

/* Skips the test where that is not there; the reason comes before it in the output. `what` as in
 * "needs root". */
void needs(bool there, const char *what);

/* Settings with all that they need. */
struct settings_fixture {
	struct arena arena;
	struct settings s;
	struct notes notes;
	struct failure why;
};

void settings_fixture_make(struct settings_fixture *b, bool as_torchrun);
void settings_fixture_done(struct settings_fixture *b);

/* Puts a setting, as of the command line or of another level; the test fails if it is refused. A
 * text of NULL is not put. */
void settings_fixture_put(
	struct settings_fixture *b, enum setting_id id, const char *text, const char *where);
void settings_fixture_put_at(struct settings_fixture *b, enum setting_id id, const char *text,
	enum level level, const char *where);

/* What a row puts; its list has max entries at most, or ends with one whose text is NULL. All are
 * from "given". */
struct setting_given {
	enum setting_id id;
	const char *text;
	enum level level;
};

void settings_fixture_put_all(
	struct settings_fixture *b, const struct setting_given *given, size_t max);

struct launcher;
/* The launcher of that name: "mpirun" (of Open MPI 4; "mpirun 5"), "mpiexec", "srun"; NULL: nobody.
 */
const struct launcher *unit_launcher(const char *name);

/* A refusal has a sentence and a success none; `part` must stand in the sentence (NULL: any). */
void assert_outcome(int rc, int expected, const struct failure *why, const char *part);

/* `part` stands in text. */
void assert_contains(const char *text, const char *part);

/* Settings of which all failures are wanted; assert_failures(): these are all that there were, in
 * their order, by what they begin with. NULL ends them. */
void settings_fixture_want_all(struct settings_fixture *b, struct failures *all);
void assert_failures(const struct failures *all, const char *const *begins, size_t max);

/* Some note of the level contains part; part NULL: there is no note of that level or above. */
void assert_note(const struct notes *n, enum note_level level, const char *part);

/* What is expected of one setting; the table of it ends with a row without text. */
struct expected {
	enum setting_id id;
	const char *text, *where; /* where NULL: not looked at */
};

void assert_settings(const struct settings *s, const struct expected *e, size_t max);

struct sm;

/* A machine has these edges and no other: a line a state in their order, "planned: running ended",
 * then NULL. */
void assert_life(const struct sm *life, const char *const *lines);

#endif
