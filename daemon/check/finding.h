/* finding.h - what a check of a node found. Pure; flat memory, so that a child may write it where
 * its parent reads it whatever becomes of the child. */
#ifndef LAUNCHD_DAEMON_CHECK_FINDING_H
#define LAUNCHD_DAEMON_CHECK_FINDING_H

#include <stdbool.h>
#include <stddef.h>

struct text;

/* UNKNOWN: the check could not run, or its limit was over: never bad, and always said. The order is
 * that of how much it matters. */
enum health { HEALTH_GOOD, HEALTH_UNKNOWN, HEALTH_BAD, HEALTHS };

struct finding {
	enum health health;
	char check[32];   /* "gpu_ecc": stable, for programs */
	char subject[64]; /* "GPU 3", "mlx5_0 port 1", "/dev/shm"; "": the node */
	char text[224]; /* a sentence's end: "2 uncorrectable errors since the driver was loaded" */
};

enum { FINDINGS_MAX = 256 };

/* Begins as { 0 }. */
struct findings {
	unsigned count; /* may not be trusted where a child wrote it: see findings_merge() */
	unsigned
		left_out; /* for which there was no room: never a bad one where a good one stands */
	struct finding at[FINDINGS_MAX];
};

const char *health_word(enum health h); /* "good", "unknown", "bad" */

/* Adds one; of what is too long "..." is left out. Where there is no room, one of those that matter
 * least makes room for one that matters more. */
__attribute__((format(printf, 5, 6))) void findings_add(struct findings *f, enum health health,
	const char *check, const char *subject, const char *fmt, ...);

/* Adds those of a child, whose memory may have been anything. */
void findings_merge(struct findings *f, const struct findings *from);

/* The first of a check and subject; subject NULL: any. NULL: there is none. */
const struct finding *findings_find(
	const struct findings *f, const char *check, const char *subject);

/* GOOD where there are none. */
enum health findings_worst(const struct findings *f);

/* For people: a line for each, the worst first, but one for all the good ones of a check that say
 * the same; then a line that sums up. */
void findings_table(const struct findings *f, struct text *out);

/* An object in a line: {"launchd_node_check": 1, "host": "n7", "health": "bad", "left_out": 0,
 * "findings": [{"check": "gpu_ecc", "subject": "GPU 3", "health": "bad", "text": "..."}]}. host
 * NULL: null. */
void findings_json(const struct findings *f, const char *host, struct text *out);

/* For Prometheus: launchd_node_check, 1 where it is good and 0 where it is bad; what is unknown has
 * no such value, but launchd_node_check_unknown is 1. host NULL: no label of one. */
void findings_prometheus(const struct findings *f, const char *host, struct text *out);

#endif
