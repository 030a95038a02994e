/* check_round.c - see check_round.h */
#include "daemon/run/check_round.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/check/checkup.h"

int check_round_begin(struct check_round *r, unsigned nnodes, const bool *absent)
{
	check_round_done(r);
	r->said = calloc(nnodes, sizeof *r->said);
	r->told = calloc(nnodes, sizeof *r->told);
	r->nnodes = nnodes;
	r->absent = absent;
	if (r->said && r->told)
		return 0;
	check_round_done(r);
	return -ENOMEM;
}

void check_round_done(struct check_round *r)
{
	for (unsigned i = 0; r->said && r->told && i < r->nnodes; i++) {
		text_done(&r->said[i]);
		text_done(&r->told[i]);
	}
	free(r->said);
	free(r->told);
	*r = (struct check_round){ 0 };
}

void check_round_say(struct check_round *r, unsigned node, const char *at, size_t len)
{
	if (node < r->nnodes && r->said[node].len == 0 && len > 0 && len < MEET_LINE_MAX &&
		!memchr(at, '\n', len) && !memchr(at, '\0', len))
		text_add_bytes(&r->said[node], at, len);
}

void check_round_tell(struct check_round *r, unsigned node, const char *at, size_t len)
{
	if (node < r->nnodes && r->told[node].len == 0 && len > 0 && len <= TOLD_MAX &&
		(*at == TOLD_WELL || *at == TOLD_FAILED))
		text_add_bytes(&r->told[node], at, len);
}

static bool is_awaited(const struct check_round *r, unsigned node)
{
	return r->told[node].len == 0 && !(r->absent && r->absent[node]);
}

bool check_round_is_said(const struct check_round *r)
{
	for (unsigned i = 0; i < r->nnodes; i++)
		if (is_awaited(r, i) && r->said[i].len == 0)
			return false;
	return true;
}

bool check_round_is_told(const struct check_round *r)
{
	for (unsigned i = 0; i < r->nnodes; i++)
		if (is_awaited(r, i))
			return false;
	return true;
}

void check_round_lines(const struct check_round *r, struct text *out)
{
	for (unsigned i = 0; i < r->nnodes; i++) {
		text_add(out, text_string(&r->said[i]));
		text_add(out, "\n");
	}
}

const char *check_round_told(const struct check_round *r, unsigned node)
{
	return node < r->nnodes && r->told[node].len > 0 ? r->told[node].at : NULL;
}
