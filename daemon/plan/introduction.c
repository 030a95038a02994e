/* introduction.c - see introduction.h */
#include "daemon/plan/introduction.h"

#include "common/failure.h"

struct among peers_role(
	const struct peer *peers, const unsigned *nproc, unsigned nnodes, unsigned self)
{
	struct among a = { 0, 0 };

	for (unsigned i = 0; i < nnodes; i++) {
		if (peers[i].role != peers[self].role)
			continue;
		a.first += i < self ? nproc[i] : 0;
		a.count += nproc[i];
	}
	return a;
}

static bool same_host(const struct peer *a, const struct peer *b)
{
	return a == b || (a->host == b->host && a->host != 0);
}

int peers_host(const struct peer *peers, unsigned nnodes, unsigned self, unsigned here,
	struct among *ret, struct failure *why)
{
	struct among a = { 0, 0 };
	unsigned found = 0;
	bool led = false;

	for (unsigned i = 0; i < nnodes; i++) {
		bool own = same_host(&peers[i], &peers[self]);

		found += own;
		if (peers[i].leads && own) {
			a.first = a.count;
			led = true;
		}
		a.count += peers[i].leads;
	}
	if (found != here)
		return failure_usage(why,
			"%u launchers of this job say that they are on this host, but the one that started "
			"them says %u: give each host a name of its own",
			found, here);
	if (!led)
		return failure_usage(why, "no launcher on this host has local rank 0");
	*ret = a;
	return 0;
}
