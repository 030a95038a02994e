/* host.h - what the output thread asks of whoever made it. */
#ifndef LAUNCHD_DAEMON_OUTPUT_HOST_H
#define LAUNCHD_DAEMON_OUTPUT_HOST_H

#include <stdbool.h>
#include <stddef.h>

/* All of it is called from that thread; at the end, where it can't be started, from the main one.
 */
struct output_host {
	const char *hostname;
	/* It has a message, which may be handed to output_say(). */
	void (*say)(void *owner, bool warning, const char *text);
	/* Writes what output_events() got. True: some of it waits for a reader; it is called again.
	 */
	bool (*write_events)(void *owner, const char *lines, size_t len);
	/* Writes what output_looks() got, which may be dropped. */
	void (*write_looks)(void *owner, const char *lines, size_t len);
	/* Replaces the file of metrics by what output_page() got. */
	void (*write_page)(void *owner, const char *at, size_t len);
	void *owner;
};

#endif
