/* births.h - the ways in which a worker's process gets children that are hard to find. */
#ifndef LAUNCHD_TESTS_WORKERS_BIRTHS_H
#define LAUNCHD_TESTS_WORKERS_BIRTHS_H

/* Makes a process of the named kind, which runs life() and never returns from it. 0 in the caller;
 * -1: there is no such kind. */
int birth(const char *name, void (*life)(void));

#endif
