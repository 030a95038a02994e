/* notes.h - what the user should read before the workers start, gathered by pure stages and
 * printed once, by main. */
#ifndef LAUNCHD_COMMON_NOTES_H
#define LAUNCHD_COMMON_NOTES_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

/* NOTE_NONE is no level of a note, but a bound above them all: nothing is printed. */
enum note_level { NOTE_VERBOSE, NOTE_INFO, NOTE_WARNING, NOTE_NONE };

struct note {
	enum note_level level;
	bool own; /* printed also where another launcher speaks for all */
	const char *text;
	struct note *next;
};

struct notes {
	struct arena *arena; /* owns every note */
	struct note *first, *last;
};

/* How a level is called in print; what only --verbose shows is a note, too. */
const char *note_word(enum note_level level);

/* Adds a sentence, no newline. Out of memory: it is dropped and the arena is failed. */
__attribute__((format(printf, 3, 4))) void notes_add(
	struct notes *n, enum note_level level, const char *fmt, ...);

/* Adds a warning that only this launcher can give. */
__attribute__((format(printf, 2, 3))) void notes_warn_own(struct notes *n, const char *fmt, ...);

/* Puts the others behind these; they have to live as long. */
void notes_append(struct notes *n, const struct notes *others);

#endif
