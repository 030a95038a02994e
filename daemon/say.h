/* say.h - launchd's own words on stderr: "launchd: level: text". */
#ifndef LAUNCHD_DAEMON_SAY_H
#define LAUNCHD_DAEMON_SAY_H

struct text;

/* Says one line. That it can't be said must not end the job. */
void say(const char *level, const char *line);

/* Writes a text of whole lines to stderr and empties it. */
void say_text(struct text *lines);

/* Writes a text to stdout and empties it; returns main's exit code. */
int print_text(struct text *out);

#endif
