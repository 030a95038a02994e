/* accuse.h - what the trials of one stage say of nodes, GPUs and links, in words. Pure. */
#ifndef LAUNCHD_DAEMON_NODECHECK_ACCUSE_H
#define LAUNCHD_DAEMON_NODECHECK_ACCUSE_H

#include "daemon/check/finding.h"

struct check_case;

/* One finding; a node is as its worst one. */
__attribute__((format(printf, 6, 7))) void accuse(struct check_case *c, unsigned node,
	enum health health, const char *check, const char *subject, const char *fmt, ...);

/* All findings of the case's present stage; also which nodes have no part in later ones, and in
 * which of them pairs of GPUs are to be tried. */
void accuse_stage(struct check_case *c);

#endif
