/* loglevel.h - how much launchd says: --quiet, --verbose, and torchrun's variable LOGLEVEL. Pure.
 */
#ifndef LAUNCHD_CONFIG_LOGLEVEL_H
#define LAUNCHD_CONFIG_LOGLEVEL_H

#include "common/notes.h"

struct failure;
struct settings;

#define LOGLEVEL_VARIABLE "LOGLEVEL"

/* Reads the variable's value, a name or number of Python's logging, as what --quiet and --verbose
 * are where nothing above the environment has set them. Programs use this variable in their own
 * ways: a value that Python doesn't know only causes a warning. 0, or -ENOMEM. */
int loglevel_read(struct settings *s, const char *text, struct notes *notes, struct failure *why);

/* The least level of notes that are printed; NOTE_NONE: none are. */
enum note_level loglevel_least(const struct settings *s);

#endif
