/* sighting.c - see sighting.h */
#include "daemon/nodecheck/sighting.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/num.h"
#include "common/text.h"

/* Fields are divided by tabs; what came from a driver or a library has none, nor an end of line. */
static void add_field(struct text *out, const char *s)
{
	text_add(out, "\t");
	for (; *s; s++) {
		char byte = (unsigned char)*s < ' ' ? ' ' : *s;

		text_add_bytes(out, &byte, 1);
	}
}

void sighting_write(const struct gpu_sight *s, struct text *out)
{
	text_printf(out, "%u", (unsigned)s->what);
	for (size_t i = 0; i < RATES; i++)
		text_printf(out, "\t%" PRIu64, s->rates[i]);
	add_field(out, s->test);
	add_field(out, s->gpu);
	add_field(out, s->bus);
	add_field(out, s->text);
}

/* The next field's length; *at moves behind it. */
static size_t field(const char **at, const char **ret)
{
	size_t len = strcspn(*at, "\t");

	*ret = *at;
	*at += len + ((*at)[len] == '\t');
	return len;
}

static int take_number(const char **at, uint64_t max, uint64_t *ret)
{
	const char *from;
	size_t len = field(at, &from);

	return num_parse_len(from, len, 0, max, ret) < 0 ? -EPROTO : 0;
}

static int take_text(const char **at, char *ret, size_t size)
{
	const char *from;
	size_t len = field(at, &from);

	if (len >= size)
		return -EPROTO;
	memcpy(ret, from, len);
	ret[len] = '\0';
	return 0;
}

int sighting_read(const char *line, struct gpu_sight *ret)
{
	struct gpu_sight s = { 0 };
	const char *at = line;
	uint64_t what;
	int rc = take_number(&at, SIGHTS - 1, &what);

	for (size_t i = 0; rc == 0 && i < RATES; i++)
		rc = take_number(&at, UINT64_MAX, &s.rates[i]);
	if (rc == 0)
		rc = take_text(&at, s.test, sizeof s.test);
	if (rc == 0)
		rc = take_text(&at, s.gpu, sizeof s.gpu);
	if (rc == 0)
		rc = take_text(&at, s.bus, sizeof s.bus);
	if (rc == 0)
		rc = take_text(&at, s.text, sizeof s.text);
	if (rc < 0 || *at)
		return -EPROTO;
	s.what = (enum gpu_sight_kind)what;
	*ret = s;
	return 0;
}
