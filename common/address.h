/* address.h - socket addresses as people read them. Pure. */
#ifndef LAUNCHD_COMMON_ADDRESS_H
#define LAUNCHD_COMMON_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ADDRESS_TEXT = 64 };

/* "10.0.0.4:41234", "[fe80::1%3]:41234"; IPv4 in IPv6 is shown as IPv4. */
void address_text(const struct sockaddr *a, char ret[ADDRESS_TEXT]);

/* The same host, whatever the ports are; IPv4 in IPv6 is IPv4. */
bool address_same_host(const struct sockaddr *a, const struct sockaddr *b);

/* An address from its text, without a port in it; not a name. -EINVAL. */
int address_parse(const char *text, uint16_t port, struct sockaddr_storage *ret);

/* The address alone, without port and brackets. */
void address_host_text(const struct sockaddr *a, char ret[ADDRESS_TEXT]);

bool address_is_loopback(const struct sockaddr *a);

/* 0: of no known family. */
socklen_t address_size(const struct sockaddr *a);

uint16_t address_port(const struct sockaddr *a);
void address_set_port(struct sockaddr *a, uint16_t port);

#endif
