/* shed.h - memory that is not needed again. */
#ifndef LAUNCHD_DAEMON_OS_SHED_H
#define LAUNCHD_DAEMON_OS_SHED_H

/* Gives back the pages of the dynamic loader and of the tables in which it has looked up names.
 * They are files' pages that nobody writes to, so what is needed of them once more is mapped again:
 * that takes 3 us for every 64 KB, and they are 0.4 MB of each process's peak. */
void shed_loader(void);

#endif
