/* black_box.h - --blackbox: what can be known of a failure is taken while it can be.
 *
 * Nothing of it is in a job that goes well: no process, no timer, no file. */
#ifndef LAUNCHD_DAEMON_RUN_BLACK_BOX_H
#define LAUNCHD_DAEMON_RUN_BLACK_BOX_H

struct run;

/* Takes a bundle now, though the attempt goes on; why: a sentence. Nothing where --blackbox is off,
 * one is being taken, or no worker runs. */
void black_box_take(struct run *r, const char *why);

#endif
