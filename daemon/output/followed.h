/* followed.h - lines of one stream of a worker, on their way to those who follow them. */
#ifndef LAUNCHD_DAEMON_OUTPUT_FOLLOWED_H
#define LAUNCHD_DAEMON_OUTPUT_FOLLOWED_H

#include <stddef.h>
#include <stdint.h>

/* A line that is too long to be held comes in pieces, of which the last one alone has a '\n'. */
struct followed_lines {
	unsigned rank;
	int fd;        /* 1 or 2 */
	uint64_t lost; /* lines before these that found no room */
	const char *at;
	size_t len;
};

#endif
