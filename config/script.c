/* script.c - see script.h */
#include "config/script.h"

#include <stdbool.h>
#include <string.h>

#include "common/arena.h"
#include "common/failure.h"
#include "common/text.h"
#include "common/words.h"

/* To a shell this begins a comment. A '#' in quotes is an argument. */
static bool has_comment(const char *text, const struct vec *words)
{
	bool hash = false;

	for (size_t i = 0; i < words->count; i++)
		hash = hash || words->at[i][0] == '#';
	return hash && (*text == '#' || strstr(text, " #") || strstr(text, "\t#"));
}

int script_put_args(struct settings *s, const char *text, struct origin from, struct failure *why)
{
	struct value *v = &s->value[SET_ARGS];
	struct vec words = { 0 };
	const char *fault;

	if (words_split(text, s->arena, &words, &fault) < 0)
		return failure_usage(why, "%s: args: %s in: %s", from.where, fault, text);
	if (has_comment(text, &words))
		return failure_usage(why,
			"%s: args: '#' and what follows it would be arguments; a comment begins with "
			"';', and an argument \"#\" is put in quotes",
			from.where);
	if (from.level < v->from.level)
		return 0;
	if (from.level > v->from.level) {
		s->file_args = (struct vec){ 0 };
		s->file_args_first = from.where;
	} else { /* the same file: "job.ini:4-6" */
		from.where = arena_printf(s->arena, "%s-%s", s->file_args_first,
			strrchr(from.where, ':') ? strrchr(from.where, ':') + 1 : from.where);
	}
	vec_add_all(s->arena, &s->file_args, words.at);
	*v = (struct value){ .from = from, .text = text };
	return 0;
}

/* The words as one line of a shell. */
static const char *shown(struct arena *a, const struct vec *words)
{
	struct text out = { 0 };
	const char *line;

	for (size_t i = 0; i < words->count; i++) {
		text_add(&out, i ? " " : "");
		text_add_shell(&out, words->at[i]);
	}
	line = arena_strdup(a, text_string(&out));
	text_done(&out);
	return line;
}

void script_settle(struct settings *s)
{
	struct value *script = &s->value[SET_SCRIPT], *args = &s->value[SET_ARGS];
	enum level level = s->script ? LEVEL_COMMAND_LINE : script->from.level;

	if (s->script)
		*script = (struct value){ .from = { LEVEL_NONE, NULL } };
	else
		s->script = script->text;
	if (args->from.level < level)
		*args = (struct value){ .from = { LEVEL_NONE, NULL } };
	if (args->from.level == LEVEL_NONE || level == LEVEL_COMMAND_LINE)
		return;
	s->args = s->file_args;
	args->text = shown(s->arena, &s->args);
}
