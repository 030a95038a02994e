#include "wall.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TCP_HEADER = 20, FIN = 1, SYN = 2, RST = 4, ACK = 16 };

static size_t ip_header(const unsigned char *bytes, size_t size)
{
	size_t header = bytes[0] >> 4 == 4 ? (size_t)(bytes[0] & 15) * 4 : 40;

	return header <= size ? header : 0;
}

static bool is(int protocol, const unsigned char *bytes, size_t size)
{
	return size >= 20 && ip_header(bytes, size) > 0 &&
		bytes[bytes[0] >> 4 == 4 ? 9 : 6] == protocol;
}

/* NULL: it has none. */
static unsigned char *tcp_header(unsigned char *bytes, size_t size)
{
	size_t at = size > 0 ? ip_header(bytes, size) : 0;

	return is(IPPROTO_TCP, bytes, size) && size >= at + TCP_HEADER ? bytes + at : NULL;
}

/* FNV-1a. */
static uint64_t hash(const unsigned char *bytes, size_t size)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3;
	return sum;
}

/* The same for both ways of a connection; never 0. */
static uint64_t flow_key(const unsigned char *bytes, const unsigned char *tcp)
{
	bool v4 = bytes[0] >> 4 == 4;
	size_t from = v4 ? 12 : 8, length = v4 ? 4 : 16;
	unsigned char ends[2][18] = { { 0 } };

	for (size_t i = 0; i < 2; i++) {
		memcpy(ends[i], bytes + from + i * length, length);
		memcpy(ends[i] + 16, tcp + 2 * i, 2);
	}
	return (hash(ends[0], sizeof ends[0]) + hash(ends[1], sizeof ends[1])) | 1;
}

struct wall_flow *wall_flow(
	struct wall_flows *f, const unsigned char *bytes, size_t size, int64_t now_ns)
{
	const unsigned char *tcp = tcp_header((unsigned char *)bytes, size);
	uint64_t key = tcp ? flow_key(bytes, tcp) : 0;

	for (size_t i = 0; tcp && i < WALL_FLOWS; i++) {
		struct wall_flow *one = &f->flow[(key / 2 + i) % WALL_FLOWS];

		if (one->key != 0 && one->key != key)
			continue;
		one->key = key;
		if ((tcp[13] & (SYN | ACK)) == SYN)
			one->seen_ns = now_ns;
		return one;
	}
	if (tcp) {
		(void)fputs("netem: too many connections\n", stderr);
		exit(1);
	}
	return NULL;
}

bool wall_passes(const struct wall *w, const unsigned char *bytes, size_t size,
	const struct wall_flow *flow, int64_t now_ns)
{
	if ((w->no_udp && is(IPPROTO_UDP, bytes, size)) || (w->no_tcp && flow))
		return false;
	if (w->max_size > 0 && size > w->max_size)
		return false;
	return !flow || !(w->forget_ms > 0) ||
		(double)(now_ns - flow->seen_ns) <= w->forget_ms * 1e6;
}

static uint32_t add(uint32_t sum, const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i + 1 < size; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	return sum;
}

static void put_sum(unsigned char *at, uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	at[0] = (unsigned char)(~sum >> 8);
	at[1] = (unsigned char)~sum;
}

static void swap(unsigned char *one, unsigned char *other, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char kept = one[i];

		one[i] = other[i];
		other[i] = kept;
	}
}

size_t wall_reset(unsigned char *bytes, size_t size, bool back)
{
	bool v4 = bytes[0] >> 4 == 4;
	size_t from = v4 ? 12 : 8, length = v4 ? 4 : 16;
	unsigned char *tcp = tcp_header(bytes, size);
	size_t header = (size_t)(tcp - bytes);

	if (back) {
		swap(bytes + from, bytes + from + length, length);
		swap(tcp, tcp + 2, 2);
		swap(tcp + 4, tcp + 8,
			4); /* what its sender awaits next, in the place of what it sent */
	}
	tcp[12] = TCP_HEADER / 4 << 4;
	tcp[13] = RST | ACK;
	memset(tcp + 16, 0, 4); /* the sum, and where urgent bytes end */
	put_sum(tcp + 16,
		add(add(IPPROTO_TCP + TCP_HEADER, bytes + from, 2 * length), tcp, TCP_HEADER));
	if (!v4) {
		bytes[4] = 0;
		bytes[5] = TCP_HEADER;
		return header + TCP_HEADER;
	}
	bytes[2] = 0;
	bytes[3] = (unsigned char)(header + TCP_HEADER);
	memset(bytes + 10, 0, 2);
	put_sum(bytes + 10, add(0, bytes, header));
	return header + TCP_HEADER;
}
