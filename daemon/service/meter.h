/* meter.h - the observer that counts for Prometheus (metrics.h), and where the counts go: the file
 * of --metrics-file, and whoever asks by --metrics-listen.
 *
 * The file is written by the output thread when something has happened, at most once a second; a
 * timer runs only for what has happened within that second. The last page is written when all
 * output is. All functions but one are the main thread's. */
#ifndef LAUNCHD_DAEMON_SERVICE_METER_H
#define LAUNCHD_DAEMON_SERVICE_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "daemon/cluster/sight.h"
#include "daemon/service/http_server.h"
#include "daemon/service/metrics.h"

struct address;
struct arena;
struct bus;
struct failure;
struct output;
struct plan;
struct text;

struct meter {
	/* the owner's */
	struct output *output;      /* whose thread writes while it runs; NULL: it doesn't */
	struct output_counts bytes; /* once the output is closed: its last counts */

	/* private */
	struct http_server server; /* of --metrics-listen */
	struct metrics counted;
	struct sight sight;          /* the last one that was taken */
	const struct member *member; /* NULL: not in the loop */
	const char *path;            /* NULL: no file */
	uv_timer_t soon;             /* until the next page is written */
	uint64_t written_ms;         /* when the last one was handed over: uv_now() */
	bool in_loop;
	bool told; /* that the file can't be written; the writer's */
};

/* Begins to count. The plan is borrowed until the nodes have met. */
void meter_start(struct meter *me, const struct plan *plan, struct arena *arena, struct bus *b);

/* Takes the address to listen at ({ 0 }: none), where nobody is answered yet. Errors as
 * http_server_open()'s. */
int meter_listen(struct meter *me, const struct address *at, struct failure *why);

/* The loop runs from now on, until meter_leave(): there is a member to look at, and who asks is
 * answered. meter_leave() is due after a failure, too, and without meter_enter(). */
int meter_enter(
	struct meter *me, uv_loop_t *loop, const struct member *member, struct failure *why);
void meter_leave(struct meter *me);

/* Adds the page as it is now. */
void meter_render(struct meter *me, struct text *out);

/* For the output thread: writes a page. `owner` is a struct meter. */
void meter_write(void *owner, const char *at, size_t len);

#endif
