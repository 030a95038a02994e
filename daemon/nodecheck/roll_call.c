/* roll_call.c - see roll_call.h */
#include "daemon/nodecheck/roll_call.h"

#include <errno.h>
#include <stdio.h>

#include "common/arena.h"
#include "common/text.h"
#include "daemon/nodecheck/check_case.h"

void roll_entry_write(const struct roll_entry *e, struct text *out)
{
	text_printf(out, "%u %u %u %s", e->node, e->first, e->count, e->host);
}

int roll_entry_read(const char *said, unsigned rank, unsigned ranks, struct roll_entry *ret)
{
	struct roll_entry e = { .came = true };

	if (sscanf(said, "%u %u %u %63s", &e.node, &e.first, &e.count, e.host) != 4 ||
		e.first > rank || e.first >= ranks || e.count > ranks - e.first ||
		rank - e.first >= e.count)
		return -EPROTO;
	*ret = e;
	return 0;
}

/* One of the node that rank is of, as far as anybody of it has come; of what lies between two nodes
 * the first rank of the next one is in *ret_next. */
static const struct roll_entry *anybody(
	const struct roll_entry *by_rank, unsigned ranks, unsigned rank, unsigned *ret_next)
{
	*ret_next = ranks;
	for (unsigned r = rank; r < ranks; r++)
		if (by_rank[r].came) {
			if (by_rank[r].first <= rank)
				return &by_rank[r];
			*ret_next = by_rank[r].first;
			return NULL;
		}
	return NULL;
}

unsigned roll_call(const struct roll_entry *by_rank, unsigned ranks, struct arena *arena,
	struct case_node *ret)
{
	unsigned count = 0;

	for (unsigned rank = 0; rank < ranks;) {
		unsigned next, end;
		const struct roll_entry *e = anybody(by_rank, ranks, rank, &next);
		struct case_node *n = &ret[count];

		end = e ? e->first + e->count : next;
		*n = (struct case_node){
			.number = e   ? e->node :
				count ? n[-1].number + 1 :
					0,
			.first = rank,
			.count = end - rank,
			.host = e ? arena_strdup(arena, e->host) : "?",
		};
		for (; rank < end; rank++)
			if (!by_rank[rank].came && !n->missing)
				n->missing = arena_printf(arena, "rank %u did not come", rank);
		count++;
	}
	return count;
}
