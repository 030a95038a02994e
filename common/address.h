/* address.h - an IP address with a port, and lists of them. Pure. */
#ifndef LAUNCHD_COMMON_ADDRESS_H
#define LAUNCHD_COMMON_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct vec;

enum { ADDRESS_TEXT = 64, ADDRESSES_MAX = 16 };

/* { 0 } is none. The kernel may write another family's into it, cut short: that is none either. */
struct address {
	union {
		struct sockaddr_in6 v6; /* the first, as the largest one: { 0 } clears it all */
		struct sockaddr_in v4;
		struct sockaddr any; /* for system calls */
	};
};

struct addresses {
	unsigned count;
	struct address at[ADDRESSES_MAX];
};

/* None, where it is of another family. */
struct address address_of(const struct sockaddr *a);

/* IPv4 in IPv6, as a socket for both has it, as IPv4: one for IPv6 alone can't be bound to it. */
struct address address_unmapped(const struct address *a);

/* An address from its text, without a port in it; not a name. -EINVAL. */
int address_parse(const char *text, uint16_t port, struct address *ret);

/* "10.0.0.4:41234", "[fe80::1%3]:41234"; IPv4 in IPv6 is shown as IPv4. */
void address_text(const struct address *a, char ret[ADDRESS_TEXT]);

/* The address alone, without port, scope and brackets; "" for none. */
void address_host_text(const struct address *a, char ret[ADDRESS_TEXT]);

/* The same host, whatever the ports are; IPv4 in IPv6 is IPv4, and a scope of 0 is any. Nothing is
 * the same as none. */
bool address_same_host(const struct address *a, const struct address *b);

/* Host and port. */
bool address_same(const struct address *a, const struct address *b);

/* The one of these texts that is this host. NULL: none. */
const char *address_find_host(const struct vec *texts, const struct address *a);

bool address_is_loopback(const struct address *a);
bool address_is_link_local(const struct address *a); /* 169.254.0.0/16, fe80::/10 */
bool address_is_any(const struct address *a);        /* all of the host's, or none is given */

/* For system calls; 0: none. */
socklen_t address_size(const struct address *a);

uint16_t address_port(const struct address *a);
void address_set_port(struct address *a, uint16_t port);

bool addresses_have(const struct addresses *list, const struct address *a);

/* Twice is once; none, and what finds no room, is left out. */
void addresses_add(struct addresses *list, const struct address *a);

#endif
