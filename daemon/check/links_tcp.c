/* links_tcp.c - see links_tcp.h */
#include "daemon/check/links_tcp.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/address.h"
#include "common/failure.h"
#include "common/fd.h"
#include "daemon/os/port.h"

#ifndef TCP_NOTSENT_LOWAT
#define TCP_NOTSENT_LOWAT 25 /* Linux 3.12; not in the headers of glibc 2.17 */
#endif

enum { UNSENT_MAX = 128 << 10, QUEUE_MAX = 64 };

/* The kernel's struct tcp_info as of Linux 4.19, by offsets, as the C library's own is that of 2.6.
 */
struct kernel_info {
	uint8_t bytes[8];
	uint32_t rto, ato, snd_mss, rcv_mss, from_unacked[5], from_last_data_sent[4], from_pmtu[8];
	uint32_t rcv_rtt, rcv_space, total_retrans;
	uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
	uint32_t segs_out, segs_in, notsent_bytes, min_rtt, data_segs_in, data_segs_out;
	uint64_t delivery_rate, busy_time, rwnd_limited, sndbuf_limited;
	uint32_t delivered, delivered_ce;
	uint64_t bytes_sent, bytes_retrans;
	uint32_t dsack_dups, reord_seen;
};
_Static_assert(offsetof(struct kernel_info, total_retrans) == 100, "as <linux/tcp.h> has it");
_Static_assert(offsetof(struct kernel_info, rwnd_limited) == 176, "as <linux/tcp.h> has it");
_Static_assert(offsetof(struct kernel_info, dsack_dups) == 216, "as <linux/tcp.h> has it");

/* Without those that the other host has told of as having come twice (RFC 2883, D-SACK): they were
 * late, not lost, as happens on a busy machine. */
static uint32_t resent_as_lost(const struct kernel_info *k)
{
	return k->total_retrans > k->dsack_dups ? k->total_retrans - k->dsack_dups : 0;
}

int links_tcp_read(int fd, struct links_tcp *ret)
{
	struct kernel_info k;
	socklen_t size = sizeof k;

	memset(&k, 0, sizeof k); /* an older kernel fills less of it */
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &k, &size) < 0)
		return -errno;
	*ret = (struct links_tcp){
		.acked = k.bytes_acked,
		.busy_us = k.busy_time,
		.receiver_us = k.rwnd_limited,
		.rtt_us = k.min_rtt == UINT32_MAX ? 0 : k.min_rtt,
		.segments = k.data_segs_out,
		.resent = resent_as_lost(&k),
		.segment_max = k.snd_mss,
	};
	return 0;
}

/* --- where others find us --- */

/* The MTU of the interface that has this address; 0: not known. */
static unsigned mtu_of(const struct address *at)
{
	struct ifaddrs *all = NULL;
	struct ifreq r = { 0 };
	autoclose fd = -1;

	if (getifaddrs(&all) < 0)
		return 0;
	for (const struct ifaddrs *i = all; i && !r.ifr_name[0]; i = i->ifa_next) {
		struct address a = i->ifa_addr ? address_of(i->ifa_addr) : (struct address){ 0 };

		if (address_same_host(&a, at))
			strncpy(r.ifr_name, i->ifa_name, sizeof r.ifr_name - 1);
	}
	freeifaddrs(all);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (!r.ifr_name[0] || fd < 0 || ioctl(fd, SIOCGIFMTU, &r) < 0)
		return 0;
	return (unsigned)r.ifr_mtu;
}

int links_tcp_listen(const struct address *at, int *ret_fd, struct address *ret_at,
	unsigned *ret_mtu, struct failure *why)
{
	struct address own = *at;
	autoclose fd = -1;
	int port;

	address_set_port(&own, 0);
	fd = port_bind(address_is_loopback(&own) ? NULL : &own, 0, SOCK_STREAM, 0);
	if (fd < 0)
		return port_explain("the check of links ", &own, 0, fd, why);
	port = port_of(fd);
	if (port < 0 || listen(fd, QUEUE_MAX) < 0)
		return failure_set(why, port < 0 ? port : -errno,
			"the check of links can't listen: %s", strerror(port < 0 ? -port : errno));
	address_set_port(&own, (uint16_t)port);
	*ret_at = own;
	*ret_mtu = mtu_of(&own);
	*ret_fd = fd_take(&fd);
	return 0;
}

/* --- connections to others --- */

int links_tcp_dial(const struct address *to, unsigned segment_max)
{
	autoclose fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1, unsent = UNSENT_MAX, most = (int)segment_max;

	if (fd < 0)
		return -errno;
	/* Only a help each: little may wait to be sent when the time is over, and all nodes are
	 * measured by one algorithm, whatever is set on them. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", sizeof "cubic" - 1);
	if (most > 0 && setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &most, sizeof most) < 0)
		return -errno;
	if (connect(fd, &to->any, address_size(to)) < 0 && errno != EINPROGRESS)
		return -errno;
	return fd_take(&fd);
}

int links_tcp_outcome(int fd)
{
	int error = 0;
	socklen_t size = sizeof error;

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return -errno;
	return -error;
}

void links_tcp_drop(int *fd)
{
	const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };

	if (*fd >= 0)
		(void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	fd_closep(fd);
}
