/* journal_socket.h - journald's socket for entries with fields.
 *
 * Not libsystemd's sd_journal_sendv(), which waits without an end for a journald that is stopped or
 * stuck in a disk: this one never waits, and a loop can. The protocol is stable and described in
 * systemd's docs/JOURNAL_NATIVE_PROTOCOL.md. */
#ifndef LAUNCHD_DAEMON_OS_JOURNAL_SOCKET_H
#define LAUNCHD_DAEMON_OS_JOURNAL_SOCKET_H

#include <stddef.h>

/* Also in a service with LogNamespace=, where systemd puts the namespace's here. */
#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* A connected datagram socket, which tells when journald has room; negative errno. */
int journal_socket_open(const char *path);

/* Sends one entry; one that is too large for a datagram as a sealed memory file. -EAGAIN: journald
 * has no room now. Other negative errno: it is not there (any more). */
int journal_socket_send(int fd, const char *at, size_t len);

/* The same, and waits for room that long. */
int journal_socket_send_within(int fd, const char *at, size_t len, int within_ms);

#endif
