/* finding.h - what a check of a node found. Pure; flat memory, so that a child may write it where its
 * parent reads it whatever becomes of the child. */
#ifndef LAUNCHD_DAEMON_CHECK_FINDING_H
#define LAUNCHD_DAEMON_CHECK_FINDING_H

#include <stdbool.h>
#include <stddef.h>

/* UNKNOWN: the check could not run, or its limit was over: never bad, and always said. The order is
 * that of how much it matters. */
enum health { HEALTH_GOOD, HEALTH_UNKNOWN, HEALTH_BAD, HEALTHS };

struct finding {
	enum health health;
	char check[32];   /* "gpu_ecc": stable, for programs */
	char subject[64]; /* "GPU 3", "mlx5_0 port 1", "/dev/shm"; "": the node */
	char text[224];   /* a sentence's end: "2 uncorrectable errors since the driver was loaded" */
};

enum { FINDINGS_MAX = 256 };

struct findings {
	unsigned count;    /* may not be trusted where a child wrote it: see findings_count() */
	unsigned left_out; /* for which there was no room: never a bad one where a good one stands */
	struct finding at[FINDINGS_MAX];
};

#endif
