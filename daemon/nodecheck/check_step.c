/* check_step.c - see check_step.h
 *
 *	reduce 60000 0+8 8+8,24+8
 *
 * kind, limit in ms, and the groups: first rank + number of ranks, of each part. */
#include "daemon/nodecheck/check_step.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "common/num.h"
#include "common/text.h"

static const char *const words[STEP_KINDS] = {
	[STEP_GPU] = "gpu",
	[STEP_REDUCE] = "reduce",
	[STEP_NICS] = "nics",
	[STEP_END] = "end",
};

const char *step_name(enum step_kind kind)
{
	return words[kind];
}

void check_step_write(const struct check_step *s, struct text *out)
{
	text_printf(out, "%s %" PRIu64, words[s->kind], s->limit_ms);
	for (size_t i = 0; i < s->count; i++)
		for (unsigned part = 0; part < s->groups[i].count; part++) {
			const struct rank_range *r = &s->groups[i].parts[part];

			text_printf(out, "%s%u+%u", part ? "," : " ", r->first, r->count);
		}
}

/* The word at *at, which moves to the next one. */
static size_t word(const char **at, const char **ret)
{
	size_t len = strcspn(*at, " ");

	*ret = *at;
	*at += len + ((*at)[len] == ' ');
	return len;
}

/* "8+8" */
static int read_range(const char *from, size_t len, struct rank_range *ret)
{
	const char *plus = memchr(from, '+', len);
	uint64_t first, count;

	if (!plus || num_parse_len(from, (size_t)(plus - from), 0, INT_MAX, &first) < 0 ||
		num_parse_len(plus + 1, len - (size_t)(plus + 1 - from), 1, INT_MAX, &count) < 0)
		return -EPROTO;
	*ret = (struct rank_range){ (unsigned)first, (unsigned)count };
	return 0;
}

/* Looks for a rank in a group, "8+8,24+8". *ret_found, with its place in there: it is in it. */
static int read_group(const char *from, size_t len, unsigned rank, unsigned *ret_size,
	unsigned *ret_place, bool *ret_found)
{
	unsigned size = 0;

	for (const char *end = from + len; from < end;) {
		const char *comma = memchr(from, ',', (size_t)(end - from));
		const char *stop = comma ? comma : end;
		struct rank_range r;

		if (read_range(from, (size_t)(stop - from), &r) < 0 || r.count > INT_MAX - size)
			return -EPROTO;
		if (!*ret_found && rank >= r.first && rank - r.first < r.count) {
			*ret_found = true;
			*ret_place = size + rank - r.first;
		}
		size += r.count;
		from = comma ? comma + 1 : end;
	}
	*ret_size = size;
	return size ? 0 : -EPROTO;
}

int check_step_read(const char *line, unsigned rank, struct step_part *ret)
{
	struct step_part p = { .kind = STEP_KINDS };
	const char *at = line, *from;
	size_t len = word(&at, &from);
	bool found = false;

	for (unsigned kind = 0; kind < STEP_KINDS; kind++)
		if (strlen(words[kind]) == len && memcmp(words[kind], from, len) == 0)
			p.kind = (enum step_kind)kind;
	len = word(&at, &from);
	if (p.kind == STEP_KINDS || num_parse_len(from, len, 0, INT_MAX, &p.limit_ms) < 0)
		return -EPROTO;
	for (unsigned number = 0; *at; number++) {
		bool here = false;
		unsigned size;

		len = word(&at, &from);
		if (read_group(from, len, rank, &size, &p.rank, &here) < 0)
			return -EPROTO;
		if (here) {
			found = true;
			p.group = number;
			p.ranks = size;
		}
	}
	*ret = p;
	return found ? 0 : -ENOENT;
}

unsigned rank_group_size(const struct rank_group *g)
{
	unsigned size = 0;

	for (unsigned part = 0; part < g->count; part++)
		size += g->parts[part].count;
	return size;
}

unsigned rank_group_at(const struct rank_group *g, unsigned i)
{
	unsigned part = 0;

	while (i >= g->parts[part].count)
		i -= g->parts[part++].count;
	return g->parts[part].first + i;
}
