/* links.h - the phase that tries the TCP links between nodes, where there is no GPU whose library
 * would do so: each node to a few others, and from what all tell the bad ends. See links_talk.h and
 * links_judge.h. */
#ifndef LAUNCHD_DAEMON_CHECK_LINKS_H
#define LAUNCHD_DAEMON_CHECK_LINKS_H

struct phase;

extern const struct phase links_phase;

#endif
