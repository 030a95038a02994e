/* deeds.h - what a process does so that it is hard to end. */
#ifndef LAUNCHD_TESTS_WORKERS_DEEDS_H
#define LAUNCHD_TESTS_WORKERS_DEEDS_H

#include <stdbool.h>

/* Ends the calling process when the program's time is over, whatever it does then: a test that
 * fails must not leave it behind for long. Every process calls it, as timers are not inherited. */
void limit_life(void);

/* Sleeps until that time is over. */
_Noreturn void live_on(void);

/* Does the named deed. It is done only if it is one that comes last and `late` is set, or
 * if neither is so. -1: there is no such deed. */
int deed(const char *name, bool late);

#endif
