/* cli.c - the command line, read as the originals' argparse reads it:
 *
 * - "--opt value", "--opt=value", "-t value", "-tvalue", "-mt value"; '-' and '_' are the same;
 * - an abbreviation means the one flag of the originals that starts so, whatever we added to
 *   them, so that a command line of theirs can't change its meaning here; only where no original
 *   starts so, one of ours may be meant;
 * - a value that begins with '-' needs "=", except "-", negative numbers and what has a blank;
 * - the first word that isn't an option is the script; "--" ends the options before it. */
#include "config/sources.h"

#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/name.h"
#include "config/foreign.h"

struct reader {
	struct settings *s;
	const char *const *at; /* the next word */
	bool head;             /* the last option isn't for the nodes of an mpirun of ours */
	struct failure *why;
};

/* Whether a word is the start of the next option rather than a value (argparse, _parse_optional).
 */
static bool looks_like_option(const char *word)
{
	if (word[0] != '-' || word[1] == '\0' || strchr(word, ' '))
		return false;
	return word[1 + strspn(word + 1, "0123456789.")] != '\0';
}

/* The flags that start so, among the originals' or among ours: how many, the last of them, and all
 * as a text. */
static unsigned abbreviated(struct arena *a, const char *name, size_t len, bool original,
	enum setting_id *ret, const char **ret_all)
{
	unsigned count = 0;

	for (int id = 0; id < SETTING_COUNT; id++) {
		const char *flag = setting_rows[id].flag;

		if (setting_rows[id].only_key || setting_rows[id].original != original ||
			!name_begins(flag, name, len))
			continue;
		*ret_all = count ? arena_printf(a, "%s, --%s", *ret_all, flag) :
				   arena_printf(a, "--%s", flag);
		*ret = (enum setting_id)id;
		count++;
	}
	return count;
}

/* Finds the setting that a long option means. `word` is the word as written, dashes and all. */
static int long_option(struct reader *r, const char *word, size_t len, enum setting_id *ret)
{
	const char *name = word + 2;
	enum setting_id id = settings_find(name, len);
	const char *nearest, *hint, *all;

	for (int original = 1; id == SETTING_COUNT && original >= 0; original--)
		if (abbreviated(r->s->arena, name, len, original, &id, &all) > 1)
			return failure_usage(
				r->why, "--%.*s: ambiguous, it could be %s", (int)len, name, all);
	if (id != SETTING_COUNT) {
		*ret = id;
		return 0;
	}
	hint = len > 1 ? foreign_hint(name, len) : NULL;
	if (hint)
		return failure_usage(r->why, "--%.*s: no such option; %s", (int)len, name, hint);
	nearest = settings_nearest(name, len);
	return failure_usage(r->why, "--%.*s: no such option%s%s%s", (int)len, name,
		nearest ? ", did you mean --" : "", nearest ? nearest : "",
		nearest ? "?" : "; launchd --help lists them");
}

/* Takes the option's value (NULL: none in the same word) and puts the setting. */
static int put(struct reader *r, enum setting_id id, const char *written, const char *value)
{
	const struct setting_row *row = &setting_rows[id];
	const struct origin from = { LEVEL_COMMAND_LINE, written };

	r->head = row->head;
	if (!value && row->kind == KIND_FLAG)
		value = "1";
	if (!value && row->optional && (!row->in_next || !*r->at || looks_like_option(*r->at)))
		value = arena_strndup(r->s->arena, row->choices, strcspn(row->choices, "|"));
	if (!value) {
		if (!*r->at || looks_like_option(*r->at))
			return failure_usage(r->why, "%s needs a value: %s%s%s", written, written,
				written[1] == '-' ? "=" : " ", row->metavar);
		value = *r->at++;
	}
	return settings_put(r->s, id, value, from, r->why);
}

/* The typographic dash that a word begins with, as U+2013; 0: none. Word processors and chat
 * programs make one of "--". */
static unsigned long_dash(const char *word)
{
	const unsigned char *b = (const unsigned char *)word;

	if (b[0] == 0xe2 && b[1] == 0x80 && b[2] >= 0x90 && b[2] <= 0x95)
		return 0x2000u + (b[2] - 0x80u);
	return b[0] == 0xe2 && b[1] == 0x88 && b[2] == 0x92 ? 0x2212 : 0;
}

/* 0: the word doesn't start with such a dash. */
static int refuse_long_dash(const char *word, struct failure *why)
{
	enum { DASH_BYTES = 3 };
	const char *name = word + strspn(word, "-");
	unsigned dash = long_dash(name);

	if (!dash)
		return 0;
	while (*name == '-' || long_dash(name))
		name += *name == '-' ? 1 : DASH_BYTES;
	return failure_usage(why, "%s begins with a long dash (U+%04X): type %s%s", word, dash,
		strcspn(name, "=") > 1 ? "--" : "-", name);
}

static int unknown_letter(const char *word, struct failure *why)
{
	const char *hint = foreign_hint(word + 1, 1);

	if (refuse_long_dash(word, why) < 0)
		return why->code;
	return failure_usage(
		why, "%s: no such option; %s", word, hint ? hint : "launchd --help lists them");
}

/* One word of short options: flags may be joined, the rest of the word is a value. */
static int short_options(struct reader *r, const char *word)
{
	for (const char *p = word + 1; *p; p++) {
		const char *written = arena_printf(r->s->arena, "-%c", *p);
		int id = 0, rc;

		while (id < SETTING_COUNT && setting_rows[id].letter != *p)
			id++;
		if (id == SETTING_COUNT)
			return unknown_letter(word, r->why);
		if (setting_rows[id].kind != KIND_FLAG) {
			const char *rest = p[1] == '=' ? p + 2 : p + 1;

			return put(r, (enum setting_id)id, written, p[1] ? rest : NULL);
		}
		rc = put(r, (enum setting_id)id, written, NULL);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int option(struct reader *r, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	enum setting_id id = SETTING_COUNT;
	int rc;

	if (word[1] != '-')
		return short_options(r, word);
	rc = long_option(r, word, len - 2, &id);
	if (rc < 0)
		return rc;
	return put(r, id, arena_strndup(r->s->arena, word, len), equals ? equals + 1 : NULL);
}

static int take_script(struct reader *r)
{
	const char *word = *r->at++;

	if (!*word)
		return failure_usage(r->why, "the script's name is empty (an unset variable?)");
	r->s->script = word;
	return refuse_long_dash(word, r->why);
}

/* Options up to the script or "--". kept: NULL, or where the words of those that are for nodes go.
 */
static int read_options(struct reader *r, struct vec *kept)
{
	while (*r->at && (*r->at)[0] == '-' && (*r->at)[1] && strcmp(*r->at, "--") != 0) {
		const char *const *first = r->at++;
		int rc = option(r, *first);

		if (rc < 0)
			return rc;
		for (; kept && !r->head && first < r->at; first++)
			vec_add(r->s->arena, kept, *first);
	}
	return 0;
}

int settings_read_argv(struct settings *s, const char *const *argv, struct failure *why)
{
	struct reader r = { .s = s, .at = argv[0] ? argv + 1 : argv, .why = why };

	if (read_options(&r, NULL) < 0)
		return why->code;
	if (*r.at && strcmp(*r.at, "--") == 0)
		r.at++;
	if (*r.at && take_script(&r) < 0)
		return why->code;
	if (s->script && *r.at && strcmp(*r.at, "--") == 0)
		r.at++;
	vec_add_all(s->arena, &s->args, r.at);
	return arena_failed(s->arena) ? failure_oom(why) : 0;
}

int settings_words_for_nodes(
	const struct settings *s, const char *const *argv, struct vec *ret, struct failure *why)
{
	struct settings again;
	struct reader r = { .s = &again, .at = argv[0] ? argv + 1 : argv, .why = why };

	settings_init(&again, s->arena, s->as_torchrun);
	if (read_options(&r, ret) < 0)
		return why->code;
	vec_add_all(s->arena, ret, r.at);
	return arena_failed(s->arena) ? failure_oom(why) : 0;
}
