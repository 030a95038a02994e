/* words.c - see words.h */
#include "common/words.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/arena.h"
#include "common/vec.h"

static const char blanks[] = " \t\n";

size_t list_next(const char **at, const char **ret)
{
	size_t len;

	*at += strspn(*at, " ");
	*ret = *at;
	len = strcspn(*at, ",");
	*at += len + ((*at)[len] == ',');
	while (len > 0 && (*ret)[len - 1] == ' ')
		len--;
	return len;
}

/* The text that is read, and the words that are written: never longer than what they are read from,
 * as the NUL of each takes the place of a blank. */
struct split {
	const char *at;
	char *end;
	const char *fault;
};

static void keep(struct split *s, char c)
{
	*s->end++ = c;
}

/* After a backslash. Within double quotes it escapes only what is special there. */
static void escaped(struct split *s, bool quoted)
{
	char c = *s->at;

	if (!c) {
		s->fault = "trailing backslash";
		return;
	}
	s->at++;
	if (quoted && !strchr("$`\"\\\n", c))
		keep(s, '\\');
	if (c != '\n') /* a line that goes on */
		keep(s, c);
}

static void single_quoted(struct split *s)
{
	while (*s->at && *s->at != '\'')
		keep(s, *s->at++);
	if (*s->at)
		s->at++;
	else
		s->fault = "unmatched '";
}

static void double_quoted(struct split *s)
{
	while (*s->at && *s->at != '"' && !s->fault) {
		char c = *s->at++;

		if (c == '\\')
			escaped(s, true);
		else
			keep(s, c);
	}
	if (*s->at == '"')
		s->at++;
	else
		s->fault = "unmatched \"";
}

/* One word, which begins here. False: what is left was blank, or there is a fault. */
static bool next_word(struct split *s)
{
	bool found = false;

	for (;;) { /* past blanks, and newlines after a backslash */
		s->at += strspn(s->at, blanks);
		if (s->at[0] != '\\' || s->at[1] != '\n')
			break;
		s->at += 2;
	}
	while (*s->at && !strchr(blanks, *s->at) && !s->fault) {
		char c = *s->at++;

		found = true;
		if (c == '\'')
			single_quoted(s);
		else if (c == '"')
			double_quoted(s);
		else if (c == '\\')
			escaped(s, false);
		else
			keep(s, c);
	}
	return found && !s->fault;
}

int words_split(const char *text, struct arena *arena, struct vec *ret, const char **ret_fault)
{
	struct vec found = { 0 };
	struct split s = { .at = text, .end = arena_alloc(arena, strlen(text) + 1) };

	if (!s.end)
		return 0; /* and the arena is failed */
	for (char *word = s.end; next_word(&s); word = s.end) {
		keep(&s, '\0');
		vec_add(arena, &found, word);
	}
	if (s.fault) {
		*ret_fault = s.fault;
		return -EINVAL;
	}
	vec_add_all(arena, ret, found.at);
	return 0;
}

/* Whether two neighbours belong to the same word. */
static bool is_joined(char a, char b)
{
	return isalnum((unsigned char)a) && isalnum((unsigned char)b);
}

bool words_have(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = text; len > 0 && *at; at++)
		if (strncasecmp(at, name, len) == 0 && (at == text || !is_joined(at[-1], *at)) &&
			!is_joined(at[len - 1], at[len]))
			return true;
	return false;
}
