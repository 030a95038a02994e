/* print.h - what launchctl answers: its standard output. */
#ifndef LAUNCHD_DAEMON_CTL_PRINT_H
#define LAUNCHD_DAEMON_CTL_PRINT_H

struct failure;
struct text;

/* Writes it to stdout, and frees it. -ENOMEM where it could not be made, or what write(2) says. */
int print_done(struct text *out, struct failure *why);

#endif
