/* sighting.h - what one rank saw in one step of the check, as a line of text that goes through the
 * store. Pure. */
#ifndef LAUNCHD_DAEMON_NODECHECK_SIGHTING_H
#define LAUNCHD_DAEMON_NODECHECK_SIGHTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

/* In the order of how much they say of the hardware. */
enum gpu_sight_kind {
	SIGHT_NONE, /* nothing was to be seen, or it didn't come */
	SIGHT_RIGHT,
	SIGHT_FAILED, /* could not run; text says why */
	SIGHT_NO_GPU, /* no GPU or no driver; text */
	SIGHT_HUNG,   /* was killed when its time was over; text says in what */
	SIGHT_BROKEN, /* the GPU or the library reported an error; text */
	SIGHT_WRONG,  /* a result was not what it must be; text */
	SIGHTS,
};

/* Rates in MB/s (memory, bus), and MFLOP/s for compute; 0: not measured. */
enum rate { RATE_MEMORY, RATE_COMPUTE, RATE_BUS, RATES };

struct gpu_sight {
	enum gpu_sight_kind what;
	char test[16]; /* of a step of several tests, which one `what` speaks of: "memory",
			  "compute" */
	uint64_t rates[RATES];
	char gpu[64], bus[24];
	char text[160];
};

/* One line, without its end. */
void sighting_write(const struct gpu_sight *s, struct text *out);

/* -EPROTO: not such a line; *ret is untouched. */
int sighting_read(const char *line, struct gpu_sight *ret);

#endif
