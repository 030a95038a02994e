/* links_told.c - see links_told.h */
#include "daemon/check/links_told.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/failure.h"
#include "common/json.h"
#include "common/text.h"

static const char *const names[LINKS_RESULTS] = {
	[LINKS_UNTRIED] = "untried",
	[LINKS_UNREACHED] = "unreached",
	[LINKS_REFUSED] = "refused",
	[LINKS_SILENT] = "silent",
	[LINKS_BROKEN] = "broken",
	[LINKS_STALLED] = "stalled",
	[LINKS_BIG_LOST] = "big_lost",
	[LINKS_DONE] = "done",
};

void links_told_write(const struct links_told *t, struct text *out)
{
	struct json j = { .out = out };

	json_object_begin(&j, NULL);
	json_number(&j, "met", t->met);
	json_number(&j, "mtu", t->mtu);
	json_array_begin(&j, "to");
	for (unsigned i = 0; i < t->count; i++) {
		const struct link_told *l = &t->at[i];

		json_object_begin(&j, NULL);
		json_number(&j, "node", l->node);
		json_string(&j, "state", names[l->state]);
		json_number(&j, "tries", l->tries);
		json_number(&j, "rtt_us", l->rtt_us);
		json_number(&j, "bit_s", (long long)l->bit_s);
		json_number(&j, "net_bit_s", (long long)l->net_bit_s);
		json_number(&j, "segments", l->segments);
		json_number(&j, "resent", l->resent);
		json_number(&j, "segment_max", l->segment_max);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
}

/* --- reading: what was written, blank for blank, as both ends are the same program --- */

/* What comes next is this text; *at goes on behind it. */
static bool skip(const char **at, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(*at, text, len) != 0)
		return false;
	*at += len;
	return true;
}

static bool read_number(const char **at, const char *before, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;
	unsigned digits = 0;

	if (!skip(at, before))
		return false;
	for (; **at >= '0' && **at <= '9' && digits < 19; digits++)
		n = n * 10 + (uint64_t)(*(*at)++ - '0');
	*ret = n;
	return digits > 0 && n <= max;
}

static bool read_unsigned(const char **at, const char *before, unsigned *ret)
{
	uint64_t n = 0;

	if (!read_number(at, before, UINT32_MAX, &n))
		return false;
	*ret = (unsigned)n;
	return true;
}

static bool read_state(const char **at, enum links_result *ret)
{
	if (!skip(at, ",\"state\":\""))
		return false;
	for (int s = 0; s < LINKS_RESULTS; s++) {
		const char *behind = *at;

		if (skip(&behind, names[s]) && skip(&behind, "\"")) {
			*at = behind;
			*ret = (enum links_result)s;
			return true;
		}
	}
	return false;
}

static bool read_link(const char **at, struct link_told *l)
{
	return read_unsigned(at, "{\"node\":", &l->node) && read_state(at, &l->state) &&
		read_unsigned(at, ",\"tries\":", &l->tries) &&
		read_unsigned(at, ",\"rtt_us\":", &l->rtt_us) &&
		read_number(at, ",\"bit_s\":", INT64_MAX, &l->bit_s) &&
		read_number(at, ",\"net_bit_s\":", INT64_MAX, &l->net_bit_s) &&
		read_unsigned(at, ",\"segments\":", &l->segments) &&
		read_unsigned(at, ",\"resent\":", &l->resent) &&
		read_unsigned(at, ",\"segment_max\":", &l->segment_max) && skip(at, "}");
}

static bool read_all(const char *at, struct links_told *t)
{
	unsigned met = 0;

	if (!read_unsigned(&at, "{\"met\":", &met) || met > 1 ||
		!read_unsigned(&at, ",\"mtu\":", &t->mtu) || !skip(&at, ",\"to\":["))
		return false;
	t->met = met;
	while (!skip(&at, "]}")) {
		if (t->count == LINKS_ROUNDS_MAX || (t->count > 0 && !skip(&at, ",")) ||
			!read_link(&at, &t->at[t->count]))
			return false;
		t->count++;
	}
	return *at == '\0';
}

int links_told_read(const char *json, struct links_told *ret, struct failure *why)
{
	struct links_told t = { 0 };

	if (!read_all(json, &t))
		return failure_set(why, -EPROTO,
			"what a node tells of its links can't be understood: \"%.80s\"", json);
	*ret = t;
	return 0;
}
