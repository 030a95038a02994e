/* hint.h - what to do about a failure whose cause the culprit's own words give away. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_HINT_H
#define LAUNCHD_DAEMON_REPORT_HINT_H

struct report_input;

/* One sentence about the culprit's failure, the arena's; NULL: nothing is known that would help. */
const char *report_hint(const struct report_input *in);

#endif
