/* notes.c - see notes.h */
#include "common/notes.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/arena.h"

const char *note_word(enum note_level level)
{
	return level == NOTE_WARNING ? "warning" : "note";
}

void notes_append(struct notes *n, const struct notes *others)
{
	if (!others->first)
		return;
	if (n->last)
		n->last->next = others->first;
	else
		n->first = others->first;
	n->last = others->last;
}

__attribute__((format(printf, 4, 0))) static void notes_format(
	struct notes *n, enum note_level level, bool own, const char *fmt, va_list ap)
{
	char line[1024];
	struct note *note = arena_alloc(n->arena, sizeof *note);

	if (!note)
		return;
	(void)vsnprintf(line, sizeof line, fmt, ap);
	*note = (struct note){ level, own, arena_strdup(n->arena, line), NULL };
	notes_append(n, &(const struct notes){ .first = note, .last = note });
}

void notes_add(struct notes *n, enum note_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	notes_format(n, level, false, fmt, ap);
	va_end(ap);
}

void notes_warn_own(struct notes *n, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	notes_format(n, NOTE_WARNING, true, fmt, ap);
	va_end(ap);
}
