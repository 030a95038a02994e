/* phrases.h - what reports are put together from: spans of time, moments, lists of ranks. Pure, but
 * for the time zone, which localtime_r(3) reads. */
#ifndef LAUNCHD_DAEMON_JOB_PHRASES_H
#define LAUNCHD_DAEMON_JOB_PHRASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cause;
struct outcome;
struct result;
struct text;

enum { SPAN_SIZE = 32 };

/* "0.03 s", "12.3 s", "16 min 39 s", "2 h 05 min" */
void span_format(uint64_t ns, char ret[SPAN_SIZE]);

/* The same; "0.00 s" where to is not after from. */
void span_add(struct text *out, uint64_t from_ns, uint64_t to_ns);

/* Local time of a CLOCK_MONOTONIC moment of the run: "2026-11-21 07:00:12.345 +0100", or with iso
 * as ISO 8601 has it: "2026-11-21T07:00:12.345+01:00". False, and nothing is added: not known. */
bool moment_add(struct text *out, const struct result *r, uint64_t at_ns, bool iso);

/* The same moment in seconds since 1970; 0: not known. */
int64_t moment_seconds(const struct result *r, uint64_t at_ns);

/* When the job's fate was sealed: the culprit's end, else when launchd knew; 0: not known. */
uint64_t cause_ns(const struct result *r);

/* Who announced a preemption: "SIGUSR1", "--preempt-watch". */
const char *preemption_source(const struct cause *c);

/* What ended the job where that is no worker and no lost node: "launchd received SIGTERM". Nothing
 * of the others. max_runtime_ms: of --max-runtime; 0: not known. */
void cause_add(const struct cause *c, uint64_t max_runtime_ms, struct text *out);

/* The same of any cause but NONE, in few words where it is a worker or a node: "a worker failed".
 */
void cause_brief_add(const struct cause *c, uint64_t max_runtime_ms, struct text *out);

/* "node 3", "nodes 0-2, 4": count > 0 numbers in ascending order. After 16 ranges the rest is
 * counted: "nodes 0, 2, ... (96 in all)". */
void numbers_add(struct text *out, const char *noun, const unsigned *list, size_t count);

/* The same by name, as many as find room, but at least one: "gpu02 (node 1), gpu07 (node 6) and 37
 * more". names: by node rank; NULL: "nodes 1, 6", whatever the room. */
void nodes_add(struct text *out, const unsigned *list, size_t count, const char *const *names,
	size_t room_bytes);

/* "rank 3", "ranks 0-2, 4": count > 0 outcomes in order of their ranks, in the same way. */
void ranks_add(struct text *out, const struct outcome *const *list, size_t count);

/* Behind the name of the node of a cause of kind NODE_LOST: " was lost"; " was itself frozen or
 * suspended"; nothing where all that is known is said before it. */
void loss_add(struct text *out, const struct cause *c);

/* Behind the name of the node of a cause of kind BAD_NODE: " is bad: GPU 2: 4 uncorrectable ECC
 * errors; 2 nodes are bad; exclude: gpu07,gpu12". The list is cut where it is long. */
void bad_add(struct text *out, const struct cause *c);

/* "; 3 of 4 nodes were lost: nodes 1-3", where that is half of them or more; else nothing. */
void losses_add(struct text *out, const struct result *r);

/* Where something was: "gpu07 (node 1)"; "node 1" where the host's name is not known (""). */
void place_add(struct text *out, const char *name, unsigned node);

/* The same of a node: "node 1 (gpu07)"; "node 1". */
void node_name_add(struct text *out, unsigned node, const char *name);

/* "rank 3 (local rank 1, pid 4711)" */
void worker_add(struct text *out, const struct outcome *o);

/* How a worker ended, and whether the kernel ended it: "exit code 1", "killed by the kernel's OOM
 * killer (SIGKILL)". */
void outcome_add(struct text *out, const struct outcome *o);

#endif
