/* wall.h - what a firewall does with an IP packet. Memory only.
 *
 * A packet with an IPv6 extension header is neither TCP nor UDP here, and fragments are not put
 * together: nothing that the tests send has either. */
#ifndef LAUNCHD_TESTS_HOSTS_WALL_H
#define LAUNCHD_TESTS_HOSTS_WALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* { 0 }: everything passes. */
struct wall {
	bool no_udp, no_tcp;
	bool reset; /* TCP's packets become ones with RST, as from one that has no such state */
	size_t max_size;  /* larger packets are dropped, and nobody is told; 0: none is too large */
	double forget_ms; /* a TCP connection that was idle for longer is forgotten, and what comes
			   * of it then dropped, until a SYN; 0: never */
};

enum { WALL_FLOWS = 1 << 14 };

/* TCP connections that were seen, whichever way. */
struct wall_flows {
	struct wall_flow {
		uint64_t key;    /* 0: free */
		int64_t seen_ns; /* its last packet that got through; 0: none has */
	} flow[WALL_FLOWS];
};

/* The packet's connection, which a SYN begins anew. NULL: the packet is no TCP. Ends the program
 * where there is no room for one more. */
struct wall_flow *wall_flow(
	struct wall_flows *f, const unsigned char *bytes, size_t size, int64_t now_ns);

/* Whether the packet gets through; the flow is its own. Who lets it through notes seen_ns. */
bool wall_passes(const struct wall *w, const unsigned char *bytes, size_t size,
	const struct wall_flow *flow, int64_t now_ns);

/* Of a packet of TCP: makes it the reset that ends its connection, for its receiver or, `back`, for
 * its sender; returns the new size. */
size_t wall_reset(unsigned char *bytes, size_t size, bool back);

#endif
