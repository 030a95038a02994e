/* notes.c - see notes.h */
#include "common/notes.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/arena.h"

const char *note_word(enum note_level level)
{
	return level == NOTE_WARNING ? "warning" : "note";
}

void notes_add(struct notes *n, enum note_level level, const char *fmt, ...)
{
	char line[1024];
	struct note *note = arena_alloc(n->arena, sizeof *note);
	va_list ap;

	if (!note)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	note->level = level;
	note->text = arena_strdup(n->arena, line);
	if (n->last)
		n->last->next = note;
	else
		n->first = note;
	n->last = note;
}
