/* prefix.c - see prefix.h */
#include "daemon/output/prefix.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/template.h"
#include "daemon/output/lines.h"

enum { DAY_S = 24 * 60 * 60, ERA_DAYS = 146097, ERA_YEARS = 400 };

int prefix_render(const char *template, const struct prefix_values *v, struct text *out)
{
	char local_rank[16], rank[16], node_rank[16], time[PREFIX_TIME_SIZE];
	const struct template_value values[] = {
		{ "role_name", v->role_name },
		{ "local_rank", local_rank },
		{ "rank", rank },
		{ "hostname", v->hostname },
		{ "node_rank", node_rank },
		{ "stream", v->fd == 1 ? "stdout" : "stderr" },
		{ "time", time },
	};

	(void)snprintf(local_rank, sizeof local_rank, "%u", v->local_rank);
	(void)snprintf(rank, sizeof rank, "%u", v->rank);
	(void)snprintf(node_rank, sizeof node_rank, "%u", v->node_rank);
	prefix_time(v->wall_ns, time);
	out->len = 0;
	text_add(out, ""); /* that there is a text, of an empty template too */
	template_expand(template, values, sizeof values / sizeof *values, out);
	if (out->failed) {
		text_done(out);
		return -ENOMEM;
	}
	if (out->len > LINES_PREFIX_MAX) {
		out->len = LINES_PREFIX_MAX;
		for (int i = 0; i < 3 && ((unsigned char)out->at[out->len] & 0xc0) == 0x80; i++)
			out->len--;
		out->at[out->len] = '\0';
	}
	return 0;
}

bool prefix_has_time(const char *template)
{
	/* a value that nothing else in a template can become */
	static const struct template_value probe = { "time", "\n" };
	struct text out = { 0 };
	bool found;

	template_expand(template, &probe, 1, &out);
	found = out.failed || strchr(text_string(&out), '\n');
	text_done(&out);
	return found;
}

static void write_digits(char *at, int64_t number, int count)
{
	while (count-- > 0) {
		at[count] = (char)('0' + number % 10);
		number /= 10;
	}
}

/* The day of 1970-01-01 + days: years begin in March here, so that a leap day is their last. */
static void write_day(char *at, int64_t days)
{
	int64_t since = days + 719468; /* from 0000-03-01; > 0 for all that 64 bits of ns reach */
	int64_t era = since / ERA_DAYS, day = since % ERA_DAYS;
	int64_t year = (day - day / 1460 + day / 36524 - day / (ERA_DAYS - 1)) / 365;
	int64_t month;

	day -= 365 * year + year / 4 - year / 100;
	month = (5 * day + 2) / 153;
	day -= (153 * month + 2) / 5;
	write_digits(at, era * ERA_YEARS + year + (month >= 10), 4);
	write_digits(at + 5, month < 10 ? month + 3 : month - 9, 2);
	write_digits(at + 8, day + 1, 2);
}

void prefix_time(int64_t wall_ns, char ret[PREFIX_TIME_SIZE])
{
	int64_t ms = wall_ns / 1000000 - (wall_ns % 1000000 < 0);
	int64_t days = ms / (DAY_S * 1000) - (ms % (DAY_S * 1000) < 0);
	int64_t rest = ms - days * DAY_S * 1000;

	memcpy(ret, "0000-00-00T00:00:00.000Z", PREFIX_TIME_SIZE);
	write_day(ret, days);
	write_digits(ret + 11, rest / 3600000, 2);
	write_digits(ret + 14, rest / 60000 % 60, 2);
	write_digits(ret + 17, rest / 1000 % 60, 2);
	write_digits(ret + 20, rest % 1000, 3);
}
