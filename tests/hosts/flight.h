/* flight.h - packets that are under way, in the order in which they are due. Memory only; what
 * there is no memory for ends the program, as a network that loses packets unasked proves nothing.
 */
#ifndef LAUNCHD_TESTS_HOSTS_FLIGHT_H
#define LAUNCHD_TESTS_HOSTS_FLIGHT_H

#include <stddef.h>
#include <stdint.h>

struct packet {
	int64_t due_ns;
	uint64_t number; /* of two that are due at once the older one goes first */
	uint16_t to;
	uint16_t size;
	unsigned char bytes[];
};

struct flight {
	struct packet **heap;
	size_t waiting, room;
	uint64_t numbered;
};

/* Takes a copy of a packet to host `to` that is due at due_ns. */
void flight_add(struct flight *f, int64_t due_ns, int to, const unsigned char *bytes, size_t size);

/* When the next one is due; 0: there is none. */
int64_t flight_next_ns(const struct flight *f);

/* The next one, which there must be; the caller frees it. */
struct packet *flight_take(struct flight *f);

#endif
