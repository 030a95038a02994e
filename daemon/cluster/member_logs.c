/* member_logs.c - this launcher's part in merging the nodes' lines; see member.h */
#include "daemon/cluster/config.h"
#include "daemon/cluster/member.h"
#include "daemon/cluster/merged_lines.h"

bool member_merges(const struct member *m)
{
	return m->role == MEMBER_SPOKE && spoke_merges(&m->spoke);
}

size_t member_log_room(const struct member *m)
{
	return m->role == MEMBER_SPOKE ? spoke_log_room(&m->spoke) : 0;
}

void member_log(struct member *m, int stream, const char *at, size_t len)
{
	if (m->role == MEMBER_SPOKE)
		spoke_log(&m->spoke, stream, at, len);
}

void member_log_end(struct member *m)
{
	if (m->role == MEMBER_SPOKE)
		spoke_log_end(&m->spoke);
}

void member_log_taken(struct member *m, unsigned node, size_t len)
{
	if (m->role == MEMBER_HUB)
		hub_logs_taken(&m->hub, node, len);
}
